//! Hooks before a drain: a run of their own on each machine that waits for them, tried again until it goes well, or the
//! hook is taken out of the spec. One that was stopped from outside waits for a person's word.

use std::collections::BTreeMap;

use crds::step::Intent;

use super::runs::{self, Attempt, Order};
use super::scene::Scene;
use super::{Step, deletion};
use crate::attempts::Turn;
use crate::{Next, hooks};

/// Reason of `Deleting` of a machine that waits for them.
const WAITS_FOR_HOOKS: &str = "WaitsForHooks";

/// Runs to make, and when to look again.
pub(super) fn of(scene: &Scene<'_>) -> (Vec<Step>, Next) {
    let (mut steps, mut next) = (Vec::new(), Next::OnChange);
    let waiting = scene
        .leaving
        .iter()
        .filter(|member| member.deleting_reason() == Some(WAITS_FOR_HOOKS));
    for member in waiting.copied() {
        let Some(host) = member.host_name() else { continue };
        if scene.active_on(host).is_some() {
            continue;
        }
        let turn = hooks::turn_before_drain(
            member.machine,
            scene.deployment,
            scene.observed.runs,
            scene.observed.now,
        );
        match turn {
            Turn::Now { attempt, retry, .. } => {
                let order = Order {
                    intent: Intent::Remove,
                    steps: Vec::new(),
                    targets: &[(member, retry)],
                    attempt: Attempt {
                        number: attempt,
                        resume: false,
                    },
                    name_of: Some(vec![member.uid().to_owned(), "before-drain".to_owned()]),
                    vars: BTreeMap::new(),
                };
                let mut run = runs::order(scene, order);
                hooks::only_before_drain(&mut run.spec, scene.deployment);
                if !run.spec.steps.is_empty() {
                    steps.push(Step::CreateRun(Box::new(run)));
                }
            }
            Turn::Later { at, .. } => next = next.or_sooner(deletion::until(scene, at)),
            Turn::UnderWay { .. } | Turn::Done { .. } | Turn::Halted { .. } => {}
        }
    }
    (steps, next)
}
