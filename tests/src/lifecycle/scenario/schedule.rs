//! A schedule backs a cluster up each minute, and keeps two backups.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::etcd_backup::BackupPhase;
use crds::names::{condition, label};
use crds::{EtcdBackup, EtcdBackupSchedule, conditions};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use super::Seen;
use super::restores::Backups;
use crate::eventually::{Look, eventually};
use crate::lifecycle::stage::{CLUSTER, Stage};

const NAME: &str = "minutely";
const KEPT: usize = 2;
/// It is due, and taken.
const TAKEN: Duration = Duration::from_secs(150);
/// As many are due as are kept, and the next.
const REMOVED: Duration = Duration::from_secs(300);

/// The oldest goes from the API and from the bucket once enough are newer; the cluster says that it is backed up.
pub async fn keeps_two(stage: &mut Stage<'_>) -> Result<Seen> {
    let scenario = stage.scenario;
    let storage = Backups::prepare(stage, NAME).await?;
    let schedule = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackupSchedule",
        "metadata": {"namespace": scenario.name, "name": NAME},
        "spec": {
            "clusterName": CLUSTER, "schedule": "* * * * *", "retention": {"keepLast": KEPT},
            "template": {
                "storageRef": {"name": NAME},
                "encryption": {"recipients": [storage.identity.to_public().to_string()]},
            },
        },
    });
    scenario.apply(&schedule).await?;
    let began = Instant::now();
    let first = eventually("the first backup of the schedule", TAKEN, async || {
        Ok(match good(stage).await?.into_iter().next() {
            Some(backup) => Look::Done(backup),
            None => Look::Waiting("there is none".into()),
        })
    })
    .await?;
    let content = first.status.as_ref().and_then(|status| status.backup.as_ref()).context("it holds nothing")?;
    let directory = storage.bucket.bucket().join("etcd").join(&content.location);
    ensure!(directory.join("manifest.json").exists(), "{} is no backup", directory.display());
    scenario.say(&format!("EtcdBackup {} is taken", first.name_any()));
    eventually("the cluster says that it is backed up", TAKEN, async || {
        let status = stage.deployment().await?.status.unwrap_or_default();
        let said = conditions::find(&status.conditions, condition::BACKED_UP);
        Ok(match said {
            Some(said) if said.status == "True" => Look::Done(()),
            other => Look::Waiting(format!("{other:?}")),
        })
    })
    .await?;
    let api = scenario.api::<EtcdBackup>();
    eventually("the first backup is gone", REMOVED, async || {
        Ok(match api.get_opt(&first.name_any()).await? {
            None => Look::Done(()),
            Some(_) => Look::Waiting(format!("{} are there", good(stage).await?.len())),
        })
    })
    .await?;
    ensure!(!directory.exists(), "{} is still in the bucket", directory.display());
    let kept = good(stage).await?;
    ensure!((KEPT..=KEPT + 1).contains(&kept.len()), "{} are kept", kept.len());
    let seen = Seen::since(began, "one each minute, two kept, the third gone from the API and from the bucket");
    scenario.api::<EtcdBackupSchedule>().delete(NAME, &DeleteParams::default()).await?;
    for backup in of_schedule(stage).await? {
        api.delete(&backup.name_any(), &DeleteParams::default()).await?;
    }
    eventually("all its backups are gone", TAKEN, async || {
        let left = of_schedule(stage).await?.len();
        Ok(if left == 0 { Look::Done(()) } else { Look::Waiting(format!("{left} are there")) })
    })
    .await?;
    Ok(seen)
}

async fn of_schedule(stage: &Stage<'_>) -> Result<Vec<EtcdBackup>> {
    let of_schedule = ListParams::default().labels(&format!("{}={NAME}", label::SCHEDULE));
    let mut found = stage.scenario.api::<EtcdBackup>().list(&of_schedule).await?.items;
    found.sort_by_key(ResourceExt::creation_timestamp);
    Ok(found)
}

/// Those that have succeeded, oldest first.
async fn good(stage: &Stage<'_>) -> Result<Vec<EtcdBackup>> {
    let phase = |backup: &EtcdBackup| backup.status.as_ref().and_then(|status| status.phase);
    let found = of_schedule(stage).await?.into_iter();
    Ok(found.filter(|backup| phase(backup) == Some(BackupPhase::Succeeded)).collect())
}
