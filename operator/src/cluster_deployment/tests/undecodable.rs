//! An object that cannot be decoded is not one that is gone: what is decided by it waits, and all else goes on.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::ClusterDeployment;
use serde_json::{Value, json};

use super::{DEPLOYMENT, Observation, look, names_of, others_go_on, reconcile, stands, world};
use crate::cache::{Kind, Watched};
use crate::cluster_deployment::observe::live_belongings;
use crate::context::Context;
use crate::decoding::Decoded;
use crate::fake_api::FakeApi;

/// Shows what can be decoded of a kind, and registers the rest.
pub(super) fn show<K: Kind>(ctx: &Context, watched: &Watched<K>, api: &FakeApi, plural: &str) {
    let all = api.decoded::<K>(plural);
    let mut objects = Vec::new();
    ctx.cache.undecodable.keep(&K::kind(&()), &[]);
    for decoded in &all {
        match &**decoded {
            Decoded::Object(object) => objects.push(object),
            Decoded::Undecodable { why, .. } => {
                ctx.cache.undecodable.add(why);
            }
        }
    }
    if !shows(watched, &objects) {
        watched.fill(objects.into_iter().cloned().collect());
    }
}

/// Whether these are shown already, as they are.
fn shows<K: Kind>(watched: &Watched<K>, objects: &[&K]) -> bool {
    let shown = watched.everywhere();
    let version = |object: &K| (object.meta().uid.clone(), object.meta().resource_version.clone());
    let shown: BTreeSet<_> = shown.iter().map(|object| version(object)).collect();
    shown.len() == objects.len() && objects.iter().all(|object| shown.contains(&version(object)))
}

/// One look, and one pass of every object that can be decoded.
async fn turn(ctx: &Arc<Context>, api: &FakeApi) {
    look(ctx, api);
    for deployment in ctx.cache.cluster_deployments.everywhere() {
        let _ = reconcile::<Observation>(ctx.clone(), deployment).await;
    }
    look(ctx, api);
    for set in ctx.cache.machine_sets.everywhere() {
        let _ = reconcile::<crate::machine_set::Observation>(ctx.clone(), set).await;
    }
    look(ctx, api);
    for machine in ctx.cache.machines.everywhere() {
        let _ = reconcile::<crate::machine::Observation>(ctx.clone(), machine).await;
    }
    others_go_on(api);
}

async fn turns(api: &FakeApi, number: usize) {
    let ctx = api.context();
    for _ in 0..number {
        turn(&ctx, api).await;
    }
}

const BAD: &str = "2026-01-01T00:00:00+99:99";

fn condition(api: &FakeApi, type_: &str) -> Value {
    let deployment = api.get(DEPLOYMENT).unwrap();
    let conditions = deployment["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == type_);
    found.unwrap_or_default()
}

#[tokio::test]
async fn a_cluster_is_built_beside_a_host_that_cannot_be_decoded() {
    let api = world();
    api.put("hosts", &format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h9, namespace: fleet}}, spec: {{address: 10.0.0.9, ssh: {{credentialsRef: {{name: k}}}}, quarantine: {{reason: JoinFailed, message: x, machine: m, since: '{BAD}'}}}}}}"));
    turns(&api, 30).await;
    assert!(stands(&api), "{:?}", api.get(DEPLOYMENT));
}

#[tokio::test]
async fn a_host_is_not_claimed_while_one_that_cannot_be_decoded_may_be_the_same_machine() {
    let api = world();
    api.put("hosts", &format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h9, namespace: fleet}}, spec: {{address: 10.0.0.2, ssh: {{credentialsRef: {{name: k}}}}, claimRef: {{kind: Machine, name: other, uid: of-another}}}}, status: {{lastProbeAt: '{BAD}'}}}}"));
    turns(&api, 10).await;
    let claim = |host: &str| api.get(&format!("hosts/fleet/{host}")).unwrap()["spec"]["claimRef"].clone();
    assert!(claim("h1").is_object(), "{:?}", api.requests());
    assert!(claim("h2").is_null(), "{:?}", api.requests());
    api.edit("hosts/fleet/h9", |host| {
        host["spec"]["address"] = json!("10.0.0.9");
    });
    turns(&api, 10).await;
    assert!(claim("h2").is_object(), "{:?}", api.requests());
}

/// The cluster stands; then an object of it can be decoded no more, and nothing is done until it can.
async fn check(plural: &str, spoil: impl Fn(&mut Value), mend: impl Fn(&mut Value)) {
    let api = world();
    turns(&api, 30).await;
    assert!(stands(&api), "{:?}", api.get(DEPLOYMENT));
    turns(&api, 3).await;
    let key = names_of(&api, plural).pop().unwrap();
    let before = api.get(&key).unwrap();
    let (names, runs) = (api.names(), names_of(&api, "playbookruns"));
    api.edit(&key, &spoil);
    turns(&api, 3).await;
    let kind = before["kind"].as_str().unwrap().to_owned();
    let on_hold = condition(&api, "OnHold");
    assert_eq!(on_hold["status"], "True", "{kind}: {:?}", api.get(DEPLOYMENT));
    let name = before["metadata"]["name"].as_str().unwrap();
    let message = on_hold["message"].as_str().unwrap();
    assert!(message.contains(&format!("{kind} fleet/{name} cannot be decoded: ")), "{message}");
    assert_eq!(api.names(), names, "{kind}: {:?}", api.requests());
    assert_eq!(names_of(&api, "playbookruns"), runs);
    let writes = api.writes();
    turns(&api, 3).await;
    assert_eq!(api.writes(), writes, "at rest nothing is written: {:?}", api.requests());
    api.edit(&key, &mend);
    turns(&api, 3).await;
    assert!(condition(&api, "OnHold").is_null(), "{:?}", api.get(DEPLOYMENT));
    assert!(stands(&api), "{:?}", api.get(DEPLOYMENT));
    assert_eq!(api.names(), names, "{kind}: {:?}", api.requests());
}

#[tokio::test]
async fn what_cannot_be_decoded_is_not_taken_for_gone() {
    let bad = |field: &'static str| move |object: &mut Value| object["status"][field] = json!(BAD);
    let good =
        |field: &'static str| move |object: &mut Value| drop(object["status"].as_object_mut().unwrap().remove(field));
    // Boxed: all four in one future are more than a test's stack takes.
    let time = "2026-01-01T00:00:00Z";
    Box::pin(check("machines", bad("provisionedAt"), |object| object["status"]["provisionedAt"] = json!(time))).await;
    Box::pin(check("hosts", bad("lastProbeAt"), good("lastProbeAt"))).await;
    Box::pin(check("playbookruns", bad("finishedAt"), |object| object["status"]["finishedAt"] = json!(time))).await;
    Box::pin(check("machinesets", bad("replicas"), |object| object["status"]["replicas"] = json!(1))).await;
}

#[tokio::test]
async fn a_list_from_the_api_fails_where_an_object_in_it_matters_and_cannot_be_decoded() {
    let api = world();
    turns(&api, 30).await;
    let ctx = api.context();
    look(&ctx, &api);
    // The cache does not know yet.
    let key = names_of(&api, "machines").pop().unwrap();
    api.edit(&key, |machine| machine["status"]["provisionedAt"] = json!(BAD));
    let mut deployment: ClusterDeployment = serde_json::from_value(api.get(DEPLOYMENT).unwrap()).unwrap();
    let live = live_belongings(&ctx, &deployment).await;
    let error = crate::error::chain(&live.err().unwrap());
    assert!(error.contains("cannot be decoded: status.provisionedAt"), "{error}");
    deployment.metadata.name = Some("b".into());
    assert!(live_belongings(&ctx, &deployment).await.is_ok());
}
