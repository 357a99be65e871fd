//! Telling: when the members of a dedicated etcd have changed, the API servers are told where they are.

use crds::names::annotation;
use crds::step::{Intent, Role, Step as RunStep};

use super::{Found, active_with, doing};
use crate::attempts::{self, Policy, Turn};
use crate::cluster_deployment::Step;
use crate::cluster_deployment::deletion::until;
use crate::cluster_deployment::runs::{self, Attempt, Order, Target};
use crate::cluster_deployment::scene::{Member, Scene};
use crate::departure::{Council, knows_of};
use crate::provisioning::{self, asked_retries};
use crate::sentence::count;

const REASON: &str = "TellsApiServers";
const ROLE: Role = Role::ControlPlane;

pub(super) fn of(scene: &Scene<'_>, council: &Council<'_>) -> Option<Found> {
    if council.etcd_role() != Some(Role::Etcd) {
        return None;
    }
    if let Some(run) = active_with(scene, RunStep::EtcdEndpoints) {
        let what = "tells the API servers of etcd's members";
        return Some(doing(scene, ROLE, REASON, what, run));
    }
    let since = council.changed_at()?;
    let untold = council.untold(since);
    let members = untold.iter().filter_map(|machine| {
        scene
            .live
            .iter()
            .find(|member| member.machine.metadata.uid == machine.metadata.uid)
    });
    let told_since: Vec<_> = scene
        .observed
        .runs
        .iter()
        .copied()
        .filter(|run| knows_of(run, since))
        .collect();
    let mut due: Vec<Target<'_>> = Vec::new();
    let (mut number, mut waits) = (0, None);
    for member in members.filter(|member| member.host.is_some()) {
        let (turn, tried) = turn(scene, member, &told_since);
        number = number.max(tried);
        match turn {
            Turn::Now { retry, .. } => due.push((*member, retry)),
            Turn::Later { at, cause, .. } => {
                let message = format!(
                    "{} could not be told of etcd's members ({}: {}); tried again at {}",
                    member.title(),
                    cause.reason,
                    cause.message,
                    at.strftime("%H:%M:%S UTC")
                );
                waits = Some(Found::says(ROLE, "TellingFailed", message, true).later(until(scene, at)));
            }
            Turn::Halted { failures, cause } => {
                let cause = attempts::why_halted(cause.as_ref());
                let message = format!(
                    "{} could not be told of etcd's members after {} ({cause}); correct it, then {}",
                    member.title(),
                    count(failures, "attempt"),
                    crate::cluster_deployment::lack::retry(scene)
                );
                waits = Some(Found::says(ROLE, "TellingFailed", message, true));
            }
            Turn::UnderWay { .. } | Turn::Done { .. } => {}
        }
    }
    if due.is_empty() {
        return waits;
    }
    if let Some(why) = council.run_in_the_way(None) {
        return Some(Found::says(ROLE, REASON, why, false));
    }
    let order = Order {
        intent: Intent::Repair,
        steps: vec![RunStep::EtcdEndpoints],
        targets: &due,
        attempt: Attempt {
            number,
            resume: false,
        },
        name_of: Some(vec!["endpoints".into(), since.to_string()]),
        vars: scene.etcd_variables(&council.members()),
    };
    let mut run = runs::order(scene, order);
    let annotations = run.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::ETCD_CHANGE.to_owned(), since.to_string());
    let message = format!(
        "tells the API servers of {} of etcd's members",
        count(due.len(), "control plane")
    );
    Some(Found::says(ROLE, REASON, message, false).and(Step::CreateRun(Box::new(run))))
}

fn turn(scene: &Scene<'_>, member: &Member<'_>, told_since: &[&crds::PlaybookRun]) -> (Turn, i32) {
    let tried = attempts::tried_by(told_since, |run| {
        let host = member.host_name()?;
        let mark = attempts::marks(run).remove(host)?;
        (mark.uid == member.uid()).then(|| (host.to_owned(), mark))
    });
    let policy = Policy {
        limit: Some(provisioning::most_attempts(scene.deployment)),
        wanted: provisioning::wanted(scene.deployment),
        host_generation: None,
        retries: asked_retries(member.machine, scene.deployment),
        stopped_is_final: false,
    };
    let next = told_since
        .iter()
        .map(|run| attempts::attempt_of(run).saturating_add(1))
        .max();
    (
        attempts::turn(&tried, &policy, scene.observed.now),
        next.unwrap_or_default(),
    )
}
