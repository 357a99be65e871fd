//! Where the programs of etcd are that restore a backup: in the cluster's bundle, or upstream.

use std::collections::BTreeMap;

use crds::backup::ProgramsInputs;
use crds::etcd_backup::BackupContent;
use crds::{ClusterDeployment, ObjectExt};

use crate::catalogue;
use crate::etcd_backup::observed::Observed;
use crate::inputs::artifacts::ArtifactsSeen;

/// Architectures that a Pod of the executor may have.
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// Those of the version that the backup was read from, as the machines have them; the error says what is missing.
pub(super) fn programs(
    observed: &Observed<'_>,
    deployment: &ClusterDeployment,
    content: &BackupContent,
) -> Result<ProgramsInputs, String> {
    let seen = observed.artifacts.as_ref().map_err(|problem| problem.message.clone())?;
    let components = deployment.status.iter().flat_map(|status| &status.components);
    let mut frozen = components.filter(|component| component.name == "etcd");
    let frozen = frozen.find(|component| component.version == content.etcd_version);
    let digests = frozen.map(|component| component.digests.clone()).unwrap_or_default();
    let (version, authorities) = (content.etcd_version.clone(), seen.ca.clone());
    let artifacts = deployment.spec.artifacts.as_ref();
    let index_sha256 = artifacts.and_then(|artifacts| artifacts.index_sha256.clone());
    if let Some(url) = deployment.spec.bundle_url() {
        let (url, archives) = (url.to_owned(), BTreeMap::new());
        return Ok(ProgramsInputs { url, archives, index_sha256, authorities, version, digests });
    }
    let known = upstream(seen, &version, &digests);
    if known.is_empty() {
        return Err(format!(
            "no digest of etcd {version} is known for upstream's archive of it: status.components of ClusterDeployment {} has \
             another version, and no lock of spec.artifacts.lockRef has this one: add it with wright bundle lock --component \
             etcd={version}, or give spec.artifacts.url",
            deployment.name()
        ));
    }
    let digest_of = |(arch, (_, digest)): (&&str, &(String, String))| ((*arch).to_owned(), digest.clone());
    let digests = known.iter().map(digest_of).collect();
    let archives = known.into_iter().map(|(arch, (url, _))| (arch.to_owned(), url)).collect();
    Ok(ProgramsInputs { url: String::new(), archives, index_sha256, authorities, version, digests })
}

/// URL and digest of the archive by architecture: of those alone whose digest the lock has, or, without a lock, the
/// cluster.
fn upstream<'a>(
    seen: &ArtifactsSeen,
    version: &str,
    frozen: &BTreeMap<String, String>,
) -> BTreeMap<&'a str, (String, String)> {
    let known = |arch: &'a str| {
        let url = catalogue::archive_url("etcd", version, arch)?;
        let digest = match &seen.lock {
            Some(lock) => lock.file(&url).map(str::to_owned),
            None => frozen.get(arch).cloned(),
        };
        Some((arch, (url, digest?)))
    };
    ARCHITECTURES.into_iter().filter_map(known).collect()
}
