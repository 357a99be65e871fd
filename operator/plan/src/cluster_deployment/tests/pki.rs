//! A cluster's authorities are made once, before any machine trusts them.

use super::ready;
use crate::testing::World;

const SPEC: &str = "controlPlane: {replicas: 1}, workers: [{name: general, replicas: 1}]";

/// An installed cluster whose Secret is gone, after what else was lost.
fn without_keys(lose: impl FnOnce(&mut World)) -> World {
    let mut world = World::new(SPEC, 2);
    world.settle();
    world.pki = false;
    lose(&mut world);
    world.run_for(30);
    world
}

fn lose_all_statuses(world: &mut World) {
    world.lose_status();
    for machine in &mut world.machines {
        machine.status = None;
    }
}

#[test]
fn the_authorities_of_an_installed_cluster_are_never_made_anew_whatever_else_was_lost() {
    let check = |what: &str, lose: fn(&mut World)| {
        let mut world = without_keys(lose);
        assert!(!world.pki, "{what}");
        let (status, reason, message) = ready(&world);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "PKIMissing"), "{what}: {message}");
        assert!(message.contains("kubectl -n fleet create secret generic a-pki --from-file="), "{message}");
        assert!(message.contains("etcd-ca.key") && message.contains("encryption.key"), "{message}");
        world.pki = true;
        world.settle();
        assert_eq!(ready(&world).0, "True", "{what}");
    };
    check("nothing else", |_| {});
    check("the cluster's status", World::lose_status);
    check("the cluster's status and its runs", |world| {
        world.runs.clear();
        world.lose_status();
    });
    check("all statuses", lose_all_statuses);
}

#[test]
fn all_statuses_and_runs_together_do_not_bring_a_second_authority_either() {
    let world = without_keys(|world| {
        world.runs.clear();
        lose_all_statuses(world);
    });
    assert!(!world.pki);
    assert_eq!(ready(&world).1, "PKIMissing");
    assert_eq!(world.inits, 1, "and nothing is installed over it");
}

#[test]
fn a_machine_that_may_have_been_provisioned_is_enough_while_the_lock_is_not_read_back() {
    let mut world = World::new(SPEC, 2);
    world.settle();
    world.pki = false;
    world.runs.clear();
    lose_all_statuses(&mut world);
    world.silent = ["h1".to_owned(), "h2".to_owned()].into();
    world.run_for(9);
    assert!(!world.pki);
    assert_eq!(world.deployment.status.as_ref().unwrap().last_token, None);
}

#[test]
fn a_new_cluster_gets_its_authorities_before_any_machine_and_again_if_no_run_had_them() {
    let mut world = World::new(SPEC, 0);
    world.settle();
    assert!(world.pki);
    world.pki = false;
    world.settle();
    assert!(world.pki, "nobody trusts those that are gone");
}

#[test]
fn runs_that_were_made_before_their_cluster_do_not_keep_it_from_its_authorities() {
    let check = |what: &str, token: i64| {
        let mut world = World::new(SPEC, 2);
        world.custom_run("early", &["h1"]);
        world.runs[0].status.get_or_insert_default().token = token;
        world.settle();
        assert!(world.pki, "{what}");
        assert_eq!(ready(&world).0, "True", "{what}");
        let status = world.deployment.status.as_ref().unwrap();
        assert!(status.last_token > status.initial_token, "{what}: {:?}", status.last_token);
        world.pki = false;
        world.run_for(9);
        assert!(!world.pki, "{what}: the machines trust those that are gone");
    };
    check("one that has not begun", 0);
    check("one of an earlier cluster of this name", 41);
}
