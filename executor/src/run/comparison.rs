//! A comparison: of each step the probe alone, on each host for itself. One that differs stays in the run for the
//! probes of the steps after it, and stops no other one.

use std::path::Path;
use std::{fs, io};

use serde_json::{Map, Value, json};

use super::work::{Ended, PROBE_SECONDS, RunSignals, Work};
use crate::fold::Fold;
use crate::playbooks::{self, Playbook};

impl Work<'_> {
    /// Plays the probes of all steps.
    pub(super) async fn compare(&self, fold: &mut Fold, signals: &mut RunSignals<'_>) -> io::Result<Ended> {
        let mut probes = Vec::new();
        for probe in self.playbooks.iter().filter(|playbook| playbook.probe) {
            let text = each_for_itself(&fs::read_to_string(&probe.path)?).map_err(io::Error::other)?;
            // An event names a play by its file and directory.
            let file = Path::new("compare/probe").join(format!("{}.yml", probe.step));
            let path = self.runner.workdir.write(file, text.as_bytes())?;
            probes.push(Playbook { path, ..probe.clone() });
        }
        let vars = Map::from_iter([("clusterwright_probe_seconds".to_owned(), json!(PROBE_SECONDS))]);
        let file = self.write("compare.yml", &playbooks::wrapper(&probes, false, &vars))?;
        self.runner.play(self.inventory, &file, fold, signals.shown, signals.stops).await
    }
}

/// The playbook of a probe in which whatever fails on a host is over with the play.
fn each_for_itself(text: &str) -> Result<String, serde_yaml::Error> {
    let mut plays: Vec<Map<String, Value>> = serde_yaml::from_str(text)?;
    for play in &mut plays {
        play.remove("any_errors_fatal");
        let tasks = play.remove("tasks").unwrap_or_else(|| json!([]));
        let rescue = json!([{"name": "Go on with the next probe", "ansible.builtin.meta": "noop"}]);
        play.insert("tasks".into(), json!([{"name": "Compare", "block": tasks, "rescue": rescue}]));
    }
    Ok(json!(plays).to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crds::step::{Intent, Step};
    use serde_json::Value;

    use super::each_for_itself;

    #[test]
    fn every_probe_that_is_compared_is_played_on_each_host_for_itself() {
        for step in Step::ALL.iter().filter(|step| step.is_allowed_in(Intent::Compare)) {
            let text = std::fs::read_to_string(Path::new("ansible/playbooks/probe").join(format!("{step}.yml")));
            let made: Value = serde_json::from_str(&each_for_itself(&text.unwrap()).unwrap()).unwrap();
            for play in made.as_array().unwrap() {
                assert_eq!(play.get("any_errors_fatal"), None, "{step}");
                let tasks = play["tasks"].as_array().unwrap();
                assert_eq!(tasks.len(), 1, "{step}");
                assert!(!tasks[0]["block"].as_array().unwrap().is_empty(), "{step}");
                assert_eq!(tasks[0]["rescue"][0]["ansible.builtin.meta"], "noop", "{step}");
                for key in ["pre_tasks", "post_tasks", "roles", "handlers"] {
                    assert_eq!(play.get(key), None, "{step}: what is in {key} would stop the others");
                }
            }
        }
    }
}
