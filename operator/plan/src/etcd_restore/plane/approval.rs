//! Approval that a plane is stopped, and set back: to this backup, of this very plane.

use crds::commands::{self, Target};
use crds::karmada_deployment::KarmadaRestoredFrom;
use crds::names::annotation;
use crds::{KarmadaDeployment, ObjectExt};

use super::super::observed::Observed;
use super::super::safety::announced;
use crate::approval::{self, What};
use crate::message::cut;
use crate::moment::day_and_clock;
use crate::size::size;

fn value(observed: &Observed<'_>, plane: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> String {
    approval::value(What::Restore, &observed.restore.metadata, &[plane.uid(), &record.location, &record.sha256])
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
