//! The age identity that decrypts a backup, in a Secret of the user's.

use crds::Reason;
use crds::etcd_restore::IDENTITY_KEY;
use k8s_openapi::api::core::v1::Secret;

use super::problem::InputsProblem;

/// Whether the Secret of this name has an identity; `None`: it is not there.
pub fn identity(name: &str, secret: Option<&Secret>) -> Result<(), InputsProblem> {
    let message = match secret {
        None => format!("Secret {name} of identityRef is not there: make it, with the key {IDENTITY_KEY}"),
        Some(secret) if is_empty(secret) => {
            format!("Secret {name} of identityRef lacks {IDENTITY_KEY}: add it, as age-keygen wrote it")
        }
        Some(_) => return Ok(()),
    };
    Err(InputsProblem::waits(Reason::SecretNotFound, message))
}

fn is_empty(secret: &Secret) -> bool {
    let value = secret.data.as_ref().and_then(|data| data.get(IDENTITY_KEY));
    value.is_none_or(|value| value.0.trim_ascii().is_empty())
}
