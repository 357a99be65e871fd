//! Which playbooks a run plays, in which order: each step's, then its probe's.
//!
//! One playbook imports them all: given several on its command line, `ansible-playbook` stops after the first
//! in which one host failed, and the good hosts would wait for the bad one.

use std::path::{Path, PathBuf};

use crds::step::Step;
use thiserror::Error;

/// A playbook is not where it must be.
#[derive(Debug, Error)]
#[error("there is no playbook {}: is --ansible right?", path.display())]
pub struct PlaybookMissing {
    path: PathBuf,
}

/// The playbooks of the steps below the collection's directory, in order.
pub fn order(ansible: &Path, steps: &[Step]) -> Result<Vec<PathBuf>, PlaybookMissing> {
    let playbooks = ansible.join("playbooks");
    let files = steps.iter().flat_map(|step| {
        let file = format!("{step}.yml");
        [playbooks.join(&file), playbooks.join("probe").join(&file)]
    });
    files
        .map(|path| {
            if path.is_file() {
                Ok(path)
            } else {
                Err(PlaybookMissing { path })
            }
        })
        .collect()
}

/// The text of the playbook that imports them.
pub fn wrapper(playbooks: &[PathBuf]) -> String {
    let imports = playbooks.iter().map(|path| {
        let path = serde_json::Value::from(path.display().to_string());
        format!("- ansible.builtin.import_playbook: {path}\n")
    });
    imports.collect()
}

#[cfg(test)]
mod tests {
    use crds::step::Step;

    use super::{order, wrapper};

    #[test]
    fn each_step_is_followed_by_its_probe() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("playbooks/probe")).unwrap();
        for file in ["prepare.yml", "probe/prepare.yml", "node.yml", "probe/node.yml"] {
            std::fs::write(directory.path().join("playbooks").join(file), "[]").unwrap();
        }
        let playbooks = order(directory.path(), &[Step::Prepare, Step::Node]).unwrap();
        let root = directory.path().display();
        let expected = ["prepare.yml", "probe/prepare.yml", "node.yml", "probe/node.yml"]
            .map(|file| format!("- ansible.builtin.import_playbook: \"{root}/playbooks/{file}\"\n"));
        assert_eq!(wrapper(&playbooks), expected.concat());
        let error = order(directory.path(), &[Step::Prepare, Step::Etcd]).unwrap_err();
        assert!(error.to_string().contains("playbooks/etcd.yml"));
    }
}
