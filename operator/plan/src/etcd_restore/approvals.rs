//! What a restore asks a person for, and whether it was given: to begin, to go on after an interruption, to go back.

use crds::commands::{self, Target};
use crds::etcd_restore::StagedBackup;
use crds::names::annotation;
use crds::{ClusterDeployment, ObjectExt, PlaybookRun};

use super::observed::Observed;
use super::safety::announced;
use crate::approval::{self, What};
use crate::attempts::said;
use crate::message::{count, cut, quote};
use crate::moment::day_and_clock;
use crate::size::size;

/// The approval to replace the data: for this backup on these machines, and for one attempt.
pub(super) fn of_restore(
    observed: &Observed<'_>,
    deployment: &ClusterDeployment,
    staged: &StagedBackup,
    hosts: &[String],
    tried: usize,
) -> String {
    let hosts = hosts.join(",");
    let acts = [deployment.uid(), &staged.location, &staged.sha256, &hosts, &tried.to_string()];
    approval::value(What::Restore, &observed.restore.metadata, &acts)
}

/// The approval to put the data of before back, for one attempt.
pub(super) fn of_undo(observed: &Observed<'_>, deployment: &ClusterDeployment, tried: usize) -> String {
    approval::value(What::Undo, &observed.restore.metadata, &[deployment.uid(), &tried.to_string()])
}

/// Whether a person has given it.
pub(super) fn is_given(observed: &Observed<'_>, value: &str) -> bool {
    approval::is_given(&observed.restore.metadata, value)
}

/// What lies ready, what is lost, and what to type.
pub(super) fn ask_to_begin(observed: &Observed<'_>, staged: &StagedBackup, hosts: &[String], value: &str) -> String {
    let lost = match staged.current_revision {
        Some(now) if now > staged.revision => {
            format!("the cluster was at revision {now}: {} since are lost", count_i64(now - staged.revision, "change"))
        }
        Some(_) => "nothing was written since".to_owned(),
        None => "no member says what was written since: it is lost".to_owned(),
    };
    let first = announced(observed).map(|first| format!("; {first}")).unwrap_or_default();
    cut(format!(
        "ready on {}: backup {} of {}, {} with {} at revision {}; {lost}{first}. The cluster has no API while it is restored. To do it: {}",
        hosts.join(", "),
        staged.backup,
        day_and_clock(staged.taken_at.0),
        size(staged.size),
        count_i64(staged.keys, "key"),
        staged.revision,
        command(observed, value)
    ))
}

/// Why it ended, and what to type to go on or, where that is possible, back.
pub(super) fn ask_what_now(observed: &Observed<'_>, run: &PlaybookRun, on: Option<&str>, back: Option<&str>) -> String {
    let cluster = match back {
        Some(_) => "before the control plane was released, and the cluster has no API",
        None => "while the control plane was released: an API server may serve the backup's data, and the rest is held",
    };
    let mut said = format!("run {} ended {cluster}: {}", run.name(), quote(said(run).to_owned()));
    if let Some(value) = on {
        said.push_str(&format!("; to go on: {}", command(observed, value)));
    }
    if let Some(value) = back {
        said.push_str(&format!("; to go back to the data of before: {}", command(observed, value)));
    }
    cut(said)
}

fn command(observed: &Observed<'_>, value: &str) -> String {
    let metadata = &observed.restore.metadata;
    commands::annotate(Target::EtcdRestore, metadata, annotation::APPROVE, approval::to_write(metadata, value))
}

fn count_i64(number: i64, thing: &str) -> String {
    count(usize::try_from(number).unwrap_or_default(), thing)
}
