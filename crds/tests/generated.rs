//! What is generated from the types is what lies in the tree.

use std::path::{Path, PathBuf};

fn tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn check(path: &str, generated: &str, command: &str) {
    let there = std::fs::read_to_string(tree(path)).unwrap_or_default();
    assert!(
        there == generated,
        "{path} is not what the types say; write it anew: {command}"
    );
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
    let mut files: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(
        files, plurals,
        "manifests/crds holds other files than there are kinds"
    );
    let kustomization = std::fs::read_to_string(tree("manifests/crds/kustomization.yaml")).unwrap();
    for file in plurals.iter().filter(|file| *file != "kustomization.yaml") {
        assert!(
            kustomization.contains(&format!("- {file}\n")),
            "kustomization.yaml does not name {file}"
        );
    }
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
