//! The machines of a cluster, compared with the store: what their guards know that the objects do not. Nothing is done
//! to them until all were looked at, and what contradicts was approved.

use std::collections::BTreeSet;

use crds::names::condition;
use crds::playbook_run::{Fence, FenceOwner};
use crds::{Conditions, Host, Machine, ObjectExt, PlaybookRun, StoreComparison};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::compared::Compared;
use super::contradiction::{Contradiction, Differs, refusal};
use super::{comparisons, has_answered, was_asked};
use crate::approval::{self, What};
use crate::naming::short_hash;

/// Length of a digest.
const DIGEST: usize = 12;

/// What the machines of a cluster are compared by.
pub struct ComparisonObserved<'o, 'a> {
    /// Of what forms the cluster.
    pub metadata: &'o ObjectMeta,
    /// What its status has of former comparisons.
    pub compared: Compared<'o>,
    /// Its Machines, without those that are given up unheard.
    pub machines: &'o [&'a Machine],
    /// All Hosts of the namespace.
    pub hosts: &'o [&'a Host],
    /// The runs on its machines.
    pub runs: &'o [&'a PlaybookRun],
    /// When the store was taken up again.
    pub resumed_at: Option<Timestamp>,
}

impl ComparisonObserved<'_, '_> {
    /// `NAMESPACE/NAME`, as guards know the cluster.
    fn path(&self) -> String {
        path(self.metadata)
    }
}

/// What came of the comparison.
pub struct Comparison<'a> {
    /// Hosts that no probe has looked at since the store was taken up again.
    pub unasked: Vec<&'a str>,
    /// What the machines know that the store does not.
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
    resumed_at: Option<Timestamp>,
}

impl<'a> Comparison<'a> {
    /// Compares.
    pub fn new(observed: &ComparisonObserved<'_, 'a>) -> Self {
        let claimed = claimed(observed);
        let asked = |host: &&&Host| was_asked(host.status.as_ref(), observed.resumed_at);
        let unasked = claimed.iter().filter(|host| !asked(host)).map(|host| host.name()).collect();
        let of_claimed = claimed.iter().filter_map(|host| contradiction(observed, host));
        let before: BTreeSet<String> = observed.compared.approved.iter().cloned().collect();
        let last_token = observed.compared.last_token;
        let is_settled = |found: &Contradiction<'_>| {
            let is_passed = last_token.is_some_and(|last_token| found.fence.token <= last_token);
            found.differs == Differs::Token && is_passed && before.contains(&found.digest())
        };
        let (settled, contradictions): (Vec<_>, Vec<_>) = of_claimed.chain(unknown(observed)).partition(is_settled);
        let answers = claimed.is_empty() || claimed.iter().any(|host| has_answered(host));
        let silent = observed.resumed_at.filter(|_| !answers);
        let digests: BTreeSet<String> =
            contradictions.iter().map(Contradiction::digest).chain(silent.map(silence)).collect();
        let acts: Vec<&str> = digests.iter().map(String::as_str).collect();
        let value = approval::value(What::Store, observed.metadata, &acts);
        let is_given = !digests.is_empty() && approval::is_given(observed.metadata, &value);
        Self {
            all_answered: claimed.iter().all(|host| asked(&host) && has_answered(host)),
            approved: before.intersection(&digests).cloned().collect(),
            settled: settled.iter().map(Contradiction::digest).collect(),
            is_silent: silent.is_some(),
            unasked,
            contradictions,
            digests,
            value,
            is_given,
            resumed_at: observed.resumed_at,
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
    pub fn since(&self) -> Option<Time> {
        self.resumed_at.filter(|_| !self.holds()).map(Time)
    }

    /// What runs bring from now on, where they brought these before, and this was the last token before any is given
    /// out, or is raised.
    pub fn comparisons(&self, old: &[StoreComparison], last_token: Option<i64>) -> Vec<StoreComparison> {
        match self.since().zip(last_token) {
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

/// `NAMESPACE/NAME`, as guards know the cluster that this object forms.
pub fn path(object: &ObjectMeta) -> String {
    let text = |part: Option<&String>| part.cloned().unwrap_or_default();
    format!("{}/{}", text(object.namespace.as_ref()), text(object.name.as_ref()))
}

/// Hosts that the cluster's Machines hold.
fn claimed<'a>(observed: &ComparisonObserved<'_, 'a>) -> Vec<&'a Host> {
    let uids: BTreeSet<&str> = observed.machines.iter().filter_map(|machine| machine.metadata.uid.as_deref()).collect();
    let is_held = |host: &&&Host| {
        let claim = host.spec.claim_ref.as_ref();
        claim.is_some_and(|claim| uids.contains(claim.uid.as_str()))
    };
    observed.hosts.iter().filter(is_held).copied().collect()
}

/// What the machine of a claimed Host says: by a probe, or by the refusal of a run that the Host has not been told of.
fn contradiction<'a>(observed: &ComparisonObserved<'_, 'a>, host: &'a Host) -> Option<Contradiction<'a>> {
    let (fence, owner) = known(observed, host)?;
    let cluster = observed.path();
    let is_others = |owner: &FenceOwner| owner.cluster_path() != cluster;
    let of_other = fence.epoch == host.spec.claim_epoch && owner.as_ref().is_some_and(is_others);
    if of_other {
        return Some(Contradiction { host, differs: Differs::Claim, fence, owner });
    }
    let since = owner.as_ref().and_then(|owner| owner.compared_since.as_ref());
    let known = comparisons::known_token(observed.compared, since);
    Contradiction::between(host, fence, owner.clone()).or_else(|| Contradiction::of_token(host, fence, owner, known?))
}

fn known(observed: &ComparisonObserved<'_, '_>, host: &Host) -> Option<(Fence, Option<FenceOwner>)> {
    let status = host.status.as_ref();
    let told = status.and_then(|status| Some((status.fence?, status.fence_owner.clone())));
    let met = refusal(host, observed.runs.iter().copied());
    told.into_iter().chain(met).max_by_key(|(fence, _)| *fence)
}

/// Hosts that nobody has claimed here, and whose machines serve this cluster by a claim that is not known here.
fn unknown<'a>(observed: &ComparisonObserved<'_, 'a>) -> impl Iterator<Item = Contradiction<'a>> {
    let cluster = observed.path();
    let serves = |host: &&&Host| {
        let is_clean = host.condition(condition::CLEAN).is_some_and(|clean| clean.status == "True");
        host.spec.claim_ref.is_none() && !is_clean
    };
    let spare = observed.hosts.iter().filter(serves).filter_map(|host| Contradiction::find(host));
    spare.filter(move |found| found.is_of(&cluster)).collect::<Vec<_>>().into_iter()
}
