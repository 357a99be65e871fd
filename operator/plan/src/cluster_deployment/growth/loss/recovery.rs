//! Recovery: the machine that goes on alone, attempt after attempt on the same one.

use crds::PlaybookRun;
use crds::names::annotation;
use crds::step::{Intent, Role, Step as RunStep};
use jiff::Timestamp;
use serde_json::json;

use super::super::{Found, doing};
use crate::attempts::{self, Policy, Turn};
use crate::cluster_deployment::Step;
use crate::cluster_deployment::deletion::until;
use crate::cluster_deployment::lack::retry;
use crate::cluster_deployment::runs::{self, Attempt, Order};
use crate::cluster_deployment::scene::{Member, Scene};
use crate::provisioning::{self, asked_retries};
use crate::sentence::count;

/// A recovery that was begun since the loss: it goes on, on the same machine, or has come to its end.
pub(super) fn of(scene: &Scene<'_>, role: Role, since: Timestamp) -> Option<Found> {
    let begun: Vec<&PlaybookRun> = scene
        .observed
        .runs
        .iter()
        .copied()
        .filter(|run| run.spec.steps.contains(&RunStep::RecoverEtcd) && !attempts::marks(run).is_empty())
        .filter(|run| {
            let made = run.metadata.creation_timestamp.as_ref();
            made.is_some_and(|made| made.0 >= since)
        })
        .collect();
    let last = begun.iter().max_by_key(|run| attempts::attempt_of(run))?;
    if !attempts::is_over(last) {
        let what = format!("etcd goes on with {} alone", last.spec.hosts.join(", "));
        return Some(doing(scene, role, "RecoversEtcd", &what, last));
    }
    let survivor = attempts::marks(last)
        .into_values()
        .find_map(|mark| scene.live.iter().find(|member| member.uid() == mark.uid))?;
    let tried = attempts::tried_by(&begun, |run| {
        let host = survivor.host_name()?;
        let mark = attempts::marks(run).remove(host)?;
        (mark.uid == survivor.uid()).then(|| (host.to_owned(), mark))
    });
    let policy = Policy {
        limit: Some(provisioning::most_attempts(scene.deployment)),
        wanted: provisioning::wanted(scene.deployment),
        host_generation: None,
        retries: asked_retries(survivor.machine, scene.deployment),
        stopped_is_final: true,
    };
    let failed = |message| Found::says(role, "RecoveryFailed", message, true);
    match attempts::turn(&tried, &policy, scene.observed.now) {
        Turn::Now { attempt, retry, .. } => {
            let approval = last.metadata.annotations.as_ref();
            let approval = approval.and_then(|all| all.get(annotation::APPROVE));
            let run = recover(scene, *survivor, approval?, attempt, retry);
            let message = format!("etcd goes on with {} alone, from its own data", survivor.title());
            Some(Found::says(role, "RecoversEtcd", message, true).and(run))
        }
        Turn::Later { at, cause, .. } => {
            let message = format!(
                "{} could not go on alone ({}: {}); tried again at {}",
                survivor.title(),
                cause.reason,
                cause.message,
                at.strftime("%H:%M:%S UTC")
            );
            Some(failed(message).later(until(scene, at)))
        }
        Turn::Halted { failures, cause } => {
            let cause = attempts::why_halted(cause.as_ref());
            let message = format!(
                "{} could not go on alone after {} ({cause}); correct it, then {}",
                survivor.title(),
                count(failures, "attempt"),
                retry(scene)
            );
            Some(failed(message))
        }
        // It has: the API servers are told, and then the API answers.
        Turn::Done { .. } | Turn::UnderWay { .. } => None,
    }
}

/// A run that makes this member the only one.
pub(super) fn recover(
    scene: &Scene<'_>,
    survivor: Member<'_>,
    approval: &str,
    attempt: i32,
    retry: Option<String>,
) -> Step {
    let host = survivor.host_name().unwrap_or_default();
    let mut vars = scene.etcd_variables(&[survivor.machine]);
    vars.insert(
        "etcd_recover_member".into(),
        json!({ "name": host, "host": host }),
    );
    let order = Order {
        intent: Intent::Repair,
        steps: vec![RunStep::RecoverEtcd],
        targets: &[(survivor, retry)],
        attempt: Attempt {
            number: attempt,
            resume: false,
        },
        name_of: Some(vec!["recover".into(), survivor.uid().into(), approval.into()]),
        vars,
    };
    let mut run = runs::order(scene, order);
    run.metadata
        .annotations
        .get_or_insert_default()
        .insert(annotation::APPROVE.into(), approval.to_owned());
    Step::CreateRun(Box::new(run))
}
