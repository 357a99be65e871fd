//! One module renders the commands that messages print, so that all of them run as printed.

#[path = "scan/sources.rs"]
mod sources;

use std::path::Path;

/// Lines of a text that print a command of their own: documentation and tests may name one.
fn own_commands(text: &str) -> Vec<usize> {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let is_code = |line: &str| !line.trim_start().starts_with("//") && !line.trim_start().starts_with("doc =");
    let verbs = ["annotate", "delete", "get", "edit", "patch", "scale", "label", "apply", "-n", "--"];
    let prints = |line: &str| verbs.iter().any(|verb| line.contains(&format!("kubectl {verb}")));
    let lines = code.lines().enumerate().filter(|(_, line)| is_code(line) && prints(line));
    lines.map(|(index, _)| index + 1).collect()
}

#[test]
fn every_command_that_a_message_prints_is_rendered_by_one_module() {
    let is_test = |path: &Path| path.iter().any(|part| part == "tests" || part == "tests.rs");
    let rooms = ["crds/src", "operator/src", "operator/plan/src", "executor/src"];
    let mut files = sources::sources(&rooms).unwrap();
    files.retain(|(path, _)| !is_test(path) && !path.ends_with("crds/src/commands.rs"));
    assert!(files.len() > 200, "{}", files.len());
    let mut found = Vec::new();
    for (path, text) in &files {
        let lines = own_commands(text).into_iter();
        found.extend(lines.map(|line| format!("{}:{line}", path.display())));
    }
    assert!(found.is_empty(), "use crds::commands:\n{}", found.join("\n"));
}

#[test]
fn a_command_of_its_own_is_found() {
    assert_eq!(own_commands("//! kubectl get x\nlet a = \"kubectl get x\";"), [2]);
    assert_eq!(own_commands("a;\n#[cfg(test)]\nmod tests { \"kubectl get x\" }"), [0; 0]);
}
