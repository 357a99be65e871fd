//! Reasons are given by the table: no program of ours has one of its own, and the collection none that is not there.

#[path = "scan/sources.rs"]
mod sources;

use std::path::{Path, PathBuf};

use crds::Reason;

/// Literals of a text that are the name of a reason of two words and more; a single word may be anything.
fn literals(text: &str) -> Vec<&str> {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let quoted = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
    let humps = |name: &str| name.chars().filter(char::is_ascii_uppercase).count();
    quoted.filter(|text| humps(text) > 1 && Reason::from_name(text).is_some()).collect()
}

#[test]
fn no_program_names_a_reason_but_by_the_table() {
    let is_test = |path: &Path| {
        let of_tests = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs" || part == "fake_api";
        path.iter().any(of_tests)
    };
    let mut files = sources::sources(&["operator/src", "operator/plan/src", "executor/src"]).unwrap();
    files.retain(|(path, _)| !is_test(path));
    let mut found = Vec::new();
    for (path, text) in &files {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        found.extend(literals(text).into_iter().map(|name| format!("{file} {name}")));
    }
    // Kubernetes' own word for a Job whose time is over.
    assert_eq!(found, ["conclusion.rs DeadlineExceeded"], "use crds::Reason");
}

#[test]
fn a_reason_of_its_own_is_found() {
    assert_eq!(literals("let a = (\"NoHost\", \"Running\", \"NoSuch\");"), ["NoHost"]);
    assert_eq!(literals("// \"NoHost\"\n#[cfg(test)]\n\"NoHost\""), [""; 0]);
}

/// The reasons that a playbook or a module of the collection fails with.
fn given(text: &str) -> Vec<&str> {
    let marks = ["failure_reason: ", "StepFailure(", "failed(", "reason=", "reason: str = ", "\"reason\": "];
    let mut names = Vec::new();
    for mark in marks {
        for (at, _) in text.match_indices(mark) {
            let rest = text[at + mark.len()..].trim_start();
            let rest = match rest.strip_prefix('"') {
                Some(quoted) => quoted,
                None if mark.ends_with(": ") => rest,
                None => continue,
            };
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            names.push(&rest[..end]);
        }
    }
    let is_reason =
        |name: &&str| name.starts_with(|c: char| c.is_ascii_uppercase()) && name.contains(char::is_lowercase);
    names.retain(is_reason);
    names
}

#[test]
fn every_reason_that_the_collection_gives_is_in_the_table() {
    let mut directories = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../executor/ansible")];
    let (mut seen, mut unknown) = (0, Vec::new());
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            // Links lead back into the collection.
            if entry.file_type().unwrap().is_dir() {
                directories.push(path);
            } else if matches!(extension, Some("py" | "yml")) {
                let text = std::fs::read_to_string(&path).unwrap();
                for name in given(&text) {
                    seen += 1;
                    if Reason::from_name(name).is_none() {
                        unknown.push(format!("{}: {name}", path.display()));
                    }
                }
            }
        }
    }
    assert!(seen > 50, "{seen}");
    assert!(unknown.is_empty(), "add them to crds/src/reason/table.rs:\n{}", unknown.join("\n"));
}
