//! The EncryptionConfiguration of an API server that the operator itself gives its files.

use crds::encryption_entry::FIRST_RESOURCES;
use serde_json::{Value, json};

use super::EncryptionKeys;
use super::scheme::{EncryptionKey, Provider};
use crate::pki::error::PkiError;

impl EncryptionKeys {
    /// The EncryptionConfiguration, as JSON, which is YAML: Secrets are encrypted, what was written before encryption
    /// is read.
    ///
    /// # Errors
    ///
    /// Something else than Secrets is encrypted, or by a KMS plug-in, which such an API server has no way to reach.
    pub fn configuration(&self) -> Result<String, PkiError> {
        let keys: Result<Vec<Value>, PkiError> = self
            .used()
            .map(|scheme| match &scheme.provider {
                Provider::Secretbox(EncryptionKey { name, secret }) if scheme.resources == [FIRST_RESOURCES] => {
                    Ok(json!({ "name": name, "secret": secret }))
                }
                Provider::Secretbox(_) | Provider::Kms(..) => Err(PkiError::Read {
                    what: super::KEY.to_owned(),
                    problem: "only Secrets are encrypted here, with a key: restore the entry that was there".to_owned(),
                }),
            })
            .collect();
        let providers = json!([{ "secretbox": { "keys": keys? } }, { "identity": {} }]);
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
            "resources": [{ "resources": [FIRST_RESOURCES], "providers": providers }],
        });
        Ok(configuration.to_string())
    }
}

#[cfg(test)]
mod tests {
    use plan::encryption::Scheme;
    use plan::rotation::Move;
    use serde_json::Value;

    use super::EncryptionKeys;

    #[test]
    fn the_key_that_encrypts_stands_first_and_all_that_decrypt_beside_it() {
        let names = |keys: &EncryptionKeys| {
            let configuration: Value = serde_json::from_str(&keys.configuration().unwrap()).unwrap();
            let providers = &configuration["resources"][0]["providers"];
            assert_eq!(providers[1], serde_json::json!({"identity": {}}));
            let keys = providers[0]["secretbox"]["keys"].as_array().unwrap();
            keys.iter().map(|key| key["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let wanted = Scheme::default();
        let first = EncryptionKeys::generate(&wanted);
        assert_eq!(names(&first), ["key1"]);
        let begun = first.rotated(Move::Begin(1), &wanted);
        assert_eq!((names(&begun).len(), names(&begun)[0].as_str()), (2, "key1"));
        let signs = begun.rotated(Move::Sign, &wanted);
        assert_eq!((names(&signs).len(), names(&signs)[1].as_str()), (2, "key1"));
        let other = EncryptionKeys::generate(&Scheme { resources: vec!["configmaps".into()], kms: None });
        assert!(other.configuration().unwrap_err().to_string().contains("only Secrets"));
    }
}
