//! Removal: a member that leaves, or that was forgotten, is taken out of etcd, by a run on one that stays. Nothing is needed of
//! its own machine.

use crds::Machine;
use crds::cluster_deployment::ForgottenMachine;
use crds::names::annotation;
use crds::step::{Intent, Role, Step as RunStep};
use serde_json::json;

use super::joining::api_is_gone;
use super::{Found, doing};
use crate::attempts::{self, Policy, Turn};
use crate::cluster_deployment::Step;
use crate::cluster_deployment::deletion::until;
use crate::cluster_deployment::part::component;
use crate::cluster_deployment::runs::{self, Attempt, Order};
use crate::cluster_deployment::scene::{Member, Scene};
use crate::departure::{self, Council, Departure, LEAVES_ETCD, is_healthy};
use crate::provisioning::{self, asked_retries};
use crate::sentence::count;

const REASON: &str = "RemovesMember";

/// Whose member is taken out.
struct Leaver<'a> {
    /// UID of its Machine.
    uid: &'a str,
    /// Its Host, whose name the member has.
    host: &'a str,
    title: String,
    /// What people ask for.
    retries: Vec<String>,
}

impl<'a> Leaver<'a> {
    fn of_member(scene: &Scene<'_>, member: &Member<'a>) -> Option<Self> {
        Some(Self {
            uid: member.uid(),
            host: &member.machine.spec.host_ref.as_ref()?.name,
            title: member.title(),
            retries: asked_retries(member.machine, scene.deployment),
        })
    }

    fn of_forgotten(scene: &Scene<'_>, forgotten: &'a ForgottenMachine) -> Self {
        Self {
            uid: &forgotten.uid,
            host: &forgotten.host,
            title: departure::title_of_forgotten(forgotten),
            retries: provisioning::retry_of_all(scene.deployment).into_iter().collect(),
        }
    }
}

pub(super) fn of(scene: &Scene<'_>, council: &Council<'_>) -> Option<Found> {
    let role = council.etcd_role()?;
    let leaving = || {
        let leaving = scene.leaving.iter();
        leaving.filter(|member| council.is_of_etcd(member.machine))
    };
    let forgotten = in_order(council);
    let leavers = leaving().filter_map(|member| Leaver::of_member(scene, member));
    let mut leavers = leavers.chain(forgotten.iter().map(|one| Leaver::of_forgotten(scene, one)));
    let under_way = leavers.find_map(|leaver| {
        let removals = council.removals_of(leaver.uid);
        let run = removals.into_iter().find(|run| !attempts::is_over(run))?;
        let by = run.spec.hosts.join(", ");
        let what = format!("takes {} out of etcd, by {by}", leaver.title);
        Some(doing(scene, role, REASON, &what, run))
    });
    if under_way.is_some() {
        return under_way;
    }
    let of_forgotten = forgotten
        .iter()
        .filter(|one| why_it_stays(scene, council, one).is_none())
        .find_map(|one| take_out(scene, council, &Leaver::of_forgotten(scene, one), role));
    of_forgotten.or_else(|| {
        leaving().find_map(|member| {
            let waits = member.deleting_reason() == Some(LEAVES_ETCD);
            let departure = departure::of(
                member.machine,
                scene.observed.machines,
                scene.deployment,
                scene.observed.runs,
            );
            let goes = waits && departure == Departure::MayGo;
            let leaver = Leaver::of_member(scene, member).filter(|_| goes)?;
            take_out(scene, council, &leaver, role)
        })
    })
}

/// Those that are not known to be well first, then those that were tried less: which of them lives is not always known.
fn in_order<'a>(council: &Council<'a>) -> Vec<&'a ForgottenMachine> {
    let mut forgotten = council.forgotten();
    forgotten.sort_by_key(|one| {
        let tried = council.removals_of(&one.uid).len();
        (one.node_ready, tried, one.host.clone(), one.uid.clone())
    });
    forgotten
}

/// Why a member whose Machine was forgotten is not taken out of etcd now.
pub(in crate::cluster_deployment) fn why_it_stays(
    scene: &Scene<'_>,
    council: &Council<'_>,
    forgotten: &ForgottenMachine,
) -> Option<String> {
    if let Some(gone) = api_is_gone(scene) {
        return Some(gone);
    }
    if let Some((false, message)) = component(scene, "etcd") {
        return Some(format!("waits for etcd to be well: {message}"));
    }
    council.why_it_stays(forgotten)
}

fn take_out(scene: &Scene<'_>, council: &Council<'_>, leaves: &Leaver<'_>, role: Role) -> Option<Found> {
    let failed = |message| Found::says(role, "RemovalFailed", message, true);
    let title = &leaves.title;
    match turn(scene, council, leaves) {
        Turn::Now { attempt, retry, .. } => {
            let Some(by) = executor(scene, council, leaves, attempt) else {
                let message = format!(
                    "{title} is to be taken out of etcd, and no member that stays is known to be well"
                );
                return Some(failed(message));
            };
            let message = format!("takes {title} out of etcd, by {}", by.title());
            let run = run(scene, council, leaves, by, attempt, retry);
            Some(Found::says(role, REASON, message, false).and(run))
        }
        Turn::Later { at, cause, .. } => {
            let message = format!(
                "{title} could not be taken out of etcd ({}); tried again at {}",
                cause.told(),
                at.strftime("%H:%M:%S UTC")
            );
            Some(failed(message).later(until(scene, at)))
        }
        Turn::Halted { failures, cause } => {
            let cause = attempts::why_halted(cause.as_ref());
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

fn turn(scene: &Scene<'_>, council: &Council<'_>, leaves: &Leaver<'_>) -> Turn {
    let removals = council.removals_of(leaves.uid);
    let tried = attempts::tried_by(&removals, |run| {
        let host = run.spec.hosts.first()?;
        let mark = attempts::marks(run).remove(host)?;
        Some((host.clone(), mark))
    });
    let policy = Policy {
        limit: Some(provisioning::most_attempts(scene.deployment)),
        wanted: provisioning::wanted(scene.deployment),
        host_generation: None,
        retries: leaves.retries.clone(),
        stopped_is_final: true,
    };
    attempts::turn(&tried, &policy, scene.observed.now)
}

/// Another member that is well, another one at each attempt: one may be dead without anyone's knowing. Those that leave
/// later do it only where none stays.
fn executor<'a>(
    scene: &Scene<'a>,
    council: &Council<'_>,
    leaves: &Leaver<'_>,
    attempt: i32,
) -> Option<Member<'a>> {
    let members = council.members();
    let members = members.iter().filter_map(|machine| scene.member(machine));
    let mut others: Vec<Member<'a>> = members
        .filter(|member| member.uid() != leaves.uid && member.host.is_some() && is_healthy(member.machine))
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
    leaves: &Leaver<'_>,
    by: Member<'_>,
    attempt: i32,
    retry: Option<String>,
) -> Step {
    let host = leaves.host;
    let stay: Vec<&Machine> = council
        .members()
        .into_iter()
        .filter(|other| other.metadata.uid.as_deref() != Some(leaves.uid))
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
        name_of: Some(vec!["member".into(), leaves.uid.to_owned()]),
        vars,
    };
    let mut run = runs::order(scene, order);
    run.metadata
        .annotations
        .get_or_insert_default()
        .insert(annotation::LEAVES.into(), leaves.uid.to_owned());
    Step::CreateRun(Box::new(run))
}
