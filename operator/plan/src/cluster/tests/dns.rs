use crds::ClusterDeployment;
use k8s_openapi::api::core::v1::Taint;

use super::super::dns::{DnsPod, DnsSeen};
use super::super::{Action, Contact, NodeSeen, Observed, plan};
use super::{NOON, at, cluster, node, seen};
use crate::drain::PodSeen;

pub(super) fn deployment() -> ClusterDeployment {
    serde_yaml::from_str(
        "{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a, namespace: fleet, generation: 1},
          spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1, hostSelector: {}}, artifacts: {url: 'http://bundle'},
                 networking: {podCIDR: 10.220.0.0/16, serviceCIDR: 10.96.0.0/16}},
          status: {installedAt: '2026-11-21T11:00:00Z'}}",
    )
    .unwrap()
}

fn pod(name: &str, node: &str) -> DnsPod {
    DnsPod {
        pod: PodSeen {
            namespace: "kube-system".into(),
            name: name.into(),
            uid: format!("uid-{name}"),
            ..PodSeen::default()
        },
        node: node.into(),
        ready: true,
    }
}

/// CoreDNS with the constraint and these Pods.
fn dns(pods: &[(&str, &str)]) -> DnsSeen {
    DnsSeen {
        constraints: serde_yaml::from_str(
            "[{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]",
        )
        .unwrap(),
        replicas: pods.len(),
        pods: pods.iter().map(|(name, node)| pod(name, node)).collect(),
        resource_version: "9".into(),
        uid: "uid-dns".into(),
    }
}

fn decide(deployment: Option<&ClusterDeployment>, nodes: Vec<NodeSeen>, dns: DnsSeen) -> Vec<Action> {
    let Contact::Made { access, seen } = seen(Some(nodes)) else { unreachable!() };
    let seen = super::super::Seen { dns: Some(dns), ..seen };
    let observed = Observed {
        cluster: &cluster(),
        planes: &[],
        resumed_at: None,
        contact: Contact::Made { access, seen },
        machines: &[],
        deployment,
        hosts: &[],
        now: at(NOON),
        chance: 0.5,
    };
    let steps = plan(&observed).actions.into_iter();
    steps.filter(|step| !matches!(step, Action::PatchNode { .. })).collect()
}

fn moved(nodes: Vec<NodeSeen>, dns: DnsSeen) -> Option<String> {
    match decide(Some(&deployment()), nodes, dns).as_slice() {
        [] => None,
        [Action::MoveDnsPod { pod, .. }] => Some(pod.name.clone()),
        steps => panic!("{steps:?}"),
    }
}

fn ready(name: &str) -> NodeSeen {
    node(name, Some(true))
}

#[test]
fn both_pods_of_the_dns_on_one_machine_are_spread_once_another_machine_takes_pods() {
    let both_on_m1 = || dns(&[("x", "m1"), ("y", "m1")]);
    assert_eq!(moved(vec![ready("m1")], both_on_m1()), None, "one machine has both");
    let control_plane =
        Taint { key: "node-role.kubernetes.io/control-plane".into(), effect: "NoSchedule".into(), ..Taint::default() };
    let joined = NodeSeen { taints: vec![control_plane.clone()], ..ready("m2") };
    assert_eq!(moved(vec![ready("m1"), joined.clone()], both_on_m1()).as_deref(), Some("x"));

    let takes_none = [
        node("m2", Some(false)),
        node("m2", None),
        NodeSeen { unschedulable: true, ..ready("m2") },
        NodeSeen { taints: vec![Taint { key: "gpu".into(), ..control_plane }], ..ready("m2") },
    ];
    for other in takes_none {
        assert_eq!(moved(vec![ready("m1"), other], both_on_m1()), None);
    }
    // It settles: on three machines two Pods stand well, too.
    for nodes in [vec![ready("m1"), joined.clone()], vec![ready("m1"), joined, ready("m3")]] {
        assert_eq!(moved(nodes, dns(&[("y", "m1"), ("z", "m2")])), None);
    }
}

#[test]
fn the_pods_of_the_dns_move_one_at_a_time() {
    let nodes = || vec![ready("m1"), ready("m2")];
    let mut starting = dns(&[("y", "m1"), ("z", "m1")]);
    starting.pods[1].ready = false;
    assert_eq!(moved(nodes(), starting), None, "the other one is not Ready");
    let mut rolling = dns(&[("x", "m1"), ("y", "m1"), ("z", "m1")]);
    rolling.replicas = 2;
    assert_eq!(moved(nodes(), rolling), None, "a rollout is under way");
    let mut unread = dns(&[("x", "m1"), ("y", "m1")]);
    unread.pods.clear();
    assert_eq!(moved(nodes(), unread), None, "where they run is not known");
}

#[test]
fn dns_is_required_to_spread_where_kubeadm_only_prefers_it() {
    let mut preferred = dns(&[("x", "m1"), ("y", "m1")]);
    preferred.constraints = serde_yaml::from_str(
        "[{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]",
    )
    .unwrap();
    let nodes = || vec![ready("m1"), ready("m2")];
    let steps = decide(Some(&deployment()), nodes(), preferred.clone());
    let [Action::SpreadDns { patch }] = steps.as_slice() else { panic!("{steps:?}") };
    let constraints = &patch["spec"]["template"]["spec"]["topologySpreadConstraints"];
    assert_eq!(constraints[0]["topologyKey"], "topology.kubernetes.io/zone", "an administrator's stays");
    assert_eq!(constraints[1]["whenUnsatisfiable"], "DoNotSchedule");
    assert_eq!(constraints[1]["nodeTaintsPolicy"], "Honor", "a drained machine does not keep a Pod pending");
    assert_eq!(constraints[1]["matchLabelKeys"][0], "pod-template-hash", "old Pods do not hold up a rollout");
    assert_eq!(patch["metadata"]["resourceVersion"], "9");

    // Nobody asked for it elsewhere.
    let of = |deployment: Option<&ClusterDeployment>| decide(deployment, nodes(), preferred.clone());
    assert_eq!(of(None), [], "an administrator's cluster");
    let mut paused = deployment();
    paused.spec.paused = true;
    assert_eq!(of(Some(&paused)), []);
    let mut installing = deployment();
    installing.status.as_mut().unwrap().installed_at = None;
    assert_eq!(of(Some(&installing)), []);
    let mut deleted = deployment();
    deleted.metadata.deletion_timestamp = Some(at(NOON));
    assert_eq!(of(Some(&deleted)), []);
}
