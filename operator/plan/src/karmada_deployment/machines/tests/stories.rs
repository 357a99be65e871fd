//! A plane on machines as it comes to be, is changed, and loses machines.

mod faults;
mod set_back;

use crds::ObjectExt;
use crds::names::condition;
use crds::step::Role;
use jiff::SignedDuration;

use super::super::super::tests::world::{World, plane};
use super::super::seats;
use super::fleet::Fleet;

/// A plane of three machines behind an endpoint.
pub const BINARY: &str = "mode: Binary, binary: {controlPlane: {replicas: 3}, endpoint: {host: 10.0.0.100, port: 5443}, artifacts: {url: 'https://bundle.example.com'}}";
pub const ONE: &str =
    "mode: Binary, binary: {controlPlane: {replicas: 1}, artifacts: {url: 'https://bundle.example.com'}}";

fn world(spec: &str, hosts: usize) -> World {
    let mut world = World::new(plane(spec));
    world.fleet = Fleet::with_hosts(hosts);
    world
}

pub fn settled(spec: &str, hosts: usize) -> World {
    let mut world = world(spec, hosts);
    world.settle();
    assert!(world.is_ready(), "{:?} {:#?}", world.condition("Ready"), world.log);
    world.log.clear();
    world.fleet.played.clear();
    world
}

/// Time passes, and controllers do what is due.
pub fn pass(world: &mut World, minutes: i64) {
    for _ in 0..minutes {
        world.now += SignedDuration::from_secs(60);
        world.settle();
    }
}

/// The runs that changed something, as they are logged.
pub fn runs(world: &World) -> Vec<&str> {
    world.log.iter().filter_map(|line| line.strip_prefix("run ")).collect()
}

/// The parts that were brought, run by run, with their Hosts.
fn parts(world: &World) -> Vec<(&str, String)> {
    let brought = world.fleet.played.iter().filter(|(part, _)| !part.is_empty());
    brought.map(|(part, hosts)| (part.as_str(), hosts.join(","))).collect()
}

/// The components of a plane that has nothing optional, in their order.
const SERVICES: &str = "apiserver+kube-controller-manager+aggregated-apiserver+webhook+scheduler+controller-manager";
const INSTALL: &str = "bootstrap-os+preflight+prepare+etcd etcd on";

#[test]
fn a_plane_on_one_machine_comes_to_be_in_order_and_then_nothing_is_written() {
    let mut world = world(ONE, 2);
    world.settle();
    assert!(world.is_ready(), "{:?} {:#?}", world.condition("Ready"), world.log);
    assert_eq!(world.kubeconfig.as_deref(), Some("https://10.0.0.1:5443"));
    let expected = [
        &format!("{INSTALL} h1"),
        "karmada-balancer+karmada-programs+karmada-service balancer+apiserver+kube-controller-manager+aggregated-apiserver on h1",
        "karmada-programs+karmada-service webhook on h1",
        "karmada-programs+karmada-service scheduler+controller-manager on h1",
    ];
    assert_eq!(runs(&world), expected);
    // Between the parts the plane itself is made, in the same order as of one in Pods.
    let at = |text: &str| world.log.iter().position(|line| line.contains(text)).unwrap();
    let order = [
        "+apiserver+",
        "apply Namespace karmada-system",
        "apply CustomResourceDefinition",
        " webhook on",
        "apply ValidatingWebhookConfiguration",
        " scheduler+",
    ];
    assert!(order.windows(2).all(|two| at(two[0]) < at(two[1])), "{:#?}", world.log);
    assert!(world.host.is_empty(), "nothing is made on a host cluster: {:?}", world.host.keys());
    let log = world.log.len();
    world.settle();
    assert_eq!(world.log.len(), log);
    let status = world.object.status.clone().unwrap();
    assert!(status.components.iter().all(|one| one.ready_replicas == 1 && one.version.is_some()), "{status:?}");
    assert_eq!(status.machines.map(|machines| machines.summary).as_deref(), Some("1/1"));
    assert!(status.first_installed_at.is_some() && status.operations.is_empty());
}

#[test]
fn an_endpoint_is_asked_once_a_machine_has_an_api_server_and_what_holds_it() {
    let keepalived = BINARY.replace("port: 5443", "provider: Keepalived");
    for (spec, needed) in [(BINARY, vec!["apiserver"]), (&keepalived, vec!["apiserver", "load-balancer"])] {
        let is_served = |world: &World| world.fleet.look(|seen| seats(&world.object, seen).is_served);
        assert!(!is_served(&world(spec, 3)));
        assert!(is_served(&settled(spec, 3)));
        for part in needed {
            let mut world = settled(spec, 3);
            for status in world.fleet.machines.iter_mut().filter_map(|machine| machine.status.as_mut()) {
                status.parts.retain(|seen| seen.name != part);
                status.applied.iter_mut().for_each(|applied| drop(applied.parts.remove(part)));
            }
            for run in &mut world.fleet.runs {
                run.spec.karmada.take_if(|there| there.part == part);
                run.spec.karmada_parts.retain(|there| there.part != part);
            }
            assert!(!is_served(&world), "{part}");
        }
    }
}

#[test]
fn on_three_machines_what_nobody_has_comes_to_all_at_once_and_the_plane_asks_localhost() {
    let mut world = world(BINARY, 4);
    world.settle();
    assert!(world.is_ready(), "{:?} {:#?}", world.condition("Ready"), world.log);
    let all: Vec<&str> = runs(&world);
    assert!(all.iter().all(|run| run.ends_with("on h1,h2,h3")), "{all:#?}");
    assert_eq!(world.kubeconfig.as_deref(), Some("https://10.0.0.100:5443"));
    let webhooks = world.find(super::super::super::Place::Plane, "ValidatingWebhookConfiguration", "validating-config");
    let url = webhooks.unwrap()["webhooks"][0]["clientConfig"]["url"].as_str().unwrap();
    assert!(url.starts_with("https://localhost:18443/"), "{url}");
    let api = world.find(super::super::super::Place::Plane, "APIService", "v1alpha1.cluster.karmada.io").unwrap();
    assert_eq!(api["spec"]["service"]["port"], 17443);
    let service = world.find(super::super::super::Place::Plane, "Service", "karmada-aggregated-apiserver").unwrap();
    assert_eq!(service["spec"]["externalName"], "localhost");
    assert_eq!(world.condition(condition::ETCD_READY).2, "3 of 3 members are ready");
}

#[test]
fn a_change_goes_from_machine_to_machine() {
    let mut world = settled(BINARY, 3);
    world.object.spec.scheduler.extra_args = serde_yaml::from_str("{v: '4'}").unwrap();
    world.settle();
    let on = |host: &str| ("scheduler", host.to_owned());
    assert_eq!(parts(&world), [on("h1"), on("h2"), on("h3")]);
    assert!(world.is_ready());
}

#[test]
fn renewed_certificates_come_to_one_machine_after_the_other() {
    let mut world = settled(BINARY, 3);
    world.renewal_due = true;
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    let brought = parts(&world);
    assert_eq!(brought, ["h1", "h2", "h3"].map(|host| (SERVICES, host.to_owned())));
}

#[test]
fn a_change_that_does_not_work_halts_on_the_first_machine_and_says_what_to_do() {
    let mut world = settled(BINARY, 3);
    world.object.spec.scheduler.extra_args = serde_yaml::from_str("{v: '4'}").unwrap();
    for host in ["h1", "h2", "h3"] {
        world.fleet.fails.insert((host.to_owned(), "scheduler".to_owned()));
    }
    world.settle();
    pass(&mut world, 120);
    let brought = parts(&world);
    assert_eq!(brought, vec![("scheduler", "h1".to_owned()); 3], "three attempts, and nowhere else");
    let (status, _, message) = world.condition(condition::COMPONENTS_READY);
    assert_eq!(status, "False");
    let told = "karmada-scheduler could not be brought to machine";
    assert!(message.contains(told) && message.contains("3 attempts"), "{message}");
    // Another wish is another change.
    world.object.spec.scheduler.extra_args.clear();
    world.object.spec.descheduler = None;
    world.fleet.fails.clear();
    pass(&mut world, 3);
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn a_machine_that_is_dead_holds_up_nobody_and_catches_up_once_it_answers() {
    let mut world = settled(BINARY, 3);
    world.fleet.dead.insert("h2".to_owned());
    pass(&mut world, 12);
    assert!(!world.is_ready());
    world.object.spec.scheduler.extra_args = serde_yaml::from_str("{v: '4'}").unwrap();
    pass(&mut world, 2);
    let on = |host: &str| ("scheduler", host.to_owned());
    assert_eq!(parts(&world), [on("h1"), on("h3")]);
    let message = world.condition("Ready").2;
    assert!(message.contains("did not answer") || message.contains("etcd"), "{message}");
    world.fleet.dead.clear();
    pass(&mut world, 3);
    assert_eq!(parts(&world), [on("h1"), on("h3"), on("h2")]);
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn a_dead_machine_is_replaced_its_member_taken_out_by_another_one() {
    let mut world = settled(BINARY, 4);
    world.fleet.dead.insert("h1".to_owned());
    pass(&mut world, 12);
    let name = world.fleet.on("h1").unwrap().name().to_owned();
    world.fleet.delete(&name);
    world.fleet.force(&name);
    pass(&mut world, 5);
    let all = runs(&world).join("\n");
    let (removed, joined) = ("remove-etcd-member  on h", &format!("{INSTALL} h4"));
    assert!(all.contains(removed) && all.contains(joined.as_str()), "{all}");
    assert!(all.find(removed) < all.find(joined.as_str()), "{all}");
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    let mut held = world.fleet.held(Role::ControlPlane);
    held.sort_unstable();
    assert_eq!(held, ["h2", "h3", "h4"]);
    // Of those that stay the balancer alone changes.
    let on_others = parts(&world).into_iter().filter(|(_, hosts)| hosts.contains("h2"));
    assert!(on_others.clone().all(|(part, _)| part == "balancer"), "{:?}", on_others.collect::<Vec<_>>());
    assert!(world.object.status.as_ref().unwrap().forgotten.is_empty());
}

#[test]
fn a_plane_grows_and_shrinks_one_member_at_a_time() {
    let one = BINARY.replace("replicas: 3", "replicas: 1");
    let mut world = settled(&one, 3);
    world.object.spec.binary.as_mut().unwrap().control_plane.replicas = 3;
    world.settle();
    let joins: Vec<&str> = runs(&world).into_iter().filter(|run| run.starts_with(INSTALL)).collect();
    assert_eq!(joins, [format!("{INSTALL} h2"), format!("{INSTALL} h3")]);
    assert!(world.is_ready(), "{:?} {:#?}", world.condition("Ready"), world.log);
    let brought = parts(&world).into_iter().filter(|(part, _)| *part != "etcd");
    let newcomers = format!("balancer+{SERVICES}");
    let expected = [(newcomers.as_str(), "h2,h3".to_owned()), ("balancer", "h1".to_owned())];
    assert_eq!(brought.collect::<Vec<_>>(), expected, "all at once, and who was there is left alone");
    world.log.clear();
    world.object.spec.binary.as_mut().unwrap().control_plane.replicas = 1;
    pass(&mut world, 5);
    let left: Vec<&str> = runs(&world).into_iter().filter(|run| !run.contains("balancer")).collect();
    assert_eq!(left.len(), 4, "{left:?}");
    let of = |what: &str| left.iter().filter(|run| run.starts_with(what)).count();
    assert_eq!((of("remove-etcd-member  on h1"), of("reset  on h")), (2, 2), "{left:?}");
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    assert_eq!(world.fleet.machines.len(), 1);
}

#[test]
fn a_machine_that_fails_at_one_of_its_parts_keeps_those_before_it_and_goes_on_from_there() {
    let mut world = settled(&BINARY.replace("replicas: 3", "replicas: 1"), 3);
    world.object.spec.binary.as_mut().unwrap().control_plane.replicas = 3;
    world.fleet.fails.insert(("h2".to_owned(), "webhook".to_owned()));
    while !parts(&world).iter().any(|(part, _)| part.contains("webhook")) {
        assert!(world.turn());
    }
    let units = |world: &World| world.fleet.units["h2"].iter().filter(|(_, unit)| unit.healthy).count();
    assert_eq!(units(&world), 5, "{:?}", world.fleet.units["h2"]);
    world.turn();
    let (status, _, message) = world.condition(condition::COMPONENTS_READY);
    assert_eq!(status, "False");
    assert!(message.starts_with("karmada-webhook on machine") && message.contains("it ended with 1"), "{message}");
    world.fleet.fails.clear();
    pass(&mut world, 3);
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    let brought = parts(&world);
    let all = format!("balancer+{SERVICES}");
    assert!(brought.contains(&(all.as_str(), "h2,h3".to_owned())), "{brought:?}");
    let again = brought.iter().filter(|(_, hosts)| hosts == "h2").flat_map(|(parts, _)| parts.split('+'));
    let mut again: Vec<&str> = again.collect();
    again.sort_unstable();
    assert_eq!(again, ["controller-manager", "etcd", "scheduler", "webhook"], "{brought:?}");
}

#[test]
fn a_machine_that_fails_to_join_is_named_where_the_plane_says_how_it_is() {
    let mut world = settled(&BINARY.replace("replicas: 3", "replicas: 1"), 3);
    world.object.spec.binary.as_mut().unwrap().control_plane.replicas = 3;
    world.fleet.fails.insert(("h2".to_owned(), "etcd".to_owned()));
    world.settle();
    let name = world.fleet.on("h2").unwrap().name().to_owned();
    let (status, _, message) = world.condition("Ready");
    assert_eq!(status, "False");
    assert!(message.starts_with("etcd: 1 of 3 members are ready: ") && message.contains("failed to join"), "{message}");
    assert!(message.contains(&name) && message.contains("it ended with 1"), "{message}");
}

#[test]
fn one_part_is_brought_by_a_run_in_the_form_that_the_former_release_knows() {
    let mut world = settled(BINARY, 3);
    world.object.spec.scheduler.extra_args = serde_yaml::from_str("{v: '4'}").unwrap();
    world.settle();
    let on = |host: &str| ("scheduler", host.to_owned());
    assert_eq!(parts(&world), [on("h1"), on("h2"), on("h3")]);
    let is_of_scheduler = |run: &&crds::PlaybookRun| run.spec.parts().any(|part| part.part == "scheduler");
    let latest: Vec<_> = world.fleet.runs.iter().filter(is_of_scheduler).rev().take(3).collect();
    assert!(latest.iter().all(|run| run.spec.karmada.is_some() && run.spec.karmada_parts.is_empty()));
}

#[test]
fn another_patch_version_goes_part_by_part_and_machine_by_machine() {
    let mut world = settled(BINARY, 3);
    world.object.spec.version = "1.18.3".parse().unwrap();
    world.settle();
    let brought = parts(&world);
    assert!(brought.iter().all(|(_, hosts)| !hosts.contains(',')), "{brought:?}");
    let order: Vec<&str> = brought.iter().map(|(part, _)| *part).collect();
    let expected = ["webhook", "aggregated-apiserver", "scheduler", "controller-manager"];
    assert_eq!(order.chunks(3).map(|three| three[0]).collect::<Vec<_>>(), expected, "{order:?}");
    assert!(world.is_ready() && world.upgrade().is_none(), "{:?}", world.condition("Ready"));
    assert_eq!(world.object.status.as_ref().unwrap().version.as_deref(), Some("1.18.3"));
    assert!(world.fleet.units.values().all(|units| units["webhook"].digest.starts_with("1.18.3-")));
}

#[test]
fn while_a_minor_version_changes_controllers_are_stopped_on_all_machines() {
    let mut world = settled(&format!("version: 1.17.5, {BINARY}"), 3);
    world.object.spec.version = "1.18.2".parse().unwrap();
    let mut were_stopped = false;
    for _ in 0..900 {
        if !world.turn() {
            break;
        }
        let stopped = |part: &str| world.fleet.units.values().all(|units| units[part].digest == "1.17.5-stopped");
        were_stopped |= stopped("scheduler") && stopped("controller-manager");
        let webhook = world.fleet.units.values().any(|units| units["webhook"].digest.starts_with("1.18.2-"));
        let runs_old = world.fleet.units.values().any(|units| {
            units["controller-manager"].healthy && units["controller-manager"].digest.starts_with("1.17.5")
        });
        assert!(!(webhook && runs_old), "controllers run beside a newer webhook");
    }
    world.settle();
    assert!(were_stopped && world.is_ready(), "{:?} {:?}", world.condition("Ready"), world.upgrade());
    assert!(world.fleet.units.values().all(|units| units["controller-manager"].healthy));
}

#[test]
fn what_is_switched_off_goes_from_the_plane_before_it_goes_from_the_machines() {
    let mut world = settled(&format!("{BINARY}, search: {{}}"), 3);
    assert!(world.fleet.serves("search"));
    world.object.spec.search = None;
    world.settle();
    assert!(!world.fleet.serves("search") && world.is_ready(), "{:?}", world.condition("Ready"));
    let at = |text: &str| world.log.iter().position(|line| line.contains(text)).unwrap();
    assert!(at("delete APIService v1alpha1.search") < at("search on h1,h2,h3"), "{:#?}", world.log);
}

#[test]
fn a_plane_that_is_deleted_gives_its_machines_back_clean() {
    let mut world = settled(BINARY, 3);
    let deleted = "2026-11-27T12:00:00Z".parse().unwrap();
    world.object.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(deleted));
    world.settle();
    assert!(world.object.metadata.finalizers.is_none(), "{:?}", world.condition("Deleting"));
    assert!(world.fleet.machines.is_empty() && world.fleet.units.is_empty(), "{:?}", world.fleet.units.keys());
    assert!(world.fleet.hosts.iter().all(|host| host.spec.claim_ref.is_none()));
}

#[test]
fn a_plane_that_is_detached_leaves_its_machines_as_they_are() {
    let mut world = settled(&format!("{BINARY}, deletionPolicy: Detach"), 3);
    let deleted = "2026-11-27T12:00:00Z".parse().unwrap();
    world.object.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(deleted));
    world.settle();
    assert!(world.object.metadata.finalizers.is_none() && world.fleet.machines.is_empty());
    assert!(runs(&world).is_empty() && world.fleet.serves("apiserver"));
}

#[test]
fn a_paused_plane_begins_nothing_on_its_machines() {
    let mut world = settled(BINARY, 3);
    world.object.spec.paused = true;
    world.object.spec.scheduler.extra_args = serde_yaml::from_str("{v: '4'}").unwrap();
    pass(&mut world, 15);
    assert!(runs(&world).is_empty(), "{:?}", world.log);
    assert_eq!(world.condition(condition::UP_TO_DATE).1, "Paused");
    world.object.spec.paused = false;
    pass(&mut world, 2);
    assert_eq!(parts(&world).len(), 3);
}

#[test]
fn a_plane_waits_for_hosts_and_says_how_many_it_lacks() {
    let mut world = world(BINARY, 2);
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "WaitingForHosts");
    assert!(message.contains("2 of 3 machines have one"), "{message}");
    assert!(runs(&world).is_empty());
}

#[test]
fn a_dedicated_etcd_has_machines_of_its_own_and_api_servers_learn_of_its_members() {
    let etcd = "etcd: {topology: Dedicated, replicas: 3}, ";
    let spec = BINARY
        .replace("artifacts:", &format!("{etcd}artifacts:"))
        .replace("replicas: 3}, endpoint", "replicas: 1}, endpoint");
    let mut world = settled(&spec, 5);
    assert_eq!(world.fleet.held(Role::Etcd).len(), 3);
    let host = world.fleet.held(Role::Etcd)[0].to_owned();
    let name = world.fleet.on(&host).unwrap().name().to_owned();
    world.fleet.delete(&name);
    pass(&mut world, 6);
    let all = runs(&world).join("\n");
    assert!(all.contains("remove-etcd-member") && all.contains(&format!("reset  on {host}")), "{all}");
    assert!(parts(&world).iter().filter(|(part, _)| part.starts_with("apiserver")).count() >= 2, "{all}");
    assert_eq!(world.fleet.held(Role::Etcd).len(), 3);
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

/// A run that takes a backup of etcd, on these Hosts.
fn back_up(world: &mut World, hosts: &str) {
    let made = world.now;
    let run = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: k1-backup-0, namespace: fleet, uid: k1-backup-uid, creationTimestamp: '{made}', ownerReferences: [{{apiVersion: clusterwright.dev/v1alpha1, kind: EtcdBackup, name: nightly, uid: nightly-uid, controller: true}}]}}, spec: {{clusterName: k1, clusterKind: KarmadaDeployment, intent: Backup, steps: [backup-etcd], hosts: [{hosts}], backupRef: {{name: nightly}}}}}}"
    );
    world.fleet.runs.push(serde_yaml::from_str(&run).unwrap());
}

fn backup(world: &World) -> Option<&crds::PlaybookRun> {
    world.fleet.runs.iter().find(|run| run.name() == "k1-backup-0")
}

#[test]
fn a_backup_has_the_machines_alone_and_what_is_changed_meanwhile_comes_after_it() {
    let mut world = settled(BINARY, 3);
    back_up(&mut world, "h1, h2, h3");
    world.object.spec.version = "1.18.3".parse().unwrap();
    world.settle();
    let status = backup(&world).unwrap().status.clone().unwrap();
    assert!(status.token > 0 && status.finished_at.is_some(), "{status:?}");
    assert!(world.is_ready() && world.upgrade().is_none(), "{:?}", world.condition("Ready"));
    assert!(world.object.status.as_ref().unwrap().operations.is_empty());
}

#[test]
fn a_backup_that_has_not_begun_holds_up_no_machine_that_leaves() {
    let mut world = settled(BINARY, 4);
    back_up(&mut world, "h1, h2, h3");
    let name = world.fleet.on("h1").unwrap().name().to_owned();
    world.fleet.delete(&name);
    pass(&mut world, 5);
    assert!(backup(&world).is_none(), "it is asked for again, on those that stay");
    assert!(!world.fleet.held(Role::ControlPlane).contains(&"h1"), "{:?}", world.condition("Ready"));
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn a_paused_plane_lets_no_backup_begin() {
    let mut world = settled(BINARY, 3);
    world.object.spec.paused = true;
    back_up(&mut world, "h1, h2, h3");
    pass(&mut world, 2);
    assert_eq!(backup(&world).unwrap().status, None);
    world.object.spec.paused = false;
    world.settle();
    assert!(backup(&world).unwrap().status.as_ref().unwrap().finished_at.is_some());
}
