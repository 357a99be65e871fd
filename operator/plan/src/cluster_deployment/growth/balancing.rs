//! Balancing: where the control planes hold the endpoint themselves, all of them are told who is behind it, before another
//! one joins and after one has left.

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::step::{Intent, Role, Step as RunStep};

use super::{Found, active_with, under_way};
use crate::attempts::{self, Policy, Turn};
use crate::cluster_deployment::deletion::until;
use crate::cluster_deployment::runs::{self, Attempt, BACKENDS, Order, Target};
use crate::cluster_deployment::scene::{Member, Scene};
use crate::cluster_deployment::{Step, endpoint};
use crate::departure::{Council, is_healthy};
use crate::provisioning::{self, asked_retries};
use crate::sentence::count;
use crate::settings;

const REASON: &str = "TellsLoadBalancers";
const ROLE: Role = Role::ControlPlane;

pub(super) fn of(scene: &Scene<'_>, council: &Council<'_>) -> Option<Found> {
    endpoint::held(scene)?;
    if let Some(run) = active_with(scene, RunStep::LoadBalancer).filter(|run| run.spec.steps.len() == 1) {
        return Some(under_way(scene, ROLE, REASON, run));
    }
    let behind: Vec<Member<'_>> = scene
        .of_role(ROLE)
        .filter(|member| member.host.is_some())
        .collect();
    let wanted = endpoint::backends(&behind);
    // One that is sick is told when it is well, or is replaced.
    let standing = behind
        .iter()
        .filter(|member| member.is_provisioned() && is_healthy(member.machine));
    let untold: Vec<Member<'_>> = standing
        .filter(|member| told(scene, member).as_ref() != Some(&settings::digest(&wanted)))
        .copied()
        .collect();
    if untold.is_empty() {
        return None;
    }
    if let Some(why) = council.run_in_the_way(None) {
        return Some(Found::says(ROLE, REASON, why, false));
    }
    let parts = vec!["load-balancer".to_owned(), wanted.to_string()];
    let same_again: Vec<&PlaybookRun> = runs_with(scene)
        .filter(|run| run.spec.steps.len() == 1 && run.spec.vars.get(BACKENDS) == Some(&wanted))
        .collect();
    let number = same_again
        .iter()
        .map(|run| attempts::attempt_of(run).saturating_add(1))
        .max()
        .unwrap_or_default();
    let mut targets: Vec<Target<'_>> = Vec::new();
    for member in untold {
        let tried = attempts::tried(&same_again, &[Intent::Repair], member.uid());
        let policy = Policy {
            limit: None,
            wanted: provisioning::wanted(scene.deployment),
            host_generation: None,
            retries: asked_retries(member.machine, scene.deployment),
            stopped_is_final: false,
        };
        match attempts::turn(&tried, &policy, scene.observed.now) {
            Turn::Later { at, cause, .. } => {
                let message = format!(
                    "{} could not be told who is behind the endpoint ({}: {}); tried again at {}",
                    member.title(),
                    cause.reason,
                    cause.message,
                    at.strftime("%H:%M:%S UTC")
                );
                return Some(Found::says(ROLE, "TellingFailed", message, true).later(until(scene, at)));
            }
            Turn::Now { retry, .. } => targets.push((member, retry)),
            Turn::UnderWay { .. } | Turn::Done { .. } | Turn::Halted { .. } => targets.push((member, None)),
        }
    }
    let message = format!(
        "tells {} who is behind the endpoint",
        count(targets.len(), "control plane")
    );
    let order = Order {
        intent: Intent::Repair,
        steps: vec![RunStep::LoadBalancer],
        targets: &targets,
        attempt: Attempt {
            number,
            resume: false,
        },
        name_of: Some(parts),
        vars: BTreeMap::new(),
    };
    let run = runs::order(scene, order);
    Some(Found::says(ROLE, REASON, message, false).and(Step::CreateRun(Box::new(run))))
}

/// Who is behind the endpoint as far as a machine was told last, as a digest: its status remembers that.
fn told(scene: &Scene<'_>, member: &Member<'_>) -> Option<String> {
    let applied = settings::applied(member.machine, member.host_name()?, scene.observed.runs);
    applied?.load_balancer_backends
}

fn runs_with<'a>(scene: &Scene<'a>) -> impl Iterator<Item = &'a PlaybookRun> {
    let runs = scene.observed.runs.iter().copied();
    runs.filter(|run| run.spec.steps.contains(&RunStep::LoadBalancer))
}
