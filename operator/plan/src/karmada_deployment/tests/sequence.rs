//! In which order a plane comes to be, is repaired, and is changed.

use proptest::prelude::*;

use super::super::{Action, Component, Place};
use super::world::{World, plane, settled};
use crds::names::condition;
use serde_json::json;

const ALL: &str = "descheduler: {}, search: {replicas: 2}, metricsAdapter: {}, etcd: {local: {replicas: 3}}";
const EXTERNAL: &str = "etcd: {external: {endpoints: ['https://10.0.0.5:2379'], secretRef: {name: etcd-client}}}";
const REMOTE: &str = "hostClusterRef: {name: host-a}, hostNamespace: other, apiServer: {serviceType: LoadBalancer}, images: {pullSecretRefs: [{name: registry}]}";

#[test]
fn a_plane_comes_to_be_in_order_and_then_nothing_is_written() {
    for more in ["", ALL, EXTERNAL, REMOTE, "apiServer: {serviceType: NodePort, loadBalancerApiserverIp: 192.0.2.1}"] {
        let mut world = settled(more);
        assert!(world.is_ready(), "{more}: {:?}", world.condition("Ready"));
        let log = world.log.len();
        world.settle();
        assert_eq!(world.log.len(), log, "{more}: {:?}", &world.log[log..]);
        let status = world.object.status.clone().unwrap();
        assert_eq!(status.version.as_deref(), Some("1.18.2"));
        assert!(status.components.iter().all(|one| one.ready_replicas == one.replicas && one.version.is_some()));
    }
}

#[test]
fn components_start_in_the_order_of_their_list() {
    let world = settled(ALL);
    let started = world.log.iter().filter_map(|line| {
        let name = line.strip_prefix("apply Deployment k1-").or(line.strip_prefix("apply StatefulSet k1-"))?;
        Component::ALL.into_iter().find(|component| component.suffix() == name)
    });
    let mut started: Vec<Component> = started.collect();
    // Once it is whole, that it has begun is written down.
    started.dedup();
    assert_eq!(started, Component::ALL);
}

#[test]
fn certificates_are_issued_once_for_all_names_that_the_plane_is_reached_by() {
    for more in ["", REMOTE] {
        assert_eq!(settled(more).issues, 1, "{more}");
    }
    let world = settled(REMOTE);
    assert_eq!(world.kubeconfig.as_deref(), Some("https://192.0.2.7:5443"));
    let leaf = world.issued.iter().find(|leaf| leaf.stem == "apiserver").unwrap();
    let addresses: Vec<String> = leaf.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.9", "10.96.0.1", "127.0.0.1", "192.0.2.7"]);
}

#[test]
fn a_renewal_rolls_one_component_at_a_time() {
    let mut world = settled(ALL);
    world.renewal_due = true;
    let mut rolled = Vec::new();
    for _ in 0..60 {
        let planned = world.plan();
        let workload = |action: &&Action| matches!(action, Action::Apply { object, .. } if ["Deployment", "StatefulSet"].contains(&object.kind.as_str()));
        let now: Vec<&Action> = planned.actions.iter().filter(workload).collect();
        assert!(now.len() <= 1, "{now:?}");
        rolled.extend(now.into_iter().cloned());
        world.play(&planned.actions);
        if planned.actions.is_empty() {
            world.tick();
        }
    }
    assert_eq!(rolled.len(), Component::ALL.len());
    assert_eq!(world.issues, 2);
    world.settle();
    assert!(world.is_ready());
}

#[test]
fn what_is_switched_off_goes_from_the_plane_before_it_goes_from_the_host() {
    let mut world = settled(ALL);
    world.log.clear();
    world.object.spec.search = None;
    world.settle();
    let search: Vec<&String> = world.log.iter().filter(|line| line.starts_with("delete")).collect();
    let expected = [
        "delete APIService v1alpha1.search.karmada.io",
        "delete Service karmada-search",
        "delete Deployment k1-search",
        "delete PodDisruptionBudget k1-search",
        "delete Service k1-search",
        "delete Secret k1-search",
    ];
    assert_eq!(search, expected);
    assert!(world.is_ready());
    assert_eq!(
        world.shape(),
        settled(&ALL.replace("search: {replicas: 2}, ", ""))
            .shape()
            .into_iter()
            .map(|(place, key, mut manifest)| {
                // Certificates were issued anew, so the files are others.
                let there = world.applied[&(place, key.clone())].clone();
                if key.0 == "Secret" {
                    manifest["data"] = there["data"].clone();
                }
                let files = "/spec/template/metadata/annotations/clusterwright.dev~1files";
                if let (Some(digest), Some(theirs)) = (manifest.pointer_mut(files), there.pointer(files)) {
                    *digest = theirs.clone();
                }
                (place, key, manifest)
            })
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_paused_plane_is_looked_at_and_left_as_it_is() {
    let mut world = settled("");
    world.object.spec.paused = true;
    world.host.retain(|key, _| key.2 != "k1-scheduler");
    let log = world.log.len();
    world.settle();
    assert_eq!(world.log.len(), log);
    assert_eq!(world.condition(condition::UP_TO_DATE).1, "Paused");
    assert_eq!(world.condition(condition::COMPONENTS_READY).0, "False");
    let mut fresh = World::new(plane("paused: true"));
    fresh.settle();
    assert!(fresh.log.is_empty() && fresh.object.metadata.finalizers.is_none());
    assert_eq!(fresh.condition("Ready").1, "Paused");
}

/// What may have happened to a plane since it was looked at last.
#[derive(Clone, Debug)]
enum Fate {
    Deleted(prop::sample::Index),
    Edited(prop::sample::Index),
    NotReady(prop::sample::Index),
    RenewalDue,
    KubeconfigLost,
    StatusLost,
    NothingWanted,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let one = prop_oneof![
        4 => any::<prop::sample::Index>().prop_map(Fate::Deleted),
        4 => any::<prop::sample::Index>().prop_map(Fate::Edited),
        2 => any::<prop::sample::Index>().prop_map(Fate::NotReady),
        1 => Just(Fate::RenewalDue),
        1 => Just(Fate::KubeconfigLost),
        1 => Just(Fate::StatusLost),
        1 => Just(Fate::NothingWanted),
    ];
    prop::collection::vec(one, 0..12)
}

fn befall(world: &mut World, fate: &Fate) {
    let keys: Vec<_> = world.applied.keys().cloned().collect();
    let at = |index: &prop::sample::Index| keys[index.index(keys.len())].clone();
    match fate {
        Fate::Deleted(index) => {
            let (place, key) = at(index);
            if place == Place::Host {
                world.host.remove(&key)
            } else {
                world.plane.remove(&key)
            };
            world.applied.remove(&(place, key));
        }
        Fate::Edited(index) => drop(world.applied.get_mut(&at(index)).map(|applied| *applied = json!("edited"))),
        Fate::NotReady(index) => {
            let (place, key) = at(index);
            let all = if place == Place::Host { &mut world.host } else { &mut world.plane };
            if let Some(live) = all.get_mut(&key).filter(|live| !live["status"].is_null() && key.0 != "Service") {
                live["status"] = json!({});
            }
        }
        Fate::RenewalDue => world.renewal_due = true,
        Fate::KubeconfigLost => world.kubeconfig = None,
        Fate::StatusLost => world.object.status = None,
        Fate::NothingWanted => {
            (world.object.spec.search, world.object.spec.descheduler, world.object.spec.metrics_adapter) =
                (None, None, None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn from_whatever_has_become_of_it_a_plane_is_put_back(fates in fates()) {
        static AT_REST: std::sync::OnceLock<World> = std::sync::OnceLock::new();
        let mut world = AT_REST.get_or_init(|| settled(ALL)).clone();
        fates.iter().for_each(|fate| befall(&mut world, fate));
        world.settle();
        prop_assert!(world.is_ready(), "{:?}", world.condition("Ready"));
        let wanted = world.wanted();
        prop_assert_eq!(wanted.len(), world.applied.len());
        for one in wanted {
            let key = (one.place, World::key(&one.manifest.0));
            prop_assert_eq!(world.applied.get(&key), Some(&one.manifest.0));
        }
    }
}
