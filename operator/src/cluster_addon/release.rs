//! A Helm release as the cluster has it: JSON, compressed, in a Secret of its own.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use plan::cluster_addon::chart::Release;

use crate::objects::{Failure, Objects, within};

/// More than any release is.
const LARGEST: u64 = 64 << 20;

/// The newest revision of the release; `None`: there is none. An error says why the cluster does not tell.
pub(super) async fn read(objects: &Objects, namespace: &str, name: &str) -> Result<Option<Release>, String> {
    match newest(objects, namespace, name).await {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => match decode(&bytes) {
            Some(release) => Ok(Some(release)),
            None => Err(format!("its Secret of release {name} in namespace {namespace} cannot be read")),
        },
        Err(Failure::Lost(why)) => Err(why),
        Err(failure) => Err(format!("the releases in namespace {namespace} cannot be read: {failure}")),
    }
}

/// Its newest revision, as its Secret has it.
async fn newest(objects: &Objects, namespace: &str, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    let api: Api<Secret> = Api::namespaced(objects.client(), namespace);
    let revisions = ListParams::default().labels(&format!("owner=helm,name={name}"));
    let found = within(api.list_metadata(&revisions)).await?;
    let revision = |secret: &PartialObjectMeta<Secret>| -> Option<i64> {
        secret.metadata.labels.as_ref()?.get("version")?.parse().ok()
    };
    let newest = found.items.iter().max_by_key(|secret| revision(secret));
    let Some(newest) = newest.and_then(|secret| secret.metadata.name.as_deref()) else { return Ok(None) };
    let secret = within(api.get_opt(newest)).await?;
    Ok(secret.and_then(|secret| secret.data?.remove("release")).map(|bytes| bytes.0))
}

fn decode(bytes: &[u8]) -> Option<Release> {
    let packed = STANDARD.decode(bytes).ok()?;
    let mut text = Vec::new();
    match packed.starts_with(&[0x1f, 0x8b]) {
        true => drop(GzDecoder::new(packed.as_slice()).take(LARGEST).read_to_end(&mut text).ok()?),
        false => text = packed,
    }
    Release::parse(&serde_json::from_slice(&text).ok()?)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::decode;

    #[test]
    fn a_release_is_read_compressed_or_not() {
        let text = br#"{"name": "a", "namespace": "b", "version": 3, "info": {"status": "deployed"}}"#;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        for packed in [encoder.finish().unwrap(), text.to_vec()] {
            assert_eq!(decode(STANDARD.encode(packed).as_bytes()).unwrap().revision, 3);
        }
        assert_eq!(decode(b"?"), None);
        assert_eq!(decode(STANDARD.encode(b"{}").as_bytes()), None);
    }
}
