//! Fences what returns: a machine that was given up without being cleaned, and that answers again, still serves and
//! speaks for the cluster. Before anything else what does so there is stopped and disabled; no data is deleted.
//!
//! Such a run takes a token of the cluster's lock: its fence is then higher than that of every run of the machine's
//! time, and the lock is closed while the metadata cluster may be older than its machines. It works on a machine that
//! is no part of the cluster any more, so it stands beside every other run, an exclusive one too.

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::cluster_deployment::FenceReturned;
use crds::host::QuarantineFence;
use crds::inputs::FENCE_CLAIM_EPOCH;
use crds::names::condition;
use crds::step::{Intent, Step};
use crds::{Host, PlaybookRun, conditions};
use serde_json::json;

use crate::attempts::{self, Outcome};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::fencing::{epoch_of, is_fence, of_cluster};
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::request::number_after;
use crate::cluster_deployment::state::ClusterState;
use crate::{moment, naming};

/// Deadline of such a run.
const TIMEOUT_SECONDS: i32 = 600;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let mut proposal = Proposal::default();
    if state.deployment.spec.machine_removal.fence_returned == FenceReturned::Never {
        return proposal;
    }
    for host in state.observed.hosts {
        if let Some(fence) = of_cluster(host, state.uid()).filter(|fence| !fence.fenced) {
            proposal = decide(state, host, fence, proposal);
        }
    }
    proposal
}

fn decide(state: &ClusterState<'_>, host: &Host, fence: &QuarantineFence, proposal: Proposal) -> Proposal {
    let name = host.name();
    let of_claim =
        |run: &&PlaybookRun| is_fence(run) && run.spec.hosts == [name] && epoch_of(run) == Some(fence.claim_epoch);
    let tried: Vec<&PlaybookRun> = state.observed.runs.iter().copied().filter(of_claim).collect();
    let outcomes = || tried.iter().map(|run| attempts::outcome(run, name));
    if outcomes().any(|outcome| outcome == Outcome::Succeeded) {
        return proposal.and(Action::MarkFenced(Box::new(host.clone())));
    }
    if !is_back(host, fence) || outcomes().any(|outcome| outcome == Outcome::UnderWay) {
        return proposal;
    }
    let last = tried.iter().filter_map(|run| attempts::ended_at(run)).max();
    let at = last.map(|last| moment::after(last, attempts::backoff(tried.len())));
    match at.filter(|at| *at > state.observed.now) {
        Some(at) => proposal.at(state, at),
        None => proposal.and(Action::create(run(state, name, host, fence, number_after(tried)))),
    }
}

/// Whether the last probe of the Host as it is reached a machine whose guard knows that very claim, and none after it.
fn is_back(host: &Host, fence: &QuarantineFence) -> bool {
    let Some(status) = &host.status else { return false };
    let reachable = conditions::find(&status.conditions, condition::REACHABLE);
    let answers = reachable.is_some_and(|reachable| {
        reachable.status == "True" && reachable.observed_generation == host.metadata.generation
    });
    answers && status.fence.as_ref().is_some_and(|seen| seen.epoch == fence.claim_epoch)
}

fn run(state: &ClusterState<'_>, name: &str, host: &Host, fence: &QuarantineFence, attempt: i32) -> PlaybookRun {
    let epoch = fence.claim_epoch.to_string();
    let uid = host.uid();
    let parts = ["fence", uid, epoch.as_str()];
    let run_name = naming::run(&state.name, state.uid(), Intent::Remove, parts, attempt);
    let (steps, hosts) = (vec![Step::Fence], vec![name.to_owned()]);
    let mut run = state.owner.run(&run_name, Intent::Remove, steps, hosts, attempt);
    run.spec.timeout_seconds = TIMEOUT_SECONDS;
    run.spec.vars = BTreeMap::from([(FENCE_CLAIM_EPOCH.to_owned(), json!(fence.claim_epoch))]);
    run
}
