//! Which file of a crate uses which: by its `use` lines and the paths that are written out. A name that a module only
//! re-exports counts as one of the file that it comes from.

use std::collections::{BTreeMap, BTreeSet};

/// Where a module is in its crate: `["host", "view"]`.
pub type Module = Vec<String>;

/// A file, as far as others name it and it names others.
#[derive(Default)]
struct Source {
    /// What it defines at its top.
    items: BTreeSet<String>,
    /// What its `use` lines bring in: the name here, and the path as it is written.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths in the rest of its text: `view::show`.
    paths: BTreeSet<Vec<String>>,
    /// Words in the rest of its text.
    words: BTreeSet<String>,
}

/// The modules that each module of a crate uses, from the text of each.
pub fn uses(files: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let sources: BTreeMap<Module, Source> =
        files.iter().map(|(module, text)| (module.clone(), Source::read(text))).collect();
    sources.iter().map(|(module, source)| (module.clone(), used(&sources, module, source))).collect()
}

fn used(sources: &BTreeMap<Module, Source>, module: &Module, source: &Source) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    for (name, path) in &source.imports {
        // A module that is brought in is used by the paths below; what is only re-exported is not used here.
        if source.words.contains(name) {
            found.extend(home(sources, module, path, 0).filter(|_| !is_module(sources, module, path)));
        }
    }
    for path in &source.paths {
        found.extend(home(sources, module, path, 0));
    }
    found.remove(module);
    found
}

fn is_module(sources: &BTreeMap<Module, Source>, at: &Module, path: &[String]) -> bool {
    absolute(sources, at, path).is_some_and(|path| sources.contains_key(&path))
}

/// The module that defines what a path names; none: it is not of this crate.
fn home(sources: &BTreeMap<Module, Source>, at: &Module, path: &[String], depth: usize) -> Option<Module> {
    let path = absolute(sources, at, path)?;
    let known = (0..=path.len()).rev().find(|length| sources.contains_key(&path[..*length]))?;
    let (module, rest) = path.split_at(known);
    let source = &sources[module];
    let import = rest.first().filter(|name| !source.items.contains(*name));
    match import.and_then(|name| source.imports.get(name)) {
        Some(import) if depth < 8 => {
            let path: Vec<String> = import.iter().chain(&rest[1..]).cloned().collect();
            home(sources, &module.to_vec(), &path, depth + 1)
        }
        _ => Some(module.to_vec()),
    }
}

/// A path from the crate's root; none: it leads out of the crate.
fn absolute(sources: &BTreeMap<Module, Source>, at: &Module, path: &[String]) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([at, rest].concat()),
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            let base = at.get(..at.len().checked_sub(ups)?)?;
            Some([base, &path[ups..]].concat())
        }
        name => {
            let child = [at.as_slice(), &[name.to_owned()]].concat();
            let import = sources[at].imports.get(name);
            match import {
                _ if sources.contains_key(&child) => Some([at, path].concat()),
                Some(import) if import.first().is_some_and(|first| first != name) => {
                    let import = absolute(sources, at, import)?;
                    Some([import.as_slice(), rest].concat())
                }
                _ => None,
            }
        }
    }
}

impl Source {
    fn read(text: &str) -> Self {
        let code = code(text);
        let mut source = Self::default();
        for statement in code.split_inclusive([';', '{', '}']) {
            let words: Vec<&str> = statement.split_whitespace().collect();
            let at_top = words.iter().position(|word| !word.starts_with("pub") && *word != "const");
            if let [kind, name, ..] = &words[at_top.unwrap_or_default()..]
                && ["fn", "struct", "enum", "trait", "type", "static"].contains(kind)
            {
                source.items.insert(identifier(name).to_owned());
            }
        }
        let (uses, rest) = split_uses(&code);
        for tree in uses {
            read_tree(&tree, &[], &mut source.imports);
        }
        for constant in rest.split("const ").skip(1) {
            source.items.insert(identifier(constant).to_owned());
        }
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        for path in rest.split(|c| !is_path(c)).filter(|path| !path.is_empty()) {
            let parts: Vec<String> = path.split("::").map(|part| part.trim_matches(':').to_owned()).collect();
            if let Some(first) = parts.first().filter(|first| !first.is_empty()) {
                source.words.insert(first.clone());
            }
            if parts.len() > 1 && parts.iter().all(|part| !part.is_empty()) {
                source.paths.insert(parts);
            }
        }
        source
    }
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The trees of the `use` lines, and the text without them and without `mod` lines.
fn split_uses(code: &str) -> (Vec<String>, String) {
    let (mut uses, mut rest, mut tree) = (Vec::new(), String::new(), None::<String>);
    for line in code.lines() {
        let words = line.trim_start();
        let words = words.strip_prefix("pub").map_or(words, |after| match after.strip_prefix('(') {
            Some(inside) => inside.split_once(')').map_or(after, |(_, after)| after),
            None => after,
        });
        let words = words.trim_start();
        if tree.is_none() && words.starts_with("mod ") && words.ends_with(';') {
            continue;
        }
        if tree.is_none() && words.starts_with("use ") {
            tree = Some(String::new());
        }
        match &mut tree {
            Some(text) => text.push_str(words.strip_prefix("use ").unwrap_or(words)),
            None => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
        if let Some(text) = tree.take_if(|text| text.ends_with(';')) {
            uses.push(text.trim_end_matches(';').to_owned());
        }
    }
    (uses, rest)
}

/// The names that a `use` tree brings in, with their paths.
fn read_tree(tree: &str, prefix: &[String], names: &mut BTreeMap<String, Vec<String>>) {
    let tree = tree.trim();
    if let Some(inner) = tree.strip_prefix('{').and_then(|tree| tree.strip_suffix('}')) {
        let mut depth = 0;
        let parts = inner.split(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        parts.filter(|part| !part.trim().is_empty()).for_each(|part| read_tree(part, prefix, names));
    } else if let Some((head, rest)) = tree.split_once("::") {
        read_tree(rest, &[prefix, &[head.trim().to_owned()]].concat(), names);
    } else {
        let (name, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let path = match name {
            "self" => prefix.to_vec(),
            name => [prefix, &[name.to_owned()]].concat(),
        };
        let alias = if alias.is_empty() { path.last().cloned() } else { Some(alias.to_owned()) };
        names.extend(alias.map(|alias| (alias, path)));
    }
}

/// The text without comments, without what stands in quotes, and without its tests.
fn code(text: &str) -> String {
    let mut code = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for line in text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default().lines() {
        let mut characters = line.chars().peekable();
        let mut before = ' ';
        while let Some(c) = characters.next() {
            match c {
                '"' if !(quoted || before == '\'' && characters.peek() == Some(&'\'')) => quoted = true,
                '"' if quoted && !escaped => quoted = false,
                '/' if !quoted && characters.peek() == Some(&'/') => break,
                c if !quoted => code.push(c),
                _ => {}
            }
            escaped = quoted && c == '\\' && !escaped;
            before = c;
        }
        code.push('\n');
    }
    // Where something is visible is no use of it.
    code.split("pub(in ").enumerate().fold(String::new(), |code, (index, part)| match index {
        0 => part.to_owned(),
        _ => code + "pub" + part.split_once(')').map_or("", |(_, rest)| rest),
    })
}
