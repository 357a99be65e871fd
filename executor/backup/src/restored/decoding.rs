//! Objects as the API server keeps them in etcd.

use prost::Message;
use serde::Deserialize;

use super::secretbox::{ENCRYPTED, EncryptionKeys};

/// What a value begins with that is protobuf.
const PROTOBUF: &[u8] = b"k8s\0";
/// What a value begins with that is CBOR, which newer API servers may write for custom resources.
const CBOR: &[u8] = b"\xd9\xd9\xf7";

/// `runtime.TypeMeta` of Kubernetes.
#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, optional, tag = "1")]
    api_version: Option<String>,
    #[prost(string, optional, tag = "2")]
    kind: Option<String>,
}

/// `runtime.Unknown` of Kubernetes: what an object is, and the object.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "vec", optional, tag = "2")]
    raw: Option<Vec<u8>>,
    #[prost(string, optional, tag = "3")]
    content_encoding: Option<String>,
    #[prost(string, optional, tag = "4")]
    content_type: Option<String>,
}

/// The same in JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonType {
    api_version: String,
    kind: String,
}

/// What a value turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoded {
    /// An object.
    Object,
    /// An object that the cluster's key decrypted.
    Decrypted,
    /// An object that a KMS plug-in of the cluster has encrypted: its key is in no backup.
    Sealed,
    /// Nothing that the API server writes for kinds of its own.
    Other,
}

/// What a value is. Errors: it has the form of an object and cannot be decoded, or of an encrypted one and cannot be
/// decrypted.
pub(super) fn decode(value: &[u8], key: Option<&EncryptionKeys>) -> Result<Decoded, String> {
    if !value.starts_with(ENCRYPTED) {
        return plain(value);
    }
    let key = key.ok_or("it is encrypted, and the backup's bundle has no encryption key")?;
    if key.is_of_plugin(value) {
        return Ok(Decoded::Sealed);
    }
    let opened = key.decrypt(value)?;
    match plain(&opened)? {
        Decoded::Object => Ok(Decoded::Decrypted),
        Decoded::Decrypted | Decoded::Sealed | Decoded::Other => {
            Err("decrypted it is no object of Kubernetes".to_owned())
        }
    }
}

fn plain(value: &[u8]) -> Result<Decoded, String> {
    if let Some(message) = value.strip_prefix(PROTOBUF) {
        // The error of the parser may show what it found.
        let unknown = Unknown::decode(message).map_err(|_| "its protobuf cannot be decoded".to_owned())?;
        let type_meta = unknown.type_meta.unwrap_or_default();
        let has = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        return match has(&type_meta.api_version) && has(&type_meta.kind) && unknown.raw.is_some() {
            true => Ok(Decoded::Object),
            false => Err("its protobuf names no apiVersion and kind, or holds no object".to_owned()),
        };
    }
    if value.starts_with(b"{") {
        return match serde_json::from_slice::<JsonType>(value) {
            Ok(found) if !found.api_version.is_empty() && !found.kind.is_empty() => Ok(Decoded::Object),
            Ok(_) | Err(_) => Err("its JSON cannot be decoded, or names no apiVersion and kind".to_owned()),
        };
    }
    Ok(if value.starts_with(CBOR) { Decoded::Object } else { Decoded::Other })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_told_from_what_is_none_and_from_what_is_broken() {
        let object = |kind: &str| {
            let type_meta = TypeMeta { api_version: Some("v1".into()), kind: Some(kind.into()) };
            let unknown = Unknown { type_meta: Some(type_meta), raw: Some(b"x".to_vec()), ..Unknown::default() };
            [PROTOBUF, &unknown.encode_to_vec()].concat()
        };
        let whole = object("Namespace");
        assert_eq!(decode(&whole, None), Ok(Decoded::Object));
        assert!(decode(&whole[..whole.len() - 3], None).unwrap_err().contains("protobuf"));
        assert!(decode(&object(""), None).unwrap_err().contains("names no apiVersion"));
        assert_eq!(decode(br#"{"apiVersion": "a/v1", "kind": "A", "spec": {}}"#, None), Ok(Decoded::Object));
        for broken in
            [&br#"{"apiVersion": "a/v1", "kind": "A", "spec": {"#[..], b"{}", br#"{"apiVersion": "", "kind": ""}"#]
        {
            assert!(decode(broken, None).unwrap_err().contains("JSON"));
        }
        assert_eq!(decode(b"\xd9\xd9\xf7\xa1", None), Ok(Decoded::Object));
        assert_eq!(decode(b"1234", None), Ok(Decoded::Other));
        assert!(decode(b"k8s:enc:secretbox:v1:key1:x", None).unwrap_err().contains("no encryption key"));
    }
}
