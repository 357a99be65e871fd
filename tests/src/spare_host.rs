//! Spare Hosts without machines, for tests that have an API server and no lab.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use crds::Host;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

/// Makes the Host `spare-<number>`, with this address and these labels, as if a probe had just found it clean.
pub async fn create(
    client: &Client,
    namespace: &str,
    number: u8,
    address: &str,
    labels: &BTreeMap<&str, &str>,
) -> Result<()> {
    let name = format!("spare-{number}");
    let key = format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GK{number:02}");
    let hosts: Api<Host> = Api::namespaced(client.clone(), namespace);
    let host = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Host", "metadata": {"name": name, "labels": labels},
        "spec": {"address": address, "ssh": {"credentialsRef": {"name": "fleet-ssh"}, "hostKeys": [key]}},
    });
    let host = serde_json::from_value(host).context("no such object")?;
    hosts.create(&PostParams::default(), &host).await?;
    let now = Timestamp::from_second(Timestamp::now().as_second())?.to_string();
    let state = |type_: &str| json!({"type": type_, "status": "True", "reason": "ByHand", "message": "", "observedGeneration": 1, "lastTransitionTime": now});
    let conditions = ["Ready", "Reachable", "HostKeyVerified", "Clean"].map(state);
    // As if by a probe since an operator has taken the Lease, which one does later, and which a guard has answered: a
    // cluster none of whose machines answers is held until somebody approves.
    let asked = Timestamp::from_second(Timestamp::now().as_second() + 3600)?.to_string();
    let status = json!({"status": {
        "phase": "Available", "askedSince": asked, "cleanedEpoch": 0, "lastProbeAt": now, "lastProbeRun": "by-hand", "conditions": conditions,
        "fence": {"epoch": 0, "token": 0},
    }});
    hosts.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}
