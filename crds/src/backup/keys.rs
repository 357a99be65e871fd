//! What a Pod that fetched the keys of a backup says of it: the JSON of its termination message.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::KubernetesVersion;

/// What came of it: `backup`, or `reason` and `message`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct KeysFetched {
    /// The backup whose keys are in the Secret now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<FetchedBackup>,
    /// Why they are not, in CamelCase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why not, in one sentence that says what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A backup, and what of its cluster the data in it depends on.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FetchedBackup {
    /// Name of the EtcdBackup.
    pub backup: String,
    /// Name of the cluster; empty for a plane.
    #[serde(default)]
    pub cluster: String,
    /// UID of its ClusterDeployment; empty for a plane.
    #[serde(default, rename = "clusterUID")]
    pub cluster_uid: String,
    /// The plane that was backed up; none: it is of a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plane: Option<FetchedPlane>,
    /// Its directory in the storage, below the prefix.
    pub location: String,
    /// When it was begun.
    pub taken_at: Time,
    /// Every write up to this revision is in it.
    pub revision: i64,
    /// Bytes of the snapshot.
    pub size: i64,
    /// SHA-256 of the snapshot, hexadecimal.
    pub sha256: String,
    /// etcd's version.
    pub etcd_version: String,
    /// The version of Kubernetes that the cluster ran, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<KubernetesVersion>,
    /// `spec.networking.podCIDR` of its ClusterDeployment; empty for a plane.
    #[serde(default, rename = "podCIDR")]
    pub pod_cidr: String,
    /// `spec.networking.serviceCIDR`; empty for a plane.
    #[serde(default, rename = "serviceCIDR")]
    pub service_cidr: String,
    /// `spec.networking.dnsDomain`, or `spec.hostDNSDomain` of a plane.
    pub dns_domain: String,
}

/// A plane that was backed up.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FetchedPlane {
    /// Name of its KarmadaDeployment.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The version of Karmada that all its components had last, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// `status.endpoint`, the URL of its API server, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::KeysFetched;

    #[test]
    fn what_a_newer_executor_says_beside_it_is_passed_over() {
        let text = r#"{"backup": {"backup": "b", "cluster": "c", "clusterUID": "u", "location": "c/u/1",
            "takenAt": "2026-11-23T10:00:00Z", "revision": 7, "size": 9, "sha256": "a0", "etcdVersion": "3.6.16",
            "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16", "dnsDomain": "cluster.local", "new": 1}, "new": 1}"#;
        let fetched: KeysFetched = serde_json::from_str(text).unwrap();
        assert_eq!(fetched.backup.unwrap().pod_cidr, "10.0.0.0/16");
        assert_eq!(serde_json::from_str::<KeysFetched>("{}").unwrap(), KeysFetched::default());
    }
}
