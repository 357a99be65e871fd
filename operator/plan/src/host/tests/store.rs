//! A Host that may be older than its machine.

use crds::conditions;
use crds::host::HostPhase;
use crds::names::condition;

use super::{World, at, spare};

const CLAIMED: &str = ", claimRef: {kind: Machine, name: m, uid: m1}, claimEpoch: 1";

fn is_older(world: &World, name: &str) -> bool {
    let status = world.hosts[name].status.as_ref().unwrap();
    conditions::is_true(&status.conditions, condition::STORE_IS_OLDER)
}

#[test]
fn after_a_gap_every_host_is_asked_once_and_all_by_one_probe() {
    let mut world = World::new(vec![spare("a", ""), spare("b", ""), spare("c", CLAIMED)]);
    for name in ["a", "b"] {
        world.finds.insert(name.into(), "clean: true, fence: {epoch: 0, token: 0}".into());
    }
    let ours = "fence: {epoch: 1, token: 3}, fenceOwner: {cluster: a, run: fleet/a-join, machineUID: m1}";
    world.finds.insert("c".into(), format!("clean: false, {ours}"));
    world.settle();
    assert_eq!(world.probes.len(), 1);
    assert_eq!(world.probes[0].spec.hosts, ["a", "b"], "a machine that is claimed is known");
    world.resumed_at = Some(at(world.now));
    world.settle();
    assert_eq!(world.probes.len(), 2);
    assert_eq!(world.probes[1].spec.hosts, ["a", "b", "c"]);
    assert_eq!(world.shown("c"), (HostPhase::Claimed, "claimed by Machine m".into(), "True"));
    // It is known from then on.
    world.now += 100;
    assert!(world.turn().is_empty());
}

#[test]
fn a_claimed_host_whose_machine_has_another_claim_says_whose() {
    let mut world = World::new(vec![spare("c", CLAIMED)]);
    let of_b = "fence: {epoch: 2, token: 3}, fenceOwner: {cluster: b, run: fleet/b-join, machineUID: m2}";
    world.finds.insert("c".into(), format!("clean: false, {of_b}"));
    world.resumed_at = Some(at(1));
    world.settle();
    assert!(is_older(&world, "c"));
    let (_, message, ready) = world.shown("c");
    assert!(
        message.contains("claimed since (epoch 2 of cluster fleet/b, run fleet/b-join), here its epoch is 1"),
        "{message}"
    );
    assert_eq!(ready, "False");
    assert_eq!(world.hosts["c"].spec.claim_epoch, 1, "nobody raises it unasked");
}

#[test]
fn a_spare_host_of_a_later_claim_is_not_free_until_it_is_clean_and_takes_its_epoch_then() {
    let mut world = World::new(vec![spare("a", "")]);
    let of_b = "fence: {epoch: 4, token: 3}, fenceOwner: {cluster: b, run: fleet/b-join, machineUID: m2}";
    world.finds.insert("a".into(), format!("clean: false, leftovers: [/etc/kubernetes], {of_b}"));
    world.settle();
    assert!(is_older(&world, "a"));
    assert_eq!(world.shown("a").0, HostPhase::Quarantined);
    assert!(crate::claims::why_not(&world.hosts["a"]).is_some());
    world.finds.insert("a".into(), format!("clean: true, {of_b}"));
    world.now += 200;
    world.settle();
    world.settle();
    assert!(!is_older(&world, "a"));
    assert_eq!(world.hosts["a"].spec.claim_epoch, 4);
    assert_eq!(world.shown("a"), (HostPhase::Available, "available".into(), "True"));
}
