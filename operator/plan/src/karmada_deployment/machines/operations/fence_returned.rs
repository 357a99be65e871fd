//! Fences what returns: a machine that was given up without being cleaned, and that answers again, still serves the
//! plane. What does so is stopped there; no data is deleted.

use std::collections::BTreeMap;

use crds::host::QuarantineFence;
use crds::inputs::FENCE_CLAIM_EPOCH;
use crds::names::condition;
use crds::step::{Intent, Step};
use crds::{Conditions, Host, ObjectExt, PlaybookRun};
use serde_json::json;

use super::super::act::Act;
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use crate::attempts::{self, Outcome};
use crate::cluster_deployment::fencing::{epoch_of, is_fence, of_cluster};
use crate::{moment, naming};

/// Deadline of such a run.
const TIMEOUT_SECONDS: i32 = 600;

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    let of_plane = |host: &&Host| {
        let fence = of_cluster(host, state.object.uid()).filter(|fence| !fence.fenced)?;
        Some(fence.clone())
    };
    let hosts = state.seen.hosts.iter().copied();
    let fences = hosts.filter_map(|host| Some((host, of_plane(&host)?)));
    fences.fold(Proposal::default(), |proposal, (host, fence)| decide(state, host, &fence, proposal))
}

fn decide(state: &PlaneState<'_>, host: &Host, fence: &QuarantineFence, proposal: Proposal) -> Proposal {
    let name = host.name();
    let of_claim =
        |run: &&PlaybookRun| is_fence(run) && run.spec.hosts == [name] && epoch_of(run) == Some(fence.claim_epoch);
    let tried: Vec<&PlaybookRun> = state.seen.runs.iter().copied().filter(of_claim).collect();
    let outcomes = || tried.iter().map(|run| attempts::outcome(run, name));
    if outcomes().any(|outcome| outcome == Outcome::Succeeded) {
        return proposal.and(Act::MarkFenced(Box::new(host.clone())));
    }
    if !is_back(host, fence) || outcomes().any(|outcome| outcome == Outcome::UnderWay) {
        return proposal;
    }
    let last = tried.iter().filter_map(|run| attempts::ended_at(run)).max();
    let at = last.map(|last| moment::after(last, attempts::backoff(tried.len())));
    match at.filter(|at| *at > state.now) {
        Some(at) => proposal.at(state, at),
        None => proposal.and(Act::create(run(state, host, fence, attempts::number_after(tried)))),
    }
}

/// Whether the last probe of the Host as it is reached a machine whose guard knows that very claim, and none after it.
fn is_back(host: &Host, fence: &QuarantineFence) -> bool {
    let reachable = host.condition(condition::REACHABLE);
    let answers = reachable.is_some_and(|reachable| {
        reachable.status == "True" && reachable.observed_generation == host.metadata.generation
    });
    let seen = host.status.as_ref().and_then(|status| status.fence.as_ref());
    answers && seen.is_some_and(|seen| seen.epoch == fence.claim_epoch)
}

fn run(state: &PlaneState<'_>, host: &Host, fence: &QuarantineFence, attempt: i32) -> PlaybookRun {
    let epoch = fence.claim_epoch.to_string();
    let parts = ["fence", host.uid(), epoch.as_str()];
    let name = naming::run(&state.owner.name, &state.owner.uid, Intent::Remove, parts, attempt);
    let hosts = vec![host.name().to_owned()];
    let mut run = state.owner.run(&name, Intent::Remove, vec![Step::Fence], hosts, attempt);
    run.spec.timeout_seconds = TIMEOUT_SECONDS;
    run.spec.vars = BTreeMap::from([(FENCE_CLAIM_EPOCH.to_owned(), json!(fence.claim_epoch))]);
    run
}
