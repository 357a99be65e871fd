//! What the guards of a plane's machines know, and what the metadata cluster learns of it: also once that was set back
//! to an older state.

use crds::playbook_run::{Fence, FenceOwner};
use crds::{Conditions, KarmadaDeployment, ObjectExt, PlaybookRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::fleet::Fleet;
use crate::store::adoption::Adoption;

impl Fleet {
    /// The objects are as they were then; the machines are as they are. Somebody takes the metadata cluster up.
    pub fn set_back(&mut self, then: &Self, now: jiff::Timestamp) {
        (self.hosts, self.sets) = (then.hosts.clone(), then.sets.clone());
        (self.machines, self.runs) = (then.machines.clone(), then.runs.clone());
        self.resumed_at = Some(now);
    }

    fn is_reached(&self, host: &str) -> bool {
        !self.dead.contains(host) && !self.denied.contains_key(host)
    }

    /// A run comes to its machines: the guard of each lets it in.
    pub(super) fn pass_guards(&mut self, run: &PlaybookRun, token: i64, object: &KarmadaDeployment) {
        let compared_since = object.status.as_ref().and_then(|status| status.comparisons.last()).map(|one| &one.since);
        let reached: Vec<&String> = run.spec.hosts.iter().filter(|name| self.is_reached(name)).collect();
        for name in reached {
            let host = self.hosts.iter().find(|host| host.name() == name).unwrap();
            let fence = Fence { epoch: host.spec.claim_epoch, token };
            let owner = FenceOwner {
                cluster: object.name().to_owned(),
                run: format!("fleet/{}", run.name()),
                machine_uid: host.spec.claim_ref.as_ref().map(|claim| claim.uid.clone()),
                compared_since: compared_since.cloned(),
            };
            if let Some((known, of)) = self.guards.get(name) {
                let both = of.machine_uid.as_ref().zip(owner.machine_uid.as_ref());
                let is_other = known.epoch == fence.epoch && both.is_some_and(|(one, other)| one != other);
                assert!(fence > *known && !is_other, "the guard of {name} knows {known:?} of {of:?}: {}", run.name());
            }
            self.guards.insert(name.clone(), (fence, owner));
        }
    }

    /// Each Host is probed once since then, and one that did not answer again and again.
    pub(super) fn probe_hosts(&mut self) {
        let Some(resumed_at) = self.resumed_at else { return };
        let reached: Vec<bool> = self.hosts.iter().map(|host| self.is_reached(host.name())).collect();
        for (host, is_reached) in self.hosts.iter_mut().zip(reached) {
            let was_asked =
                host.status.as_ref().and_then(|status| status.asked_since.clone()) == Some(Time(resumed_at));
            if was_asked && (!is_reached || host.is_true("Reachable")) {
                continue;
            }
            let known = self.guards.get(host.name()).cloned().unwrap_or_default();
            let (fence, owner) = known;
            let owner = Some(owner).filter(|owner| !owner.run.is_empty());
            let reachable = json!({ "type": "Reachable", "status": if is_reached { "True" } else { "False" }, "reason": "Seen", "message": "", "lastTransitionTime": resumed_at });
            let status = host.status.get_or_insert_default();
            status.asked_since = Some(Time(resumed_at));
            status.conditions = vec![serde_json::from_value(reachable).unwrap()];
            if is_reached {
                (status.fence, status.fence_owner) = (Some(fence), owner);
            }
        }
    }

    pub(super) fn adopt(&mut self, adoption: &Adoption) {
        match adoption {
            Adoption::DeleteMachine(machine) => self.delete(machine.name()),
            Adoption::RaiseEpoch { host, epoch } => {
                let live = self.hosts.iter_mut().find(|live| live.name() == host.name());
                live.unwrap().spec.claim_epoch = *epoch;
            }
            Adoption::ReleaseClaim { host, epoch, quarantine, .. } => {
                let live = self.hosts.iter_mut().find(|live| live.name() == host.name()).unwrap();
                (live.spec.claim_ref, live.spec.claim_epoch) = (None, *epoch);
                live.spec.quarantine = Some(*quarantine.clone());
            }
        }
    }
}
