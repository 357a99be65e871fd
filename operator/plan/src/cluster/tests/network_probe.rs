use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{Action, NodeSeen, Observed, plan};
use super::dns::deployment;
use super::{NOON, at, cluster, node, seen};

fn nodes(count: usize) -> Vec<NodeSeen> {
    (1..=count)
        .map(|n| NodeSeen {
            pod_cidr: format!("10.220.{n}.0/24"),
            addresses: vec![format!("m{n}"), format!("172.30.0.{n}")],
            ..node(&format!("m{n}"), Some(true))
        })
        .collect()
}

/// Who is to ask whom, after what is wanted has been written.
fn asked(nodes: &mut [NodeSeen], plugin: &str) -> BTreeMap<String, Value> {
    let mut deployment = deployment();
    deployment.spec.networking.plugin.name = serde_json::from_value(plugin.into()).unwrap();
    let steps = |nodes: &[NodeSeen]| {
        plan(&Observed {
            cluster: &cluster(),
            planes: &[],
            resumed_at: None,
            contact: seen(Some(nodes.to_vec())),
            machines: &[],
            deployment: Some(&deployment),
            hosts: &[],
            now: at(NOON),
            chance: 0.5,
        })
        .actions
    };
    for step in steps(nodes) {
        let Action::PatchNode { name, patch } = step else { panic!("{step:?}") };
        let text = patch["metadata"]["annotations"]["clusterwright.dev/network-probe"].as_str().unwrap();
        let node = nodes.iter_mut().find(|node| node.name == name).unwrap();
        node.network_probe = text.to_owned();
    }
    assert_eq!(steps(nodes), [], "at rest nothing is written");
    let told = nodes.iter().filter(|node| !node.network_probe.is_empty());
    told.map(|node| (node.name.clone(), serde_json::from_str(&node.network_probe).unwrap())).collect()
}

fn peers(of: &Value) -> Vec<&str> {
    of["peers"].as_array().unwrap().iter().map(|peer| peer["node"].as_str().unwrap()).collect()
}

#[test]
fn each_machine_asks_the_pods_gateways_of_three_others_and_the_dns() {
    let all = asked(&mut nodes(6), "bridge");
    assert_eq!(all.len(), 6);
    for (name, probe) in &all {
        let number = &name[1..];
        assert_eq!(probe["dns"], "10.96.0.10:53");
        assert_eq!(probe["source"], format!("10.220.{number}.1"));
        assert_eq!(peers(probe).len(), 3);
        assert!(!peers(probe).contains(&name.as_str()));
        for peer in probe["peers"].as_array().unwrap() {
            let number = &peer["node"].as_str().unwrap()[1..];
            assert_eq!(peer["address"], format!("10.220.{number}.1:10250"));
        }
        let askers = all.values().filter(|probe| peers(probe).contains(&name.as_str())).count();
        assert_eq!(askers, 3, "each is asked as often as it asks");
    }
    let alone = asked(&mut nodes(1), "bridge");
    assert_eq!(peers(&alone["m1"]).len(), 0);
    let other = asked(&mut nodes(2), "manifests");
    assert_eq!(other["m1"]["peers"][0]["address"], "172.30.0.2:10250");
    assert_eq!(other["m1"]["source"], Value::Null);
}

#[test]
fn a_machine_that_is_down_is_not_asked() {
    let mut some = nodes(4);
    some[2].ready = None;
    let all = asked(&mut some, "bridge");
    assert_eq!(all.keys().collect::<Vec<_>>(), ["m1", "m2", "m4"]);
    assert!(all.values().all(|probe| peers(probe).len() == 2 && !peers(probe).contains(&"m3")));
}

#[test]
fn a_machine_that_joins_changes_three_nodes_and_its_own() {
    let mut nodes = nodes(40);
    let before = asked(&mut nodes[..39], "bridge");
    let after = asked(&mut nodes, "bridge");
    let differ = after.iter().filter(|(name, probe)| before.get(*name) != Some(probe));
    assert_eq!(differ.count(), 4);
}

#[test]
fn an_administrators_cluster_is_told_nothing() {
    let mut cluster = cluster();
    let steps = super::decide(&mut cluster, seen(Some(nodes(3))), &[], NOON).actions;
    assert_eq!(steps, []);
}

#[test]
fn nobody_is_asked_before_the_install_is_done() {
    let mut deployment = deployment();
    deployment.status = None;
    let steps = plan(&Observed {
        cluster: &cluster(),
        planes: &[],
        resumed_at: None,
        contact: seen(Some(nodes(2))),
        machines: &[],
        deployment: Some(&deployment),
        hosts: &[],
        now: at(NOON),
        chance: 0.5,
    })
    .actions;
    assert_eq!(steps, []);
}
