//! A run without machines: the backup of an etcd that is read over its endpoints. No playbook is played; the fold
//! gets the events that one would have written.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crds::backup::BackupInputs;
use crds::etcd_backup::BackupContent;
use crds::playbook_run::RunOutcome;
use crds::step::Step;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tracing::warn;

use super::error::{RunError, system};
use super::work::RunSignals;
use crate::etcd_backup::{EndpointsFailure, OverEndpoints};
use crate::event::{Event, What};
use crate::fold::{Ending, Fold, RunFailure};
use crate::inputs::Inputs;
use crate::play::publish;
use crate::stop::Stop;

/// How long what was begun may take to be taken back after a stop, and a little more.
const CLEANED: Duration = Duration::from_secs(25);

/// Takes the backup, and states how it ended.
pub(super) async fn played(
    inputs: &Inputs,
    backup: &BackupInputs,
    signals: &mut RunSignals<'_>,
    fold: &mut Fold,
) -> Result<(RunOutcome, Option<Stop>), RunError> {
    begin(fold, false, "Read a snapshot of one member into the storage");
    publish(fold.snapshot(), signals.shown);
    let (report, mut reported) = mpsc::unbounded_channel();
    let (cancel, canceled) = oneshot::channel();
    let task = OverEndpoints::new(backup, &inputs.secrets);
    // A runtime of its own: once it is dropped, nothing of the backup goes on.
    let mut working = tokio::task::spawn_blocking(move || task.run(report, canceled));
    let stop = loop {
        tokio::select! {
            Some(bytes) = reported.recv() => {
                stored(fold, bytes);
                publish(fold.snapshot(), signals.shown);
            }
            taken = &mut working => {
                while let Ok(bytes) = reported.try_recv() {
                    stored(fold, bytes);
                }
                let taken = taken.map_err(std::io::Error::other).and_then(|taken| taken);
                end(fold, taken.map_err(system("take the backup"))?);
                return Ok((fold.end(Ending::Exited(Some(0))), None));
            }
            stop = signals.stops.next() => break stop,
        }
    };
    (signals.report_early)(&fold.clone().end(stop.ending()));
    // It may have ended meanwhile: then nobody hears it.
    let _ = cancel.send(());
    if timeout(CLEANED, working).await.is_err() {
        warn!("the backup did not end: parts of it may be left where it goes");
    }
    Ok((fold.end(stop.ending()), Some(stop)))
}

fn stored(fold: &mut Fold, bytes: u64) {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    fold.apply(&event(What::BackupProgress { bytes }));
}

/// The backup is there, or is not.
fn end(fold: &mut Fold, taken: Result<BackupContent, EndpointsFailure>) {
    match taken {
        Ok(content) => {
            fold.apply(&event(What::Backup(Box::new(content))));
            begin(fold, true, "The backup is whole in its storage");
        }
        Err(EndpointsFailure { reason, message, retriable }) => {
            fold.failed(RunFailure { reason, message, retriable });
        }
    }
    fold.apply(&event(What::Stats(BTreeMap::new())));
}

fn begin(fold: &mut Fold, probe: bool, task: &str) {
    fold.apply(&event(What::Playbook { step: Step::BackupEtcd.name().to_owned(), probe, tasks: 1 }));
    fold.apply(&event(What::Task { name: task.to_owned() }));
}

fn event(what: What) -> Event {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Event { at: now.as_secs_f64(), what }
}
