//! What goes wrong says what, where, and what happens next; and what is well goes on.

use std::time::Duration;

use anyhow::{Result, ensure};
use crds::playbook_run::RunPhase;
use crds::{ClusterDeployment, Host, Machine, PlaybookRun};
use e2e::bundle::Bundle;
use e2e::eventually::{Look, eventually};
use e2e::objects;
use e2e::scenario::{Scenario, scenario};
use e2e::workload;
use lab::Lab;
use lab::machines::MachineOptions;
use serde_json::json;

/// From an outcome to the sentence about it.
const SAID: Duration = Duration::from_secs(60);
const INSTALL: Duration = Duration::from_secs(420);
/// A Host that could not be reached is looked at again after two minutes.
const PROBED: Duration = Duration::from_secs(240);

#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_rise_side_by_side_and_an_unreachable_worker_fails_alone() {
    scenario("pair", async |scenario: &Scenario| {
        let machines = scenario.machines(&["a1", "a2", "b1", "b2", "b3"]).await?;
        hosts_available(scenario, 5).await?;
        machines[4].kill()?;
        let a = objects::cluster("pair", "a", "10.241.0.0/16", &["pair-a1"], &["pair-a2"]);
        let b_workers = ["pair-b2", "pair-b3"];
        let b = objects::cluster("pair", "b", "10.245.0.0/16", &["pair-b1"], &b_workers);
        scenario.apply(&a).await?;
        scenario.apply(&b).await?;
        scenario.ready("a", INSTALL).await?;

        let client =
            eventually("a kubeconfig of b", INSTALL, async || Ok(Look::Done(scenario.cluster_client("b").await?)))
                .await?;
        let nodes = workload::nodes_ready(&client, 2, INSTALL).await?;
        ensure!(workload::node_names(&nodes) == ["pair-b1", "pair-b2"], "the reachable machines are nodes");
        let said = machine_says(scenario, "pair-b3", "Unreachable").await?;
        scenario.say(&format!("the machine on pair-b3 says: {said}"));
        eventually("the cluster's sentence names the Host", SAID, async || {
            let cluster = scenario.api::<ClusterDeployment>().get("b").await?;
            let message = cluster.status.and_then(|status| status.message).unwrap_or_default();
            Ok(match message.contains("pair-b3") {
                true => Look::Done(()),
                false => Look::Waiting(message),
            })
        })
        .await?;
        machine_says(scenario, "pair-b2", "Succeeded").await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_named_on_the_host_and_the_right_one_makes_it_available() {
    scenario("password", async |scenario: &Scenario| {
        let options = MachineOptions { password: Some("correct horse".into()), ..MachineOptions::named("password-m") };
        let machine = scenario.machine(options).await?;
        let secret = |password: &str| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "password", "name": "login"},
                "type": "kubernetes.io/basic-auth", "stringData": {"username": "root", "password": password},
            })
        };
        scenario.apply(&secret("battery staple")).await?;
        let mut host = Lab::host_manifest(&machine, "password");
        host["spec"]["ssh"]["credentialsRef"]["name"] = json!("login");
        scenario.apply(&host).await?;
        let said = host_says(scenario, "password-m", "AuthenticationFailed").await?;
        scenario.say(&format!("the Host says: {said}"));
        ensure!(!said.contains("battery staple"), "the password is in no status");

        scenario.apply(&secret("correct horse")).await?;
        // A changed Host is probed at once; a changed Secret at the next probe.
        host["spec"]["unschedulable"] = json!(true);
        scenario.apply(&host).await?;
        hosts_available(scenario, 1).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_with_a_wrong_digest_is_never_installed() {
    scenario("digest", async |scenario: &Scenario| {
        let machines = scenario.machines(&["cp"]).await?;
        let tampered = Bundle::serve(7080, |index| {
            let entries = index["artifacts"].as_array_mut();
            for entry in entries.into_iter().flatten().filter(|entry| entry["name"] == "kubelet") {
                entry["sha256"] = json!("0".repeat(64));
            }
        })?;
        let mut cluster = objects::cluster("digest", "tampered", "10.240.0.0/16", &["digest-cp"], &[]);
        cluster["spec"]["artifacts"]["url"] = json!(tampered.url);
        scenario.apply(&cluster).await?;

        let runs = scenario.api::<PlaybookRun>();
        let failure = eventually("an install that failed for its digest", INSTALL, async || {
            let runs = runs.list(&Default::default()).await?;
            let failed = runs.into_iter().filter_map(|run| run.status).find(|status| {
                status.phase == Some(RunPhase::Failed) && status.hosts.iter().any(|host| host.failure.is_some())
            });
            Ok(match failed.and_then(|status| status.hosts.into_iter().find_map(|host| host.failure)) {
                Some(failure) => Look::Done(failure),
                None => Look::Waiting("no failed run".into()),
            })
        })
        .await?;
        ensure!(failure.reason == "DigestMismatch", "the reason is the digest: {failure:?}");
        ensure!(failure.message.contains("kubelet"), "the artifact is named: {}", failure.message);
        let there =
            scenario.ssh(&machines[0], "ls /usr/local/bin/kubelet /usr/bin/kubelet 2>/dev/null || true").await?;
        ensure!(there.trim().is_empty(), "nothing unverified is on the machine: {there}");
        Ok(())
    })
    .await;
}

async fn hosts_available(scenario: &Scenario, count: usize) -> Result<()> {
    let api = scenario.api::<Host>();
    eventually(&format!("{count} Hosts Available"), PROBED, async || {
        let hosts = api.list(&Default::default()).await?.items;
        let available = hosts
            .iter()
            .filter_map(|host| host.status.as_ref())
            .filter(|status| status.phase == Some(crds::host::HostPhase::Available))
            .count();
        Ok(if available == count { Look::Done(()) } else { Look::Waiting(format!("{available} are")) })
    })
    .await
}

async fn host_says(scenario: &Scenario, name: &str, reason: &str) -> Result<String> {
    let api = scenario.api::<Host>();
    eventually(&format!("Host {name} says {reason}"), PROBED, async || {
        let status = api.get(name).await?.status.unwrap_or_default();
        Ok(if status.conditions.iter().any(|condition| condition.reason == reason) {
            Look::Done(status.message.unwrap_or_default())
        } else {
            Look::Waiting(format!("{:?}", status.message))
        })
    })
    .await
}

async fn machine_says(scenario: &Scenario, host: &str, reason: &str) -> Result<String> {
    let api = scenario.api::<Machine>();
    eventually(&format!("the machine on {host} says {reason}"), INSTALL, async || {
        let machines = api.list(&Default::default()).await?.items;
        let machine = machines
            .into_iter()
            .find(|machine| machine.spec.host_ref.as_ref().is_some_and(|reference| reference.name == host));
        let status = machine.and_then(|machine| machine.status).unwrap_or_default();
        Ok(match status.last_run {
            Some(run) if run.outcome == reason => Look::Done(run.message.unwrap_or_default()),
            other => Look::Waiting(format!("{:?}, last run {other:?}", status.message)),
        })
    })
    .await
}
