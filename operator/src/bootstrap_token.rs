//! Bootstrap tokens: what a machine joins with. Made anew for each attempt and valid for two hours.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, PostParams};
use rand::Rng;

use crate::error::{Doing, Error};

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
            (0..count)
                .map(|_| char::from(ALPHABET[chance.random_range(0..ALPHABET.len())]))
                .collect()
        };
        Self {
            id: characters(6),
            secret: characters(16),
        }
    }

    /// The token as `kubeadm` takes it.
    pub fn text(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// The Secret of kube-system that makes the token valid until two hours from now.
    fn manifest(&self, now: Timestamp) -> Secret {
        let expiration = now
            .saturating_add(LIFETIME)
            .unwrap_or(now)
            .strftime("%Y-%m-%dT%H:%M:%SZ");
        let data = [
            ("token-id", self.id.clone()),
            ("token-secret", self.secret.clone()),
            ("expiration", expiration.to_string()),
            ("usage-bootstrap-authentication", "true".into()),
            ("usage-bootstrap-signing", "true".into()),
            (
                "auth-extra-groups",
                "system:bootstrappers:kubeadm:default-node-token".into(),
            ),
            (
                "description",
                "Made by Clusterwright for machines that join.".into(),
            ),
        ];
        let mut secret = Secret {
            type_: Some("bootstrap.kubernetes.io/token".into()),
            string_data: Some(
                data.into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect(),
            ),
            ..Secret::default()
        };
        secret.metadata.name = Some(format!("bootstrap-token-{}", self.id));
        secret.metadata.namespace = Some(NAMESPACE.into());
        secret
    }
}

impl std::fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BootstrapToken(..)")
    }
}

/// Makes a token and writes it into a cluster that answers. The client is the cluster's, not the metadata cluster's.
pub async fn mint(client: &Client, now: Timestamp) -> Result<BootstrapToken, Error> {
    let token = BootstrapToken::random();
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let written = api.create(&PostParams::default(), &token.manifest(now)).await;
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
        assert!(
            id.chars()
                .chain(secret.chars())
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        );
        assert_ne!(token, BootstrapToken::random());
        assert_eq!(format!("{token:?}"), "BootstrapToken(..)");
    }

    #[test]
    fn a_token_ends_after_two_hours() {
        let now: Timestamp = "2026-11-21T00:00:00.123Z".parse().unwrap();
        let token = BootstrapToken::random();
        let manifest = token.manifest(now);
        let data = manifest.string_data.unwrap();
        assert_eq!(data["expiration"], "2026-11-21T02:00:00Z");
        assert_eq!(
            manifest.metadata.name.unwrap(),
            format!("bootstrap-token-{}", data["token-id"])
        );
    }
}
