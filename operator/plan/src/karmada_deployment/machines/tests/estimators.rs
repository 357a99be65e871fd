//! Estimators of members on the machines of a plane: one part, of which a run touches those that have changed.

use std::collections::{BTreeMap, BTreeSet};

use crds::step::{Intent, Step};
use crds::{ObjectExt, PlaybookRun};
use serde_json::Value;

use super::super::super::contents::Files;
use super::super::super::given_estimator::{GivenEstimator, ports};
use super::super::super::members::EstimatorsSeen;
use super::super::super::tests::world::World;
use super::super::{estimators_seen, secret_files};
use super::stories::{BINARY, pass, runs, settled};

/// What the estimator of a member is given, with this token.
fn give(world: &mut World, member: &str, token: &str) {
    let port = ports([member], &world.given)[member];
    let files = [("kubeconfig", "k"), ("member-token", token)].map(|(name, text)| (name.to_owned(), text.into()));
    world.given.insert(member.to_owned(), GivenEstimator { port, files: Files(files.into()) });
}

fn plane_with(members: &[&str]) -> World {
    let mut world = settled(&format!("{BINARY}, estimator: {{}}"), 4);
    assert_eq!(digests(&world), BTreeSet::new(), "there is none, and nothing is brought");
    members.iter().for_each(|member| give(&mut world, member, "t"));
    world.settle();
    world
}

/// The digests that machines have of the part.
fn digests(world: &World) -> BTreeSet<String> {
    world.fleet.units.values().filter_map(|units| Some(units.get("estimators")?.digest.clone())).collect()
}

/// What the last run that changed something had of them.
fn services(world: &World) -> Vec<Value> {
    let is_change = |run: &&PlaybookRun| run.spec.intent == Intent::Configure;
    let last = world.fleet.runs.iter().rfind(is_change).unwrap();
    last.spec.vars["karmada_estimators"]["services"].as_array().unwrap().clone()
}

fn seen(world: &World) -> EstimatorsSeen {
    world.observe(|observed| estimators_seen(observed).unwrap())
}

#[test]
fn fifty_members_come_to_all_machines_in_one_run_and_another_one_in_another() {
    let names: Vec<String> = (0..50).map(|number| format!("m{number}")).collect();
    let mut world = plane_with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(runs(&world), ["karmada-programs+karmada-service estimators on h1,h2,h3"]);
    assert_eq!((services(&world).len(), digests(&world).len()), (50, 1), "it is the same on all machines");
    let before: BTreeMap<String, Value> =
        services(&world).into_iter().map(|one| (one["name"].to_string(), one["digest"].clone())).collect();
    world.log.clear();
    give(&mut world, "another", "t");
    world.settle();
    assert_eq!(runs(&world).len(), 1);
    let after = services(&world);
    let changed = after.iter().filter(|one| before.get(&one["name"].to_string()) != Some(&one["digest"]));
    assert_eq!(changed.map(|one| one["name"].clone()).collect::<Vec<_>>(), ["estimator-another"], "no other changes");
    world.log.clear();
    world.given.remove("m7");
    world.settle();
    assert_eq!((runs(&world).len(), services(&world).len()), (1, 50));
    world.log.clear();
    world.settle();
    assert!(world.log.is_empty() && world.is_ready(), "{:#?}", world.log);
}

#[test]
fn an_estimator_listens_at_ports_of_its_own_and_reads_files_of_its_own() {
    let world = plane_with(&["m1", "m2"]);
    let given = &world.given["m1"];
    let service = services(&world).into_iter().find(|one| one["name"] == "estimator-m1").unwrap();
    let line = service["exec_start"].as_str().unwrap();
    let health = given.port + 1_000;
    for flag in [
        "/opt/clusterwright/karmada/1.18.2/bin/karmada-scheduler-estimator ".to_owned(),
        "\"--cluster-name=m1\"".to_owned(),
        format!("\"--server-port={}\"", given.port),
        format!("\"--health-probe-bind-address=127.0.0.1:{health}\""),
        format!("\"--metrics-bind-address=127.0.0.1:{health}\""),
        "\"--kubeconfig=/etc/karmada/pki/estimator-m1/kubeconfig\"".to_owned(),
        "\"--grpc-auth-cert-file=/etc/karmada/pki/estimator-m1/estimator.crt\"".to_owned(),
        "\"--grpc-client-ca-file=/etc/karmada/pki/estimator-m1/ca.crt\"".to_owned(),
    ] {
        assert_eq!(line.matches(&flag).count(), 1, "{flag}: {line}");
    }
    assert!(!line.contains("0.0.0.0") && !line.contains("10352"), "{line}");
    assert_eq!(service["files"]["member-token"], "karmada-estimator.m1.member-token");
    // What its run is given are those very files.
    let run = world.fleet.runs.iter().rfind(|run| run.spec.intent == Intent::Configure).unwrap();
    let files = secret_files(&world.object, &world.material(), &world.facts().seats, run).unwrap();
    assert_eq!(files["karmada-estimator.m1.member-token"], b"t");
    assert_eq!(files.len(), 4, "{:?}", files.keys());
}

#[test]
fn a_machine_that_joins_gets_those_of_the_day_and_one_without_power_is_named_and_holds_nobody_up() {
    let mut world = plane_with(&["m1", "m2"]);
    let name = world.fleet.on("h2").unwrap().name().to_owned();
    world.fleet.delete(&name);
    world.log.clear();
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    let of_newcomer: Vec<&str> = runs(&world).into_iter().filter(|run| run.ends_with("on h4")).collect();
    assert_eq!(of_newcomer.len(), 2, "it joins, and gets all parts in one run: {of_newcomer:?}");
    assert!(of_newcomer[1].contains("+scheduler+controller-manager+estimators on h4"), "{of_newcomer:?}");
    world.fleet.dead.insert("h3".to_owned());
    give(&mut world, "m3", "t");
    world.log.clear();
    pass(&mut world, 15);
    let with_all = |world: &World| {
        let newest = world.fleet.units["h1"]["estimators"].digest.clone();
        world
            .fleet
            .units
            .iter()
            .filter(|(_, units)| units.get("estimators").is_some_and(|one| one.digest == newest))
            .count()
    };
    assert_eq!(with_all(&world), 2);
    let (_, _, message) = world.condition("ComponentsReady");
    assert!(message.contains(world.fleet.on("h3").unwrap().name()), "{message}");
    world.fleet.dead.clear();
    pass(&mut world, 15);
    assert_eq!(with_all(&world), 3);
}

#[test]
fn one_that_does_not_work_is_named_and_keeps_neither_the_plane_nor_other_parts_from_anything() {
    let mut world = plane_with(&["m1", "m2"]);
    assert!(!seen(&world).is_probed, "a run says nothing of how they work");
    world.fleet.sick.insert("m2".to_owned());
    pass(&mut world, 3);
    let found = seen(&world);
    assert!(found.is_settled && found.is_probed);
    assert_eq!(found.sick.keys().collect::<Vec<_>>(), ["m2"]);
    assert!(found.sick["m2"].contains("h1") && found.sick["m2"].contains("timed out"), "{:?}", found.sick);
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    let row = |world: &World| {
        let rows = world.object.status.clone().unwrap().components;
        let row = rows.into_iter().find(|row| row.name == "karmada-scheduler-estimator").unwrap();
        (row.version, row.replicas, row.ready_replicas)
    };
    assert_eq!(row(&world), (Some("1.18.2".to_owned()), 6, 3));
    world.log.clear();
    world.object.spec.search = Some(Default::default());
    world.settle();
    assert!(runs(&world).iter().any(|run| run.contains("search")), "{:#?}", world.log);
    world.fleet.sick.clear();
    pass(&mut world, 12);
    assert_eq!((seen(&world).sick.len(), row(&world).2), (0, 6));
}

#[test]
fn a_new_token_of_one_member_is_brought_to_all_machines_at_once() {
    let mut world = plane_with(&["m1", "m2"]);
    let before = services(&world);
    world.log.clear();
    give(&mut world, "m1", "another");
    assert!(!seen(&world).is_settled);
    world.settle();
    assert_eq!(runs(&world), ["karmada-programs+karmada-service estimators on h1,h2,h3"]);
    let after = services(&world);
    assert!(seen(&world).is_settled && before[0]["digest"] != after[0]["digest"]);
    assert_eq!((&before[0]["exec_start"], &before[1]), (&after[0]["exec_start"], &after[1]), "its port stays");
}

#[test]
fn what_is_missing_on_a_machine_is_brought_again() {
    let mut world = plane_with(&["m1"]);
    pass(&mut world, 3);
    world.fleet.units.get_mut("h2").unwrap().get_mut("estimators").unwrap().digest = "incomplete".to_owned();
    world.log.clear();
    pass(&mut world, 12);
    assert_eq!(runs(&world), ["karmada-programs+karmada-service estimators on h2"]);
}

#[test]
fn switched_off_they_are_taken_off_once_nobody_asks_them() {
    let mut world = plane_with(&["m1"]);
    world.log.clear();
    world.object.spec.estimator = None;
    world.settle();
    assert!(runs(&world).iter().all(|run| !run.contains("estimators")), "what they are given is there yet");
    assert!(runs(&world).iter().any(|run| run.contains("scheduler")), "{:#?}", world.log);
    world.given.clear();
    world.settle();
    let runs = runs(&world);
    assert_eq!(*runs.last().unwrap(), "karmada-programs+karmada-service estimators on h1,h2,h3");
    assert!(digests(&world).is_empty() && seen(&world).is_settled);
    let last = world.fleet.runs.iter().rfind(|run| run.spec.steps.contains(&Step::KarmadaService)).unwrap();
    assert_eq!(last.spec.vars["karmada_programs"], Value::Array(Vec::new()), "no program is needed for that");
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn an_upgrade_brings_them_in_their_step_before_those_that_ask_them() {
    let mut world = plane_with(&["m1"]);
    assert!(digests(&world).iter().all(|digest| digest.starts_with("1.18.2-")), "{:?}", digests(&world));
    world.object.spec.version = "1.18.3".parse().unwrap();
    world.log.clear();
    pass(&mut world, 10);
    assert!(
        digests(&world).iter().all(|digest| digest.starts_with("1.18.3-")),
        "{:?} {:#?}",
        digests(&world),
        world.log
    );
    let runs = runs(&world);
    let at = |part: &str| runs.iter().position(|run| run.split([' ', '+']).any(|word| word == part)).unwrap();
    assert!(at("estimators") < at("scheduler"), "{runs:#?}");
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}
