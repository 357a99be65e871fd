//! Which playbooks a run plays, in which order: each step's, then its probe's.
//!
//! One playbook imports them all: given several on its command line, `ansible-playbook` stops after the first
//! in which one host failed, and the good hosts would wait for the bad one.

use std::path::{Path, PathBuf};

use crds::step::Step;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::custom::Custom;
use crate::guard::RUN_VARIABLE;

/// A playbook is not where it must be.
#[derive(Debug, Error)]
#[error("there is no playbook {}: is --ansible right?", path.display())]
pub struct PlaybookMissing {
    path: PathBuf,
}

/// One playbook of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Playbook {
    /// Its file.
    pub path: PathBuf,
    /// Its step.
    pub step: Step,
    /// It is the step's probe.
    pub probe: bool,
}

/// The playbooks of the steps, in order: ours below the collection's directory, the user's where they were written.
pub fn order(ansible: &Path, custom: &Custom, steps: &[Step]) -> Result<Vec<Playbook>, PlaybookMissing> {
    let ours = ansible.join("playbooks");
    let files = steps.iter().flat_map(|step| {
        let file = format!("{step}.yml");
        let (path, probe) = match step.custom() {
            Some(_) => custom.files(step),
            None => (ours.join(&file), Some(ours.join("probe").join(&file))),
        };
        [Some((path, *step, false)), probe.map(|probe| (probe, *step, true))]
    });
    files
        .flatten()
        .map(
            |(path, step, probe)| {
                if path.is_file() { Ok(Playbook { path, step, probe }) } else { Err(PlaybookMissing { path }) }
            },
        )
        .collect()
}

/// The text of the playbook that imports them. Guarded: every command of a step goes through the guard's shell of its
/// name, so that the machine knows for which run and step it is.
pub fn wrapper<'a>(
    playbooks: impl IntoIterator<Item = &'a Playbook>,
    guarded: bool,
    vars: &Map<String, Value>,
) -> String {
    let imports = playbooks.into_iter().map(|playbook| {
        let path = Value::from(playbook.path.display().to_string());
        let mut vars = vars.clone();
        if guarded {
            let shell = if playbook.probe { "probe-" } else { "" };
            let shell = format!("{{{{ {RUN_VARIABLE} }}}}/{shell}{}", playbook.step);
            vars.insert("ansible_shell_executable".to_owned(), shell.into());
        }
        let vars = if vars.is_empty() { String::new() } else { format!("  vars: {}\n", Value::from(vars)) };
        format!("- ansible.builtin.import_playbook: {path}\n{vars}")
    });
    imports.collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crds::step::Step;
    use serde_json::{Map, Value, json};

    use super::{order, wrapper};
    use crate::custom::Custom;

    #[test]
    fn every_step_has_its_playbook_its_probe_and_its_place_in_the_docs() {
        let docs = std::fs::read_to_string("../docs/playbooks.md").unwrap();
        for step in Step::ALL {
            let name = step.name();
            for file in [format!("{name}.yml"), format!("probe/{name}.yml")] {
                let path = Path::new("ansible/playbooks").join(file);
                assert!(path.is_file(), "{} is missing", path.display());
            }
            assert!(docs.contains(&format!("`{name}`")), "docs/playbooks.md does not tell of {name}");
        }
    }

    #[test]
    fn each_step_is_followed_by_its_probe() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("playbooks/probe")).unwrap();
        for file in ["prepare.yml", "probe/prepare.yml", "node.yml", "probe/node.yml"] {
            std::fs::write(directory.path().join("playbooks").join(file), "[]").unwrap();
        }
        let none = Custom::default();
        let playbooks = order(directory.path(), &none, &[Step::Prepare, Step::Node]).unwrap();
        let root = directory.path().display();
        let expected = ["prepare.yml", "probe/prepare.yml", "node.yml", "probe/node.yml"]
            .map(|file| format!("- ansible.builtin.import_playbook: \"{root}/playbooks/{file}\"\n"));
        assert_eq!(wrapper(&playbooks, false, &Map::new()), expected.concat());
        let text = wrapper(&playbooks[2..], true, &Map::new());
        let guarded: Value = serde_yaml::from_str(&text).unwrap();
        assert_eq!(guarded[0]["vars"], json!({"ansible_shell_executable": "{{ clusterwright_guard_run }}/node"}));
        assert_eq!(guarded[1]["vars"], json!({"ansible_shell_executable": "{{ clusterwright_guard_run }}/probe-node"}));
        let error = order(directory.path(), &none, &[Step::Prepare, Step::Etcd]).unwrap_err();
        assert!(error.to_string().contains("playbooks/etcd.yml"));
    }

    /// `raw` and `script` take no shell but the one they are given: without it they would pass the guard by.
    #[test]
    fn every_command_of_a_role_goes_through_the_shell_of_its_step() {
        let ansible = Path::new("ansible");
        let mut directories = vec![ansible.join("roles"), ansible.join("playbooks")];
        let mut files = 0;
        while let Some(directory) = directories.pop() {
            for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|extension| extension == "yml") {
                    files += 1;
                    let text = std::fs::read_to_string(&path).unwrap();
                    let count = |word: &str| text.matches(word).count();
                    let unshelled = count("raw:") + count("script:");
                    assert_eq!(unshelled, count("executable: \"{{ ansible_shell_executable"), "{}", path.display());
                    for word in ["delegate_to", "local_action", "connection:"] {
                        assert_eq!(count(word), 0, "{word} in {}", path.display());
                    }
                }
            }
        }
        assert!(files > 30, "{files}");
    }
}
