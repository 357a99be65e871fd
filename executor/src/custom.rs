//! A user's own playbooks: written into the run's private directory, each under the name of its step, and imported with
//! the variables that only it sees.
//!
//! Whoever writes such a playbook may do what they like on the hosts. It is not meant to do anything here: the plugin
//! `fence` refuses connections and lookups that would.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crds::inputs::RunInputs;
use crds::step::Step;
use serde_json::{Value, json};

use crate::inventory;
use crate::role::is_critical;
use crate::workdir::Workdir;

/// The files of the steps that are a user's own playbooks.
#[derive(Debug, Default)]
pub struct Custom {
    files: BTreeMap<Step, (PathBuf, Option<PathBuf>)>,
}

impl Custom {
    /// Writes the playbooks of a run.
    pub fn write(workdir: &Workdir, model: &RunInputs) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for step in &model.steps {
            let Some(playbook) = of_step(model, step) else {
                continue;
            };
            // An event names a play by its file and directory: those of any step.
            let file = format!("{step}.yml");
            let main = with_vars(workdir, &file, "", &playbook.content, &playbook.vars)?;
            let probe = playbook.probe.as_ref();
            let probe = probe.map(|text| with_vars(workdir, &file, "probe", text, &playbook.vars)).transpose()?;
            files.insert(*step, (main, probe));
        }
        Ok(Self { files })
    }

    /// The playbook of a step, and that of its probe.
    pub fn files(&self, step: &Step) -> (PathBuf, Option<PathBuf>) {
        let found = self.files.get(step).cloned();
        found.unwrap_or_else(|| (PathBuf::from(format!("{step}.yml")), None))
    }
}

/// Whether it can be seen that a step of the user's is done.
pub fn has_probe(model: &RunInputs, step: &Step) -> bool {
    of_step(model, step).is_some_and(|playbook| playbook.probe.is_some())
}

/// Settings of Ansible for a run with playbooks of the user's.
pub fn settings(model: &RunInputs) -> Vec<(&'static str, &'static str)> {
    if model.playbooks.is_empty() {
        return Vec::new();
    }
    let mut settings = vec![
        ("ANSIBLE_CALLBACKS_ENABLED", "clusterwright.cluster.events,clusterwright.cluster.fence"),
        // A task of theirs that takes longer says so itself (`timeout`).
        ("ANSIBLE_TASK_TIMEOUT", "900"),
    ];
    // Control planes and etcd members stop together: ours say so in their plays.
    if model.hosts.values().any(|host| is_critical(model, &host.groups)) {
        settings.push(("ANSIBLE_ANY_ERRORS_FATAL", "true"));
    }
    settings
}

fn of_step<'a>(model: &'a RunInputs, step: &Step) -> Option<&'a crds::inputs::PlaybookInputs> {
    model.playbooks.get(step.custom()?.playbook())
}

/// Writes a playbook; with variables, another one that imports it with them. They are data, marked as a whole: a text
/// that is marked by itself is typed anew.
fn with_vars(
    workdir: &Workdir,
    file: &str,
    directory: &str,
    text: &str,
    vars: &BTreeMap<String, Value>,
) -> io::Result<PathBuf> {
    let path = workdir.write(Path::new("custom").join(directory).join(file), text.as_bytes())?;
    if vars.is_empty() {
        return Ok(path);
    }
    let mut text =
        format!("- ansible.builtin.import_playbook: {}\n  vars: !unsafe ", Value::from(path.display().to_string()));
    inventory::write_value(&mut text, &json!(vars));
    text.push('\n');
    workdir.write(Path::new("with-vars").join(directory).join(file), text.as_bytes())
}
