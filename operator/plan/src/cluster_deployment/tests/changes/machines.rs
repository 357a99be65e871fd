//! Machines that do not accept SSH logins, that fail, that are sick: what is changed there halts, and with it whatever
//! else would be taken out of service.

use crds::Reason;
use crds::step::{Intent, Role};

use super::{Change, KINDS, MaxPods, Minor, Renewal, is_at_work, pass};
use crate::testing::World;

/// The Host of the run that works, where it works on one alone.
fn host(change: Change, world: &World) -> Option<String> {
    match change.work(world).unwrap().spec.hosts.as_slice() {
        [host] => Some(host.clone()),
        _ => None,
    }
}

/// Whatever keeps SSH out: it is tried for as long as it takes, and nothing else is touched but where what is due
/// cannot wait.
#[test]
fn a_machine_that_does_not_accept_ssh_logins_halts_the_change_until_it_does_rows_20_25_and_26() {
    let reasons = [Reason::Unreachable, Reason::HostKeyChanged, Reason::AuthenticationFailed];
    let mut reasons = reasons.into_iter().cycle();
    for change in KINDS {
        for moment in change.at_work() {
            let Some(host) = host(change, &moment) else { continue };
            let (mut world, reason) = (moment.clone(), reasons.next().unwrap());
            world.denied.insert(host.clone(), reason);
            let (before, mut told) = (change.runs(&world).len(), 0);
            for _ in 0..20 {
                pass(&mut world);
                let says = change.says(&world);
                told += usize::from(
                    says.contains(&format!("{reason}: ", reason = reason.as_str())) && says.contains(&host),
                );
                world.write_statuses();
            }
            let begun = change.begun(&world, before);
            let others = begun.iter().filter(|run| run.spec.hosts != [host.clone()]).count();
            let place = format!("{change:?} with {reason:?} of {host}: {}", change.says(&world));
            assert!(begun.len() - others > 3, "{place}: it is no attempt that counts");
            assert!(others == 0 || change == Renewal, "{place}");
            assert!(told > 0, "{place}");
            world.denied.clear();
            change.finish(&mut world);
        }
    }
}

/// A disk that is full, a file system that is read-only, a clock that is wrong: what fails on a machine is tried three
/// times, and then waits for the person who mends it.
#[test]
fn a_machine_on_which_a_change_fails_halts_it_and_is_named_row_24() {
    for change in KINDS {
        for moment in change.at_work() {
            let Some(host) = host(change, &moment) else { continue };
            let mut world = moment.clone();
            world.always_fails = vec![host.clone()];
            let before = change.runs(&world).len();
            (0..20).for_each(|_| pass(&mut world));
            let place = format!("{change:?} on {host}: {}", change.says(&world));
            let (on_it, on_others): (Vec<_>, Vec<_>) =
                change.begun(&world, before).into_iter().partition(|run| run.spec.hosts == [host.clone()]);
            let says = change.says(&world);
            assert!(says.contains("TaskFailed: ") && says.contains(&host), "{place}");
            if change == Renewal {
                assert!(on_it.len() > 2, "{place}: certificates end, whoever looks");
            } else {
                assert_eq!((on_it.len(), on_others.len()), (2, 0), "{place}: three attempts in all");
                assert!(says.contains("after 3 attempts") && says.contains("clusterwright.dev/retry="), "{place}");
            }
            world.always_fails.clear();
            world.request("a", crds::names::annotation::RETRY);
            change.finish(&mut world);
        }
    }
}

/// Another worker, and one that works: with two workers, of which one may be out of service, nothing more is.
#[test]
fn a_worker_that_dies_or_is_sick_keeps_the_others_in_service_rows_22_and_46() {
    for change in [Minor, MaxPods] {
        for moment in change.at_work() {
            let works = host(change, &moment);
            for (dies, number) in [(true, 4), (false, 5)] {
                let (mut world, sick) = (moment.clone(), format!("h{number}"));
                let before = change.runs(&world).len();
                if dies {
                    world.kill(&sick);
                } else {
                    world.sick_nodes.insert(sick.clone());
                }
                world.write_statuses();
                let drained = |world: &World| {
                    let drained = world.machines.iter().filter(|machine| !machine.spec.drain_for.is_empty());
                    drained.filter(|machine| machine.spec.role == Role::Worker).count()
                };
                let was_drained = drained(&world);
                (0..40).for_each(|_| pass(&mut world));
                let place = format!("{change:?}, {works:?} works, {sick} is sick: {}", change.says(&world));
                assert!(drained(&world) <= was_drained.max(1), "{place}");
                let other = if number == 4 { "h5" } else { "h4" };
                let begins_other = change.begun(&world, before).iter().any(|run| run.spec.hosts == [other]);
                let goes_on = moment.machine_on(other).is_some_and(|machine| !machine.spec.drain_for.is_empty());
                assert!(!begins_other || goes_on, "{place}");
                assert!(change.says(&world).contains(&format!("({sick})")), "{place}");
                world.revive(&sick);
                world.sick_nodes.clear();
                world.request("a", crds::names::annotation::RETRY);
                change.finish(&mut world);
            }
        }
    }
}

/// Another control plane.
#[test]
fn a_control_plane_that_dies_or_is_sick_keeps_the_others_as_they_are_rows_22_and_46() {
    for change in KINDS.into_iter().filter(|change| *change != Renewal) {
        for moment in change.at_work() {
            let Some(works) = host(change, &moment).filter(|host| moment.role_of(host) == Some(Role::ControlPlane))
            else {
                continue;
            };
            let sick = if works == "h2" { "h3" } else { "h2" };
            for dies in [true, false] {
                let mut world = moment.clone();
                let before = change.runs(&world).len();
                if dies {
                    world.kill(sick);
                } else {
                    world.sick_nodes.insert(sick.into());
                }
                world.write_statuses();
                (0..20).for_each(|_| pass(&mut world));
                let place = format!("{change:?}, {works} works, {sick} is sick: {}", change.says(&world));
                let begun = change.begun(&world, before);
                let is_plane =
                    |run: &&&crds::PlaybookRun| world.role_of(&run.spec.hosts[0]) == Some(Role::ControlPlane);
                // Workers follow the last control plane within what may be out of service of their set.
                assert_eq!(begun.iter().filter(is_plane).count(), 0, "{place}");
                let waits = change.says(&world).contains("to be well (");
                assert!(waits || !begun.is_empty(), "{place}");
                world.revive(sick);
                world.sick_nodes.clear();
                change.finish(&mut world);
            }
        }
    }
}

/// Certificates do not wait: each machine that is reached has its own renewed.
#[test]
fn a_renewal_goes_on_while_another_machine_is_dead_or_sick_rows_22_and_46() {
    for dies in [true, false] {
        let mut world = Renewal.asked();
        if dies {
            world.kill("h4");
        } else {
            world.sick_nodes.insert("h2".into());
        }
        (0..40).for_each(|_| pass(&mut world));
        assert!(world.machines.iter().filter(|machine| machine.spec.role == Role::ControlPlane).all(|machine| {
            let host = &machine.spec.host_ref.as_ref().unwrap().name;
            world.certificates[host].duration_since(world.time().0) > jiff::SignedDuration::from_hours(24 * 80)
        }));
    }
}

/// A cluster of three control planes and four workers, of which two may be out of service, with what is asked for.
fn wide(change: Change) -> World {
    let spec = "controlPlane: {replicas: 3, endpoint: {host: 10.9.9.9}}, workers: [{name: general, replicas: 4, maxUnavailable: 2}], \
                executor: {historyLimit: 100}, drift: {checkEverySeconds: 0}";
    let mut world = World::new(spec, 7);
    world.settle();
    change.ask(&mut world);
    world.write_statuses();
    world
}

fn out_of_service(world: &World) -> usize {
    let workers = world.machines.iter().filter(|machine| machine.spec.role == Role::Worker);
    let is_out = |machine: &&crds::Machine| {
        let host = &machine.spec.host_ref.as_ref().unwrap().name;
        !machine.spec.drain_for.is_empty() || world.sick_nodes.contains(host) || world.silent.contains(host)
    };
    workers.filter(is_out).count()
}

/// One of four is sick: one more may be out of service. Two are: none may.
#[test]
fn no_more_workers_are_out_of_service_than_may_be_the_sick_among_them_rows_22_and_46() {
    for change in [Minor, MaxPods] {
        for sick in [["h5"].as_slice(), &["h5", "h6"]] {
            let mut world = wide(change);
            world.sick_nodes = sick.iter().map(|host| (*host).to_owned()).collect();
            let mut most = 0;
            for _ in 0..80 {
                pass(&mut world);
                most = most.max(out_of_service(&world));
            }
            let place = format!("{change:?} with {sick:?}: {}", change.says(&world));
            assert_eq!(most, 2, "{place}");
            let is_on_worker =
                |run: &&&crds::PlaybookRun| run.spec.hosts.iter().any(|host| world.role_of(host) == Some(Role::Worker));
            let begun = change.begun(&world, 0);
            let on_workers = begun.iter().filter(is_on_worker).count();
            assert_eq!(on_workers, if sick.len() == 1 { 3 } else { 0 }, "{place}");
            world.sick_nodes.clear();
            change.finish(&mut world);
        }
    }
}

/// Three of seven machines: more than 30 %, rounded up.
#[test]
fn while_too_many_machines_are_sick_no_other_one_is_disrupted_and_that_is_said_row_42() {
    for change in [Minor, MaxPods] {
        for goes_in in [0, 6] {
            let mut world = wide(change);
            (0..goes_in).for_each(|_| pass(&mut world));
            let was_at_work = world.runs.iter().any(is_at_work);
            world.sick_nodes = ["h4", "h5", "h6", "h7"].map(String::from).into();
            // They are sick for some minutes before they count.
            (0..3).for_each(|_| pass(&mut world));
            let before = change.runs(&world).len();
            (0..30).for_each(|_| pass(&mut world));
            let place = format!("{change:?} after {goes_in} turns, {was_at_work}: {}", change.says(&world));
            let begun = change.begun(&world, before);
            assert!(begun.is_empty(), "{place}: {begun:?}");
            let says = change.says(&world);
            assert!(says.contains("False TooManyUnhealthy: "), "{place}");
            assert!(says.contains("4 of 7 machines are sick at once, and maxUnhealthy allows 3"), "{place}");
            world.sick_nodes.clear();
            change.finish(&mut world);
            assert_eq!(world.runs.iter().filter(|run| run.spec.intent == Intent::Repair).count(), 0);
        }
    }
    assert!(Reason::TooManyUnhealthy.may_stand_on(crds::names::condition::UP_TO_DATE));
}
