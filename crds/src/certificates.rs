//! Certificates of a cluster as its machines show them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Certificates that a machine tells of, at most.
pub const MOST_CERTIFICATES: usize = 24;
/// The longest common name of an issuer that is shown, in characters.
pub const ISSUER_LIMIT: usize = 64;

/// Who renews a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewer {
    /// A run of intent Renew.
    Run,
    /// The kubelet that presents it, by a request to the cluster.
    Kubelet,
    /// The process that serves it, whenever it starts: it is its own authority, and nobody verifies it.
    Process,
    /// Nobody: it is an authority.
    Nobody,
}

/// The certificates that a machine may tell of, as kubeadm names them where it does, and who renews each.
pub const CERTIFICATES: [(&str, Renewer); 18] = [
    ("apiserver", Renewer::Run),
    ("apiserver-kubelet-client", Renewer::Run),
    ("apiserver-etcd-client", Renewer::Run),
    ("front-proxy-client", Renewer::Run),
    ("admin.conf", Renewer::Run),
    ("super-admin.conf", Renewer::Run),
    ("controller-manager.conf", Renewer::Run),
    ("scheduler.conf", Renewer::Run),
    ("etcd-server", Renewer::Run),
    ("etcd-peer", Renewer::Run),
    ("etcd-healthcheck-client", Renewer::Run),
    ("kubelet.conf", Renewer::Kubelet),
    ("kubelet-serving", Renewer::Process),
    ("controller-manager-serving", Renewer::Process),
    ("scheduler-serving", Renewer::Process),
    ("kubernetes-ca", Renewer::Nobody),
    ("front-proxy-ca", Renewer::Nobody),
    ("etcd-ca", Renewer::Nobody),
];

/// Who renews the certificate of this name; none: no machine tells of such a one.
pub fn renewer(name: &str) -> Option<Renewer> {
    CERTIFICATES.iter().find(|(known, _)| *known == name).map(|(_, renewer)| *renewer)
}

/// A certificate as a machine shows it: the one that is served where something serves it, and the one in its file
/// elsewhere. The machine says so, hostile until checked.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSeen {
    /// As kubeadm names it: `apiserver`, `front-proxy-client`, `admin.conf`, `etcd-server`; authorities are
    /// `kubernetes-ca`, `front-proxy-ca` and `etcd-ca`, and what a process made for itself ends with `-serving`.
    #[schemars(length(max = 48))]
    pub name: String,
    /// When it ends.
    pub expires_at: Time,
    /// Common name of its issuer; absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub issuer: Option<String>,
    /// True: its file holds another one by now, which the process that uses it has not read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outdated: bool,
}
