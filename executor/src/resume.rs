//! The step at which an interrupted run resumes: the probes of all steps are played in order, and the first step that
//! is not done on some host is where the run resumes. A step whose probe gives no clear answer is not done.

use std::collections::BTreeSet;

use crds::inputs::RunInputs;
use crds::step::Step;

use crate::custom;
use crate::event::{Event, TaskStatus, What};
use crate::fold::{Fold, Snapshot};
use crate::play::EventSink;

/// The steps whose probes prove that they are done: up to the first whose probe is no proof by itself (a reset, a look
/// at a spare machine, a restart), is not free of effects (the smoke test), or that has none (a user's own).
pub fn probed(model: &RunInputs) -> &[Step] {
    let unseen = |step: &Step| step.custom().is_some() && !custom::has_probe(model, step);
    let always_played = |step: &Step| step.spec().always_played || unseen(step);
    model.steps.split(always_played).next().unwrap_or_default()
}

/// Finds the step to resume from, by the events of the probes.
pub struct ResumeScan<'a> {
    fold: &'a mut Fold,
    steps: Vec<Step>,
    /// Workers on which nothing can be done: they fail alone and say nothing of the others.
    ignored: BTreeSet<String>,
    /// The step whose probe is played.
    current: Option<usize>,
    /// The first step that is not done somewhere.
    open: Option<usize>,
    /// All probes were played.
    ended: bool,
}

impl<'a> ResumeScan<'a> {
    /// A scan that has received no event yet.
    pub fn new(model: &RunInputs, fold: &'a mut Fold) -> Self {
        let alone = |host: &&str| {
            let groups = model.hosts.get(*host).map_or(&[][..], |host| &host.groups);
            !groups.iter().any(|group| group.is_critical())
        };
        let ignored = fold.blocked_hosts().filter(alone).map(str::to_owned).collect();
        Self { fold, steps: probed(model).to_vec(), ignored, current: None, open: None, ended: false }
    }

    /// How many steps are done on every host.
    pub fn done(&self) -> usize {
        let done = match self.open {
            Some(open) => open,
            None if self.ended => self.steps.len(),
            None => 0,
        };
        // Without the report of what lies ready, it does not count.
        let staging = self.steps.iter().position(|step| *step == Step::StageBackup);
        staging.filter(|_| !self.fold.is_staged()).map_or(done, |staging| done.min(staging))
    }

    fn not_done(&mut self) {
        let current = self.current.unwrap_or_default();
        self.open = Some(self.open.map_or(current, |open| open.min(current)));
    }
}

impl EventSink for ResumeScan<'_> {
    fn receive(&mut self, event: &Event) {
        match &event.what {
            What::Playbook { step, .. } => {
                self.current = self.steps.iter().position(|known| known.name() == step);
                self.fold.prepare(&format!("look whether {step} is done"));
            }
            What::Result(result) => {
                let well = matches!(result.status, TaskStatus::Ok | TaskStatus::Skipped) || result.ignored;
                if !well && !self.ignored.contains(&result.host) {
                    self.not_done();
                }
            }
            What::Stats(_) => self.ended = true,
            // Its probe reports it, and the step is not played again.
            What::Staged(_) => self.fold.apply(event),
            What::Play
            | What::Task { .. }
            | What::Gate { .. }
            | What::BackupProgress { .. }
            | What::Backup(_)
            | What::StagingProgress { .. } => {}
        }
    }

    fn snapshot(&self) -> Snapshot {
        self.fold.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use crds::step::Step;
    use serde_json::json;

    use super::{ResumeScan, probed};
    use crate::event::Event;
    use crate::fold::Fold;
    use crate::play::EventSink;
    use crate::unreachable::Unreachable;

    /// Steps that are passed over after these events: `step?`, `HOST ok|failed|unreachable`, `end`.
    fn done(blocked: &[&str], script: &[&str]) -> usize {
        let mut model = crate::example::model();
        model.steps = vec![Step::BootstrapOs, Step::Prepare, Step::Node, Step::PostInstall];
        let w1 = model.hosts.remove("w1").unwrap();
        let mut m1 = w1.clone();
        m1.groups = vec![crds::inputs::Group::Etcd];
        model.hosts = [("m1", m1), ("w1", w1.clone()), ("w2", w1)].map(|(name, host)| (name.to_owned(), host)).into();
        let mut fold = Fold::new(&model, "");
        for host in blocked {
            fold.blocked(host, Unreachable { reason: crds::Reason::Unreachable, message: String::new() });
        }
        let mut scan = ResumeScan::new(&model, &mut fold);
        for line in script {
            let event = match line.split_once(' ') {
                Some((host, status)) => {
                    json!({"event": "result", "host": host, "task": "t", "status": status})
                }
                None if *line == "end" => json!({"event": "stats", "hosts": {}}),
                None => {
                    json!({"event": "playbook", "file": format!("{}.yml", line.trim_end_matches('?')), "dir": "probe"})
                }
            };
            scan.receive(&Event::parse(event.to_string().as_bytes()).unwrap());
        }
        scan.done()
    }

    #[test]
    fn the_run_goes_on_at_the_first_step_that_is_not_done_somewhere() {
        // The results of `bootstrap-os`, `prepare` and `node`.
        let check = |results: [&[&str]; 3], expected: usize| {
            let probes = ["bootstrap-os?", "prepare?", "node?"].into_iter().zip(results);
            let mut script: Vec<&str> = probes.flat_map(|(probe, results)| [&[probe], results].concat()).collect();
            script.push("end");
            assert_eq!(done(&[], &script), expected, "{script:?}");
        };
        check([&["w1 ok"], &["w1 failed", "w2 ok"], &["w2 ok"]], 1);
        check([&["w1 ok"], &["w1 ok"], &["w1 ok", "w2 failed"]], 2);
        check([&["w1 unreachable", "w2 ok"], &["w2 ok"], &["w2 ok"]], 0);
        check([&["w1 ok"], &["w1 ok"], &["w1 ok"]], 3);
    }

    #[test]
    fn a_backup_lies_ready_only_if_its_probe_reports_it() {
        let mut model = crate::example::model();
        model.steps = vec![Step::StageBackup];
        let asked = json!({"storage": {"directory": "/b"}, "location": "a/b", "id": "k3x9a0b1", "restore": "r",
            "cluster": "c"});
        model.staging = Some(serde_json::from_value(asked).unwrap());
        let staged = json!({"event": "staged", "staged": {"backup": "b", "location": "a/b", "takenAt":
            "2026-11-23T10:00:00Z", "revision": 1, "keys": 1, "size": 1, "sha256": "a0", "etcdVersion": "3.6.16",
            "bump": 1, "clusterID": "c0ffee"}});
        for (reports, expected) in [(true, 1), (false, 0)] {
            let mut fold = Fold::new(&model, "");
            let mut scan = ResumeScan::new(&model, &mut fold);
            let events = [
                Some(json!({"event": "playbook", "file": "stage-backup.yml", "dir": "probe"})),
                reports.then(|| staged.clone()),
                Some(json!({"event": "result", "host": "w1", "task": "t", "status": "ok"})),
                Some(json!({"event": "stats", "hosts": {}})),
            ];
            for event in events.into_iter().flatten() {
                scan.receive(&Event::parse(event.to_string().as_bytes()).unwrap());
            }
            assert_eq!(scan.done(), expected);
        }
    }

    #[test]
    fn probes_that_did_not_come_to_their_end_prove_nothing() {
        assert_eq!(done(&[], &["bootstrap-os?", "w1 ok", "prepare?", "w1 ok"]), 0);
        assert_eq!(done(&[], &[]), 0);
    }

    #[test]
    fn a_worker_that_cannot_be_reached_says_nothing_of_the_others_and_an_etcd_member_does() {
        let script = ["bootstrap-os?", "w1 unreachable", "w2 ok", "prepare?", "w2 ok", "node?", "w2 ok", "end"];
        assert_eq!(done(&["w1"], &script), 3);
        assert_eq!(done(&["m1"], &["bootstrap-os?", "m1 unreachable", "end"]), 0);
    }

    #[test]
    fn a_step_whose_probe_proves_nothing_by_itself_is_always_played() {
        let check = |steps: &[Step], expected: usize| {
            let mut model = crate::example::model();
            model.steps = steps.to_vec();
            let probe = |probe: Option<&str>| crds::inputs::PlaybookInputs {
                probe: probe.map(str::to_owned),
                ..Default::default()
            };
            model.playbooks.insert("seen".into(), probe(Some("[]")));
            model.playbooks.insert("unseen".into(), probe(None));
            assert_eq!(probed(&model).len(), expected, "{steps:?}");
        };
        let custom = |name| Step::Custom(crds::step::CustomStep::new(name).unwrap());
        check(&[Step::Reset], 0);
        check(&[Step::Prepare, Step::Reset, Step::Prepare], 1);
        check(&[Step::Addons, Step::PostInstall], 1);
        check(&[Step::Prepare, Step::Node], 2);
        check(&[Step::Prepare, Step::Reboot, Step::Node], 1);
        check(&[custom("seen"), Step::Prepare, custom("unseen"), Step::Node], 2);
    }
}
