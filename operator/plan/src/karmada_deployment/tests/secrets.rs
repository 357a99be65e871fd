//! Who is given which files, and which names certificates are for.

use std::collections::BTreeSet;

use super::super::{Component, Place};
use super::world::{World, settled};

fn files(world: &World, component: Component) -> BTreeSet<String> {
    let secret = world.find(Place::Host, "Secret", &format!("k1-{}", component.suffix())).unwrap();
    secret["data"].as_object().unwrap().keys().cloned().collect()
}

fn names(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn each_component_has_its_own_files_and_nobody_the_key_of_an_authority() {
    let world = settled("descheduler: {}, search: {}, metricsAdapter: {}");
    let check = |component, expected: &str| assert_eq!(files(&world, component), names(expected), "{component:?}");
    check(
        Component::Etcd,
        "initial-cluster initial-cluster-state pki.etcd.ca.crt pki.etcd-server.crt pki.etcd-server.key pki.etcd-peer.crt pki.etcd-peer.key",
    );
    check(
        Component::ApiServer,
        "encryption.yaml pki.ca.crt pki.front-proxy-ca.crt pki.sa.key pki.sa.pub pki.etcd.ca.crt pki.apiserver.crt pki.apiserver.key pki.front-proxy-client.crt pki.front-proxy-client.key pki.apiserver-etcd-client.crt pki.apiserver-etcd-client.key",
    );
    check(
        Component::KubeControllerManager,
        "kubeconfig pki.ca.crt pki.sa.key pki.kube-controller-manager-client.crt pki.kube-controller-manager-client.key",
    );
    check(Component::Scheduler, "kubeconfig pki.ca.crt pki.scheduler-client.crt pki.scheduler-client.key");
    check(
        Component::Webhook,
        "kubeconfig pki.ca.crt pki.webhook-client.crt pki.webhook-client.key pki.webhook.crt pki.webhook.key",
    );
    check(
        Component::Search,
        "kubeconfig pki.ca.crt pki.etcd.ca.crt pki.search-client.crt pki.search-client.key pki.search.crt pki.search.key pki.search-etcd-client.crt pki.search-etcd-client.key",
    );
    for component in Component::ALL {
        let has = |ending: &str| files(&world, component).iter().any(|file| file.ends_with(ending));
        assert!(!has("ca.key"), "{component:?}");
    }
}

#[test]
fn every_flag_that_names_a_file_names_one_that_the_component_is_given() {
    for more in [
        "descheduler: {}, search: {}, metricsAdapter: {}",
        "search: {}, etcd: {external: {endpoints: ['https://10.0.0.5:2379'], secretRef: {name: etcd-client}}}",
    ] {
        let world = settled(more);
        for component in Component::ALL.into_iter().filter(|one| one.replicas(&world.object.spec).is_some()) {
            let kind = if component == Component::Etcd { "StatefulSet" } else { "Deployment" };
            let live = world.find(Place::Host, kind, &format!("k1-{}", component.suffix())).unwrap();
            let pod = &live["spec"]["template"]["spec"];
            let mounted: BTreeSet<String> = pod["volumes"][0]["secret"]["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| format!("/etc/karmada/{}", item["path"].as_str().unwrap()))
                .collect();
            for flag in pod["containers"][0]["command"].as_array().unwrap().iter().filter_map(|flag| flag.as_str()) {
                let Some((name, file)) = flag.split_once("=/etc/karmada/") else { continue };
                let file = format!("/etc/karmada/{file}");
                let is_directory = name == "--cert-dir";
                assert!(is_directory || mounted.contains(&file), "{component:?}: {flag} is not among {mounted:?}");
            }
        }
    }
}

#[test]
fn clients_are_who_they_are_said_to_be() {
    let world = settled("search: {}");
    let leaf = |stem: &str| world.issued.iter().find(|leaf| leaf.stem == stem).unwrap().clone();
    let scheduler = leaf("scheduler-client");
    assert_eq!(scheduler.common_name, "system:karmada:scheduler");
    assert_eq!((scheduler.organization, scheduler.serves), (Some("system:masters"), false));
    assert!(scheduler.dns_names.is_empty() && scheduler.addresses.is_empty());
    let peer = leaf("etcd-peer");
    assert!(
        peer.serves && peer.dns_names.contains(&"k1-etcd-0.k1-etcd-peers.karmada-system.svc.cluster.local".to_owned())
    );
    assert_eq!(leaf("search-etcd-client").signer, crate::rotation::Subject::EtcdCa);
    assert_eq!(leaf("front-proxy-client").signer, crate::rotation::Subject::FrontProxyCa);
    let stems: BTreeSet<&str> = world.issued.iter().map(|leaf| leaf.stem.as_str()).collect();
    assert_eq!(stems.len(), world.issued.len(), "each has a name of its own");
}

#[test]
fn what_is_printed_of_an_action_is_no_secret() {
    let mut world = settled("");
    world.host.retain(|key, _| key.0 != "Secret");
    let printed = format!("{:?}", world.plan().actions);
    assert!(printed.contains("Secret") && !printed.contains("data"), "{printed}");
    assert!(!format!("{:?}", world.material()).contains("107"), "no bytes either");
}
