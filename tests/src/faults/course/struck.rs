//! A hit, from the moment it was done until all is as before.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crds::playbook_run::{RunPhase, StepPhase};
use jiff::Timestamp;

use super::{CLUSTER, Course, is_over};
use crate::faults::fault::{Ending, Fault, Place};
use crate::faults::inject::{self, Aim, Undo};
use crate::faults::sight::View;
use crate::scenario::Scenario;

/// How long recovering from one hit may take.
const RECOVERY: Duration = Duration::from_secs(420);
/// A cause is not taken away before the status could speak of it.
const SEEN: Duration = Duration::from_secs(3);

/// A hit.
pub(super) struct Struck {
    pub fault: Fault,
    pub place: Place,
    /// Whether the step was still under way.
    pub landed: bool,
    /// When.
    pub at: Timestamp,
    pub aim: Aim,
    began: Instant,
    undo: Option<Undo>,
    run_ended: Option<Instant>,
    /// From the hit to the recovery.
    pub recovered: Option<Duration>,
    over: bool,
}

impl Struck {
    pub(super) fn new(fault: Fault, place: Place, landed: bool, at: Timestamp, aim: Aim, undo: Undo) -> Self {
        Self {
            fault,
            place,
            landed,
            at,
            aim,
            began: Instant::now(),
            undo: Some(undo).filter(|undo| !matches!(undo, Undo::Nothing)),
            run_ended: None,
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

impl Course<'_> {
    /// Takes back what is due, and looks whether the last hit has been recovered from.
    pub(super) async fn follow(&mut self) -> Result<()> {
        let Some(struck) = self.struck.last_mut() else {
            return Ok(());
        };
        let run_over = self.sight.with(|view| is_over(view.run(&struck.aim.run)));
        if let Some(undo) = struck.due(run_over) {
            take_back(self.scenario, struck.fault, undo).await?;
        }
        let done = match struck.fault.ending() {
            Ending::Gone => self.sight.with(|view| view.cluster.is_none()),
            _ => {
                self.trail.is_past(struck.place, struck.at, Timestamp::now())
                    || self.sight.with(|view| is_done(view, struck.place))
            }
        };
        if done && struck.recovered.is_none() && works_again(self.scenario, struck).await? {
            struck.recovered = Some(struck.began.elapsed());
        }
        if struck.recovered.is_some() && struck.undo.is_none() {
            struck.over = true;
        } else if struck.began.elapsed() > RECOVERY {
            let said = self.sight.with(|view| view.last_said().to_owned());
            bail!(
                "{} in {}: no recovery within {} s; last said: {said}",
                struck.fault.name(),
                struck.place,
                RECOVERY.as_secs()
            );
        }
        Ok(())
    }
}

/// Whether the step is done, as the run that did it says.
fn is_done(view: &View, place: Place) -> bool {
    let succeeded = view
        .runs
        .values()
        .filter(|run| run.spec.intent == place.intent)
        .any(|run| {
            let status = run.status.clone().unwrap_or_default();
            let step = status
                .steps
                .iter()
                .any(|step| step.name == place.step && step.phase == StepPhase::Succeeded);
            step || status.phase == Some(RunPhase::Succeeded)
        });
    succeeded || view.is_ready()
}

async fn works_again(scenario: &Scenario, struck: &Struck) -> Result<bool> {
    if !struck.fault.hits_the_operator() {
        return Ok(true);
    }
    inject::leader_is_back(&scenario.client, struck.at).await
}

async fn take_back(scenario: &Scenario, fault: Fault, undo: Undo) -> Result<()> {
    let done = match undo {
        Undo::Nothing => Ok(()),
        Undo::ByItself(handle) => handle.await.context("the fault's own thread broke off")?,
        Undo::After(_, repair) | Undo::RunOver(repair) => inject::repair(scenario, CLUSTER, repair).await,
    };
    done.with_context(|| format!("failed to take {} back", fault.name()))
}
