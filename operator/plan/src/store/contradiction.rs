//! What a machine's guard knows that its Host does not.

use crds::playbook_run::{Fence, FenceOwner};
use crds::{Host, ObjectExt, PlaybookRun};

use crate::attempts::{is_over, targets};
use crate::lock::HIGHEST;
use crate::naming::short_hash;

/// Length of a digest.
const DIGEST: usize = 12;

/// In what the machine differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Differs {
    /// It was claimed again since.
    Epoch,
    /// It was claimed as often, by another Machine.
    Claim,
    /// A run of the present claim was there that the store does not know.
    Token,
}

/// One Host that is older than its machine.
#[derive(Clone, Debug)]
pub struct Contradiction<'a> {
    /// The Host.
    pub host: &'a Host,
    /// In what the machine differs.
    pub differs: Differs,
    /// What its guard knows.
    pub fence: Fence,
    /// Whose that is, as the machine says.
    pub owner: Option<FenceOwner>,
}

/// The fence that a run met which the guard of the claimed Host refused, or that it read: of runs for the present
/// claim, and of those that name no claim, as backups, restores and what a person runs do. The highest of all.
pub fn refusal<'r>(
    host: &Host,
    runs: impl IntoIterator<Item = &'r PlaybookRun>,
) -> Option<(Fence, Option<FenceOwner>)> {
    let claim = host.spec.claim_ref.as_ref()?;
    let met = runs.into_iter().filter(|run| is_over(run)).filter_map(|run| {
        let results = run.status.iter().flat_map(|status| &status.hosts);
        let result = results.into_iter().find(|result| result.name == host.name())?;
        let fence = result.fence?;
        let targets = targets(run);
        let is_of_another =
            !targets.is_empty() && targets.get(host.name()).is_none_or(|target| target.uid != claim.uid);
        (!is_of_another).then(|| (fence, result.fence_owner.clone()))
    });
    met.max_by_key(|(fence, _)| *fence)
}

impl<'a> Contradiction<'a> {
    /// What the Host's status says against its spec.
    pub fn find(host: &'a Host) -> Option<Self> {
        let status = host.status.as_ref()?;
        Self::between(host, status.fence?, status.fence_owner.clone())
    }

    /// What this fence says against the Host's spec.
    pub fn between(host: &'a Host, fence: Fence, owner: Option<FenceOwner>) -> Option<Self> {
        let is_another = || {
            let claim = host.spec.claim_ref.as_ref();
            let known = owner.as_ref().and_then(|owner| owner.machine_uid.as_ref());
            known.zip(claim).is_some_and(|(known, claim)| *known != claim.uid)
        };
        let differs = if fence.epoch > host.spec.claim_epoch {
            Differs::Epoch
        } else if fence.epoch == host.spec.claim_epoch && is_another() {
            Differs::Claim
        } else {
            return None;
        };
        Some(Self { host, differs, fence, owner }).filter(Self::is_believed)
    }

    /// What this fence says against the highest token that the store can know of it, where it says nothing against the
    /// claim.
    pub fn of_token(host: &'a Host, fence: Fence, owner: Option<FenceOwner>, known: i64) -> Option<Self> {
        let is_later = fence.epoch == host.spec.claim_epoch && fence.token > known;
        is_later.then_some(Self { host, differs: Differs::Token, fence, owner }).filter(Self::is_believed)
    }

    fn is_believed(&self) -> bool {
        self.fence.epoch < HIGHEST && self.fence.token < HIGHEST
    }

    /// Whether the machine is of this cluster, `NAMESPACE/NAME`, as it says itself.
    pub fn is_of(&self, cluster: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.cluster_path() == cluster)
    }

    /// `h1: its machine was claimed since (epoch 3 of cluster fleet/b, run fleet/b-join-x), here its epoch is 2`.
    pub fn message(&self) -> String {
        let Fence { epoch, token } = self.fence;
        let of = match &self.owner {
            Some(owner) => format!(" of cluster {}, run {}", owner.cluster_path(), owner.run),
            None => String::new(),
        };
        let (name, here) = (self.host.name(), self.host.spec.claim_epoch);
        match self.differs {
            Differs::Epoch => {
                format!("{name}: its machine was claimed since (epoch {epoch}{of}), here its epoch is {here}")
            }
            Differs::Claim => {
                format!("{name}: its machine has another claim of epoch {epoch} than the one here ({}{of})", {
                    let uid = self.owner.as_ref().and_then(|owner| owner.machine_uid.as_deref());
                    format!("Machine UID {}", uid.unwrap_or("unknown"))
                })
            }
            Differs::Token => format!("{name}: a run was there that is not known here (token {token}{of})"),
        }
    }

    /// What an approval is bound to: this machine, and exactly what it says.
    pub fn digest(&self) -> String {
        let owner = self.owner.clone().unwrap_or_default();
        let numbers = format!("{:?} {} {}", self.differs, self.fence.epoch, self.fence.token);
        let machine = owner.machine_uid.as_deref().unwrap_or_default();
        short_hash(&[self.host.uid(), &numbers, &owner.cluster_path(), machine], DIGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::{Contradiction, Differs};
    use crds::Host;

    /// A Host of this epoch, claimed by the Machine of this UID, whose machine says that.
    fn host(epoch: i64, claim: Option<&str>, says: &str) -> Host {
        let claim = claim.map(|uid| format!("claimRef: {{kind: Machine, name: m, uid: {uid}}}, ")).unwrap_or_default();
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h1, uid: h1}}, spec: {{address: 10.0.0.1, \
             {claim}claimEpoch: {epoch}, ssh: {{credentialsRef: {{name: k}}}}}}, status: {{{says}}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    #[test]
    fn a_machine_contradicts_by_a_later_claim_or_another_of_the_same_epoch() {
        let check = |epoch, claim: Option<&str>, says: &str, expected: Option<Differs>| {
            let host = host(epoch, claim, says);
            let found = Contradiction::find(&host).map(|found| found.differs);
            assert_eq!(found, expected, "{epoch} {claim:?} {says}");
        };
        let of_b = "fence: {epoch: 2, token: 7}, fenceOwner: {cluster: b, run: fleet/b-join, machineUID: m2}";
        check(1, Some("m1"), of_b, Some(Differs::Epoch));
        check(1, None, of_b, Some(Differs::Epoch));
        check(2, Some("m1"), of_b, Some(Differs::Claim));
        check(2, Some("m2"), of_b, None);
        // Given back since.
        check(2, None, of_b, None);
        check(3, Some("m1"), of_b, None);
        check(2, Some("m1"), "fence: {epoch: 2, token: 7}, fenceOwner: {cluster: b, run: fleet/b-join}", None);
        check(2, Some("m1"), "fence: {epoch: 0, token: 0}", None);
        check(2, Some("m1"), "message: nothing", None);
        // Nobody was ever claimed so often.
        check(2, Some("m1"), "fence: {epoch: 9007199254740993, token: 7}", None);
    }

    #[test]
    fn an_approval_is_bound_to_what_the_machine_says() {
        let digest = |says: &str| Contradiction::find(&host(1, Some("m1"), says)).unwrap().digest();
        let of_b = digest("fence: {epoch: 2, token: 7}, fenceOwner: {cluster: b, run: fleet/b-join, machineUID: m2}");
        for other in [
            "fence: {epoch: 2, token: 8}, fenceOwner: {cluster: b, run: fleet/b-join, machineUID: m2}",
            "fence: {epoch: 3, token: 7}, fenceOwner: {cluster: b, run: fleet/b-join, machineUID: m2}",
            "fence: {epoch: 2, token: 7}, fenceOwner: {cluster: c, run: fleet/c-join, machineUID: m2}",
            "fence: {epoch: 2, token: 7}, fenceOwner: {cluster: b, run: fleet/b-join, machineUID: m3}",
        ] {
            assert_ne!(digest(other), of_b, "{other}");
        }
    }
}
