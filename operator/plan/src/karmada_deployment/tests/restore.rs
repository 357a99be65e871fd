//! Promises about a plane that begins with a backup: nothing acts before a person has approved what becomes of members.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::backup::FetchedBackup;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::names::annotation;
use serde_json::{Value, json};

use super::super::restore::carried;
use super::super::{Component, FormerPlane, Place};
use super::world::{World, plane, settled};
use crate::key_transfer::KeysSeen;
use crate::testing::backup_keys::{self, LOCATION, fetched, storage};

const ALL: &str = "descheduler: {}, search: {}, metricsAdapter: {}, etcd: {local: {replicas: 3}}";
const FROM: &str = "restoreFrom: {source: {stored: {storageRef: {name: bucket}, location: _karmada/k1/uid-0/1}}, identityRef: {name: age}}";

/// A plane that is to begin with the backup of another one, of which nothing was fetched yet.
pub fn beginning(more: &str) -> World {
    let more = if more.is_empty() { FROM.to_owned() } else { format!("{more}, {FROM}") };
    let mut world = World::new(plane(&more));
    world.restore.keys = backup_keys::seen();
    world
}

/// The Job that fetches the keys ends so, and has written them.
pub fn job_ends(world: &mut World, backup: &FetchedBackup) {
    let keys = if world.keys { KeysSeen::InPlace } else { KeysSeen::Fetched };
    backup_keys::arrive(&mut world.restore.keys, backup, keys);
}

/// The same, once it waits for its report.
fn comparing(more: &str) -> World {
    let mut world = beginning(more);
    world.settle();
    assert_eq!(world.condition("Ready").1, "FetchingKeys", "{:?}", world.condition("Ready"));
    job_ends(&mut world, &fetched());
    world.settle();
    assert_eq!(record(&world).step, Some(Step::Compare), "{:?}", world.condition("Ready"));
    world
}

/// The former plane is not seen, and a member has one object of two that it is to have, and one more.
pub fn show_members(world: &mut World) {
    world.restore.former = FormerPlane::Silent("connection refused".into());
    let manifest = |name: &str| {
        json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default" }, "data": { "a": "1" } })
    };
    world.restore.works = Some(vec![work("m1", &[manifest("new"), manifest("same")]), work("m2", &[manifest("x")])]);
    world.restore.members = [("m1".to_owned(), Ok(vec![manifest("same"), manifest("later")]))].into();
}

/// The same, once members were looked at.
fn asking(more: &str) -> World {
    let mut world = comparing(more);
    show_members(&mut world);
    world.settle();
    assert_eq!(world.condition("Ready").1, "WaitingForApproval", "{:?}", world.condition("Ready"));
    world
}

fn work(member: &str, manifests: &[Value]) -> Value {
    json!({ "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": { "name": "w", "namespace": format!("karmada-es-{member}") },
        "spec": { "workload": { "manifests": manifests } } })
}

pub fn record(world: &World) -> KarmadaRestoredFrom {
    world.object.status.clone().unwrap().restored_from.expect("it is settled")
}

/// A person runs the command of the message.
pub fn approve(world: &mut World) {
    let message = world.condition("Ready").2;
    let (_, rest) = message.split_once("clusterwright.dev/approve=").expect("there is a command");
    let value = rest.split(' ').next().unwrap_or_default().trim_end_matches('.').to_owned();
    world.object.metadata.annotations = Some([(annotation::APPROVE.to_owned(), value)].into());
}

pub fn runs(world: &World, component: Component) -> bool {
    let kind = if component == Component::Etcd { "StatefulSet" } else { "Deployment" };
    world.find(Place::Host, kind, &format!("k1-{}", component.suffix())).is_some()
}

/// What propagates, schedules or collects garbage.
pub fn acting() -> impl Iterator<Item = Component> {
    let serves = [Component::Etcd, Component::ApiServer, Component::AggregatedApiServer, Component::Webhook];
    Component::ALL.into_iter().filter(move |component| !serves.contains(component))
}

pub fn authorization(world: &World) -> String {
    let live = world.find(Place::Host, "Deployment", "k1-apiserver").unwrap();
    let command = live["spec"]["template"]["spec"]["containers"][0]["command"].as_array().unwrap();
    let flag = command.iter().filter_map(Value::as_str).find_map(|flag| flag.strip_prefix("--authorization-mode="));
    flag.unwrap().to_owned()
}

#[test]
fn keys_come_first_and_until_they_are_there_nothing_is_made() {
    let mut world = beginning(ALL);
    world.settle();
    assert!(!world.keys && world.host.is_empty(), "{:?}", world.log);
    assert_eq!(world.log, ["fetch keys"]);
    job_ends(&mut world, &fetched());
    world.restore.keys.keys = KeysSeen::Differ;
    world.settle();
    assert_eq!((world.condition("Ready").1.as_str(), world.host.len()), ("KeysDiffer", 0));
    world.restore.keys.keys = KeysSeen::Fetched;
    world.settle();
    assert!(world.keys);
    assert_eq!(record(&world).plane_uid, "uid-0");
}

#[test]
fn data_is_made_for_every_member_before_etcd_starts_and_what_made_it_is_removed() {
    let mut world = beginning(ALL);
    world.settle();
    job_ends(&mut world, &fetched());
    world.stuck.insert("k1-etcd-restore-1".to_owned());
    world.settle();
    assert_eq!(record(&world).step, Some(Step::Data));
    let (_, reason, message) = world.condition("Ready");
    assert!(reason == "Restoring" && message.contains("2 of 3 members of etcd have their data"), "{message}");
    assert!(Component::ALL.into_iter().all(|component| !runs(&world, component)), "{:?}", world.log);
    let job = world.find(Place::Host, "Job", "k1-etcd-restore-1").unwrap();
    let pod = &job["spec"]["template"]["spec"];
    let text = pod.to_string();
    for words in [
        "--bump-revision=1000000000",
        "--mark-compacted",
        "--initial-cluster-token=uid-1",
        "--name=k1-etcd-1",
        "data-k1-etcd-1",
        "/secrets/snapshot.key",
        "fetch-snapshot",
        LOCATION,
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("/identity"), "{text}");
    assert!(
        !job["spec"]["template"]["metadata"]["labels"].to_string().contains("\"etcd\""),
        "a Service would select it"
    );
    assert!(world.find(Place::Host, "PersistentVolumeClaim", "data-k1-etcd-2").is_some());

    world.stuck.clear();
    world.settle();
    assert_eq!(record(&world).step, Some(Step::Compare), "{:?}", world.condition("Ready"));
    assert!(world.host.keys().all(|(kind, ..)| kind != "Job"), "{:?}", world.log);
    assert!(world.find(Place::Host, "Secret", "k1-etcd-restore").is_none());
    assert_eq!(world.restore.keys.keys, KeysSeen::Absent, "nobody may write them any more");
    assert!(world.find(Place::Host, "PersistentVolumeClaim", "data-k1-etcd-2").is_some(), "volumes stay");
}

#[test]
fn a_job_that_has_given_up_is_made_anew() {
    let mut world = beginning("");
    world.settle();
    job_ends(&mut world, &fetched());
    world.stuck.insert("k1-etcd-restore-0".to_owned());
    world.settle();
    let job = world.host.iter_mut().find(|(key, _)| key.0 == "Job").unwrap().1;
    job["status"] = json!({ "conditions": [{ "type": "Failed", "status": "True", "message": "too often" }] });
    world.log.clear();
    world.settle();
    assert_eq!(world.log, ["delete Job k1-etcd-restore-0", "apply Job k1-etcd-restore-0"]);
}

#[test]
fn nothing_acts_and_nobody_is_let_in_until_the_report_is_approved() {
    let mut world = asking(ALL);
    let message = world.condition("Ready").2;
    for words in [
        "backup nightly of plane k0",
        "at revision 77",
        "https://10.0.0.8:5443 is not seen to serve it (connection refused)",
        "kubectl -n fleet annotate --overwrite karmadadeployments.clusterwright.dev k1 clusterwright.dev/approve=restore.",
        "m1: 1 object created: ConfigMap default/new; 1 object left without a Work: ConfigMap default/later",
        "m2: it is not named in spec.members",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert_eq!(record(&world).members.len(), 2);
    let check = |world: &World| {
        assert!(acting().all(|component| !runs(world, component)), "{:?}", world.log);
        assert_eq!(authorization(world), "ABAC");
        assert_ne!(world.condition("ComponentsReady").0, "True", "no member joins");
    };
    check(&world);
    // Another report is not what was approved.
    approve(&mut world);
    world.restore.members.insert("m2".to_owned(), Err("timeout".to_owned()));
    let works = world.restore.works.as_mut().unwrap();
    works[1]["metadata"]["deletionTimestamp"] = json!("2026-11-27T03:00:00Z");
    let mut there = works[1]["spec"]["workload"]["manifests"][0].clone();
    there["metadata"]["labels"] = json!({ "karmada.io/managed": "true" });
    world.restore.members.insert("m2".to_owned(), Ok(vec![there]));
    world.settle();
    check(&world);
    assert!(world.condition("Ready").2.contains("m2: 1 object deleted: ConfigMap default/x"));
    assert_eq!(carried(world.restore.works.as_ref().unwrap(), "m2")[0].name, "x");

    approve(&mut world);
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    assert_eq!(authorization(&world), "Node,RBAC");
    let record = record(&world);
    assert!(record.step.is_none() && record.approved_at.is_some() && record.restored_at.is_some());
    assert!(Component::ALL.into_iter().all(|component| runs(&world, component)));
}

#[test]
fn whoever_says_nothing_of_itself_may_ask_a_closed_api_server_whether_it_works_and_nothing_else() {
    let world = asking("");
    let secret = world.find(Place::Host, "Secret", "k1-apiserver").unwrap();
    let policy = STANDARD.decode(secret["data"]["policy.jsonl"].as_str().unwrap()).unwrap();
    let rules: Vec<Value> =
        String::from_utf8(policy).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let live = world.find(Place::Host, "Deployment", "k1-apiserver").unwrap();
    let container = &live["spec"]["template"]["spec"]["containers"][0];
    for probe in ["readinessProbe", "livenessProbe"] {
        let path = &container[probe]["httpGet"]["path"];
        // A kubelet's questions come without a certificate, and "*" would be whoever has one.
        let is_it = |rule: &&Value| rule["spec"]["group"] == "system:unauthenticated";
        let admits = rules.iter().filter(is_it).any(|rule| rule["spec"]["nonResourcePath"] == *path);
        assert!(admits, "{probe} {path}: {rules:?}");
    }
    let more = |rule: &&Value| rule["spec"]["readonly"] != true || rule["spec"]["resource"].is_string();
    assert_eq!(rules.iter().find(more), None);
}

#[test]
fn garbage_is_collected_last_and_all_else_is_as_in_any_plane() {
    let mut world = asking(ALL);
    approve(&mut world);
    world.log.clear();
    world.settle();
    let started = world.log.iter().filter_map(|line| line.strip_prefix("apply Deployment k1-"));
    let expected = [
        "apiserver",
        "scheduler",
        "controller-manager",
        "descheduler",
        "search",
        "metrics-adapter",
        "kube-controller-manager",
    ];
    assert_eq!(started.collect::<Vec<_>>(), expected);
    let shape = |world: &World| {
        let volumes = |key: &super::world::Key| key.0 != "PersistentVolumeClaim";
        world
            .shape()
            .into_iter()
            .filter(|(_, key, _)| volumes(key))
            .map(|(place, key, _)| (place, key))
            .collect::<Vec<_>>()
    };
    assert_eq!(shape(&world), shape(&settled(ALL)));
}

#[test]
fn a_former_plane_that_answers_or_is_still_managed_holds_it_whatever_was_approved() {
    let mut world = asking("");
    approve(&mut world);
    world.restore.former = FormerPlane::Answers;
    world.settle();
    assert_eq!(world.condition("Ready").1, "FormerPlaneRuns");
    world.restore.former = FormerPlane::Silent("timeout".into());
    let mut former = plane("hostNamespace: former");
    former.metadata.name = Some("k0".into());
    former.metadata.uid = Some("uid-0".into());
    world.others = vec![former];
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    assert!(reason == "FormerPlaneRuns" && message.contains("fleet/k0"), "{message}");
    assert!(acting().all(|component| !runs(&world, component)));
    world.others.clear();
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn a_lost_status_never_makes_data_anew_and_starts_nothing_that_was_not_approved() {
    let mut world = asking("");
    let volumes = world.find(Place::Host, "PersistentVolumeClaim", "data-k1-etcd-0").cloned();
    world.object.status = None;
    world.log.clear();
    world.settle();
    assert_eq!(world.condition("Ready").1, "FetchingKeys");
    job_ends(&mut world, &fetched());
    world.host_lost = true;
    world.settle();
    assert!(world.object.status.as_ref().unwrap().restored_from.is_none(), "what is there is not known");
    world.host_lost = false;
    world.settle();
    assert_eq!(world.condition("Ready").1, "WaitingForApproval", "{:?}", world.condition("Ready"));
    assert!(world.log.iter().all(|line| !line.contains("Job k1") && !line.contains("StatefulSet")), "{:?}", world.log);
    assert_eq!(world.find(Place::Host, "PersistentVolumeClaim", "data-k1-etcd-0").cloned(), volumes);
    approve(&mut world);
    world.settle();
    world.object.status = None;
    world.log.clear();
    world.settle();
    assert!(world.is_ready() && world.log.is_empty(), "{:?}", world.log);
}

#[test]
fn a_backup_that_does_not_fit_is_refused_before_anything_is_made() {
    let check = |change: &dyn Fn(&mut FetchedBackup), words: &str| {
        let mut world = beginning("");
        world.settle();
        let mut backup = fetched();
        change(&mut backup);
        job_ends(&mut world, &backup);
        world.settle();
        let (_, reason, message) = world.condition("Ready");
        assert!(reason == "BackupDoesNotFit" && message.contains(words), "{reason}: {message}");
        assert!(world.host.is_empty());
    };
    check(
        &|backup| backup.dns_domain = "other.local".into(),
        "spec.hostDNSDomain is cluster.local, and must be other.local",
    );
    check(&|backup| backup.plane.as_mut().unwrap().version = Some("1.17.5".into()), "must be of the minor of 1.17.5");
    check(&|backup| backup.etcd_version = "3.7.0".into(), "does not read data of 3.7.0");
}

#[test]
fn a_volume_that_its_pods_cannot_mount_is_refused_and_one_beside_them_is_not() {
    let mut world = beginning("");
    world.restore.keys.storage = Some(storage(json!({ "volume": { "claimName": "backups" } })));
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    assert!(reason == "BackupNotSupported" && message.contains("copy the backup into a bucket"), "{message}");
    assert!(world.log.is_empty());
    let beside = |world: &mut World| {
        world.restore.keys.storage = Some(storage(json!({ "volume": { "claimName": "backups" } })));
        world.settle();
        job_ends(world, &fetched());
        world.stuck.insert("k1-etcd-restore-0".to_owned());
        world.settle();
    };
    let mut world = beginning("hostNamespace: fleet");
    beside(&mut world);
    let job = world.find(Place::Host, "Job", "k1-etcd-restore-0").unwrap().to_string();
    assert!(job.contains(r#""claimName":"backups""#) && !job.contains("storage.accessKeyID"), "{job}");
}
