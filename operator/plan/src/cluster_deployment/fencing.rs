//! Fencing: a machine that was given up without being cleaned, and that answers again, still serves and speaks for the
//! cluster. Before anything else what does so there is stopped and disabled; no data is deleted.
//!
//! Such a run takes a token of the cluster's lock: its fence is then higher than that of every run of the machine's time,
//! and the lock is closed while the metadata cluster may be older than its machines. It works on a machine that is no part
//! of the cluster any more, so it stands beside every other run, an exclusive one too.

use std::collections::BTreeMap;

use crds::cluster_deployment::FenceReturned;
use crds::host::QuarantineFence;
use crds::inputs::FENCE_CLAIM_EPOCH;
use crds::names::condition;
use crds::step::{Intent, Step as RunStep};
use crds::{Host, PlaybookRun, conditions};
use serde_json::json;

use super::Step;
use super::deletion::until;
use super::runs;
use super::scene::Scene;
use crate::attempts::{self, Outcome};
use crate::{Next, moment, naming};

/// Deadline of such a run.
const TIMEOUT_SECONDS: i32 = 600;

/// What is done about machines that are back.
pub(super) struct Fencing {
    pub steps: Vec<Step>,
    pub next: Next,
}

/// True for a run that does nothing else.
pub fn is_fence(run: &PlaybookRun) -> bool {
    run.spec.intent == Intent::Remove && run.spec.steps == [RunStep::Fence]
}

/// The fence of a Host that nobody has claimed, if it is of this cluster and of the Host's last claim.
pub fn of_cluster<'a>(host: &'a Host, cluster_uid: &str) -> Option<&'a QuarantineFence> {
    let fence = host.spec.quarantine.as_ref()?.fence.as_ref()?;
    let is_it = host.spec.claim_ref.is_none()
        && fence.cluster_uid == cluster_uid
        && fence.claim_epoch == host.spec.claim_epoch;
    is_it.then_some(fence)
}

pub(super) fn of(scene: &Scene<'_>, lock_is_known: bool) -> Fencing {
    let mut fencing = Fencing {
        steps: Vec::new(),
        next: Next::OnChange,
    };
    if !lock_is_known || scene.deployment.spec.machine_removal.fence_returned == FenceReturned::Never {
        return fencing;
    }
    for host in scene.observed.hosts {
        let open = of_cluster(host, scene.uid()).filter(|fence| !fence.fenced);
        if let Some(fence) = open {
            let (step, next) = decide(scene, host, fence);
            fencing.steps.extend(step);
            fencing.next = fencing.next.or_sooner(next);
        }
    }
    fencing
}

fn decide(scene: &Scene<'_>, host: &Host, fence: &QuarantineFence) -> (Option<Step>, Next) {
    let name = host.metadata.name.as_deref().unwrap_or_default();
    let tried: Vec<&PlaybookRun> = scene
        .observed
        .runs
        .iter()
        .copied()
        .filter(|run| is_fence(run) && run.spec.hosts == [name] && epoch_of(run) == Some(fence.claim_epoch))
        .collect();
    let outcomes = || tried.iter().map(|run| attempts::outcome(run, name));
    if outcomes().any(|outcome| outcome == Outcome::Succeeded) {
        return (Some(Step::MarkFenced(Box::new(host.clone()))), Next::OnChange);
    }
    if !is_back(host, fence) || outcomes().any(|outcome| outcome == Outcome::UnderWay) {
        return (None, Next::OnChange);
    }
    let last = tried.iter().filter_map(|run| attempts::ended_at(run)).max();
    let at = last.map(|last| moment::after(last, attempts::backoff(tried.len())));
    if let Some(at) = at.filter(|at| *at > scene.observed.now) {
        return (None, until(scene, at));
    }
    let number = tried
        .iter()
        .map(|run| attempts::attempt_of(run).saturating_add(1))
        .max();
    let run = fence_run(scene, name, host, fence, number.unwrap_or_default());
    (Some(Step::CreateRun(Box::new(run))), Next::OnChange)
}

/// Whether the last probe of the Host as it is reached a machine whose guard knows that very claim, and none after it.
fn is_back(host: &Host, fence: &QuarantineFence) -> bool {
    let Some(status) = &host.status else { return false };
    let reachable = conditions::find(&status.conditions, condition::REACHABLE);
    let answers = reachable.is_some_and(|reachable| {
        reachable.status == "True" && reachable.observed_generation == host.metadata.generation
    });
    answers
        && status
            .fence
            .as_ref()
            .is_some_and(|seen| seen.epoch == fence.claim_epoch)
}

/// The claim that a run fences.
pub fn epoch_of(run: &PlaybookRun) -> Option<i64> {
    run.spec.vars.get(FENCE_CLAIM_EPOCH)?.as_i64()
}

fn fence_run(
    scene: &Scene<'_>,
    name: &str,
    host: &Host,
    fence: &QuarantineFence,
    attempt: i32,
) -> PlaybookRun {
    let epoch = fence.claim_epoch.to_string();
    let uid = host.metadata.uid.as_deref().unwrap_or_default();
    let parts = ["fence", uid, epoch.as_str()];
    let run_name = naming::run(&scene.name, scene.uid(), Intent::Remove, parts, attempt);
    let hosts = vec![name.to_owned()];
    let steps = vec![RunStep::Fence];
    let mut run = runs::of_cluster(scene, &run_name, Intent::Remove, steps, hosts, attempt);
    run.spec.timeout_seconds = TIMEOUT_SECONDS;
    run.spec.vars = BTreeMap::from([(FENCE_CLAIM_EPOCH.to_owned(), json!(fence.claim_epoch))]);
    run
}
