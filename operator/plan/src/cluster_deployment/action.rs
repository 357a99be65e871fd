//! What a ClusterDeployment's plan does; each action carries every value that doing it needs.

use std::collections::BTreeMap;

use crds::machine::DrainReason;
use crds::{Addon, Cluster, EtcdBackup, Host, Machine, MachineSet, PlaybookRun};
use jiff::Timestamp;
use serde_json::Value;

use crate::key_transfer::KeyTransfer;
use crate::rotation::{self, Subject};
use crate::store::adoption::Adoption;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put the finalizer on the ClusterDeployment.
    AddFinalizer,
    /// Make the cluster's authorities and keys; nothing else does.
    MakePki {
        /// The fingerprints of those that are taken from the Secret of `certificates.caRef`.
        given: BTreeMap<Subject, String>,
    },
    /// Have the keys of the backup fetched that the cluster begins with.
    FetchKeys(Box<KeyTransfer>),
    /// Make what was fetched the cluster's authorities and keys, unless it has some.
    TakeKeys,
    /// Remove what fetched the keys, and its right to write them.
    DropKeyTransfer,
    /// Make the administrator's kubeconfig for this endpoint.
    MakeKubeconfig {
        /// `https://host:port`.
        endpoint: String,
    },
    /// Do this about a rotation.
    Rotate(rotation::Act),
    /// Apply the Cluster object.
    ApplyCluster(Box<Cluster>),
    /// Delete this very Cluster object: what it says is not the new cluster's.
    DeleteCluster(Box<Cluster>),
    /// Apply the Addon of `spec.addons`.
    ApplyAddon(Box<Addon>),
    /// Delete this very Addon; its objects go with it.
    DeleteAddon(Box<Addon>),
    /// Apply a MachineSet.
    ApplyMachineSet {
        /// Its name.
        name: String,
        /// What is wanted of it.
        object: Value,
    },
    /// Delete this very MachineSet; its Machines go with it.
    DeleteMachineSet(Box<MachineSet>),
    /// Delete this very Machine.
    DeleteMachine(Box<Machine>),
    /// Ask that this very Machine be forgotten although its Host cannot be cleaned.
    ForceRemoveMachine(Box<Machine>),
    /// Write on this very Machine since when it counts as lost, and that it is to be forgotten.
    ForgetMachine {
        /// The Machine.
        machine: Box<Machine>,
        /// Since when.
        since: Timestamp,
    },
    /// Have the Node of this Machine drained for these reasons, if nobody has written the Machine since it was read.
    SetDrainFor {
        /// The Machine, as it was read.
        machine: Box<Machine>,
        /// `spec.drainFor` from now on.
        reasons: Vec<DrainReason>,
    },
    /// Make this run, once.
    CreateRun(Box<PlaybookRun>),
    /// Make this backup, once.
    CreateBackup(Box<EtcdBackup>),
    /// Ask this run to stop.
    CancelRun(Box<PlaybookRun>),
    /// Ask this run to hold before its next step, or no longer to.
    HoldRun {
        /// The run.
        run: Box<PlaybookRun>,
        /// Whether to hold.
        paused: bool,
    },
    /// Delete this run, which is over and which no decision needs any more.
    DeleteRun(Box<PlaybookRun>),
    /// Record on this Host that its machine is fenced, if nobody has written the Host since it was read.
    MarkFenced(Box<Host>),
    /// Make an object say what a machine does, which the metadata cluster is older than.
    Adopt(Adoption),
    /// Let the ClusterDeployment go.
    RemoveFinalizer,
}

impl Action {
    /// Whether it is only right if nothing has changed since what it was decided on was read: caches are not believed.
    pub fn is_irrevocable(&self) -> bool {
        matches!(
            self,
            Action::MakePki { .. }
                | Action::TakeKeys
                | Action::Rotate(_)
                | Action::CreateRun(_)
                | Action::DeleteRun(_)
                | Action::DeleteMachineSet(_)
                | Action::DeleteMachine(_)
                | Action::DeleteAddon(_)
                | Action::DeleteCluster(_)
                | Action::ForceRemoveMachine(_)
                | Action::ForgetMachine { .. }
                | Action::Adopt(_)
                | Action::RemoveFinalizer
        )
    }

    /// Makes this run, once.
    pub(super) fn create(run: PlaybookRun) -> Self {
        Action::CreateRun(Box::new(run))
    }
}
