//! Reads what an etcd holds of a cluster of Kubernetes, and compares it with what its backup's manifest says.

use std::time::Duration;

use crds::backup::BackupManifest;
use etcd_client::{Error, GetOptions, GetResponse, KvClient};
use tokio::time::timeout;

use super::decoding::{Decoded, decode};
use super::secretbox::EncryptionKeys;
use crate::text::{chain, sanitize};

/// Below which keys the API server keeps its objects.
const PREFIX: &str = "/registry/";
/// The first key that is not below it any more.
const BEHIND: &str = "/registry0";
/// Without it no cluster works.
const KUBE_SYSTEM: &str = "/registry/namespaces/kube-system";
/// Kinds that Kubernetes itself writes, in its own forms alone.
const OWN_KINDS: [&str; 9] = [
    "namespaces",
    "secrets",
    "configmaps",
    "serviceaccounts",
    "minions",
    "pods",
    "deployments",
    "clusterroles",
    "clusterrolebindings",
];
/// Objects of one answer. A value has at most 1.5 MiB.
const PAGE: i64 = 16;
/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(120);

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Keys at the revision.
    pub keys: i64,
    /// The manifest's; the newest where that was compacted away while the snapshot was taken.
    pub revision: i64,
    pub objects: u64,
    pub decrypted: u64,
    pub sealed: u64,
    pub others: u64,
}

/// Why it is not as the manifest says, or is not known to be.
#[derive(Debug)]
pub(super) enum Failure {
    /// It is not: what differs.
    Differs(String),
    /// The revision that was asked for is not kept.
    Compacted,
    /// etcd did not answer.
    Broken(String),
}

/// Compares revision and keys, and reads every object.
pub(super) async fn read(
    client: &mut KvClient,
    manifest: &BackupManifest,
    key: Option<&EncryptionKeys>,
) -> Result<Contents, Failure> {
    let (keys, revision) = counted(client, manifest).await?;
    let mut contents = Contents { keys, revision, ..Contents::default() };
    let mut has_system = false;
    let mut from = PREFIX.as_bytes().to_vec();
    loop {
        let page = get(client, &from, GetOptions::new().with_range(BEHIND).with_limit(PAGE)).await?;
        for pair in page.kvs() {
            has_system |= pair.key() == KUBE_SYSTEM.as_bytes();
            count(&mut contents, pair.key(), pair.value(), key)?;
        }
        match page.kvs().last() {
            // The next key that there can be.
            Some(last) if page.more() => from = [last.key(), &[0]].concat(),
            Some(_) | None => break,
        }
    }
    match has_system {
        true => Ok(contents),
        false => Err(Failure::Differs(format!("restored it has no key {KUBE_SYSTEM}"))),
    }
}

/// The keys at the manifest's revision, which are as many as it says, and that revision. One that was compacted away
/// between its reading and the snapshot is not there: then those of the newest revision.
async fn counted(client: &mut KvClient, manifest: &BackupManifest) -> Result<(i64, i64), Failure> {
    let all = || GetOptions::new().with_all_keys().with_count_only();
    let now = get(client, b"\0", all()).await?;
    let revision = now.header().map_or(0, etcd_client::ResponseHeader::revision);
    let wanted = manifest.revision;
    if revision < wanted {
        return Err(Failure::Differs(format!("restored it is at revision {revision}, and its manifest says {wanted}")));
    }
    let then = match get(client, b"\0", all().with_revision(wanted)).await {
        Err(Failure::Compacted) => return Ok((now.count(), revision)),
        then => then?.count(),
    };
    match then == manifest.keys {
        true => Ok((then, wanted)),
        false => Err(Failure::Differs(format!(
            "restored it has {then} keys at revision {wanted}, and its manifest says {}",
            manifest.keys
        ))),
    }
}

fn count(contents: &mut Contents, name: &[u8], value: &[u8], key: Option<&EncryptionKeys>) -> Result<(), Failure> {
    let name = String::from_utf8_lossy(name);
    let differs = |problem: String| Err(Failure::Differs(format!("key {}: {problem}", sanitize(&name))));
    match decode(value, key) {
        Ok(Decoded::Object) => contents.objects += 1,
        Ok(Decoded::Decrypted) => {
            contents.objects += 1;
            contents.decrypted += 1;
        }
        Ok(Decoded::Sealed) => contents.sealed += 1,
        Ok(Decoded::Other) if is_of_own_kind(&name) => {
            return differs("its value is no object of Kubernetes".to_owned());
        }
        Ok(Decoded::Other) => contents.others += 1,
        Err(problem) => return differs(problem),
    }
    Ok(())
}

fn is_of_own_kind(name: &str) -> bool {
    let kind = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('/')).map(|(kind, _)| kind);
    kind.is_some_and(|kind| OWN_KINDS.contains(&kind))
}

async fn get(client: &mut KvClient, key: &[u8], options: GetOptions) -> Result<GetResponse, Failure> {
    match timeout(ANSWER, client.get(key, Some(options))).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Error::GRpcStatus(status))) if status.message().contains("has been compacted") => {
            Err(Failure::Compacted)
        }
        Ok(Err(error)) => Err(Failure::Broken(chain(&error))),
        Err(_) => Err(Failure::Broken(format!("no answer within {} s", ANSWER.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_own_kind;

    #[test]
    fn kinds_of_kubernetes_are_told_by_their_keys() {
        assert!(is_of_own_kind("/registry/secrets/default/a") && is_of_own_kind("/registry/minions/a"));
        assert!(!is_of_own_kind("/registry/example.com/secrets/a") && !is_of_own_kind("/registry/secrets"));
    }
}
