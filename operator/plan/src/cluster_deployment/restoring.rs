//! The backup that a cluster begins with: the one that is asked for, or the newest of its own where all its machines
//! were lost.

use std::collections::BTreeMap;

use crds::cluster_deployment::{RecoveryStrategy, RestoreFrom, RestoredFrom};
use crds::references::LocalRef;
use crds::{ClusterDeployment, EtcdBackup, ObjectExt};
use serde_json::Value;

use super::state::{ClusterState, past};
use crate::install_backup::{restore_id, restore_variables};

/// What a cluster that does not stand is to begin with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source<'a> {
    /// The backup of `spec.restoreFrom`.
    Given(&'a RestoreFrom),
    /// The newest good backup of the cluster itself; none: there is none, and it must not begin empty.
    Latest(Option<&'a EtcdBackup>),
}

/// What the cluster is to begin with; none: it begins empty, or stands.
pub(super) fn source<'a>(state: &ClusterState<'a>) -> Option<Source<'a>> {
    if state.installed.is_some() {
        return None;
    }
    let spec = &state.deployment.spec;
    if spec.recovery.strategy == RecoveryStrategy::RestoreLatest {
        // A backup of its own says that it has stood before, whatever became of its status, and of the backup.
        if own(state).next().is_some() || past::begun(state.observed).is_some() {
            return Some(Source::Latest(newest(state)));
        }
    }
    let is_over = restored_from(state.deployment).is_some_and(|known| known.restored_at.is_some());
    spec.restore_from.as_ref().filter(|_| !is_over).map(Source::Given)
}

/// The newest good backup of this very ClusterDeployment.
pub(super) fn newest<'a>(state: &ClusterState<'a>) -> Option<&'a EtcdBackup> {
    let good = own(state).filter_map(|backup| Some((backup.good()?.completed_at.0, backup.name(), backup)));
    good.max_by_key(|(completed, name, _)| (*completed, *name)).map(|(_, _, backup)| backup)
}

/// What was stored of this very ClusterDeployment, good or not.
fn own<'a>(state: &ClusterState<'a>) -> impl Iterator<Item = &'a EtcdBackup> {
    state.observed.backups.iter().copied().filter(|backup| is_own(state, backup) && !backup.is_deleting())
}

/// Whether it was stored of this very ClusterDeployment: `<cluster>/<UID>/...`, since a namesake of before has backups
/// of its own.
pub(super) fn is_own(state: &ClusterState<'_>, backup: &EtcdBackup) -> bool {
    let content = backup.status.as_ref().and_then(|status| status.backup.as_ref());
    content.is_some_and(|content| content.location.split('/').nth(1) == Some(state.uid()))
}

/// The backup that was settled on, whether or not it has been restored.
pub fn restored_from(deployment: &ClusterDeployment) -> Option<&RestoredFrom> {
    deployment.status.as_ref()?.restored_from.as_ref()
}

/// The backup that the install brings to the machines.
pub fn pending(deployment: &ClusterDeployment) -> Option<&RestoredFrom> {
    restored_from(deployment).filter(|known| known.restored_at.is_none())
}

/// The Secret with the identity that decrypts it.
pub fn identity<'a>(deployment: &'a ClusterDeployment, pending: &RestoredFrom) -> Option<&'a LocalRef> {
    let spec = &deployment.spec;
    let own = pending.cluster_uid == deployment.uid();
    let given = spec.restore_from.as_ref().map(|from| &from.identity_ref);
    if own { spec.recovery.identity_ref.as_ref().or(given) } else { given }
}

/// Names the directories of the restore on the machines.
pub fn id(deployment: &ClusterDeployment, pending: &RestoredFrom) -> String {
    restore_id(deployment.uid(), &pending.location)
}

/// The variables of the install that brings it.
pub(super) fn variables(deployment: &ClusterDeployment, pending: &RestoredFrom) -> BTreeMap<String, Value> {
    restore_variables(&id(deployment, pending), &pending.sha256)
}

/// A backup of the cluster itself, as one to begin with.
pub(super) fn of_backup(state: &ClusterState<'_>, backup: &EtcdBackup) -> Option<RestoredFrom> {
    let content = backup.status.as_ref()?.backup.as_ref()?;
    Some(RestoredFrom {
        backup: backup.name().to_owned(),
        cluster: state.name.clone(),
        cluster_uid: state.uid().to_owned(),
        storage_ref: backup.spec.storage_ref.clone(),
        location: content.location.clone(),
        taken_at: content.started_at.clone(),
        revision: content.revision,
        size: content.size,
        sha256: content.sha256.clone(),
        etcd_version: content.etcd_version.clone(),
        kubernetes_version: content.kubernetes_version,
        pod_cidr: None,
        service_cidr: None,
        dns_domain: None,
        approved_at: None,
        restored_at: None,
    })
}

/// How the spec differs from the cluster that was backed up in what its data depends on; none: it does not.
pub(super) fn differences(deployment: &ClusterDeployment, pending: &RestoredFrom) -> Option<String> {
    let spec = &deployment.spec;
    let networking = &spec.networking;
    let texts = [
        ("networking.podCIDR", &networking.pod_cidr, &pending.pod_cidr),
        ("networking.serviceCIDR", &networking.service_cidr, &pending.service_cidr),
        ("networking.dnsDomain", &networking.dns_domain, &pending.dns_domain),
    ];
    let texts = texts.into_iter().filter_map(|(field, found, wanted)| {
        let wanted = wanted.as_ref()?;
        (found != wanted).then(|| format!("spec.{field} is {found}, and must be {wanted}"))
    });
    let version = pending.kubernetes_version.filter(|then| then.minor() != spec.kubernetes_version.minor());
    let version = version.map(|then| {
        let found = spec.kubernetes_version;
        format!("spec.kubernetesVersion is {found}, and must be of the minor of {then}")
    });
    let all: Vec<String> = texts.chain(version).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
