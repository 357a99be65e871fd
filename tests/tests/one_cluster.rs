//! One ClusterDeployment becomes a real cluster, and its machines come back.

use std::time::Duration;

use anyhow::{Result, ensure};
use crds::host::HostPhase;
use crds::playbook_run::StepPhase;
use crds::{Host, PlaybookRun};
use e2e::eventually::{Look, eventually};
use e2e::objects;
use e2e::scenario::{Scenario, scenario};
use e2e::workload;

const POD_CIDR: &str = "10.244.0.0/16";
const INSTALL: Duration = Duration::from_secs(300);
const RUN: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn one_deployment_becomes_a_cluster_runs_its_steps_again_and_gives_its_machines_back() {
    scenario("one", async |scenario: &Scenario| {
        scenario.machines(&["cp", "w1", "w2"]).await?;
        let (cp, w1, w2) = ("one-cp", "one-w1", "one-w2");
        scenario
            .apply(&objects::cluster("one", "first", POD_CIDR, &[cp], &[w1, w2]))
            .await?;
        scenario.ready("first", INSTALL).await?;

        let client = scenario.cluster_client("first").await?;
        let nodes = workload::nodes_ready(&client, 3, Duration::from_secs(30)).await?;
        ensure!(
            workload::node_names(&nodes) == [cp, w1, w2],
            "nodes carry their Hosts' names"
        );
        workload::service_answers(&client, w1, w2, Duration::from_secs(60)).await?;
        scenario.say("a Service answers across nodes");

        every_step_again_changes_nothing(scenario, &[cp], &[w1, w2]).await?;
        the_machines_come_back_and_serve_again(scenario, cp, w1, w2).await
    })
    .await;
}

async fn every_step_again_changes_nothing(
    scenario: &Scenario,
    control_plane: &[&str],
    workers: &[&str],
) -> Result<()> {
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
    let on_workers = [
        "bootstrap-os",
        "preflight",
        "prepare",
        "container-runtime",
        "node",
        "network",
    ];
    for (name, steps, hosts) in [
        ("again-control-plane", on_control_planes.as_slice(), control_plane),
        ("again-workers", on_workers.as_slice(), workers),
        ("one-step-alone", &["container-runtime"], control_plane),
    ] {
        scenario
            .apply(&objects::custom_run("one", name, "first", steps, hosts))
            .await?;
        let run = scenario.succeeded(name, RUN).await?;
        changed_nothing(&run, steps)?;
        scenario.say(&format!("{name}: {} steps, nothing changed", steps.len()));
    }
    Ok(())
}

fn changed_nothing(run: &PlaybookRun, steps: &[&str]) -> Result<()> {
    let status = run.status.clone().unwrap_or_default();
    ensure!(
        status.steps.len() == steps.len(),
        "each step is in the status: {:?}",
        status.steps
    );
    for step in &status.steps {
        ensure!(
            step.phase == StepPhase::Succeeded,
            "step {} is {:?}",
            step.name,
            step.phase
        );
        ensure!(
            step.changed == 0,
            "a second run of step {} changed {} things",
            step.name,
            step.changed
        );
    }
    ensure!(
        status.hosts.iter().all(|host| host.ok > 0),
        "each host did something: {:?}",
        status.hosts
    );
    Ok(())
}

async fn the_machines_come_back_and_serve_again(
    scenario: &Scenario,
    cp: &str,
    w1: &str,
    w2: &str,
) -> Result<()> {
    scenario.delete_cluster("first", Duration::from_secs(180)).await?;
    scenario.say("the cluster is gone");
    let hosts = scenario.api::<Host>();
    for name in [cp, w1, w2] {
        eventually(
            &format!("Host {name} Available"),
            Duration::from_secs(90),
            async || {
                let host = hosts.get(name).await?;
                let status = host.status.unwrap_or_default();
                Ok(
                    if status.phase == Some(HostPhase::Available) && host.spec.claim_ref.is_none() {
                        Look::Done(())
                    } else {
                        Look::Waiting(format!("{:?}: {:?}", status.phase, status.message))
                    },
                )
            },
        )
        .await?;
    }
    scenario.say("every machine is clean and back in the pool");
    scenario
        .apply(&objects::cluster("one", "second", POD_CIDR, &[w1], &[cp]))
        .await?;
    scenario.ready("second", INSTALL).await?;
    let client = scenario.cluster_client("second").await?;
    let nodes = workload::nodes_ready(&client, 2, Duration::from_secs(30)).await?;
    ensure!(
        workload::node_names(&nodes) == [cp, w1],
        "only the second cluster's nodes are there"
    );
    Ok(())
}
