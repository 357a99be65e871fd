//! What may happen to a run's Job, Pod and node, with the whole controller: what is told, and that nothing stays held.

use std::sync::Arc;

use crds::PlaybookRun;
use crds::playbook_run::RunPhase;
use serde_json::{Value, json};

use super::{JOB, POD, RUN, cluster_goes_on, held, state, turn, until_rest, world};
use crate::context::Context;
use crate::fake_api::FakeApi;
use crate::playbook_run::Observation;
use crate::reconcile::reconcile;

/// A run whose Pod works.
async fn at_work() -> (FakeApi, Arc<Context>) {
    let api = world();
    let ctx = api.context();
    turn(&ctx, &api).await;
    cluster_goes_on(&api);
    turn(&ctx, &api).await;
    assert_eq!(super::phase(&api), Some(RunPhase::Running));
    (api, ctx)
}

/// Phase, reason and message.
fn told(api: &FakeApi) -> (String, String, String) {
    let status = api.get(RUN).unwrap()["status"].clone();
    let conditions = status["conditions"].as_array().unwrap().clone();
    let complete = conditions.iter().find(|condition| condition["type"] == "Complete").unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&status["phase"]), text(&complete["reason"]), text(&status["message"]))
}

/// The end after something has happened to a Pod at work: nothing is held, no other Job was made, and it is told so.
async fn ends(happens: impl FnOnce(&FakeApi), expected: (&str, &str), said: &str) -> FakeApi {
    let (api, ctx) = at_work().await;
    happens(&api);
    for _ in 0..5 {
        turn(&ctx, &api).await;
    }
    let (phase, reason, message) = told(&api);
    assert_eq!((phase.as_str(), reason.as_str()), expected, "{message}");
    assert!(message.contains(said), "{message}");
    assert_eq!(held(&api), [""; 0]);
    assert_eq!(api.get("serviceaccounts/fleet/r"), None);
    assert_eq!(api.get("secrets/fleet/r"), None);
    let jobs = api.requests();
    let jobs = jobs.iter().filter(|request| request.starts_with("POST jobs/"));
    assert_eq!(jobs.count(), 1);
    api
}

fn dies(api: &FakeApi, code: i32, reason: &str) {
    let end = json!({ "terminated": { "exitCode": code, "reason": reason } });
    state(api, "Failed", end);
}

/// The watches of runs and of Pods may be behind each other.
#[tokio::test]
async fn what_an_executor_reported_last_counts_though_its_end_is_seen_first() {
    let (api, ctx) = at_work().await;
    let seen: PlaybookRun = api.list("playbookruns").pop().unwrap();
    let job = api.get(JOB).unwrap();
    let arguments = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let digest = arguments.iter().find(|text| text.as_str().unwrap().starts_with("sha256:")).unwrap();
    api.edit(RUN, |run| {
        let outcome = json!({ "phase": "Succeeded", "reason": "Complete", "message": "1 host done", "digest": digest });
        run["status"]["outcome"] = outcome;
    });
    dies(&api, 0, "Completed");
    ctx.cache.pods.fill(api.list("pods"));
    let _ = reconcile::<Observation>(ctx.clone(), Arc::new(seen)).await;
    assert_eq!(super::phase(&api), Some(RunPhase::Succeeded), "{:?}", told(&api));
}

#[tokio::test]
async fn a_killed_executor_is_unknown_and_its_log_is_kept() {
    let api = ends(|api| dies(api, 137, "Error"), ("Unknown", "ExecutorKilled"), "on n was killed").await;
    assert!(api.get("configmaps/fleet/r-log-0").is_some());
    ends(|api| dies(api, 137, "OOMKilled"), ("Unknown", "OutOfMemory"), "out of memory").await;
}

#[tokio::test]
async fn an_evicted_executor_is_unknown() {
    let evicted = |api: &FakeApi| {
        dies(api, 137, "Error");
        api.edit(POD, |pod| {
            pod["status"]["reason"] = json!("Evicted");
            pod["status"]["message"] = json!("low on memory");
        });
    };
    ends(evicted, ("Unknown", "Evicted"), "low on memory").await;
}

#[tokio::test]
async fn a_deleted_pod_is_unknown_although_its_executor_ended_in_order() {
    let deleted = |api: &FakeApi| {
        api.edit(POD, |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
        cluster_goes_on(api);
    };
    ends(deleted, ("Unknown", "PodDeleted"), "its Pod was deleted").await;
}

#[tokio::test]
async fn a_lost_node_makes_the_run_unknown_without_a_log_and_its_pod_is_let_go() {
    let lost = |api: &FakeApi| {
        api.edit(POD, |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    };
    let api = ends(lost, ("Unknown", "ContactLost"), "node n does not answer").await;
    let conditions = api.get(RUN).unwrap()["status"]["conditions"].to_string();
    assert!(conditions.contains("LogKept") && conditions.contains("NoLog"), "{conditions}");
}

#[tokio::test]
async fn a_job_that_a_person_deletes_has_its_pod_stopped_and_is_unknown() {
    let (api, ctx) = at_work().await;
    api.edit(JOB, |job| job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    for _ in 0..5 {
        turn(&ctx, &api).await;
        cluster_goes_on(&api);
    }
    let (phase, reason, message) = told(&api);
    assert_eq!((phase.as_str(), reason.as_str()), ("Unknown", "JobDeleted"), "{message}");
    assert!(api.requests().contains(&format!("DELETE {POD}")));
    assert_eq!((held(&api), api.get(JOB)), (vec![], None));
}

#[tokio::test]
async fn a_killed_run_has_its_pod_ended_without_grace() {
    let (api, ctx) = at_work().await;
    api.edit(RUN, |run| run["metadata"]["annotations"] = json!({ "clusterwright.dev/kill": "1" }));
    turn(&ctx, &api).await;
    let grace = &api.get(POD).unwrap()["metadata"]["deletionGracePeriodSeconds"];
    assert_eq!(grace, &json!(0));
    dies(&api, 137, "Error");
    for _ in 0..5 {
        turn(&ctx, &api).await;
    }
    let (phase, reason, message) = told(&api);
    assert_eq!((phase.as_str(), reason.as_str()), ("Canceled", "Killed"));
    assert!(message.contains("ended before the next run begins"), "{message}");
    assert_eq!(held(&api), [""; 0]);
}

#[tokio::test]
async fn a_job_without_quota_waits_says_so_and_goes_on_by_itself() {
    let api = world();
    let ctx = api.context();
    turn(&ctx, &api).await;
    api.put("events", "{apiVersion: v1, kind: Event, type: Warning, reason: FailedCreate, message: 'Error creating: pods \"r-x\" is forbidden: exceeded quota: q', involvedObject: {kind: Job, name: r}, metadata: {name: e, namespace: fleet}}");
    turn(&ctx, &api).await;
    let (phase, reason, message) = told(&api);
    assert_eq!((phase.as_str(), reason.as_str()), ("Pending", "QuotaExceeded"));
    assert!(message.contains("exceeded quota: q"), "{message}");
    let before = api.writes();
    turn(&ctx, &api).await;
    assert_eq!(api.writes(), before);
    until_rest(&api, 10).await;
    assert_eq!(super::phase(&api), Some(RunPhase::Succeeded));
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_waited_for_and_replaced_when_another_is_wanted() {
    let api = world();
    let ctx = api.context();
    turn(&ctx, &api).await;
    cluster_goes_on(&api);
    let image = api.get(JOB).unwrap()["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    api.edit(POD, |pod| pod["spec"]["containers"][0]["image"] = image);
    let backoff = json!({ "waiting": { "reason": "ImagePullBackOff", "message": "not found" } });
    state(&api, "Pending", backoff);
    turn(&ctx, &api).await;
    let (phase, reason, message) = told(&api);
    assert_eq!((phase.as_str(), reason.as_str()), ("Pending", "ImagePullFailed"));
    assert!(message.contains("not found"), "{message}");
    api.edit("clusterdeployments/fleet/a", |deployment| deployment["spec"]["executor"] = json!({ "image": "mended" }));
    ctx.cache.cluster_deployments.fill(api.list("clusterdeployments"));
    turn(&ctx, &api).await;
    assert!(api.requests().contains(&format!("DELETE {POD}")));
    dies(&api, 137, "ContainerStatusUnknown");
    for _ in 0..5 {
        turn(&ctx, &api).await;
    }
    let (phase, reason, message) = told(&api);
    assert_eq!((phase.as_str(), reason.as_str()), ("Failed", "NotStarted"));
    assert!(message.contains("no host was touched"), "{message}");
    assert_eq!(api.get(RUN).unwrap()["status"]["retriable"], json!(true));
}
