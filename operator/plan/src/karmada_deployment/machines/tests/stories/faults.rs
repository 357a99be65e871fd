//! Faults of a plane on machines: while it is made, while machines join, and while it is brought to another version.
//! Each is met while each run works.

use std::collections::{BTreeMap, BTreeSet};

use crds::playbook_run::RunPhase;
use crds::step::Intent;
use crds::{ObjectExt, PlaybookRun, Reason, conditions};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{BINARY, World, parts, pass, runs, settled, world};

/// What is done to a plane.
#[derive(Clone, Copy, Debug)]
enum Change {
    Install,
    /// Two machines join one.
    Join,
    /// To another patch version.
    Upgrade,
}

const CHANGES: [Change; 3] = [Change::Install, Change::Join, Change::Upgrade];

impl Change {
    /// It is asked for; runs work until they are let end.
    fn asked(self) -> World {
        let mut world = match self {
            Self::Install => world(BINARY, 4),
            Self::Join => settled(&BINARY.replace("replicas: 3", "replicas: 1"), 4),
            Self::Upgrade => settled(BINARY, 4),
        };
        match self {
            Self::Install => {}
            Self::Join => world.object.spec.binary.as_mut().unwrap().control_plane.replicas = 3,
            Self::Upgrade => world.object.spec.version = "1.18.3".parse().unwrap(),
        }
        world.fleet.lingers = true;
        world
    }

    /// The plane as it is while each run works that changes something.
    fn at_work(self) -> Vec<World> {
        let mut world = self.asked();
        let mut moments = Vec::new();
        loop {
            world.settle();
            if working(&world).is_none() {
                break;
            }
            moments.push(world.clone());
            end_well(&mut world);
        }
        assert!(world.is_ready() && moments.len() > 3, "{self:?}: {:?}", world.condition("Ready"));
        moments
    }
}

fn is_at_work(run: &PlaybookRun) -> bool {
    let phase = run.status.as_ref().and_then(|status| status.phase);
    phase == Some(RunPhase::Running) && !run.spec.intent.changes_nothing()
}

/// The run that works.
fn working(world: &World) -> Option<&PlaybookRun> {
    world.fleet.runs.iter().find(|run| is_at_work(run))
}

/// The run that works succeeds.
fn end_well(world: &mut World) {
    let (object, now) = (world.object.clone(), world.now);
    world.fleet.lingers = false;
    world.fleet.tick(&object, now);
    world.fleet.lingers = true;
}

/// The run that works ends like this, and nobody knows what it did; it, as it is then.
fn end(world: &mut World, phase: RunPhase, reason: &str) -> PlaybookRun {
    let now = Time(world.now);
    let run = world.fleet.runs.iter_mut().find(|run| is_at_work(run)).unwrap();
    let status = run.status.get_or_insert_default();
    status.phase = Some(phase);
    status.finished_at = Some(now.clone());
    status.message = Some(format!("{reason}: nobody knows how far it came"));
    status.conditions = conditions::state(&[], &crds::playbook_run::end(phase, reason, reason), None, &now);
    run.clone()
}

/// Nothing goes wrong any more, and it comes to its end.
fn finish(world: &mut World, place: &str) {
    world.fleet.lingers = false;
    for _ in 0..45 {
        pass(world, 1);
        if world.is_ready() && world.upgrade().is_none() {
            return;
        }
    }
    panic!("{place}: {}\n{:?}", says(world), world.fleet.played);
}

/// All that it says of itself.
fn says(world: &World) -> String {
    let conditions = &world.object.status.as_ref().unwrap().conditions;
    let said = conditions.iter().map(|one| format!("{} {} {} {}", one.type_, one.status, one.reason, one.message));
    said.collect::<Vec<_>>().join("\n")
}

fn token(run: &PlaybookRun) -> i64 {
    run.status.as_ref().map_or(0, |status| status.token)
}

/// What a run does on a Host: its parts, or its steps where it brings none.
fn deeds(run: &PlaybookRun) -> Vec<String> {
    let parts: Vec<String> = run.spec.parts().map(|part| part.part.clone()).collect();
    match parts.is_empty() {
        true => run.spec.steps.iter().map(|step| step.name().to_owned()).collect(),
        false => parts,
    }
}

/// All that the run was to do is done by later ones, with higher tokens.
fn is_taken_up(cut: &PlaybookRun, world: &World, place: &str) {
    let later: Vec<&PlaybookRun> = world.fleet.runs.iter().filter(|run| token(run) > token(cut)).collect();
    for host in &cut.spec.hosts {
        for deed in deeds(cut) {
            let does = |run: &&&PlaybookRun| {
                run.spec.intent == cut.spec.intent && run.spec.hosts.contains(host) && deeds(run).contains(&deed)
            };
            assert!(later.iter().any(|run| does(&run)), "{place}: nobody does {deed} on {host}");
        }
    }
}

#[test]
fn whatever_ended_an_executor_a_planes_machines_are_taken_up_with_a_higher_token_rows_13_14_15_18_21_23_and_45() {
    let reasons = ["PodDeleted", "Evicted", "ExecutorKilled", "OutOfMemory", "ContactLost", "JobDeleted"];
    let mut reasons = reasons.into_iter().cycle();
    for change in CHANGES {
        for moment in change.at_work() {
            for reason in reasons.by_ref().take(2) {
                let (mut world, place) = (moment.clone(), format!("{change:?} after {reason}"));
                let cut = end(&mut world, RunPhase::Unknown, reason);
                finish(&mut world, &place);
                is_taken_up(&cut, &world, &place);
            }
        }
    }
}

#[test]
fn a_run_on_a_planes_machines_whose_time_is_over_is_followed_by_another_row_17() {
    for change in CHANGES {
        for moment in change.at_work() {
            let (mut world, place) = (moment.clone(), format!("{change:?}"));
            let cut = end(&mut world, RunPhase::DeadlineExceeded, "DeadlineExceeded");
            finish(&mut world, &place);
            is_taken_up(&cut, &world, &place);
        }
    }
}

/// It counts for no limit.
#[test]
fn a_run_on_a_planes_machines_whose_executor_does_not_come_up_says_so_and_goes_on_once_it_does_row_16() {
    for change in CHANGES {
        for moment in change.at_work() {
            let (mut world, place) = (moment.clone(), format!("{change:?}"));
            let mut told = false;
            for _ in 0..5 {
                end(&mut world, RunPhase::Failed, "NotStarted");
                for _ in 0..30 {
                    world.turn();
                    told |= says(&world).contains("NotStarted");
                    if working(&world).is_some() {
                        break;
                    }
                    pass(&mut world, 1);
                }
                assert!(working(&world).is_some(), "{place}: {}", says(&world));
            }
            assert!(told, "{place}: {}", says(&world));
            finish(&mut world, &place);
        }
    }
}

/// It is tried for as long as it takes, and the machines that work are brought on past it.
#[test]
fn a_machine_of_a_plane_that_does_not_accept_ssh_logins_is_named_until_it_does_rows_20_25_and_26() {
    let mut reasons = [Reason::Unreachable, Reason::HostKeyChanged, Reason::AuthenticationFailed].into_iter().cycle();
    for change in CHANGES {
        for moment in change.at_work() {
            let (mut world, reason) = (moment.clone(), reasons.next().unwrap());
            let host = working(&world).unwrap().spec.hosts[0].clone();
            let machine = world.fleet.on(&host).unwrap().name().to_owned();
            let place = format!("{change:?} with {reason:?} of {host}");
            let units = world.fleet.units.get(&host).cloned();
            world.fleet.denied.insert(host.clone(), reason);
            end_well(&mut world);
            world.fleet.lingers = false;
            pass(&mut world, 12);
            let said = says(&world);
            assert!(!world.is_ready() && (said.contains(&machine) || said.contains(&host)), "{place}: {said}");
            assert_eq!(world.fleet.units.get(&host), units.as_ref(), "{place}: nothing is done there");
            world.fleet.denied.clear();
            finish(&mut world, &place);
        }
    }
}

/// A disk that is full, a file system that is read-only, a clock that is wrong.
#[test]
fn a_machine_on_which_a_part_of_a_plane_fails_is_tried_three_times_and_then_waits_for_a_retry_row_24() {
    for change in CHANGES {
        for moment in change.at_work() {
            let mut world = moment.clone();
            let run = working(&world).unwrap().clone();
            let (host, part) = (run.spec.hosts[0].clone(), run.spec.parts().last().unwrap().part.clone());
            let machine = world.fleet.on(&host).unwrap().name().to_owned();
            let place = format!("{change:?}: {part} on {host}");
            let tried = |world: &World| {
                let is_same = |(brought, hosts): &&(String, Vec<String>)| {
                    brought.split('+').any(|one| one == part) && hosts.contains(&host)
                };
                world.fleet.played.iter().filter(is_same).count()
            };
            let before = tried(&world);
            world.fleet.fails.insert((host.clone(), part.clone()));
            end_well(&mut world);
            world.fleet.lingers = false;
            pass(&mut world, 20);
            let said = says(&world);
            assert_eq!(tried(&world) - before, 3, "{place}: {said}");
            for words in [
                "after 3 attempts",
                "it ended with 1",
                "kubectl -n fleet annotate --overwrite",
                "clusterwright.dev/retry=1",
            ] {
                assert!(said.contains(words), "{place} says nothing of {words}: {said}");
            }
            world.fleet.fails.clear();
            let retry = |annotations: &mut Option<BTreeMap<String, String>>| {
                annotations.get_or_insert_default().insert("clusterwright.dev/retry".into(), "1".into());
            };
            retry(&mut world.object.metadata.annotations);
            let named = world.fleet.machines.iter_mut().find(|one| one.name() == machine);
            retry(&mut named.unwrap().metadata.annotations);
            finish(&mut world, &place);
        }
    }
}

/// The run that works ends as it was asked for, and the next ones bring what is wanted since.
#[test]
fn a_spec_that_changes_while_a_run_works_on_a_planes_machines_is_met_after_it_row_28() {
    let schedulers = |world: &World| -> BTreeSet<String> {
        world.fleet.units.values().map(|units| units["scheduler"].digest.clone()).collect()
    };
    for change in CHANGES {
        let mut unedited = change.asked();
        finish(&mut unedited, "without an edit");
        let former = schedulers(&unedited);
        for moment in change.at_work() {
            let (mut world, place) = (moment.clone(), format!("{change:?}"));
            let asked = working(&world).unwrap().spec.clone();
            world.object.spec.scheduler.extra_args = serde_yaml::from_str("{v: '4'}").unwrap();
            world.object.metadata.generation = Some(2);
            world.settle();
            let run = working(&world).unwrap_or_else(|| panic!("{place}: it was stopped"));
            assert_eq!(run.spec, asked, "{place}");
            end_well(&mut world);
            finish(&mut world, &place);
            assert!(schedulers(&world).is_disjoint(&former), "{place}: {former:?}");
        }
    }
}

#[test]
fn a_plane_that_is_deleted_while_a_run_works_stops_it_and_cleans_every_machine_once_row_29() {
    for change in CHANGES {
        for moment in change.at_work() {
            let (mut world, place) = (moment.clone(), format!("{change:?}"));
            let touched = working(&world).unwrap().spec.hosts.clone();
            let cut = working(&world).unwrap().name().to_owned();
            world.object.metadata.deletion_timestamp = Some(Time(world.now));
            world.log.clear();
            world.fleet.lingers = false;
            for _ in 0..2000 {
                if world.object.metadata.finalizers.is_none() {
                    break;
                }
                if !world.turn() {
                    world.now += SignedDuration::from_secs(60);
                }
            }
            assert!(world.object.metadata.finalizers.is_none(), "{place}: {}", says(&world));
            assert!(world.fleet.machines.is_empty() && world.fleet.units.is_empty(), "{place}");
            assert!(world.fleet.hosts.iter().all(|host| host.spec.claim_ref.is_none()), "{place}");
            let resets = runs(&world).join(" ");
            assert!(runs(&world).iter().all(|run| run.starts_with("reset")), "{place}: {resets}");
            let phase = |run: &PlaybookRun| run.status.as_ref().and_then(|status| status.phase);
            let is_cut = |run: &&PlaybookRun| run.name() == cut;
            let ended =
                world.fleet.runs.iter().filter(is_cut).map(phase).all(|phase| phase == Some(RunPhase::Canceled));
            assert!(ended, "{place}: it was canceled");
            for host in touched {
                let named = |run: &&str| run.rsplit(' ').next().unwrap().split(',').any(|one| one == host);
                assert_eq!(runs(&world).into_iter().filter(named).count(), 1, "{place}: {host} of {resets}");
            }
        }
    }
}

#[test]
fn a_plane_that_loses_its_finalizer_its_sets_and_the_run_that_works_is_made_whole_row_30() {
    for change in CHANGES {
        for moment in change.at_work() {
            let (mut world, place) = (moment.clone(), format!("{change:?}"));
            let cut = working(&world).unwrap().clone();
            world.fleet.runs.retain(|run| run.name() != cut.name());
            world.fleet.sets.clear();
            world.object.metadata.finalizers = None;
            let machines = world.fleet.machines.len();
            finish(&mut world, &place);
            is_taken_up(&cut, &world, &place);
            assert!(world.object.metadata.finalizers.is_some() && !world.fleet.sets.is_empty(), "{place}");
            assert_eq!(world.fleet.machines.len(), machines, "{place}: none is made or deleted");
        }
    }
}

/// A pause is no attempt.
#[test]
fn a_pause_lets_the_step_on_a_planes_machines_end_and_holds_all_that_follows_row_32() {
    for change in CHANGES {
        for moment in change.at_work() {
            let (mut world, place) = (moment.clone(), format!("{change:?}"));
            for _ in 0..4 {
                world.object.spec.paused = true;
                world.settle();
                let run = working(&world).unwrap();
                assert!(run.spec.paused && !run.spec.cancel, "{place}: it is asked to hold");
                end(&mut world, RunPhase::Canceled, "Paused");
                let begun = runs(&world).len();
                pass(&mut world, 4);
                assert!(working(&world).is_none() && runs(&world).len() == begun, "{place}: {}", says(&world));
                world.object.spec.paused = false;
                for _ in 0..30 {
                    if working(&world).is_some() {
                        break;
                    }
                    pass(&mut world, 1);
                }
                assert!(working(&world).is_some(), "{place}: {}", says(&world));
            }
            finish(&mut world, &place);
        }
    }
}

/// Without a majority, and with a member that has an alarm, no part is brought and no machine joins or leaves etcd.
#[test]
fn nothing_is_brought_to_a_plane_whose_etcd_has_no_majority_or_an_alarm_until_it_is_well_rows_37_and_38() {
    for sick in [vec!["h1", "h2"], vec!["h3"]] {
        let upgrade = |world: &mut World| world.object.spec.version = "1.18.3".parse().unwrap();
        let grow = |world: &mut World| world.object.spec.binary.as_mut().unwrap().control_plane.replicas = 5;
        for (name, ask) in [("upgrade", &upgrade as &dyn Fn(&mut World)), ("growth", &grow)] {
            let (mut world, place) = (settled(BINARY, 5), format!("{name} with {sick:?}"));
            world.fleet.sick_members = sick.iter().map(|host| (*host).to_owned()).collect();
            pass(&mut world, 2);
            ask(&mut world);
            pass(&mut world, 15);
            assert!(runs(&world).is_empty(), "{place}: {:?}", runs(&world));
            assert!(!world.is_ready(), "{place}");
            assert!(says(&world).contains("etcd"), "{place}: {}", says(&world));
            world.fleet.sick_members.clear();
            finish(&mut world, &place);
            assert!(!runs(&world).is_empty(), "{place}");
        }
    }
}

/// What a probe finds counts, whatever a run has said.
#[test]
fn a_part_that_a_run_only_said_it_has_brought_is_found_missing_and_brought_row_44() {
    for moment in Change::Upgrade.at_work() {
        let mut world = moment.clone();
        let run = working(&world).unwrap().clone();
        let (host, part) = (run.spec.hosts[0].clone(), run.spec.parts().last().unwrap().part.clone());
        let digest = run.spec.parts().last().unwrap().digests[&host].0.clone();
        world.fleet.lied_about.insert(host.clone());
        end_well(&mut world);
        world.fleet.lied_about.clear();
        assert_ne!(world.fleet.units[&host][&part].digest, digest);
        world.fleet.lingers = false;
        pass(&mut world, 30);
        assert_eq!(world.fleet.units[&host][&part].digest, digest, "{part} on {host}: {}", says(&world));
        assert!(world.is_ready(), "{}", says(&world));
        let again = parts(&world).into_iter().filter(|(brought, hosts)| *brought == part && *hosts == host).count();
        assert_eq!(again, 2, "{part} on {host}");
    }
}

/// No service answers, nor any member of etcd, since none has a certificate that is believed.
#[test]
fn certificates_of_a_planes_machines_that_ended_a_week_ago_are_renewed_and_it_works_row_48() {
    let mut world = settled(BINARY, 3);
    // A balancer has no certificate.
    let units = world.fleet.units.values_mut().flatten();
    units.filter(|(part, _)| *part != "balancer").for_each(|(_, unit)| unit.healthy = false);
    world.fleet.sick_members = ["h1", "h2", "h3"].map(str::to_owned).into();
    pass(&mut world, 2);
    world.now += SignedDuration::from_hours(24 * 372);
    world.renewal_due = true;
    finish(&mut world, "a plane whose certificates have ended");
    assert!(world.fleet.sick_members.is_empty(), "the members of etcd have new ones, too");
    let brought = parts(&world);
    assert!(brought.contains(&("etcd", "h1,h2,h3".to_owned())), "none gets well before the others: {brought:?}");
    for host in ["h1", "h2", "h3"] {
        for part in ["apiserver", "etcd", "webhook", "controller-manager"] {
            let is_brought = |(parts, hosts): &(&str, String)| {
                parts.split('+').any(|one| one == part) && hosts.split(',').any(|one| one == host)
            };
            assert!(brought.iter().any(is_brought), "{part} on {host}: {brought:?}");
        }
    }
}

#[test]
fn every_moment_of_a_change_has_a_run_of_its_own() {
    for change in CHANGES {
        let names: Vec<String> =
            change.at_work().iter().map(|moment| working(moment).unwrap().name().to_owned()).collect();
        let mut once = names.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), names.len(), "{change:?}");
    }
    let install: Vec<Intent> =
        Change::Install.at_work().iter().map(|moment| working(moment).unwrap().spec.intent).collect();
    assert_eq!(install[0], Intent::Install);
    assert!(install[1..].iter().all(|intent| *intent == Intent::Configure), "{install:?}");
}
