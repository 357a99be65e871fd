//! A Helm release as the cluster has it: JSON, compressed, in a Secret of its own.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use plan::cluster_addon::chart::Release;

use super::objects::{Failure, Objects};

/// More than any release is.
const LARGEST: u64 = 64 << 20;

/// The newest revision of the release; `None`: there is none. An error says why the cluster does not tell.
pub(super) async fn read(objects: &Objects, namespace: &str, name: &str) -> Result<Option<Release>, String> {
    match objects.release(namespace, name).await {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => match decode(&bytes) {
            Some(release) => Ok(Some(release)),
            None => Err(format!("its Secret of release {name} in namespace {namespace} cannot be read")),
        },
        Err(Failure::Lost(why)) => Err(why),
        Err(failure) => Err(format!("the releases in namespace {namespace} cannot be read: {failure}")),
    }
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
