//! What is generated from the types is what lies in the tree.

use std::path::{Path, PathBuf};

fn tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn check(path: &str, generated: &str, command: &str) {
    let there = std::fs::read_to_string(tree(path)).unwrap_or_default();
    assert!(there == generated, "{path} is not what the types say; write it anew: {command}");
}

#[test]
fn the_definitions_in_manifests_are_those_of_the_types() {
    let mut plurals = Vec::new();
    for definition in crds::manifests::all() {
        let plural = definition.spec.names.plural.clone();
        let text = serde_yaml::to_string(&definition).unwrap();
        let command = "cargo run -p crds --example manifests -- manifests/crds";
        check(&format!("manifests/crds/{plural}.yaml"), &text, command);
        plurals.push(format!("{plural}.yaml"));
    }
    plurals.push("kustomization.yaml".into());
    plurals.sort();
    let files = std::fs::read_dir(tree("manifests/crds")).unwrap();
    let mut files: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, plurals, "manifests/crds holds other files than there are kinds");
    let command = "cargo run -p crds --example manifests -- manifests/crds";
    check("manifests/crds/kustomization.yaml", &crds::manifests::kustomization(), command);
}

#[path = "../examples/api_docs/reasons.rs"]
mod reasons;
#[path = "../examples/api_docs/reference.rs"]
mod reference;

#[test]
fn the_pages_in_docs_are_those_of_the_types() {
    let command = "cargo run -p crds --example api_docs -- docs";
    check("docs/api.md", &reference::text().unwrap(), command);
    check("docs/reasons.md", &reasons::text().unwrap(), command);
}

/// Lists outside the types, in which a forgotten kind would be noticed by nobody.
#[test]
fn every_kind_is_reconciled_and_may_be_seen_and_edited() {
    let read = |path: &str| std::fs::read_to_string(tree(path)).unwrap();
    let people = read("manifests/rbac/people.yaml");
    let operator = read("operator/src/lib.rs");
    for definition in crds::manifests::all() {
        let names = &definition.spec.names;
        let roles = people.lines().filter(|line| line.contains("resources:"));
        let listed = roles.filter(|line| line.split(['[', ',', ']']).any(|name| name.trim() == names.plural));
        assert_eq!(listed.count(), 2, "manifests/rbac/people.yaml has no role to view, or to edit, {}", names.plural);
        let mut module = String::new();
        for letter in names.kind.chars() {
            if letter.is_uppercase() && !module.is_empty() {
                module.push('_');
            }
            module.extend(letter.to_lowercase());
        }
        let line = format!("    {module}::spawn(ctx, tasks);\n");
        assert!(operator.contains(&line), "operator/src/lib.rs starts no controller of {}", names.kind);
    }
}
