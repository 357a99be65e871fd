//! One module renders the commands that messages print, so that all of them run as printed.

use std::path::{Path, PathBuf};

/// Lines of a text that print a command of their own: documentation and tests may name one.
fn own_commands(text: &str) -> Vec<usize> {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let is_code =
        |line: &str| !line.trim_start().starts_with("//") && !line.trim_start().starts_with("doc =");
    let verbs = [
        "annotate", "delete", "get", "edit", "patch", "scale", "label", "apply", "-n", "--",
    ];
    let prints = |line: &str| verbs.iter().any(|verb| line.contains(&format!("kubectl {verb}")));
    let lines = code
        .lines()
        .enumerate()
        .filter(|(_, line)| is_code(line) && prints(line));
    lines.map(|(index, _)| index + 1).collect()
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && name != "tests" && name != "target" {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

#[test]
fn every_command_that_a_message_prints_is_rendered_by_one_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for room in ["crds/src", "operator/src", "operator/plan/src", "executor/src"] {
        sources(&root.join(room), &mut files);
    }
    assert!(files.len() > 200, "{}", files.len());
    let mut found = Vec::new();
    for path in files
        .iter()
        .filter(|path| !path.ends_with("crds/src/commands.rs"))
    {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = own_commands(&text).into_iter();
        found.extend(lines.map(|line| format!("{}:{line}", path.display())));
    }
    assert!(found.is_empty(), "use crds::commands:\n{}", found.join("\n"));
}

#[test]
fn a_command_of_its_own_is_found() {
    assert_eq!(own_commands("//! kubectl get x\nlet a = \"kubectl get x\";"), [2]);
    assert_eq!(
        own_commands("a;\n#[cfg(test)]\nmod tests { \"kubectl get x\" }"),
        [0; 0]
    );
}
