//! Values that the API server has encrypted: XSalsa20 and Poly1305, as NaCl's secretbox has it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::encryption_entry::{EncryptionEntry, EntryProvider, FIRST_KEY};
use crypto_secretbox::aead::{Aead, KeyInit};
use crypto_secretbox::{Nonce, XSalsa20Poly1305};
use k8s_openapi::api::core::v1::Secret;

/// What an encrypted value begins with, whoever encrypted it.
pub(super) const ENCRYPTED: &[u8] = b"k8s:enc:";
/// What one begins with that was encrypted with a key of ours; the key's name and a colon follow.
const SECRETBOX: &[u8] = b"k8s:enc:secretbox:v1:";
/// How the entries of the Secret with a cluster's keys begin, and end, that encrypt: `encryption.key`, and
/// `encryption-former.key` while it is rotated.
const ENTRY: (&str, &str) = ("encryption", ".key");
/// What one begins with that a KMS plug-in encrypted; its name, a dot and the resource follow, and a colon.
const KMS: &[u8] = b"k8s:enc:kms:v2:";
/// Bytes before the box.
const NONCE: usize = 24;

/// The keys that a cluster encrypts with, by their names, and the KMS plug-ins, whose keys no backup has. There is no
/// `Debug` of them.
pub(super) struct EncryptionKeys {
    keys: BTreeMap<String, XSalsa20Poly1305>,
    plugins: BTreeSet<String>,
}

impl EncryptionKeys {
    /// The keys in the Secret of a cluster's keys, as JSON; none where it has none. Errors say what is wrong, and show
    /// nothing of it.
    pub fn of_secret(json: &[u8]) -> Result<Option<Self>, String> {
        let secret: Secret = serde_json::from_slice(json).map_err(|_| "it is no Secret".to_owned())?;
        let (mut keys, mut plugins) = (BTreeMap::new(), BTreeSet::new());
        for (entry, text) in secret.data.unwrap_or_default() {
            if entry.starts_with(ENTRY.0) && entry.ends_with(ENTRY.1) {
                match parsed(&text.0).ok_or_else(|| format!("{entry} is no key of 32 bytes in base64"))? {
                    Parsed::Key(name, key) => drop(keys.insert(name, *key)),
                    Parsed::Plugin(name) => drop(plugins.insert(name)),
                }
            }
        }
        Ok((!keys.is_empty() || !plugins.is_empty()).then_some(Self { keys, plugins }))
    }

    /// Whether a value was encrypted by one of the plug-ins: nobody else decrypts it.
    pub fn is_of_plugin(&self, value: &[u8]) -> bool {
        let named = value.strip_prefix(KMS).and_then(|named| named.split(|byte| *byte == b':').next());
        let name = String::from_utf8_lossy(named.unwrap_or_default());
        name.split_once('.').is_some_and(|(plugin, _)| self.plugins.contains(plugin))
    }

    /// A value as it was before it was encrypted; the error says why it cannot be decrypted.
    pub fn decrypt(&self, value: &[u8]) -> Result<Vec<u8>, String> {
        let Some(named) = value.strip_prefix(SECRETBOX) else {
            return Err("it was encrypted by another provider than secretbox".to_owned());
        };
        let colon = named.iter().position(|byte| *byte == b':').ok_or("it names no key")?;
        let (name, sealed) = (named.get(..colon).unwrap_or_default(), named.get(colon + 1..).unwrap_or_default());
        let name = String::from_utf8_lossy(name);
        let key = self.keys.get(&*name).ok_or_else(|| format!("the backup's bundle has no key {name:?}"))?;
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE>().ok_or("it is cut off")?;
        let opened = key.decrypt(&Nonce::from(*nonce), sealed);
        opened.map_err(|_| format!("the key {name} of the backup's bundle does not decrypt it"))
    }
}

/// What an entry is.
enum Parsed {
    Key(String, Box<XSalsa20Poly1305>),
    Plugin(String),
}

fn parsed(text: &[u8]) -> Option<Parsed> {
    match EncryptionEntry::parse(std::str::from_utf8(text).ok()?)?.provider {
        EntryProvider::Kms { plugin, .. } => Some(Parsed::Plugin(plugin.name)),
        EntryProvider::Secretbox { name, secret } => {
            let key = STANDARD.decode(secret).ok().and_then(|key| XSalsa20Poly1305::new_from_slice(&key).ok())?;
            Some(Parsed::Key(name.unwrap_or_else(|| FIRST_KEY.to_owned()), Box::new(key)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The test vector of NaCl, `tests/secretbox.c`.
    const KEY: &str = "1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389";
    const TEXT_NONCE: &str = "69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37";
    const PLAIN: &str = concat!(
        "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc",
        "3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb",
        "48f59ffd4924ca1c60902e52f0a089bc76897040e082f937763848645e0705"
    );
    const BOX: &str = concat!(
        "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0df",
        "c17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368",
        "517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5"
    );

    fn key(bytes: &[u8]) -> EncryptionKeys {
        let text = STANDARD.encode(STANDARD.encode(bytes));
        let secret = json!({ "metadata": { "name": "paris-pki" }, "data": { "encryption.key": text } });
        EncryptionKeys::of_secret(secret.to_string().as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_value_is_decrypted_as_nacl_does_it() {
        let bytes = |text: &str| hex::decode(text).unwrap();
        let value = [&b"k8s:enc:secretbox:v1:key1:"[..], &bytes(TEXT_NONCE), &bytes(BOX)].concat();
        let key = key(&bytes(KEY));
        assert_eq!(key.decrypt(&value), Ok(bytes(PLAIN)));
        for at in [26, 60, value.len() - 1] {
            let mut changed = value.clone();
            changed[at] ^= 1;
            assert!(key.decrypt(&changed).unwrap_err().contains("does not decrypt it"), "{at}");
        }
        assert_eq!(key.decrypt(&value[..30]), Err("it is cut off".into()));
        assert!(key.decrypt(b"k8s:enc:aescbc:v1:key1:x").unwrap_err().contains("another provider"));
    }

    #[test]
    fn a_value_is_decrypted_with_the_key_that_it_names() {
        let bytes = |text: &str| hex::decode(text).unwrap();
        let entry = |text: String| STANDARD.encode(text);
        let secret = json!({ "data": {
            "encryption.key": entry(format!("key-b:{}\n", STANDARD.encode([7; 32]))),
            "encryption-former.key": entry(STANDARD.encode(bytes(KEY))),
        }});
        let keys = EncryptionKeys::of_secret(secret.to_string().as_bytes()).unwrap().unwrap();
        let value = |name: &str| [SECRETBOX, name.as_bytes(), b":", &bytes(TEXT_NONCE), &bytes(BOX)].concat();
        assert_eq!(keys.decrypt(&value("key1")), Ok(bytes(PLAIN)));
        assert!(keys.decrypt(&value("key-b")).unwrap_err().contains("the key key-b of the backup's bundle does not"));
        assert_eq!(keys.decrypt(&value("key-c")), Err("the backup's bundle has no key \"key-c\"".into()));
    }

    #[test]
    fn what_a_plugin_of_the_cluster_encrypted_is_told_from_what_nobody_can_have() {
        let kms = r#"{"kms":{"name":"vault","endpoint":"unix:///run/kms/a.sock","timeoutSeconds":3}}"#;
        let wide = format!(
            r#"{{"secretbox":{{"name":"key1","secret":"{}"}},"resources":["configmaps"]}}"#,
            STANDARD.encode([7; 32])
        );
        let secret = json!({ "data": {
            "encryption.key": STANDARD.encode(kms), "encryption-former.key": STANDARD.encode(wide),
        }});
        let keys = EncryptionKeys::of_secret(secret.to_string().as_bytes()).unwrap().unwrap();
        assert!(keys.keys.contains_key("key1"));
        for (value, is_of_it) in [
            (&b"k8s:enc:kms:v2:vault.secrets:\n\x04abcd"[..], true),
            (b"k8s:enc:kms:v2:other.secrets:x", false),
            (b"k8s:enc:kms:v1:vault.secrets:x", false),
            (b"k8s:enc:kms:v2:vault:x", false),
        ] {
            assert_eq!(keys.is_of_plugin(value), is_of_it, "{}", String::from_utf8_lossy(value));
        }
        assert!(keys.decrypt(b"k8s:enc:kms:v2:other.secrets:x").unwrap_err().contains("another provider"));
    }

    #[test]
    fn a_secret_without_a_usable_key_is_told_and_not_shown() {
        let of = |text: &str| EncryptionKeys::of_secret(text.as_bytes()).map(|key| key.is_some());
        assert_eq!(of(r#"{"metadata": {}}"#), Ok(false));
        assert_eq!(of("hunter2"), Err("it is no Secret".into()));
        let short = json!({ "data": { "encryption.key": STANDARD.encode("aHVudGVyMg==") } }).to_string();
        assert_eq!(of(&short), Err("encryption.key is no key of 32 bytes in base64".into()));
    }
}
