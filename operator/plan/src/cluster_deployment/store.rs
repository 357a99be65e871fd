//! The machines of a cluster, compared with the store: what their guards know that the objects do not. Nothing is done
//! to them until all were looked at, and what contradicts was approved.

use std::collections::BTreeSet;

use crds::names::condition;
use crds::playbook_run::{Fence, FenceOwner};
use crds::{Conditions, Host, Machine, ObjectExt, StoreComparison};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::Observed;
use super::state::past;
use crate::approval::{self, What};
use crate::naming::short_hash;
use crate::store::{self, Contradiction, Differs, comparisons};

/// Length of a digest.
const DIGEST: usize = 12;

/// What came of the comparison.
pub(super) struct Comparison<'a> {
    /// Hosts that no probe has looked at since the store was taken up again.
    pub unasked: Vec<&'a str>,
    pub contradictions: Vec<Contradiction<'a>>,
    /// Of what contradicts, and of that no machine of the cluster answers.
    digests: BTreeSet<String>,
    is_silent: bool,
    /// Digests that were approved before now, and are still there.
    approved: BTreeSet<String>,
    /// Digests of runs that were approved, and whose tokens the store has passed: nothing is to be done about them.
    settled: BTreeSet<String>,
    /// Whether every machine has answered since the store was taken up again.
    all_answered: bool,
    /// The value of the approval that is asked for.
    pub value: String,
    is_given: bool,
}

impl<'a> Comparison<'a> {
    pub fn new(observed: &'a Observed<'a>) -> Self {
        let deployment = observed.deployment;
        let claimed = claimed(observed);
        let asked = |host: &&&Host| store::was_asked(host.status.as_ref(), observed.resumed_at);
        let unasked = claimed.iter().filter(|host| !asked(host)).map(|host| host.name()).collect();
        let of_claimed = claimed.iter().filter_map(|host| contradiction(observed, host));
        let before = deployment.status.iter().flat_map(|status| &status.approved_contradictions);
        let before: BTreeSet<String> = before.cloned().collect();
        let last_token = deployment.status.as_ref().and_then(|status| status.last_token);
        let is_settled = |found: &Contradiction<'_>| {
            let is_passed = last_token.is_some_and(|last_token| found.fence.token <= last_token);
            found.differs == Differs::Token && is_passed && before.contains(&found.digest())
        };
        let (settled, contradictions): (Vec<_>, Vec<_>) = of_claimed.chain(unknown(observed)).partition(is_settled);
        let answers = claimed.is_empty() || claimed.iter().any(|host| store::has_answered(host));
        let silent = observed.resumed_at.filter(|_| !answers);
        let digests: BTreeSet<String> =
            contradictions.iter().map(Contradiction::digest).chain(silent.map(silence)).collect();
        let acts: Vec<&str> = digests.iter().map(String::as_str).collect();
        let value = approval::value(What::Store, &deployment.metadata, &acts);
        let is_given = !digests.is_empty() && approval::is_given(&deployment.metadata, &value);
        Self {
            all_answered: claimed.iter().all(|host| asked(&host) && store::has_answered(host)),
            approved: before.intersection(&digests).cloned().collect(),
            settled: settled.iter().map(Contradiction::digest).collect(),
            is_silent: silent.is_some(),
            unasked,
            contradictions,
            digests,
            value,
            is_given,
        }
    }

    /// What is approved from now on, and is to be remembered before anything is done by it.
    pub fn approved(&self) -> Vec<String> {
        let approved = if self.is_given { &self.digests } else { &self.approved };
        approved.union(&self.settled).cloned().collect()
    }

    /// Whether everything that contradicts was approved, and that is written down.
    pub fn is_approved(&self) -> bool {
        self.digests == self.approved
    }

    /// Whether nothing may be done to machines.
    pub fn holds(&self) -> bool {
        !self.unasked.is_empty() || !self.is_approved()
    }

    /// For which time at which the store was taken up again the machines are compared with it from now on; none: not
    /// anew. The lock opens with it, and gives out the first token that it was not told of then.
    pub fn since(&self, observed: &Observed<'_>) -> Option<Time> {
        observed.resumed_at.filter(|_| !self.holds()).map(Time)
    }

    /// What runs bring from now on, where this was the last token before any is given out, or is raised.
    pub fn comparisons(&self, observed: &Observed<'_>, last_token: Option<i64>) -> Vec<StoreComparison> {
        let old = observed.deployment.status.as_ref().map(|status| status.comparisons.as_slice()).unwrap_or_default();
        match self.since(observed).zip(last_token) {
            Some((since, last_token)) => comparisons::after(old, &since, last_token, self.all_answered),
            None => old.to_vec(),
        }
    }

    /// Whether nothing contradicts but what a person has accepted as it is.
    pub fn is_over(&self) -> bool {
        self.contradictions.is_empty() && !self.holds()
    }

    /// Whether only that no machine answers is to be approved.
    pub fn is_silence(&self) -> bool {
        self.contradictions.is_empty() && self.is_silent
    }

    /// The last token, raised above what machines know, once that is approved.
    pub fn raised(&self, last_token: i64) -> i64 {
        let of_token = self.contradictions.iter().filter(|found| found.differs == Differs::Token);
        let highest = of_token.map(|found| found.fence.token).max();
        highest.filter(|_| !self.holds()).map_or(last_token, |highest| highest.max(last_token))
    }
}

fn silence(resumed_at: Timestamp) -> String {
    short_hash(&["silent", &resumed_at.to_string()], DIGEST)
}

/// `NAMESPACE/NAME`, as guards know a cluster.
pub(super) fn path(observed: &Observed<'_>) -> String {
    let metadata = &observed.deployment.metadata;
    format!("{}/{}", metadata.namespace.as_deref().unwrap_or_default(), observed.deployment.name())
}

/// Hosts that the cluster's Machines hold; without those of machines that a rebuild forgets.
fn claimed<'a>(observed: &Observed<'a>) -> Vec<&'a Host> {
    let goes_on = |machine: &&&Machine| !past::is_of_the_past(observed, machine);
    let machines = observed.machines.iter().filter(goes_on);
    let uids: BTreeSet<&str> = machines.filter_map(|machine| machine.metadata.uid.as_deref()).collect();
    let is_held = |host: &&&Host| {
        let claim = host.spec.claim_ref.as_ref();
        claim.is_some_and(|claim| uids.contains(claim.uid.as_str()))
    };
    observed.hosts.iter().filter(is_held).copied().collect()
}

/// What the machine of a claimed Host says: by a probe, or by the refusal of a run that the Host has not been told of.
fn contradiction<'a>(observed: &Observed<'a>, host: &'a Host) -> Option<Contradiction<'a>> {
    let (fence, owner) = known(observed, host)?;
    let cluster = path(observed);
    let is_others = |owner: &FenceOwner| owner.cluster_path() != cluster;
    let of_other = fence.epoch == host.spec.claim_epoch && owner.as_ref().is_some_and(is_others);
    if of_other {
        return Some(Contradiction { host, differs: Differs::Claim, fence, owner });
    }
    let since = owner.as_ref().and_then(|owner| owner.compared_since.as_ref());
    let status = observed.deployment.status.as_ref();
    let known = status.and_then(|status| comparisons::known_token(status, since));
    Contradiction::between(host, fence, owner.clone()).or_else(|| Contradiction::of_token(host, fence, owner, known?))
}

fn known(observed: &Observed<'_>, host: &Host) -> Option<(Fence, Option<FenceOwner>)> {
    let status = host.status.as_ref();
    let told = status.and_then(|status| Some((status.fence?, status.fence_owner.clone())));
    let met = store::refusal(host, observed.runs.iter().copied());
    told.into_iter().chain(met).max_by_key(|(fence, _)| *fence)
}

/// Hosts that nobody has claimed here, and whose machines serve this cluster by a claim that is not known here.
fn unknown<'a>(observed: &Observed<'a>) -> impl Iterator<Item = Contradiction<'a>> {
    let cluster = path(observed);
    let serves = |host: &&&Host| {
        let is_clean = host.condition(condition::CLEAN).is_some_and(|clean| clean.status == "True");
        host.spec.claim_ref.is_none() && !is_clean
    };
    let spare = observed.hosts.iter().filter(serves).filter_map(|host| Contradiction::find(host));
    spare.filter(move |found| found.is_of(&cluster)).collect::<Vec<_>>().into_iter()
}
