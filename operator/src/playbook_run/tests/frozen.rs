//! What a run works from: frozen before it begins, out of reach of edits, never taken from another.

use std::sync::Arc;

use crds::playbook_run::RunPhase;
use serde_json::json;

use super::{HOST, JOB, RUN, cluster_goes_on, held, phase, state, turn, until_rest, world};
use crate::context::Context;
use crate::fake_api::{Cut, FakeApi};

const MODEL: &str = "configmaps/fleet/r";
const SECRET: &str = "secrets/fleet/r";

fn reason(api: &FakeApi) -> String {
    let status = api.get(RUN).unwrap()["status"].clone();
    let conditions = status["conditions"].as_array().unwrap().clone();
    let complete = conditions.iter().find(|condition| condition["type"] == "Complete");
    complete.unwrap()["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_edited_or_deleted_while_a_run_works_does_not_reach_it() {
    let api = world();
    let ctx = api.context();
    turn(&ctx, &api).await;
    cluster_goes_on(&api);
    let before = (api.get(MODEL), api.get(SECRET));
    assert!(before.0.is_some() && before.1.is_some());
    assert_eq!(before.1.as_ref().unwrap()["immutable"], json!(true));
    assert_eq!(before.0.as_ref().unwrap()["immutable"], json!(true));
    api.edit("secrets/fleet/k", |secret| secret["data"] = json!({ "password": "eA==" }));
    api.edit(HOST, |host| host["spec"]["address"] = json!("10.9.9.9"));
    api.edit("clusterdeployments/fleet/a", |deployment| deployment["spec"]["kubernetesVersion"] = json!("1.36.0"));
    turn(&ctx, &api).await;
    assert_eq!((api.get(MODEL), api.get(SECRET)), before);
    api.edit("secrets/fleet/k", |secret| secret["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    until_rest(&api, 10).await;
    assert_eq!(phase(&api), Some(RunPhase::Succeeded));
}

/// Somebody deletes the frozen model and makes another of its name, before the Pod has read it.
#[tokio::test]
async fn an_executor_that_refuses_changed_inputs_ends_the_run_for_good() {
    for word in [
        json!({ "phase": "Failed", "retriable": false, "reason": "InputsChanged", "message": "the model's digest is another" }),
        json!(null),
    ] {
        let api = world();
        let ctx = api.context();
        turn(&ctx, &api).await;
        cluster_goes_on(&api);
        let arguments = api.get(JOB).unwrap()["spec"]["template"]["spec"]["containers"][0]["args"].clone();
        let digest = arguments.as_array().unwrap().iter().find(|text| text.as_str().unwrap().starts_with("sha256:"));
        let digest = digest.unwrap().clone();
        api.edit(MODEL, |map| map["data"]["inputs.json"] = json!("{}"));
        turn(&ctx, &api).await;
        let mut word = word;
        if word.is_object() {
            word["digest"] = digest;
        }
        let end = json!({ "terminated": { "exitCode": 10, "message": word.to_string() } });
        state(&api, "Failed", end);
        until_rest(&api, 5).await;
        let status = api.get(RUN).unwrap()["status"].clone();
        assert_eq!((&status["phase"], &status["retriable"]), (&json!("Failed"), &json!(false)));
        let expected = if word.is_object() { "InputsChanged" } else { "InputsRefused" };
        assert_eq!(reason(&api), expected);
        assert_eq!(held(&api), [""; 0]);
    }
}

/// The operator is cut off once it has frozen the model.
async fn freeze_only(ctx: &Arc<Context>, api: &FakeApi) {
    let whole = world();
    turn(&whole.context(), &whole).await;
    let requests = whole.requests();
    let frozen = requests.iter().position(|request| request == &format!("POST {MODEL}"));
    api.cut(Some((frozen.unwrap(), Cut::After)));
    turn(ctx, api).await;
    api.cut(None);
    assert!(api.get(MODEL).is_some() && api.get(JOB).is_none());
}

/// The operator is cut off between freezing and the Job; by the time it is back, the model is another's work.
#[tokio::test]
async fn a_model_that_was_changed_before_the_job_is_not_started_from() {
    let api = world();
    let ctx = api.context();
    freeze_only(&ctx, &api).await;
    api.edit(MODEL, |map| {
        let text = map["data"]["inputs.json"].as_str().unwrap().replace("10.0.0.1", "10.6.6.6");
        map["data"]["inputs.json"] = json!(text);
    });
    until_rest(&api, 5).await;
    let status = api.get(RUN).unwrap()["status"].clone();
    assert_eq!((&status["phase"], &status["retriable"]), (&json!("Failed"), &json!(true)));
    assert_eq!(reason(&api), "InputsChanged");
    assert_eq!((api.get(JOB), api.get(SECRET)), (None, None));
    assert_eq!(held(&api), [""; 0]);
}

/// A Host that was given away between freezing and the Job.
#[tokio::test]
async fn a_run_whose_host_is_anothers_by_now_is_refused_even_when_frozen() {
    let api = world();
    let ctx = api.context();
    freeze_only(&ctx, &api).await;
    api.edit(HOST, |host| {
        host["spec"]["claimRef"] = json!({ "kind": "Machine", "name": "m", "uid": "of-another-cluster" })
    });
    until_rest(&api, 5).await;
    let status = api.get(RUN).unwrap()["status"].clone();
    assert_eq!((&status["phase"], &status["retriable"]), (&json!("Failed"), &json!(false)));
    assert_eq!(reason(&api), "HostNotHeld");
    assert_eq!(api.get(JOB), None);
}

#[tokio::test]
async fn a_paused_run_freezes_and_starts_nothing_until_the_pause_ends() {
    let api = world();
    api.edit(RUN, |run| run["spec"]["paused"] = json!(true));
    until_rest(&api, 3).await;
    assert_eq!((phase(&api), reason(&api).as_str()), (Some(RunPhase::Pending), "Paused"));
    assert_eq!((api.get(MODEL), api.get(JOB)), (None, None));
    api.edit(RUN, |run| run["spec"]["paused"] = json!(false));
    until_rest(&api, 10).await;
    assert_eq!(phase(&api), Some(RunPhase::Succeeded));
}

#[tokio::test]
async fn a_run_waits_for_authorities_that_are_gone_and_makes_no_others() {
    const PKI: &str = "secrets/fleet/a-pki";
    let api = world();
    let kept = api.get(PKI).unwrap();
    api.remove(PKI);
    until_rest(&api, 3).await;
    assert_eq!((phase(&api), reason(&api).as_str()), (Some(RunPhase::Pending), "PKIMissing"));
    assert_eq!((api.get(PKI), api.get(MODEL), api.get(JOB)), (None, None, None));
    let message = api.get(RUN).unwrap()["status"]["message"].to_string();
    assert!(message.contains("kubectl -n fleet create secret generic a-pki"), "{message}");
    api.put("secrets", &kept.to_string());
    until_rest(&api, 10).await;
    assert_eq!(phase(&api), Some(RunPhase::Succeeded));
}
