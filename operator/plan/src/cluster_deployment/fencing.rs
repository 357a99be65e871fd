//! Facts about fencing: which run fences a machine, and which fence a Host carries.

use crds::host::QuarantineFence;
use crds::inputs::FENCE_CLAIM_EPOCH;
use crds::step::{Intent, Step};
use crds::{Host, PlaybookRun};

/// True for a run that does nothing but fence.
pub fn is_fence(run: &PlaybookRun) -> bool {
    run.spec.intent == Intent::Remove && run.spec.steps == [Step::Fence]
}

/// The fence of a Host that nobody has claimed, if it is of this cluster and of the Host's last claim.
pub fn of_cluster<'a>(host: &'a Host, cluster_uid: &str) -> Option<&'a QuarantineFence> {
    let fence = host.spec.quarantine.as_ref()?.fence.as_ref()?;
    let is_it =
        host.spec.claim_ref.is_none() && fence.cluster_uid == cluster_uid && fence.claim_epoch == host.spec.claim_epoch;
    is_it.then_some(fence)
}

/// The claim that a run fences.
pub fn epoch_of(run: &PlaybookRun) -> Option<i64> {
    run.spec.vars.get(FENCE_CLAIM_EPOCH)?.as_i64()
}
