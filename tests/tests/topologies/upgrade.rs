//! The next minor of Kubernetes comes to a cluster, one control plane after the other.

use std::time::Duration;

use anyhow::{Result, ensure};
use crds::ClusterDeployment;
use e2e::lifecycle::whole::healthy;
use e2e::lifecycle::writer::Writer;
use e2e::objects::VERSION;
use e2e::scenario::Scenario;
use e2e::{upgrades, workload};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// Three control planes, each drained before.
const UPGRADED: Duration = Duration::from_secs(900);
/// What a client may wait: an election of etcd, and an API server that starts anew, beside another cluster.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// On a cluster of this name with so many Nodes.
pub async fn brings_the_next_minor_while_a_client_writes(
    scenario: &Scenario,
    cluster: &str,
    client: &Client,
    nodes: usize,
) -> Result<()> {
    let writer = Writer::to(scenario, cluster).await?;
    let edit = Patch::Merge(json!({"spec": {"kubernetesVersion": VERSION}}));
    scenario.api::<ClusterDeployment>().patch(cluster, &PatchParams::default(), &edit).await?;
    upgrades::brought(scenario, cluster, VERSION, UPGRADED, async || {}).await?;
    let written = writer.written();
    drop(writer);
    scenario.say(&format!("upgraded; {}", written.told()));
    let nodes = workload::nodes_ready(client, nodes, Duration::from_secs(30)).await?;
    upgrades::is_everywhere(client, &nodes, VERSION).await?;
    ensure!(written.gap < LONGEST_WAIT, "the client waited {:.1} s", written.gap.as_secs_f64());
    healthy(scenario, cluster).await
}
