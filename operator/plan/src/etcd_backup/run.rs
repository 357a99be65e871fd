//! The runs that take a backup.

use std::collections::BTreeMap;

use crds::names::{annotation, label};
use crds::playbook_run::PlaybookRunSpec;
use crds::references::{LocalRef, controller_ref};
use crds::step::{Intent, Step};
use crds::{ClusterDeployment, Machine, ObjectExt, PlaybookRun};

use super::observed::Observed;
use crate::lifecycle::is_provisioned;
use crate::{attempts, naming};

/// The runs of the backup, oldest first.
pub(super) fn attempts<'a>(observed: &Observed<'a>) -> Vec<&'a PlaybookRun> {
    let uid = observed.backup.uid();
    let mut ours: Vec<&PlaybookRun> = observed.runs.iter().copied().filter(|run| run.is_owned_by(uid)).collect();
    ours.sort_by_key(|run| attempts::attempt_of(run));
    ours
}

/// The next one, after so many: on all machines that have a member, of which it chooses one.
pub(super) fn next(observed: &Observed<'_>, deployment: &ClusterDeployment, tried: usize) -> PlaybookRun {
    let backup = observed.backup;
    let attempt = i32::try_from(tried).unwrap_or(i32::MAX);
    let name = naming::run(deployment.name(), deployment.uid(), Intent::Backup, [backup.uid()], attempt);
    let mut run = PlaybookRun::new(
        &name,
        PlaybookRunSpec {
            cluster_name: Some(deployment.name().to_owned()),
            backup_ref: Some(LocalRef::new(backup.name())),
            timeout_seconds: backup.spec.timeout_seconds,
            ..PlaybookRunSpec::new(Intent::Backup, vec![Step::BackupEtcd], hosts(observed, deployment))
        },
    );
    run.metadata.namespace = Some(backup.namespace().to_owned());
    run.metadata.owner_references = controller_ref(backup).map(|owner| vec![owner]);
    run.metadata.labels = Some(BTreeMap::from([
        (label::CLUSTER.into(), deployment.name().to_owned()),
        (label::INTENT.into(), Intent::Backup.spec().slug.into()),
    ]));
    run.metadata.annotations = Some(BTreeMap::from([(annotation::ATTEMPT.into(), attempt.to_string())]));
    run
}

/// The Hosts of the members that stay.
fn hosts(observed: &Observed<'_>, deployment: &ClusterDeployment) -> Vec<String> {
    let role = deployment.spec.etcd.topology.role();
    let has_member =
        |machine: &&&Machine| Some(machine.spec.role) == role && is_provisioned(machine) && !machine.is_deleting();
    let members = observed.machines.iter().filter(has_member);
    let mut hosts: Vec<String> =
        members.filter_map(|machine| Some(machine.spec.host_ref.as_ref()?.name.clone())).collect();
    hosts.sort_unstable();
    hosts
}
