//! PlaybookRuns.

use anyhow::{Result, ensure};
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{Admitted, admitted, check, check_changes, many_fields, many_hosts, refused, refused_at, run, with};

fn r() -> Value {
    run("r")
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn what_is_missing_or_unknown_is_named_row_2() -> Result<()> {
    check(&ApiServer::shared().await?, [
        (2, "no Hosts", r(), "spec.hosts", json!([null]), refused("Required value")),
        (2, "an empty list", r(), "spec.hosts", json!([[]]), refused("hosts is required for every intent but Backup")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn nothing_is_named_twice_row_9() -> Result<()> {
    check(&ApiServer::shared().await?, [
        (9, "Hosts", r(), "spec.hosts", json!([["m1", "m1"]]), refused_at("spec.hosts[1]", "Duplicate value")),
        (9, "steps", r(), "spec.steps", json!([["prepare", "prepare"]]),
            refused_at("spec.steps[1]", "Duplicate value")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_run_is_only_ever_canceled_row_15() -> Result<()> {
    let server = ApiServer::shared().await?;
    let fixed = refused_at("spec", "Forbidden");
    check_changes(&server, run("fixed"), [
        (15, "Hosts", json!({ "hosts": ["m2"] }), fixed),
        (15, "steps", json!({ "steps": ["node"] }), fixed),
        (15, "intent", json!({ "intent": "Reset" }), fixed),
        (15, "cluster", json!({ "clusterName": "other" }), fixed),
        (15, "variables", json!({ "vars": { "a": 1 } }), fixed),
        (15, "time", json!({ "timeoutSeconds": 600 }), fixed),
        (29, "playbooks", json!({ "playbooksRef": { "name": "mine" } }), fixed),
        (29, "variables of a playbook", json!({ "playbookVars": { "x": { "a": 1 } } }), fixed),
        (15, "canceled", json!({ "cancel": true }), Admitted),
    ]).await?;
    check_changes(&server, with(run("canceled"), "spec.cancel", json!(true)), [
        (15, "taken up again", json!({ "cancel": false }), refused_at("spec", "cannot be taken up again")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn what_is_too_large_is_refused_row_20() -> Result<()> {
    let large = json!([{ "blob": "x".repeat(3_200_000) }]);
    check(&ApiServer::shared().await?, [
        (20, "Hosts", r(), "spec.hosts", json!([many_hosts(501)]), refused("at most 500 items")),
        (20, "a variable", r(), "spec.vars", large, refused_at("", "too large")),
        (20, "variables", r(), "spec.vars", json!([many_fields(200)]), refused("at most 128")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn runs_are_asked_for_within_limits() -> Result<()> {
    let server = ApiServer::shared().await?;
    let probe = with(with(r(), "spec.intent", json!("Probe")), "spec.steps", json!(["probe-host"]));
    check(&server, [
        (0, "a step", r(), "spec.steps[0]", json!(["dance"]), refused("should match")),
        (0, "no step", r(), "spec.steps", json!([[]]), refused("at least 1")),
        (0, "an intent", r(), "spec.intent", json!(["Dance"]), refused("Unsupported value")),
        (0, "no cluster", r(), "spec.clusterName", json!([null]), refused_at("spec", "clusterName is required")),
        (0, "no cluster to probe", probe, "spec.clusterName", json!([null]), Admitted),
        (0, "too short", r(), "spec.timeoutSeconds", json!([179]), refused("180")),
        (0, "too long", r(), "spec.timeoutSeconds", json!([86401]), refused("86400")),
        (19, "a text", r(), "spec.vars", json!(["x"]), refused("must be of type object")),
        (19, "a text of a playbook", r(), "spec.playbookVars", json!(["x", { "x": "y" }]), refused("must be of type object")),
        (0, "no playbooks", r(), "spec.steps", json!([["custom-x"]]), refused_at("spec", "playbooksRef is required")),
        (29, "another place", r(), "spec.steps[0]", json!(["custom-../../etc/x", "custom-", "custom-A"]), refused("")),
    ]).await?;
    let vars = json!({ "a": "{{ lookup('pipe', 'id') }}", "b": { "c": [1, true, null] } });
    let kept = admitted(&server, with(r(), "spec.vars", vars.clone())).await?;
    ensure!(kept["spec"]["vars"] == vars, "variables are kept as they are: {}", kept["spec"]["vars"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_run_has_the_steps_of_its_intent_and_no_others() -> Result<()> {
    let server = ApiServer::shared().await?;
    let of = |intent: &str| with(r(), "spec.intent", json!(intent));
    let wipes = "step reset is not allowed in a run of intent Probe; allowed are: probe-host, probe-etcd, probe-certificates, probe-karmada, read-kubeconfig";
    check(&server, [
        (0, "a probe that wipes", of("Probe"), "spec.steps", json!([["reset"], ["probe-host", "reset"]]), refused_at("spec", wipes)),
        (0, "a probe that looks", of("Probe"), "spec.steps", json!([["probe-host"], ["probe-etcd"]]), Admitted),
        (0, "a reset of one's own", r(), "spec.steps", json!([["reset"], ["recover-etcd"], ["remove-etcd-member"]]),
            refused_at("spec", "is not allowed in a run of intent Custom; allowed are: bootstrap-os, ")),
        (0, "a reset", of("Reset"), "spec.steps", json!([["reset"]]), Admitted),
        (0, "a renewal", of("Renew"), "spec.steps", json!([["renew-certificates"]]), Admitted),
        (0, "another renewal", of("Custom"), "spec.steps", json!([["renew-certificates"]]), refused_at("spec", "is not allowed in a run of intent Custom")),
        (0, "an upgrade", of("Upgrade"), "spec.steps", json!([["kubeadm-upgrade", "control-plane"], ["etcd"]]), Admitted),
        (0, "what an upgrade needs", of("Prefetch"), "spec.steps", json!([["prefetch"], ["preflight-upgrade", "prefetch"]]), Admitted),
        (0, "a look ahead", of("Custom"), "spec.steps", json!([["preflight-upgrade"]]), Admitted),
        (0, "all at once", of("Upgrade"), "spec.steps", json!([["prefetch", "kubeadm-upgrade"]]), refused_at("spec", "step prefetch is not allowed in a run of intent Upgrade")),
        (0, "an intent that there is not", r(), "spec.intent", json!(["Downgrade"]), refused("Unsupported value")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_run_has_no_step_that_has_nothing_to_do_on_its_machines() -> Result<()> {
    let of_plane = |intent: &str| with(with(r(), "spec.clusterKind", json!("KarmadaDeployment")), "spec.intent", json!(intent));
    let nothing = "has nothing to do on machines of a KarmadaDeployment; those that have are: bootstrap-os, preflight, prepare, etcd,";
    check(&ApiServer::shared().await?, [
        (0, "of Nodes", of_plane("Custom"), "spec.steps", json!([["container-runtime"], ["prepare", "kubelet-configuration"]]), refused_at("spec", nothing)),
        (0, "of kubeadm", of_plane("Renew"), "spec.steps", json!([["renew-certificates"]]), refused_at("spec", nothing)),
        (0, "of services", r(), "spec.steps", json!([["karmada-programs"]]), refused_at("spec", "has nothing to do on machines of a ClusterDeployment")),
        (0, "a part by hand", of_plane("Custom"), "spec.steps", json!([["karmada-balancer"]]), refused_at("spec", "is not allowed in a run of intent Custom")),
        (0, "what works", of_plane("Custom"), "spec.steps", json!([["restart-services"], ["reboot"], ["karmada-programs", "probe-karmada"]]), Admitted),
        (0, "a look", of_plane("Probe"), "spec.steps", json!([["probe-host", "probe-etcd", "probe-certificates", "probe-karmada", "read-kubeconfig"]]), Admitted),
    ]).await
}

/// What is nested so deep that readers of JSON give up would blind everyone who lists runs; it is refused when it is
/// read.
#[tokio::test(flavor = "multi_thread")]
async fn deep_values_blind_nobody_row_19() -> Result<()> {
    let server = ApiServer::shared().await?;
    let runs: kube::Api<crds::PlaybookRun> = kube::Api::namespaced(server.client(), "default");
    for (name, open, close) in [("deep-list", "[", "]"), ("deep-map", "{\"a\":", "}")] {
        let object = with(run(name), "spec.vars", json!({ "deep": "HERE", "flat": 1 })).to_string();
        let text = object.replace("\"HERE\"", &format!("{}1{}", open.repeat(1000), close.repeat(1000)));
        let request = http::Request::post("/apis/clusterwright.dev/v1alpha1/namespaces/default/playbookruns")
            .header("content-type", "application/json")
            .body(text.into_bytes())?;
        server.client().request_text(request).await?;
        let listed = runs.list(&Default::default()).await?;
        let found = listed.iter().find(|run| run.metadata.name.as_deref() == Some(name));
        let vars = found.map(|run| run.spec.vars.clone()).unwrap_or_default();
        ensure!(vars.get("flat") == Some(&json!(1)), "{vars:?}");
        let depth = vars.get("deep").map(crds::inputs::depth).unwrap_or_default();
        ensure!(depth > crds::inputs::VARIABLE_DEPTH_LIMIT, "it is seen to be too deep: {depth}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_run_on_machines_of_a_plane_says_which_part_it_brings() -> Result<()> {
    let server = ApiServer::shared().await?;
    let of_plane = || with(r(), "spec.clusterKind", json!("KarmadaDeployment"));
    let part = |host: &str| json!({ "part": "scheduler", "digests": { host: "1.18.2-0123456789abcdef" } });
    let anonymous = json!({ "clusterKind": "KarmadaDeployment", "intent": "Probe", "steps": ["probe-host"], "hosts": ["m1"] });
    check(&server, [
        (0, "of a plane", of_plane(), "spec.steps", json!([["prepare"], ["preflight", "etcd"]]), Admitted),
        (0, "of no plane", r(), "spec", json!([anonymous]), refused_at("spec", "clusterName is required with clusterKind KarmadaDeployment")),
        (0, "of another kind", r(), "spec.clusterKind", json!(["Host"]), refused("supported values: \"ClusterDeployment\", \"KarmadaDeployment\"")),
        (0, "a part of a cluster", r(), "spec.karmada", json!([part("m1")]), refused_at("spec", "karmada and karmadaParts go with clusterKind KarmadaDeployment")),
        (0, "a part", of_plane(), "spec.karmada", json!([part("m1")]), Admitted),
        (0, "a part of another Host", of_plane(), "spec.karmada", json!([part("m9")]), refused_at("spec", "names of Hosts that are in hosts")),
        (0, "several parts", of_plane(), "spec.karmadaParts", json!([[part("m1"), { "part": "search", "digests": { "m1": "absent" } }]]), Admitted),
        (0, "several parts of a cluster", r(), "spec.karmadaParts", json!([[part("m1")]]), refused_at("spec", "karmada and karmadaParts go with clusterKind KarmadaDeployment")),
        (0, "one of several of another Host", of_plane(), "spec.karmadaParts", json!([[part("m1"), part("m9")]]), refused_at("spec", "karmadaParts[].digests has names of Hosts that are in hosts")),
        (0, "none of several", of_plane(), "spec.karmadaParts", json!([[]]), refused("should have at least 1 items")),
        (0, "one part and several", with(of_plane(), "spec.karmada", part("m1")), "spec.karmadaParts", json!([[part("m1")]]), refused_at("spec", "karmada is one part, karmadaParts are several")),
        (0, "no part's name", of_plane(), "spec.karmada", json!([{ "part": "A b", "digests": {} }]), refused("should match")),
        (0, "no digest", of_plane(), "spec.karmada", json!([{ "part": "scheduler", "digests": { "m1": "a b" } }]), refused("should match")),
    ]).await?;
    check_changes(&server, run("kind-3"), [
        (15, "another kind", json!({ "clusterKind": "KarmadaDeployment" }), refused_at("spec", "Forbidden: a PlaybookRun is immutable")),
    ]).await?;
    let plane = with(run("parts-3"), "spec.clusterKind", json!("KarmadaDeployment"));
    check_changes(&server, plane, [
        (15, "a part", json!({ "karmada": part("m1") }), refused_at("spec", "Forbidden: a PlaybookRun is immutable")),
        (15, "parts", json!({ "karmadaParts": [part("m1")] }), refused_at("spec", "Forbidden: a PlaybookRun is immutable")),
    ]).await
}
