//! Resets: machines that leave are cleaned, over and over until they are, the later the longer between.

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::step::{Intent, Step as RunStep};
use jiff::Timestamp;

use super::runs::{self, Attempt, BATCH, Target};
use super::scene::{Member, Scene};
use super::{Step, deletion};
use crate::attempts::{self, Failure, Outcome, Policy, Turn};
use crate::machine::leaving;
use crate::provisioning::{self, asked_retries};

/// Where the resets stand.
#[derive(Default)]
pub(super) struct Resets<'a> {
    /// Runs to make.
    pub steps: Vec<Step>,
    /// Machines that could not be cleaned, and when it is tried again.
    pub later: Vec<(Member<'a>, Timestamp, Failure)>,
}

pub(super) fn of<'a>(scene: &Scene<'a>) -> Resets<'a> {
    let mut resets = Resets::default();
    // What did not answer last time is tried alone, so that it holds up no other.
    let mut due: BTreeMap<(i32, bool), Vec<Target<'a>>> = BTreeMap::new();
    // A machine that leaves has other runs, too: its hooks before the drain, and what takes it out of etcd.
    let cleans = |run: &&PlaybookRun| run.spec.steps.contains(&RunStep::Reset);
    let cleaning: Vec<&PlaybookRun> = scene.observed.runs.iter().copied().filter(cleans).collect();
    // When all go, they go in their order.
    let ends = scene.deployment.metadata.deletion_timestamp.is_some();
    let first = deletion::first_role(scene).filter(|_| ends);
    for member in scene.leaving.iter().copied() {
        if first.is_some_and(|first| member.machine.spec.role != first) {
            continue;
        }
        let Some(host) = member.host_name() else { continue };
        if scene.active_on(host).is_some() || !provisioning::was_touched(member.machine, scene.observed.runs)
        {
            continue;
        }
        let tried = attempts::tried(&cleaning, &[Intent::Reset, Intent::Remove], member.uid());
        let policy = Policy {
            limit: None,
            wanted: provisioning::wanted(scene.deployment),
            host_generation: None,
            retries: asked_retries(member.machine, scene.deployment),
            stopped_is_final: scene.deployment.metadata.deletion_timestamp.is_none(),
        };
        match attempts::turn(&tried, &policy, scene.observed.now) {
            // What comes before the cleaning is not done yet.
            Turn::Now { .. } if !leaving::waits_for_reset(member.machine) => {}
            // One step: there is nothing to go on from.
            Turn::Now { attempt, retry, .. } => {
                let silent = tried.last().is_some_and(
                    |last| matches!(&last.outcome, Outcome::Failed(failure) if failure.unreachable),
                );
                due.entry((attempt, silent)).or_default().push((member, retry));
            }
            Turn::Later { at, cause, .. } => resets.later.push((member, at, cause)),
            // The Machine says what a person must do.
            Turn::Halted { .. } | Turn::UnderWay { .. } | Turn::Done { .. } => {}
        }
    }
    for ((attempt, _), targets) in due {
        for batch in targets.chunks(BATCH) {
            let attempt = Attempt {
                number: attempt,
                resume: false,
            };
            resets
                .steps
                .push(runs::create(scene, Intent::Reset, batch, attempt));
        }
    }
    resets
}
