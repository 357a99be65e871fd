//! What the planner of KarmadaDeployments answers.

use std::collections::BTreeMap;

use crds::cluster_addon::AppliedObject;
use crds::{Cluster, EtcdBackup, KarmadaDeploymentStatus};

use super::etcd::EtcdAct;
use super::leaves::LeafWanted;
use super::machines::Act;
use super::members;
use super::place::{Manifest, Place};
use crate::Plan;
use crate::cluster_addon::Deletion;
use crate::key_transfer::KeyTransfer;
use crate::rotation::{self, Subject};

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put the finalizer on the KarmadaDeployment.
    AddFinalizer,
    /// Make the authorities and keys of `pki::TABLE` in the Secret `<name>-pki`.
    MakeKeys {
        /// The fingerprints of those that the owner brings.
        given: BTreeMap<Subject, String>,
    },
    /// Do this about a rotation.
    Rotate(rotation::Act),
    /// Make what fetches the keys of the backup that the plane begins with.
    FetchKeys(Box<KeyTransfer>),
    /// Make the Secret `<name>-pki` of the keys that were fetched, unless there is one.
    TakeKeys,
    /// Remove what fetches the keys, what it may do, and what it has written.
    DropKeyTransfer,
    /// Make these certificates, or keep those that still do, and no others, in the Secret `<name>-certificates`.
    IssueCertificates(Vec<LeafWanted>),
    /// Make the administrator's kubeconfig for this server in the Secret `<name>-kubeconfig`.
    MakeKubeconfig {
        /// `https://host:port`.
        server: String,
    },
    /// Apply an object by server-side apply.
    Apply {
        /// Where.
        place: Place,
        /// Its place among the objects of `wanted()` there.
        index: usize,
        /// The object.
        object: AppliedObject,
        /// What is applied.
        manifest: Box<Manifest>,
        /// Whether fields are taken over from others.
        force: bool,
    },
    /// Delete an object.
    Delete {
        /// Where.
        place: Place,
        /// Which.
        deletion: Deletion,
    },
    /// Apply the template of the probe with a new value.
    Probe(Box<Manifest>),
    /// Do this about the members of etcd, where it is in Pods.
    Etcd(EtcdAct),
    /// Apply the Cluster that stands for the plane in the namespace of the KarmadaDeployment.
    ApplyCluster(Box<Cluster>),
    /// Do this about the machines of the plane.
    Machines(Act),
    /// Do this for a member. A failure is the member's: it goes into its `failure`, nothing further is done for it in
    /// this pass, and all else goes on.
    Member(members::Action),
    /// Create this backup, unless it is there already.
    CreateBackup(Box<EtcdBackup>),
    /// Take the finalizer away.
    RemoveFinalizer,
}

/// The plan of a KarmadaDeployment.
pub type Planned = Plan<Action, KarmadaDeploymentStatus>;
