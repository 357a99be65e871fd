//! The runs that take a backup.

use crds::playbook_run::PlaybookRunSpec;
use crds::references::{LocalRef, controller_ref};
use crds::step::{Intent, Step};
use crds::{Machine, ObjectExt, PlaybookRun};

use super::observed::Observed;
use crate::attempts;
use crate::formed_cluster::FormedCluster;
use crate::owned_run::{hosts_of, owned_run, those_that_stay};

/// The runs of the backup, oldest first.
pub(super) fn attempts<'a>(observed: &Observed<'a>) -> Vec<&'a PlaybookRun> {
    attempts::owned_by(observed.runs, observed.backup.uid(), |_| true)
}

/// The next one, after so many: on all machines that have a member, of which it chooses one; on none where etcd is read
/// over its endpoints.
pub(super) fn next(observed: &Observed<'_>, cluster: Option<FormedCluster<'_>>, tried: usize) -> PlaybookRun {
    let backup = observed.backup;
    let hosts = hosts_of(observed.machines, |machine| has_member(cluster, machine));
    let spec = PlaybookRunSpec {
        backup_ref: Some(LocalRef::new(backup.name())),
        timeout_seconds: backup.spec.timeout_seconds,
        ..PlaybookRunSpec::new(Intent::Backup, vec![Step::BackupEtcd], hosts)
    };
    owned_run((backup, controller_ref(backup)), cluster, "", tried, spec)
}

/// The machines of the cluster that have a member of its etcd, and stay.
pub(super) fn members<'a>(observed: &Observed<'a>, cluster: FormedCluster<'_>) -> Vec<&'a Machine> {
    those_that_stay(observed.machines, |machine| has_member(Some(cluster), machine)).collect()
}

fn has_member(cluster: Option<FormedCluster<'_>>, machine: &Machine) -> bool {
    Some(machine.spec.role) == cluster.and_then(|cluster| cluster.etcd_role)
}
