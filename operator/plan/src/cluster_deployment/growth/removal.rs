//! Removal: a member that leaves is taken out of etcd, by a run on one that stays. Nothing is needed of its own machine.

use crds::Machine;
use crds::names::annotation;
use crds::step::{Intent, Role, Step as RunStep};
use serde_json::json;

use super::{Found, doing};
use crate::attempts::{self, Failure, Policy, Turn};
use crate::cluster_deployment::Step;
use crate::cluster_deployment::deletion::until;
use crate::cluster_deployment::runs::{self, Attempt, Order};
use crate::cluster_deployment::scene::{Member, Scene};
use crate::departure::{self, Council, Departure, LEAVES_ETCD, is_healthy};
use crate::provisioning::{self, asked_retries};
use crate::sentence::count;

const REASON: &str = "RemovesMember";

pub(super) fn of(scene: &Scene<'_>, council: &Council<'_>) -> Option<Found> {
    let role = council.etcd_role()?;
    let mut leaving = scene
        .leaving
        .iter()
        .filter(|member| council.is_of_etcd(member.machine));
    leaving.find_map(|member| {
        if let Some(run) = council.removal_under_way(member.machine) {
            let what = format!(
                "takes {} out of etcd, by {}",
                member.title(),
                run.spec.hosts.join(", ")
            );
            return Some(doing(scene, role, REASON, &what, run));
        }
        let waits = member.deleting_reason() == Some(LEAVES_ETCD);
        let departure = departure::of(
            member.machine,
            scene.observed.machines,
            scene.deployment,
            scene.observed.runs,
        );
        (waits && departure == Departure::MayGo).then(|| take_out(scene, council, member, role))?
    })
}

fn take_out(scene: &Scene<'_>, council: &Council<'_>, leaves: &Member<'_>, role: Role) -> Option<Found> {
    let failed = |message| Found::says(role, "RemovalFailed", message, true);
    let told = |cause: &Failure| format!("{}: {}", cause.reason, cause.message);
    let title = leaves.title();
    match turn(scene, council, leaves.machine) {
        Turn::Now { attempt, retry, .. } => {
            let Some(by) = executor(scene, council, leaves, attempt) else {
                let message = format!(
                    "{title} is to be taken out of etcd, and no member that stays is known to be well"
                );
                return Some(failed(message));
            };
            let message = format!("takes {title} out of etcd, by {}", by.title());
            let run = run(scene, council, leaves, by, attempt, retry)?;
            Some(Found::says(role, REASON, message, false).and(run))
        }
        Turn::Later { at, cause, .. } => {
            let message = format!(
                "{title} could not be taken out of etcd ({}); tried again at {}",
                told(&cause),
                at.strftime("%H:%M:%S UTC")
            );
            Some(failed(message).later(until(scene, at)))
        }
        Turn::Halted { failures, cause } => {
            let cause = cause.as_ref().map_or("a person stopped it".to_owned(), told);
            let message = format!(
                "{title} could not be taken out of etcd after {} ({cause}); correct it, then {}",
                count(failures, "attempt"),
                crate::cluster_deployment::lack::retry(scene)
            );
            Some(failed(message))
        }
        Turn::UnderWay { .. } | Turn::Done { .. } => None,
    }
}

fn turn(scene: &Scene<'_>, council: &Council<'_>, machine: &Machine) -> Turn {
    let removals = council.removals(machine);
    let tried = attempts::tried_by(&removals, |run| {
        let host = run.spec.hosts.first()?;
        let mark = attempts::marks(run).remove(host)?;
        Some((host.clone(), mark))
    });
    let policy = Policy {
        limit: Some(provisioning::most_attempts(scene.deployment)),
        wanted: provisioning::wanted(scene.deployment),
        host_generation: None,
        retries: asked_retries(machine, scene.deployment),
        stopped_is_final: true,
    };
    attempts::turn(&tried, &policy, scene.observed.now)
}

/// Another member that is well, another one at each attempt: one may be dead without anyone's knowing. Those that leave
/// later do it only where none stays.
fn executor<'a>(
    scene: &Scene<'a>,
    council: &Council<'_>,
    leaves: &Member<'_>,
    attempt: i32,
) -> Option<Member<'a>> {
    let members = council.members();
    let members = members.iter().filter_map(|machine| scene.member(machine));
    let mut others: Vec<Member<'a>> = members
        .filter(|member| member.uid() != leaves.uid() && member.host.is_some() && is_healthy(member.machine))
        .collect();
    if others.iter().any(|member| member.deleted_at().is_none()) {
        others.retain(|member| member.deleted_at().is_none());
    }
    let turn = usize::try_from(attempt).unwrap_or_default();
    others.get(turn % others.len().max(1)).copied()
}

fn run(
    scene: &Scene<'_>,
    council: &Council<'_>,
    leaves: &Member<'_>,
    by: Member<'_>,
    attempt: i32,
    retry: Option<String>,
) -> Option<Step> {
    let host = &leaves.machine.spec.host_ref.as_ref()?.name;
    let stay: Vec<&Machine> = council
        .members()
        .into_iter()
        .filter(|other| other.metadata.uid != leaves.machine.metadata.uid)
        .collect();
    let mut vars = scene.etcd_variables(&stay);
    vars.insert("etcd_member_remove".into(), json!({ "name": host, "host": host }));
    let order = Order {
        intent: Intent::Remove,
        steps: vec![RunStep::RemoveEtcdMember],
        targets: &[(by, retry)],
        attempt: Attempt {
            number: attempt,
            resume: false,
        },
        // Whoever carries it out, it is the same attempt.
        name_of: Some(vec!["member".into(), leaves.uid().to_owned()]),
        vars,
    };
    let mut run = runs::order(scene, order);
    run.metadata
        .annotations
        .get_or_insert_default()
        .insert(annotation::LEAVES.into(), leaves.uid().to_owned());
    Some(Step::CreateRun(Box::new(run)))
}
