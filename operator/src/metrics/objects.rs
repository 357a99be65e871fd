//! Gauges of what the objects say of themselves, as they are when somebody asks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crds::certificates::{Renewer, renewer};
use crds::names::condition;
use crds::{Cluster, ClusterDeployment, Conditions, EtcdBackup, Host, KarmadaDeployment, Machine, ObjectExt};
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

const SECONDS_A_DAY: f64 = 86_400.0;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Phase {
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HostsOf {
    namespace: String,
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ready {
    ready: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    namespace: String,
    cluster: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NamedCertificate {
    namespace: String,
    cluster: String,
    certificate: String,
}

/// The objects of all namespaces.
#[derive(Default)]
pub struct Objects {
    /// Machines.
    pub machines: Vec<Arc<Machine>>,
    /// Hosts.
    pub hosts: Vec<Arc<Host>>,
    /// ClusterDeployments.
    pub deployments: Vec<Arc<ClusterDeployment>>,
    /// KarmadaDeployments.
    pub planes: Vec<Arc<KarmadaDeployment>>,
    /// Clusters.
    pub clusters: Vec<Arc<Cluster>>,
    /// EtcdBackups.
    pub backups: Vec<Arc<EtcdBackup>>,
}

/// The gauges; clones are the same.
#[derive(Clone, Default)]
pub(super) struct Gauges {
    machines: Family<Phase, Gauge>,
    hosts: Family<HostsOf, Gauge>,
    deployments: Family<Ready, Gauge>,
    planes: Family<Ready, Gauge>,
    certificate_days: Family<Named, Gauge<f64, AtomicU64>>,
    certificate_ends: Family<NamedCertificate, Gauge>,
    last_backup: Family<Named, Gauge>,
    etcd: EtcdGauges,
}

/// Sizes of clusters' etcd.
#[derive(Clone, Default)]
struct EtcdGauges {
    size: Family<Named, Gauge>,
    in_use: Family<Named, Gauge>,
    quota: Family<Named, Gauge>,
}

impl EtcdGauges {
    fn register(&self, registry: &mut Registry) {
        registry.register("etcd_db_size_bytes", "Size of a cluster's etcd, to 16 MiB", self.size.clone());
        registry.register(
            "etcd_db_in_use_bytes",
            "How much of that is in use, when last looked at",
            self.in_use.clone(),
        );
        registry.register("etcd_db_quota_bytes", "What it may come to", self.quota.clone());
    }

    /// Of the clusters that are there, as far as it is known.
    fn set(&self, deployments: &[Arc<ClusterDeployment>]) {
        for family in [&self.size, &self.in_use, &self.quota] {
            family.clear();
        }
        for deployment in deployments {
            let Some(etcd) = deployment.status.as_ref().and_then(|status| status.etcd.as_ref()) else { continue };
            let in_use = etcd.members.iter().filter_map(|member| member.in_use_bytes).max();
            for (family, value) in
                [(&self.size, etcd.size_bytes), (&self.in_use, in_use), (&self.quota, etcd.quota_bytes)]
            {
                let (namespace, cluster) = (deployment.namespace().to_owned(), deployment.name().to_owned());
                if let Some(value) = value {
                    family.get_or_create(&Named { namespace, cluster }).set(value);
                }
            }
        }
    }
}

impl Gauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("machines", "Machines, by phase", self.machines.clone());
        registry.register("hosts", "Hosts, by namespace and phase", self.hosts.clone());
        registry.register(
            "cluster_deployments",
            "ClusterDeployments, by their condition Ready",
            self.deployments.clone(),
        );
        registry.register("karmada_deployments", "KarmadaDeployments, by their condition Ready", self.planes.clone());
        registry.register(
            "certificate_days_left",
            "Days until a cluster's first certificate ends, negative since then",
            self.certificate_days.clone(),
        );
        registry.register(
            "certificate_expiration_timestamp_seconds",
            "When the first of a cluster's certificates of this name ends",
            self.certificate_ends.clone(),
        );
        registry.register(
            "etcd_last_backup_timestamp_seconds",
            "When a cluster's newest good backup of etcd was completed",
            self.last_backup.clone(),
        );
        self.etcd.register(registry);
    }

    pub(super) fn set(&self, objects: &Objects, now: Timestamp) {
        let machines =
            objects.machines.iter().map(|machine| phase_of(machine.status.as_ref().and_then(|status| status.phase)));
        let hosts = objects.hosts.iter().map(|host| HostsOf {
            namespace: host.namespace().to_owned(),
            phase: phase_of(host.status.as_ref().and_then(|status| status.phase)),
        });
        count(&self.machines, machines.map(|phase| Phase { phase }));
        count(&self.hosts, hosts);
        count(&self.deployments, objects.deployments.iter().map(|deployment| ready(&**deployment)));
        count(&self.planes, objects.planes.iter().map(|plane| ready(&**plane)));
        self.set_certificates(objects, now);
        self.set_last_backups(objects);
        self.etcd.set(&objects.deployments);
    }

    /// What nobody verifies ends without harm: it is no cluster's first certificate.
    fn set_certificates(&self, objects: &Objects, now: Timestamp) {
        self.certificate_days.clear();
        self.certificate_ends.clear();
        for cluster in &objects.clusters {
            let certificates = cluster.status.iter().flat_map(|status| &status.certificates);
            let named = || Named { namespace: cluster.namespace().to_owned(), cluster: cluster.name().to_owned() };
            for certificate in certificates.clone() {
                let Named { namespace, cluster } = named();
                let labels = NamedCertificate { namespace, cluster, certificate: certificate.name.clone() };
                self.certificate_ends.get_or_create(&labels).set(certificate.expires_at.0.as_second());
            }
            let verified = certificates.filter(|certificate| renewer(&certificate.name) != Some(Renewer::Process));
            if let Some(first) = verified.map(|certificate| certificate.expires_at.0).min() {
                let days = (first.as_second() - now.as_second()) as f64 / SECONDS_A_DAY;
                self.certificate_days.get_or_create(&named()).set(days);
            }
        }
    }

    /// Of the clusters and planes that are there; a backup that is older is one of a former cluster of the name.
    fn set_last_backups(&self, objects: &Objects) {
        let mut newest: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for backup in &objects.backups {
            let plane = backup.spec.karmada_deployment_ref.as_ref().map(|plane| plane.name.as_str());
            let of = backup.spec.cluster_name.as_deref().or(plane);
            if let Some((completed, cluster)) = completed(backup).zip(of) {
                let newest = newest.entry((backup.namespace(), cluster)).or_insert(completed);
                *newest = completed.max(*newest);
            }
        }
        self.last_backup.clear();
        // Nothing has the name of a cluster and of a plane.
        let deployments =
            objects.deployments.iter().map(|object| (&object.metadata, object.namespace(), object.name()));
        let planes = objects.planes.iter().map(|object| (&object.metadata, object.namespace(), object.name()));
        for (meta, namespace, name) in deployments.chain(planes) {
            let made = meta.creation_timestamp.as_ref().map_or(i64::MIN, |made| made.0.as_second());
            let found = newest.get(&(namespace, name));
            if let Some(completed) = found.filter(|completed| **completed >= made) {
                let (namespace, cluster) = (namespace.to_owned(), name.to_owned());
                self.last_backup.get_or_create(&Named { namespace, cluster }).set(*completed);
            }
        }
    }
}

/// When a backup was completed, in seconds since 1970, if it is good.
fn completed(backup: &EtcdBackup) -> Option<i64> {
    Some(backup.good()?.completed_at.0.as_second())
}

/// What its condition Ready says; nobody knows of an object that no controller has seen yet.
fn ready(object: &impl Conditions) -> Ready {
    let ready = object.condition(condition::READY);
    Ready { ready: ready.map_or_else(|| "Unknown".into(), |ready| ready.status.clone()) }
}

/// A phase's name; an object that no controller has seen yet is pending.
fn phase_of(phase: Option<impl std::fmt::Debug>) -> String {
    phase.map_or_else(|| "Pending".into(), |phase| format!("{phase:?}"))
}

/// Sets each label's count; what is counted no more goes.
fn count<L: Clone + std::hash::Hash + Eq>(family: &Family<L, Gauge>, labels: impl Iterator<Item = L>) {
    let mut counts: HashMap<L, i64> = HashMap::new();
    for label in labels {
        *counts.entry(label).or_default() += 1;
    }
    family.clear();
    for (label, count) in counts {
        family.get_or_create(&label).set(count);
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;

    fn object<T: DeserializeOwned>(kind: &str, spec: &str, status: &str) -> Arc<T> {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: {kind}, metadata: {{name: a}}, spec: {{{spec}}}, status: {{{status}}}}}"
        );
        Arc::new(serde_yaml::from_str(&yaml).unwrap())
    }

    #[test]
    fn hosts_clusters_and_the_first_certificate_that_ends_are_exported() {
        let host = |phase: &str| {
            let spec = "address: 10.0.0.1, ssh: {credentialsRef: {name: c}, hostKeyPolicy: TrustOnFirstUse}";
            object("Host", spec, &format!("phase: {phase}"))
        };
        let deployment = |ready: &str| {
            let conditions = format!(
                "etcd: {{sizeBytes: 3000, quotaBytes: 9000, members: [{{host: h1, inUseBytes: 1000}}, {{host: h2, inUseBytes: 2000}}]}}, conditions: [{{type: Ready, status: '{ready}', reason: R, message: m, lastTransitionTime: '2026-01-01T00:00:00Z'}}]"
            );
            let spec = "kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}";
            object("ClusterDeployment", spec, &conditions)
        };
        let cluster = |ends: &[&str]| {
            let certificates = ends.iter().map(|end| format!("{{name: apiserver, expiresAt: '{end}'}}"));
            let status = format!("certificates: [{}]", certificates.collect::<Vec<_>>().join(", "));
            object("Cluster", "kubeconfigRef: {name: k}", &status)
        };
        let backup = |of: &str, phase: &str, completed: &str| {
            let spec = format!("{of}, storageRef: {{name: s}}, encryption: {{recipients: []}}");
            let content = format!(
                "location: x, revision: 1, keys: 1, size: 1, sha256: x, member: m, etcdVersion: '3', startedAt: '{completed}', completedAt: '{completed}'"
            );
            object("EtcdBackup", &spec, &format!("phase: {phase}, backup: {{{content}}}"))
        };
        let objects = Objects {
            machines: Vec::new(),
            hosts: vec![host("Available"), host("Claimed"), host("Available")],
            deployments: vec![deployment("True"), deployment("False")],
            planes: vec![object("KarmadaDeployment", "version: 1.18.2, crds: {bundle: {url: 'https://b'}}", "")],
            clusters: vec![cluster(&["2026-03-01T00:00:00Z", "2026-01-03T12:00:00Z"]), cluster(&[])],
            backups: vec![
                backup("clusterName: a", "Succeeded", "2026-01-01T00:00:00Z"),
                backup("clusterName: a", "Succeeded", "2026-01-02T00:00:00Z"),
                backup("clusterName: a", "Running", "2026-01-03T00:00:00Z"),
                backup("clusterName: gone", "Succeeded", "2026-01-03T00:00:00Z"),
            ],
        };
        let (gauges, mut registry) = (Gauges::default(), Registry::default());
        gauges.register(&mut registry);
        let text = |objects: &Objects| {
            gauges.set(objects, "2026-01-01T00:00:00Z".parse().unwrap());
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            text
        };
        let full = text(&objects);
        for line in [
            "hosts{namespace=\"\",phase=\"Available\"} 2",
            "hosts{namespace=\"\",phase=\"Claimed\"} 1",
            "cluster_deployments{ready=\"True\"} 1",
            "cluster_deployments{ready=\"False\"} 1",
            "karmada_deployments{ready=\"Unknown\"} 1",
            "certificate_days_left{namespace=\"\",cluster=\"a\"} 2.5",
            "certificate_expiration_timestamp_seconds{namespace=\"\",cluster=\"a\",certificate=\"apiserver\"}",
            "etcd_db_size_bytes{namespace=\"\",cluster=\"a\"} 3000",
            "etcd_db_in_use_bytes{namespace=\"\",cluster=\"a\"} 2000",
            "etcd_db_quota_bytes{namespace=\"\",cluster=\"a\"} 9000",
            // 2 January 2026.
            "etcd_last_backup_timestamp_seconds{namespace=\"\",cluster=\"a\"} 1767312000",
        ] {
            assert!(full.contains(line), "{line}:\n{full}");
        }
        assert!(!full.contains("gone"), "{full}");
        let of_plane = backup("karmadaDeploymentRef: {name: a}", "Succeeded", "2026-01-02T00:00:00Z");
        let planes = text(&Objects { deployments: Vec::new(), backups: vec![of_plane], ..objects });
        assert!(
            planes.contains("etcd_last_backup_timestamp_seconds{namespace=\"\",cluster=\"a\"} 1767312000"),
            "{planes}"
        );
        let empty = text(&Objects::default());
        assert!(!empty.contains('{'), "{empty}");
    }
}
