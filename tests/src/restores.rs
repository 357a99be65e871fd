//! Restores as a user makes them: an EtcdRestore is applied, the command of its message is run, and it is waited for.

use std::path::Path;
use std::time::{Duration, Instant};

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use anyhow::{Context, Result, ensure};
use crds::etcd_backup::BackupContent;
use crds::etcd_restore::{EtcdRestoreStatus, RestorePhase};
use crds::{Conditions, EtcdBackup, EtcdRestore};
use kube::api::{Api, DeleteParams};
use lab::machines::Machine;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use crate::backups::{self, Drill};
use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;

/// Before the command to restore, in a restore's message.
pub const DO_IT: &str = "To do it";
/// Before the command to go on after an interruption.
pub const GO_ON: &str = "to go on";
/// Before the command to go back.
pub const GO_BACK: &str = "to go back to the data of before";
/// Before the command to let a restored plane act.
pub const PROPAGATE: &str = "To have it propagate";

/// What is restored, by its name.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    /// A ClusterDeployment.
    Cluster(&'a str),
    /// A KarmadaDeployment.
    Plane(&'a str),
}

/// Applies a restore from a source, with an identity in a Secret of its name.
pub async fn begin(scenario: &Scenario, name: &str, of: Of<'_>, source: Value, identity: &Identity) -> Result<()> {
    let key = identity.to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": scenario.name, "name": name},
        "stringData": {"identity": format!("# created: today\n{}\n", key.expose_secret())},
    });
    let mut restore = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdRestore",
        "metadata": {"namespace": scenario.name, "name": name},
        "spec": {"source": source, "identityRef": {"name": name}},
    });
    match of {
        Of::Cluster(cluster) => restore["spec"]["clusterName"] = json!(cluster),
        Of::Plane(plane) => restore["spec"]["karmadaDeploymentRef"] = json!({"name": plane}),
    }
    scenario.apply(&secret).await?;
    scenario.apply(&restore).await?;
    Ok(())
}

/// Waits until a restore is in this phase; another one of its ends, or that it waits for a person, is an error.
pub async fn reaches(
    scenario: &Scenario,
    name: &str,
    phase: RestorePhase,
    deadline: Duration,
) -> Result<EtcdRestoreStatus> {
    let stays = |there: RestorePhase| there.end().is_some() || there == RestorePhase::Interrupted;
    let is_there = |status: &EtcdRestoreStatus| status.phase.is_some_and(|there| there == phase || stays(there));
    let status = until(scenario, name, &format!("{phase:?}"), deadline, is_there).await?;
    ensure!(status.phase == Some(phase), "EtcdRestore {name} is {:?}: {:?}", status.phase, status.message);
    Ok(status)
}

/// Waits until the status of a restore is what is waited for, and says each sentence that it shows meanwhile.
pub async fn until(
    scenario: &Scenario,
    name: &str,
    what: &str,
    deadline: Duration,
    is_there: impl Fn(&EtcdRestoreStatus) -> bool,
) -> Result<EtcdRestoreStatus> {
    let api = scenario.api::<EtcdRestore>();
    let mut last = String::new();
    eventually(&format!("EtcdRestore {name} {what}"), deadline, async || {
        let status = api.get(name).await?.status.unwrap_or_default();
        let message = status.message.clone().unwrap_or_default();
        if message != last {
            scenario.say(&format!("EtcdRestore {name}: {:?}: {message}", status.phase));
            last.clone_from(&message);
        }
        Ok(if is_there(&status) { Look::Done(status) } else { Look::Waiting(message) })
    })
    .await
}

/// Has a plane stopped and set back, up to the question what becomes of its members.
pub async fn serves_the_backup(scenario: &Scenario, name: &str, deadline: Duration) -> Result<()> {
    approve(scenario, name, DO_IT).await?;
    let begun = Instant::now();
    let asks = |status: &EtcdRestoreStatus| status.message.as_ref().is_some_and(|said| said.contains(PROPAGATE));
    until(scenario, name, "asks what becomes of members", deadline, asks).await?;
    scenario.say(&format!("it serves the backup's data {:.1} s after the approval", begun.elapsed().as_secs_f32()));
    Ok(())
}

/// The backup that a restore has made of what was there: it stays without the restore, and has this key of etcd. The
/// directory is that of its storage, the files are those of its bundle.
pub async fn what_was_there(
    scenario: &Scenario,
    restored: &EtcdRestoreStatus,
    directory: &Path,
    identity: &Identity,
    (files, key): (&[&str], &str),
) -> Result<BackupContent> {
    let name = &restored.safety_backup.as_ref().context("no backup was made of what was there")?.name;
    let backup = scenario.api::<EtcdBackup>().get(name).await?;
    ensure!(backup.metadata.owner_references.is_none(), "EtcdBackup {name} goes with something");
    let content = backup.status.and_then(|status| status.backup);
    let content = content.with_context(|| format!("EtcdBackup {name} holds nothing"))?;
    let scratch = tempfile::tempdir()?;
    let snapshot = scratch.path().join("snapshot.db");
    backups::read_with(directory, &content, identity, &snapshot, files)?;
    let drill = Drill::start(&snapshot, scratch.path())?;
    ensure!(drill.has(key).await?, "what was there before is not in EtcdBackup {name}: {key}");
    Ok(content)
}

/// Runs the command that stands behind these words in a restore's message, and waits until it has been seen.
pub async fn approve(scenario: &Scenario, name: &str, to: &str) -> Result<()> {
    let api = scenario.api::<EtcdRestore>();
    let message = async || Ok::<_, anyhow::Error>(api.get(name).await?.status.unwrap_or_default().message);
    let asked = message().await?.unwrap_or_default();
    let (_, command) = asked
        .split_once(&format!("{to}: kubectl "))
        .with_context(|| format!("the message has no command {to:?}: {asked}"))?;
    // More may follow, in the same sentence or in the next.
    let command = command.split(';').next().unwrap_or(command);
    let command = command.split(". ").next().unwrap_or(command);
    let words: Vec<&str> = command.split(' ').collect();
    let said = block_in_place(|| scenario.lab().metadata().kubectl(&words))?;
    scenario.say(said.trim());
    eventually(&format!("EtcdRestore {name} has seen the approval"), Duration::from_secs(30), async || {
        Ok(match message().await? {
            Some(now) if now != asked => Look::Done(()),
            now => Look::Waiting(now.unwrap_or_default()),
        })
    })
    .await
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

/// What restores leave beside etcd's data, a line each.
const LEFT: &str = "ls -d /var/lib/etcd/restore-* /var/lib/etcd/member.* 2>/dev/null || true";

/// Nothing of a restore is on these machines.
pub async fn nothing_is_left(scenario: &Scenario, machines: &[Machine]) -> Result<()> {
    for machine in machines {
        let left = left(scenario, machine).await?;
        ensure!(left.is_empty(), "left on {}: {left}", machine.name());
    }
    Ok(())
}

/// What restores have left on a machine.
pub async fn left(scenario: &Scenario, machine: &Machine) -> Result<String> {
    Ok(scenario.ssh(machine, LEFT).await?.trim().to_owned())
}
