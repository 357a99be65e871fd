//! The runs that take a backup.

use crds::playbook_run::PlaybookRunSpec;
use crds::references::{LocalRef, controller_ref};
use crds::step::{Intent, Step};
use crds::{ClusterDeployment, ObjectExt, PlaybookRun};

use super::observed::Observed;
use crate::attempts;
use crate::owned_run::{hosts_of, owned_run};

/// The runs of the backup, oldest first.
pub(super) fn attempts<'a>(observed: &Observed<'a>) -> Vec<&'a PlaybookRun> {
    attempts::owned_by(observed.runs, observed.backup.uid(), |_| true)
}

/// The next one, after so many: on all machines that have a member, of which it chooses one; on none where etcd is read
/// over its endpoints.
pub(super) fn next(observed: &Observed<'_>, deployment: Option<&ClusterDeployment>, tried: usize) -> PlaybookRun {
    let backup = observed.backup;
    let role = deployment.and_then(|deployment| deployment.spec.etcd.topology.role());
    let hosts = hosts_of(observed.machines, |machine| Some(machine.spec.role) == role);
    let spec = PlaybookRunSpec {
        backup_ref: Some(LocalRef::new(backup.name())),
        timeout_seconds: backup.spec.timeout_seconds,
        ..PlaybookRunSpec::new(Intent::Backup, vec![Step::BackupEtcd], hosts)
    };
    owned_run((backup, controller_ref(backup)), deployment, "", tried, spec)
}
