//! What a restore asks a person for, and whether it was given: to begin, to go on after an interruption, to go back.

use crds::commands::{self, Target};
use crds::etcd_restore::StagedBackup;
use crds::names::annotation;
use crds::{ClusterDeployment, ObjectExt, PlaybookRun};

use super::observed::Observed;
use super::runs::Runs;
use super::safety::announced;
use crate::approval::{self, What};
use crate::attempts::said;
use crate::message::{count, cut, quote};
use crate::moment::day_and_clock;
use crate::size::size;
use crate::store::is_believed;

/// The approval to replace the data: for this backup on these machines, and for one attempt. None outlives a look at
/// the machines after which the store may be an older one: what was approved then may have been done since.
pub(super) fn of_restore(
    observed: &Observed<'_>,
    deployment: &ClusterDeployment,
    staged: &StagedBackup,
    hosts: &[String],
    tried: usize,
) -> String {
    let hosts = hosts.join(",");
    let (tried, compared) = (tried.to_string(), compared_since(deployment));
    let acts = [deployment.uid(), &staged.location, &staged.sha256, &hosts, &tried].into_iter();
    let acts: Vec<&str> = acts.chain(compared.as_deref()).collect();
    approval::value(What::Restore, &observed.restore.metadata, &acts)
}

/// The approval to put the data of before back, for one attempt.
pub(super) fn of_undo(observed: &Observed<'_>, deployment: &ClusterDeployment, tried: usize) -> String {
    let (tried, compared) = (tried.to_string(), compared_since(deployment));
    let acts: Vec<&str> = [deployment.uid(), &tried].into_iter().chain(compared.as_deref()).collect();
    approval::value(What::Undo, &observed.restore.metadata, &acts)
}

/// When the machines were last compared with the store, if that was ever needed.
fn compared_since(deployment: &ClusterDeployment) -> Option<String> {
    let since = deployment.status.as_ref()?.compared_since.as_ref()?;
    Some(since.0.to_string())
}

/// Whether a person has given it, and nothing is known by which the store may be an older one.
pub(super) fn is_given(observed: &Observed<'_>, deployment: &ClusterDeployment, value: &str) -> bool {
    is_believed(deployment, observed.resumed_at) && approval::is_given(&observed.restore.metadata, value)
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
pub(super) fn ask_what_now(
    observed: &Observed<'_>,
    (runs, last): (&Runs<'_>, Option<&PlaybookRun>),
    on: Option<&str>,
    back: Option<&str>,
) -> String {
    let mut said = match (&runs.lost, last) {
        (Some(lost), _) => format!(
            "run {} was deleted, and how far it came is not known: the cluster may have no API, or an API server may \
             serve the backup's data",
            lost.name
        ),
        (None, Some(run)) => format!("run {} ended {}: {}", run.name(), stands(back), quote(said(run).to_owned())),
        (None, None) => format!("its run ended {}", stands(back)),
    };
    if let Some(value) = on {
        said.push_str(&format!("; to go on: {}", command(observed, value)));
    }
    if let Some(value) = back {
        said.push_str(&format!("; to go back to the data of before: {}", command(observed, value)));
    }
    cut(said)
}

/// How the cluster stands then.
fn stands(back: Option<&str>) -> &'static str {
    match back {
        Some(_) => "before the control plane was released, and the cluster has no API",
        None => "while the control plane was released: an API server may serve the backup's data, and the rest is held",
    }
}

fn command(observed: &Observed<'_>, value: &str) -> String {
    let metadata = &observed.restore.metadata;
    commands::annotate(Target::EtcdRestore, metadata, annotation::APPROVE, approval::to_write(metadata, value))
}

fn count_i64(number: i64, thing: &str) -> String {
    count(usize::try_from(number).unwrap_or_default(), thing)
}
