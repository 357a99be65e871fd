//! What a Secret must hold so that SSH gets in; its content is looked at, never repeated.

use std::collections::BTreeMap;

use crds::Reason;
use crds::inputs::CredentialKind;
use k8s_openapi::api::core::v1::Secret;

use super::private_key::mistake;
use super::problem::InputsProblem;

/// Kind of each credential, by the Secret's name; or why it is none.
pub type Credentials = BTreeMap<String, Result<CredentialKind, InputsProblem>>;

/// What the Secret of this name is good for; `None`: it is not there.
pub fn classify(name: &str, secret: Option<&Secret>) -> Result<CredentialKind, InputsProblem> {
    let Some(secret) = secret else {
        let message =
            format!("Secret {name} is not there: make it, of type kubernetes.io/ssh-auth or kubernetes.io/basic-auth");
        return Err(InputsProblem::waits(Reason::SecretNotFound, message));
    };
    let value = |key: &str| {
        let value = secret.data.as_ref().and_then(|data| data.get(key));
        value.map(|value| value.0.as_slice()).filter(|value| !value.trim_ascii().is_empty())
    };
    if let Some(key) = value("ssh-privatekey") {
        return match mistake(key) {
            None => Ok(CredentialKind::SshKey),
            Some(mistake) => {
                let message = format!(
                    "Secret {name}: ssh-privatekey is {mistake}; give an unencrypted private key in PEM or OpenSSH form"
                );
                Err(InputsProblem::waits(Reason::InvalidSSHKey, message))
            }
        };
    }
    if value("password").is_some() {
        return Ok(CredentialKind::Password);
    }
    let message = format!("Secret {name} holds neither ssh-privatekey nor password, or an empty one: give one of them");
    Err(InputsProblem::waits(Reason::SecretNotFound, message))
}

#[cfg(test)]
mod tests {
    use super::classify;
    use crds::inputs::CredentialKind;
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::Secret;

    use crate::inputs::private_key::example;

    fn secret(key: &str, value: &str) -> Secret {
        let data = [(key.to_owned(), ByteString(value.as_bytes().to_vec()))];
        Secret { data: Some(data.into()), ..Secret::default() }
    }

    #[test]
    fn keys_and_passwords_are_told_apart() {
        assert_eq!(
            classify("s", Some(&secret("ssh-privatekey", &example("none", "ssh-ed25519")))),
            Ok(CredentialKind::SshKey)
        );
        assert_eq!(classify("s", Some(&secret("password", "x"))), Ok(CredentialKind::Password));
    }

    #[test]
    fn a_secret_that_is_missing_or_empty_is_waited_for() {
        let check = |secret: Option<Secret>| {
            let problem = classify("s", secret.as_ref()).unwrap_err();
            assert_eq!((problem.reason.as_str(), problem.permanent), ("SecretNotFound", false));
        };
        check(None);
        check(Some(Secret::default()));
        check(Some(secret("ssh-privatekey", "\n")));
        check(Some(secret("token", "x")));
        check(Some(secret("id_ed25519", &example("none", "ssh-ed25519"))));
    }

    #[test]
    fn a_key_that_is_none_is_waited_for_and_never_repeated() {
        let secret = secret("ssh-privatekey", "ssh-ed25519 AAAAC3Nza root@x");
        let problem = classify("s", Some(&secret)).unwrap_err();
        assert_eq!((problem.reason.as_str(), problem.permanent), ("InvalidSSHKey", false));
        assert!(problem.message.starts_with("Secret s: ssh-privatekey is a public key;"));
        assert!(!problem.message.contains("AAAAC3Nza"));
    }
}
