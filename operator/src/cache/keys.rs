//! What objects are looked up by, apart from their names: so that what belongs together is found without going over
//! the whole namespace.

use crds::names::{condition, label};
use crds::{
    Addon, BackupStorage, Cluster, ClusterAddon, ClusterDeployment, ClusterKind, Conditions, EtcdBackup,
    EtcdBackupSchedule, EtcdRestore, FormerRef, Host, HostPool, KarmadaDeployment, Machine, MachineRequest, MachineSet,
    PlaybookRun, RemediationPolicy,
};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use plan::claims::{identity_keys, is_looking};
use plan::etcd_backup::is_over;
use plan::host::{is_double, is_probe};

/// What several objects of a kind may have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IndexKey {
    /// It is of the ClusterDeployment of this name.
    Cluster(String),
    /// It is of the KarmadaDeployment of this name.
    Plane(String),
    /// It is on the Host of this name, or works there.
    Host(String),
    /// The Machine of this UID holds it.
    Holder(String),
    /// It is of the run of this name.
    Run(String),
    /// Only one machine has this: an address, a host key, a machine-id.
    OneMachine(String),
    /// It is the same machine as another one, as was found last.
    Double,
    /// It is in quarantine.
    Quarantined,
    /// It waits for a Host.
    WaitsForHost,
    /// It goes to the BackupStorage of this name.
    Storage(String),
    /// It has stored a backup of the cluster of this name, good or not.
    Stored(String),
    /// The EtcdBackupSchedule of this name made it.
    Schedule(String),
    /// It takes the EtcdBackup of this name, which is of no ClusterDeployment.
    Backup(String),
    /// It is of the Addon of this name.
    Addon(String),
    /// It is a probe that the operator made.
    Probe,
}

impl From<FormerRef<'_>> for IndexKey {
    fn from(former: FormerRef<'_>) -> Self {
        let name = former.name.to_owned();
        match former.kind {
            ClusterKind::ClusterDeployment => Self::Cluster(name),
            ClusterKind::KarmadaDeployment => Self::Plane(name),
        }
    }
}

/// A kind whose objects are looked up by keys.
pub trait Indexed {
    /// The keys of an object. Each is an entry in the index: few, and none that every object has.
    fn keys(&self) -> Vec<IndexKey> {
        Vec::new()
    }
}

impl Indexed for Addon {}
impl Indexed for Cluster {}
impl Indexed for ClusterDeployment {}
impl Indexed for HostPool {}
impl Indexed for RemediationPolicy {}
impl Indexed for BackupStorage {}
impl Indexed for EtcdBackupSchedule {}
impl Indexed for Job {}
impl Indexed for KarmadaDeployment {}

impl Indexed for Pod {
    fn keys(&self) -> Vec<IndexKey> {
        self.labels().get(label::RUN).cloned().map(IndexKey::Run).into_iter().collect()
    }
}

impl Indexed for Machine {
    fn keys(&self) -> Vec<IndexKey> {
        let cluster = self.spec.former().into();
        let host = self.spec.host_ref.as_ref().map(|host| IndexKey::Host(host.name.clone()));
        [cluster].into_iter().chain(host).chain(is_looking(self).then_some(IndexKey::WaitsForHost)).collect()
    }
}

impl Indexed for EtcdBackup {
    fn keys(&self) -> Vec<IndexKey> {
        let schedule = self.labels().get(label::SCHEDULE).cloned().map(IndexKey::Schedule);
        let goes_on = !is_over(self);
        let cluster = self.spec.cluster_name.clone().filter(|_| goes_on).map(IndexKey::Cluster);
        // What it has stored is removed from there.
        let waits = goes_on || self.metadata.deletion_timestamp.is_some();
        let storage = waits.then(|| IndexKey::Storage(self.spec.storage_ref.name.clone()));
        let has_stored = self.status.as_ref().is_some_and(|status| status.backup.is_some());
        let stored = self.spec.cluster_name.clone().filter(|_| has_stored).map(IndexKey::Stored);
        [schedule, cluster, storage, stored].into_iter().flatten().collect()
    }
}

impl Indexed for ClusterAddon {
    fn keys(&self) -> Vec<IndexKey> {
        let spec = &self.spec;
        vec![IndexKey::Cluster(spec.cluster_ref.name.clone()), IndexKey::Addon(spec.addon_ref.name.clone())]
    }
}

impl Indexed for EtcdRestore {
    fn keys(&self) -> Vec<IndexKey> {
        self.spec.cluster_name.clone().map(IndexKey::Cluster).into_iter().collect()
    }
}

impl Indexed for MachineRequest {
    fn keys(&self) -> Vec<IndexKey> {
        vec![IndexKey::Cluster(self.spec.cluster_name.clone())]
    }
}

impl Indexed for MachineSet {
    fn keys(&self) -> Vec<IndexKey> {
        let cluster = self.spec.former().into();
        let lacks = self.condition(condition::HOSTS_AVAILABLE).is_some_and(|hosts| hosts.status == "False");
        [cluster].into_iter().chain(lacks.then_some(IndexKey::WaitsForHost)).collect()
    }
}

impl Indexed for PlaybookRun {
    fn keys(&self) -> Vec<IndexKey> {
        let cluster = self.spec.former().map(IndexKey::from);
        let hosts = self.spec.hosts.iter().cloned().map(IndexKey::Host);
        let is_of_cluster = self.spec.former().and_then(FormerRef::deployment).is_some();
        let backup = self.spec.backup_ref.as_ref().filter(|_| !is_of_cluster);
        let backup = backup.map(|backup| IndexKey::Backup(backup.name.clone()));
        cluster.into_iter().chain(hosts).chain(backup).chain(is_probe(self).then_some(IndexKey::Probe)).collect()
    }
}

impl Indexed for Host {
    fn keys(&self) -> Vec<IndexKey> {
        let holder = self.spec.claim_ref.as_ref().map(|claim| IndexKey::Holder(claim.uid.clone()));
        let quarantined = self.spec.quarantine.is_some().then_some(IndexKey::Quarantined);
        let double = is_double(self).then_some(IndexKey::Double);
        let own = identity_keys(self).into_iter().map(IndexKey::OneMachine);
        own.chain(holder).chain(quarantined).chain(double).collect()
    }
}
