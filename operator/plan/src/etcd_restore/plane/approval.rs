//! Approval that a plane is stopped, and set back: to this backup, of this very plane.

use crds::commands::{self, Target};
use crds::karmada_deployment::KarmadaRestoredFrom;
use crds::names::annotation;
use crds::{EtcdRestore, KarmadaDeployment, ObjectExt};

use super::super::observed::Observed;
use super::super::safety::announced;
use crate::approval::{self, What};
use crate::message::cut;
use crate::moment::day_and_clock;
use crate::size::size;

fn value(observed: &Observed<'_>, plane: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> String {
    approval::value(What::Restore, &observed.restore.metadata, &[plane.uid(), &record.location, &record.sha256])
}

/// The approval to go back, of this very restore.
fn value_of_undo(restore: &EtcdRestore, plane: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> String {
    let acts: Vec<&str> = [plane.uid()].into_iter().chain(record.former_claims.iter().map(String::as_str)).collect();
    approval::value(What::Undo, &restore.metadata, &acts)
}

/// Whether a person has given that.
pub(super) fn undo_is_given(restore: &EtcdRestore, plane: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> bool {
    approval::is_given(&restore.metadata, &value_of_undo(restore, plane, record))
}

/// What to type to go back.
pub(super) fn ask_to_undo(restore: &EtcdRestore, plane: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> String {
    let value = approval::to_write(&restore.metadata, &value_of_undo(restore, plane, record));
    commands::annotate(Target::EtcdRestore, &restore.metadata, annotation::APPROVE, value)
}

/// Whether a person has given it.
pub(super) fn is_given(observed: &Observed<'_>, plane: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> bool {
    approval::is_given(&observed.restore.metadata, &value(observed, plane, record))
}

/// What would be done, what is lost, and what to type.
pub(super) fn message(observed: &Observed<'_>, plane: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> String {
    let metadata = &observed.restore.metadata;
    let value = approval::to_write(metadata, &value(observed, plane, record));
    let command = commands::annotate(Target::EtcdRestore, metadata, annotation::APPROVE, value);
    let first = announced(observed).map(|first| format!("; {first}")).unwrap_or_default();
    cut(format!(
        "backup {} of plane {}, taken {}, {} at revision {}, decrypts and fits KarmadaDeployment {}: what was written to the plane since is \
         lost{first}. The plane has no API until it serves what is in the backup, to administrators alone; what would become of its members is \
         asked before anything acts on them. To do it: {command}",
        record.backup,
        record.plane,
        day_and_clock(record.taken_at.0),
        size(record.size),
        record.revision,
        plane.name(),
    ))
}
