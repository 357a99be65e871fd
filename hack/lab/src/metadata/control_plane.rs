//! The metadata cluster's control plane: four programs on the host.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::Metadata;
use super::pki::SERVICE_NETWORK;
use crate::command::Invocation;
use crate::network::HOST_ADDRESS;
use crate::place::write;
use crate::processes::{self, Daemon};

/// The names of its processes, in the order of their start.
pub(super) const PROCESSES: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// How long a Pod stays on a node that is gone. Kubernetes' own five minutes would make each test of a lost node as
/// long.
const TOLERATION_SECONDS: u32 = 30;

/// How long a snapshot, or setting it back, may take.
const RESTORE: Duration = Duration::from_secs(60);

const AUDIT_POLICY_FILE: &str = "policy.yaml";
/// What ServiceAccounts ask for is written down, without what they send or get; those of Kubernetes' own controllers
/// apart.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, userGroups: ['system:serviceaccounts:kube-system']}
- {level: Metadata, userGroups: ['system:serviceaccounts']}
- {level: None}
";
/// So much of it is kept: this many files of this many megabytes.
const AUDIT_FILES: u32 = 8;
const AUDIT_MEGABYTES: u32 = 64;

/// Starts etcd and the API server and waits until the API is ready; then starts what works through it.
pub(super) fn start(metadata: &Metadata) -> Result<()> {
    start_one(metadata, "etcd", etcd(metadata))?;
    write(&metadata.audit().join(AUDIT_POLICY_FILE), AUDIT_POLICY)?;
    // The API server waits for etcd by itself.
    start_one(metadata, "kube-apiserver", apiserver(metadata))?;
    metadata.wait_for("kube-apiserver", "the API to be ready", || metadata.kubectl(["get", "--raw", "/readyz"]))?;
    start_one(metadata, "kube-controller-manager", controller_manager(metadata))?;
    start_one(metadata, "kube-scheduler", scheduler(metadata))?;
    // What kubeadm does after its start: its API server's client certificate for kubelets is of this group.
    let binding = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: 'kubeadm:cluster-admins'}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'kubeadm:cluster-admins'}]
";
    metadata.apply(binding).context("failed to let the API server ask kubelets")
}

/// Saves a snapshot of etcd.
pub(super) fn snapshot(metadata: &Metadata, file: &Path) -> Result<()> {
    let pki = |name: &str| self::file(metadata, name);
    Invocation::new(metadata.programs.find("etcdctl")?)
        .args(options([
            ("endpoints", format!("https://{HOST_ADDRESS}:2379")),
            ("cacert", pki("etcd/ca.crt")),
            ("cert", pki("apiserver-etcd-client.crt")),
            ("key", pki("apiserver-etcd-client.key")),
        ]))
        .args(["snapshot".into(), "save".into(), file.display().to_string()])
        .within(RESTORE)
        .run()
        .map(drop)
        .context("failed to save a snapshot of the metadata cluster")
}

/// Stops all of it, sets etcd back to a snapshot, and starts all of it.
pub(super) fn set_back(metadata: &Metadata, file: &Path) -> Result<()> {
    for name in PROCESSES.iter().rev() {
        processes::stop(&metadata.place, name)?;
    }
    let data = metadata.directory().join("etcd");
    fs::remove_dir_all(&data).with_context(|| format!("failed to remove {}", data.display()))?;
    let peers = format!("https://{HOST_ADDRESS}:2380");
    Invocation::new(metadata.programs.find("etcdutl")?)
        .args(["snapshot".to_owned(), "restore".to_owned(), file.display().to_string()])
        .args(options([
            ("name", "metadata".into()),
            ("data-dir", data.display().to_string()),
            ("initial-cluster", format!("metadata={peers}")),
            ("initial-advertise-peer-urls", peers),
            // No watch goes on with what was.
            ("bump-revision", "1000000000".into()),
            ("mark-compacted", "true".into()),
        ]))
        .within(RESTORE)
        .run()
        .context("failed to set the metadata cluster's etcd back")?;
    start(metadata)
}

fn start_one(metadata: &Metadata, name: &str, args: Vec<String>) -> Result<()> {
    let program = metadata.programs.find(name)?;
    Daemon::new(name, program).args(args).within(&metadata.daemons()).start(&metadata.place)?;
    Ok(())
}

fn file(metadata: &Metadata, name: &str) -> String {
    metadata.pki.file(name).display().to_string()
}

fn options<const N: usize>(pairs: [(&str, String); N]) -> Vec<String> {
    pairs.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

fn etcd(metadata: &Metadata) -> Vec<String> {
    let pki = |name: &str| file(metadata, name);
    let peers = format!("https://{HOST_ADDRESS}:2380");
    let clients = format!("https://{HOST_ADDRESS}:2379");
    let data: PathBuf = metadata.directory().join("etcd");
    options([
        ("name", "metadata".into()),
        ("data-dir", data.display().to_string()),
        ("listen-client-urls", clients.clone()),
        ("advertise-client-urls", clients),
        ("listen-peer-urls", peers.clone()),
        ("initial-advertise-peer-urls", peers.clone()),
        ("initial-cluster", format!("metadata={peers}")),
        ("cert-file", pki("etcd/server.crt")),
        ("key-file", pki("etcd/server.key")),
        ("trusted-ca-file", pki("etcd/ca.crt")),
        ("client-cert-auth", "true".into()),
        ("peer-cert-file", pki("etcd/peer.crt")),
        ("peer-key-file", pki("etcd/peer.key")),
        ("peer-trusted-ca-file", pki("etcd/ca.crt")),
        ("peer-client-cert-auth", "true".into()),
        // A lab is made anew and not restored: its data need not survive a power loss, and the disk is shared by many.
        ("unsafe-no-fsync", "true".into()),
        ("log-level", "warn".into()),
    ])
}

fn apiserver(metadata: &Metadata) -> Vec<String> {
    let pki = |name: &str| file(metadata, name);
    let audit = |name: &str| metadata.audit().join(name).display().to_string();
    options([
        ("advertise-address", HOST_ADDRESS.to_string()),
        ("bind-address", HOST_ADDRESS.to_string()),
        ("secure-port", "6443".into()),
        ("etcd-servers", format!("https://{HOST_ADDRESS}:2379")),
        ("etcd-cafile", pki("etcd/ca.crt")),
        ("etcd-certfile", pki("apiserver-etcd-client.crt")),
        ("etcd-keyfile", pki("apiserver-etcd-client.key")),
        ("client-ca-file", pki("ca.crt")),
        ("tls-cert-file", pki("apiserver.crt")),
        ("tls-private-key-file", pki("apiserver.key")),
        ("service-account-issuer", "https://kubernetes.default.svc.cluster.local".into()),
        ("service-account-key-file", pki("sa.pub")),
        ("service-account-signing-key-file", pki("sa.key")),
        ("service-cluster-ip-range", SERVICE_NETWORK.into()),
        ("authorization-mode", "Node,RBAC".into()),
        // The second one is on in many a cluster, and asks for rights that nothing else asks for; the third lets a test
        // keep a namespace's Pods to one node.
        ("enable-admission-plugins", "NodeRestriction,OwnerReferencesPermissionEnforcement,PodNodeSelector".into()),
        ("audit-policy-file", audit(AUDIT_POLICY_FILE)),
        ("audit-log-path", audit("audit.log")),
        ("audit-log-maxsize", AUDIT_MEGABYTES.to_string()),
        ("audit-log-maxbackup", AUDIT_FILES.to_string()),
        ("allow-privileged", "true".into()),
        ("kubelet-client-certificate", pki("apiserver-kubelet-client.crt")),
        ("kubelet-client-key", pki("apiserver-kubelet-client.key")),
        ("kubelet-preferred-address-types", "InternalIP".into()),
        ("proxy-client-cert-file", pki("front-proxy-client.crt")),
        ("proxy-client-key-file", pki("front-proxy-client.key")),
        ("requestheader-client-ca-file", pki("front-proxy-ca.crt")),
        ("requestheader-allowed-names", "front-proxy-client".into()),
        ("requestheader-extra-headers-prefix", "X-Remote-Extra-".into()),
        ("requestheader-group-headers", "X-Remote-Group".into()),
        ("requestheader-username-headers", "X-Remote-User".into()),
        ("default-not-ready-toleration-seconds", TOLERATION_SECONDS.to_string()),
        ("default-unreachable-toleration-seconds", TOLERATION_SECONDS.to_string()),
        ("profiling", "false".into()),
    ])
}

fn controller_manager(metadata: &Metadata) -> Vec<String> {
    let pki = |name: &str| file(metadata, name);
    let kubeconfig = metadata.pki.kubeconfig("controller-manager").display().to_string();
    options([
        ("kubeconfig", kubeconfig.clone()),
        ("authentication-kubeconfig", kubeconfig.clone()),
        ("authorization-kubeconfig", kubeconfig),
        ("bind-address", HOST_ADDRESS.to_string()),
        ("root-ca-file", pki("ca.crt")),
        ("client-ca-file", pki("ca.crt")),
        ("cluster-signing-cert-file", pki("ca.crt")),
        ("cluster-signing-key-file", pki("ca.key")),
        ("service-account-private-key-file", pki("sa.key")),
        ("requestheader-client-ca-file", pki("front-proxy-ca.crt")),
        ("use-service-account-credentials", "true".into()),
        // There is one: waiting for a lease of the run before would cost 15 s.
        ("leader-elect", "false".into()),
        ("profiling", "false".into()),
    ])
}

fn scheduler(metadata: &Metadata) -> Vec<String> {
    let kubeconfig = metadata.pki.kubeconfig("scheduler").display().to_string();
    options([
        ("kubeconfig", kubeconfig.clone()),
        ("authentication-kubeconfig", kubeconfig.clone()),
        ("authorization-kubeconfig", kubeconfig),
        ("bind-address", HOST_ADDRESS.to_string()),
        ("leader-elect", "false".into()),
        ("profiling", "false".into()),
    ])
}
