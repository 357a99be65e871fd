//! What the controller of Machines writes, to the metadata cluster and to the Machine's own.

use crds::ObjectExt;
use crds::names::finalizer;
use crds::references::LocalRef;

use super::super::world::World;
use crate::machine::Action;

impl World {
    pub(super) fn apply_to_machine(&mut self, uid: &str, action: Action) {
        let cluster = self.machine_with(uid).map(|machine| machine.spec.cluster_name.clone());
        let cluster = cluster.unwrap_or_default();
        match action {
            Action::AddFinalizer => {
                if let Some(machine) = self.machine_with(uid) {
                    machine.metadata.finalizers = Some(vec![finalizer::MACHINE.into()]);
                }
            }
            Action::Claim { host, claim, epoch, identity, finalizers } => self.change_host(&host, |live| {
                (live.spec.identity, live.spec.claim_ref, live.spec.claim_epoch) = (identity, Some(claim), epoch);
                live.metadata.finalizers = Some(finalizers);
            }),
            Action::SetHost(host) => self.set_host(uid, host),
            Action::ApplyNode { write, .. } => self.apply_to_node(&cluster, &write),
            Action::Cordon { node, uid, .. } => self.cordon(&cluster, &node, &uid),
            Action::Uncordon { node, uid, .. } => self.uncordon(&cluster, &node, &uid),
            Action::Evict { pods, .. } => self.evict(&cluster, &pods),
            Action::DeleteNode { node, .. } => {
                self.check_node_may_go(&cluster, &node);
                self.delete_node(&cluster, &node);
            }
            Action::Release { host, finalizers, quarantine, identity } => {
                self.check_release(&cluster, &host, quarantine.as_ref());
                self.change_host(&host, |live| {
                    (live.spec.claim_ref, live.spec.identity) = (None, identity);
                    live.spec.quarantine = quarantine.or(live.spec.quarantine.take());
                    live.metadata.finalizers = Some(finalizers);
                });
            }
            Action::RemoveFinalizer => self.machines.retain(|machine| machine.uid() != uid),
        }
    }

    /// As in one reconcile: what follows a refused claim is not carried out.
    fn set_host(&mut self, uid: &str, host: LocalRef) {
        let claim = self.host(&host.name).and_then(|live| live.spec.claim_ref.as_ref());
        let is_held = claim.is_some_and(|claim| claim.uid == uid);
        if let Some(machine) = self.machine_with(uid).filter(|_| is_held) {
            machine.spec.host_ref.get_or_insert(host);
        }
    }
}
