//! Backups of random moments under a client that writes; etcd is set back to one of them at random, again and again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crds::etcd_backup::BackupContent;
use crds::etcd_restore::RestorePhase;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::Seen;
use super::restores::{Backups, RESTORED};
use crate::lifecycle::records::{Recorder, Records, found};
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::writer::Writer;
use crate::variables::number;
use crate::{backups, restores};

/// How many restores, unless CLUSTERWRIGHT_RESTORES says so.
const RESTORES: u64 = 50;
/// The longest wait before a backup, and before a restore.
const LONGEST: Duration = Duration::from_secs(6);

/// Every key that was acknowledged before the backup is there, with its revision; none that came after it is, and none
/// is there twice.
pub async fn at_random(stage: &mut Stage<'_>) -> Result<Seen> {
    let count = number("CLUSTERWRIGHT_RESTORES")?.unwrap_or(RESTORES);
    let mut random = StdRng::seed_from_u64(number("CLUSTERWRIGHT_SEED")?.unwrap_or(1));
    let storage = Backups::prepare(stage, "moments").await?;
    let began = Instant::now();
    let mut taken: Vec<(String, BackupContent, Records)> = Vec::new();
    let mut records = Records::default();
    let mut away = Vec::new();
    for round in 0..count {
        let recorder = Recorder::start(stage.scenario.kubeconfig(CLUSTER).await?, records);
        tokio::time::sleep(random.random_range(Duration::from_secs(1)..LONGEST)).await;
        let name = format!("moment-{round}");
        let content = backups::take(stage.scenario, &name, CLUSTER, storage.name, &storage.identity).await?;
        tokio::time::sleep(random.random_range(Duration::from_secs(1)..LONGEST)).await;
        taken.push((name, content.clone(), recorder.records().up_to(content.revision)));
        let (backup, content, then) = &taken[random.random_range(0..taken.len())];

        let restore = format!("moment-{round}");
        let source = json!({"backupRef": {"name": backup}});
        restores::begin(stage.scenario, &restore, restores::Of::Cluster(CLUSTER), source, &storage.identity).await?;
        let staged = restores::reaches(stage.scenario, &restore, RestorePhase::AwaitingApproval, RESTORED).await?;
        let bump = staged.staged.context("nothing is staged")?.bump;
        let writer = Writer::to(stage.scenario, CLUSTER).await?;
        restores::approve(stage.scenario, &restore, restores::DO_IT).await?;
        restores::reaches(stage.scenario, &restore, RestorePhase::Succeeded, RESTORED).await?;
        away.push(writer.written().gap);
        drop(writer);

        let later = recorder.end().await;
        records = then.clone().and_from(content.revision + bump, &later);
        records.check(&found(&stage.client().await?).await?).with_context(|| format!("{restore}, back to {backup}"))?;
        let there = records.acknowledged.len();
        stage.scenario.say(&format!("{restore}: back to {backup}, {there} records are there"));
        restores::delete(stage.scenario, &restore).await?;
    }
    let seconds = |gap: Option<&Duration>| gap.copied().unwrap_or_default().as_secs_f64();
    let (least, most) = (seconds(away.iter().min()), seconds(away.iter().max()));
    Ok(Seen::since(began, format!("{count} restores; the API was away for {least:.1} to {most:.1} s")))
}
