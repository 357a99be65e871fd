//! Three control planes whose leaves end soon: they are renewed one after the other, while a client writes over the
//! endpoint, and neither an API server nor a member of etcd is started anew for it.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use crds::names::condition;
use crds::playbook_run::RunPhase;
use crds::step::Intent;
use crds::{ClusterDeployment, Conditions, ObjectExt, PlaybookRun};
use e2e::certificates;
use e2e::eventually::{Look, eventually};
use e2e::lifecycle::whole::healthy;
use e2e::lifecycle::writer::Writer;
use e2e::scenario::Scenario;
use jiff::SignedDuration;
use kube::api::{ListParams, Patch, PatchParams};
use lab::machines;
use serde_json::json;

/// The leaves that the cluster is made with.
pub const SHORT: i32 = 100;
/// Three runs, each with a minute in which the API server looks at its files.
const RENEWED: Duration = Duration::from_secs(600);
const PROBED: Duration = Duration::from_secs(180);
/// What a client may wait.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// They are not started anew: their processes and since when.
const PROCESSES: &str = "ps -C kube-apiserver,etcd -o comm=,pid=,lstart= | sort";

/// On a cluster of this name and these machines, whose leaves last [`SHORT`] days.
pub async fn are_renewed_while_a_client_writes(
    scenario: &Scenario,
    cluster: &str,
    machines: &[machines::Machine],
) -> Result<()> {
    certificates::look(scenario, cluster, machines).await?;
    let short = SignedDuration::from_hours(24 * i64::from(SHORT));
    certificates::end_after(scenario, cluster, short - SignedDuration::from_hours(24), RENEWED).await?;
    let before = processes(scenario, machines).await?;
    let writer = Writer::to(scenario, cluster).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let deployments = scenario.api::<ClusterDeployment>();
    let edit = json!({"spec": {"certificates": {"validityDays": 365, "renewBeforeDays": SHORT + 20}}});
    deployments.patch(cluster, &PatchParams::default(), &Patch::Merge(edit)).await?;
    certificates::end_after(scenario, cluster, SignedDuration::from_hours(24 * 360), RENEWED).await?;
    eventually("the certificates are valid", PROBED, async || {
        let found = deployments.get(cluster).await?;
        let said = found.condition(condition::CERTIFICATES_VALID);
        Ok(match said {
            Some(said) if said.reason == "Valid" => Look::Done(()),
            Some(said) if said.reason == "RenewalFailed" => bail!("{}", said.message),
            said => Look::Waiting(format!("{said:?}")),
        })
    })
    .await?;
    let written = writer.written();
    drop(writer);
    scenario.say(&format!("renewed; {}", written.told()));
    ensure!(written.gap < LONGEST_WAIT, "a client waited {:?}", written.gap);
    let after = processes(scenario, machines).await?;
    ensure!(before == after, "API servers and etcd go on: {before:?} -> {after:?}");
    one_after_the_other(scenario).await?;
    healthy(scenario, cluster).await
}

async fn processes(scenario: &Scenario, machines: &[machines::Machine]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for machine in machines {
        found.push(scenario.ssh(machine, PROCESSES).await?);
    }
    Ok(found)
}

/// Each run was on one machine, and had ended when the next one began.
async fn one_after_the_other(scenario: &Scenario) -> Result<()> {
    let all = scenario.api::<PlaybookRun>().list(&ListParams::default()).await?;
    let renewals = all.items.into_iter().filter(|run| run.spec.intent == Intent::Renew);
    let mut times = Vec::new();
    for run in renewals {
        let status = run.status.clone().unwrap_or_default();
        ensure!(status.phase == Some(RunPhase::Succeeded), "{}: {status:?}", run.name());
        ensure!(run.spec.hosts.len() == 1, "{}: {:?}", run.name(), run.spec.hosts);
        times.push((status.started_at.map(|time| time.0), status.finished_at.map(|time| time.0)));
    }
    times.sort();
    ensure!(times.len() == 3, "a run for each machine: {times:?}");
    ensure!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "one after the other: {times:?}");
    Ok(())
}
