//! Joining: the next control plane or dedicated etcd machine becomes part of the running cluster, by a run on itself alone.

use crds::cluster_deployment::EtcdTopology;
use crds::conditions;
use crds::names::condition;
use crds::networking::EndpointProvider;
use crds::step::{Intent, Role, Step as RunStep};

use super::{Found, under_way};
use crate::attempts::{self, Turn};
use crate::cluster_deployment::Step;
use crate::cluster_deployment::deletion::until;
use crate::cluster_deployment::lack::{next_attempt, retry};
use crate::cluster_deployment::part::component;
use crate::cluster_deployment::runs::{self, Attempt, Order};
use crate::cluster_deployment::scene::{Member, Scene};
use crate::departure::{self, Council, is_healthy};
use crate::provisioning;
use crate::sentence::count;

const REASON: &str = "Joining";

pub(super) fn of(scene: &Scene<'_>, council: &Council<'_>) -> Option<Found> {
    let (next, others) = next(scene)?;
    let role = next.machine.spec.role;
    let host = next.host_name()?;
    let more = match others {
        0 => String::new(),
        others => format!("; {} more after it, one at a time", count(others, "machine")),
    };
    if let Some(run) = scene.active_on(host) {
        let mut found = under_way(scene, role, REASON, run);
        if let Some(says) = &mut found.says {
            says.message.push_str(&more);
        }
        return Some(found);
    }
    let failed = |message| Found::says(role, "JoinFailed", message, true);
    match scene.turn(&next) {
        // Its Machine is about to say so.
        Turn::Done { .. } | Turn::UnderWay { .. } => Some(Found::says(
            role,
            REASON,
            format!("{} has joined", next.title()),
            false,
        )),
        Turn::Now {
            attempt,
            retry,
            goes_on,
        } => match no_endpoint(scene, role).or_else(|| why_not(scene, council)) {
            Some(why) => {
                let message = format!("{} is to join; {why}", next.title());
                Some(Found::says(role, "WaitsToJoin", message, false))
            }
            None => {
                let attempt = Attempt {
                    number: attempt,
                    resume: goes_on.is_some(),
                };
                let run = run(scene, council, next, retry, attempt);
                let message = format!("joining {}{more}", next.title());
                Some(Found::says(role, REASON, message, false).and(run))
            }
        },
        Turn::Later { at, failures, cause } => {
            let message = format!(
                "{} {} ({}): {}; {} at {}",
                next.title(),
                if cause.interrupted {
                    "was interrupted while it joined"
                } else {
                    "failed to join"
                },
                cause.reason,
                cause.message,
                next_attempt(scene, failures, &cause),
                at.strftime("%H:%M:%S UTC")
            );
            Some(failed(message).later(until(scene, at)))
        }
        Turn::Halted { failures, cause } => {
            let cause = attempts::why_halted(cause.as_ref());
            let message = format!(
                "{} could not join after {} ({cause}); correct it, then {}; or delete Machine {}, and another one is made",
                next.title(),
                count(failures, "attempt"),
                retry(scene),
                next.name()
            );
            Some(failed(message))
        }
    }
}

/// The machine that joins next, and how many more there are: etcd's before control planes, one that was begun before all.
fn next<'a>(scene: &Scene<'a>) -> Option<(Member<'a>, usize)> {
    let waits = |member: &&Member<'a>| {
        member.machine.spec.role != Role::Worker && member.host.is_some() && !member.is_provisioned()
    };
    let mut waiting: Vec<Member<'a>> = scene.live.iter().filter(waits).copied().collect();
    waiting.sort_by_key(|member| {
        let begun = provisioning::was_touched(member.machine, scene.observed.runs);
        (!begun, member.machine.spec.role != Role::Etcd)
    });
    Some((*waiting.first()?, waiting.len() - 1))
}

/// The address of the only control plane stands in every kubeconfig: nobody can take its place.
fn no_endpoint(scene: &Scene<'_>, role: Role) -> Option<String> {
    let endpoint = &scene.deployment.spec.control_plane.endpoint;
    (role == Role::ControlPlane && endpoint.is_none()).then(|| {
        "the cluster has no spec.controlPlane.endpoint, which cannot be added later: its only control plane can neither be replaced nor get another beside it".to_owned()
    })
}

/// Why no machine joins now.
fn why_not(scene: &Scene<'_>, council: &Council<'_>) -> Option<String> {
    if let Some(leaves) = council.leaving().find(|machine| !council.is_kept(machine)) {
        return Some(format!(
            "waits for machine {} to leave first",
            leaves.metadata.name.as_deref().unwrap_or_default()
        ));
    }
    if let Some(forgotten) = council.forgotten().first() {
        let title = departure::title_of_forgotten(forgotten);
        return Some(format!("waits for {title} to be taken out of etcd first"));
    }
    if let Some(run) = council.run_in_the_way(None) {
        return Some(run);
    }
    let stays = |member: &&Member<'_>| member.machine.spec.role != Role::Worker && member.is_provisioned();
    if let Some(sick) = scene
        .live
        .iter()
        .filter(stays)
        .find(|member| !is_healthy(member.machine))
    {
        return Some(format!(
            "waits for {} to be well ({}), or for its Machine to be deleted: it is taken out before another one comes",
            sick.title(),
            sick.says()
        ));
    }
    if let Some((false, message)) = component(scene, "etcd") {
        return Some(format!("waits for etcd to be well: {message}"));
    }
    api_is_gone(scene)
}

/// Why nothing joins a cluster that is known not to answer: it would be refused, halfway through.
pub(in crate::cluster_deployment) fn api_is_gone(scene: &Scene<'_>) -> Option<String> {
    let status = scene.observed.cluster?.status.as_ref()?;
    let reachable = conditions::find(&status.conditions, condition::REACHABLE)?;
    (reachable.status == "False").then(|| format!("waits for the API of the cluster: {}", reachable.message))
}

fn run(
    scene: &Scene<'_>,
    council: &Council<'_>,
    next: Member<'_>,
    retry: Option<String>,
    attempt: Attempt,
) -> Step {
    let mut members = council.members();
    if council.is_of_etcd(next.machine) {
        members.push(next.machine);
    }
    let order = Order {
        intent: Intent::Join,
        steps: steps_of(scene, next.machine.spec.role),
        targets: &[(next, retry)],
        attempt,
        name_of: None,
        vars: scene.etcd_variables(&members),
    };
    Step::CreateRun(Box::new(runs::order(scene, order)))
}

fn steps_of(scene: &Scene<'_>, role: Role) -> Vec<RunStep> {
    let spec = &scene.deployment.spec;
    let mut steps = vec![
        RunStep::BootstrapOs,
        RunStep::Preflight,
        RunStep::Prepare,
        RunStep::ContainerRuntime,
    ];
    if role == Role::Etcd || spec.etcd.topology == EtcdTopology::Stacked {
        steps.push(RunStep::Etcd);
    }
    if role != Role::Etcd {
        steps.push(RunStep::ControlPlane);
        let endpoint = spec.control_plane.endpoint.as_ref();
        if endpoint.is_some_and(|endpoint| endpoint.provider == EndpointProvider::Keepalived) {
            steps.push(RunStep::LoadBalancer);
        }
        steps.extend([RunStep::Network, RunStep::PostInstall]);
    }
    steps
}
