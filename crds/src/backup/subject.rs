//! What a backup is of, as messages say it.

use super::BackupManifest;
use crate::etcd_backup::EtcdBackupSpec;

impl BackupManifest {
    /// `cluster paris`, `KarmadaDeployment k1` or `an etcd without a cluster`.
    pub fn subject(&self) -> String {
        let plane = self.karmada_deployment.as_ref().map(|plane| plane.name.as_str());
        subject(Some(self.cluster.as_str()).filter(|name| !name.is_empty()), plane)
    }
}

impl EtcdBackupSpec {
    /// `cluster paris`, `KarmadaDeployment k1` or `an etcd without a cluster`.
    pub fn subject(&self) -> String {
        let plane = self.karmada_deployment_ref.as_ref().map(|plane| plane.name.as_str());
        subject(self.cluster_name.as_deref(), plane)
    }
}

fn subject(cluster: Option<&str>, plane: Option<&str>) -> String {
    match (cluster, plane) {
        (Some(cluster), _) => format!("cluster {cluster}"),
        (None, Some(plane)) => format!("KarmadaDeployment {plane}"),
        (None, None) => "an etcd without a cluster".to_owned(),
    }
}
