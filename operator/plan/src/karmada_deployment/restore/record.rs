//! The record of a restore, as it is settled once the keys are known.

use crds::backup::FetchedBackup;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::references::LocalRef;
use crds::{EtcdRestore, KarmadaDeployment, ObjectExt};

use super::super::component::Component;
use super::super::etcd::CLAIMS;
use super::super::observed::HostFacts;
use super::super::release::Release;
use super::super::restoring::record;
use super::revision::bump_after;
use crate::naming::short_hash;

/// The record of what was fetched; none: it is no backup of a plane. Data is never made where etcd runs: there the
/// status was lost.
pub(super) fn settled(
    object: &KarmadaDeployment,
    fetched: &FetchedBackup,
    storage_ref: LocalRef,
    facts: &HostFacts,
) -> Option<KarmadaRestoredFrom> {
    of_backup(object, fetched, storage_ref, if has_etcd(object, facts) { Step::Serve } else { Step::Data })
}

/// The record by which an EtcdRestore sets a plane back; none: it is no backup of a plane. Its data goes into volumes
/// of its own, or beside that of before on the machines, so that of before stays.
pub(crate) fn settled_in_place(
    object: &KarmadaDeployment,
    fetched: &FetchedBackup,
    storage_ref: LocalRef,
    restore: &EtcdRestore,
) -> Option<KarmadaRestoredFrom> {
    let is_on_machines = object.spec.binary.is_some();
    let new = of_backup(object, fetched, storage_ref, if is_on_machines { Step::Stage } else { Step::Stop })?;
    let new = KarmadaRestoredFrom {
        restore_ref: Some(LocalRef::new(restore.name())),
        restore_uid: Some(restore.uid().to_owned()),
        ..new
    };
    // Of machines the run that lays it ready finds out by how much revisions are raised.
    if is_on_machines {
        return Some(new);
    }
    Some(KarmadaRestoredFrom {
        claims: Some(format!("{CLAIMS}-{}", short_hash(&[restore.uid()], 8))),
        bump: Some(bump_after(record(object), fetched.revision)),
        ..new
    })
}

fn of_backup(
    object: &KarmadaDeployment,
    fetched: &FetchedBackup,
    storage_ref: LocalRef,
    step: Step,
) -> Option<KarmadaRestoredFrom> {
    let plane = fetched.plane.clone()?;
    // Machines may be others before it is made.
    let local = object.spec.etcd.local().filter(|_| object.spec.binary.is_none());
    Some(KarmadaRestoredFrom {
        backup: fetched.backup.clone(),
        plane: plane.name,
        plane_uid: plane.uid,
        endpoint: plane.endpoint,
        storage_ref,
        location: fetched.location.clone(),
        taken_at: fetched.taken_at.clone(),
        revision: fetched.revision,
        size: fetched.size,
        sha256: fetched.sha256.clone(),
        etcd_version: fetched.etcd_version.clone(),
        version: plane.version,
        dns_domain: fetched.dns_domain.clone(),
        etcd_members: local.map(|local| local.replicas),
        restore_ref: None,
        restore_uid: None,
        claims: None,
        former_claims: Vec::new(),
        staged: None,
        bump: None,
        step: Some(step),
        members: Vec::new(),
        approved_at: None,
        undo_began_at: None,
        undone_at: None,
        restored_at: None,
    })
}

/// Whether etcd is there: its StatefulSet, or a machine that was made part of the plane.
fn has_etcd(object: &KarmadaDeployment, facts: &HostFacts) -> bool {
    match object.spec.binary {
        None => facts.versions.contains_key(&Component::Etcd),
        Some(_) => facts.seats.control_planes.iter().any(|seat| seat.is_provisioned),
    }
}

/// How the spec differs from the plane that was backed up in what its data depends on; none: it does not.
pub(crate) fn differences(object: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> Option<String> {
    let spec = &object.spec;
    let mut all = Vec::new();
    if spec.host_dns_domain != record.dns_domain {
        let where_else = if spec.binary.is_some() { ", which a plane in Pods alone can have" } else { "" };
        let (now, then) = (&spec.host_dns_domain, &record.dns_domain);
        all.push(format!("spec.hostDNSDomain is {now}, and must be {then}{where_else}"));
    }
    let minor = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
    if let Some(then) = record.version.as_deref().filter(|then| minor(then) != minor(spec.version.as_str())) {
        let now = spec.version.as_str();
        all.push(format!("spec.version is {now}, and must be of the minor of {then}: upgrade the plane afterwards"));
    }
    let etcd = Release::wanted(spec).map(|release| Component::Etcd.version(spec, release));
    let number = |version: &str| version.split('.').take(2).map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>();
    let is_older =
        |wanted: &str| number(wanted).zip(number(&record.etcd_version)).is_some_and(|(now, then)| now < then);
    let etcd = etcd.as_deref();
    if let Some(etcd) = etcd.filter(|wanted| is_older(wanted)) {
        let then = &record.etcd_version;
        let how = match object.spec.binary {
            None => "set spec.etcd.local.version",
            Some(_) => "on machines it comes with spec.version: make the plane in Pods, with spec.etcd.local.version",
        };
        all.push(format!("its etcd would be {etcd}, which does not read data of {then}: {how}"));
    }
    (!all.is_empty()).then(|| all.join("; "))
}
