//! The install: one Exclusive run on all control planes and dedicated etcd machines, when all of them have their Hosts.

use crds::step::{Intent, Role};
use jiff::Timestamp;

use super::Step;
use super::runs::{self, Target};
use super::scene::Scene;
use crate::attempts::{Failure, Turn};

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
    let mut later: Option<Install> = None;
    for founder in founders {
        match scene.turn(&founder) {
            Turn::Now { attempt, retry } => {
                next_attempt = next_attempt.max(attempt);
                targets.push((founder, retry));
            }
            // A machine that was part of an earlier attempt is installed again with the others: every step may be.
            Turn::Done { .. } => targets.push((founder, None)),
            Turn::UnderWay { run } => return Install::UnderWay { run },
            Turn::Halted { failures, cause } => return Install::Halted { failures, cause },
            Turn::Later { at, failures, cause } => {
                let sooner = matches!(&later, Some(Install::Later { at: other, .. }) if *other >= at);
                if !sooner {
                    later = Some(Install::Later { at, failures, cause });
                }
            }
        }
    }
    later.unwrap_or_else(|| {
        Install::Begins(Box::new(runs::create(
            scene,
            Intent::Install,
            &targets,
            next_attempt,
        )))
    })
}
