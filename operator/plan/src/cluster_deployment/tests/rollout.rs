//! What is planned for machines that stay, who approves of it, and when it is done.

use std::collections::BTreeSet;

use crds::cluster_deployment::{
    Approval, MaintenanceWindow, PlannedChange, PlannedOperation, RegistryMirror, RolloutPlan,
};
use crds::conditions;
use crds::names::condition;
use crds::playbook_run::PlaybookRunStatus;
use crds::step::{Intent, Role, Step};
use crds::{ObjectExt, PlaybookRun};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::growth::approve_asked;
use super::{external_etcd, ready};
use crate::testing::World;

const SPEC: &str =
    "controlPlane: {replicas: 3, endpoint: {host: 10.0.1.1, port: 6443}}, workers: [{name: general, replicas: 3}]";

fn built(spec: &str, hosts: usize) -> World {
    let mut world = World::new(spec, hosts);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

/// A cluster whose changes wait for a person.
fn manual(mut world: World) -> World {
    world.change_spec("a", |spec| spec.approval = Approval::Manual);
    world.settle();
    world
}

fn want(world: &mut World, version: &str) {
    let version = version.parse().unwrap();
    world.change_spec("a", |spec| spec.kubernetes_version = version);
}

fn mirror(world: &mut World) {
    let mirror = RegistryMirror {
        prefix: "registry.k8s.io".into(),
        endpoints: vec!["http://mirror:5000".into()],
        ..RegistryMirror::default()
    };
    world.change_spec("a", |spec| spec.container_runtime.registry_mirrors = vec![mirror]);
}

fn plan(world: &World) -> Option<RolloutPlan> {
    world.deployment.status.as_ref().unwrap().plan.clone()
}

fn digest(world: &World) -> String {
    plan(world).unwrap().digest
}

fn stated(world: &World, type_: &str) -> (String, String, String) {
    let status = world.deployment.status.as_ref().unwrap();
    let found = conditions::find(&status.conditions, type_).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

fn runs(world: &World, intent: Intent) -> Vec<&PlaybookRun> {
    world.runs.iter().filter(|run| run.spec.intent == intent).collect()
}

/// It asks for approval, and nothing is under way.
fn is_asked(world: &World) {
    let (status, reason, message) = stated(world, condition::UP_TO_DATE);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaitingForApproval"), "{message}");
    let digest = digest(world);
    let command = "kubectl -n fleet annotate --overwrite clusterdeployments.clusterwright.dev a";
    assert!(message.contains(&format!("waits for approval of status.plan: {command} ")), "{message}");
    assert!(message.ends_with(&format!("plan.{digest}")), "{message}");
    let (ready, _, said) = ready(world);
    assert_eq!(ready, "True", "{said}");
    assert!(said.contains(&format!("plan.{digest}")), "{said}");
}

/// Lets time pass until this is so.
fn until(world: &mut World, mut is_so: impl FnMut(&World) -> bool) {
    for _ in 0..2000 {
        if is_so(world) {
            return;
        }
        world.run_for(1);
    }
    panic!("it does not come to that\n{}", world.report());
}

fn approve(world: &mut World) {
    approve_asked(world);
    world.run_for(1);
}

fn is_done(world: &World) {
    assert_eq!(stated(world, condition::UP_TO_DATE).0, "True", "{:?}", stated(world, condition::UP_TO_DATE));
    assert_eq!(plan(world), None);
}

fn change(operation: PlannedOperation, what: &str, role: Role, names: &[&str], effect: (bool, bool)) -> PlannedChange {
    PlannedChange {
        operation,
        what: what.into(),
        role,
        machines: i32::try_from(names.len()).unwrap(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        disruptive: effect.0,
        drained: effect.1,
    }
}

/// Names of the Machines of a role, in order.
fn named(world: &World, role: Role) -> Vec<String> {
    let machines = world.machines.iter().filter(|machine| machine.spec.role == role);
    machines.map(|machine| machine.name().to_owned()).collect()
}

#[test]
fn the_plan_names_each_change_with_the_machines_that_lack_it_also_while_the_cluster_is_paused() {
    let mut world = built(SPEC, 6);
    assert_eq!(plan(&world), None, "nothing is to be done");
    world.change_spec("a", |spec| spec.paused = true);
    want(&mut world, "1.36.0");
    world.change_spec("a", |spec| spec.control_plane.cert_sans = vec!["api.example".into()]);
    mirror(&mut world);
    world.settle();
    let planned = plan(&world).unwrap();
    let what = "containerRuntime.registryMirrors: 3 control planes, 3 workers";
    let expected = format!(
        "Upgrade 1.35.4 -> 1.36.0: 3 control planes, 3 workers (restarts, drained); Configure {what}; \
         Configure controlPlane.certSANs: 3 control planes"
    );
    assert_eq!(planned.summary, expected);
    assert_eq!(planned.digest.len(), 12);
    let (planes, workers) = (named(&world, Role::ControlPlane), named(&world, Role::Worker));
    let planes: Vec<&str> = planes.iter().map(String::as_str).collect();
    let workers: Vec<&str> = workers.iter().map(String::as_str).collect();
    use PlannedOperation::{Configure, Upgrade};
    let version = "1.35.4 -> 1.36.0";
    let (mirrors, names) = ("containerRuntime.registryMirrors", "controlPlane.certSANs");
    let mut expected = [
        change(Upgrade, version, Role::ControlPlane, &planes, (true, true)),
        change(Upgrade, version, Role::Worker, &workers, (true, true)),
        change(Configure, mirrors, Role::ControlPlane, &planes, (false, false)),
        change(Configure, names, Role::ControlPlane, &planes, (false, false)),
        change(Configure, mirrors, Role::Worker, &workers, (false, false)),
    ];
    let mut told = planned.changes.clone();
    for change in expected.iter_mut().chain(&mut told) {
        change.names.sort();
    }
    assert_eq!(told, expected);
    world.change_spec("a", |spec| spec.paused = false);
    world.settle();
    is_done(&world);
}

#[test]
fn a_patch_restarts_and_drains_nothing_and_many_machines_are_counted_and_the_first_named() {
    let spec = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 8}]";
    let mut world = built(spec, 9);
    world.change_spec("a", |spec| spec.paused = true);
    want(&mut world, "1.35.9");
    world.settle();
    let planned = plan(&world).unwrap();
    assert_eq!(planned.summary, "Upgrade 1.35.4 -> 1.35.9: 1 control plane, 8 workers (restarts)");
    let workers = &planned.changes[1];
    assert_eq!((workers.machines, workers.names.len(), workers.disruptive, workers.drained), (8, 5, true, false));
}

#[test]
fn what_disrupts_waits_for_approval_which_holds_for_all_machines_and_prefetching_does_not() {
    let mut world = manual(built(SPEC, 6));
    want(&mut world, "1.36.0");
    world.settle();
    assert_eq!(runs(&world, Intent::Prefetch).len(), 1);
    assert!(runs(&world, Intent::Upgrade).is_empty());
    is_asked(&world);
    let approved = digest(&world);
    approve(&mut world);
    let mut digests = BTreeSet::new();
    until(&mut world, |world| {
        digests.extend(plan(world).map(|plan| plan.digest));
        plan(world).is_none()
    });
    assert_eq!(digests, [approved].into(), "one approval for all machines");
    world.settle();
    is_done(&world);
    assert_eq!(runs(&world, Intent::Upgrade).len(), 6);
}

#[test]
fn an_approval_outlives_edits_that_disrupt_nothing_and_machines_that_come_and_go() {
    let mut world = manual(built(SPEC, 9));
    want(&mut world, "1.36.0");
    world.settle();
    let asked = digest(&world);
    // Between the look at the plan and its approval.
    world.scale_workers("a", 4);
    mirror(&mut world);
    world.settle();
    assert_eq!(digest(&world), asked);
    is_asked(&world);
    approve(&mut world);
    until(&mut world, |world| runs(world, Intent::Upgrade).len() >= 4);
    world.scale_workers("a", 5);
    world.change_spec("a", |spec| spec.control_plane.cert_sans = vec!["api.example".into()]);
    let lost = world.machines.iter().rfind(|machine| machine.spec.role == Role::Worker).unwrap().clone();
    world.mark_deleted(&lost);
    world.deployment.metadata.annotations = None;
    world.settle();
    is_done(&world);
    assert_eq!(ready(&world).0, "True");
}

#[test]
fn another_disruptive_edit_in_the_middle_needs_another_approval_and_what_was_begun_is_finished() {
    let mut world = manual(built(SPEC, 6));
    want(&mut world, "1.35.9");
    world.settle();
    let first = digest(&world);
    approve(&mut world);
    until(&mut world, |world| runs(world, Intent::Upgrade).len() >= 2);
    want(&mut world, "1.35.10");
    world.settle();
    is_asked(&world);
    assert_ne!(digest(&world), first);
    let upgraded = |world: &World, version: &str| {
        let has =
            |machine: &&crds::Machine| machine.status.as_ref().unwrap().kubernetes_version.as_deref() == Some(version);
        world.machines.iter().filter(has).count()
    };
    let (begun, other) = (upgraded(&world, "1.35.9"), upgraded(&world, "1.35.10"));
    assert!((1..=2).contains(&begun) && other == 0, "nor does a run bring it that was made before: {begun} {other}");
    approve(&mut world);
    world.settle();
    is_done(&world);
    assert_eq!(upgraded(&world, "1.35.10"), 6);
}

#[test]
fn one_approval_is_for_all_minors_on_the_way() {
    let mut world = manual(built(SPEC, 6));
    world.change_spec("a", |spec| {
        spec.kubernetes_version = "1.37.1".parse().unwrap();
        spec.upgrade_path.via = vec!["1.36.2".parse().unwrap()];
    });
    world.settle();
    is_asked(&world);
    let told = plan(&world).unwrap().summary;
    let expected = "Upgrade 1.35.4 -> 1.36.2 (then 1.37.1): 3 control planes, 3 workers (restarts, drained)";
    assert_eq!(told, expected);
    approve(&mut world);
    until(&mut world, |world| plan(world).is_none());
    world.settle();
    is_done(&world);
}

#[test]
fn a_drained_machine_is_not_brought_what_nobody_has_approved() {
    let mut world = manual(built(SPEC, 6));
    want(&mut world, "1.36.0");
    world.settle();
    approve(&mut world);
    until(&mut world, |world| world.machines.iter().any(|machine| !machine.spec.drain_for.is_empty()));
    assert!(runs(&world, Intent::Upgrade).is_empty());
    want(&mut world, "1.36.1");
    world.settle();
    is_asked(&world);
    assert!(runs(&world, Intent::Upgrade).is_empty());
    // The edit is taken back: it was approved.
    want(&mut world, "1.36.0");
    world.settle();
    is_done(&world);
}

fn endpoints(world: &mut World, last: u8) {
    world.change_spec("a", |spec| spec.etcd.endpoints = vec![format!("https://10.9.0.{last}:2379")]);
    world.settle();
}

#[test]
fn the_same_change_a_second_time_needs_another_approval() {
    let mut world = manual(external_etcd::built(1, 1));
    let mut digests = BTreeSet::new();
    for last in [3, 4, 3, 4, 3] {
        endpoints(&mut world, last);
        is_asked(&world);
        assert!(digests.insert(digest(&world)), "an approval of before would count again: {digests:?}");
        approve(&mut world);
        world.settle();
        is_done(&world);
    }
    assert_eq!(runs(&world, Intent::Configure).len(), 5);
}

#[test]
fn an_edit_that_is_taken_back_leaves_nothing_to_approve() {
    let mut world = manual(external_etcd::built(1, 1));
    let before = world.deployment.spec.etcd.endpoints.clone();
    endpoints(&mut world, 3);
    is_asked(&world);
    world.change_spec("a", |spec| spec.etcd.endpoints = before);
    world.settle();
    is_done(&world);
}

#[test]
fn a_certificate_for_an_external_etcd_that_was_renewed_waits_for_nobody() {
    let mut world = manual(external_etcd::built(1, 1));
    world.etcd_client = Some(Ok("renewed".into()));
    world.settle();
    is_done(&world);
    assert_eq!(runs(&world, Intent::Configure).len(), 1);
}

#[test]
fn what_restarts_nothing_joins_and_repairs_wait_for_nobody() {
    let mut world = manual(built(SPEC, 9));
    want(&mut world, "1.36.0");
    world.settle();
    is_asked(&world);
    mirror(&mut world);
    world.scale_workers("a", 4);
    let lost = world.machines.iter().find(|machine| machine.spec.role == Role::ControlPlane).unwrap().clone();
    world.mark_deleted(&lost);
    world.settle();
    is_asked(&world);
    assert!(runs(&world, Intent::Upgrade).is_empty());
    assert!(!runs(&world, Intent::Configure).is_empty());
    assert_eq!((world.machines.len(), world.voters.len()), (7, 3));
    let of_mirrors = |change: &&PlannedChange| change.operation == PlannedOperation::Configure;
    assert_eq!(plan(&world).unwrap().changes.iter().find(of_mirrors), None);
}

#[test]
fn with_a_status_that_was_lost_the_approval_is_asked_for_again() {
    let mut world = manual(built(SPEC, 6));
    want(&mut world, "1.35.9");
    world.settle();
    let first = digest(&world);
    approve(&mut world);
    until(&mut world, |world| runs(world, Intent::Upgrade).len() >= 2);
    world.lose_status();
    world.settle();
    is_asked(&world);
    assert_ne!(digest(&world), first);
    let begun = runs(&world, Intent::Upgrade).len();
    assert!(begun < 6, "{begun}");
    approve(&mut world);
    world.settle();
    is_done(&world);
}

#[test]
fn a_wish_for_approval_halts_a_rollout_before_its_next_machine_and_none_lets_it_go_on() {
    let mut world = built(SPEC, 6);
    want(&mut world, "1.35.9");
    until(&mut world, |world| runs(world, Intent::Upgrade).len() >= 2);
    world.change_spec("a", |spec| spec.approval = Approval::Manual);
    world.settle();
    is_asked(&world);
    assert_eq!(runs(&world, Intent::Upgrade).len(), 2);
    world.change_spec("a", |spec| spec.approval = Approval::Automatic);
    world.settle();
    is_done(&world);
}

fn windows(world: &mut World, schedules: &[&str]) {
    let window = |schedule: &&str| MaintenanceWindow {
        schedule: (*schedule).to_owned(),
        time_zone: "Etc/UTC".into(),
        duration_minutes: 60,
    };
    let windows = schedules.iter().map(window).collect();
    world.change_spec("a", |spec| spec.rollout.windows = windows);
}

/// When runs of an intent were made.
fn made(world: &World, intent: Intent) -> Vec<Timestamp> {
    runs(world, intent).iter().map(|run| run.created_at().unwrap().0).collect()
}

fn hour(at: Timestamp) -> i8 {
    at.to_zoned(jiff::tz::TimeZone::UTC).hour()
}

#[test]
fn outside_of_its_windows_nothing_is_disrupted_and_the_next_one_is_told() {
    let mut world = built(SPEC, 6);
    windows(&mut world, &["0 2 * * *", "0 20 * * *"]);
    until(&mut world, |world| [4, 5, 6].contains(&hour(world.time().0)));
    want(&mut world, "1.36.0");
    mirror(&mut world);
    world.settle();
    assert!(!runs(&world, Intent::Prefetch).is_empty(), "it disrupts nothing");
    assert!(runs(&world, Intent::Upgrade).is_empty());
    assert_eq!(stated(&world, condition::MAINTENANCE_WINDOWS_VALID).1, "Scheduled");
    let (status, reason, message) = stated(&world, condition::UP_TO_DATE);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaitingForWindow"), "{message}");
    let opens = world.time().0.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%d 20:00:00 UTC").to_string();
    assert!(message.contains(&format!("waits for the maintenance window that opens at {opens}")), "{message}");
    assert_eq!(plan(&world).unwrap().changes.len(), 2, "mirrors are brought at once: {:?}", plan(&world));
    until(&mut world, |world| plan(world).is_none());
    world.settle();
    is_done(&world);
    let upgrades = made(&world, Intent::Upgrade);
    assert_eq!(upgrades.len(), 6);
    let drained_by_then = |at: &Timestamp| [2, 20].contains(&hour(*at));
    // A machine that is drained in a window may be upgraded right after it.
    let late = upgrades.iter().filter(|at| !drained_by_then(at)).count();
    assert!(late < upgrades.len() && upgrades.iter().all(|at| [2, 3, 20, 21].contains(&hour(*at))), "{upgrades:?}");
}

#[test]
fn what_has_begun_on_a_machine_when_the_window_ends_is_finished_there_and_nothing_more_begins() {
    let mut world = built(SPEC, 6);
    windows(&mut world, &["0 2 * * *"]);
    want(&mut world, "1.35.9");
    until(&mut world, |world| !runs(world, Intent::Upgrade).is_empty());
    let first = runs(&world, Intent::Upgrade)[0].spec.hosts.clone();
    world.always_fails = first.clone();
    until(&mut world, |world| hour(world.time().0) == 4);
    world.always_fails.clear();
    world.request("a", crds::names::annotation::RETRY);
    world.settle();
    assert!(runs(&world, Intent::Upgrade).iter().all(|run| run.spec.hosts == first), "and no other machine");
    let machine = world.machine_on(&first[0]).unwrap();
    assert_eq!(machine.status.as_ref().unwrap().kubernetes_version.as_deref(), Some("1.35.9"), "out of hours");
    assert_eq!(stated(&world, condition::UP_TO_DATE).1, "WaitingForWindow");
}

#[test]
fn a_window_that_does_not_open_within_a_year_is_refused_and_holds_what_disrupts() {
    let mut world = built(SPEC, 6);
    windows(&mut world, &["0 2 29 2 *"]);
    want(&mut world, "1.35.9");
    mirror(&mut world);
    world.settle();
    let (status, reason, message) = stated(&world, condition::MAINTENANCE_WINDOWS_VALID);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "MaintenanceWindowEmpty"), "{message}");
    assert!(message.starts_with("spec.rollout.windows[0].schedule: \"0 2 29 2 *\""), "{message}");
    assert_eq!(stated(&world, condition::UP_TO_DATE).1, "MaintenanceWindowEmpty");
    assert!(runs(&world, Intent::Upgrade).is_empty());
    assert_eq!(plan(&world).unwrap().changes.len(), 2, "mirrors were brought: {:?}", plan(&world));
    windows(&mut world, &[]);
    world.settle();
    is_done(&world);
    let status = world.deployment.status.as_ref().unwrap();
    assert!(conditions::find(&status.conditions, condition::MAINTENANCE_WINDOWS_VALID).is_none());
}

fn ended(run: &PlaybookRun) -> Timestamp {
    run.status.as_ref().and_then(|status: &PlaybookRunStatus| status.finished_at.as_ref()).unwrap().0
}

#[test]
fn canaries_are_first_and_the_others_follow_once_those_have_been_well_for_the_pause() {
    let spec = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 6, maxUnavailable: 3}]";
    let mut world = built(spec, 7);
    world.change_spec("a", |spec| {
        (spec.rollout.canaries, spec.rollout.pause_seconds) = (3, 7200);
        spec.executor.get_or_insert_default().history_limit = 1;
    });
    want(&mut world, "1.35.9");
    let mut said = false;
    world.run_for(1);
    until(&mut world, |world| {
        said |= stated(world, condition::UP_TO_DATE).2.contains("3 of 6 workers have it; 3 workers watched until ");
        plan(world).is_none()
    });
    assert!(said, "it is told what is waited for");
    let upgrades = runs(&world, Intent::Upgrade);
    let is_worker = |run: &&PlaybookRun| world.role_of(&run.spec.hosts[0]) == Some(Role::Worker);
    let workers: Vec<&PlaybookRun> = upgrades.into_iter().filter(is_worker).collect();
    let begun: Vec<Timestamp> = workers.iter().map(|run| run.created_at().unwrap().0).collect();
    assert_eq!(workers.len(), 6);
    assert!(begun[1] >= ended(workers[0]), "the first alone");
    assert_eq!(begun[1], begun[2], "then the other canaries");
    let well = ended(workers[1]).max(ended(workers[2]));
    assert!(begun[3] >= well + SignedDuration::from_secs(7200), "{begun:?} {well}");
    assert_eq!((begun[3], begun[3]), (begun[4], begun[5]), "and then as many as may be out of service");
}

#[test]
fn a_canary_that_is_not_well_keeps_all_other_workers_as_they_are() {
    let spec = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 4, maxUnavailable: 2}]";
    let mut world = built(spec, 5);
    mirror(&mut world);
    until(&mut world, |world| runs(world, Intent::Configure).len() >= 2);
    let first = runs(&world, Intent::Configure)[1].spec.hosts[0].clone();
    world.sick_nodes.insert(first.clone());
    world.settle();
    assert_eq!(runs(&world, Intent::Configure).len(), 2);
    let (_, reason, message) = stated(&world, condition::UP_TO_DATE);
    assert_eq!(reason, "Configuring");
    assert!(message.contains("3 more workers to be configured; waits for ") && message.contains(&first), "{message}");
    world.sick_nodes.clear();
    world.settle();
    is_done(&world);
}

fn configure(world: &mut World, configuration: serde_json::Value) {
    let configuration = serde_json::from_value(configuration).unwrap();
    world.change_spec("a", |spec| spec.configuration = configuration);
    world.settle();
}

#[test]
fn of_what_is_edited_together_only_what_restarts_something_waits() {
    let mut world = manual(built(SPEC, 6));
    let sysctls = json!({"sysctls": {"net.core.somaxconn": "4096"}});
    configure(&mut world, json!({"kubelet": {"cpuManagerPolicy": "static", "podPidsLimit": 4096}, "machine": sysctls}));
    is_asked(&world);
    let steps = |world: &World| -> BTreeSet<Step> {
        runs(world, Intent::Configure).into_iter().flat_map(|run| run.spec.steps.clone()).collect()
    };
    assert_eq!(steps(&world), [Step::Prepare].into());
    let told = plan(&world).unwrap().summary;
    assert!(told.contains("Configure configuration.kubelet: 3 control planes, 3 workers (restarts)"), "{told}");
    let drained = "cpuManagerPolicy, topologyManagerPolicy): 3 control planes, 3 workers (restarts, drained)";
    assert!(told.contains(drained), "{told}");
    assert!(!told.contains("configuration.machine"), "{told}");
    assert!(world.machines.iter().all(|machine| machine.spec.drain_for.is_empty()));
    let asked = digest(&world);
    approve(&mut world);
    assert_eq!(digest(&world), asked);
    world.settle();
    is_done(&world);
    assert_eq!(steps(&world), [Step::Prepare, Step::KubeletConfiguration].into());
}

#[test]
fn settings_that_restart_something_are_brought_in_windows_only() {
    let mut world = built(SPEC, 6);
    windows(&mut world, &["0 2 * * *"]);
    until(&mut world, |world| hour(world.time().0) == 5);
    configure(&mut world, json!({"kubelet": {"podPidsLimit": 4096}}));
    let (_, reason, message) = stated(&world, condition::UP_TO_DATE);
    assert_eq!(reason, "WaitingForWindow", "{message}");
    assert!(runs(&world, Intent::Configure).is_empty());
    until(&mut world, |world| plan(world).is_none());
    world.settle();
    is_done(&world);
    assert!(made(&world, Intent::Configure).iter().all(|at| hour(*at) == 2), "{:?}", made(&world, Intent::Configure));
}
