//! A hit, from the moment it was done until all is as before.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crds::playbook_run::{PlaybookRunStatus, RunPhase, StepPhase};
use jiff::Timestamp;

use super::{CLUSTER, Installation, is_over};
use crate::faults::fault::{Ending, Fault, Place};
use crate::faults::fault_effect::{Facts, FaultEffect, Run, Takes, fault_effect};
use crate::faults::inject::{self, Aim, Undo};
use crate::faults::observers::{GuardLog, View};
use crate::scenario::Scenario;

/// How long recovering from one hit may take.
const RECOVERY: Duration = Duration::from_secs(420);
/// A cause is not taken away before the status could speak of it.
const SEEN: Duration = Duration::from_secs(3);
/// A cluster that says so long after an interruption that it is Ready does not say so from before.
const SAID: Duration = Duration::from_secs(1);

/// A hit.
pub(super) struct Struck {
    pub fault: Fault,
    pub place: Place,
    /// Whether the next step had begun.
    late: bool,
    /// When.
    pub at: Timestamp,
    pub aim: Aim,
    began: Instant,
    undo: Option<Undo>,
    run_ended: Option<Instant>,
    /// When what was taken away was given back.
    back: Option<Timestamp>,
    /// What came of it, once that is certain.
    pub effect: Option<FaultEffect>,
    settled: Option<Instant>,
    /// From the hit to the recovery.
    pub recovered: Option<Duration>,
    over: bool,
}

impl Struck {
    pub(super) fn new(fault: Fault, place: Place, late: bool, at: Timestamp, aim: Aim, undo: Undo) -> Self {
        Self {
            fault,
            place,
            late,
            at,
            aim,
            began: Instant::now(),
            undo: Some(undo).filter(|undo| !matches!(undo, Undo::Nothing)),
            run_ended: None,
            back: None,
            effect: None,
            settled: None,
            recovered: None,
            over: false,
        }
    }

    /// Nothing more is to be waited for.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// What is to be taken back now.
    fn due(&mut self, run_over: bool) -> Option<Undo> {
        if run_over && self.run_ended.is_none() {
            self.run_ended = Some(Instant::now());
        }
        let due = match self.undo.as_ref()? {
            Undo::Nothing => true,
            Undo::After(after, _) => self.began.elapsed() >= *after,
            Undo::RunOver(_) => self.run_ended.is_some_and(|ended| ended.elapsed() >= SEEN),
            Undo::ByItself(handle) => handle.is_finished(),
        };
        due.then(|| self.undo.take()).flatten()
    }
}

impl Installation<'_> {
    /// Takes back what is due, and looks whether the last hit has been recovered from.
    pub(super) async fn follow(&mut self) -> Result<()> {
        let Some(struck) = self.struck.last_mut() else {
            return Ok(());
        };
        let run_over = self.observer.with(|view| is_over(view.run(&struck.aim.run)));
        if let Some(undo) = struck.due(run_over) {
            take_back(self.scenario, struck.fault, undo).await?;
            struck.back = Some(Timestamp::now());
        }
        if struck.effect.is_none() {
            let another_leads = struck.fault.takes() == Takes::Leader
                && inject::another_leads(self.scenario, &struck.aim, struck.at).await?;
            let facts = self.observer.with(|view| struck.facts(view, &self.guard_log, another_leads));
            struck.effect = fault_effect(struck.fault.takes(), &facts);
            struck.settled = struck.effect.is_some().then(Instant::now);
            if let Some(effect) = struck.effect.as_ref().filter(|effect| **effect != FaultEffect::Held) {
                self.scenario.say(&format!("{} in {}: {effect:?}", struck.fault.name(), struck.place));
            }
        }
        let recovered = self.observer.with(|view| struck.is_recovered(view, &self.guard_log));
        if recovered && struck.recovered.is_none() {
            struck.recovered = Some(struck.began.elapsed());
        }
        struck.over = struck.recovered.is_some() && struck.undo.is_none();
        if !struck.over && struck.began.elapsed() > RECOVERY {
            let said = self.observer.with(|view| view.last_said().to_owned());
            self.scenario.say(&format!(
                "{} in {}: no recovery within {} s; last said: {said}",
                struck.fault.name(),
                struck.place,
                RECOVERY.as_secs()
            ));
            struck.over = true;
            self.lost = true;
        }
        Ok(())
    }
}

impl Struck {
    fn facts(&self, view: &View, guard_log: &GuardLog, led_by_another: bool) -> Facts {
        let run = &self.aim.run;
        let phase = view.run(run).and_then(|status| status.phase);
        let gone = self.fault.ending() == Ending::Gone && view.cluster.is_none();
        let back = self.back.filter(|_| self.undo.is_none());
        let until = back.unwrap_or(Timestamp::MAX);
        let at_work = guard_log.is_at_work(run, self.at);
        Facts {
            place: self.place,
            late: self.late,
            last: guard_log.last_of(run, until).unwrap_or(self.place),
            said: view.run(run).and_then(|status| self.said(status)),
            under_way: at_work || guard_log.goes_on(run, self.at),
            run: match phase {
                Some(RunPhase::Succeeded) => Run::Succeeded,
                Some(RunPhase::Failed | RunPhase::Canceled | RunPhase::DeadlineExceeded | RunPhase::Unknown) => {
                    Run::Interrupted
                }
                Some(RunPhase::Pending | RunPhase::Running) | None if gone => Run::Interrupted,
                Some(RunPhase::Pending | RunPhase::Running) | None => Run::Going,
            },
            back: back.is_some(),
            resumed: back.is_some_and(|back| guard_log.goes_on(run, back)),
            cut_off: at_work && self.fault != Fault::HostRebooted,
            led_by_another,
            done: self.is_past(view, guard_log, self.place),
        }
    }

    fn said(&self, status: &PlaybookRunStatus) -> Option<Place> {
        let step = status.outcome.as_ref()?.step?;
        Some(Place { step, ..self.place })
    }

    /// Whether the step is done in which it took hold, and what was hit works again.
    fn is_recovered(&self, view: &View, guard_log: &GuardLog) -> bool {
        let (Some(effect), Some(settled)) = (&self.effect, self.settled) else {
            return false;
        };
        let place = match effect {
            FaultEffect::Grazed(place) => *place,
            FaultEffect::Held | FaultEffect::Missed(_) => self.place,
        };
        if self.fault.ending() == Ending::Gone {
            return view.cluster.is_none();
        }
        let phase = view.run(&self.aim.run).and_then(|status| status.phase);
        let interrupted = phase.is_some_and(|phase| phase.is_final() && phase != RunPhase::Succeeded);
        if !interrupted {
            return self.is_past(view, guard_log, place);
        }
        // What the run that was hit had done before it ended is no recovery.
        let run = &self.aim.run;
        guard_log.another_is_past(run, place, self.at)
            || is_done(view, place, |name| name != run)
            || (view.is_ready() && settled.elapsed() > SAID)
    }

    fn is_past(&self, view: &View, guard_log: &GuardLog, place: Place) -> bool {
        guard_log.is_past(place, self.at, Timestamp::now()) || is_done(view, place, |_| true) || view.is_ready()
    }
}

/// Whether the step is done, as one of these runs says that did it.
fn is_done(view: &View, place: Place, of: impl Fn(&str) -> bool) -> bool {
    view.runs.iter().filter(|(name, run)| run.spec.intent == place.intent && of(name)).any(|(_, run)| {
        let status = run.status.clone().unwrap_or_default();
        let step = status.steps.iter().any(|step| step.name == place.step && step.phase == StepPhase::Succeeded);
        step || status.phase == Some(RunPhase::Succeeded)
    })
}

async fn take_back(scenario: &Scenario, fault: Fault, undo: Undo) -> Result<()> {
    let done = match undo {
        Undo::Nothing => Ok(()),
        Undo::ByItself(handle) => handle.await.context("the fault's own thread broke off")?,
        Undo::After(_, repair) | Undo::RunOver(repair) => inject::repair(scenario, CLUSTER, repair).await,
    };
    done.with_context(|| format!("failed to take {} back", fault.name()))
}
