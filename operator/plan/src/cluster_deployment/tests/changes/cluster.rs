//! The API does not answer, etcd has no majority or an alarm, certificates have ended: changes wait, and say so.

use crds::conditions;
use crds::names::condition;
use crds::step::{Intent, Role};
use jiff::SignedDuration;

use super::{Change, KINDS, MaxPods, Minor, Renewal, Rotation, pass, standing};
use crate::rotation::Subject;
use crate::testing::World;

/// All but renewals, which are what may mend it.
fn waiting() -> impl Iterator<Item = Change> {
    KINDS.into_iter().filter(|change| *change != Renewal)
}

/// The run that works may end, and nothing begins after it for so long.
fn nothing_begins(change: Change, world: &mut World, place: &str) {
    let before = change.runs(world).len();
    for _ in 0..20 {
        pass(world);
        let begun = change.begun(world, before);
        assert!(begun.is_empty(), "{change:?} {place}: {begun:?}: {}", change.says(world));
    }
}

#[test]
fn a_change_waits_for_an_api_that_does_not_answer_and_goes_on_once_it_does_row_35() {
    for change in waiting() {
        for moment in change.moments() {
            let mut world = moment.clone();
            world.api_lost = true;
            nothing_begins(change, &mut world, "without an API");
            let says = change.says(&world);
            assert!(says.contains("the API of "), "{change:?}: {says}");
            world.api_lost = false;
            change.finish(&mut world);
        }
    }
}

/// A renewal needs SSH alone.
#[test]
fn certificates_are_renewed_while_the_api_does_not_answer_row_35() {
    for moment in Renewal.at_work() {
        let mut world = moment.clone();
        world.api_lost = true;
        (0..30).for_each(|_| pass(&mut world));
        world.api_lost = false;
        Renewal.finish(&mut world);
        assert_eq!(Renewal.runs(&world).len(), 3);
    }
}

#[test]
fn nothing_is_changed_in_a_cluster_whose_etcd_has_no_majority_row_37() {
    for change in waiting() {
        for moment in change.at_work() {
            let mut world = moment.clone();
            // The machine that is worked on may be one of them.
            world.kill("h2");
            world.kill("h3");
            nothing_begins_on_others(change, &mut world);
            world.revive("h2");
            world.revive("h3");
            world.request("a", crds::names::annotation::RETRY);
            change.finish(&mut world);
            assert_eq!((world.voters.len(), world.inits), (3, 1), "{change:?}");
        }
    }
}

/// What is tried again is tried on the machine on which it failed.
fn nothing_begins_on_others(change: Change, world: &mut World) {
    let works = change.work(world).unwrap().spec.hosts.clone();
    let before = change.runs(world).len();
    for _ in 0..20 {
        pass(world);
        let begun = change.begun(world, before);
        let others = begun.iter().filter(|run| run.spec.hosts != works).count();
        assert_eq!(others, 0, "{change:?}: {begun:?}: {}", change.says(world));
    }
}

fn data_is_well(world: &World) -> Option<bool> {
    let status = world.deployment.status.as_ref()?;
    let stated = conditions::find(&status.conditions, condition::ETCD_DATA_HEALTHY)?;
    Some(stated.status == "True")
}

/// A quota that is used up, and members whose data differs: what was not touched stays so until etcd is well.
#[test]
fn nothing_is_changed_in_a_cluster_whose_etcd_has_an_alarm_or_data_that_differs_row_38() {
    for change in [Minor, MaxPods, Rotation(Subject::EtcdCa)] {
        for differs in [false, true] {
            let mut looked_at = 0;
            for moment in change.at_work() {
                let mut world = moment.clone();
                if differs {
                    world.data.differ = ["h2".to_owned()].into();
                } else {
                    world.data.is_full = true;
                }
                for _ in 0..200 {
                    if data_is_well(&world) == Some(false) || change.is_done(&world) {
                        break;
                    }
                    pass(&mut world);
                }
                if change.is_done(&world) {
                    continue;
                }
                looked_at += 1;
                (0..3).for_each(|_| pass(&mut world));
                nothing_begins(change, &mut world, if differs { "differs" } else { "is full" });
                world.data.is_full = false;
                world.data.differ.clear();
                for _ in 0..200 {
                    if data_is_well(&world) == Some(true) {
                        break;
                    }
                    pass(&mut world);
                }
                change.finish(&mut world);
            }
            assert!(looked_at > 0, "{change:?} {differs}");
        }
    }
}

/// A worker whose Node is drained by then is brought to the end, and no other one is begun.
#[test]
fn no_other_worker_is_drained_while_etcd_has_an_alarm_row_38() {
    let is_plane = |world: &World| {
        let host = Minor.work(world).unwrap().spec.hosts[0].clone();
        Minor.work(world).unwrap().spec.intent == Intent::Upgrade && world.role_of(&host) == Some(Role::ControlPlane)
    };
    let mut world = Minor.at_work().into_iter().rfind(is_plane).unwrap();
    for host in ["h4", "h5"] {
        world.pods.insert(host.into(), 1);
        world.held_pods.insert(host.into());
    }
    world.data.is_full = true;
    let before = Minor.runs(&world).len();
    while data_is_well(&world) != Some(false) {
        pass(&mut world);
    }
    world.held_pods.clear();
    (0..30).for_each(|_| pass(&mut world));
    let says = Minor.says(&world);
    assert_eq!(Minor.begun(&world, before).len(), 1, "{says}");
    assert!(says.contains("False EtcdNoSpace: ") && says.contains("waits for the cluster to be well"), "{says}");
    world.data.is_full = false;
    Minor.finish(&mut world);
}

/// Everything ended a week ago, and nobody answers: what is asked for waits for the renewal, which needs SSH alone.
#[test]
fn certificates_that_ended_a_week_ago_are_renewed_and_the_change_follows_rows_36_and_48() {
    for change in [Minor, MaxPods, Rotation(Subject::FrontProxyCa)] {
        let mut world = standing(90);
        world.jump(SignedDuration::from_hours(24 * 97));
        world.api_lost = true;
        change.ask(&mut world);
        world.write_statuses();
        let (mut renewed, mut turns) = (0, 0);
        while renewed < 3 {
            pass(&mut world);
            let of_renewal = world.runs.iter().filter(|run| run.spec.intent == Intent::Renew);
            renewed = of_renewal.filter(|run| crate::attempts::is_over(run)).count();
            assert!(change.begun(&world, 0).is_empty(), "{change:?}: {}", change.says(&world));
            turns += 1;
            assert!(turns < 60, "{change:?}: {}\n{}", change.says(&world), world.report());
        }
        assert!(["h1", "h2", "h3"].iter().all(|host| world.certificates[*host] > world.time().0));
        world.api_lost = false;
        change.finish(&mut world);
    }
}
