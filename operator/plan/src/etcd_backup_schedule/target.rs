//! What a schedule backs up: a cluster, or an etcd without one.

use crds::{ClusterDeployment, ObjectExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The name, and the UID, of an etcd without a cluster: a schedule has one.
const ETCD: &str = "etcd";

/// What is backed up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    Cluster(&'a ClusterDeployment),
    Etcd,
}

impl<'a> Target<'a> {
    /// As the status of the schedule lists it.
    pub fn name(self) -> &'a str {
        match self {
            Self::Cluster(deployment) => deployment.name(),
            Self::Etcd => ETCD,
        }
    }

    /// What tells its backups from others.
    pub fn uid(self) -> &'a str {
        match self {
            Self::Cluster(deployment) => deployment.uid(),
            Self::Etcd => ETCD,
        }
    }

    /// The cluster; none where there is none.
    pub fn cluster(self) -> Option<&'a ClusterDeployment> {
        match self {
            Self::Cluster(deployment) => Some(deployment),
            Self::Etcd => None,
        }
    }

    /// From when on it is there to be backed up, if that is known.
    pub fn since(self) -> Option<&'a Time> {
        self.cluster()?.status.as_ref()?.installed_at.as_ref()
    }

    /// In a message: `cluster paris`.
    pub fn said(self) -> String {
        match self {
            Self::Cluster(deployment) => format!("cluster {}", deployment.name()),
            Self::Etcd => "the etcd".to_owned(),
        }
    }
}
