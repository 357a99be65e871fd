//! What keeps an upgrade from beginning, what halts it, and how one goes back or goes on.

use crds::karmada_deployment::{UpgradeCheck, UpgradeStep as Step};
use crds::names::condition;
use serde_json::json;

use super::super::super::{Component, Place, Propagated};
use super::super::world::World;
use super::{former, live, until, want};

fn blocked(world: &mut World, part: &str) {
    want(world, "1.18.2");
    world.settle();
    let (_, reason, message) = world.condition(condition::UP_TO_DATE);
    assert_eq!(reason, "UpgradeBlocked", "{message}");
    assert!(message.contains(part) && message.starts_with("Upgrade 1.17.5 -> 1.18.2: "), "{message}");
    assert!(world.log.is_empty(), "{:?}", world.log);
    assert_eq!(live(world, Component::ControllerManager), ("1.17.5".to_owned(), 1));
}

#[test]
fn an_upgrade_does_not_begin_while_something_is_being_deleted_or_a_certificate_ends() {
    let mut world = former("");
    let first_terminating = Some("Work karmada-es-m1/nginx".to_owned());
    world.propagated = Propagated { works: 10, terminating: 2, first_terminating };
    blocked(
        &mut world,
        "2 objects that carry workloads to members are being deleted, the first is Work karmada-es-m1/nginx",
    );
    world.object.spec.upgrade.ignore = vec![UpgradeCheck::Terminating];
    world.first_end = Some("2026-12-01T00:00:00Z".parse().unwrap());
    world.settle();
    let (_, reason, message) = world.condition(condition::UP_TO_DATE);
    assert_eq!(reason, "UpgradeBlocked");
    assert!(message.contains("spec.certificates.renewBeforeDays to 31"), "{message}");
    world.first_end = None;
    world.settle();
    assert!(world.is_ready() && live(&world, Component::Webhook).0 == "1.18.2");
}

#[test]
fn an_upgrade_does_not_begin_in_a_plane_that_does_not_work() {
    let mut world = former("");
    world.policy_refused = Some("no answer".to_owned());
    blocked(
        &mut world,
        "a PropagationPolicy would be refused (nothing was written): no answer: repair it; or name Health",
    );
    world.object.spec.upgrade.ignore = vec![UpgradeCheck::Health];
    world.turn();
    assert!(world.upgrade().unwrap().step.is_some());
}

#[test]
fn definitions_that_would_be_refused_are_named_before_anything_is_touched() {
    let mut world = former("");
    let key = ("CustomResourceDefinition".to_owned(), String::new(), "works.work.karmada.io".to_owned());
    world.refused.insert(key, "spec.versions is wrong".to_owned());
    blocked(&mut world, "spec.crds: CustomResourceDefinition works.work.karmada.io of 1.18.2 would be refused");
}

#[test]
fn a_component_that_does_not_start_halts_it_and_the_message_says_how_to_go_back() {
    let mut world = former("");
    world.stuck.insert("k1-webhook".to_owned());
    let waiting = json!({ "reason": "CrashLoopBackOff", "message": "it ends" });
    let labels = json!({ "app.kubernetes.io/name": "karmada-webhook", "clusterwright.dev/karmada-uid": "uid-1" });
    let status = json!({ "containerStatuses": [{ "image": "i", "state": { "waiting": waiting } }] });
    world.pods.push(json!({ "metadata": { "name": "w", "labels": labels }, "status": status }));
    want(&mut world, "1.18.2");
    world.settle();
    let (_, reason, message) = world.condition(condition::UP_TO_DATE);
    assert_eq!(reason, "UpgradeHalted", "{message}");
    assert!(message.starts_with("Upgrade 1.17.5 -> 1.18.2, step 4 of "), "{message}");
    assert!(message.contains("(karmada-webhook): waiting for karmada-webhook"), "{message}");
    assert!(message.ends_with("it goes on when that works; to go back set spec.version to 1.17.5"), "{message}");
    assert_eq!(world.object.status.as_ref().unwrap().message.as_deref(), Some(message.as_str()));
    assert_eq!(live(&world, Component::AggregatedApiServer).0, "1.17.5");
    assert_eq!(live(&world, Component::ControllerManager), ("1.17.5".to_owned(), 0));

    // Back it goes, though the plane does not work: what has not moved stays, and definitions are never set back.
    want(&mut world, "1.17.5");
    world.stuck.clear();
    world.pods.clear();
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    for component in [Component::Webhook, Component::Scheduler, Component::ControllerManager] {
        assert_eq!(live(&world, component), ("1.17.5".to_owned(), 1), "{component:?}");
    }
    let definition = world.find(Place::Plane, "CustomResourceDefinition", "works.work.karmada.io").unwrap();
    assert_eq!(definition["metadata"]["annotations"]["clusterwright.dev/version"], "1.18.2");
    assert_eq!(world.object.status.as_ref().unwrap().version.as_deref(), Some("1.17.5"));
}

#[test]
fn a_webhook_that_never_works_in_its_new_version_goes_back_before_it_works() {
    let mut world = former("");
    want(&mut world, "1.18.2");
    until(&mut world, Step::Webhook);
    world.stuck.insert("k1-webhook".to_owned());
    world.policy_refused = Some("no answer".to_owned());
    world.settle();
    assert_eq!(live(&world, Component::Webhook).0, "1.18.2");
    want(&mut world, "1.17.5");
    world.settle();
    assert_eq!(live(&world, Component::Webhook).0, "1.17.5");
    assert_eq!(live(&world, Component::ControllerManager).1, 0, "nothing starts before the webhook works");
}

#[test]
fn once_the_controllers_of_a_minor_have_run_only_a_restore_goes_back() {
    let mut world = former("search: {}");
    want(&mut world, "1.18.2");
    until(&mut world, Step::Search);
    want(&mut world, "1.17.5");
    world.log.clear();
    world.settle();
    let (_, reason, message) = world.condition(condition::UP_TO_DATE);
    assert_eq!(reason, "UpgradeNotReversible");
    assert!(message.contains("set spec.version to 1.18.2") && message.contains("restoring etcd"), "{message}");
    assert!(world.log.is_empty(), "{:?}", world.log);
    want(&mut world, "1.18.2");
    world.settle();
    assert!(world.is_ready());
    assert_eq!(live(&world, Component::Search).0, "1.18.2");
}

#[test]
fn a_patch_goes_back_whenever_it_is_wanted() {
    let mut world = super::super::world::settled("version: 1.18.1");
    want(&mut world, "1.18.2");
    world.settle();
    want(&mut world, "1.18.1");
    world.settle();
    assert!(world.is_ready());
    for component in Component::ALL.into_iter().filter(|component| component.is_of_karmada()) {
        if component.replicas(&world.object.spec).is_some() {
            assert_eq!(live(&world, component).0, "1.18.1");
        }
    }
}

#[test]
fn works_that_are_missing_halt_it_until_a_person_says_that_they_were_meant_to_go() {
    let mut world = former("");
    want(&mut world, "1.18.2");
    until(&mut world, Step::ControllerManager);
    world.propagated.works = 7;
    world.settle();
    let (_, reason, message) = world.condition(condition::UP_TO_DATE);
    assert_eq!(reason, "WorksMissing", "{message}");
    assert!(message.contains("10 Works when it began, 7 now"), "{message}");
    let (_, value) = message.rsplit_once("clusterwright.dev/approve=").unwrap();
    let annotation = ("clusterwright.dev/approve".to_owned(), value.to_owned());
    world.object.metadata.annotations = Some([annotation].into());
    world.settle();
    assert!(world.is_ready() && world.upgrade().is_none());
}

#[test]
fn a_paused_upgrade_stays_at_its_step() {
    let mut world = former("");
    want(&mut world, "1.18.2");
    until(&mut world, Step::Webhook);
    world.object.spec.paused = true;
    world.settle();
    assert_eq!(world.condition(condition::UP_TO_DATE).1, "Paused");
    assert_eq!(world.upgrade().unwrap().step, Some(Step::Webhook));
    world.object.spec.paused = false;
    world.settle();
    assert!(world.is_ready() && world.upgrade().is_none());
}

#[test]
fn whenever_the_status_is_lost_nothing_goes_back_and_all_of_it_arrives() {
    let former = former("search: {}");
    for lost_after in (1..40).step_by(4) {
        let mut world = former.clone();
        want(&mut world, "1.18.2");
        for _ in 0..lost_after {
            world.turn();
        }
        let before: Vec<String> = Component::ALL
            .into_iter()
            .filter(|component| component.replicas(&world.object.spec).is_some())
            .map(|component| live(&world, component).0)
            .collect();
        world.object.status = None;
        for _ in 0..200 {
            let more = world.turn();
            let now = Component::ALL.into_iter().filter(|component| component.replicas(&world.object.spec).is_some());
            for (component, before) in now.zip(&before) {
                let now = live(&world, component).0;
                assert!(now == *before || now != "1.17.5", "{lost_after}: {component:?} went back from {before}");
            }
            if !more {
                break;
            }
        }
        assert!(world.is_ready(), "{lost_after}: {:?}", world.condition("Ready"));
        assert_eq!(live(&world, Component::Search).0, "1.18.2");
    }
}

#[test]
fn a_component_that_is_deleted_in_the_midst_comes_back_in_the_version_that_it_had() {
    let mut world = former("");
    want(&mut world, "1.18.2");
    until(&mut world, Step::Webhook);
    let key = ("Deployment".to_owned(), "karmada-system".to_owned(), "k1-aggregated-apiserver".to_owned());
    world.host.remove(&key);
    world.applied.remove(&(Place::Host, key));
    world.turn();
    assert_eq!(live(&world, Component::AggregatedApiServer), ("1.17.5".to_owned(), 1));
    world.settle();
    assert!(world.is_ready());
    assert_eq!(live(&world, Component::AggregatedApiServer).0, "1.18.2");
}
