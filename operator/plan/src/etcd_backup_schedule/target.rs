//! What a schedule backs up: a cluster, a plane, or an etcd without either.

use crds::{ClusterDeployment, KarmadaDeployment, ObjectExt, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::karmada_deployment::backup_source;
use crate::lifecycle;

/// The name, and the UID, of an etcd without a cluster: a schedule has one.
const ETCD: &str = "etcd";

/// What is backed up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    Cluster(&'a ClusterDeployment),
    Plane(&'a KarmadaDeployment),
    Etcd,
}

impl<'a> Target<'a> {
    /// As the status of the schedule lists it.
    pub fn name(self) -> &'a str {
        match self {
            Self::Cluster(deployment) => deployment.name(),
            Self::Plane(plane) => plane.name(),
            Self::Etcd => ETCD,
        }
    }

    /// What tells its backups from others.
    pub fn uid(self) -> &'a str {
        match self {
            Self::Cluster(deployment) => deployment.uid(),
            Self::Plane(plane) => plane.uid(),
            Self::Etcd => ETCD,
        }
    }

    /// From when on it is there to be backed up, if that is known.
    pub fn since(self) -> Option<&'a Time> {
        match self {
            Self::Cluster(deployment) => deployment.status.as_ref()?.installed_at.as_ref(),
            Self::Plane(plane) => plane.created_at(),
            Self::Etcd => None,
        }
    }

    /// Why it cannot be backed up; none: it can.
    pub fn excluded(self) -> Option<(Reason, String)> {
        let is_installed = match self {
            Self::Cluster(deployment) => lifecycle::is_installed(deployment),
            Self::Plane(plane) => backup_source::is_installed(plane),
            Self::Etcd => true,
        };
        (!is_installed).then(|| (Reason::NotInstalled, format!("{} is not installed yet", self.said())))
    }

    /// In a message: `cluster paris`.
    pub fn said(self) -> String {
        match self {
            Self::Cluster(deployment) => format!("cluster {}", deployment.name()),
            Self::Plane(plane) => format!("plane {}", plane.name()),
            Self::Etcd => "the etcd".to_owned(),
        }
    }
}
