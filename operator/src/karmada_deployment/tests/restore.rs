//! A plane that is migrated: made anew of a backup, with members that go on with what they run.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::backup::{FetchedBackup, FetchedPlane, KeysFetched, SNAPSHOT_KEY};
use crds::karmada_deployment::{KarmadaMemberPhase as Phase, KarmadaRestoreStep};
use crds::names::label;
use crds::step::Step;
use crds::{Conditions, KarmadaDeployment, Machine, PlaybookRun};
use plan::encryption::Scheme;
use plan::karmada_deployment::pki::TABLE;
use serde_json::{Value, json};

use super::world::{KEY, MANY, UID, World};
use crate::fake_api::{Cut, FakeApi};
use crate::pki::Pki;

const GROUP: &str = "apiVersion: clusterwright.dev/v1alpha1";
/// The UID of the plane that was backed up.
const FORMER: &str = "uid-of-the-former-plane";

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

/// A ConfigMap that Karmada has put there.
pub(super) fn put_managed(api: &FakeApi, name: &str, value: &str) {
    let labels = json!({"karmada.io/managed": "true"});
    api.put("configmaps", &format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default, labels: {labels}}}, data: {{a: '{value}'}}}}"));
}

pub(super) fn put_work(plane: &FakeApi, member: &str, names: &[&str]) {
    let manifest = |name: &&str| {
        let metadata = json!({"name": name, "namespace": "default", "labels": {"karmada.io/managed": "true"}});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}})
    };
    let manifests: Vec<Value> = names.iter().map(manifest).collect();
    plane.put("works", &format!("{{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {{name: w, namespace: karmada-es-{member}}}, spec: {{workload: {{manifests: {}}}}}}}", json!(manifests)));
}

/// What was made for the plane of the tests was made for the former one.
fn disown(api: &FakeApi) {
    for name in api.names() {
        if api.get(&name).unwrap()["metadata"]["labels"][label::KARMADA_UID] == UID {
            api.edit(&name, |object| object["metadata"]["labels"][label::KARMADA_UID] = json!(FORMER));
        }
    }
}

/// A plane with two members that has been backed up, and one that is to be made of it: what the former one had is what
/// the restored etcd has, and the members are what they were.
async fn migrating() -> World {
    migrating_to(World::new().await).await
}

/// The same, of this one.
async fn migrating_to(world: World) -> World {
    let former = World::new().await.with_member("pull", "pull").with_member("push", "push");
    former.passes(MANY).await;
    assert!(former.object().is_true("Ready"), "{}", former.message());
    for member in ["pull", "push"] {
        put_work(&former.plane, member, &["same", "missing"]);
        put_managed(&former.members[member], "same", "1");
        put_managed(&former.members[member], "later", "1");
    }
    let mut world = world.with_member("pull", "pull").with_member("push", "push");
    (world.plane, world.members) = (former.plane, former.members);
    [&world.plane].into_iter().chain(world.members.values()).for_each(disown);
    let from = json!({
        "source": {"stored": {"storageRef": {"name": "bucket"}, "location": "_karmada/k0/u/1"}}, "identityRef": {"name": "age"},
    });
    world.api.edit(KEY, |object| object["spec"]["restoreFrom"] = from);
    put_bucket(&world);
    world
}

/// The BackupStorage `bucket` with what it needs, and the Secret `age` with an identity.
pub(super) fn put_bucket(world: &World) {
    let s3 = "{endpoint: 'https://s3.example.com', bucket: b, region: r, credentialsRef: {name: s3}}";
    let reachable =
        "{type: Reachable, status: 'True', reason: Answers, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}";
    world.api.put("backupstorages", &format!("{{{GROUP}, kind: BackupStorage, metadata: {{name: bucket, namespace: fleet}}, spec: {{s3: {s3}}}, status: {{conditions: [{reachable}]}}}}"));
    for (name, data) in [
        ("s3", json!({"accessKeyID": base64("id"), "secretAccessKey": base64("key")})),
        ("age", json!({"identity": base64("AGE-SECRET-KEY-1")})),
    ] {
        world.api.put(
            "secrets",
            &format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: fleet}}, data: {data}}}"),
        );
    }
}

/// At which the backup was taken.
const REVISION: u64 = 77;
/// What its revisions are raised by.
const BUMP: u64 = 1_000_000_000;

/// What the executor and etcdutl do.
pub(super) fn jobs_run(world: &World) {
    // On machines etcd's data is made by the install.
    let runs = world.api.list::<PlaybookRun>("playbookruns");
    let is_staged = runs.iter().any(|run| run.spec.steps.contains(&Step::StageBackup) && run.status.is_some());
    if is_staged && world.plane.changes() < BUMP {
        world.plane.raise(BUMP + REVISION);
    }
    for job in world.api.values("jobs") {
        let name = job["metadata"]["name"].as_str().unwrap().to_owned();
        if job["metadata"]["namespace"] == "karmada-system" {
            if job["status"].is_null() {
                world.plane.raise(BUMP + REVISION);
            }
            world.api.edit(&format!("jobs/karmada-system/{name}"), |job| {
                job["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
            });
        } else if world.api.get(&format!("pods/fleet/{name}")).is_none() {
            keys_arrive(world, &name, &job["metadata"]["uid"]);
        }
    }
}

/// Those of another plane, or of this one where an EtcdRestore asks for them.
fn keys_arrive(world: &World, job: &str, uid: &Value) {
    let is_own = !world.api.values("etcdrestores").is_empty();
    let now = "2026-11-27T00:00:00Z".parse().unwrap();
    let others = || -> BTreeMap<String, String> {
        let data = Pki::generate(TABLE, &Scheme::default(), now).unwrap().data();
        data.into_iter().map(|(name, content)| (name, STANDARD.encode(content.0))).collect()
    };
    let mut data = match is_own {
        true => world.api.get("secrets/fleet/k1-pki").unwrap()["data"].clone(),
        false => json!(others()),
    };
    data[SNAPSHOT_KEY] = json!(STANDARD.encode([7; 16]));
    world.api.edit("secrets/fleet/k1-fetched-keys", |secret| secret["data"] = data);
    let plane = FetchedPlane {
        name: if is_own { "k1".into() } else { "k0".into() },
        uid: if is_own { UID.into() } else { FORMER.into() },
        version: Some("1.18.2".into()),
        // Nobody listens there.
        endpoint: Some("https://127.0.0.1:1".into()),
    };
    let said = KeysFetched {
        backup: Some(FetchedBackup {
            backup: "nightly".into(),
            cluster: String::new(),
            cluster_uid: String::new(),
            plane: Some(plane),
            location: "_karmada/k0/u/1".into(),
            taken_at: serde_json::from_value(json!("2026-11-27T03:00:00Z")).unwrap(),
            revision: i64::try_from(REVISION).unwrap(),
            size: 9,
            sha256: "a0".into(),
            etcd_version: "3.6.6".into(),
            kubernetes_version: None,
            pod_cidr: String::new(),
            service_cidr: String::new(),
            dns_domain: "cluster.local".into(),
        }),
        ..KeysFetched::default()
    };
    let said = serde_json::to_string(&said).unwrap();
    let state = json!({"terminated": {"exitCode": 0, "message": said}});
    let container =
        json!({"name": "executor", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": true});
    let labels = json!({ (label::RESTORE_FROM): "k1" });
    world.api.put("pods", &format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {job}, namespace: fleet, labels: {labels}, ownerReferences: [{owner}]}}, status: {{containerStatuses: [{container}]}}}}"));
}

/// A person runs the command of the message, if there is one; whether there was.
pub(super) fn approve(world: &World) -> bool {
    let message = world.message();
    let Some((_, rest)) = message.split_once("clusterwright.dev/approve=") else { return false };
    let value = rest.split(' ').next().unwrap().trim_end_matches('.').to_owned();
    world.api.edit(KEY, |object| object["metadata"]["annotations"]["clusterwright.dev/approve"] = json!(value));
    true
}

/// Passes, and what Jobs do between them, until nothing happens any more.
pub(super) async fn settle(world: &World) {
    for _ in 0..6 {
        world.passes(MANY).await;
        jobs_run(world);
    }
}

pub(super) fn step(object: &KarmadaDeployment) -> Option<KarmadaRestoreStep> {
    object.status.as_ref()?.restored_from.as_ref()?.step
}

/// The UIDs of what must not be made again.
pub(super) fn identities(world: &World) -> BTreeMap<String, Value> {
    let of = |title: &str, api: &FakeApi, kinds: &[&str]| {
        let names = api.names().into_iter().filter(|name| kinds.iter().any(|kind| name.starts_with(kind)));
        let uid = |name: String| (format!("{title} {name}"), api.get(&name).unwrap()["metadata"]["uid"].clone());
        names.map(uid).collect::<BTreeMap<_, _>>()
    };
    let mut all = of("plane", &world.plane, &["works/", "clusters/", "secrets/karmada-cluster/"]);
    for (name, member) in &world.members {
        all.extend(of(name, member, &["configmaps/", "serviceaccounts/", "secrets/", "deployments/", "clusterroles/"]));
    }
    all
}

#[tokio::test]
async fn a_plane_is_migrated_and_its_members_and_what_they_run_are_the_same_as_before() {
    let world = migrating().await;
    let (before, writes) = (identities(&world), world.members.values().map(FakeApi::writes).sum::<usize>());
    settle(&world).await;
    assert_eq!(step(&world.object()), Some(KarmadaRestoreStep::Compare), "{}", world.message());
    let message = world.message();
    for words in [
        "nothing acts by it yet",
        "https://127.0.0.1:1 is not seen to serve it",
        "push: 1 object created: ConfigMap default/missing; 1 object left without a Work: ConfigMap default/later",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    let now = world.members.values().map(FakeApi::writes).sum::<usize>();
    assert_eq!((now, identities(&world)), (writes, before.clone()), "members were written to before it was approved");
    for name in ["scheduler", "controller-manager", "kube-controller-manager"] {
        assert!(world.api.get(&format!("deployments/karmada-system/k1-{name}")).is_none(), "{name}");
    }

    assert!(approve(&world));
    settle(&world).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
    assert_eq!(identities(&world), before, "nothing is made again");
    for name in ["pull", "push"] {
        let cluster = world.plane.get(&format!("clusters//{name}")).unwrap();
        assert_eq!(cluster["metadata"]["labels"][label::KARMADA_UID], UID, "it is this one's from now on");
        let deleted: Vec<String> =
            world.members[name].requests().into_iter().filter(|request| request.starts_with("DELETE")).collect();
        assert!(deleted.is_empty(), "{deleted:?}");
    }
    let names = world.api.names();
    let left =
        |name: &&String| name.contains("fetched-keys") || name.starts_with("jobs/") || name.contains("etcd-restore");
    assert!(!names.iter().any(|name| left(&name)), "{names:?}");
    assert!(names.contains(&"persistentvolumeclaims/karmada-system/data-k1-etcd-0".to_owned()));
    let writes = world.writes();
    world.passes(3).await;
    assert_eq!(world.writes(), writes, "at rest nothing is written");
}

#[tokio::test]
async fn a_pull_member_is_reached_once_its_agent_has_come_to_the_restored_plane_and_not_because_the_backup_says_so() {
    let mut world = migrating().await;
    world.agents_come = false;
    settle(&world).await;
    assert!(approve(&world));
    settle(&world).await;
    let (pull, push) = (world.member("pull"), world.member("push"));
    assert_eq!((pull.phase, pull.reason.as_str()), (Phase::Joining, "WaitingForAgent"), "{}", pull.message);
    assert_eq!(push.phase, Phase::Joined, "{}", push.message);
    assert!(step(&world.object()).is_none() && !world.object().is_true("Ready"));
    let message = world.message();
    assert!(
        message.contains("1 of 2 members are reached: pull: its agent has not come to the restored plane yet"),
        "{message}"
    );

    world.agents_come = true;
    settle(&world).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
    assert_eq!(world.member("pull").phase, Phase::Joined);
    // What was found out is remembered.
    world.plane.remove("leases/karmada-cluster/pull");
    world.agents_come = false;
    settle(&world).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
}

#[tokio::test]
async fn wherever_an_operator_is_cut_off_it_ends_with_the_same_and_has_started_nothing_unapproved() {
    let begun = migrating().await;
    let before = identities(&begun);
    let acts = |world: &World| world.api.get("deployments/karmada-system/k1-controller-manager").is_some();
    let check = async |cut: Option<(usize, Cut)>| {
        let world = begun.copy();
        world.api.cut(cut);
        settle(&world).await;
        world.api.cut(None);
        settle(&world).await;
        assert!(!acts(&world) && approve(&world), "{cut:?}: {}", world.message());
        let asked = world.api.writes();
        settle(&world).await;
        assert!(world.object().is_true("Ready"), "{cut:?}: {}", world.message());
        assert_eq!(identities(&world), before, "{cut:?}");
        (world.api.names(), asked)
    };
    let (names, asked) = check(None).await;
    let made = begun.api.writes();
    for number in (made..asked).step_by(9) {
        for cut in [Cut::Before, Cut::After] {
            assert_eq!(check(Some((number, cut))).await.0, names, "{number} {cut:?}");
        }
    }
}

#[tokio::test]
async fn a_plane_is_migrated_to_machines_and_nothing_acts_on_any_of_them_before_it_is_approved() {
    let world = migrating_to(World::on_machines(3, 3).await).await;
    let (before, writes) = (identities(&world), world.members.values().map(FakeApi::writes).sum::<usize>());
    world.passes(MANY).await;
    assert!(world.api.list::<Machine>("machines").is_empty(), "no Host is taken before there are keys");
    settle(&world).await;
    assert_eq!(step(&world.object()), Some(KarmadaRestoreStep::Compare), "{}", world.message());
    assert!(world.message().contains("nothing acts by it yet"), "{}", world.message());
    let now = world.members.values().map(FakeApi::writes).sum::<usize>();
    assert_eq!((now, identities(&world)), (writes, before.clone()), "members were written to before it was approved");
    let runs = || world.api.list::<PlaybookRun>("playbookruns");
    let staged: Vec<PlaybookRun> =
        runs().into_iter().filter(|run| run.spec.steps.contains(&Step::StageBackup)).collect();
    assert_eq!(staged.len(), 1);
    assert_eq!((staged[0].spec.hosts.len(), &staged[0].spec.vars["etcd_restore"]["sha256"]), (3, &json!("a0")));
    let brought = || -> Vec<String> {
        let runs = runs();
        runs.iter().flat_map(|run| run.spec.parts().map(|part| part.part.clone())).collect()
    };
    let acts = |part: &String| ["scheduler", "controller-manager", "kube-controller-manager"].contains(&part.as_str());
    assert!(!brought().iter().any(acts), "{:?}", brought());

    assert!(approve(&world));
    settle(&world).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
    assert_eq!(identities(&world), before, "nothing is made again");
    assert_eq!(brought().iter().filter(|part| acts(part)).count(), 3, "{:?}", brought());
    let names = world.api.names();
    let left = |name: &&String| name.contains("fetched-keys") || name.starts_with("jobs/");
    assert!(!names.iter().any(|name| left(&name)), "{names:?}");
    assert!(world.api.values("deployments").is_empty(), "nothing of it is on a host cluster");
    let writes = world.writes();
    world.passes(3).await;
    assert_eq!(world.writes(), writes, "at rest nothing is written");
}
