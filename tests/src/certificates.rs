//! When the certificates of a cluster's machines end, as the machines say when they are asked.

use std::time::Duration;

use anyhow::Result;
use crds::certificates::{Renewer, renewer};
use crds::step::Role;
use crds::{Machine, ObjectExt};
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use lab::machines;
use serde_json::{Value, json};

use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;

const PROBED: Duration = Duration::from_secs(180);

/// Has the machines asked at once, which is else done after hours.
pub async fn look(scenario: &Scenario, cluster: &str, machines: &[machines::Machine]) -> Result<()> {
    let hosts: Vec<&str> = machines.iter().map(machines::Machine::name).collect();
    let run: Value = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "PlaybookRun",
        "metadata": {"namespace": scenario.name, "name": "look-at-certificates"},
        "spec": {"clusterName": cluster, "intent": "Probe", "steps": ["probe-certificates"], "hosts": hosts},
    });
    scenario.apply(&run).await?;
    scenario.succeeded("look-at-certificates", PROBED).await.map(|_| ())
}

/// Waits until all certificates of every machine that the operator renews end after more than this.
pub async fn end_after(scenario: &Scenario, cluster: &str, left: SignedDuration, deadline: Duration) -> Result<()> {
    eventually("the machines' certificates end late enough", deadline, async || {
        let all = scenario.api::<Machine>().list(&ListParams::default()).await?;
        // A worker has none of these.
        let has_some = |machine: &Machine| machine.spec.cluster_name == cluster && machine.spec.role != Role::Worker;
        let machines = all.items.into_iter().filter(has_some);
        let ends = machines.map(|machine| {
            let certificates = machine.status.iter().flat_map(|status| &status.certificates);
            let ours = certificates.filter(|certificate| renewer(&certificate.name) == Some(Renewer::Run));
            (machine.name().to_owned(), ours.map(|certificate| certificate.expires_at.0).min())
        });
        let ends: Vec<(String, Option<Timestamp>)> = ends.collect();
        let now = Timestamp::now();
        let late = ends.iter().all(|(_, end)| end.is_some_and(|end| end.duration_since(now) > left));
        Ok(if late && !ends.is_empty() { Look::Done(()) } else { Look::Waiting(format!("{ends:?}")) })
    })
    .await
}
