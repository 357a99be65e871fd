//! How an EtcdRestore that was handed over begins.

use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};

use super::super::etcd::claims_in_use;
use super::super::observed::Observed;
use super::super::restoring::record;
use super::go_on::Outcome;
use super::handed::handed_over;

/// The plane takes an EtcdRestore over: it stops from now on, or, on machines, once the backup lies ready there. None:
/// there is none, it is paused, or its host is not seen.
pub(in super::super) fn begins(observed: &Observed<'_>) -> Option<Outcome> {
    let (_, handed) = handed_over(observed.object, observed.restores)?;
    if observed.object.spec.paused || observed.host.seen().is_none() {
        return None;
    }
    let claims = handed.claims.as_deref().unwrap_or_default();
    let is_former = observed.facts.etcd.workload.as_ref().is_some_and(|workload| workload.claims != claims);
    let former_claims = match record(observed.object).filter(|record| record.step.is_some()) {
        // What the one before this has made was never approved.
        Some(record) => record.former_claims.clone(),
        None if is_former => claims_in_use(observed.object, observed.facts),
        // Where the status was lost, those of before are not known any more.
        None => Vec::new(),
    };
    let begins = if handed.step == Some(Step::Stage) { "laying the backup ready" } else { "stopping what acts" };
    let record = KarmadaRestoredFrom { former_claims, ..handed.clone() };
    Some(Outcome::moved(record, begins).before())
}
