//! An upgrade of a plane: in which order its components move, what it waits for, and how one goes back.

mod backup;
mod faults;

use crds::karmada_deployment::UpgradeStep as Step;
use crds::names::condition;

use super::super::{Component, Place};
use super::world::{World, settled};

const ALL: &str = "descheduler: {}, search: {replicas: 2}, metricsAdapter: {}";

/// A plane that works in 1.17.5.
pub(super) fn former(more: &str) -> World {
    let more = if more.is_empty() { String::new() } else { format!(", {more}") };
    let mut world = settled(&format!("version: 1.17.5{more}"));
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    assert_eq!(world.object.status.as_ref().unwrap().version.as_deref(), Some("1.17.5"));
    world.log.clear();
    world
}

/// Wants another version, as an edit of the spec does.
pub(super) fn want(world: &mut World, version: &str) {
    world.object.spec.version = version.parse().unwrap();
    world.object.metadata.generation = Some(world.object.metadata.generation.unwrap_or_default() + 1);
}

/// The version of a component's workload, and how many Pods it is to have.
pub(super) fn live(world: &World, component: Component) -> (String, i64) {
    let kind = if component == Component::Etcd { "StatefulSet" } else { "Deployment" };
    let live = world.find(Place::Host, kind, &format!("k1-{}", component.suffix())).unwrap();
    let image = live["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
    let tag = image.rsplit_once(':').unwrap().1.trim_start_matches('v');
    (tag.to_owned(), live["spec"]["replicas"].as_i64().unwrap())
}

/// Turns until the upgrade is at this step.
pub(super) fn until(world: &mut World, step: Step) {
    for _ in 0..200 {
        if world.upgrade().and_then(|upgrade| upgrade.step) == Some(step) {
            return;
        }
        world.turn();
    }
    panic!("{step:?} was never reached: {:?}", world.upgrade());
}

/// The workloads that were written, each time that one was.
fn moved(world: &World) -> Vec<&str> {
    let starts = ["apply Deployment k1-", "apply StatefulSet k1-"];
    world.log.iter().filter_map(|line| starts.iter().find_map(|start| line.strip_prefix(start))).collect()
}

#[test]
fn a_minor_stops_what_writes_to_members_and_starts_it_again_after_definitions_and_webhook() {
    let mut world = former(ALL);
    want(&mut world, "1.18.2");
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    let expected = [
        // Stopped.
        "scheduler",
        "controller-manager",
        "descheduler",
        // Moved.
        "webhook",
        "aggregated-apiserver",
        "scheduler",
        "descheduler",
        "controller-manager",
        "search",
        "metrics-adapter",
    ];
    assert_eq!(moved(&world), expected, "{:?}", world.log);
    let at = |line: &str| world.log.iter().rposition(|one| one == line).unwrap_or_else(|| panic!("no {line}"));
    let definitions = at("apply CustomResourceDefinition works.work.karmada.io");
    assert!(at("apply Deployment k1-webhook") > definitions);
    let stopped = world.log.iter().position(|line| line == "apply Deployment k1-controller-manager").unwrap();
    assert!(stopped < definitions);
    for component in Component::ALL.into_iter().filter(|component| component.is_of_karmada()) {
        assert_eq!(live(&world, component).0, "1.18.2", "{component:?}");
    }
    let status = world.object.status.clone().unwrap();
    assert_eq!((status.version.as_deref(), status.upgrade), (Some("1.18.2"), None));
    let log = world.log.len();
    world.settle();
    assert_eq!(world.log.len(), log, "at rest nothing is written");
}

#[test]
fn while_a_minor_changes_the_old_controllers_never_run_beside_new_definitions() {
    let mut world = former("");
    want(&mut world, "1.18.2");
    let controllers = [Component::Scheduler, Component::ControllerManager];
    let mut has_paused = false;
    while world.turn() {
        let definition = world.find(Place::Plane, "CustomResourceDefinition", "works.work.karmada.io").unwrap();
        let is_new = definition["metadata"]["annotations"]["clusterwright.dev/version"] == "1.18.2";
        for component in controllers {
            let (version, replicas) = live(&world, component);
            assert!(!is_new || replicas == 0 || version == "1.18.2", "{component:?} {version} x {replicas}");
            has_paused |= replicas == 0;
        }
        if live(&world, Component::ControllerManager) == ("1.18.2".to_owned(), 1) {
            assert_eq!(live(&world, Component::Webhook).0, "1.18.2");
            assert_eq!(live(&world, Component::Scheduler).0, "1.18.2");
        }
    }
    assert!(has_paused);
}

#[test]
fn a_patch_rolls_one_component_after_the_other_and_stops_none() {
    let mut world = settled("version: 1.18.1");
    world.log.clear();
    want(&mut world, "1.18.2");
    while world.turn() {
        for component in [Component::Scheduler, Component::ControllerManager] {
            assert_eq!(live(&world, component).1, 1);
        }
        assert_ne!(world.condition(condition::COMPONENTS_READY).1, "Upgrading");
    }
    assert_eq!(moved(&world), ["webhook", "aggregated-apiserver", "scheduler", "controller-manager"]);
}

#[test]
fn what_is_planned_is_shown_before_it_begins_and_begins_once_it_is_approved() {
    let mut world = former("upgrade: {approval: Manual}");
    want(&mut world, "1.18.2");
    world.settle();
    assert!(world.log.is_empty(), "{:?}", world.log);
    let upgrade = world.upgrade().unwrap();
    assert_eq!((upgrade.from.as_str(), upgrade.to.as_str(), upgrade.step), ("1.17.5", "1.18.2", None));
    assert_eq!(upgrade.steps.first(), Some(&Step::StopControllers));
    assert_eq!(upgrade.steps.last(), Some(&Step::Verify));
    assert!(upgrade.summary.contains("no backup of etcd precedes it"), "{}", upgrade.summary);
    let (status, reason, message) = world.condition(condition::UP_TO_DATE);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaitingForApproval"));
    let command = format!("clusterwright.dev/approve=upgrade.{}", upgrade.digest);
    assert!(message.ends_with(&command), "{message}");
    assert_eq!(world.condition("Ready").1, "WaitingForApproval");
    let annotation = ("clusterwright.dev/approve".to_owned(), format!("upgrade.{}", upgrade.digest));
    world.object.metadata.annotations = Some([annotation].into());
    world.settle();
    assert!(world.is_ready());
    assert_eq!(live(&world, Component::Webhook).0, "1.18.2");
    // The same upgrade again, later, is another one.
    want(&mut world, "1.18.3");
    world.settle();
    assert_eq!(world.condition(condition::UP_TO_DATE).1, "WaitingForApproval");
}

#[test]
fn one_component_moves_alone_and_is_said_by_its_name() {
    let mut world = settled("scheduler: {version: 1.18.1}");
    world.log.clear();
    world.object.spec.scheduler.version = None;
    world.turn();
    assert!(world.upgrade().unwrap().summary.starts_with("Upgrade karmada-scheduler 1.18.1 -> 1.18.2"));
    world.settle();
    assert_eq!(moved(&world), ["scheduler"]);
    world.log.clear();
    world.object.spec.api_server.settings.version = Some("1.35.4".parse().unwrap());
    world.object.spec.kube_controller_manager.version = Some("1.35.4".parse().unwrap());
    world.settle();
    assert_eq!(moved(&world), ["apiserver", "kube-controller-manager"]);
    assert!(world.is_ready() && world.upgrade().is_none());
}

#[test]
fn what_somebody_writes_into_an_image_is_put_back_and_is_no_upgrade() {
    let mut world = settled("");
    let key = ("Deployment".to_owned(), "karmada-system".to_owned(), "k1-webhook".to_owned());
    world.host.get_mut(&key).unwrap()["spec"]["template"]["spec"]["containers"][0]["image"] = "x:v1.17.0".into();
    world.applied.insert((Place::Host, key), "edited".into());
    world.turn();
    assert!(world.upgrade().is_none());
    world.settle();
    assert_eq!(live(&world, Component::Webhook).0, "1.18.2");
}
