//! What a Secret must hold so that SSH gets in; its content is looked at, never repeated.

use std::collections::BTreeMap;

use crds::inputs::CredentialKind;
use k8s_openapi::api::core::v1::Secret;

use super::InputsProblem;

/// Kind of each credential, by the Secret's name; or why it is none.
pub type Credentials = BTreeMap<String, Result<CredentialKind, InputsProblem>>;

/// A key of more than this is none.
const LARGEST_KEY: usize = 64 << 10;

/// What the Secret of this name is good for; `None`: it is not there.
pub fn classify(name: &str, secret: Option<&Secret>) -> Result<CredentialKind, InputsProblem> {
    let Some(secret) = secret else {
        let message = format!(
            "Secret {name} is not there: make it, of type kubernetes.io/ssh-auth or kubernetes.io/basic-auth"
        );
        return Err(InputsProblem::waits("SecretNotFound", message));
    };
    let value = |key: &str| {
        let value = secret.data.as_ref().and_then(|data| data.get(key));
        value
            .map(|value| value.0.as_slice())
            .filter(|value| !value.trim_ascii().is_empty())
    };
    if let Some(key) = value("ssh-privatekey") {
        return private_key(name, key).map(|()| CredentialKind::SshKey);
    }
    if value("password").is_some() {
        return Ok(CredentialKind::Password);
    }
    let message =
        format!("Secret {name} holds neither ssh-privatekey nor password, or an empty one: give one of them");
    Err(InputsProblem::waits("SecretNotFound", message))
}

fn private_key(name: &str, key: &[u8]) -> Result<(), InputsProblem> {
    let wrong = |kind: &str| {
        let message = format!(
            "Secret {name}: ssh-privatekey is {kind}; give an unencrypted private key in PEM or OpenSSH form"
        );
        Err(InputsProblem::waits("InvalidSSHKey", message))
    };
    let Ok(text) = std::str::from_utf8(key) else {
        return wrong("no text");
    };
    if text.len() > LARGEST_KEY {
        return wrong("larger than 64 KiB");
    }
    if text.starts_with("ssh-") || text.starts_with("ecdsa-") || text.contains("BEGIN PUBLIC KEY") {
        return wrong("a public key");
    }
    if text.starts_with('\u{feff}') {
        return wrong("preceded by a byte order mark");
    }
    if text.contains('\r') {
        return wrong("written with carriage returns");
    }
    if text.contains("BEGIN DSA PRIVATE KEY") {
        return wrong("a DSA key, which SSH no longer takes");
    }
    if text.contains("Proc-Type: 4,ENCRYPTED") || text.contains("BEGIN ENCRYPTED PRIVATE KEY") {
        return wrong("protected by a passphrase");
    }
    let whole = text.contains("PRIVATE KEY-----")
        && text.trim_ascii().starts_with("-----BEGIN ")
        && text.trim_ascii().ends_with(" PRIVATE KEY-----")
        && text.contains("-----END ");
    if whole {
        Ok(())
    } else {
        wrong("no private key, or cut off")
    }
}

#[cfg(test)]
mod tests {
    use super::classify;
    use crds::inputs::CredentialKind;
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::Secret;

    const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n";

    fn of(key: &str, value: &str) -> Secret {
        let data = [(key.to_owned(), ByteString(value.as_bytes().to_vec()))];
        Secret {
            data: Some(data.into()),
            ..Secret::default()
        }
    }

    #[test]
    fn keys_and_passwords_are_told_apart() {
        assert_eq!(
            classify("s", Some(&of("ssh-privatekey", KEY))),
            Ok(CredentialKind::SshKey)
        );
        assert_eq!(
            classify("s", Some(&of("password", "x"))),
            Ok(CredentialKind::Password)
        );
    }

    #[test]
    fn a_secret_that_is_missing_or_empty_is_waited_for() {
        let check = |secret: Option<Secret>| {
            let problem = classify("s", secret.as_ref()).unwrap_err();
            assert_eq!((problem.reason, problem.permanent), ("SecretNotFound", false));
        };
        check(None);
        check(Some(Secret::default()));
        check(Some(of("ssh-privatekey", "\n")));
        check(Some(of("token", "x")));
    }

    #[test]
    fn a_key_that_ssh_would_not_take_is_named_and_never_repeated() {
        let check = |key: &str, kind: &str| {
            let problem = classify("s", Some(&of("ssh-privatekey", key))).unwrap_err();
            assert_eq!(problem.reason, "InvalidSSHKey");
            assert!(problem.message.contains(kind), "{}", problem.message);
            assert!(!problem.message.contains("AAAA"));
        };
        check("ssh-ed25519 AAAA root@x", "a public key");
        check(&KEY.replace('\n', "\r\n"), "carriage returns");
        check("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA", "cut off");
        check(
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----",
            "passphrase",
        );
        check("AAAA", "no private key");
    }
}
