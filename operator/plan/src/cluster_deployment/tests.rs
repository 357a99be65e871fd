//! Promises of the planners of ClusterDeployment, MachineSet and Machine, kept together in a small world: an API
//! without a server, an executor whose outcomes are given, and probes that find machines clean when they are.

mod backups;
mod certificates;
mod changes;
mod clocks;
mod component_versions;
mod configuration;
mod control_plane_configuration;
mod deletion;
mod drift;
mod encryption;
mod etcd;
mod extensions;
mod external_etcd;
mod fencing;
mod fields;
mod former;
mod growth;
mod history;
mod interruptions;
mod lost_lock;
mod node_metadata;
mod own_addon;
mod own_authorities;
mod pauses;
mod pki;
mod pool;
mod prepared;
mod rebuild;
mod rebuild_cut_off;
mod repair;
mod restores;
mod restoring;
mod rollout;
mod rotation;
mod rows;
mod settings;
mod surge;
mod turmoil;
mod upgrade;
mod upgrade_begins;
mod upgrade_paths;
mod versions;

use crds::cluster_deployment::DeletionPolicy;
use crds::conditions;
use crds::lock::LockMode;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role};
use proptest::prelude::*;

use crate::testing::{Fate, World};

fn ready(world: &World) -> (String, String, String) {
    let status = world.deployment.status.clone().unwrap_or_default();
    let ready = conditions::find(&status.conditions, condition::READY).cloned().unwrap();
    (ready.status, ready.reason, status.message.unwrap_or_default())
}

#[test]
fn one_control_plane_and_two_workers_become_a_cluster() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]", 3);
    world.settle();
    let status = world.deployment.status.clone().unwrap();
    assert_eq!(ready(&world), ("True".into(), "Running".into(), "running".into()));
    assert_eq!(status.control_plane.unwrap().summary, "1/1");
    assert_eq!(status.workers.unwrap().summary, "2/2");
    assert_eq!(status.endpoint.as_deref(), Some("https://10.0.0.1:6443"));
    assert_eq!(status.kubernetes_version.as_deref(), Some("1.35.4"));
    assert_eq!(status.operations, []);
    let intents: Vec<Intent> = world.runs.iter().map(|run| run.spec.intent).collect();
    let expected = [Intent::Install, Intent::Prepare, Intent::Join];
    assert_eq!(intents, expected, "one run for the control plane, and one each to prepare and join all workers");
    assert_eq!(world.runs[1].spec.hosts, ["h2", "h3"]);
    assert_eq!(world.runs[2].spec.hosts, ["h2", "h3"]);
}

#[test]
fn what_the_pool_lacks_is_said_in_one_sentence() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 3}]", 3);
    world.settle();
    let (status, reason, message) = ready(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaitingForHosts"));
    assert_eq!(message, "waits for Hosts: workers general needs 1, 0 free match");
    assert_eq!(world.deployment.status.clone().unwrap().workers.unwrap().summary, "2/3");
}

#[test]
fn an_install_is_tried_three_times_and_then_a_person_is_told_what_to_do() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = vec![Fate::Fails; 3];
    world.settle();
    assert_eq!(world.runs.len(), 3);
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "InstallFailed");
    assert!(message.contains("after 3 attempts (TaskFailed)"), "{message}");
    assert!(
        message.contains(
            "kubectl -n fleet annotate --overwrite clusterdeployments.clusterwright.dev a clusterwright.dev/retry=1"
        ),
        "{message}"
    );

    world.deployment.metadata.annotations = Some([(annotation::RETRY.to_owned(), "1".to_owned())].into());
    world.settle();
    assert_eq!(ready(&world).0, "True");
    assert_eq!(world.runs.len(), 4);
}

#[test]
fn after_a_mixed_join_only_the_one_that_failed_is_tried_again() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]", 3);
    world.fates = vec![Fate::Well, Fate::Fails, Fate::Well];
    world.settle();
    let works = world.runs.iter().filter(|run| run.spec.intent != Intent::Probe);
    let hosts: Vec<_> = works.map(|run| run.spec.hosts.clone()).collect();
    assert_eq!(hosts, [vec!["h1"], vec!["h2", "h3"], vec!["h2", "h3"], vec!["h2"]], "installed, prepared, joined");
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_worker_that_cannot_join_holds_up_nobody() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]", 3);
    world.always_fails = vec!["h2".into()];
    world.settle();
    let (_, reason, message) = ready(&world);
    assert_eq!(reason, "JoinFailed");
    assert!(message.contains("(h2) could not join after 3 attempts"), "{message}");
    world.respec("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 3}]");
    world.settle();
    let status = world.deployment.status.as_ref().unwrap();
    assert_eq!(status.workers.as_ref().unwrap().summary, "1/3");
}

#[test]
fn what_cannot_be_met_is_refused_with_its_field_and_no_machine_is_made() {
    let check = |spec: &str, reason: &str, field: &str| {
        let mut world = World::new(spec, 9);
        if reason == "ArtifactSourceMissing" {
            world.deployment.spec.artifacts = None;
            world.deployment.spec.kubernetes_version = "1.33.4".parse().unwrap();
        }
        world.settle();
        let (status, found, message) = ready(&world);
        assert_eq!((status.as_str(), found.as_str()), ("False", reason), "{message}");
        assert!(message.starts_with(field), "{message}");
        assert!(world.sets.is_empty() && world.machines.is_empty() && world.runs.is_empty());
    };
    check(
        "controlPlane: {replicas: 1, endpoint: {host: 10.0.0.1, provider: Keepalived}}",
        "VIPInUse",
        "spec.controlPlane.endpoint.host 10.0.0.1",
    );
    check("controlPlane: {replicas: 1}", "ArtifactSourceMissing", "spec.artifacts.url");
    check(
        "controlPlane: {replicas: 1}, networking: {podCIDR: 10.244.0.0/22}, workers: [{name: w, replicas: 4}]",
        "PodCIDRTooSmall",
        "spec.networking.podCIDR",
    );
}

#[test]
fn dedicated_etcd_is_installed_in_the_same_run() {
    let mut world = World::new(
        "controlPlane: {replicas: 3, endpoint: {host: 10.0.0.9}}, etcd: {topology: Dedicated, replicas: 3}",
        6,
    );
    world.settle();
    assert_eq!(world.runs.len(), 1);
    assert_eq!(world.runs[0].spec.hosts.len(), 6);
    assert_eq!(world.deployment.status.clone().unwrap().endpoint.as_deref(), Some("https://10.0.0.9:6443"));
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_deleted_cluster_gives_clean_machines_back() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]", 3);
    world.settle();
    world.delete();
    world.fates = vec![Fate::Well, Fate::Fails, Fate::Well];
    world.settle();
    assert!(world.gone && world.machines.is_empty());
    assert!(
        world.hosts.iter().all(
            |host| host.spec.claim_ref.is_none() && host.metadata.finalizers.clone().unwrap_or_default().is_empty()
        )
    );
    assert!(world.dirty.is_empty());
    let resets: Vec<usize> =
        world.runs.iter().filter(|run| run.spec.intent == Intent::Reset).map(|run| run.spec.hosts.len()).collect();
    assert_eq!(resets, [2, 1, 1], "the workers at once, then the one that failed, then the control plane");
}

#[test]
fn a_detached_cluster_leaves_its_machines_as_they_are() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]", 3);
    world.deployment.spec.deletion_policy = DeletionPolicy::Detach;
    world.settle();
    let runs = world.runs.len();
    world.delete();
    world.settle();
    assert!(world.gone);
    assert_eq!((world.runs.len(), world.dirty.len()), (runs, 3));
    assert!(world.hosts.iter().all(|host| crate::claims::why_not(host).is_some()), "none is believed to be clean");
}

#[test]
fn a_cluster_that_was_never_installed_goes_without_a_reset() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]", 0);
    world.settle();
    world.delete();
    world.settle();
    assert!(world.gone && world.runs.is_empty());
}

#[test]
fn fewer_workers_are_cleaned_and_their_nodes_deleted() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]", 3);
    world.settle();
    let newest = world.machines.iter().rfind(|machine| machine.spec.role == Role::Worker).unwrap();
    let (name, host) = (newest.metadata.name.clone(), newest.spec.host_ref.clone().unwrap().name);
    world.respec("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]");
    world.settle();
    assert!(world.machines.iter().all(|machine| machine.metadata.name != name));
    assert_eq!(world.deleted_nodes, std::slice::from_ref(&host));
    assert!(!world.dirty.contains(&host));
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn a_count_that_the_spec_gives_is_put_back_and_an_open_one_is_kept() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}, {name: open}]", 4);
    world.settle();
    let scale = |world: &mut World, name: &str, replicas| {
        let set = world.sets.iter_mut().find(|set| set.metadata.name.as_deref() == Some(name)).unwrap();
        set.spec.replicas = replicas;
    };
    scale(&mut world, "a-open", 2);
    scale(&mut world, "a-general", 3);
    world.settle();
    let replicas: Vec<i32> = world.sets.iter().map(|set| set.spec.replicas).collect();
    assert_eq!(replicas, [1, 1, 2]);
    let status = world.deployment.status.clone().unwrap();
    let told = conditions::find(&status.conditions, "ReplicasReverted").unwrap();
    assert!(told.message.contains("a-general was scaled to 3 and is put back to 1"), "{}", told.message);
    assert_eq!(status.workers.unwrap().summary, "3/3");
}

#[test]
fn a_count_that_becomes_open_keeps_its_value() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]", 3);
    world.settle();
    world.respec("controlPlane: {replicas: 1}, workers: [{name: general, labels: {pool: x}}]");
    world.settle();
    assert_eq!(world.sets[1].spec.replicas, 2);
    assert_eq!(world.machines.len(), 3);
}

#[test]
fn a_set_that_is_no_longer_wanted_goes_with_its_machines() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 2}]", 3);
    world.settle();
    world.respec("controlPlane: {replicas: 1}");
    world.settle();
    assert_eq!((world.sets.len(), world.machines.len(), world.dirty.len()), (1, 1, 1));
}

#[test]
fn paused_grants_nothing_and_starts_nothing() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]", 3);
    world.deployment.spec.paused = true;
    world.settle();
    assert!(world.machines.is_empty() && world.runs.is_empty());
    world.deployment.spec.paused = false;
    world.touch();
    world.settle();
    assert_eq!(ready(&world).0, "True");
    world.custom_run("by-hand", &["h1"]);
    world.deployment.spec.paused = true;
    world.touch();
    world.settle();
    assert!(world.deployment.status.clone().unwrap().operations.is_empty());
    world.deployment.spec.paused = false;
    world.touch();
    world.settle();
    assert_eq!(world.runs.iter().filter(|run| crate::attempts::is_over(run)).count(), world.runs.len());
}

#[test]
fn a_canceled_install_waits_for_a_person() {
    let mut world = World::new("controlPlane: {replicas: 1}", 1);
    world.fates = vec![Fate::Canceled];
    world.settle();
    assert_eq!((world.runs.len(), ready(&world).1.as_str()), (1, "InstallCanceled"));
}

#[test]
fn a_control_plane_machine_that_is_deleted_stays_until_another_has_come() {
    let mut world = World::new("controlPlane: {replicas: 1}", 2);
    world.settle();
    let now = world.time();
    world.machines[0].metadata.deletion_timestamp = Some(now);
    world.settle();
    assert_eq!(world.machines.len(), 2, "its set makes another");
    world.delete();
    world.settle();
    assert!(world.gone);
}

#[test]
fn two_clusters_never_share_a_host() {
    // The second cluster is the first one's Machines seen from a pool that they exhaust.
    let mut world =
        World::new("controlPlane: {replicas: 1}, workers: [{name: x, replicas: 2}, {name: y, replicas: 2}]", 3);
    world.settle();
    let mut claims: Vec<_> =
        world.hosts.iter().filter_map(|host| host.spec.claim_ref.clone()).map(|claim| claim.uid).collect();
    claims.sort();
    claims.dedup();
    assert_eq!(claims.len(), 3);
}

/// What people and old backups do in the middle.
#[derive(Clone, Debug)]
enum Meddling {
    Pause,
    GoOn,
    LoseStatus,
    LoseEndedRuns,
    Custom(usize),
}

fn meddling() -> impl Strategy<Value = Meddling> {
    prop_oneof![
        Just(Meddling::Pause),
        Just(Meddling::GoOn),
        Just(Meddling::LoseStatus),
        Just(Meddling::LoseEndedRuns),
        (1usize..9).prop_map(Meddling::Custom),
    ]
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        4 => Just(Fate::Well),
        3 => Just(Fate::Fails),
        1 => (0usize..9).prop_map(Fate::FailsAfter),
        1 => Just(Fate::Unreachable),
        2 => (0usize..9).prop_map(Fate::Lost),
        1 => (0usize..9).prop_map(Fate::Deadline),
        1 => Just(Fate::NotStarted),
        1 => Just(Fate::Canceled),
    ];
    proptest::collection::vec(fate, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_comes_the_invariants_hold_and_it_settles(
        control_planes in prop_oneof![Just(1), Just(3)],
        etcd in proptest::option::of(prop_oneof![Just(1), Just(3)]),
        first in 0i32..4,
        second in 0i32..4,
        hosts in 0usize..9,
        fates in fates(),
        later_fates in fates(),
        turns in 0usize..14,
        hand_deleted in proptest::option::of(0usize..6),
        deleted in any::<bool>(),
        meddling in proptest::collection::vec((meddling(), 0usize..5), 0..6),
    ) {
        let etcd = etcd.map_or_else(|| "{}".to_owned(), |replicas| format!("{{topology: Dedicated, replicas: {replicas}}}"));
        let spec = |workers: i32| format!(
            "controlPlane: {{replicas: {control_planes}, endpoint: {{host: 10.0.0.9}}}}, etcd: {etcd}, workers: [{{name: general, replicas: {workers}}}]"
        );
        let mut world = World::new(&spec(first), hosts);
        world.fates = fates;
        // The change comes in the middle of whatever is under way.
        world.run_for(turns);
        world.respec(&spec(second));
        if let Some(index) = hand_deleted {
            world.delete_machine(index);
        }
        world.run_for(turns / 2);
        world.fates.extend(later_fates);
        for (number, (meddling, turns)) in meddling.into_iter().enumerate() {
            match meddling {
                Meddling::Pause => world.deployment.spec.paused = true,
                Meddling::GoOn => world.deployment.spec.paused = false,
                Meddling::LoseStatus => world.lose_status(),
                Meddling::LoseEndedRuns => world.runs.retain(|run| {
                    !crate::attempts::is_over(run) || run.spec.intent == Intent::Custom
                }),
                Meddling::Custom(host) => {
                    let (name, host) = (format!("by-hand-{number}"), format!("h{host}"));
                    world.custom_run(&name, &[&host]);
                }
            }
            world.touch();
            world.run_for(turns);
        }
        world.deployment.spec.paused = false;
        world.touch();
        if deleted {
            world.delete();
        }
        world.settle();
        if deleted {
            prop_assert!(world.gone);
            prop_assert!(world.hosts.iter().all(|host| host.spec.claim_ref.is_none()));
            let is_kept = |host: &crds::Host| host.spec.quarantine.is_some();
            let kept = world.hosts.iter().filter(|host| is_kept(host)).filter_map(|host| host.metadata.name.clone());
            let kept: Vec<String> = kept.collect();
            prop_assert!(world.dirty.iter().all(|host| kept.contains(host)), "{:?} {kept:?}", world.dirty);
        }
        let operations = world.deployment.status.clone().unwrap_or_default().operations;
        prop_assert!(operations.iter().all(|operation| operation.mode != LockMode::Exclusive || operations.len() == 1));
        prop_assert!(world.gone || operations.is_empty());
    }
}

#[test]
fn a_version_that_changes_before_the_install_is_followed_and_after_it_is_refused() {
    let mut world = World::new("controlPlane: {replicas: 1}", 0);
    world.deployment.spec.kubernetes_version = "1.35.3".parse().unwrap();
    world.settle();
    assert_eq!(world.machines[0].spec.kubernetes_version.unwrap().to_string(), "1.35.3");
    world.deployment.spec.kubernetes_version = "1.35.4".parse().unwrap();
    world.touch();
    world.settle();
    assert_eq!(world.machines[0].spec.kubernetes_version.unwrap().to_string(), "1.35.4");
}

#[test]
fn a_control_plane_that_was_deleted_during_its_install_remembers_that_its_cluster_stands() {
    let mut world = World::new("controlPlane: {replicas: 1, endpoint: {host: 10.0.0.9}}", 2);
    while !world.works() {
        world.run_for(1);
    }
    world.delete_machine(0);
    world.run_for(2);
    world.runs.retain(|run| !crate::attempts::is_over(run));
    world.lose_status();
    world.settle();
    assert_eq!((world.inits, ready(&world).0.as_str()), (1, "True"), "{:?}", ready(&world));
    assert_eq!(world.voters.iter().collect::<Vec<_>>(), ["h2"], "another one has come first");
}

#[test]
fn a_machine_on_which_a_person_worked_is_cleaned_though_the_cluster_never_stood() {
    let spec = |workers: i32| {
        format!(
            "controlPlane: {{replicas: 1, endpoint: {{host: 10.0.0.9}}}}, etcd: {{}}, workers: [{{name: general, replicas: {workers}}}]"
        )
    };
    let mut world = World::new(&spec(0), 3);
    world.run_for(1);
    world.respec(&spec(2));
    world.touch();
    world.run_for(1);
    world.custom_run("by-hand", &["h1"]);
    world.touch();
    world.run_for(1);
    world.lose_status();
    world.touch();
    world.run_for(1);
    world.delete();
    world.settle();
    assert!(world.gone && world.dirty.is_empty(), "{:?}", world.dirty);
}
