//! What the controller of Hosts writes.

use super::super::world::World;
use crate::host::Action;

impl World {
    pub(in super::super) fn apply_to_host(&mut self, action: Action) {
        match action {
            Action::Probe(run) => self.create_run(*run),
            Action::Forget(run) => self.delete_run(&run),
            Action::SetIdentity { host, identity } => {
                self.change_host(&host, |live| live.spec.identity = Some(identity));
            }
            Action::RaiseEpoch { host, epoch } => self.change_host(&host, |live| live.spec.claim_epoch = epoch),
            Action::EndQuarantine(host) => self.change_host(&host, |live| {
                (live.spec.quarantine, live.spec.identity) = (None, None);
            }),
            Action::ReleaseClaim { host, finalizers, quarantine } => self.change_host(&host, |live| {
                (live.spec.claim_ref, live.spec.identity) = (None, None);
                live.spec.quarantine = Some(quarantine);
                live.metadata.finalizers = Some(finalizers);
            }),
        }
    }
}
