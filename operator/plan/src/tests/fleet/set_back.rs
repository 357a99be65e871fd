//! The store is set back to an older state in the middle of it all: no machine on which something was done since is
//! touched before a person has approved, and none ever that serves another cluster.

use crds::names::condition;
use crds::{Conditions, Host, ObjectExt};
use proptest::prelude::*;
use serde_json::json;

use super::events::{self, Event};
use super::{World, apply_cluster};

fn host<'a>(world: &'a World, name: &str) -> &'a Host {
    world.hosts.iter().find(|host| host.name() == name).unwrap()
}

fn host_of(world: &World, cluster: &str, index: usize) -> String {
    let machine = world.machines_of(cluster)[index];
    machine.spec.host_ref.as_ref().unwrap().name.clone()
}

fn is_older(world: &World, cluster: &str) -> Option<String> {
    let deployment = &world.find_cluster(cluster).unwrap().deployment;
    deployment.condition(condition::STORE_IS_OLDER).map(|stated| format!("{} {}", stated.reason, stated.message))
}

/// Two clusters of a control plane and a worker each, and a spare Host.
fn fleet() -> World {
    let mut world = World::fleet(6);
    apply_cluster(&mut world, "a", 1, 1);
    apply_cluster(&mut world, "b", 1, 1);
    world.settle();
    world
}

#[test]
fn a_look_that_finds_nothing_new_holds_nobody_up_for_long_and_asks_nobody() {
    let mut world = fleet();
    let then = world.clone();
    world.set_back(&then);
    world.run_for(1);
    assert!(is_older(&world, "a").unwrap().starts_with("LookingAtMachines"), "{:?}", is_older(&world, "a"));
    world.settle();
    assert_eq!((is_older(&world, "a"), is_older(&world, "b")), (None, None));
    world.check_end();
}

/// Clusters of which a gave its worker away, and b took every Host that was left; how all was before, and the Host that
/// went from one to the other.
fn moved() -> (World, World, String) {
    let mut world = fleet();
    let then = world.clone();
    let moves = host_of(&world, "a", 1);
    world.scale_workers("a", 0);
    world.settle();
    world.scale_workers("b", 5);
    world.settle();
    assert_eq!(world.kubelet_of(&moves), Some("b"));
    (world, then, moves)
}

#[test]
fn a_host_that_moved_to_another_cluster_is_left_alone_and_let_go_when_that_is_approved() {
    let (mut world, then, moves) = moved();
    let nodes = world.find_cluster("b").unwrap().nodes.clone();

    world.set_back(&then);
    world.run_for(60);
    let (of_a, of_b) = (is_older(&world, "a").unwrap(), is_older(&world, "b").unwrap());
    assert!(
        of_a.starts_with("MachineIsNewer") && of_a.contains(&format!("{moves}: its machine was claimed since")),
        "{of_a}"
    );
    assert!(of_a.contains("of cluster fleet/b, run fleet/b-"), "{of_a}");
    assert!(of_a.contains("clusterwright.dev/approve=store."), "{of_a}");
    assert!(of_b.starts_with("MachineIsNewer"), "{of_b}");
    assert!(host(&world, &moves).condition(condition::STORE_IS_OLDER).is_some());
    let free = world.hosts.iter().filter(|host| crate::claims::why_not(host).is_none()).count();
    assert_eq!(free, 0, "every Host that is not claimed here serves b");
    assert_eq!(world.find_cluster("b").unwrap().nodes, nodes);

    world.approve_next("a");
    world.settle();
    assert_eq!(is_older(&world, "a"), None);
    let left = host(&world, &moves);
    assert_eq!((left.spec.claim_ref.as_ref(), left.spec.claim_epoch), (None, 2));
    let reason = left.spec.quarantine.as_ref().map(|there| there.reason);
    assert_eq!(reason, Some(crds::host::QuarantineReason::StoreIsOlder));
    assert!(is_older(&world, "b").is_some(), "each cluster is approved of by itself");
    world.approve_next("b");
    world.settle();
    assert_eq!(is_older(&world, "b"), None);
    assert_eq!(world.kubelet_of(&moves), Some("b"), "nothing was reset");
    assert_eq!(world.find_cluster("b").unwrap().nodes, nodes);
}

#[test]
fn later_runs_of_the_present_claims_raise_the_token_once_they_are_approved() {
    let mut world = fleet();
    let then = world.clone();
    world.sick_nodes.insert(host_of(&world, "a", 1));
    world.settle();
    let given = world.find_cluster("a").unwrap().status().unwrap().last_token.unwrap();
    world.set_back(&then);
    world.run_for(60);
    let told = is_older(&world, "a").unwrap();
    assert!(told.contains("MachineIsNewer"), "{told}");
    world.approve_next("a");
    world.settle();
    assert_eq!(is_older(&world, "a"), None);
    let raised = world.find_cluster("a").unwrap().status().unwrap().last_token.unwrap();
    assert!(raised >= given, "{raised} {given}");
    assert_eq!(is_older(&world, "b"), None, "nothing was done to its machines since");
}

#[test]
fn one_contradiction_more_is_asked_for_anew() {
    let mut world = fleet();
    let then = world.clone();
    world.scale_workers("a", 0);
    world.settle();
    world.set_back(&then);
    world.run_for(60);
    let value = |text: &str| text.rsplit_once("approve=").unwrap().1.to_owned();
    let first = value(&is_older(&world, "a").unwrap());
    let plane = host_of(&world, "a", 0);
    let ((epoch, token), run) = world.guards[&plane].clone();
    world.guards.insert(plane.clone(), ((epoch, token + 9), run));
    // It is looked at anew.
    world.resumed_at = Some(world.time().0);
    world.run_for(60);
    assert_ne!(value(&is_older(&world, "a").unwrap()), first);
}

#[test]
fn a_cluster_that_was_deleted_since_is_not_built_anew_while_none_of_its_machines_answers() {
    let mut world = fleet();
    world.change_spec("a", |spec| spec.recovery.strategy = crds::cluster_deployment::RecoveryStrategy::Rebuild);
    world.settle();
    let then = world.clone();
    let machines = [host_of(&world, "a", 0), host_of(&world, "a", 1)];
    world.select("a").deployment.metadata.deletion_timestamp = Some(world.time());
    world.settle();
    machines.iter().for_each(|host| world.kill(host));
    world.set_back(&then);
    world.run_for(200);
    assert!(is_older(&world, "a").unwrap().starts_with("NoMachineAnswers"), "{:?}", is_older(&world, "a"));
    let rebuilding = world.find_cluster("a").unwrap().deployment.condition(condition::REBUILDING).is_some();
    assert!(!rebuilding);
}

/// SSH does not reach the machine while the store is looked at, and the cluster goes on without it until its tokens are
/// past the one that the machine knows.
fn goes_on_without(world: &mut World, silent: &[&str], then: &World) {
    world.silent.extend(silent.iter().map(|host| (*host).to_owned()));
    world.set_back(then);
    pass_tokens_of(world, silent);
    assert_eq!(is_older(world, "a"), None);
}

fn last_token(world: &World) -> i64 {
    world.find_cluster("a").unwrap().status().unwrap().last_token.unwrap()
}

/// Runs on the control plane, until the last token is beyond what these machines know.
fn pass_tokens_of(world: &mut World, hosts: &[&str]) {
    let plane = host_of(world, "a", 0);
    let highest = hosts.iter().map(|host| world.guards[*host].0.1).max().unwrap();
    for number in 0.. {
        world.run_for(20);
        if last_token(world) > highest {
            return;
        }
        work(world, &format!("passes-{highest}-{number}"), &plane);
    }
}

/// An administrator's run on one machine of a.
fn work(world: &mut World, name: &str, host: &str) {
    world.select("a");
    world.custom_run(name, &[host]);
    world.run_for(20);
}

fn outcome(world: &World, name: &str) -> String {
    let status = world.runs.iter().find(|run| run.name() == name).unwrap().status.clone().unwrap();
    let outcome = status.outcome.map(|outcome| outcome.reason).unwrap_or_default();
    format!("{:?} {outcome}", status.phase.unwrap())
}

/// Cluster a with two workers, on which more was done than the store knows of then: a little on the first, and more on
/// the second.
fn worked_on() -> (World, World, [String; 2]) {
    let mut world = World::fleet(5);
    apply_cluster(&mut world, "a", 1, 2);
    world.settle();
    let then = world.clone();
    let workers = [host_of(&world, "a", 1), host_of(&world, "a", 2)];
    work(&mut world, "once", &workers[0]);
    (0..3).for_each(|number| work(&mut world, &format!("more-{number}"), &workers[1]));
    let known = then.find_cluster("a").unwrap().status().unwrap().last_token.unwrap();
    let tokens = workers.each_ref().map(|host| world.guards[host].0.1);
    assert!(known < tokens[0] && tokens[0] < tokens[1], "{known} {tokens:?}");
    (world, then, workers)
}

#[test]
fn a_machine_that_was_silent_refuses_what_comes_after_a_run_that_nobody_knows_however_far_the_tokens_have_grown() {
    let (mut world, then, [_, silent]) = worked_on();
    let knows = world.guards[&silent].clone();
    let worker = host_of(&world, "a", 1);
    goes_on_without_approved(&mut world, &silent, &then);
    world.silent.remove(&silent);
    work(&mut world, "too-late", &silent);
    assert_eq!(outcome(&world, "too-late"), "Failed Fenced");
    assert_eq!(world.guards[&silent], knows, "nothing was done to it");
    let told = is_older(&world, "a").unwrap();
    let expected = format!("{silent}: a run was there that is not known here (token {}", knows.0.1);
    assert!(told.starts_with("MachineIsNewer") && told.contains(&expected), "{told}");
    // Nothing is done to the others either.
    work(&mut world, "waits", &worker);
    assert_eq!(world.runs.iter().find(|run| run.name() == "waits").unwrap().status.as_ref().map(|it| it.token), None);
    world.approve_next("a");
    world.settle();
    assert_eq!(is_older(&world, "a"), None);
    work(&mut world, "approved", &silent);
    assert!(outcome(&world, "approved").starts_with("Succeeded"), "{}", outcome(&world, "approved"));
    assert!(world.guards[&silent].0 > knows.0);
    world.settle();
    assert_eq!(is_older(&world, "a"), None);
}

/// The same, where what the others know is approved first.
fn goes_on_without_approved(world: &mut World, silent: &str, then: &World) {
    world.silent.insert(silent.to_owned());
    world.set_back(then);
    world.run_for(60);
    assert!(is_older(world, "a").unwrap().starts_with("MachineIsNewer"));
    world.approve_next("a");
    pass_tokens_of(world, &[silent]);
    assert_eq!(is_older(world, "a"), None);
}

#[test]
fn a_probe_of_a_machine_that_was_silent_finds_what_the_tokens_have_grown_past() {
    let (mut world, then, workers) = worked_on();
    goes_on_without(&mut world, &workers.each_ref().map(String::as_str), &then);
    world.silent.remove(&workers[0]);
    world.run_for(400);
    let told = is_older(&world, "a").unwrap();
    assert!(told.starts_with("MachineIsNewer") && told.contains(&workers[0]), "{told}");
    assert!(!told.contains(&workers[1]), "{told}");
}

#[test]
fn what_is_approved_of_one_machine_says_nothing_of_another() {
    let (mut world, then, [first, second]) = worked_on();
    goes_on_without(&mut world, &[&first, &second], &then);
    // The second knows a higher token than the first.
    world.silent.remove(&second);
    world.run_for(400);
    world.approve_next("a");
    world.run_for(40);
    assert_eq!(is_older(&world, "a"), None);
    world.silent.remove(&first);
    work(&mut world, "too-late", &first);
    assert_eq!(outcome(&world, "too-late"), "Failed Fenced");
    let told = is_older(&world, "a").unwrap();
    assert!(told.contains(&first) && !told.contains(&second), "{told}");
}

#[test]
fn a_machine_that_was_silent_in_two_looks_is_held_to_what_was_known_at_the_first() {
    let (mut world, then, [first, second]) = worked_on();
    goes_on_without(&mut world, &[&first, &second], &then);
    // Nothing is wrong this time.
    world.resumed_at = Some(world.time().0);
    world.run_for(60);
    assert_eq!(is_older(&world, "a"), None);
    let kept = world.find_cluster("a").unwrap().status().unwrap().comparisons.clone();
    assert_eq!(kept.len(), 2, "{kept:?}");
    world.silent.remove(&second);
    work(&mut world, "too-late", &second);
    assert_eq!(outcome(&world, "too-late"), "Failed Fenced");
    // Once all have answered, and are approved of, nothing of before is unknown.
    world.silent.remove(&first);
    world.run_for(400);
    world.approve_next("a");
    world.settle();
    assert_eq!(is_older(&world, "a"), None);
    assert_eq!(world.find_cluster("a").unwrap().status().unwrap().comparisons.len(), 1);
}

#[test]
fn an_operator_that_was_away_with_nothing_wrong_has_no_run_refused() {
    let (mut world, _, [first, second]) = worked_on();
    for (round, silent) in [[true, false], [true, true], [false, true], [false, false]].iter().enumerate() {
        let of = |wanted: bool| {
            let hosts = [&first, &second].into_iter().zip(silent);
            hosts.filter(move |(_, silent)| **silent == wanted).map(|(host, _)| host.clone())
        };
        world.silent = of(true).collect();
        world.resumed_at = Some(world.time().0);
        world.run_for(60);
        pass_tokens_of(&mut world, &[&first, &second]);
        for host in of(false) {
            let name = format!("round-{round}-{host}");
            work(&mut world, &name, &host);
            assert!(outcome(&world, &name).starts_with("Succeeded"), "{}", outcome(&world, &name));
        }
        assert_eq!(is_older(&world, "a"), None);
    }
}

#[test]
fn a_lock_that_is_found_again_is_compared_by_what_the_guards_have_told() {
    let (mut world, _, [worker, _]) = worked_on();
    world.resumed_at = Some(world.time().0);
    world.run_for(60);
    work(&mut world, "before", &worker);
    let given = last_token(&world);
    world.select("a");
    world.lose_status();
    world.settle();
    let told = world.find_cluster("a").unwrap().status().unwrap().comparisons.clone();
    let told: Vec<_> = told.into_iter().map(|told| (Some(told.since.0), told.last_token)).collect();
    assert!(told.len() == 1 && told[0].0 == world.resumed_at && told[0].1 >= given, "{told:?} {given}");
    work(&mut world, "after", &worker);
    assert!(outcome(&world, "after").starts_with("Succeeded"), "{}", outcome(&world, "after"));
}

#[test]
fn no_run_but_a_probe_begins_between_the_gap_and_the_comparison() {
    let mut world = fleet();
    world.resumed_at = Some(world.time().0);
    let (before, worker) = (last_token(&world), host_of(&world, "a", 1));
    world.select("a");
    world.custom_run("waits", &[&worker]);
    for _ in 0..60 {
        world.run_for(1);
        let status = world.find_cluster("a").unwrap().status().unwrap().clone();
        if status.last_token != Some(before) {
            assert_eq!(status.compared_since.map(|since| since.0), world.resumed_at);
            let told: Vec<i64> = status.comparisons.iter().map(|comparison| comparison.last_token).collect();
            assert_eq!(told, [before], "what was given out with it is known");
            return;
        }
    }
    panic!("the lock did not open\n{}", world.report());
}

#[test]
fn no_backup_and_no_restore_begins_while_the_store_is_older_row_34() {
    use crds::step::{Intent, Step};
    let (mut world, then, [worker, _]) = worked_on();
    world.set_back(&then);
    let asked =
        [(Intent::Backup, Step::BackupEtcd), (Intent::Stage, Step::StageBackup), (Intent::Restore, Step::RestoreEtcd)];
    for (intent, step) in asked {
        world.select("a");
        world.custom_run(&format!("{intent:?}").to_lowercase(), &[&worker]);
        let spec = &mut world.runs.last_mut().unwrap().spec;
        (spec.intent, spec.steps) = (intent, vec![step]);
    }
    world.run_for(100);
    let begun = |world: &World| {
        let asked = world.runs.iter().filter(|run| ["backup", "stage", "restore"].contains(&run.name()));
        asked.filter(|run| run.status.as_ref().is_some_and(|status| status.token > 0)).count()
    };
    assert!(is_older(&world, "a").unwrap().starts_with("MachineIsNewer"));
    assert_eq!(begun(&world), 0);
    world.approve_next("a");
    world.settle();
    assert_eq!((is_older(&world, "a"), begun(&world)), (None, 3));
}

/// The store is as it was when the change was asked for; since then some of its runs have been on machines.
#[test]
fn no_upgrade_and_no_setting_goes_on_while_the_store_is_older_and_both_do_once_that_is_approved_row_34() {
    use crds::step::Intent;
    let begun = |world: &World| {
        let of_change = [Intent::Prefetch, Intent::Upgrade, Intent::Configure];
        let runs = world.runs.iter().filter(|run| of_change.contains(&run.spec.intent));
        runs.filter(|run| run.status.as_ref().is_some_and(|status| status.token > 0)).count()
    };
    let mirror = json!([{ "prefix": "registry.k8s.io", "endpoints": ["http://mirror:5000"] }]);
    for (upgrades, runs) in [(true, 1), (true, 2), (true, 3), (false, 1), (false, 2)] {
        let mut world = fleet();
        world.change_spec("a", |spec| match upgrades {
            true => spec.kubernetes_version = "1.36.0".parse().unwrap(),
            false => spec.container_runtime.registry_mirrors = serde_json::from_value(mirror.clone()).unwrap(),
        });
        let then = world.clone();
        for _ in 0..300 {
            if begun(&world) == runs && !world.works() {
                break;
            }
            world.run_for(1);
        }
        assert_eq!(begun(&world), runs, "{upgrades}");
        world.set_back(&then);
        world.run_for(100);
        let place = format!("{upgrades} after {runs}: {:?}", is_older(&world, "a"));
        assert!(is_older(&world, "a").is_some_and(|told| told.starts_with("MachineIsNewer")), "{place}");
        assert_eq!(begun(&world), 0, "{place}");
        world.approve_next("a");
        world.settle();
        assert_eq!(is_older(&world, "a"), None, "{place}");
        let deployment = &world.find_cluster("a").unwrap().deployment;
        assert!(
            deployment.is_true(condition::UP_TO_DATE),
            "{place}: {:?}",
            deployment.condition(condition::UP_TO_DATE)
        );
        assert!(begun(&world) >= 2, "{place}");
        world.check_end();
    }
}

/// The same where the operator began anew less than two minutes after the snapshot: nothing tells it of that.
fn set_back_unnoticed(world: &mut World, then: &World) {
    let known = world.resumed_at;
    world.set_back(then);
    world.resumed_at = known;
}

#[test]
fn a_store_that_is_set_back_unnoticed_is_found_by_the_first_machine_that_knows_more_and_nothing_is_done_row_34() {
    use crds::step::{Intent, Step};
    // None of them names the Machine that it is for.
    let asked = [
        (Intent::Custom, Step::BootstrapOs),
        (Intent::Backup, Step::BackupEtcd),
        (Intent::Stage, Step::StageBackup),
        (Intent::Restore, Step::RestoreEtcd),
    ];
    let (worked_on, then, [_, knows_more]) = worked_on();
    let ask = |world: &mut World, name: &str, intent: Intent, step: Step| {
        world.select("a");
        world.custom_run(name, &[&knows_more]);
        let spec = &mut world.runs.last_mut().unwrap().spec;
        (spec.intent, spec.steps) = (intent, vec![step]);
        world.run_for(20);
    };
    for (intent, step) in asked {
        let mut world = worked_on.clone();
        set_back_unnoticed(&mut world, &then);
        world.run_for(5);
        assert_eq!(is_older(&world, "a"), None, "nobody looks for it");
        ask(&mut world, "first", intent, step);
        assert_eq!(outcome(&world, "first"), "Failed Fenced");
        assert_eq!(world.guards[&knows_more], worked_on.guards[&knows_more], "nothing was done to it");
        let told = is_older(&world, "a").unwrap_or_default();
        assert!(told.starts_with("MachineIsNewer") && told.contains(&knows_more), "{intent:?}: {told}");
        // Another attempt would count the tokens up, until one of them is let in.
        ask(&mut world, "second", intent, step);
        let second = world.runs.iter().find(|run| run.name() == "second").unwrap();
        assert!(second.status.as_ref().is_none_or(|status| status.token == 0), "{intent:?}");
        world.approve_next("a");
        world.settle();
        assert_eq!(is_older(&world, "a"), None);
        assert!(outcome(&world, "second").starts_with("Succeeded"), "{}", outcome(&world, "second"));
    }
}

#[test]
fn a_host_that_moved_to_another_cluster_is_left_alone_though_nobody_notices_that_the_store_is_older_row_34() {
    let (mut world, then, moves) = moved();
    let nodes = world.find_cluster("b").unwrap().nodes.clone();
    set_back_unnoticed(&mut world, &then);
    // What each wants now is met on machines that serve the other.
    world.scale_workers("a", 0);
    world.scale_workers("b", 5);
    world.run_for(120);
    assert_eq!(world.kubelet_of(&moves), Some("b"));
    assert_eq!(world.find_cluster("b").unwrap().nodes, nodes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn an_older_store_touches_nothing_unasked(
        before in prop::collection::vec((prop::bool::ANY, events::of_workers()), 0..6),
        since in prop::collection::vec((prop::bool::ANY, events::of_workers()), 1..8),
        after in prop::collection::vec((prop::bool::ANY, events::of_workers()), 0..6),
    ) {
        let mut world = World::fleet(7);
        apply_cluster(&mut world, "a", 1, 2);
        apply_cluster(&mut world, "b", 1, 2);
        world.settle();
        let play = |world: &mut World, story: &[(bool, Event)]| {
            for (first, event) in story {
                world.select(if *first { "a" } else { "b" });
                event.happens(world);
            }
        };
        play(&mut world, &before);
        let then = world.clone();
        play(&mut world, &since);
        world.set_back(&then);
        world.run_for(60);
        world.approve_next("a");
        world.run_for(60);
        // Machines that were silent come back, and are worked on, in any order.
        play(&mut world, &after);
        world.run_for(120);
    }
}

/// What befalls workers, but for upgrades.
fn of_one_version() -> impl Strategy<Value = Event> {
    events::of_workers().prop_filter("an upgrade", |event| !matches!(event, Event::Upgrade(_)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 20, ..ProptestConfig::default() })]

    /// At a random moment after the approval the store is set back once more, to a moment before or after it; machines
    /// die and come back meanwhile. `check_set_back` looks at every run that begins. Versions stay: who approves of a
    /// store that knows nothing of an upgrade has to set the version first.
    #[test]
    fn a_store_that_is_set_back_again_after_an_approval_touches_nothing_unasked_and_settles(
        since in prop::collection::vec(of_one_version(), 1..6),
        meanwhile in prop::collection::vec(of_one_version(), 0..4),
        (remembered, moment) in (0usize..40, 0usize..60),
        to_before in prop::bool::ANY,
    ) {
        let mut world = World::fleet(6);
        apply_cluster(&mut world, "a", 1, 2);
        world.settle();
        let mut then = world.clone();
        since.iter().for_each(|event| event.happens(&mut world));
        world.set_back(&then);
        world.run_for(60);
        world.approve_next("a");
        world.run_for(remembered);
        if !to_before {
            then = world.clone();
        }
        meanwhile.iter().for_each(|event| event.happens(&mut world));
        world.run_for(moment);
        world.set_back(&then);
        world.run_for(120);
        world.heal_all();
        world.settle();
        prop_assert_eq!(is_older(&world, "a"), None);
        // Machines that the store does not know serve on, and their Hosts are nobody's: there may be too few.
        let ready = world.find_cluster("a").unwrap().deployment.condition(condition::READY).unwrap();
        let lacks_hosts = ready.reason.contains("Host");
        prop_assert!(ready.status == "True" || lacks_hosts, "{}: {}", ready.reason, ready.message);
    }
}
