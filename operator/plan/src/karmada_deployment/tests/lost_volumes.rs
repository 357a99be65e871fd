//! Members of an etcd in Pods that lose their volumes: each is replaced, one act at a time, never without a majority,
//! and only where it is known that the volume is new.

use crds::names::{annotation, condition};
use jiff::SignedDuration;
use serde_json::json;

use super::super::Place;
use super::etcd::{cut_turn, has, of, want, workload};
use super::world::World;

/// These members lose their volumes, and it is seen.
fn lose(world: &mut World, lost: &[i32]) {
    let object = world.object.clone();
    lost.iter().for_each(|at| drop(world.etcd.lose(&object, *at)));
    world.tick();
    world.settle();
}

fn wait(world: &mut World, minutes: i64) {
    world.now += SignedDuration::from_mins(minutes);
    world.settle();
}

/// What was done to etcd and its volumes since then.
fn acts(world: &World, since: usize) -> Vec<String> {
    let acts = world.log[since..].iter().filter(|line| !line.starts_with("apply"));
    acts.map(|line| line.split('.').next().unwrap().to_owned()).collect()
}

fn volume(world: &World, ordinal: i32) -> String {
    let all = workload(world)["metadata"]["annotations"][annotation::ETCD_VOLUMES].as_str().unwrap_or_default();
    let own = format!("{ordinal}=");
    all.split(',').find_map(|one| one.strip_prefix(&own)).unwrap_or_default().to_owned()
}

#[test]
fn a_member_that_has_lost_its_volume_is_removed_and_added_as_a_new_one() {
    for (members, at) in [(3, 0), (3, 1), (5, 0), (5, 2), (5, 3)] {
        let mut world = of(members);
        let (template, before) = (workload(&world)["spec"]["template"].clone(), volume(&world, at));
        lose(&mut world, &[at]);
        assert_eq!(acts(&world, 0), Vec::<String>::new());
        assert!(volume(&world, at).starts_with("lost:id-"), "{}", volume(&world, at));
        let (status, _, message) = world.condition("Ready");
        let name = format!("k1-etcd-{at}");
        let expected =
            format!("member {name} has lost its volume: it is replaced once its Pod has not been ready for 3");
        assert!(status == "False" && message.contains(&expected), "{message}");
        let (_, reason, message) = world.condition(condition::UP_TO_DATE);
        assert_eq!(reason, "ScalingEtcd");
        assert!(message.starts_with(&format!("etcd's members: member {name}")), "{message}");
        wait(&mut world, 3);
        has(&world, members as usize);
        let expected = [format!("remove {name}"), format!("add https://{name}"), format!("promote {name}")];
        assert_eq!(acts(&world, 0), expected, "{members}");
        assert_ne!(volume(&world, at), before);
        assert_eq!(workload(&world)["spec"]["template"], template, "no Pod is rolled");
        // It may be so again.
        let since = world.log.len();
        lose(&mut world, &[at]);
        wait(&mut world, 3);
        has(&world, members as usize);
        assert_eq!(acts(&world, since), expected);
    }
}

#[test]
fn the_last_member_is_removed_with_its_pod_and_its_volume_and_comes_back() {
    for members in [3, 5] {
        let mut world = of(members);
        lose(&mut world, &[members - 1]);
        wait(&mut world, 3);
        has(&world, members as usize);
        let name = format!("k1-etcd-{}", members - 1);
        let expected = [
            format!("remove {name}"),
            format!("delete PersistentVolumeClaim data-{name}"),
            format!("add https://{name}"),
            format!("promote {name}"),
        ];
        assert_eq!(acts(&world, 0), expected);
    }
}

#[test]
fn of_several_all_are_removed_before_one_is_added() {
    for lost in [[1, 3], [0, 1], [0, 4], [3, 4]] {
        let mut world = of(5);
        lose(&mut world, &lost);
        wait(&mut world, 3);
        has(&world, 5);
        let acts = acts(&world, 0);
        assert_eq!(acts[..2], lost.map(|at| format!("remove k1-etcd-{at}")), "{acts:?}");
        assert_eq!(acts.iter().filter(|act| act.starts_with("promote")).count(), 2, "{acts:?}");
    }
}

#[test]
fn without_a_majority_nobody_is_removed() {
    for (members, lost) in [(1, &[0][..]), (3, &[0, 1]), (3, &[1, 2]), (5, &[0, 2, 4])] {
        let mut world = of(members);
        lose(&mut world, lost);
        wait(&mut world, 60);
        assert_eq!(acts(&world, 0), Vec::<String>::new());
        assert_eq!(world.condition(condition::ETCD_READY).0, "False");
        assert_eq!(workload(&world)["spec"]["replicas"], json!(members));
    }
    // One is lost, and one does not work for another reason, until it does.
    let mut world = of(3);
    world.etcd.broken.insert(2);
    lose(&mut world, &[1]);
    wait(&mut world, 60);
    assert_eq!(acts(&world, 0), Vec::<String>::new());
    world.etcd.broken.clear();
    world.tick();
    world.settle();
    has(&world, 3);
}

#[test]
fn another_one_that_does_not_work_holds_up_that_it_is_added_and_not_that_it_is_removed() {
    let mut world = of(5);
    world.etcd.broken.insert(4);
    lose(&mut world, &[1]);
    wait(&mut world, 3);
    assert_eq!(acts(&world, 0), ["remove k1-etcd-1"]);
    let message = world.condition("Ready").2;
    assert!(message.contains("waiting for Pod k1-etcd-4 to be ready, to add member k1-etcd-1 again"), "{message}");
    world.etcd.broken.clear();
    world.tick();
    world.settle();
    has(&world, 5);
}

#[test]
fn one_of_which_it_is_not_known_is_left_and_the_command_that_makes_it_known_is_said() {
    let mut world = of(3);
    world.etcd.broken.insert(1);
    world.tick();
    wait(&mut world, 9);
    assert!(!world.condition("Ready").2.contains("kubectl"), "{}", world.condition("Ready").2);
    wait(&mut world, 1);
    assert_eq!(acts(&world, 0), Vec::<String>::new());
    let (_, reason, message) = world.condition("Ready");
    let command = "if member k1-etcd-1 has lost its volume, or cannot use it: run on the host cluster: kubectl -n karmada-system delete pvc/data-k1-etcd-1 pod/k1-etcd-1 --wait=false";
    assert!(message.contains(command), "{message}");
    assert!(reason.starts_with("Component"), "{reason}");
    assert_eq!(world.condition(condition::UP_TO_DATE).0, "True", "nothing differs from what is wanted");
    world.etcd.broken.clear();
    lose(&mut world, &[1]);
    wait(&mut world, 3);
    has(&world, 3);
}

#[test]
fn a_volume_that_comes_back_is_taken_for_its_own() {
    let mut world = of(3);
    let object = world.object.clone();
    let data = world.etcd.lose(&object, 1);
    world.tick();
    world.settle();
    assert!(volume(&world, 1).starts_with("lost:"));
    world.etcd.bring_back(1, data);
    world.tick();
    world.settle();
    has(&world, 3);
    world.etcd.broken.insert(1);
    world.tick();
    wait(&mut world, 5);
    assert_eq!(acts(&world, 0), Vec::<String>::new());
}

#[test]
fn it_comes_back_wherever_the_operator_is_cut_off_and_whatever_is_wanted_meanwhile() {
    for (members, at, others) in [(3, 1, [3, 1, 5]), (3, 2, [3, 1, 5]), (5, 3, [5, 3, 1]), (5, 0, [5, 3, 1])] {
        let mut world = of(members);
        lose(&mut world, &[at]);
        world.now += SignedDuration::from_mins(3);
        for turns in 0..80 {
            let (mut other, wanted) = (world.clone(), others[turns % 3]);
            want(&mut other, wanted);
            (0..300).any(|_| !cut_turn(&mut other));
            other.settle();
            has(&other, wanted as usize);
            if !cut_turn(&mut world) {
                assert!(turns > 5, "{turns}");
                break;
            }
        }
        world.settle();
        has(&world, members as usize);
    }
}

#[test]
fn what_is_known_of_volumes_is_found_out_again_where_it_is_lost() {
    let mut world = of(3);
    let known = (volume(&world, 0), volume(&world, 1), volume(&world, 2));
    let key = ("StatefulSet".to_owned(), "karmada-system".to_owned(), "k1-etcd".to_owned());
    let annotations = &mut world.host.get_mut(&key).unwrap()["metadata"]["annotations"];
    annotations.as_object_mut().unwrap().remove(annotation::ETCD_VOLUMES);
    world.applied.remove(&(Place::Host, key));
    world.settle();
    has(&world, 3);
    assert_eq!((volume(&world, 0), volume(&world, 1), volume(&world, 2)), known);
}

#[test]
fn one_that_somebody_has_removed_is_not_added_with_what_it_has() {
    let mut world = of(3);
    world.etcd.membership.members.retain(|member| member.name != "k1-etcd-1");
    world.etcd.broken.insert(1);
    world.tick();
    world.settle();
    assert_eq!(acts(&world, 0), Vec::<String>::new());
    let (_, reason, message) = world.condition(condition::UP_TO_DATE);
    assert_eq!(reason, "EtcdScalingBlocked");
    assert!(message.contains("member k1-etcd-1 was removed from etcd, and its volume is that of before"), "{message}");
    assert!(message.contains("delete pvc/data-k1-etcd-1 pod/k1-etcd-1"), "{message}");
    world.etcd.broken.clear();
    lose(&mut world, &[1]);
    wait(&mut world, 3);
    has(&world, 3);
}
