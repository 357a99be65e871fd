//! Restores as a user makes them: an EtcdRestore is applied, the command of its message is run, and it is waited for.

use std::time::Duration;

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use anyhow::{Context, Result, bail, ensure};
use crds::etcd_restore::{EtcdRestoreStatus, RestorePhase};
use crds::{Conditions, EtcdRestore};
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;

/// Applies a restore of a cluster from a source, with an identity in a Secret of its name.
pub async fn begin(scenario: &Scenario, name: &str, cluster: &str, source: Value, identity: &Identity) -> Result<()> {
    let key = identity.to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": scenario.name, "name": name},
        "stringData": {"identity": format!("# created: today\n{}\n", key.expose_secret())},
    });
    let restore = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdRestore",
        "metadata": {"namespace": scenario.name, "name": name},
        "spec": {"clusterName": cluster, "source": source, "identityRef": {"name": name}},
    });
    scenario.apply(&secret).await?;
    scenario.apply(&restore).await?;
    Ok(())
}

/// Waits until a restore is in this phase; another one of its ends is an error.
pub async fn reaches(
    scenario: &Scenario,
    name: &str,
    phase: RestorePhase,
    deadline: Duration,
) -> Result<EtcdRestoreStatus> {
    let api = scenario.api::<EtcdRestore>();
    let mut last = String::new();
    eventually(&format!("EtcdRestore {name} {phase:?}"), deadline, async || {
        let status = api.get(name).await?.status.unwrap_or_default();
        let message = status.message.clone().unwrap_or_default();
        if message != last {
            scenario.say(&format!("EtcdRestore {name}: {:?}: {message}", status.phase));
            last.clone_from(&message);
        }
        let ended =
            status.phase.and_then(RestorePhase::end).is_some() || status.phase == Some(RestorePhase::Interrupted);
        match status.phase {
            Some(there) if there == phase => Ok(Look::Done(status)),
            Some(there) if ended => bail!("EtcdRestore {name} is {there:?}: {message}"),
            _ => Ok(Look::Waiting(message)),
        }
    })
    .await
}

/// Runs the command that a restore's message ends with.
pub fn approve(scenario: &Scenario, message: &str) -> Result<()> {
    let (_, command) = message.rsplit_once("kubectl ").context("the message has no command")?;
    let words: Vec<&str> = command.split(' ').collect();
    let said = block_in_place(|| scenario.lab().metadata().kubectl(&words))?;
    scenario.say(said.trim());
    Ok(())
}

/// Waits until a restore was refused for this reason.
pub async fn is_refused(scenario: &Scenario, name: &str, reason: &str) -> Result<()> {
    reaches(scenario, name, RestorePhase::Failed, Duration::from_secs(120)).await?;
    let restore = scenario.api::<EtcdRestore>().get(name).await?;
    let told = restore.condition("Failed").map(|failed| failed.reason.clone()).unwrap_or_default();
    ensure!(told == reason, "the reason is {told}, not {reason}");
    Ok(())
}

/// Deletes a restore, and waits until it is gone: until then something of it is on the machines.
pub async fn delete(scenario: &Scenario, name: &str) -> Result<()> {
    let api: Api<EtcdRestore> = scenario.api();
    api.delete(name, &DeleteParams::default()).await?;
    eventually(&format!("EtcdRestore {name} gone"), Duration::from_secs(120), async || {
        Ok(match api.get_opt(name).await? {
            None => Look::Done(()),
            Some(restore) => Look::Waiting(restore.status.and_then(|status| status.message).unwrap_or_default()),
        })
    })
    .await
}
