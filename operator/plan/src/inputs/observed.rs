//! What a model is built from.

use std::collections::BTreeMap;

use crds::karmada_deployment::PlaneBinary;
use crds::{
    BackupStorage, ClusterDeployment, EtcdBackup, EtcdRestore, Host, KarmadaDeployment, Machine, ObjectExt, PlaybookRun,
};
use k8s_openapi::api::core::v1::Secret;

use super::artifacts;
use super::credential::Credentials;
use super::registries::Registries;
use super::storage::StorageSeen;
use crate::addon::Problem;
use crate::hooks::Library;
use crate::rotation::Authorities;

/// What a model is built from.
#[derive(Clone, Copy, Debug)]
pub struct InputsObserved<'a> {
    /// The run.
    pub run: &'a PlaybookRun,
    /// Its cluster, where that is one of Kubernetes; none for a probe.
    pub cluster: Option<&'a ClusterSeen<'a>>,
    /// The plane on whose machines it works; none: it is no plane's.
    pub plane: Option<&'a PlaneMachines<'a>>,
    /// Hosts of the namespace, by name: those of the run, of the cluster's machines, and their bastions.
    pub hosts: &'a BTreeMap<String, Host>,
    /// What the Secrets hold that the run's Hosts refer to, by name.
    pub credentials: &'a Credentials,
    /// The ConfigMap of the run's `playbooksRef`; none: it names none.
    pub library: Option<&'a Library>,
    /// What its `backupRef` leads to; none: nothing is there, or it has none.
    pub backup: Option<&'a BackupSeen>,
    /// What its `restoreRef`, or what its cluster or plane begins with, leads to; none: nothing is there, or it has
    /// none.
    pub restore: Option<&'a RestoreSeen>,
}

impl<'a> InputsObserved<'a> {
    /// Whose machines the run works on.
    pub(super) fn formed(&self) -> Option<Formed<'a>> {
        self.cluster.map(Formed::Cluster).or(self.plane.map(Formed::Plane))
    }
}

/// Whose machines a run works on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Formed<'a> {
    /// A cluster of Kubernetes.
    Cluster(&'a ClusterSeen<'a>),
    /// A Karmada control plane on machines.
    Plane(&'a PlaneMachines<'a>),
}

impl<'a> Formed<'a> {
    /// Its machines.
    pub fn machines(self) -> &'a [Machine] {
        match self {
            Self::Cluster(cluster) => &cluster.machines,
            Self::Plane(plane) => &plane.machines,
        }
    }

    /// UID of what forms it.
    pub fn uid(self) -> &'a str {
        match self {
            Self::Cluster(cluster) => cluster.deployment.uid(),
            Self::Plane(plane) => plane.object.uid(),
        }
    }
}

/// A plane on machines, as far as its runs must know it.
#[derive(Clone, Debug)]
pub struct PlaneMachines<'a> {
    /// The KarmadaDeployment.
    pub object: &'a KarmadaDeployment,
    /// What it says of its machines.
    pub binary: &'a PlaneBinary,
    /// Its machines.
    pub machines: Vec<Machine>,
    /// What the references of `binary.artifacts` lead to.
    pub artifacts: artifacts::ArtifactsSeen,
}

impl PlaneMachines<'_> {
    /// Whether its etcd has begun.
    pub(super) fn is_installed(&self) -> bool {
        self.object.status.as_ref().is_some_and(|status| status.first_installed_at.is_some())
    }
}

/// A cluster, as far as its runs must know it.
#[derive(Clone, Debug)]
pub struct ClusterSeen<'a> {
    /// The ClusterDeployment.
    pub deployment: &'a ClusterDeployment,
    /// Its machines.
    pub machines: Vec<Machine>,
    /// `sha256:<hex>` of the public key of the certificate authority, once there is one.
    pub ca_cert_hash: Option<String>,
    /// Its authorities and keys, as far as everybody may know of them.
    pub authorities: Authorities,
    /// Digest of the certificates in the Secret of `etcd.secretRef`; none: etcd is not external, or the run needs none.
    pub etcd_client: Option<String>,
    /// What the references of `artifacts` lead to.
    pub artifacts: artifacts::ArtifactsSeen,
    /// What the references of `containerRuntime.registryMirrors` lead to.
    pub registries: Registries,
    /// Data of the ConfigMap of `networking.plugin.manifestsRef`.
    pub network_manifests: BTreeMap<String, String>,
    /// The files that the configuration of a control plane refers to, by their keys.
    pub configuration_files: BTreeMap<String, String>,
}

/// What a run's `backupRef` leads to.
#[derive(Clone, Debug)]
pub struct BackupSeen {
    /// The EtcdBackup.
    pub backup: EtcdBackup,
    /// Its BackupStorage, if it is there.
    pub storage: Option<BackupStorage>,
    /// What the references of that lead to.
    pub seen: StorageSeen,
    /// Its KarmadaDeployment, if it has one that is there.
    pub plane: Option<PlaneSeen>,
    /// The Secret by which an etcd is read that is on no machine of the cluster, if it is there.
    pub etcd_client: Option<Secret>,
}

/// A plane whose etcd is backed up.
#[derive(Clone, Debug)]
pub struct PlaneSeen {
    /// The KarmadaDeployment.
    pub object: KarmadaDeployment,
    /// Whether the Secret with its authorities and keys is there.
    pub has_keys: bool,
    /// Why its host, whose API forwards ports of etcd's Pods, is not asked; none: it is, or need not be.
    pub host_problem: Option<Problem>,
}

/// What a run's `restoreRef` leads to; or, of an install that brings a backup, what its cluster or plane begins with.
#[derive(Clone, Debug)]
pub struct RestoreSeen {
    /// The EtcdRestore; none for an install.
    pub restore: Option<EtcdRestore>,
    /// The EtcdBackup of its source, if it names one that is there.
    pub backup: Option<EtcdBackup>,
    /// The BackupStorage that the source is in, if it is there.
    pub storage: Option<BackupStorage>,
    /// What the references of that lead to.
    pub seen: StorageSeen,
    /// The Secret of `identityRef`, if it is there.
    pub identity: Option<Secret>,
}
