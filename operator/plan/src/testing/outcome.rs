//! How runs end, and how far they come.

use crds::playbook_run::{HostResult, RunPhase};
use crds::step::{Intent, Step};
use crds::{PlaybookRun, Reason};

use super::fate::Fate;
use super::profile::FatePer;
use super::results::failed;
use super::world::World;

impl World {
    pub(super) fn finish(&mut self, index: usize) {
        let run = self.runs[index].clone();
        let last = run.spec.steps.len() - 1;
        let hosts = run.spec.hosts.iter();
        // What a resumed run passes over is done.
        let done = |host: &String| self.done.get(host).copied().unwrap_or_default();
        let before = hosts.clone().map(done).min().filter(|_| run.spec.resume).unwrap_or_default().min(last);
        if run.spec.intent == Intent::Custom && !hosts.clone().all(|host| self.is_held(host)) {
            // Its controller looks before it starts anything.
            return self.end(index, RunPhase::Failed, Reason::HostNotHeld, 0);
        }
        if run.spec.cancel || run.spec.paused {
            let (reason, done) = match run.spec.cancel {
                true => (Reason::Canceled, before),
                false => (Reason::Paused, (before + 1).min(last)),
            };
            self.leave_traces(&run, done);
            self.end(index, RunPhase::Canceled, reason, done);
            let results = hosts.map(|host| failed(host, "", reason)).collect();
            return self.report_results(index, results);
        }
        let fates = self.fates_in(&run);
        if let Some((phase, reason, done)) = fates.iter().find_map(|fate| fate.cut_off()) {
            let done = done.max(before).min(last);
            self.leave_traces(&run, done);
            self.play_steps(&run, done);
            return self.end(index, phase, reason, done);
        }
        let results = hosts.zip(&fates).map(|(host, fate)| result_of(&run, host, *fate, before)).collect();
        self.come_to_end(index, &run, results);
    }

    /// The run that works says that all of it is done, and did nothing.
    pub fn lie(&mut self) {
        let works = |run: &PlaybookRun| run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running);
        let index = self.runs.iter().position(works).unwrap();
        let run = self.runs[index].clone();
        let results = run.spec.hosts.iter().map(|host| result_of(&run, host, Fate::Well, 0)).collect();
        self.end(index, RunPhase::Succeeded, Reason::Complete, run.spec.steps.len());
        self.report_outcome(index, RunPhase::Succeeded, Reason::Complete, results);
    }

    /// What a run has said comes to be so.
    pub fn make_true(&mut self, run: &PlaybookRun) {
        for host in &run.spec.hosts {
            self.leave_trace(run, host, run.spec.steps.len());
            self.leave_well(run, host);
        }
    }

    /// What becomes of each host of a run.
    fn fates_in(&mut self, run: &PlaybookRun) -> Vec<Fate> {
        // What becomes of a preparation is of no consequence: fates are those of the runs after it.
        let prepares = run.spec.intent == Intent::Prepare && self.profile.fates == FatePer::Host;
        let refuses = self.step_that_refuses(run);
        let mut fates = Vec::new();
        for (number, host) in run.spec.hosts.iter().enumerate() {
            let is_dead = self.is_dead(host);
            let always_fails = self.always_fails.contains(host);
            let denied = self.denied.get(host).copied();
            let has_its_own = self.profile.fates == FatePer::Host || number == 0;
            let fate = match has_its_own && !self.fates.is_empty() && (!prepares || is_dead || always_fails) {
                true => self.fates.remove(0),
                false => Fate::Well,
            };
            let is_of_run = fate.cut_off().is_some();
            fates.push(match refuses {
                _ if is_of_run && self.profile.fates == FatePer::Run => fate,
                _ if is_dead => Fate::Unreachable,
                Some(step) => Fate::FailsAfter(step),
                None if denied.is_some() => denied.map_or(fate, Fate::Denied),
                None if always_fails => Fate::Fails,
                None => fate,
            });
        }
        fates
    }

    /// It has not been cut off: what is done is done, and every host has its result.
    fn come_to_end(&mut self, index: usize, run: &PlaybookRun, mut results: Vec<HostResult>) {
        let count = results.iter().filter(|result| result.failure.is_some()).count();
        let stops = run.spec.intent == Intent::Install;
        let is_whole = count == 0 || (count < results.len() && !stops);
        let failed_in = |result: &HostResult| {
            let step = &result.failure.as_ref()?.step;
            run.spec.steps.iter().position(|known| known.name() == step)
        };
        let done = match is_whole {
            true => run.spec.steps.len(),
            false => results.iter().filter_map(failed_in).max().unwrap_or_default(),
        };
        let resets = run.spec.steps.contains(&Step::Reset);
        for result in &mut results {
            let is_well = result.failure.is_none();
            self.leave_trace(run, &result.name, failed_in(result).unwrap_or(done));
            if is_well && resets {
                self.clean(run, &result.name);
                result.clean = Some(true);
            }
        }
        self.play_steps(run, done);
        for result in results.iter_mut().filter(|result| result.failure.is_none()) {
            match is_whole {
                true => self.leave_well(run, &result.name),
                false => *result = failed(&result.name, run.spec.steps[done].name(), Reason::NotReached),
            }
        }
        if run.spec.steps.contains(&Step::RenewCertificates) {
            for result in results.iter_mut().filter(|result| result.failure.is_none()) {
                result.certificates = self.certificates_seen(&result.name);
            }
        }
        let (phase, reason) = match count {
            0 => (RunPhase::Succeeded, Reason::Complete),
            _ => (RunPhase::Failed, Reason::TaskFailed),
        };
        self.end(index, phase, reason, done);
        self.report_outcome(index, phase, reason, results);
    }
}

/// What comes out for a host, after so many steps that are passed over.
fn result_of(run: &PlaybookRun, host: &str, fate: Fate, before: usize) -> HostResult {
    let last = run.spec.steps.len() - 1;
    let step = |done: usize| run.spec.steps[done.max(before).min(last)].name();
    match fate {
        Fate::Unreachable => failed(host, step(before), Reason::Unreachable),
        Fate::Denied(reason) => HostResult { unreachable: true, ..failed(host, step(before), reason) },
        Fate::Fails => failed(host, step(2), Reason::TaskFailed),
        Fate::FailsAfter(done) => failed(host, step(done), Reason::TaskFailed),
        Fate::Refuses => failed(host, step(0), Reason::ConfigurationRefused),
        Fate::Well | Fate::Lost(_) | Fate::Deadline(_) | Fate::NotStarted | Fate::Canceled => {
            HostResult { name: host.to_owned(), ok: 3, ..HostResult::default() }
        }
    }
}
