//! Promises about drift: machines are compared in their time and never in the way of anything; what differs is
//! reported, and repaired only where that is asked for, carefully, and not for ever.

use crds::cluster_deployment::Approval;
use crds::machine::DrainReason;
use crds::names::condition;
use crds::playbook_run::{PlaybookRunSpec, PlaybookRunStatus, RunPhase};
use crds::step::{Intent, Role, Step};
use crds::{Conditions, ObjectExt, PlaybookRun};
use jiff::SignedDuration;

use super::ready;
use crate::testing::World;

const THREE: &str = "controlPlane: {replicas: 3, endpoint: {host: 10.0.0.9}}, workers: [{name: w, replicas: 2}]";

/// A cluster that stands, and is compared from now on.
fn standing(drift: &str) -> World {
    let mut world = World::new(&format!("{THREE}, drift: {{checkEverySeconds: 0}}"), 6);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world.respec(&format!("{THREE}, drift: {{{drift}}}"));
    world.run_for(2);
    world
}

fn hours(number: i64) -> SignedDuration {
    SignedDuration::from_hours(number)
}

fn pass(world: &mut World, time: SignedDuration) {
    let until = world.time().0 + time;
    while world.time().0 < until {
        world.run_for(1);
    }
}

fn of_intent(world: &World, intent: Intent) -> Vec<&PlaybookRun> {
    world.runs.iter().filter(|run| run.spec.intent == intent).collect()
}

/// Status, reason and message of a condition `Drifted`.
fn told(object: &impl Conditions) -> (String, String) {
    let found = object.condition(condition::DRIFTED).unwrap();
    (format!("{} {}", found.status, found.reason), found.message.clone())
}

fn on(world: &World, host: &str) -> (String, String) {
    told(world.machine_on(host).unwrap())
}

fn differ(world: &mut World, host: &str, step: Step, message: &str) {
    world.drifted.entry(host.into()).or_default().insert(step, message.into());
}

/// A Host of a machine of this role.
fn host_of(world: &World, role: Role) -> String {
    let machine = world.machines.iter().find(|machine| machine.spec.role == role).unwrap();
    machine.spec.host_ref.as_ref().unwrap().name.clone()
}

/// Hosts of the runs that play steps again, in their order.
fn repairs(world: &World) -> Vec<String> {
    let repairs = of_intent(world, Intent::Configure);
    repairs.iter().map(|run| format!("{}: {}", run.spec.hosts.join(" "), run.spec.steps[0])).collect()
}

#[test]
fn each_machine_is_compared_once_an_interval_at_a_moment_of_its_own_by_the_steps_of_its_role() {
    let mut world = standing("checkEverySeconds: 86400");
    let (state, message) = told(&world.deployment);
    assert_eq!(state, "Unknown NotCompared", "{message}");
    let mut looks = Vec::new();
    for _ in 0..48 {
        pass(&mut world, SignedDuration::from_mins(60));
        for run in of_intent(&world, Intent::Compare) {
            if looks.iter().all(|(name, _)| name != run.name()) {
                looks.push((run.name().to_owned(), run.spec.hosts.clone()));
            }
        }
    }
    for host in ["h1", "h2", "h3", "h4", "h5"] {
        let times = looks.iter().filter(|(_, hosts)| hosts.iter().any(|named| named == host)).count();
        assert!((1..=3).contains(&times), "{host}: {looks:?}");
    }
    assert!(looks.len() > 2, "not all at once: {looks:?}");
    let worker = host_of(&world, Role::Worker);
    for run in of_intent(&world, Intent::Compare).iter().filter(|run| run.spec.hosts == [worker.clone()]) {
        let steps = [Step::BootstrapOs, Step::Prepare, Step::ContainerRuntime, Step::Node, Step::Network];
        assert_eq!(run.spec.steps, steps);
    }
    assert_eq!(on(&world, &worker).0, "False AsWanted");
    assert_eq!(
        told(&world.deployment),
        ("False AsWanted".into(), "none of 5 machines differs from what is wanted".into())
    );
    assert!(of_intent(&world, Intent::Compare).len() <= 5, "old ones go");
    assert_eq!(repairs(&world), [] as [&str; 0]);
}

#[test]
fn nothing_is_compared_where_that_is_switched_off() {
    let mut world = standing("checkEverySeconds: 0");
    pass(&mut world, hours(50));
    assert_eq!(of_intent(&world, Intent::Compare).len(), 0);
    assert!(world.deployment.condition(condition::DRIFTED).is_none());
}

#[test]
fn a_machine_that_differs_is_told_with_what_to_type_and_left_as_it_is() {
    let mut world = standing("checkEverySeconds: 3600");
    let worker = host_of(&world, Role::Worker);
    differ(&mut world, &worker, Step::Prepare, "differing: vm.overcommit_memory");
    pass(&mut world, hours(3));
    let (state, message) = on(&world, &worker);
    assert_eq!(state, "True Drifted");
    assert!(
        message.starts_with("prepare: differing: vm.overcommit_memory; to have it changed back: echo '{"),
        "{message}"
    );
    let (state, message) = told(&world.deployment);
    assert_eq!(state, "True Drifted");
    assert!(message.starts_with("1 of 5 machines differ from what is wanted: a-w-"), "{message}");
    assert_eq!(ready(&world).0, "True", "it serves");
    assert_eq!(repairs(&world), [] as [&str; 0]);
    world.drifted.clear();
    pass(&mut world, hours(3));
    assert_eq!(on(&world, &worker).0, "False AsWanted");
}

#[test]
fn what_differs_is_repaired_where_that_is_asked_for_one_machine_after_the_other_control_planes_first() {
    let mut world = standing("checkEverySeconds: 3600, repair: Automatic");
    let (control_plane, worker) = (host_of(&world, Role::ControlPlane), host_of(&world, Role::Worker));
    differ(&mut world, &worker, Step::Prepare, "differing: vm.overcommit_memory");
    differ(&mut world, &worker, Step::Node, "kubelet.service: differing: /etc/systemd/system/kubelet.service");
    differ(&mut world, &control_plane, Step::Etcd, "etcd.service: differing: /etc/etcd/etcd.env");
    pass(&mut world, hours(4));
    let mut made = repairs(&world);
    made.sort();
    assert_eq!(
        made,
        [format!("{control_plane}: etcd"), format!("{worker}: prepare")],
        "each once: {:?}",
        told(&world.deployment)
    );
    let both = of_intent(&world, Intent::Configure).into_iter().find(|run| run.spec.hosts == [worker.clone()]);
    assert_eq!(both.unwrap().spec.steps, [Step::Prepare, Step::Node], "all steps at once");
    for host in [control_plane, worker] {
        assert_eq!(on(&world, &host).0, "False AsWanted");
    }
}

#[test]
fn a_machine_that_differs_after_three_repairs_is_left_to_a_person() {
    let mut world = standing("checkEverySeconds: 3600, repair: Automatic");
    let worker = host_of(&world, Role::Worker);
    world.stubborn.insert(worker.clone());
    differ(&mut world, &worker, Step::Prepare, "differing: vm.overcommit_memory");
    pass(&mut world, hours(30));
    assert_eq!(repairs(&world).len(), 3, "{:?}", repairs(&world));
    let (state, message) = on(&world, &worker);
    assert_eq!(state, "True DriftRepairFailed");
    assert!(message.contains("so it was after 3 attempts to repair it; correct it, then: echo '{"), "{message}");
    assert_eq!(told(&world.deployment).0, "True DriftRepairFailed");
}

#[test]
fn a_machine_that_does_not_answer_is_unknown_and_asked_again() {
    let mut world = standing("checkEverySeconds: 86400");
    pass(&mut world, hours(50));
    let worker = host_of(&world, Role::Worker);
    world.silent.insert(worker.clone());
    pass(&mut world, hours(26));
    let (state, message) = on(&world, &worker);
    assert_eq!(state, "Unknown ComparisonFailed");
    assert!(message.starts_with("it could not be compared: Unreachable: "), "{message}");
    world.silent.clear();
    pass(&mut world, hours(3));
    assert_eq!(on(&world, &worker).0, "False AsWanted", "before a day is over");
}

#[test]
fn a_repair_that_restarts_something_waits_for_its_approval_and_one_that_does_not_goes_on() {
    let mut world = standing("checkEverySeconds: 3600, repair: Automatic");
    world.deployment.spec.approval = Approval::Manual;
    let workers = world.machines.iter().filter(|machine| machine.spec.role == Role::Worker);
    let workers: Vec<String> = workers.map(|machine| machine.spec.host_ref.as_ref().unwrap().name.clone()).collect();
    differ(
        &mut world,
        &workers[0],
        Step::ContainerRuntime,
        "containerd.service: differing: /etc/containerd/config.toml",
    );
    differ(&mut world, &workers[1], Step::Prepare, "differing: vm.overcommit_memory");
    pass(&mut world, hours(3));
    assert_eq!(repairs(&world), [format!("{}: prepare", workers[1])]);
    let plan = world.deployment.status.as_ref().unwrap().plan.clone().unwrap();
    assert_eq!(plan.summary, "Repair container-runtime: 1 worker (restarts)");
    let (state, message) = told(&world.deployment);
    assert_eq!(state, "True WaitingForApproval", "{message}");
    assert!(message.contains("clusterwright.dev/approve=plan."), "{message}");
}

#[test]
fn a_comparison_makes_room_for_whatever_is_to_begin() {
    let mut world = standing("checkEverySeconds: 3600");
    pass(&mut world, hours(3));
    let host = host_of(&world, Role::ControlPlane);
    // One that works, and one that is to work alone.
    let mut works = of_intent(&world, Intent::Compare)[0].clone();
    (works.metadata.name, works.spec.hosts) = (Some("works".into()), vec![host.clone()]);
    (works.metadata.uid, works.metadata.creation_timestamp) = (Some("works".into()), Some(world.time()));
    works.status = Some(PlaybookRunStatus { phase: Some(RunPhase::Running), ..PlaybookRunStatus::default() });
    let waits = PlaybookRunSpec {
        cluster_name: Some("a".into()),
        ..PlaybookRunSpec::new(Intent::Custom, vec![Step::Prepare], vec![host])
    };
    let mut waits = PlaybookRun::new("waits", waits);
    waits.metadata.namespace = works.metadata.namespace.clone();
    waits.metadata.creation_timestamp = Some(world.time());
    world.runs.push(works);
    world.write_statuses();
    let holders = |world: &World| -> Vec<String> {
        let operations = world.deployment.status.as_ref().map(|status| status.operations.clone());
        operations.unwrap_or_default().into_iter().map(|held| held.run).collect()
    };
    assert!(holders(&world).contains(&"works".to_owned()), "{:?}", holders(&world));
    let is_canceled = |world: &World| world.runs.iter().any(|run| run.name() == "works" && run.spec.cancel);
    assert!(!is_canceled(&world), "nothing waits for it");
    world.runs.push(waits);
    world.write_statuses();
    assert!(is_canceled(&world), "{}", world.report());
}

#[test]
fn nothing_is_compared_while_something_else_is_done() {
    let mut world = standing("checkEverySeconds: 3600");
    let names = |world: &World| -> Vec<String> {
        of_intent(world, Intent::Compare).iter().map(|run| run.name().to_owned()).collect()
    };
    let before = names(&world);
    world.deployment.spec.paused = true;
    pass(&mut world, hours(5));
    assert_eq!(names(&world), before, "paused");
    world.deployment.spec.paused = false;
    for machine in &mut world.machines {
        machine.spec.drain_for = vec![DrainReason::Maintenance];
    }
    pass(&mut world, hours(5));
    assert_eq!(names(&world), before, "somebody works on them");
}
