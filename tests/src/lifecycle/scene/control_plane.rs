//! Control planes come and go under a client that writes all the time.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use crds::names::{KUBECONFIG_KEY, annotation, condition, kubeconfig_secret};
use crds::step::Role;
use crds::{Cluster, conditions};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::Api;
use lab::machines::Machine;
use serde_json::json;

use super::Seen;
use super::losses::{FORGOTTEN_AFTER, quarantined_until_clean, remediate, replacement};
use crate::client::client_of;
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, READY, Stage};
use crate::lifecycle::writer::Writer;

/// An election, on two cores that do all the rest too.
const ELECTION: Duration = Duration::from_secs(10);
/// As long may the API be away when the machine that held its address is killed.
const TAKEOVER: Duration = Duration::from_secs(10);
const MEMBERS: &str = "ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/etcd/pki/ca.crt \
     --cert=/etc/etcd/pki/healthcheck-client.crt --key=/etc/etcd/pki/healthcheck-client.key member list";

/// 1 -> 3, one after the other.
pub async fn grow(stage: &mut Stage<'_>) -> Result<Seen> {
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    planes(stage, 3).await?;
    stage.ready(3 + stage.workers_wished()).await?;
    let took = began.elapsed();
    let written = writer.written();
    whole(stage, 3).await?;
    ensure!(
        written.gap <= ELECTION,
        "the client waited {:.1} s",
        written.gap.as_secs_f64()
    );
    guards::hold(&stage.machines)?;
    let gap = written.gap.as_secs_f64();
    Ok(Seen {
        took,
        text: format!(
            "3 members; {} writes meanwhile, longest gap {gap:.1} s",
            written.count
        ),
    })
}

/// The machine that ran `kubeadm init` is killed.
pub async fn replace_first(stage: &mut Stage<'_>) -> Result<Seen> {
    if stage.members(Role::ControlPlane).await?.len() < 3 {
        planes(stage, 3).await?;
    }
    remediate(stage);
    stage.apply().await?;
    stage.ready(3 + stage.workers_wished()).await?;
    let before = stage.members(Role::ControlPlane).await?;
    let lost = before.first().context("there is no control plane")?;
    let machine = stage.machine_of(lost)?;
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    stage.kill(&machine)?;
    let new = replacement(stage, Role::ControlPlane, &before, lost).await?;
    let decided = began.elapsed();
    stage.scenario.say(&format!("{} takes its place", new.name_any()));
    stage
        .gone(lost, Duration::from_secs(FORGOTTEN_AFTER + 240))
        .await?;
    stage.ready(3 + stage.workers_wished()).await?;
    let took = began.elapsed();
    let written = writer.written();
    whole(stage, 3).await?;
    ensure!(
        written.gap <= ELECTION,
        "the client waited {:.1} s",
        written.gap.as_secs_f64()
    );
    if let Some(spec) = stage.wish["spec"].as_object_mut() {
        spec.remove("remediation");
    }
    stage.apply().await?;
    quarantined_until_clean(stage, &machine).await?;
    guards::hold(&stage.machines)?;
    let gap = written.gap.as_secs_f64();
    Ok(Seen {
        took,
        text: format!(
            "deleted after {:.0} s; {} writes, longest gap {gap:.1} s",
            decided.as_secs_f64(),
            written.count
        ),
    })
}

/// 3 -> 1, which waits for a person.
pub async fn shrink(stage: &mut Stage<'_>) -> Result<Seen> {
    if stage.members(Role::ControlPlane).await?.len() < 3 {
        planes(stage, 3).await?;
    }
    stage.ready(3 + stage.workers_wished()).await?;
    let free = stage.machines.len() - 3 - stage.workers_wished();
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    planes(stage, 1).await?;
    let said = eventually("it asks for an approval", Duration::from_secs(60), async || {
        let status = stage.deployment().await?.status.unwrap_or_default();
        let texts = status
            .conditions
            .iter()
            .map(|c| format!("{}: {}", c.reason, c.message));
        let texts: Vec<String> = texts.chain(status.message.clone()).collect();
        let asks = |text: &&String| text.contains("QuorumRisk") && text.contains("approve");
        Ok(match texts.iter().find(asks) {
            Some(text) => Look::Done(text.clone()),
            None => Look::Waiting(texts.join("; ")),
        })
    })
    .await?;
    stage.scenario.say(&said);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let planes = stage.members(Role::ControlPlane).await?;
    let leave = planes
        .iter()
        .filter(|machine| machine.metadata.deletion_timestamp.is_some());
    ensure!(leave.count() == 0, "a control plane leaves without an approval");
    let began = Instant::now();
    stage.tell(annotation::APPROVE).await?;
    stage.ready(1 + stage.workers_wished()).await?;
    // Who has left may still be cleaned.
    eventually("one control plane left", READY, async || {
        let left = stage.members(Role::ControlPlane).await?.len();
        Ok(match left {
            1 => Look::Done(()),
            _ => Look::Waiting(format!("{left} are there")),
        })
    })
    .await?;
    let took = began.elapsed();
    let written = writer.written();
    whole(stage, 1).await?;
    stage.available(free + 2).await?;
    ensure!(
        written.gap <= ELECTION,
        "the client waited {:.1} s",
        written.gap.as_secs_f64()
    );
    guards::hold(&stage.machines)?;
    let gap = written.gap.as_secs_f64();
    Ok(Seen {
        took,
        text: format!(
            "waited for the approval; {} writes, longest gap {gap:.1} s; both machines are clean in the pool",
            written.count
        ),
    })
}

/// The machine that holds the endpoint's address is killed.
pub async fn failover(stage: &mut Stage<'_>) -> Result<Seen> {
    let address = stage.wish["spec"]["controlPlane"]["endpoint"]["host"]
        .as_str()
        .context("there is no address")?
        .to_owned();
    let holder = holder(stage, &address)
        .await?
        .context("nobody holds the address")?;
    whole(stage, 3).await?;
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let calm = writer.written();
    ensure!(calm.count > 0, "nothing can be written to begin with");
    let began = Instant::now();
    stage.kill(&holder)?;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let written = writer.written();
    let gap = written.gap.as_secs_f64();
    ensure!(
        written.count > calm.count,
        "the API did not answer again within 30 s"
    );
    ensure!(written.gap < TAKEOVER, "the API was away for {gap:.1} s");
    let mut left = stage.machines.clone();
    left.retain(|machine| machine.name() != holder.name());
    stage.machines = left;
    ensure!(
        self::holder(stage, &address).await?.is_some(),
        "nobody holds the address"
    );
    let _ = began;
    Ok(Seen {
        took: written.gap,
        text: format!(
            "the longest gap of {} writes is {gap:.1} s",
            written.count - calm.count
        ),
    })
}

/// Who has the address now.
async fn holder(stage: &Stage<'_>, address: &str) -> Result<Option<Machine>> {
    for machine in &stage.machines {
        let addresses = stage.scenario.ssh(machine, "ip -4 -o address show").await?;
        if addresses.contains(&format!(" {address}/")) {
            return Ok(Some(machine.clone()));
        }
    }
    Ok(None)
}

async fn planes(stage: &mut Stage<'_>, count: usize) -> Result<()> {
    stage.wish["spec"]["controlPlane"]["replicas"] = json!(count);
    stage.apply().await
}

/// So many control planes: a started member of etcd and an API server on each, both with certificates that hold there; the
/// endpoint is in `cluster-info`; and the Cluster says that all is well.
async fn whole(stage: &Stage<'_>, count: usize) -> Result<()> {
    let members = stage.members(Role::ControlPlane).await?;
    ensure!(
        members.len() == count,
        "{} control planes are there",
        members.len()
    );
    let secret = stage
        .scenario
        .api::<Secret>()
        .get(&kubeconfig_secret(CLUSTER))
        .await?;
    let kubeconfig = secret.data.unwrap_or_default().remove(KUBECONFIG_KEY);
    let kubeconfig = String::from_utf8(kubeconfig.context("there is no kubeconfig")?.0)?;
    let server = kubeconfig
        .lines()
        .find_map(|line| line.trim().strip_prefix("server: "))
        .context("the kubeconfig names no server")?
        .trim_matches('"')
        .to_owned();
    let names: Vec<String> = members
        .iter()
        .filter_map(|member| member.spec.host_ref.as_ref().map(|host| host.name.clone()))
        .collect();
    for member in &members {
        let machine = stage.machine_of(member)?;
        let text = stage.scenario.ssh(&machine, MEMBERS).await?;
        let started: Vec<&str> = text.lines().filter(|line| line.contains("started")).collect();
        let known = names
            .iter()
            .all(|name| started.iter().any(|line| line.contains(name)));
        let voters = started.iter().all(|line| line.trim_end().ends_with("false"));
        ensure!(
            started.len() == count && text.lines().count() == count && known && voters,
            "etcd's members as {} sees them: {text}",
            machine.name()
        );
        let own = format!("https://{}:6443", machine.address());
        let client = client_of(&kubeconfig.replace(&server, &own)).await?;
        let info: ConfigMap = Api::namespaced(client, "kube-public")
            .get("cluster-info")
            .await
            .with_context(|| format!("the API server of {} does not answer", machine.name()))?;
        let info = info
            .data
            .unwrap_or_default()
            .remove("kubeconfig")
            .unwrap_or_default();
        ensure!(info.contains(&server), "cluster-info names no {server}: {info}");
    }
    let clusters = stage.scenario.api::<Cluster>();
    eventually("the Cluster's control plane healthy", READY, async || {
        let status = clusters.get(CLUSTER).await?.status.unwrap_or_default();
        if conditions::is_true(&status.conditions, condition::CONTROL_PLANE_HEALTHY) {
            return Ok(Look::Done(()));
        }
        if status.components.is_empty() {
            bail!("it says nothing of its components");
        }
        Ok(Look::Waiting(format!("{:?}", status.components)))
    })
    .await
}
