//! The record of a restore, as it is settled once the keys are in place.

use crds::KarmadaDeployment;
use crds::backup::FetchedBackup;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::references::LocalRef;

use super::super::component::Component;
use super::super::observed::HostFacts;
use super::super::release::Release;

/// The record of what was fetched; none: it is no backup of a plane. Data is never made where etcd runs: there the
/// status was lost.
pub(super) fn settled(
    object: &KarmadaDeployment,
    fetched: &FetchedBackup,
    storage_ref: LocalRef,
    facts: &HostFacts,
) -> Option<KarmadaRestoredFrom> {
    let plane = fetched.plane.clone()?;
    let step = if facts.versions.contains_key(&Component::Etcd) { Step::Serve } else { Step::Data };
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
        etcd_members: object.spec.etcd.local().map(|local| local.replicas),
        step: Some(step),
        members: Vec::new(),
        approved_at: None,
        restored_at: None,
    })
}

/// How the spec differs from the plane that was backed up in what its data depends on; none: it does not.
pub(super) fn differences(object: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> Option<String> {
    let spec = &object.spec;
    let mut all = Vec::new();
    if spec.host_dns_domain != record.dns_domain {
        all.push(format!("spec.hostDNSDomain is {}, and must be {}", spec.host_dns_domain, record.dns_domain));
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
        all.push(format!("its etcd would be {etcd}, which does not read data of {then}: set spec.etcd.local.version"));
    }
    (!all.is_empty()).then(|| all.join("; "))
}
