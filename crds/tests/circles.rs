//! No files of a crate depend on each other in a circle: each can be read, and understood, after those that it uses.

#[path = "scan/sources.rs"]
mod sources;
#[path = "scan/uses.rs"]
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use uses::{Module, uses};

/// Crates that have none.
const CRATES: [&str; 4] = ["executor/guard/src", "executor/src", "operator/plan/src", "operator/src"];

fn modules(crate_: &str) -> io::Result<BTreeMap<Module, String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(crate_);
    let files = sources::sources(&[crate_])?;
    let files = files.into_iter().filter_map(|(path, text)| {
        let path = path.strip_prefix(&root).ok()?.with_extension("");
        let module: Module = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        // A program beside a library uses it as others do.
        let is_root = module == ["lib"] || (module == ["main"] && !root.join("lib.rs").exists());
        Some((if is_root { Module::new() } else { module }, text))
    });
    let mut files: BTreeMap<Module, String> = files.collect();
    let of_tests: Vec<Module> = files.iter().flat_map(|(module, text)| test_modules(module, text)).collect();
    files.retain(|module, _| !of_tests.iter().any(|of_tests| module.starts_with(of_tests)));
    Ok(files)
}

/// The modules of a file that are compiled for tests alone: the line after `#[cfg(test)]` is `mod NAME;`.
fn test_modules(module: &Module, text: &str) -> Vec<Module> {
    let lines = text.lines().zip(text.lines().skip(1));
    let after = lines.filter_map(|(line, next)| (line.trim() == "#[cfg(test)]").then_some(next));
    let names = after.filter_map(|line| line.split_once("mod ")?.1.strip_suffix(';'));
    names.map(|name| [module.as_slice(), &[name.to_owned()]].concat()).collect()
}

/// One way from a module back to itself for each circle: `host -> host/view -> host`.
fn circles(files: &BTreeMap<Module, String>) -> Vec<String> {
    let uses = uses(files);
    let mut told: BTreeSet<&Module> = BTreeSet::new();
    let mut circles = Vec::new();
    for start in uses.keys() {
        if told.contains(start) {
            continue;
        }
        if let Some(way) = way_back(&uses, start) {
            let names: Vec<String> = way.iter().map(|module| name(module)).collect();
            circles.push(names.join(" -> "));
            told.extend(way);
        }
    }
    circles
}

fn name(module: &Module) -> String {
    if module.is_empty() { "lib".into() } else { module.join("/") }
}

/// The shortest way from a module back to itself.
fn way_back<'a>(uses: &'a BTreeMap<Module, BTreeSet<Module>>, start: &'a Module) -> Option<Vec<&'a Module>> {
    let mut ways: Vec<Vec<&Module>> = vec![vec![start]];
    let mut seen: BTreeSet<&Module> = BTreeSet::new();
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        next += 1;
        for used in way.last().into_iter().flat_map(|module| &uses[*module]) {
            let longer = [way.as_slice(), &[used]].concat();
            if used == start {
                return Some(longer);
            }
            if seen.insert(used) {
                ways.push(longer);
            }
        }
    }
    None
}

#[test]
fn no_files_depend_on_each_other_in_a_circle() {
    for crate_ in CRATES {
        let files = modules(crate_).unwrap();
        assert!(files.len() > 1, "{crate_} has no files");
        assert_eq!(circles(&files), [""; 0], "{crate_}: move what they share into a file of its own");
    }
}

#[test]
fn a_circle_is_found_through_imports_written_paths_and_re_exports() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let files = files.iter().map(|(module, text)| {
            let module = module.split('/').filter(|part| !part.is_empty());
            (module.map(str::to_owned).collect(), (*text).to_owned())
        });
        assert_eq!(circles(&files.collect()), expected);
    };
    let parent = "mod child;\nuse child::help;\npub struct Seen;\nfn plan() { help(); }";
    let child = "use super::Seen;\npub fn help(seen: Seen) {}";
    check(&[("a", parent), ("a/child", child)], &["a -> a/child -> a"]);
    let written = "pub fn help(seen: super::Seen) {}\n// super::plan";
    check(&[("a", parent), ("a/child", written)], &["a -> a/child -> a"]);
    let parent = "mod child;\nmod seen;\npub use seen::Seen;\nfn plan() { child::help(); }";
    check(&[("a", parent), ("a/child", child), ("a/seen", "pub struct Seen;")], &[]);
    let (one, other) = ("use crate::b;\npub fn one() { b::two(); }", "pub fn two() { crate::a::one(); }");
    check(&[("a", one), ("b", other)], &["a -> b -> a"]);
    let in_test = "pub fn two() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}";
    check(&[("a", one), ("b", in_test)], &[]);
    let in_text = "pub fn two() { say(\"crate::a::one\"); }";
    check(&[("a", one), ("b", in_text)], &[]);
}
