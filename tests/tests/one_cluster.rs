//! One ClusterDeployment becomes a real cluster, and its machines come back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::conditions;
use crds::host::HostPhase;
use crds::names::condition;
use crds::playbook_run::StepPhase;
use crds::{ClusterDeployment, Host, PlaybookRun};
use e2e::bundle::{self, Bundle};
use e2e::eventually::{Look, eventually};
use e2e::objects;
use e2e::scenario::{Scenario, scenario};
use e2e::workload;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use lab::machines::Machine;
use serde_json::json;

const POD_CIDR: &str = "10.244.0.0/16";
const INSTALL: Duration = Duration::from_secs(900);
const RUN: Duration = Duration::from_secs(600);
/// A machine asks every 20 s and believes three silences; it may take a minute to learn whom to ask.
const NOTICED: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn one_deployment_becomes_a_cluster_runs_its_steps_again_and_gives_its_machines_back() {
    scenario("one", async |scenario: &Scenario| {
        let machines = scenario.machines(&["cp", "w1", "w2"]).await?;
        let (cp, w1, w2) = ("one-cp", "one-w1", "one-w2");
        scenario.apply(&objects::cluster("one", "first", POD_CIDR, &[cp], &[w1, w2])).await?;
        scenario.ready("first", INSTALL).await?;

        let client = scenario.cluster_client("first").await?;
        let nodes = workload::nodes_ready(&client, 3, Duration::from_secs(30)).await?;
        ensure!(workload::node_names(&nodes) == [cp, w1, w2], "nodes carry their Hosts' names");
        workload::service_answers(&client, w1, w2, Duration::from_secs(60)).await?;
        scenario.say("a Service answers across nodes");
        let cut_off = machines.iter().find(|machine| machine.name() == w1);
        a_node_whose_pods_are_cut_off_is_named(scenario, cut_off.context("no w1")?).await?;

        let newer = Bundle::serve(7081, bundle::make_newer)?;
        what_the_cluster_is_made_of_stays(scenario, &newer).await?;
        every_step_again_changes_nothing(scenario, &[cp], &[w1, w2]).await?;
        the_machines_come_back_and_serve_again(scenario, cp, w1, w2).await
    })
    .await;
}

/// Its kubelet goes on, so that the Node stays Ready.
async fn a_node_whose_pods_are_cut_off_is_named(scenario: &Scenario, machine: &Machine) -> Result<()> {
    let api = scenario.api::<ClusterDeployment>();
    let network = async |what: &str, holds: &dyn Fn(&Condition) -> bool| {
        eventually(what, NOTICED, async || {
            let status = api.get("first").await?.status.unwrap_or_default();
            let ready = conditions::find(&status.conditions, condition::NETWORK_READY).cloned();
            Ok(match ready {
                Some(ready) if holds(&ready) => Look::Done(()),
                ready => Look::Waiting(format!("{ready:?}")),
            })
        })
        .await
    };
    let probe = "systemctl is-active clusterwright-network-probe && systemctl show -p NRestarts --value clusterwright-network-probe";
    let state = scenario.ssh(machine, probe).await?;
    ensure!(state.split_whitespace().eq(["active", "0"]), "its probe is {state}");
    scenario
        .ssh(
            machine,
            &format!(
                "nft add table ip cut && nft 'add chain ip cut out {{ type filter hook output priority 0; }}' && \
                 nft 'add rule ip cut out oifname host0 ip daddr {POD_CIDR} drop'"
            ),
        )
        .await?;
    network("the node that is cut off is named", &|ready| {
        ready.status == "False" && ready.reason == "NodesCutOff" && ready.message.contains(machine.name())
    })
    .await?;
    scenario.say("a node whose Pods are cut off is named");
    scenario.ssh(machine, "nft delete table ip cut").await?;
    network("the network is Ready again", &|ready| ready.status == "True").await?;
    scenario.say("its Pods are connected again");
    Ok(())
}

/// The status names each component, and each run from now on installs these, of a bundle that has newer ones.
async fn what_the_cluster_is_made_of_stays(scenario: &Scenario, newer: &Bundle) -> Result<()> {
    let api = scenario.api::<ClusterDeployment>();
    let status = api.get("first").await?.status.unwrap_or_default();
    let index = bundle::index()?;
    let artifacts = index["artifacts"].as_array().context("the index has artifacts")?;
    for name in ["etcd", "containerd", "runc", "kubelet", "registry.k8s.io/pause"] {
        let artifact = artifacts.iter().find(|artifact| artifact["name"] == name);
        let artifact = artifact.with_context(|| format!("the bundle has no {name}"))?;
        let known = status.components.iter().find(|component| component.name == name);
        let known = known.with_context(|| format!("status.components has no {name}: {:?}", status.components))?;
        let digest = artifact["arch"].as_str().and_then(|arch| known.digests.get(arch));
        ensure!(
            artifact["version"] == known.version && digest.is_some_and(|digest| artifact["sha256"] == *digest),
            "{name} is another one: {known:?} and {artifact}"
        );
    }
    let patch = json!({"spec": {"artifacts": {"url": newer.url}}});
    api.patch("first", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    scenario.say("the bundle has newer components now");
    Ok(())
}

async fn every_step_again_changes_nothing(scenario: &Scenario, control_plane: &[&str], workers: &[&str]) -> Result<()> {
    let on_control_planes = [
        "bootstrap-os",
        "preflight",
        "prepare",
        "container-runtime",
        "etcd",
        "control-plane",
        "network",
        "addons",
        "post-install",
    ];
    let on_workers = ["bootstrap-os", "preflight", "prepare", "container-runtime", "node", "network"];
    for (name, steps, hosts) in [
        ("again-control-plane", on_control_planes.as_slice(), control_plane),
        ("again-workers", on_workers.as_slice(), workers),
        ("one-step-alone", &["container-runtime"], control_plane),
    ] {
        scenario.apply(&objects::custom_run("one", name, "first", steps, hosts)).await?;
        let run = scenario.succeeded(name, RUN).await?;
        changed_nothing(&run, steps)?;
        scenario.say(&format!("{name}: {} steps, nothing changed", steps.len()));
    }
    Ok(())
}

fn changed_nothing(run: &PlaybookRun, steps: &[&str]) -> Result<()> {
    let status = run.status.clone().unwrap_or_default();
    ensure!(status.steps.len() == steps.len(), "each step is in the status: {:?}", status.steps);
    for step in &status.steps {
        ensure!(step.phase == StepPhase::Succeeded, "step {} is {:?}", step.name, step.phase);
        ensure!(step.changed == 0, "a second run of step {} changed {} things", step.name, step.changed);
    }
    ensure!(status.hosts.iter().all(|host| host.ok > 0), "each host did something: {:?}", status.hosts);
    Ok(())
}

async fn the_machines_come_back_and_serve_again(scenario: &Scenario, cp: &str, w1: &str, w2: &str) -> Result<()> {
    scenario.delete_cluster("first", Duration::from_secs(180)).await?;
    scenario.say("the cluster is gone");
    let hosts = scenario.api::<Host>();
    for name in [cp, w1, w2] {
        eventually(&format!("Host {name} Available"), Duration::from_secs(90), async || {
            let host = hosts.get(name).await?;
            let status = host.status.unwrap_or_default();
            Ok(if status.phase == Some(HostPhase::Available) && host.spec.claim_ref.is_none() {
                Look::Done(())
            } else {
                Look::Waiting(format!("{:?}: {:?}", status.phase, status.message))
            })
        })
        .await?;
    }
    scenario.say("every machine is clean and back in the pool");
    scenario.apply(&objects::cluster("one", "second", POD_CIDR, &[w1], &[cp])).await?;
    scenario.ready("second", INSTALL).await?;
    let client = scenario.cluster_client("second").await?;
    let nodes = workload::nodes_ready(&client, 2, Duration::from_secs(30)).await?;
    ensure!(workload::node_names(&nodes) == [cp, w1], "only the second cluster's nodes are there");
    Ok(())
}
