//! A plane that an EtcdRestore sets back in its place, on API servers in memory: from the object to a plane that works
//! again, wherever the operator is cut off, with nothing of members made again and nothing written to them unapproved.

use crds::etcd_restore::RestorePhase;
use crds::karmada_deployment::{KarmadaMemberPhase as Phase, KarmadaRestoreStep};
use crds::names::{annotation, finalizer};
use crds::{Conditions, EtcdRestore};
use serde_json::json;

use super::restore::{approve, identities, jobs_run, put_bucket, put_managed, put_work, settle, step};
use super::world::{MANY, World};
use crate::fake_api::{Cut, FakeApi};

const RESTORE: &str = "etcdrestores/fleet/back";
const WORKLOAD: &str = "statefulsets/karmada-system/k1-etcd";

/// A plane with two members that works, and an EtcdRestore of it.
async fn asked() -> World {
    let world = World::new().await.with_member("pull", "pull").with_member("push", "push");
    world.passes(MANY).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
    for member in ["pull", "push"] {
        put_work(&world.plane, member, &["same", "missing"]);
        put_managed(&world.members[member], "same", "1");
        put_managed(&world.members[member], "later", "1");
    }
    put_bucket(&world);
    let spec = json!({
        "karmadaDeploymentRef": {"name": "k1"}, "identityRef": {"name": "age"},
        "source": {"stored": {"storageRef": {"name": "bucket"}, "location": "_karmada/k0/u/1"}},
    });
    world.api.put("etcdrestores", &format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: EtcdRestore, metadata: {{name: back, namespace: fleet}}, spec: {spec}}}"));
    world
}

fn restore(world: &World) -> EtcdRestore {
    world.api.list("etcdrestores").remove(0)
}

fn phase(world: &World) -> Option<RestorePhase> {
    restore(world).status.and_then(|status| status.phase)
}

fn said(world: &World) -> String {
    restore(world).status.and_then(|status| status.message).unwrap_or_default()
}

/// A person runs the command of the EtcdRestore that is in this phase; whether there was one.
fn approve_in(world: &World, awaited: RestorePhase) -> bool {
    let message = said(world);
    let is_asked = phase(world) == Some(awaited);
    let Some((_, rest)) = message.rsplit_once("clusterwright.dev/approve=").filter(|_| is_asked) else { return false };
    let value = rest.split([' ', ';']).next().unwrap().to_owned();
    world.api.edit(RESTORE, |object| object["metadata"]["annotations"] = json!({ (annotation::APPROVE): value }));
    true
}

fn acts(world: &World) -> bool {
    ["scheduler", "controller-manager", "kube-controller-manager"]
        .iter()
        .any(|name| world.api.get(&format!("deployments/karmada-system/k1-{name}")).is_some())
}

/// What the Pod of the agent in the Pull member is made for: with another one, another Pod takes its place at once.
fn agent_is_for(world: &World) -> String {
    let agent = world.members["pull"].get("deployments/karmada-system/karmada-agent").unwrap();
    agent["spec"]["template"]["metadata"]["annotations"][annotation::FILES].as_str().unwrap().to_owned()
}

fn member_writes(world: &World) -> usize {
    world.members.values().map(FakeApi::writes).sum()
}

/// The agents of Pull members come to the restored plane: what they renew is written there.
fn agents_come(world: &mut World) {
    world.plane.remove("leases/karmada-cluster/pull");
    world.agents_come = true;
}

#[tokio::test]
async fn a_plane_is_set_back_once_that_is_approved_and_acts_once_what_becomes_of_members_is() {
    let mut world = asked().await;
    let (before, writes) = (identities(&world), member_writes(&world));
    let old = world.api.get(WORKLOAD).unwrap();
    let agent = agent_is_for(&world);
    settle(&world).await;
    assert_eq!(phase(&world), Some(RestorePhase::AwaitingApproval), "{}", said(&world));
    assert!(world.object().is_true("Ready") && acts(&world), "the plane works on: {}", world.message());
    assert_eq!(world.api.get(WORKLOAD).unwrap()["metadata"]["uid"], old["metadata"]["uid"]);

    world.agents_come = false;
    assert!(approve_in(&world, RestorePhase::AwaitingApproval), "{}", said(&world));
    settle(&world).await;
    assert_eq!(step(&world.object()), Some(KarmadaRestoreStep::Compare), "{}", world.message());
    assert_eq!(phase(&world), Some(RestorePhase::Restoring), "{}", said(&world));
    assert!(said(&world).contains("nothing acts by it yet"), "{}", said(&world));
    assert!(restore(&world).is_true("Stalled"));
    assert!(!acts(&world));
    assert_eq!((member_writes(&world), identities(&world)), (writes, before.clone()), "before it was approved");
    let workload = world.api.get(WORKLOAD).unwrap();
    let claims = workload["spec"]["volumeClaimTemplates"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(claims.starts_with("data-") && workload["metadata"]["uid"] != old["metadata"]["uid"], "{claims}");
    assert!(world.api.get(&format!("persistentvolumeclaims/karmada-system/{claims}-k1-etcd-0")).is_some());

    // Whoever deletes it now does not stop what is under way.
    world.api.edit(RESTORE, |object| object["metadata"]["deletionTimestamp"] = json!("2026-11-27T09:00:00Z"));
    assert_eq!(restore(&world).metadata.finalizers, Some(vec![finalizer::RESTORE.to_owned()]));
    settle(&world).await;
    assert_eq!(phase(&world), Some(RestorePhase::Restoring));
    world.api.edit(RESTORE, |object| object["metadata"]["deletionTimestamp"] = json!(null));

    assert!(approve(&world), "{}", world.message());
    settle(&world).await;
    let pull = world.member("pull");
    assert_eq!((pull.phase, pull.reason.as_str()), (Phase::Lost, "WaitingForAgent"), "{}", pull.message);
    assert_eq!(phase(&world), Some(RestorePhase::Succeeded), "{}", said(&world));
    assert_ne!(agent_is_for(&world), agent, "the Pod that was refused meanwhile waits longer and longer");
    agents_come(&mut world);
    settle(&world).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
    assert_eq!((world.member("pull").phase, world.member("push").phase), (Phase::Joined, Phase::Joined));
    assert_eq!(identities(&world), before, "nothing is made again");
    assert!(said(&world).contains("data-k1-etcd-0 of the host have etcd's data of before"), "{}", said(&world));
    let names = world.api.names();
    let left =
        |name: &&String| name.contains("fetched-keys") || name.starts_with("jobs/") || name.contains("etcd-restore");
    assert!(!names.iter().any(|name| left(&name)), "{names:?}");
    let writes = world.writes();
    world.passes(3).await;
    assert_eq!(world.writes(), writes, "at rest nothing is written");
}

/// Jobs are of a kind that nobody had looked for there.
#[tokio::test]
async fn a_plane_that_is_watched_already_is_seen_to_have_its_data_by_the_operator_that_watches_it() {
    let world = asked().await.watched();
    let ctx = world.operator();
    let turns = async || {
        for _ in 0..12 {
            world.pass(&ctx).await;
            world.settle().await;
        }
    };
    turns().await;
    for _ in 0..6 {
        turns().await;
        jobs_run(&world);
        world.settle().await;
        approve_in(&world, RestorePhase::AwaitingApproval);
    }
    assert_eq!(step(&world.object()), Some(KarmadaRestoreStep::Compare), "{}", world.message());
}

#[tokio::test]
async fn a_plane_goes_back_to_the_volumes_of_before_where_somebody_approves_that_instead() {
    let world = asked().await;
    let (before, writes) = (identities(&world), member_writes(&world));
    settle(&world).await;
    assert!(approve_in(&world, RestorePhase::AwaitingApproval), "{}", said(&world));
    settle(&world).await;
    assert_eq!(step(&world.object()), Some(KarmadaRestoreStep::Compare), "{}", world.message());
    assert!(
        said(&world).contains("clusterwright.dev/approve=restore.") && said(&world).contains("undo."),
        "{}",
        said(&world)
    );
    assert!(approve_in(&world, RestorePhase::Restoring));
    settle(&world).await;
    assert_eq!(phase(&world), Some(RestorePhase::Undone), "{}", said(&world));
    assert!(world.object().is_true("Ready") && acts(&world), "{}", world.message());
    let workload = world.api.get(WORKLOAD).unwrap();
    assert_eq!(workload["spec"]["volumeClaimTemplates"][0]["metadata"]["name"], "data");
    assert_eq!((member_writes(&world), identities(&world)), (writes + 1, before), "the agent's Pod is another one");
    assert!(!world.api.names().iter().any(|name| name.contains("fetched-keys") || name.starts_with("jobs/")));
}

#[tokio::test]
async fn wherever_an_operator_is_cut_off_the_plane_is_set_back_once_and_acts_by_nothing_unapproved() {
    let begun = asked().await;
    let before = identities(&begun);
    let follow = async |world: &World| {
        for _ in 0..3 {
            settle(world).await;
            assert!(!acts(world) || step(&world.object()) != Some(KarmadaRestoreStep::Compare));
            approve_in(world, RestorePhase::AwaitingApproval);
            approve(world);
        }
    };
    let check = async |cut: Option<(usize, Cut)>| {
        let world = begun.copy();
        world.api.cut(cut);
        follow(&world).await;
        world.api.cut(None);
        follow(&world).await;
        assert_eq!(phase(&world), Some(RestorePhase::Succeeded), "{cut:?}: {}", said(&world));
        let mut world = world;
        agents_come(&mut world);
        settle(&world).await;
        assert!(world.object().is_true("Ready"), "{cut:?}: {}", world.message());
        assert_eq!(identities(&world), before, "{cut:?}");
        let uid = world.api.get(WORKLOAD).unwrap()["metadata"]["uid"].clone();
        (world.api.names(), uid, world.api.writes())
    };
    let (names, uid, writes) = check(None).await;
    for number in (begun.api.writes()..writes).step_by(23) {
        for cut in [Cut::Before, Cut::After] {
            let (now, workload, _) = check(Some((number, cut))).await;
            assert_eq!((now, workload), (names.clone(), uid.clone()), "{number} {cut:?}: etcd was made twice");
        }
    }
}
