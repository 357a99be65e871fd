//! Forgotten: machines that were removed without reaching them, and whose members of etcd nobody has taken out. They
//! count as members until that is done.

use crds::Machine;
use crds::cluster_deployment::ForgottenMachine;

use super::EtcdMembership;
use super::health::is_provisioned;
use super::history::{has_succeeded, leaves};
use crate::attempts;

impl<'a> EtcdMembership<'a> {
    /// Machines that are gone and that may still be members of etcd.
    pub fn forgotten(&self) -> Vec<&'a ForgottenMachine> {
        let written = self.cluster.forgotten.iter();
        let is_owed =
            |one: &&ForgottenMachine| one.etcd_member && !self.is_there(&one.uid) && !self.is_out_of_etcd(one);
        written.filter(is_owed).collect()
    }

    /// Those of them that etcd counts, for all that is known.
    pub fn forgotten_members(&self) -> Vec<&'a ForgottenMachine> {
        let mut forgotten = self.forgotten();
        forgotten.retain(|one| one.provisioned);
        forgotten
    }

    /// Whether it is no member of etcd any more: a run took it out, or made another one the only member, or what has
    /// its name there is another Machine's.
    pub fn is_out_of_etcd(&self, forgotten: &ForgottenMachine) -> bool {
        let removed = self.runs.iter().any(|run| leaves(run) == Some(&forgotten.uid) && has_succeeded(run));
        let recovered = || {
            self.recoveries().any(|run| {
                let survives = attempts::is_about(run, &forgotten.uid);
                !survives && attempts::ended_at(run) >= Some(forgotten.since.0)
            })
        };
        let followed = |machine: &&Machine| {
            let named = machine.spec.host_ref.as_ref();
            self.is_of_etcd(machine)
                && is_provisioned(machine)
                && machine.metadata.uid.as_ref() != Some(&forgotten.uid)
                && named.is_some_and(|named| named.name == forgotten.host)
        };
        removed || recovered() || self.machines.iter().any(followed)
    }

    /// Why it is not taken out of etcd now.
    pub fn why_it_stays(&self, forgotten: &ForgottenMachine) -> Option<String> {
        if self.cluster.is_paused {
            return Some("the cluster is paused".into());
        }
        let without = || {
            let (members, mut gone) = (self.members(), self.forgotten_members());
            gone.retain(|other| other.uid != forgotten.uid);
            self.quorum_risk(&members, &gone, "without it")
        };
        self.run_in_the_way(None).or_else(without)
    }

    /// Whether it was known to work: by its node, or, where there was none, for all that is known. etcd is asked once
    /// more in any case.
    pub(super) fn was_healthy(&self, forgotten: &ForgottenMachine) -> bool {
        forgotten.node_ready || !self.cluster.is_node(forgotten.role)
    }

    fn is_there(&self, uid: &str) -> bool {
        let mut machines = self.machines.iter();
        machines.any(|machine| machine.metadata.uid.as_deref() == Some(uid))
    }
}

/// What it is called: `forgotten machine prod-a-control-plane-x7k2 (rack3-node07)`.
pub(crate) fn title(forgotten: &ForgottenMachine) -> String {
    format!("forgotten machine {} ({})", forgotten.machine, forgotten.host)
}
