//! Clusters that become members by their labels, and stop being members.

use crds::karmada_deployment::{KarmadaMemberStatus, SyncMode};
use crds::{Addon, Cluster, ClusterAddon, ClusterDeployment, KarmadaDeployment, KarmadaDeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::DeserializeOwned;

use super::super::{Neighbours, Target, Wish, roster};

const GROUP: &str = "apiVersion: clusterwright.dev/v1alpha1";

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_yaml::from_str(text).unwrap()
}

fn plane(more: &str) -> KarmadaDeployment {
    let auto_join = "selector: {matchLabels: {karmada: east}}, rules: [{whenLabels: {net: private}, syncMode: pull}, {whenLabels: {net: public}, syncMode: push}]";
    read(&format!(
        "{{{GROUP}, kind: KarmadaDeployment, metadata: {{name: k1, namespace: fleet, uid: u}}, spec: {{version: 1.18.2, crds: {{bundle: {{url: 'https://x'}}}}, autoJoin: {{{auto_join}{more}}}}}}}"
    ))
}

/// The namespace of a plane.
struct Namespace {
    clusters: Vec<Cluster>,
    deployments: Vec<ClusterDeployment>,
    addons: Vec<Addon>,
    cluster_addons: Vec<ClusterAddon>,
}

impl Namespace {
    /// One Cluster that was built here, with these labels of its ClusterDeployment.
    fn new(labels: &str) -> Self {
        let conditions = |types: &[&str]| {
            let one = |type_: &&str| {
                format!(
                    "{{type: {type_}, status: 'True', reason: X, message: x, lastTransitionTime: '2026-11-27T00:00:00Z'}}"
                )
            };
            types.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let healthy = conditions(&["Reachable", "ControlPlaneHealthy", "CertificatesValid"]);
        Self {
            clusters: vec![read(&format!(
                "{{{GROUP}, kind: Cluster, metadata: {{name: a, namespace: fleet}}, spec: {{kubeconfigRef: {{name: x}}}}, status: {{conditions: [{healthy}]}}}}"
            ))],
            deployments: vec![read(&format!(
                "{{{GROUP}, kind: ClusterDeployment, metadata: {{name: a, namespace: fleet, labels: {{{labels}}}}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}}}, status: {{conditions: [{}]}}}}",
                conditions(&["Ready"])
            ))],
            addons: Vec::new(),
            cluster_addons: Vec::new(),
        }
    }

    fn target(&self, plane: &KarmadaDeployment) -> Option<Target> {
        let neighbours = Neighbours {
            clusters: self.clusters.iter().collect(),
            deployments: self.deployments.iter().collect(),
            addons: self.addons.iter().collect(),
            cluster_addons: self.cluster_addons.iter().collect(),
        };
        let mut targets = roster(plane, &neighbours, None);
        assert!(targets.len() < 2);
        targets.pop()
    }

    /// What it waits for.
    fn reason(&self, plane: &KarmadaDeployment) -> String {
        match self.target(plane).unwrap().wish {
            Wish::Wait(problem) => problem.reason.to_string(),
            wish => panic!("{wish:?}"),
        }
    }
}

fn joined(plane: &mut KarmadaDeployment) {
    let member = "{name: a, syncMode: pull, clusterRef: {name: a}, autoJoined: true, clusterUID: c, phase: Joined, reason: X, message: x, since: '2026-11-27T00:00:00Z'}";
    let member: KarmadaMemberStatus = read(member);
    plane.status = Some(KarmadaDeploymentStatus { members: vec![member], ..KarmadaDeploymentStatus::default() });
}

fn time() -> Time {
    Time("2026-11-27T00:00:00Z".parse().unwrap())
}

#[test]
fn the_first_rule_whose_labels_a_cluster_has_says_how_it_joins() {
    let plane = plane("");
    let mode = |labels: &str| Namespace::new(labels).target(&plane).map(|target| (target.sync_mode, target.wish));
    assert_eq!(mode("karmada: east, net: private"), Some((SyncMode::Pull, Wish::Join)));
    assert_eq!(mode("karmada: east, net: public"), Some((SyncMode::Push, Wish::Join)));
    assert_eq!(mode("karmada: west, net: public"), None);
    assert_eq!(Namespace::new("karmada: east").reason(&plane), "NoJoinRule");
}

#[test]
fn a_selected_cluster_joins_once_it_is_ready_with_all_of_its_addons() {
    let plane = plane("");
    let mut namespace = Namespace::new("karmada: east, net: public");
    namespace.addons = vec![read(&format!(
        "{{{GROUP}, kind: Addon, metadata: {{name: dns, namespace: fleet}}, spec: {{clusterSelector: {{}}, source: {{}}}}}}"
    ))];
    assert_eq!(namespace.reason(&plane), "ClusterNotVerified");
    let ready = "{type: Ready, status: 'True', reason: X, message: x, lastTransitionTime: '2026-11-27T00:00:00Z'}";
    namespace.cluster_addons = vec![read(&format!(
        "{{{GROUP}, kind: ClusterAddon, metadata: {{name: dns-a, namespace: fleet, generation: 1}}, spec: {{addonRef: {{name: dns}}, clusterRef: {{name: a}}, revision: r}}, status: {{observedGeneration: 1, conditions: [{ready}]}}}}"
    ))];
    assert_eq!(namespace.target(&plane).unwrap().wish, Wish::Join);
    namespace.deployments[0].status = None;
    assert_eq!(namespace.reason(&plane), "ClusterNotVerified");
    namespace.deployments.clear();
    namespace.clusters[0].metadata.labels =
        Some([("karmada", "east"), ("net", "public")].map(|(a, b)| (a.into(), b.into())).into());
    assert_eq!(namespace.target(&plane).unwrap().wish, Wish::Join, "an imported one has no ClusterDeployment");
    namespace.clusters[0].status = None;
    assert_eq!(namespace.reason(&plane), "ClusterNotVerified");
}

#[test]
fn a_member_that_is_selected_no_more_stays_unless_it_is_to_leave() {
    let check = |more: &str, expected: Wish| {
        let mut plane = plane(more);
        joined(&mut plane);
        assert_eq!(Namespace::new("karmada: west").target(&plane).unwrap().wish, expected, "{more}");
    };
    check("", Wish::Join);
    check(", onDeselect: Keep", Wish::Join);
    check(", onDeselect: Unjoin", Wish::Leave);
}

#[test]
fn a_cluster_that_is_deleted_leaves_and_does_not_come_back() {
    let mut plane = plane("");
    let mut namespace = Namespace::new("karmada: east, net: private");
    namespace.deployments[0].metadata.deletion_timestamp = Some(time());
    assert_eq!(namespace.target(&plane), None, "it was no member yet");
    joined(&mut plane);
    assert_eq!(namespace.target(&plane).unwrap().wish, Wish::Leave);
}

#[test]
fn a_plane_is_not_selected() {
    let plane = plane("");
    let mut namespace = Namespace::new("karmada: east, net: public");
    let owner =
        "{apiVersion: clusterwright.dev/v1alpha1, kind: KarmadaDeployment, name: k2, uid: u2, controller: true}";
    namespace.clusters[0].metadata.owner_references = Some(vec![read(owner)]);
    assert_eq!(namespace.target(&plane), None);
}
