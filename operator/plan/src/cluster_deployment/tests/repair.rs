//! Promises of repair, from what is seen of a machine to its end: each step is waited for before the next, none is
//! tried twice for one cause, and what was decided is told.

use std::collections::BTreeSet;

use crds::ObjectExt;
use crds::cluster::ClusterStatus;
use crds::conditions::{self, Statement};
use crds::names::{annotation, condition};
use crds::step::{Intent, Step as RunStep};
use crds::{Machine, PlaybookRun};
use proptest::prelude::*;

use super::ready;
use crate::attempts;
use crate::testing::World;

/// A turn of this world takes 700 seconds: an action has two of them to make the node Ready.
const POLICY: &str =
    "remediation: {unhealthyAfterSeconds: 1000, waitSeconds: 2000, maxUnhealthy: 2, cooldownSeconds: 0}";

/// What makes a sick machine well.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cure {
    Restart,
    Reboot,
    Nothing,
}

fn workers(replicas: usize) -> String {
    format!("controlPlane: {{replicas: 1}}, workers: [{{name: general, replicas: {replicas}}}], {POLICY}")
}

/// A cluster that stands and whose API answers.
fn standing(spec: &str, hosts: usize) -> World {
    let mut world = World::new(spec, hosts);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    let now = world.time();
    let status = world.cluster.as_mut().unwrap().status.get_or_insert_with(ClusterStatus::default);
    let reachable = Statement::new(condition::REACHABLE, true, "Answers", "the API answers");
    status.conditions = conditions::state(&[], &[reachable], None, &now);
    world
}

/// The repairs of a Host, in order.
fn efforts<'a>(world: &'a World, host: &str) -> Vec<&'a PlaybookRun> {
    let of_host =
        |run: &&PlaybookRun| run.spec.intent == Intent::Repair && run.spec.hosts == [host] && run.spec.steps.len() == 1;
    world.runs.iter().filter(of_host).collect()
}

fn tried(world: &World, host: &str) -> Vec<String> {
    let efforts = efforts(world, host).into_iter();
    efforts.map(|run| run.spec.steps[0].name().to_owned()).collect()
}

/// What was done to a machine does to its node what it can.
fn cure(world: &mut World, host: &str, cure: Cure) {
    let helps = |run: &&PlaybookRun| {
        let step = run.spec.steps[0];
        let cures = (step == RunStep::RestartServices && cure == Cure::Restart)
            || (step == RunStep::Reboot && [Cure::Restart, Cure::Reboot].contains(&cure));
        cures && attempts::outcome(run, host) == attempts::Outcome::Succeeded
    };
    if efforts(world, host).iter().any(helps) {
        world.silent_nodes.remove(host);
        world.cut_off_nodes.remove(host);
    }
}

fn machine_on<'a>(world: &'a World, host: &str) -> Option<&'a Machine> {
    world.machines.iter().find(|machine| {
        let named = machine.spec.host_ref.as_ref();
        !machine.is_deleting() && named.is_some_and(|named| named.name == host)
    })
}

fn remediation(machine: &Machine) -> (String, String) {
    let conditions = &machine.status.as_ref().unwrap().conditions;
    let there = conditions::find(conditions, condition::REMEDIATION);
    there.map_or_else(Default::default, |there| (there.reason.clone(), there.message.clone()))
}

fn reason(world: &World, host: &str) -> String {
    machine_on(world, host).map(|machine| remediation(machine).0).unwrap_or_default()
}

/// The reasons that the Machine on a Host goes through, each once, while time passes.
fn story(world: &mut World, host: &str, helps: Cure, turns: usize) -> Vec<String> {
    let mut story: Vec<String> = Vec::new();
    for _ in 0..turns {
        world.run_for(1);
        cure(world, host, helps);
        let now = reason(world, host);
        if !now.is_empty() && story.last() != Some(&now) {
            story.push(now);
        }
    }
    story
}

#[test]
fn a_dead_kubelet_is_restarted_and_nothing_more_is_done() {
    let mut world = standing(&workers(2), 4);
    world.silent_nodes.insert("h2".into());
    let story = story(&mut world, "h2", Cure::Restart, 12);
    assert_eq!(story, ["Waiting", "RestartingServices", "WaitingForNode", "Recovered"]);
    assert_eq!(tried(&world, "h2"), ["restart-services"]);
    assert_eq!(ready(&world), ("True".into(), "Running".into(), "running".into()));
    let (_, message) = remediation(machine_on(&world, "h2").unwrap());
    assert!(message.starts_with("its node is Ready again; before: "), "{message}");
}

#[test]
fn a_machine_whose_pods_are_cut_off_is_named_and_repaired_where_a_policy_counts_it() {
    let network = |world: &World| {
        let status = world.deployment.status.as_ref().unwrap();
        let network = conditions::find(&status.conditions, condition::NETWORK_READY).unwrap();
        (network.reason.clone(), network.message.clone())
    };
    let check = |counted: &str, expected: &[&str], at_the_end: &str| {
        let policy = format!("cooldownSeconds: 0{counted}}}");
        let mut world = standing(&workers(2).replace("cooldownSeconds: 0}", &policy), 4);
        assert_eq!(network(&world).0, "NodesReady");
        world.cut_off_nodes.insert("h2".into());
        world.run_for(2);
        let (reason, message) = network(&world);
        assert_eq!(reason, "NodesCutOff");
        assert!(message.contains("(h2): its Pods are cut off: 0 of 2"), "{message}");
        assert!(!message.contains("(h3)"), "{message}");
        assert_eq!(ready(&world).0, "True", "the node is Ready all the same");
        assert_eq!(story(&mut world, "h2", Cure::Restart, 12), expected);
        assert_eq!(network(&world).0, at_the_end);
    };
    check("", &[], "NodesCutOff");
    let repaired = ["Waiting", "RestartingServices", "WaitingForNode", "Recovered"];
    check(", unhealthyConditions: [NetworkReady]", &repaired, "NodesReady");
}

#[test]
fn a_machine_that_a_restart_does_not_help_is_rebooted_once_that_was_waited_for() {
    let mut world = standing(&workers(2), 4);
    world.silent_nodes.insert("h2".into());
    let story = story(&mut world, "h2", Cure::Reboot, 20);
    assert_eq!(story, ["Waiting", "RestartingServices", "WaitingForNode", "Rebooting", "WaitingForNode", "Recovered"]);
    assert_eq!(tried(&world, "h2"), ["restart-services", "reboot"]);
    let efforts = efforts(&world, "h2");
    let made = efforts[1].metadata.creation_timestamp.as_ref().unwrap().0;
    let waited = made.duration_since(attempts::ended_at(efforts[0]).unwrap());
    assert!(waited.as_secs() >= 2000, "{waited:?}");
}

#[test]
fn a_machine_that_nothing_helps_is_replaced_from_the_pool() {
    let mut world = standing(&workers(2), 4);
    world.silent_nodes.insert("h2".into());
    let uid = machine_on(&world, "h2").unwrap().metadata.uid.clone();
    story(&mut world, "h2", Cure::Nothing, 40);
    world.settle();
    assert_eq!(tried(&world, "h2"), ["restart-services", "reboot"]);
    assert!(world.machines.iter().all(|machine| machine.metadata.uid != uid));
    assert_eq!(world.machines.len(), 3);
    assert!(machine_on(&world, "h4").is_some(), "a spare Host took its place");
    assert!(!world.dirty.contains("h2"), "it was cleaned, since SSH reached it");
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_dead_machine_is_replaced_without_a_reboot() {
    let mut world = standing(&workers(2), 4);
    world.kill("h2");
    for _ in 0..30 {
        world.run_for(1);
    }
    assert_eq!(tried(&world, "h2"), ["restart-services"], "SSH did not answer");
    assert!(machine_on(&world, "h4").is_some());
    assert!(machine_on(&world, "h2").is_none());
}

/// Row 1: the operator is killed after every write, or a few, and what was lost of the status with it.
#[test]
fn an_operator_that_is_killed_after_every_write_tries_each_step_once() {
    for helps in [Cure::Restart, Cure::Reboot, Cure::Nothing] {
        for writes in 1..=5 {
            let spec = workers(2).replace("waitSeconds: 2000", "waitSeconds: 30000");
            let mut world = standing(&spec, 4);
            world.silent_nodes.insert("h2".into());
            // Once it is replaced, nobody takes the machine that nothing helps.
            world.hosts[1].spec.unschedulable = true;
            for turn in 0..200 {
                // One turn begins with one write, the next with two, and so on.
                world.run_write_by_write(writes);
                cure(&mut world, "h2", helps);
                if turn % 7 == writes {
                    world.lose_repairs();
                }
            }
            world.settle();
            let expected: &[&str] = match helps {
                Cure::Restart => &["restart-services"],
                Cure::Reboot | Cure::Nothing => &["restart-services", "reboot"],
            };
            assert_eq!(tried(&world, "h2"), expected, "{helps:?}, {writes}");
            assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
            let replaced = helps == Cure::Nothing;
            assert_eq!(machine_on(&world, "h4").is_some(), replaced, "{helps:?}, {writes}");
            assert_eq!(world.machines.len(), 3);
        }
    }
}

/// Row 42, column Rd.
#[test]
fn with_too_many_sick_at_once_nothing_is_done_without_a_persons_word_row_42() {
    let mut world = standing(&workers(6), 9);
    for host in ["h2", "h3", "h4"] {
        world.silent_nodes.insert(host.into());
    }
    world.run_for(8);
    assert!(world.runs.iter().all(|run| run.spec.intent != Intent::Repair));
    assert_eq!(world.machines.len(), 7);
    let (reason, message) = remediation(machine_on(&world, "h2").unwrap());
    assert_eq!(reason, "TooManyUnhealthy");
    let command = "kubectl -n fleet annotate --overwrite clusterdeployments.clusterwright.dev a clusterwright.dev/approve=repair.";
    assert!(message.contains(command), "{message}");
    let first = asked(&message);
    let of_cluster = world.deployment.status.as_ref().unwrap();
    let of_cluster = conditions::find(&of_cluster.conditions, condition::REMEDIATION).unwrap();
    assert_eq!((of_cluster.status.as_str(), of_cluster.reason.as_str()), ("False", "TooManyUnhealthy"));

    for other in ["1", "1.repair", "repair.000000000000", "1.2"] {
        approve(&mut world, other);
        world.run_for(3);
        assert!(world.runs.iter().all(|run| run.spec.intent != Intent::Repair), "{other} is no word for it");
    }
    approve(&mut world, &first);
    world.run_for(3);
    assert_eq!(tried(&world, "h2"), ["restart-services"]);
    assert!(tried(&world, "h3").is_empty(), "maxUnavailable holds all the same");

    // Well again; the next time another word is asked for.
    world.silent_nodes.clear();
    world.run_for(4);
    assert_eq!(world.deployment.status.as_ref().unwrap().repair_approval, None);
    for host in ["h5", "h6", "h7"] {
        world.silent_nodes.insert(host.into());
    }
    world.run_for(8);
    assert!(tried(&world, "h5").is_empty(), "the old word counts for nothing");
    let (_, message) = remediation(machine_on(&world, "h5").unwrap());
    let second = asked(&message);
    assert_eq!(second.split(',').next(), Some(first.as_str()), "those that are there stay");
    assert!(second.contains(",repair."), "{message}");
}

/// The approval that a message asks for.
fn asked(message: &str) -> String {
    let (_, value) = message.rsplit_once("clusterwright.dev/approve=").unwrap();
    value.split_whitespace().next().unwrap().to_owned()
}

fn approve(world: &mut World, value: &str) {
    let annotations = world.deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::APPROVE.into(), value.into());
}

#[test]
fn an_approval_of_repairs_shrinks_no_etcd() {
    let three = format!("controlPlane: {{replicas: 3, endpoint: {{host: 10.0.0.9}}}}, {POLICY}");
    let mut world = standing(&three, 4);
    world.respec(&three.replace("replicas: 3", "replicas: 1"));
    world.settle();
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "QuorumRisk");
    let shrink = asked(&message);
    let (_, digest) = shrink.split_once("shrink.").unwrap();
    // The very same acts, under the other name.
    approve(&mut world, &format!("repair.{digest}"));
    world.settle();
    assert_eq!((world.voters.len(), ready(&world).1.as_str()), (3, "QuorumRisk"));
    approve(&mut world, &shrink);
    world.settle();
    assert_eq!(world.voters.len(), 1);
}

#[test]
fn a_ready_worker_is_not_taken_away_while_too_few_others_are_ready() {
    let mut world = standing(&workers(4), 5);
    // No policy: nobody repairs it.
    world.deployment.spec.remediation = None;
    world.touch();
    world.silent_nodes.extend(["h2".to_owned(), "h3".to_owned()]);
    world.settle();
    for host in ["h4", "h5"] {
        let name = machine_on(&world, host).unwrap().metadata.name.clone();
        let machine = world.machines.iter_mut().find(|machine| machine.metadata.name == name).unwrap();
        let annotations = machine.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::DELETE_FIRST.into(), "yes".into());
    }
    world.deployment.spec.workers[0].replicas = Some(2);
    world.touch();
    world.settle();
    let left: Vec<bool> = ["h2", "h3", "h4", "h5"].map(|host| machine_on(&world, host).is_some()).into();
    assert_eq!(left, [true, true, true, false], "of 2 wanted, one may be out of service");
    let says = world
        .sets
        .iter()
        .find_map(|set| set.status.as_ref()?.message.clone().filter(|says| says.contains("cannot go")));
    assert!(says.unwrap().contains("maxUnavailable comes to 1"));
    world.silent_nodes.clear();
    world.settle();
    assert!(machine_on(&world, "h4").is_none(), "the others are Ready now");
    assert_eq!(world.machines.len(), 3);
}

const DEDICATED: &str =
    "controlPlane: {replicas: 1, endpoint: {host: 10.0.0.9}}, etcd: {topology: Dedicated, replicas: 3}";

fn etcd_hosts(world: &World) -> Vec<String> {
    world.voters.iter().cloned().collect()
}

#[test]
fn a_member_of_a_dedicated_etcd_is_looked_at_only_where_somebody_cares() {
    let mut world = standing(DEDICATED, 5);
    world.run_for(10);
    assert!(world.runs.iter().all(|run| !crate::etcd::is_probe(run)));

    let mut world = standing(&format!("{DEDICATED}, {POLICY}"), 5);
    world.run_for(40);
    let looks: Vec<&PlaybookRun> = world.runs.iter().filter(|run| crate::etcd::is_probe(run)).collect();
    assert!(looks.len() <= 4, "old ones go: {}", looks.len());
    let hosts: BTreeSet<&String> = looks.iter().flat_map(|run| &run.spec.hosts).collect();
    assert_eq!(hosts.len(), 3);
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_member_of_a_dedicated_etcd_that_hangs_is_restarted() {
    let mut world = standing(&format!("{DEDICATED}, {POLICY}"), 5);
    let sick = etcd_hosts(&world)[0].clone();
    world.silent_nodes.insert(sick.clone());
    let story = story(&mut world, &sick, Cure::Restart, 20);
    assert_eq!(story, ["Waiting", "RestartingServices", "WaitingForNode", "Recovered"]);
    assert_eq!(tried(&world, &sick), ["restart-services"]);
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_dead_member_of_a_dedicated_etcd_is_taken_out_and_then_another_comes() {
    let mut world = standing(&format!("{DEDICATED}, {POLICY}"), 5);
    let dead = etcd_hosts(&world)[0].clone();
    world.kill(&dead);
    let mut steps = BTreeSet::new();
    let (mut out, mut came) = (None, None);
    for _ in 0..60 {
        world.run_for(1);
        steps.extend(tried(&world, &dead));
        // Their runs go with the history.
        let ended = |wanted: &dyn Fn(&PlaybookRun) -> bool| {
            let mut runs = world.runs.iter().filter(|run| attempts::is_over(run));
            runs.find(|run| wanted(run)).and_then(attempts::ended_at)
        };
        out = out.or_else(|| ended(&|run| run.spec.steps.contains(&RunStep::RemoveEtcdMember)));
        came = came.or_else(|| ended(&|run| run.spec.intent == Intent::Join));
    }
    let steps: Vec<String> = steps.into_iter().collect();
    assert_eq!(steps, ["restart-services"], "SSH did not answer");
    assert_eq!(world.voters.len(), 3);
    assert!(!world.voters.contains(&dead), "{:?}", world.voters);
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    assert!(out.unwrap() < came.unwrap(), "the bad member goes before the new one comes");
}

#[test]
fn of_a_dedicated_etcd_without_a_majority_nothing_is_replaced() {
    let mut world = standing(&format!("{DEDICATED}, {POLICY}"), 7);
    let members = etcd_hosts(&world);
    world.kill(&members[0]);
    world.kill(&members[1]);
    world.run_for(30);
    assert_eq!(etcd_hosts(&world), members);
    assert!(tried(&world, &members[0]).is_empty() && tried(&world, &members[1]).is_empty());
    assert_eq!(world.machines.len(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    /// The world itself holds etcd's majority, and one change at a time, at every turn.
    #[test]
    fn whatever_becomes_of_the_members_of_a_dedicated_etcd_it_keeps_its_majority_and_settles(
        happenings in proptest::collection::vec((0usize..3, 0u8..4, 1usize..6), 1..12),
    ) {
        let mut world = standing(&format!("{DEDICATED}, {POLICY}"), 7);
        for (which, what, turns) in happenings {
            let members = etcd_hosts(&world);
            let sick = members.iter().filter(|host| world.silent_nodes.contains(*host)).count();
            let host = members[which % members.len()].clone();
            // One at a time: a second death before the first is made good may cost the majority.
            match what {
                0 if sick == 0 && members.len() == 3 => world.kill(&host),
                1 if sick == 0 && members.len() == 3 => drop(world.silent_nodes.insert(host)),
                // SSH alone is gone: no reason to do anything.
                2 => drop(world.silent.insert(host)),
                _ => members.iter().for_each(|host| world.revive(host)),
            }
            world.run_for(turns);
            prop_assert!(world.has_quorum());
        }
        let hosts: Vec<String> = world.hosts.iter().filter_map(|host| host.metadata.name.clone()).collect();
        hosts.iter().for_each(|host| world.revive(host));
        world.run_for(60);
        prop_assert_eq!(world.voters.len(), 3);
        prop_assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    }
}
