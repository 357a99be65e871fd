//! Members that join, are kept, and leave.

mod agents;
mod arrival;
mod auto_join;
mod estimators;
mod estimators_on_machines;
mod hosts;
mod simulation;
pub mod world;

use crds::karmada_deployment::{KarmadaMemberPhase as Phase, UnjoinPolicy};
use serde_json::json;
use world::World;

use crate::Next;

fn joined(policy: Option<UnjoinPolicy>) -> World {
    let mut world = World::new(policy, &["a", "b"]);
    world.name("a", "push");
    world.name("b", "pull");
    world.rest();
    assert_eq!((world.phase("a"), world.phase("b")), (Some(Phase::Joined), Some(Phase::Joined)));
    world
}

#[test]
fn push_and_pull_members_join_and_are_left_alone_at_rest() {
    let world = joined(None);
    assert!(world.plan().actions.is_empty());
    assert_eq!(world.sites["a"].workloads, 2);
    let agent = world.sites["b"].api.find("Deployment", "karmada-agent").unwrap();
    let command = agent["spec"]["template"]["spec"]["containers"][0]["command"].to_string();
    assert!(command.contains("--report-secrets=None") && command.contains("--cluster-name=b"), "{command}");
}

#[test]
fn nothing_is_made_before_the_status_remembers_the_member() {
    let mut world = World::new(None, &["a"]);
    world.name("a", "push");
    assert_eq!(world.turn(), 0);
    assert_eq!((world.phase("a"), world.made_in("a")), (Some(Phase::Joining), 0));
    assert!(world.turn() > 0);
}

#[test]
fn what_is_taken_away_is_put_back_and_a_new_token_is_carried_to_the_plane() {
    let mut world = joined(None);
    let site = world.sites.get_mut("a").unwrap();
    for kind in ["Secret", "ServiceAccount"] {
        site.api.delete(kind, "karmada-a");
    }
    world.rest();
    assert_eq!(world.phase("a"), Some(Phase::Joined));
    assert!(world.sites["a"].api.find("ServiceAccount", "karmada-a").is_some());
}

#[test]
fn a_cluster_that_was_made_anew_owns_its_secrets() {
    let mut world = joined(None);
    world.plane.objects.retain(|live| live["kind"] != "Cluster");
    world.rest();
    let cluster = world.plane.find("Cluster", "a").unwrap()["metadata"]["uid"].clone();
    let secret = world.plane.find("Secret", "a").unwrap();
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], cluster);
}

#[test]
fn a_member_that_leaves_keeps_what_it_runs_and_nothing_else_of_the_plane() {
    let mut world = joined(Some(UnjoinPolicy::Preserve));
    for name in ["a", "b"] {
        world.forget(name);
    }
    world.rest();
    for name in ["a", "b"] {
        assert_eq!((world.phase(name), world.made_in(name), world.made_in_plane(name)), (None, 0, 0), "{name}");
        assert_eq!(world.sites[name].workloads, 2, "{name}");
    }
}

#[test]
fn with_the_policy_delete_what_it_runs_goes_before_the_member_does() {
    let mut world = joined(Some(UnjoinPolicy::Delete));
    for name in ["a", "b"] {
        world.forget(name);
    }
    world.rest();
    for name in ["a", "b"] {
        assert_eq!((world.phase(name), world.made_in(name), world.made_in_plane(name)), (None, 0, 0), "{name}");
        assert_eq!(world.sites[name].workloads, 0, "{name}");
    }
}

#[test]
fn without_a_policy_no_member_leaves() {
    let mut world = joined(None);
    world.forget("a");
    world.rest();
    let row = world.row("a").unwrap();
    assert_eq!((row.phase, row.reason.as_str()), (Phase::Blocked, "UnjoinPolicyMissing"));
    assert!(world.plane.find("Cluster", "a").is_some());
    world.object.spec.unjoin_policy = Some(UnjoinPolicy::Preserve);
    world.rest();
    assert_eq!(world.phase("a"), None);
}

#[test]
fn a_dead_member_leaves_the_plane_and_is_cleaned_when_it_comes_back() {
    for name in ["a", "b"] {
        let mut world = joined(Some(UnjoinPolicy::Preserve));
        world.sites.get_mut(name).unwrap().is_up = false;
        world.forget(name);
        world.rest();
        assert_eq!(world.made_in_plane(name), 0, "{name}");
        let row = world.row(name).unwrap();
        assert_eq!((row.phase, row.reason.as_str()), (Phase::Leaving, "MemberUnreachable"));
        assert!(row.message.contains(&format!("clusterwright.dev/force-remove=member.{name}")), "{}", row.message);
        world.sites.get_mut(name).unwrap().is_up = true;
        world.rest();
        assert_eq!((world.phase(name), world.made_in(name), world.sites[name].workloads), (None, 0, 2), "{name}");
    }
}

#[test]
fn a_dead_member_that_is_given_up_is_forgotten_with_what_it_has() {
    for policy in [UnjoinPolicy::Preserve, UnjoinPolicy::Delete] {
        let mut world = joined(Some(policy));
        world.sites.get_mut("a").unwrap().is_up = false;
        world.forget("a");
        world.rest();
        assert_eq!(world.phase("a"), Some(Phase::Leaving));
        world.annotate("member.x,member.a");
        world.rest();
        assert_eq!((world.phase("a"), world.made_in_plane("a")), (None, 0));
        assert_eq!(world.phase("b"), Some(Phase::Joined));
    }
}

#[test]
fn a_member_that_is_dead_holds_up_nobody() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut world = World::new(None, &names);
    for name in names {
        world.sites.get_mut(name).unwrap().is_up = name > "f";
        world.name(name, "push");
    }
    world.rest();
    assert_eq!((world.phase("a"), world.phase("h")), (Some(Phase::Waiting), Some(Phase::Joined)));
}

#[test]
fn no_more_begin_at_once_than_may() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let mut world = World::new(None, &names);
    for name in names {
        world.name(name, "push");
    }
    world.turn();
    let joining = names.iter().filter(|name| world.phase(name) == Some(Phase::Joining)).count();
    assert_eq!((joining, world.row("g").unwrap().reason.as_str()), (5, "WaitingForOtherMembers"));
    world.rest();
    assert_eq!(world.phase("g"), Some(Phase::Joined));
}

#[test]
fn those_that_wait_for_karmada_alone_take_no_place_of_others() {
    for mode in ["push", "pull"] {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let mut world = World::new(None, &names);
        for name in names {
            world.name(name, mode);
        }
        world.away.extend(names[..5].iter().map(|name| (*name).to_owned()));
        world.rest();
        assert_eq!((world.phase("e"), world.phase("g")), (Some(Phase::Joining), Some(Phase::Joined)), "{mode}");
    }
}

#[test]
fn what_others_have_is_named_and_left_alone() {
    let check = |change: fn(&mut World), name: &str, reason: &str| {
        let mut world = World::new(None, &["a", "b"]);
        world.name("a", "push");
        world.name("b", "pull");
        change(&mut world);
        world.rest();
        let row = world.row(name).unwrap();
        assert_eq!((row.phase, row.reason.as_str()), (Phase::Blocked, reason), "{}", row.message);
        assert_eq!(world.made_in_plane(name), 0, "{name}");
    };
    let cluster = |world: &mut World| world.plane.apply(&json!({ "kind": "Cluster", "metadata": { "name": "a" } }));
    check(cluster, "a", "MemberTaken");
    let account = |world: &mut World| {
        let name = super::super::names::MEMBERS_NAMESPACE;
        let taken = json!({ "kind": "ServiceAccount", "metadata": { "name": super::IMPERSONATOR, "namespace": name } });
        world.sites.get_mut("a").unwrap().api.apply(&taken);
    };
    check(account, "a", "MemberTaken");
    check(|world| world.sites.get_mut("a").unwrap().uid = "host".to_owned(), "a", "MemberIsHost");
    check(|world| world.sites.get_mut("b").unwrap().uid = "plane".to_owned(), "b", "MemberIsHost");
    check(|world| world.object.spec.api_server.service_type = Default::default(), "b", "PlaneNotExposed");
    let same = |world: &mut World| {
        world.plane.apply(&json!({
            "kind": "Cluster", "metadata": { "name": "z" }, "spec": { "id": "cluster-0" },
        }))
    };
    check(same, "a", "MemberTaken");
}

#[test]
fn while_the_host_does_not_say_who_it_is_nobody_begins_and_those_that_have_joined_are_kept() {
    let mut world = World::new(None, &["a", "b"]);
    world.name("a", "push");
    world.rest();
    world.host_is_known = false;
    world.name("b", "pull");
    world.rest();
    let row = world.row("b").unwrap();
    assert_eq!((row.phase, row.reason.as_str()), (Phase::Blocked, "ClusterUnreachable"), "{}", row.message);
    assert_eq!((world.made_in("b"), world.made_in_plane("b")), (0, 0));
    assert_eq!(world.phase("a"), Some(Phase::Joined));
    world.host_is_known = true;
    world.rest();
    assert_eq!(world.phase("b"), Some(Phase::Joined));
}

#[test]
fn another_cluster_under_the_name_of_a_member_is_not_taken_for_it() {
    let mut world = joined(None);
    world.sites.get_mut("a").unwrap().uid = "other".to_owned();
    world.rest();
    assert_eq!(world.row("a").unwrap().reason, "MemberReplaced");
}

#[test]
fn labels_and_taints_reach_the_cluster_and_the_taints_of_karmada_stay() {
    let mut world = joined(None);
    let member = &mut world.object.spec.members[0];
    member.labels = [("env".to_owned(), crds::node_metadata::LabelValue("prod".to_owned()))].into();
    member.taints = serde_json::from_value(json!([{ "key": "gpu", "effect": "NoSchedule" }])).unwrap();
    let at = world.plane.objects.iter().position(|live| live["kind"] == "Cluster" && live["metadata"]["name"] == "a");
    world.plane.objects[at.unwrap()]["spec"]["taints"] =
        json!([{ "key": "cluster.karmada.io/not-ready", "effect": "NoSchedule" }]);
    world.rest();
    let cluster = world.plane.find("Cluster", "a").unwrap();
    assert_eq!(cluster["metadata"]["labels"]["env"], "prod");
    assert_eq!(cluster["spec"]["taints"].as_array().unwrap().len(), 2);
    world.object.spec.members[0].taints.clear();
    world.rest();
    let taints = &world.plane.find("Cluster", "a").unwrap()["spec"]["taints"];
    assert_eq!(taints, &json!([{ "key": "cluster.karmada.io/not-ready", "effect": "NoSchedule" }]));
}

#[test]
fn paused_members_stay_as_they_are() {
    let mut world = joined(Some(UnjoinPolicy::Delete));
    world.object.spec.paused = true;
    world.forget("a");
    world.rest();
    assert_eq!((world.phase("a"), world.row("a").unwrap().reason.as_str()), (Some(Phase::Joined), "Paused"));
    assert_eq!(world.plan().next, Next::after_seconds(60), "nothing is on its way");
}

#[test]
fn a_plane_that_goes_takes_nothing_from_its_members() {
    for (plane_is_up, policy) in [(true, None), (true, Some(UnjoinPolicy::Preserve)), (false, None)] {
        let mut world = joined(policy);
        world.object.metadata.deletion_timestamp = Some(crds_time(&world));
        world.plane_is_up = plane_is_up;
        world.rest();
        assert!(world.object.status.as_ref().unwrap().members.is_empty());
        for name in ["a", "b"] {
            assert_eq!((world.made_in(name), world.sites[name].workloads), (0, 2), "{name}");
        }
    }
}

#[test]
fn a_cluster_that_is_deleted_leaves_without_a_policy_and_keeps_what_it_runs() {
    let mut world = joined(None);
    world.object.spec.members[0].cluster_ref = Some(crds::references::LocalRef::new("prod-a"));
    world.object.spec.members[0].kube_config_secret_name = None;
    let mut cluster = crds::Cluster::new(
        "prod-a",
        crds::cluster::ClusterSpec { kubeconfig_ref: crds::references::LocalRef::new("x") },
    );
    world.neighbours.clusters = vec![Box::leak(Box::new(cluster.clone()))];
    world.rest();
    assert_eq!(world.phase("a"), Some(Phase::Joined));
    cluster.metadata.deletion_timestamp = Some(crds_time(&world));
    world.neighbours.clusters = vec![Box::leak(Box::new(cluster))];
    world.rest();
    let row = world.row("a").unwrap();
    assert_eq!((row.phase, row.reason.as_str(), &row.cluster_uid), (Phase::Waiting, "ClusterNotFound", &None));
    assert_eq!((world.made_in("a"), world.made_in_plane("a"), world.sites["a"].workloads), (0, 0, 2));
}

#[test]
fn what_failed_for_one_member_is_said_of_it_and_tried_again_soon() {
    let mut world = joined(None);
    world.failures.insert("a".to_owned(), "failed to apply ServiceAccount x: 500".to_owned());
    let planned = world.plan();
    assert_eq!((planned.status[0].reason.as_str(), planned.status[0].phase), ("ApplyFailed", Phase::Joined));
    assert_eq!(planned.status[0].message, "failed to apply ServiceAccount x: 500");
    assert_eq!((planned.status[1].reason.as_str(), planned.next), ("AllReady", Next::after_seconds(15)));
}

#[test]
fn members_are_found_again_when_the_status_is_lost() {
    let mut world = joined(Some(UnjoinPolicy::Preserve));
    world.object.status.as_mut().unwrap().members.clear();
    world.forget("a");
    world.rest();
    assert_eq!((world.phase("a"), world.made_in("a"), world.made_in_plane("a")), (None, 0, 0));
    assert_eq!(world.phase("b"), Some(Phase::Joined));
}

fn crds_time(world: &World) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now)
}
