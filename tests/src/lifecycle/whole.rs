//! What a whole control plane is.

use anyhow::{Context, Result, ensure};
use crds::names::condition;
use crds::step::Role;
use crds::{Cluster, conditions};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;
use lab::machines::Machine;

use super::stage::{CLUSTER, READY, Stage};
use crate::client::client_of;
use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;

/// etcdctl on a machine with a member of etcd.
pub const ETCDCTL: &str = "ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/etcd/pki/ca.crt \
     --cert=/etc/etcd/pki/healthcheck-client.crt --key=/etc/etcd/pki/healthcheck-client.key";

/// Lists the members of etcd on a machine that has one.
pub fn list_members() -> String {
    format!("{ETCDCTL} member list")
}

/// So many control planes, each with an API server of its own; a started member of etcd on each, or on each machine of
/// etcd where there are such; and the Cluster says that all is well.
pub async fn whole(stage: &Stage<'_>, count: usize) -> Result<()> {
    match stage.members(Role::Etcd).await?.len() {
        0 => etcd_members(stage, Role::ControlPlane, count).await?,
        dedicated => etcd_members(stage, Role::Etcd, dedicated).await?,
    }
    api_servers(stage, count).await?;
    healthy(stage.scenario, CLUSTER).await
}

/// The machines of this role are so many, and etcd's members are started voters on exactly these, as each of them sees
/// it.
pub async fn etcd_members(stage: &Stage<'_>, role: Role, count: usize) -> Result<()> {
    let machines = machines(stage, role, count).await?;
    for machine in &machines {
        let text = stage.scenario.ssh(machine, &list_members()).await?;
        let started: Vec<&str> = text.lines().filter(|line| line.contains("started")).collect();
        let known = machines.iter().all(|machine| started.iter().any(|line| line.contains(machine.name())));
        let voters = started.iter().all(|line| line.trim_end().ends_with("false"));
        ensure!(
            started.len() == count && text.lines().count() == count && known && voters,
            "etcd's members as {} sees them: {text}",
            machine.name()
        );
    }
    Ok(())
}

/// So many control planes: an API server on each, with a certificate that holds there; the endpoint is in
/// `cluster-info`.
pub async fn api_servers(stage: &Stage<'_>, count: usize) -> Result<()> {
    let server = server_in(&stage.scenario.kubeconfig(CLUSTER).await?)?;
    for (machine, client) in each_api_server(stage, count).await? {
        let info: ConfigMap = Api::namespaced(client, "kube-public")
            .get("cluster-info")
            .await
            .with_context(|| format!("the API server of {} does not answer", machine.name()))?;
        let info = info.data.unwrap_or_default().remove("kubeconfig").unwrap_or_default();
        ensure!(info.contains(&server), "cluster-info names no {server}: {info}");
    }
    Ok(())
}

/// A client of each control plane's own API server, of which there are so many.
pub async fn each_api_server(stage: &Stage<'_>, count: usize) -> Result<Vec<(Machine, Client)>> {
    let kubeconfig = stage.scenario.kubeconfig(CLUSTER).await?;
    let server = server_in(&kubeconfig)?;
    let mut found = Vec::new();
    for machine in machines(stage, Role::ControlPlane, count).await? {
        let own = format!("https://{}:6443", machine.address());
        let client = client_of(&kubeconfig.replace(&server, &own)).await?;
        found.push((machine, client));
    }
    Ok(found)
}

fn server_in(kubeconfig: &str) -> Result<String> {
    let server = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("server: "));
    Ok(server.context("the kubeconfig names no server")?.trim_matches('"').to_owned())
}

async fn machines(stage: &Stage<'_>, role: Role, count: usize) -> Result<Vec<Machine>> {
    let members = stage.members(role).await?;
    ensure!(members.len() == count, "{} Machines are {role:?}, not {count}", members.len());
    members.iter().map(|member| stage.machine_of(member)).collect()
}

/// The Cluster says that its control plane's components work.
pub async fn healthy(scenario: &Scenario, cluster: &str) -> Result<()> {
    let clusters = scenario.api::<Cluster>();
    eventually("the Cluster's control plane healthy", READY, async || {
        let status = clusters.get(cluster).await?.status.unwrap_or_default();
        if conditions::is_true(&status.conditions, condition::CONTROL_PLANE_HEALTHY) {
            return Ok(Look::Done(()));
        }
        Ok(Look::Waiting(format!("{:?}", status.components)))
    })
    .await
}
