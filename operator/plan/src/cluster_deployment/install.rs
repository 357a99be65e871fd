//! The install: one Exclusive run on all control planes and dedicated etcd machines, when all of them have their Hosts.

use crds::step::{Intent, Role};
use jiff::Timestamp;

use super::Step;
use super::runs::{self, Attempt, Target};
use super::scene::{Member, Scene};
use crate::attempts::{self, Failure, Turn};

/// Where the install stands.
#[derive(Debug)]
pub(super) enum Install {
    /// Machines or their Hosts are missing.
    WaitsForHosts { has: usize, wanted: usize },
    /// It begins now.
    Begins(Box<Step>),
    /// A run is under way.
    UnderWay { run: String },
    /// It is tried again.
    Later {
        at: Timestamp,
        failures: usize,
        cause: Failure,
    },
    /// A person must act.
    Halted { failures: usize, cause: Option<Failure> },
    /// The cluster stands.
    Done,
}

pub(super) fn of(scene: &Scene<'_>) -> Install {
    if scene.installed.is_some() {
        return Install::Done;
    }
    let Some(founders) = scene.founders() else {
        let spec = &scene.deployment.spec;
        let wanted = spec
            .control_plane
            .replicas
            .saturating_add(spec.etcd.replicas.unwrap_or_default());
        let with_hosts = |role| scene.of_role(role).filter(|member| member.host.is_some()).count();
        return Install::WaitsForHosts {
            has: with_hosts(Role::ControlPlane) + with_hosts(Role::Etcd),
            wanted: usize::try_from(wanted).unwrap_or_default(),
        };
    };
    if let Some(run) = founders
        .iter()
        .find_map(|founder| scene.active_on(founder.host_name()?))
    {
        return Install::UnderWay {
            run: run.metadata.name.clone().unwrap_or_default(),
        };
    }
    let mut targets: Vec<Target<'_>> = Vec::new();
    let mut next_attempt = 0;
    let mut stopped: Vec<Option<String>> = Vec::new();
    let wanted = founders.len();
    let mut later: Option<Install> = None;
    for founder in founders {
        match scene.turn(&founder) {
            Turn::Now {
                attempt,
                retry,
                goes_on,
            } => {
                next_attempt = next_attempt.max(attempt);
                stopped.push(goes_on);
                targets.push((founder, retry));
            }
            // A machine that was part of an earlier attempt is installed again with the others: every step may be.
            Turn::Done { .. } => {
                stopped.push(None);
                targets.push((founder, None));
            }
            Turn::UnderWay { run } => return Install::UnderWay { run },
            Turn::Halted { failures, cause } => {
                let cause = cause.map(|cause| named(cause, &founder));
                return Install::Halted { failures, cause };
            }
            Turn::Later { at, failures, cause } => {
                let cause = named(cause, &founder);
                let sooner = matches!(&later, Some(Install::Later { at: other, .. }) if *other >= at);
                if !sooner {
                    later = Some(Install::Later { at, failures, cause });
                }
            }
        }
    }
    later.unwrap_or_else(|| {
        let attempt = Attempt {
            number: next_attempt,
            resume: goes_on(scene, &stopped, wanted),
        };
        Install::Begins(Box::new(runs::create(scene, Intent::Install, &targets, attempt)))
    })
}

/// What went wrong, with the Host that it went wrong on.
fn named(cause: Failure, member: &Member<'_>) -> Failure {
    match member.host_name() {
        Some(host) if !cause.message.contains(host) => Failure {
            message: format!("{host}: {}", cause.message),
            ..cause
        },
        _ => cause,
    }
}

/// Whether the same run stopped for all of them, and for no other machine: then the next one goes on from there.
fn goes_on(scene: &Scene<'_>, stopped: &[Option<String>], wanted: usize) -> bool {
    let Some(Some(first)) = stopped.first() else {
        return false;
    };
    let run = scene
        .observed
        .runs
        .iter()
        .find(|run| run.metadata.name.as_ref() == Some(first));
    let machines = run.map(|run| attempts::marks(run).len());
    stopped.iter().all(|run| run.as_ref() == Some(first)) && machines == Some(wanted)
}
