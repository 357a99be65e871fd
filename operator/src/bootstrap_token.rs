//! Bootstrap tokens: what a machine joins with, each by its own. Made anew for each attempt, taken back when that is
//! over, and valid for two hours at most.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use rand::Rng;

use crate::error::{Error, ResultExt};

const LIFETIME: SignedDuration = SignedDuration::from_hours(2);
const NAMESPACE: &str = "kube-system";
const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// A bootstrap token: `abcdef.0123456789abcdef`.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken {
    id: String,
    secret: String,
}

impl BootstrapToken {
    /// A random token. For a cluster that is not there yet `kubeadm init` writes it.
    pub fn random() -> Self {
        let mut chance = rand::rng();
        let mut characters = |count: usize| -> String {
            (0..count).map(|_| char::from(ALPHABET[chance.random_range(0..ALPHABET.len())])).collect()
        };
        Self { id: characters(6), secret: characters(16) }
    }

    /// The token as `kubeadm` takes it.
    pub fn text(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// The Secret of kube-system that makes the token valid until two hours from now.
    fn manifest(&self, host: &str, now: Timestamp) -> Secret {
        let expiration = now.saturating_add(LIFETIME).unwrap_or(now).strftime("%Y-%m-%dT%H:%M:%SZ");
        let data = [
            ("token-id", self.id.clone()),
            ("token-secret", self.secret.clone()),
            ("expiration", expiration.to_string()),
            ("usage-bootstrap-authentication", "true".into()),
            ("usage-bootstrap-signing", "true".into()),
            ("auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token".into()),
            ("description", format!("Made by Clusterwright for {host} to join.")),
        ];
        let mut secret = Secret {
            type_: Some("bootstrap.kubernetes.io/token".into()),
            string_data: Some(data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ..Secret::default()
        };
        secret.metadata.name = Some(secret_name(&self.id));
        secret.metadata.namespace = Some(NAMESPACE.into());
        secret
    }
}

impl std::fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BootstrapToken(..)")
    }
}

fn secret_name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

/// Takes a token back from a cluster that answers; one that is gone is no error.
pub async fn revoke(client: &Client, token: &str) -> Result<(), Error> {
    let id = token.split('.').next().unwrap_or_default();
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    match api.delete(&secret_name(id), &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(drop).doing(|| "delete a bootstrap token in kube-system of the cluster".into()),
    }
}

/// Makes a token for a host and writes it into a cluster that answers. The client is the cluster's, not the metadata
/// cluster's.
pub async fn mint(client: &Client, host: &str, now: Timestamp) -> Result<BootstrapToken, Error> {
    let token = BootstrapToken::random();
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let written = api.create(&PostParams::default(), &token.manifest(host, now)).await;
    written.doing(|| "create a bootstrap token in kube-system of the cluster".into())?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::BootstrapToken;
    use jiff::Timestamp;

    #[test]
    fn a_token_has_the_form_that_kubeadm_takes_and_is_new_each_time() {
        let token = BootstrapToken::random();
        let text = token.text();
        let (id, secret) = text.split_once('.').unwrap();
        assert_eq!((id.len(), secret.len()), (6, 16));
        assert!(id.chars().chain(secret.chars()).all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()));
        assert_ne!(token, BootstrapToken::random());
        assert_eq!(format!("{token:?}"), "BootstrapToken(..)");
    }

    #[test]
    fn a_token_ends_after_two_hours() {
        let now: Timestamp = "2026-11-21T00:00:00.123Z".parse().unwrap();
        let token = BootstrapToken::random();
        let manifest = token.manifest("w1", now);
        let data = manifest.string_data.unwrap();
        assert_eq!(data["expiration"], "2026-11-21T02:00:00Z");
        assert_eq!(manifest.metadata.name.unwrap(), format!("bootstrap-token-{}", data["token-id"]));
    }
}
