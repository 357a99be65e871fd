//! Approval of what would become of members: of this backup and this very report, in this generation of the object.

use crds::commands::{self, Target};
use crds::karmada_deployment::{KarmadaMemberReport, KarmadaRestoredFrom};
use crds::names::annotation;
use crds::{KarmadaDeployment, ObjectExt};

use super::super::restore_seen::FormerPlane;
use super::member_report::Report;
use crate::approval::{self, What};
use crate::moment::day_and_clock;
use crate::size::size;

/// The value that approves it.
pub(super) fn value(object: &KarmadaDeployment, record: &KarmadaRestoredFrom, report: &Report) -> String {
    let digest = report.digest();
    let acts = [&record.location, &record.sha256, &digest].into_iter().chain(&record.restore_uid);
    approval::value(What::Restore, &object.metadata, &acts.map(String::as_str).collect::<Vec<_>>())
}

/// Whether the object carries it.
pub(super) fn is_given(object: &KarmadaDeployment, value: &str) -> bool {
    approval::is_given(&object.metadata, value)
}

/// Which backup it is, what would become of members, and what to type. The command stands before what may be long.
pub(super) fn message(
    object: &KarmadaDeployment,
    record: &KarmadaRestoredFrom,
    (report, members): (&Report, &[KarmadaMemberReport]),
    former: &FormerPlane,
) -> String {
    let value = approval::to_write(&object.metadata, &value(object, record, report));
    let command = commands::annotate(Target::KarmadaDeployment, &object.metadata, annotation::APPROVE, value);
    let told: Vec<String> = members.iter().map(|member| format!("{}: {}", member.name, member.message)).collect();
    let told = if told.is_empty() { "it has no members".to_owned() } else { told.join("; ") };
    format!(
        "backup {} of plane {}, taken {}, {} at revision {}, is restored, and nothing acts by it yet{}. To have it propagate: {command}. \
         What would become of members (all in status.restoredFrom.members): {told}",
        record.backup,
        record.plane,
        day_and_clock(record.taken_at.0),
        size(record.size),
        record.revision,
        stopped(object, record, former),
    )
}

/// What is known of the plane that was backed up, unless it is this one.
fn stopped(object: &KarmadaDeployment, record: &KarmadaRestoredFrom, former: &FormerPlane) -> String {
    if record.plane_uid == object.uid() {
        return String::new();
    }
    let whose = format!("; programs and agents of the former plane (UID {}) must be stopped", record.plane_uid);
    match (former, &record.endpoint) {
        (FormerPlane::Silent(why), Some(endpoint)) => format!("{whose}: {endpoint} is not seen to serve it ({why})"),
        (_, _) => format!("{whose}: where it was reached is not known"),
    }
}

/// Whether the plane that was backed up is in this metadata cluster and still looked after.
pub(super) fn is_managed<'a>(
    others: &[&'a KarmadaDeployment],
    record: &KarmadaRestoredFrom,
) -> Option<&'a KarmadaDeployment> {
    others.iter().copied().find(|other| other.uid() == record.plane_uid)
}
