//! What a pattern names, and where it takes whatever there is.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, ident, inside, split};

/// What stands at one place of a pattern.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub enum There {
    /// An enum that is watched.
    Named(String),
    /// `_`, or a name for whatever it is.
    Anything,
}

/// What names mean at a place of a file.
pub struct Names<'a> {
    watched: &'a BTreeMap<String, BTreeSet<String>>,
    own_type: &'a str,
    /// `RunStep` is `Step`.
    renamed: BTreeMap<&'a str, &'a str>,
    /// Variants that stand alone: `use Intent::Probe`.
    alone: BTreeMap<&'a str, &'a str>,
}

impl<'a> Names<'a> {
    pub fn new(watched: &'a BTreeMap<String, BTreeSet<String>>, source: &'a Source, at: usize) -> Self {
        let (mut renamed, mut alone) = (BTreeMap::new(), BTreeMap::new());
        for import in source.imports() {
            for (name, variants) in watched {
                let alias = format!("{name} as ");
                let aliases = import.match_indices(&alias).map(|(at, _)| at + alias.len());
                renamed.extend(aliases.map(|at| (ident(&import[at..]), name.as_str())));
                let listed = import.split_once(&format!("{name}::")).map(|(_, listed)| listed.trim());
                let listed = listed
                    .map(|listed| if listed.starts_with('{') { inside(listed).unwrap_or_default() } else { listed });
                let listed = listed.unwrap_or_default();
                for variant in variants {
                    if listed.starts_with('*') || split(listed, ',').contains(&variant.as_str()) {
                        alone.insert(variant.as_str(), name.as_str());
                    }
                }
            }
        }
        Self { watched, own_type: source.own_type(at), renamed, alone }
    }

    fn enum_of(&self, path: &str) -> Option<String> {
        let mut idents = path.rsplit("::");
        let variant = idents.next()?.trim();
        let Some(name) = idents.next() else {
            return self.alone.get(variant).map(|name| (*name).to_owned());
        };
        let name = match name.trim() {
            "Self" => self.own_type,
            name => self.renamed.get(name).copied().unwrap_or(name),
        };
        self.watched.get(name)?.contains(variant).then(|| name.to_owned())
    }

    /// What stands where.
    pub fn places(&self, pattern: &str) -> Vec<(String, There)> {
        let mut places = Vec::new();
        self.collect(pattern, "", &mut places);
        places
    }

    fn collect(&self, pattern: &str, at: &str, places: &mut Vec<(String, There)>) {
        for case in split(pattern, '|') {
            let case = case.trim_start_matches('&').trim_start();
            let case = case.strip_prefix("mut ").or(case.strip_prefix("ref ")).unwrap_or(case);
            let case = case.split_once('@').map_or(case, |(_, inner)| inner.trim());
            let end = case.find(['(', '{', '[']).unwrap_or(case.len());
            let (path, inner) = (case[..end].trim(), &case[end..]);
            if let Some(name) = self.enum_of(path) {
                places.push((at.to_owned(), There::Named(name)));
            } else if inner.starts_with('(') {
                for (index, inner) in split(inside(inner).unwrap_or_default(), ',').into_iter().enumerate() {
                    self.collect(inner, &format!("{at}{path}.{index}/"), places);
                }
            } else if inner.starts_with('{') {
                for field in split(inside(inner).unwrap_or_default(), ',') {
                    let (name, inner) = field.split_once(": ").unwrap_or((field, field));
                    self.collect(inner, &format!("{at}{path}.{name}/"), places);
                }
            } else if inner.is_empty() && (path == "_" || path.starts_with(char::is_lowercase)) && !path.contains("::")
            {
                places.push((at.to_owned(), There::Anything));
            }
        }
    }
}
