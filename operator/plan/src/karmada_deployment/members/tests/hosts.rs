//! Members whose kubeconfig is read on a Host.

use std::collections::BTreeSet;

use crds::karmada_deployment::{KarmadaMemberPhase as Phase, UnjoinPolicy};
use crds::names::label;
use crds::step::{Intent, Step};
use jiff::SignedDuration;
use serde_json::json;

use super::world::World;

fn world(modes: &[(&str, &str)]) -> World {
    let names: Vec<&str> = modes.iter().map(|(name, _)| *name).collect();
    let mut world = World::new(Some(UnjoinPolicy::Preserve), &names);
    modes.iter().for_each(|(name, mode)| world.name_by_host(name, mode));
    world
}

fn joined() -> World {
    let mut world = world(&[("a", "push"), ("b", "pull")]);
    world.rest();
    assert_eq!(
        (world.phase("a"), world.phase("b")),
        (Some(Phase::Joined), Some(Phase::Joined)),
        "{:?}",
        world.row("a")
    );
    world
}

/// What the row of a member says: its reason and its message.
fn said(world: &World, name: &str) -> (String, String) {
    let row = world.row(name).unwrap();
    (row.reason.clone(), row.message.clone())
}

#[test]
fn a_kubeconfig_is_read_on_the_host_kept_and_its_run_forgotten_before_the_member_joins() {
    let mut world = world(&[("a", "push")]);
    assert_eq!(world.turn(), 1);
    let run = world.read["a"].runs[0].clone();
    assert_eq!((run.spec.intent, &run.spec.steps), (Intent::Probe, &vec![Step::ReadKubeconfig]));
    assert_eq!((&run.spec.hosts, &run.spec.cluster_name), (&vec!["h-a".to_owned()], &None));
    assert_eq!(run.metadata.labels.as_ref().unwrap()[label::KARMADA_MEMBER], "a");
    assert_eq!(run.metadata.owner_references.as_ref().unwrap()[0].uid, "plane-uid");
    let (reason, message) = said(&world, "a");
    assert_eq!(reason, "ReadingKubeconfig");
    assert!(message.contains("on Host h-a") && message.contains(run.metadata.name.as_deref().unwrap()), "{message}");
    assert_eq!(world.turn(), 1, "it is kept");
    assert_eq!(world.turn(), 1, "its run goes");
    world.rest();
    assert_eq!(world.phase("a"), Some(Phase::Joined));
    assert!(world.read["a"].kept.is_some() && world.read["a"].runs.is_empty());
    assert_eq!(world.row("a").unwrap().host_ref.as_ref().unwrap().name, "h-a");
    assert!(world.plan().actions.is_empty());
}

#[test]
fn a_pull_member_joins_by_a_host_as_well() {
    let world = joined();
    assert!(world.sites["b"].api.find("Deployment", "karmada-agent").is_some());
}

#[test]
fn a_host_that_is_missing_claimed_or_free_for_clusters_is_not_logged_in_to_and_the_message_says_what_to_do() {
    let check = |change: fn(&mut World), reason: &str, says: &str| {
        let mut world = world(&[("a", "push")]);
        change(&mut world);
        assert_eq!(world.turn(), 0, "{reason}");
        let (told, message) = said(&world, "a");
        assert_eq!((told.as_str(), world.phase("a")), (reason, Some(Phase::Waiting)), "{message}");
        assert!(message.contains("hostRef: Host h-a") && message.contains(says), "{message}");
    };
    check(|world| drop(world.hosts.remove("h-a")), "HostNotFound", "make it, or name another one");
    check(
        |world| {
            let claim = json!({ "kind": "Machine", "name": "m", "uid": "u" });
            world.hosts.get_mut("h-a").unwrap().spec.claim_ref = serde_json::from_value(claim).unwrap();
        },
        "HostClaimed",
        "name its cluster in clusterRef",
    );
    check(
        |world| world.hosts.get_mut("h-a").unwrap().spec.unschedulable = false,
        "HostSchedulable",
        "kubectl -n fleet patch hosts.clusterwright.dev h-a --type=merge",
    );
}

#[test]
fn what_fails_on_the_machine_is_said_and_tried_again_with_backoff_and_at_once_when_the_host_is_changed() {
    let mut world = world(&[("a", "push")]);
    let failure = ("KubeconfigNotFound".to_owned(), "no kubeconfig at /etc/kubernetes/admin.conf".to_owned());
    world.unreadable.insert("h-a".to_owned(), failure);
    world.turn();
    let name = |world: &World| world.read["a"].runs[0].metadata.name.clone();
    let mut made = BTreeSet::from([name(&world)]);
    for _ in 0..90 {
        world.turn();
        assert_eq!(world.read["a"].runs.len(), 1);
        made.insert(name(&world));
    }
    assert!((4..9).contains(&made.len()), "within half an hour: {made:?}");
    let tried = name(&world);
    world.turn();
    let (reason, message) = said(&world, "a");
    assert_eq!(reason, "KubeconfigNotFound", "{message}");
    assert!(message.contains("Host h-a: no kubeconfig at /etc/kubernetes/admin.conf"), "{message}");
    assert_eq!(name(&world), tried, "it waits");
    world.unreadable.clear();
    world.hosts.get_mut("h-a").unwrap().metadata.generation = Some(2);
    world.rest();
    assert_eq!(world.phase("a"), Some(Phase::Joined));
}

#[test]
fn a_kubeconfig_that_is_refused_is_read_again_and_not_more_often_than_every_ten_minutes() {
    let mut world = joined();
    let read = |world: &World| world.read["a"].kept.clone().unwrap().at.unwrap().0;
    let first = read(&world);
    world.now += SignedDuration::from_hours(24);
    world.refusing.insert("a".to_owned());
    world.rest();
    let second = read(&world);
    assert!(world.read["a"].runs.is_empty() && second > first && world.phase("a") == Some(Phase::Joined));
    world.refusing.insert("a".to_owned());
    for _ in 0..20 {
        world.turn();
        assert_eq!(read(&world), second);
    }
    assert_eq!(world.phase("a"), Some(Phase::Joined), "Karmada has its own token");
    let (reason, message) = said(&world, "a");
    assert_eq!(reason, "MemberUnreachable");
    assert!(message.contains("apiServer.certSANs") && message.contains("192.0.2.7"), "{message}");
    world.now += SignedDuration::from_secs(600);
    world.rest();
    assert!(read(&world) > second);
}

#[test]
fn a_member_that_only_does_not_answer_is_not_logged_in_to_again() {
    let mut world = joined();
    world.sites.get_mut("a").unwrap().is_up = false;
    world.now += SignedDuration::from_hours(24);
    world.rest();
    assert!(world.read["a"].runs.is_empty());
    world.hosts.clear();
    world.sites.get_mut("a").unwrap().is_up = true;
    world.rest();
    assert_eq!(world.phase("a"), Some(Phase::Joined), "what is kept does without the Host");
}

#[test]
fn a_host_that_clusters_may_take_again_is_said_of_a_member_that_has_joined() {
    let mut world = joined();
    world.hosts.get_mut("h-a").unwrap().spec.unschedulable = false;
    world.rest();
    assert_eq!((said(&world, "a").0.as_str(), world.phase("a")), ("HostSchedulable", Some(Phase::Joined)));
}

#[test]
fn what_was_read_goes_with_the_member_also_with_one_that_never_began_or_is_reached_otherwise() {
    let mut world = joined();
    world.forget("a");
    world.rest();
    assert_eq!((world.phase("a"), world.made_in("a")), (None, 0));
    assert!(world.read["a"].kept.is_none() && world.read["a"].runs.is_empty());

    world.name("b", "pull");
    world.rest();
    assert_eq!(world.phase("b"), Some(Phase::Joined));
    assert!(world.read["b"].kept.is_none() && world.row("b").unwrap().host_ref.is_none());

    let mut world = self::world(&[("a", "push")]);
    world.sites.get_mut("a").unwrap().is_up = false;
    world.rest();
    assert!(world.read["a"].kept.is_some() && world.phase("a") == Some(Phase::Waiting));
    world.forget("a");
    world.rest();
    assert_eq!(world.phase("a"), None);
    assert!(world.read["a"].kept.is_none());
}

#[test]
fn a_secret_of_another_object_is_not_touched() {
    let mut world = world(&[("a", "push")]);
    world.read.entry("a".to_owned()).or_default().foreign = Some("Secret k1-kubeconfig-a is another object's".into());
    assert_eq!(world.turn(), 0);
    assert_eq!(said(&world, "a").0, "NameTaken");
}
