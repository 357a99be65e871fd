//! The controllers of ClusterDeployment, MachineSet and Machine through a whole life of a cluster, cut off and refused
//! at every write.

mod own_authorities;
mod rows;
mod undecodable;

use std::sync::Arc;

use crds::{ClusterDeployment, Host, Machine};
use serde_json::{Value, json};

use super::Observation;
use crate::cases;
use crate::context::Context;
use crate::decoding::Decoded;
use crate::fake_api::{Cut, FakeApi};
use crate::reconcile::{Reconcile, reconcile};
use crate::remote::Key;
use undecodable::show;

const DEPLOYMENT: &str = "clusterdeployments/fleet/a";
const TURNS: usize = 30;

/// Two Hosts, and a cluster of one control plane and one worker that is wanted. Nobody looks for drift: each machine
/// has its moment of the day for that, and these tests may be played at any.
fn world() -> FakeApi {
    let api = FakeApi::default();
    let group = "apiVersion: clusterwright.dev/v1alpha1";
    for (host, address) in [("h1", "10.0.0.1"), ("h2", "10.0.0.2")] {
        api.put("hosts", &format!("{{{group}, kind: Host, metadata: {{name: {host}, namespace: fleet}}, spec: {{address: {address}, ssh: {{credentialsRef: {{name: k}}}}}}, status: {{cleanedEpoch: 0, conditions: [{{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"));
    }
    api.put("clusterdeployments", &format!("{{{group}, kind: ClusterDeployment, metadata: {{name: a, namespace: fleet}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1, hosts: [h1]}}, workers: [{{name: w, replicas: 1, hosts: [h2]}}], artifacts: {{url: 'http://x'}}, drift: {{checkEverySeconds: 0}}}}}}"));
    api
}

/// Shows all that is there and can be decoded; the number of changes that led to it.
fn look(ctx: &Context, api: &FakeApi) -> u64 {
    let cache = &ctx.cache;
    show(ctx, &cache.cluster_deployments, api, "clusterdeployments");
    show(ctx, &cache.clusters, api, "clusters");
    show(ctx, &cache.machine_sets, api, "machinesets");
    show(ctx, &cache.machines, api, "machines");
    show(ctx, &cache.hosts, api, "hosts");
    show(ctx, &cache.host_pools, api, "hostpools");
    show(ctx, &cache.runs, api, "playbookruns");
    show(ctx, &cache.backup_storages, api, "backupstorages");
    show(ctx, &cache.etcd_backups, api, "etcdbackups");
    show(ctx, &cache.etcd_backup_schedules, api, "etcdbackupschedules");
    show(ctx, &cache.etcd_restores, api, "etcdrestores");
    api.changes()
}

/// Looks again if something has changed since so many changes.
fn look_again(ctx: &Context, api: &FakeApi, seen: u64) -> u64 {
    match api.changes() == seen {
        true => seen,
        false => look(ctx, api),
    }
}

/// The controllers that are here.
#[derive(Clone, Copy, Debug)]
enum Controller {
    ClusterDeployments,
    MachineSets,
    Machines,
    /// Of backups, their schedules, and restores.
    Etcd,
}

impl Controller {
    const ALL: [Self; 4] = [Self::ClusterDeployments, Self::MachineSets, Self::Machines, Self::Etcd];

    /// One pass of every object, as the caches show it.
    async fn pass(self, ctx: &Arc<Context>, shown: &FakeApi) {
        match self {
            Self::ClusterDeployments => pass::<Observation>(ctx, shown, "clusterdeployments").await,
            Self::MachineSets => pass::<crate::machine_set::Observation>(ctx, shown, "machinesets").await,
            Self::Machines => pass::<crate::machine::Observation>(ctx, shown, "machines").await,
            Self::Etcd => {
                pass::<crate::etcd_backup_schedule::Observation>(ctx, shown, "etcdbackupschedules").await;
                pass::<crate::etcd_backup::Observation>(ctx, shown, "etcdbackups").await;
                pass::<crate::etcd_restore::Observation>(ctx, shown, "etcdrestores").await;
            }
        }
    }
}

/// What goes wrong is tried again by the next pass. Nobody comes to what cannot be decoded.
async fn pass<R: Reconcile>(ctx: &Arc<Context>, shown: &FakeApi, plural: &str) {
    for decoded in shown.decoded::<R::Object>(plural) {
        if let Decoded::Object(object) = &*decoded {
            // Boxed: the futures of all controllers in one are more than a test's stack takes.
            let _ = Box::pin(reconcile::<R>(ctx.clone(), Arc::new(object.clone()))).await;
        }
    }
}

/// One look at what is there, and one pass of every object.
async fn turn(ctx: &Arc<Context>, api: &FakeApi) {
    // The controller of Clusters is not here to do it.
    ctx.remote.looked(&Key::new("fleet", "a"));
    let mut seen = look(ctx, api);
    for controller in Controller::ALL {
        controller.pass(ctx, api).await;
        seen = look_again(ctx, api, seen);
    }
}

/// What the others do: a run that holds the lock works, and then succeeds; what has lost its owners goes.
fn others_go_on(api: &FakeApi) {
    let operations =
        api.get(DEPLOYMENT).map(|deployment| deployment["status"]["operations"].clone()).unwrap_or_default();
    for held in operations.as_array().into_iter().flatten() {
        let key = format!("playbookruns/fleet/{}", held["run"].as_str().unwrap());
        let Some(run) = api.get(&key) else { continue };
        match run["status"]["phase"].as_str() {
            None => api.edit(&key, |run| {
                run["status"] =
                    json!({ "phase": "Running", "token": held["token"], "startedAt": "2026-01-01T00:00:00Z" });
            }),
            Some("Running") => api.edit(&key, |run| {
                let clean = run["spec"]["intent"] == "Reset";
                let result = |host: &Value| json!({ "name": host, "ok": 1, "clean": clean });
                let hosts: Vec<Value> = run["spec"]["hosts"].as_array().unwrap().iter().map(result).collect();
                run["status"]["hosts"] = json!(hosts);
                run["status"]["phase"] = json!("Succeeded");
                run["status"]["finishedAt"] = json!("2026-01-01T00:01:00Z");
            }),
            Some(_) => {}
        }
    }
    api.collect_garbage();
}

/// Until nothing is written any more, or for so many turns.
async fn until_rest(api: &FakeApi, turns: usize) {
    let ctx = api.context();
    for _ in 0..turns {
        let before = api.changes();
        turn(&ctx, api).await;
        others_go_on(api);
        turn(&ctx, api).await;
        if api.changes() == before && !api.is_disturbed() {
            return;
        }
    }
}

fn delete(api: &FakeApi) {
    if api.get(DEPLOYMENT).is_some() {
        api.edit(DEPLOYMENT, |deployment| {
            deployment["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
    }
}

fn names_of(api: &FakeApi, plural: &str) -> Vec<String> {
    let prefix = format!("{plural}/");
    let names = api.names();
    names.into_iter().filter(|name| name.starts_with(&prefix)).collect()
}

/// What stands once the cluster does, and which runs were made until it is gone.
#[derive(Debug, PartialEq)]
struct Life {
    standing: Vec<String>,
    runs: Vec<String>,
}

/// A whole life; `mend` comes when nothing goes on any more.
async fn live(api: &FakeApi, mend: impl Fn(&FakeApi)) -> Life {
    until_rest(api, TURNS).await;
    if !stands(api) {
        mend(api);
        until_rest(api, TURNS).await;
    }
    let standing = api.names();
    let mut runs = names_of(api, "playbookruns");
    delete(api);
    for _ in 0..2 {
        let ctx = api.context();
        for _ in 0..TURNS {
            let before = api.changes();
            turn(&ctx, api).await;
            runs.extend(names_of(api, "playbookruns"));
            others_go_on(api);
            if api.changes() == before && !api.is_disturbed() {
                break;
            }
        }
        mend(api);
    }
    runs.sort();
    runs.dedup();
    Life { standing, runs }
}

fn stands(api: &FakeApi) -> bool {
    let machines: Vec<Machine> = api.list("machines");
    let provisioned = |machine: &Machine| machine.status.as_ref().is_some_and(|status| status.provisioned_at.is_some());
    machines.len() == 2 && machines.iter().all(provisioned)
}

/// Nothing of the cluster is left, and its Hosts are nobody's.
fn assert_gone(api: &FakeApi, place: &str) {
    let left: Vec<String> = api.names().into_iter().filter(|name| !name.starts_with("hosts/")).collect();
    assert_eq!(left, [""; 0], "{place}");
    for host in api.list::<Host>("hosts") {
        let (claim, epoch) = (&host.spec.claim_ref, host.spec.claim_epoch);
        assert_eq!((claim, epoch), (&None, 1), "{place}: claimed once, and given back");
        assert_eq!(host.metadata.finalizers.unwrap_or_default(), [""; 0], "{place}");
    }
}

#[tokio::test]
async fn a_cluster_lives_and_goes_and_at_rest_nothing_is_written() {
    let api = world();
    until_rest(&api, TURNS).await;
    assert!(stands(&api), "{:#?}", api.requests());
    let before = api.writes();
    let ctx = api.context();
    for _ in 0..3 {
        turn(&ctx, &api).await;
    }
    assert_eq!(api.writes(), before, "{:#?}", &api.requests()[before..]);
    let requests = api.requests();
    let first = |wanted: &str| requests.iter().position(|request| request.starts_with(wanted)).unwrap();
    assert!(
        first("PUT clusterdeployments/fleet/a/status") < first("PATCH machinesets/"),
        "the lock is there before anything is made: {requests:#?}"
    );
    let life = live(&api, |_| {}).await;
    assert_eq!(
        life.runs.len(),
        5,
        "an install, a preparation and a join of the worker, a reset of it, one of the control plane: {:?}",
        life.runs
    );
    assert_gone(&api, "undisturbed");
}

/// Wherever the operator is cut off, the next one goes on, makes the same objects and no others.
#[tokio::test]
async fn a_crash_at_any_write_of_a_clusters_life_changes_nothing_in_the_end() {
    let whole = world();
    let expected = live(&whole, |_| {}).await;
    for (turn, kind) in [Cut::Before, Cut::After].into_iter().enumerate() {
        for number in cases::some((0..whole.writes()).collect(), turn) {
            let api = world();
            api.cut(Some((number, kind)));
            let life = live(&api, |api| api.cut(None)).await;
            let place = format!("cut off {kind:?} write {number}: {:#?}", api.requests());
            assert_eq!(life, expected, "{place}");
            assert_gone(&api, &place);
        }
    }
}

#[tokio::test]
async fn conflicts_at_any_write_one_or_twenty_are_tried_again() {
    let whole = world();
    let expected = live(&whole, |_| {}).await;
    for (turn, times) in [1, 20].into_iter().enumerate() {
        for number in cases::some((0..whole.writes()).collect(), turn) {
            let api = world();
            api.conflict(number, times);
            let life = live(&api, |_| {}).await;
            let place = format!("{times} conflicts from write {number}: {:#?}", api.requests());
            assert_eq!(life, expected, "{place}");
            assert_gone(&api, &place);
        }
    }
}

#[tokio::test]
async fn a_cluster_that_began_to_join_a_plane_just_before_its_deletion_leaves_it_first() {
    let api = world();
    until_rest(&api, TURNS).await;
    assert!(stands(&api), "{:#?}", api.requests());
    api.put("karmadadeployments", "{apiVersion: clusterwright.dev/v1alpha1, kind: KarmadaDeployment, metadata: {name: k1, namespace: fleet}, spec: {version: 1.18.2, crds: {bundle: {url: 'https://bundle.example'}}}}");
    let ctx = api.context();
    // The cache shows the plane as it was before.
    ctx.cache.karmada_deployments.fill(api.list("karmadadeployments"));
    let plane = "karmadadeployments/fleet/k1";
    api.edit(plane, |plane| {
        plane["status"] = json!({ "members": [{
            "name": "m1", "syncMode": "push", "clusterRef": { "name": "a" }, "clusterUID": "uid", "reason": "JoiningMember",
            "message": "beginning", "since": "2026-01-01T00:00:00Z",
        }] });
    });
    delete(&api);
    let turns = async |count: usize| {
        for _ in 0..count {
            turn(&ctx, &api).await;
            others_go_on(&api);
        }
    };
    turns(4).await;
    let machines: Vec<Machine> = api.list("machines");
    assert_eq!(machines.len(), 2);
    assert!(machines.iter().all(|machine| machine.metadata.deletion_timestamp.is_none()));
    let deployment = api.list::<ClusterDeployment>("clusterdeployments").remove(0);
    let deleting = crds::conditions::find(&deployment.status.unwrap().conditions, "Deleting").cloned().unwrap();
    assert_eq!(deleting.reason, "WaitingForUnjoin", "{}", deleting.message);
    api.edit(plane, |plane| plane["status"] = json!({}));
    turns(TURNS).await;
    assert_eq!(api.list::<Machine>("machines").len(), 0);
}

fn custom(api: &FakeApi, name: &str, status: &str) {
    api.put("playbookruns", &format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: {name}, namespace: fleet}}, spec: {{clusterName: a, intent: Custom, steps: [prepare], hosts: [h1]}}, status: {status}}}"));
}

fn lock(api: &FakeApi) -> Value {
    let status = api.get(DEPLOYMENT).unwrap()["status"].clone();
    json!([status["operations"], status["lastToken"]])
}

#[tokio::test]
async fn a_holder_that_the_cache_does_not_show_is_looked_for_before_its_place_is_taken() {
    let api = world();
    custom(&api, "holder", "{phase: Running, token: 7}");
    let held = json!([{ "run": "holder", "mode": "Exclusive", "hosts": ["h1"], "token": 7, "startedAt": "2026-01-01T00:00:00Z" }]);
    api.edit(DEPLOYMENT, |deployment| {
        deployment["status"] = json!({ "operations": held, "lastToken": 7 });
    });
    let ctx = api.context();
    ctx.cache.runs.fill(Vec::new());
    let deployment = || Arc::new(api.list::<ClusterDeployment>("clusterdeployments").remove(0));
    let _ = reconcile::<Observation>(ctx.clone(), deployment()).await;
    let _ = reconcile::<Observation>(ctx.clone(), deployment()).await;
    assert_eq!(lock(&api), json!([held, 7]));
    api.edit("playbookruns/fleet/holder", |run| {
        run["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    assert_eq!(api.get("playbookruns/fleet/holder"), None);
    let _ = reconcile::<Observation>(ctx.clone(), deployment()).await;
    assert_eq!(lock(&api), json!([null, 7]));
}

#[tokio::test]
async fn a_lock_is_never_opened_by_what_a_cache_does_not_show() {
    let api = world();
    custom(&api, "old", "{phase: Succeeded, token: 41}");
    custom(&api, "waits", "{}");
    let ctx = api.context();
    // A finalizer, the lock and the authorities, while the cache shows none of the runs.
    for _ in 0..3 {
        let _ = reconcile::<Observation>(ctx.clone(), Arc::new(api.list("clusterdeployments").remove(0))).await;
    }
    look(&ctx, &api);
    let _ = reconcile::<Observation>(ctx.clone(), Arc::new(api.list("clusterdeployments").remove(0))).await;
    let status = api.get(DEPLOYMENT).unwrap()["status"].clone();
    let token = status["operations"][0]["token"].as_i64();
    assert!(token > Some(41), "{status}");
}
