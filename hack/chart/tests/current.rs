//! What lies in the chart is what the kustomization says.

use std::path::{Path, PathBuf};

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests")
}

#[test]
fn the_chart_is_that_of_the_kustomization() {
    let chart = manifests().join("chart");
    let files = chart::all(&manifests()).unwrap();
    for (path, text) in &files {
        let there = std::fs::read_to_string(chart.join(path)).unwrap_or_default();
        assert!(there == *text, "{} is not what its source says; write it anew: make manifests", path.display());
    }
    let left = chart::left_over(&chart, &files).unwrap();
    assert!(left.is_empty(), "{left:?} are of no kind any more; remove them: make manifests");
}

#[test]
fn every_kind_has_its_definition_in_the_chart() {
    let sources = std::fs::read_dir(manifests().join("crds")).unwrap().count() - 1;
    let files = chart::all(&manifests()).unwrap();
    let definitions: Vec<&String> =
        files.iter().filter(|(path, _)| path.starts_with("files/crds")).map(|(_, text)| text).collect();
    assert_eq!(definitions.len(), sources);
    for text in definitions {
        assert!(text.contains("helm.sh/resource-policy: keep"), "{text}");
    }
}

#[test]
fn what_is_not_in_the_kustomization_any_more_goes_and_the_rest_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let files = chart::all(&manifests()).unwrap();
    std::fs::create_dir_all(directory.path().join("files/crds")).unwrap();
    std::fs::write(directory.path().join("files/crds/goners.yaml"), "kind: Goner").unwrap();
    chart::write(directory.path(), &files).unwrap();
    assert!(!directory.path().join("files/crds/goners.yaml").exists());
    for (path, text) in &files {
        assert_eq!(std::fs::read_to_string(directory.path().join(path)).unwrap(), *text);
    }
}
