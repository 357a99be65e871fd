//! The metadata cluster of a plane on machines is set back to an older state: nothing is done to a machine that knows
//! more before that is approved.

use crds::host::QuarantineReason;
use crds::names::{annotation, condition};
use crds::playbook_run::{Fence, FenceOwner};
use crds::{Conditions, ObjectExt, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{BINARY, World, pass, runs, settled};

/// Reason and message of what is said of the store.
fn said(world: &World) -> Option<(String, String)> {
    let told = world.object.condition(condition::STORE_IS_OLDER)?;
    Some((told.reason.clone(), told.message.clone()))
}

fn last_token(world: &World) -> i64 {
    world.object.status.as_ref().unwrap().last_token.unwrap()
}

/// The objects are as they were then, but for what a person wishes now.
fn set_back(world: &mut World, then: &World) {
    world.object = then.object.clone();
    world.fleet.set_back(&then.fleet, world.now);
    world.log.clear();
    world.fleet.played.clear();
}

/// What the message asks for is approved.
fn approve(world: &mut World) {
    let (_, message) = said(world).unwrap();
    let value = message.rsplit_once("clusterwright.dev/approve=").unwrap().1.to_owned();
    assert!(message.contains("kubectl -n fleet annotate --overwrite karmadadeployments.clusterwright.dev k1"));
    world.object.metadata.annotations.get_or_insert_default().insert(annotation::APPROVE.into(), value);
}

/// A plane to whose scheduler something was done since, and the world before that.
fn changed() -> (World, World) {
    let mut world = settled(BINARY, 4);
    let then = world.clone();
    world.object.spec.scheduler.extra_args = serde_yaml::from_str("{v: '4'}").unwrap();
    pass(&mut world, 1);
    assert!(world.is_ready() && last_token(&world) > last_token(&then));
    (world, then)
}

#[test]
fn a_look_at_a_planes_machines_that_finds_nothing_new_holds_nobody_up() {
    let mut world = settled(BINARY, 3);
    let then = world.clone();
    set_back(&mut world, &then);
    world.turn();
    assert_eq!(said(&world).unwrap().0, Reason::LookingAtMachines.as_str());
    assert!(world.is_ready(), "nothing is known to be wrong: {:?}", world.condition("Ready"));
    pass(&mut world, 2);
    assert!(said(&world).is_none() && world.is_ready() && runs(&world).is_empty(), "{:?}", said(&world));
    let status = world.object.status.clone().unwrap();
    assert_eq!(status.compared_since.map(|since| since.0), world.fleet.resumed_at);
    assert_eq!(status.comparisons.iter().map(|one| one.last_token).collect::<Vec<_>>(), [last_token(&then)]);
}

#[test]
fn a_plane_whose_metadata_cluster_was_set_back_touches_no_machine_until_what_they_know_is_approved_row_34() {
    let (mut world, then) = changed();
    let (given, units) = (last_token(&world), world.fleet.units.clone());
    set_back(&mut world, &then);
    pass(&mut world, 40);
    let (reason, message) = said(&world).unwrap();
    assert_eq!(reason, Reason::MachineIsNewer.as_str());
    assert!(message.contains("h1: a run was there that is not known here"), "{message}");
    assert_eq!(world.condition("Ready").1, Reason::MachineIsNewer.as_str());
    assert_eq!((runs(&world), &world.fleet.units), (Vec::new(), &units), "nothing is done to a machine");
    // Another value approves nothing.
    world.object.metadata.annotations.get_or_insert_default().insert(annotation::APPROVE.into(), "store.0".into());
    pass(&mut world, 5);
    assert!(runs(&world).is_empty());
    approve(&mut world);
    pass(&mut world, 5);
    assert_eq!(said(&world), None);
    assert!(world.is_ready() && last_token(&world) > given, "{:?}", world.condition("Ready"));
    assert_eq!(runs(&world).len(), 3, "each machine is brought to what the older object wants");
    assert_ne!(world.fleet.units, units);
}

#[test]
fn a_machine_of_a_plane_that_was_silent_is_compared_when_it_is_back_row_34() {
    let (mut world, then) = changed();
    world.fleet.denied.insert("h3".to_owned(), Reason::Unreachable);
    set_back(&mut world, &then);
    pass(&mut world, 5);
    let (_, message) = said(&world).unwrap();
    assert!(message.contains("h1:") && !message.contains("h3:"), "{message}");
    approve(&mut world);
    pass(&mut world, 10);
    assert_eq!(said(&world), None);
    let before = runs(&world).len();
    world.fleet.denied.clear();
    pass(&mut world, 10);
    let (reason, message) = said(&world).unwrap();
    assert!(reason == Reason::MachineIsNewer.as_str() && message.contains("h3:"), "{reason} {message}");
    assert_eq!(runs(&world).len(), before);
    approve(&mut world);
    pass(&mut world, 10);
    assert!(said(&world).is_none() && world.is_ready(), "{:?} {:?}", said(&world), world.condition("Ready"));
}

#[test]
fn a_machine_that_another_cluster_has_since_is_let_go_and_left_alone_once_that_is_approved_row_34() {
    let mut world = settled(BINARY, 4);
    let then = world.clone();
    let owner = FenceOwner {
        cluster: "other".into(),
        run: "fleet/other-join".into(),
        machine_uid: Some("another".into()),
        compared_since: None,
    };
    world.fleet.guards.insert("h3".into(), (Fence { epoch: 2, token: 5 }, owner));
    set_back(&mut world, &then);
    pass(&mut world, 5);
    let (_, message) = said(&world).unwrap();
    assert!(message.contains("h3: its machine was claimed since (epoch 2 of cluster fleet/other"), "{message}");
    let units = world.fleet.units["h3"].clone();
    approve(&mut world);
    pass(&mut world, 20);
    assert_eq!(said(&world), None);
    let host = world.fleet.hosts.iter().find(|host| host.name() == "h3").unwrap();
    assert_eq!((host.spec.claim_ref.as_ref(), host.spec.claim_epoch), (None, 2));
    assert_eq!(host.spec.quarantine.as_ref().unwrap().reason, QuarantineReason::StoreIsOlder);
    let on_it = runs(&world).into_iter().filter(|run| run.ends_with(" h3") || run.contains("h3,"));
    assert_eq!(on_it.collect::<Vec<_>>(), [""; 0]);
    assert_eq!(world.fleet.units["h3"], units);
    assert!(world.fleet.machines.iter().filter(|machine| machine.is_deleting()).count() <= 1);
}

#[test]
fn a_plane_whose_deletion_comes_with_an_older_metadata_cluster_waits_for_an_approval_row_34() {
    let (mut world, mut then) = changed();
    then.object.metadata.deletion_timestamp = Some(Time(then.now));
    set_back(&mut world, &then);
    pass(&mut world, 20);
    let deleting = world.condition(condition::DELETING);
    assert_eq!(deleting.1, Reason::MachineIsNewer.as_str());
    assert!(runs(&world).is_empty() && world.fleet.machines.iter().all(|machine| !machine.is_deleting()));
    approve(&mut world);
    for _ in 0..60 {
        if world.object.metadata.finalizers.is_none() {
            break;
        }
        pass(&mut world, 1);
    }
    assert!(world.object.metadata.finalizers.is_none(), "{:?}", world.condition(condition::DELETING));
    assert!(world.fleet.machines.is_empty() && world.fleet.units.is_empty());
}
