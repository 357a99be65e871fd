//! What a run that fences machines may work on: Hosts of this very cluster's that nobody has claimed since, and nothing
//! else. Every other Host of a run belongs to a Machine.

use std::collections::BTreeMap;

use crds::Reason;
use crds::cluster_deployment::FenceReturned;
use crds::step::Step;
use crds::{Host, PlaybookRun};

use super::observed::Formed;
use super::problem::InputsProblem;
use crate::cluster_deployment::fencing::{epoch_of, is_fence, of_cluster};

/// Whether the run fences, and may; `Ok(false)`: it is another one.
pub(super) fn check(
    run: &PlaybookRun,
    formed: Option<Formed<'_>>,
    hosts: &BTreeMap<String, Host>,
) -> Result<bool, InputsProblem> {
    let refused = |message: String| Err(InputsProblem::refused(Reason::NotToBeFenced, message));
    if !is_fence(run) {
        return match run.spec.steps.contains(&Step::Fence) {
            true => refused("step fence stands alone in a run of intent Remove: make a run with nothing else".into()),
            false => Ok(false),
        };
    }
    let Some(formed) = formed else {
        return Ok(false);
    };
    if let Formed::Cluster(cluster) = formed
        && cluster.deployment.spec.machine_removal.fence_returned == FenceReturned::Never
    {
        return refused("spec.machineRemoval.fenceReturned of the ClusterDeployment is Never".into());
    }
    let uid = formed.uid();
    let fits = |name: &&String| {
        let fence = hosts.get(*name).and_then(|host| of_cluster(host, uid));
        fence.is_some_and(|fence| Some(fence.claim_epoch) == epoch_of(run))
    };
    match run.spec.hosts.iter().find(|name| !fits(name)) {
        None => Ok(true),
        Some(name) => refused(format!(
            "Host {name} is not a machine that this cluster gave up and that nobody has claimed since: spec.quarantine.fence must name the UID of what forms the cluster and the Host's claimEpoch, and vars.fence_claim_epoch the same"
        )),
    }
}
