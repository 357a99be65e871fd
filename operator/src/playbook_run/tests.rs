use std::sync::Arc;

use crds::PlaybookRun;
use crds::playbook_run::RunPhase;
use k8s_openapi::ByteString;
use plan::cluster_deployment::pki::TABLE;
use plan::encryption::Scheme;
use serde_json::json;

use super::Observation;
use crate::context::Context;
use crate::fake_api::{Cut, FakeApi};
use crate::pki::Pki;
use crate::reconcile::reconcile;

const RUN: &str = "playbookruns/fleet/r";
const JOB: &str = "jobs/fleet/r";
const POD: &str = "pods/fleet/r-pod";
const HOST: &str = "hosts/fleet/h";

mod authorities;
mod external_etcd;
mod faults;
mod frozen;
mod plane_backup;
mod plane_run;
mod registries;

/// A cluster of one machine, and a run on it that holds the lock.
fn world() -> FakeApi {
    let api = FakeApi::default();
    let group = "apiVersion: clusterwright.dev/v1alpha1";
    api.put("hosts", &format!("{{{group}, kind: Host, metadata: {{name: h, namespace: fleet}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: k}}, hostKeys: [ssh-ed25519 AAAAAAAAAAAAAAAA]}}}}}}"));
    api.put("machines", &format!("{{{group}, kind: Machine, metadata: {{name: m, namespace: fleet}}, spec: {{clusterName: a, role: worker, hostRef: {{name: h}}, kubernetesVersion: 1.35.4}}}}"));
    api.put("clusterdeployments", &format!("{{{group}, kind: ClusterDeployment, metadata: {{name: a, namespace: fleet}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}, artifacts: {{url: 'http://x'}}}}, status: {{operations: [{{run: r, mode: Shared, hosts: [h], token: 9, startedAt: '2026-01-01T00:00:00Z'}}]}}}}"));
    api.put("playbookruns", &format!("{{{group}, kind: PlaybookRun, metadata: {{name: r, namespace: fleet}}, spec: {{clusterName: a, intent: Custom, steps: [prepare], hosts: [h]}}}}"));
    let machine = api.get("machines/fleet/m").unwrap()["metadata"]["uid"].clone();
    api.edit(HOST, |host| host["spec"]["claimRef"] = json!({ "kind": "Machine", "name": "m", "uid": machine }));
    secret(&api);
    pki(&api);
    api
}

/// The cluster's authorities and keys.
fn pki(api: &FakeApi) {
    let made = Pki::generate(TABLE, &Scheme::default(), jiff::Timestamp::now()).unwrap();
    let data = serde_json::to_string(&made.data()).unwrap();
    api.put(
        "secrets",
        &format!("{{apiVersion: v1, kind: Secret, metadata: {{name: a-pki, namespace: fleet}}, data: {data}}}"),
    );
}

fn secret(api: &FakeApi) {
    let key = serde_json::to_string(&ByteString(key().into_bytes())).unwrap();
    api.put(
        "secrets",
        &format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: k, namespace: fleet}}, data: {{ssh-privatekey: {key}}}}}"
        ),
    );
}

/// A private key that nobody uses, in OpenSSH's form.
fn key() -> String {
    let string = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat();
    let (public, private) = (string(&string(b"ssh-ed25519")), string(&[9; 136]));
    let (header, none) = (b"openssh-key-v1\0".to_vec(), string(b"none"));
    let bytes = [header, none.clone(), none, string(b""), vec![0, 0, 0, 1], public, private].concat();
    let body = serde_json::to_value(ByteString(bytes)).unwrap();
    let body = body.as_str().unwrap();
    format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n")
}

/// One look at what is there, and one pass of the run. What goes wrong is tried again by the next one.
async fn turn(ctx: &Arc<Context>, api: &FakeApi) {
    ctx.cache.jobs.fill(api.list("jobs"));
    ctx.cache.pods.fill(api.list("pods"));
    ctx.cache.clusters.fill(api.list("clusters"));
    ctx.cache.runs.fill(api.list("playbookruns"));
    for run in api.list::<PlaybookRun>("playbookruns") {
        let _ = reconcile::<Observation>(ctx.clone(), Arc::new(run)).await;
    }
}

/// What a cluster does: a Job gets its Pod, which runs, and then ends with a word of its executor.
fn cluster_goes_on(api: &FakeApi) {
    let Some(job) = api.get(JOB) else { return };
    match api.get(POD) {
        None if job["status"].is_null() && job["metadata"]["deletionTimestamp"].is_null() => {
            let labels = job["spec"]["template"]["metadata"]["labels"].to_string();
            let owner = job["metadata"]["uid"].as_str().unwrap();
            api.put("pods", &format!("{{apiVersion: v1, kind: Pod, metadata: {{name: r-pod, namespace: fleet, labels: {labels}, finalizers: [clusterwright.dev/outcome-recorded], ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: r, uid: {owner}, controller: true}}]}}, spec: {{nodeName: n, containers: [{{name: executor}}]}}}}"));
            state(api, "Running", json!({ "running": {} }));
        }
        Some(pod) if pod["status"]["phase"] == "Running" => {
            let arguments = &job["spec"]["template"]["spec"]["containers"][0]["args"];
            let digest =
                arguments.as_array().unwrap().iter().find(|text| text.as_str().unwrap().starts_with("sha256:"));
            let stopped = pod["metadata"]["deletionTimestamp"].is_string();
            let word = json!({ "phase": if stopped { "Canceled" } else { "Succeeded" }, "reason": "Complete", "message": "1 host done", "digest": digest });
            let code = if stopped { 143 } else { 0 };
            state(api, "Succeeded", json!({ "terminated": { "exitCode": code, "message": word.to_string() } }));
            api.edit(JOB, |job| job["status"] = json!({ "conditions": [{ "type": "Complete", "status": "True" }] }));
        }
        _ => {}
    }
}

fn state(api: &FakeApi, phase: &str, state: serde_json::Value) {
    let container =
        json!({ "name": "executor", "image": "i", "imageID": "i", "ready": true, "restartCount": 0, "state": state });
    api.edit(POD, |pod| pod["status"] = json!({ "phase": phase, "containerStatuses": [container] }));
}

async fn until_rest(api: &FakeApi, turns: usize) {
    let ctx = api.context();
    for _ in 0..turns {
        let before = api.writes();
        turn(&ctx, api).await;
        turn(&ctx, api).await;
        cluster_goes_on(api);
        let over = phase(api).is_some_and(RunPhase::is_final);
        if over && api.writes() == before {
            return;
        }
    }
}

fn phase(api: &FakeApi) -> Option<RunPhase> {
    let run: PlaybookRun = api.list("playbookruns").pop()?;
    run.status.and_then(|status| status.phase)
}

fn held(api: &FakeApi) -> Vec<String> {
    let names = api.names();
    let held = |name: &&String| {
        let finalizers = &api.get(name).unwrap()["metadata"]["finalizers"];
        finalizers.as_array().is_some_and(|finalizers| !finalizers.is_empty())
    };
    names.iter().filter(held).cloned().collect()
}

#[tokio::test]
async fn a_run_is_frozen_before_its_job_and_recorded_before_it_is_let_go() {
    let api = world();
    until_rest(&api, 10).await;
    assert_eq!(phase(&api), Some(RunPhase::Succeeded));
    let requests = api.requests();
    let position = |request: &str| {
        requests.iter().position(|there| there == request).unwrap_or_else(|| panic!("{request}: {requests:#?}"))
    };
    let order = [
        "PATCH playbookruns/fleet/r",
        "POST secrets/fleet/r",
        "POST configmaps/fleet/r",
        "POST serviceaccounts/fleet/r",
        "POST roles/fleet/r",
        "POST rolebindings/fleet/r",
        "POST jobs/fleet/r",
        "POST configmaps/fleet/r-log-0",
        "PATCH pods/fleet/r-pod",
        "PATCH jobs/fleet/r",
        "DELETE rolebindings/fleet/r",
        "DELETE roles/fleet/r",
        "DELETE serviceaccounts/fleet/r",
        "DELETE secrets/fleet/r",
    ];
    let positions: Vec<usize> = order.iter().map(|request| position(request)).collect();
    assert!(positions.is_sorted(), "{requests:#?}");
    assert_eq!(requests.iter().filter(|request| request.starts_with("POST jobs/")).count(), 1);
    assert_eq!(held(&api), [""; 0]);
    let job = api.get(JOB).unwrap();
    let arguments = job["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    assert!(arguments.contains(r#""--token","9""#), "{arguments}");
    assert!(api.get("secrets/fleet/k").is_some());
}

#[tokio::test]
async fn at_rest_nothing_is_written() {
    let api = world();
    until_rest(&api, 10).await;
    let before = api.writes();
    let ctx = api.context();
    for _ in 0..3 {
        turn(&ctx, &api).await;
    }
    assert_eq!(api.writes(), before, "{:#?}", &api.requests()[before..]);
}

/// Wherever the operator is cut off, the next one goes on, makes nothing twice, and ends the same.
#[tokio::test]
async fn a_crash_after_any_write_changes_nothing_in_the_end() {
    let whole = world();
    until_rest(&whole, 10).await;
    let names = whole.names();
    for kind in [Cut::Before, Cut::After] {
        for number in 0..whole.writes() {
            let api = world();
            api.cut(Some((number, kind)));
            until_rest(&api, 3).await;
            api.cut(None);
            until_rest(&api, 12).await;
            let place = format!("cut off {kind:?} write {number}: {:#?}", api.requests());
            assert_eq!(phase(&api), Some(RunPhase::Succeeded), "{place}");
            assert_eq!(api.names(), names, "{place}");
            assert_eq!(held(&api), [""; 0], "{place}");
            let jobs = api.requests().iter().filter(|request| request.starts_with("POST jobs/")).count();
            assert!(jobs <= 2, "{place}");
        }
    }
}

#[tokio::test]
async fn a_run_without_the_lock_makes_nothing() {
    let api = world();
    api.edit("clusterdeployments/fleet/a", |deployment| deployment["status"] = json!({}));
    until_rest(&api, 3).await;
    assert_eq!(phase(&api), Some(RunPhase::Pending));
    assert!(
        api.requests().iter().all(|request| request == "PATCH playbookruns/fleet/r/status"),
        "{:?}",
        api.requests()
    );
}

#[tokio::test]
async fn a_missing_secret_is_waited_for_and_the_run_goes_on_once_it_is_there() {
    let api = world();
    api.edit("secrets/fleet/k", |secret| secret["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    until_rest(&api, 3).await;
    let status = &api.get(RUN).unwrap()["status"];
    assert_eq!((&status["phase"], &status["conditions"][0]["reason"]), (&json!("Pending"), &json!("SecretNotFound")));
    assert_eq!(api.get(JOB), None);
    secret(&api);
    until_rest(&api, 10).await;
    assert_eq!(phase(&api), Some(RunPhase::Succeeded));
}

#[tokio::test]
async fn a_secret_of_the_runs_name_that_is_not_ours_is_neither_used_nor_deleted() {
    let api = world();
    api.put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: r, namespace: fleet}, data: {}}");
    until_rest(&api, 3).await;
    let status = &api.get(RUN).unwrap()["status"];
    assert_eq!((&status["phase"], &status["conditions"][0]["reason"]), (&json!("Pending"), &json!("NameTaken")));
    api.edit(RUN, |run| run["spec"]["cancel"] = json!(true));
    until_rest(&api, 5).await;
    assert_eq!(phase(&api), Some(RunPhase::Canceled));
    assert!(api.get("secrets/fleet/r").is_some());
}

/// A run must not take over what a person has made under its name, least of all the one whose rights it would get.
#[tokio::test]
async fn a_service_account_of_the_runs_name_that_is_not_ours_is_never_adopted() {
    let of_rbac = "apiVersion: rbac.authorization.k8s.io/v1";
    for (plural, kind, version) in [
        ("serviceaccounts", "ServiceAccount", "apiVersion: v1"),
        ("roles", "Role", of_rbac),
        ("rolebindings", "RoleBinding", of_rbac),
    ] {
        let api = world();
        let more = if kind == "RoleBinding" {
            ", roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}"
        } else {
            ""
        };
        api.put(plural, &format!("{{{version}, kind: {kind}, metadata: {{name: r, namespace: fleet}}{more}}}"));
        let theirs = format!("{plural}/fleet/r");
        let before = api.get(&theirs);
        until_rest(&api, 3).await;
        let status = &api.get(RUN).unwrap()["status"];
        let found = (&status["phase"], &status["conditions"][0]["reason"]);
        assert_eq!(found, (&json!("Pending"), &json!("NameTaken")));
        assert!(status["message"].as_str().unwrap().contains(kind));
        assert_eq!(api.get(JOB), None);
        api.edit(RUN, |run| run["spec"]["cancel"] = json!(true));
        until_rest(&api, 5).await;
        assert_eq!(phase(&api), Some(RunPhase::Canceled));
        assert_eq!(api.get(&theirs), before);
    }
}

#[tokio::test]
async fn a_run_that_is_over_leaves_nobody_who_may_report_on_it() {
    let api = world();
    until_rest(&api, 10).await;
    let left: Vec<String> = api.names().into_iter().filter(|name| name.ends_with("/r")).collect();
    assert_eq!(left, ["configmaps/fleet/r", JOB, RUN]);
}

#[tokio::test]
async fn one_label_finds_a_runs_log_and_nothing_else() {
    let api = world();
    until_rest(&api, 10).await;
    let labeled = |name: &String| {
        let labels = &api.get(name).unwrap()["metadata"]["labels"];
        labels["clusterwright.dev/log"] == "r"
    };
    let found: Vec<String> = api.names().into_iter().filter(labeled).collect();
    assert_eq!(found, ["configmaps/fleet/r-log-0"]);
}

#[tokio::test]
async fn a_run_that_is_deleted_while_it_works_ends_first() {
    let api = world();
    let ctx = api.context();
    turn(&ctx, &api).await;
    cluster_goes_on(&api);
    turn(&ctx, &api).await;
    api.edit(RUN, |run| run["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    for _ in 0..6 {
        turn(&ctx, &api).await;
        cluster_goes_on(&api);
    }
    assert_eq!(api.get(RUN), None);
    assert_eq!(held(&api), [""; 0]);
    let requests = api.requests();
    assert!(requests.iter().any(|request| request == "DELETE pods/fleet/r-pod"), "{requests:#?}");
}
