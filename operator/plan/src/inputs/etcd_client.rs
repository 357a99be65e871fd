//! How API servers speak to an external etcd: what the Secret of `etcd.secretRef` must hold. Its values are looked at
//! and never repeated. Whether certificate and key belong together, and whether etcd accepts them, a machine finds out.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::Reason;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::private_key;
use super::problem::InputsProblem;
use crate::settings;

/// Keys of the Secret.
const AUTHORITIES: &str = "ca.crt";
const CERTIFICATE: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";

/// The keys of the Secret, each with the file that control planes get.
const FILES: [(&str, &str); 3] = [
    (AUTHORITIES, "pki.etcd-ca.crt"),
    (CERTIFICATE, "pki.apiserver-etcd-client.crt"),
    (PRIVATE_KEY, "pki.apiserver-etcd-client.key"),
];

/// What runs on control planes bring there, by the names of their Secret's keys; `None`: the Secret is not there.
pub fn etcd_client_files(name: &str, secret: Option<&Secret>) -> Result<BTreeMap<String, ByteString>, InputsProblem> {
    let values = etcd_client_values(name, secret)?;
    Ok(FILES.into_iter().zip(values).map(|((_, file), value)| (file.to_owned(), value)).collect())
}

/// The authorities of etcd, a client's certificate and its key, as they stand in the Secret; `None`: it is not there.
pub fn etcd_client_values(name: &str, secret: Option<&Secret>) -> Result<Vec<ByteString>, InputsProblem> {
    let refused = |reason, what: String| {
        let message = format!("Secret {name} of spec.etcd.secretRef {what}");
        Err(InputsProblem::waits(reason, message))
    };
    let Some(secret) = secret else {
        let what = format!(
            "is not there: make it, with {AUTHORITIES}, {CERTIFICATE} and {PRIVATE_KEY} in PEM, as the etcd's administrator gave them"
        );
        return refused(Reason::SecretNotFound, what);
    };
    let mut values = Vec::new();
    for (key, _) in FILES {
        let value = secret.data.as_ref().and_then(|data| data.get(key));
        let Some(value) = value.filter(|value| !value.0.trim_ascii().is_empty()) else {
            return refused(Reason::SecretNotFound, format!("lacks {key}: add it, in PEM"));
        };
        if let Some(mistake) = mistake(key, &value.0) {
            let wanted = match key {
                PRIVATE_KEY => "the private key of tls.crt in PEM, without a passphrase",
                CERTIFICATE => "the client certificate in PEM",
                _ => "the certificates of the authorities of etcd in PEM",
            };
            return refused(Reason::InvalidEtcdClient, format!("holds in {key} {mistake}: give {wanted}"));
        }
        values.push(value.clone());
    }
    Ok(values)
}

/// A short digest of the certificates among these files: a new key has a new certificate.
pub fn etcd_client_digest(files: &BTreeMap<String, ByteString>) -> String {
    let certificates = [AUTHORITIES, CERTIFICATE].map(|wanted| {
        let file = FILES.iter().find(|(key, _)| *key == wanted).and_then(|(_, file)| files.get(*file));
        file.map(|value| String::from_utf8_lossy(&value.0).into_owned())
    });
    settings::digest(&certificates)
}

/// What the value is instead of what it should be.
fn mistake(key: &str, value: &[u8]) -> Option<&'static str> {
    let Ok(text) = std::str::from_utf8(value) else {
        return Some("no text");
    };
    match key {
        PRIVATE_KEY => mistaken_key(text),
        _ => mistaken_certificates(text),
    }
}

fn mistaken_key(text: &str) -> Option<&'static str> {
    if text.contains("BEGIN OPENSSH PRIVATE KEY") {
        return Some("a key of SSH");
    }
    // Some tools write the parameters of an elliptic curve before its key.
    let begin = text.match_indices("-----BEGIN ").find(|(at, _)| {
        let line = text[*at..].lines().next().unwrap_or_default();
        line.trim_ascii_end().ends_with("PRIVATE KEY-----")
    });
    let block = begin.map_or(text, |(at, _)| first_block(&text[at..]));
    private_key::mistake(block.replace('\r', "").as_bytes())
}

/// The text up to the end of its first block.
fn first_block(text: &str) -> &str {
    let end = text.match_indices("-----END ").next().map(|(at, _)| at);
    let line = end.map(|at| text[at..].lines().next().map_or(0, str::len) + at);
    line.map_or(text, |end| &text[..end])
}

fn mistaken_certificates(text: &str) -> Option<&'static str> {
    if text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    let mut blocks = text.split("-----BEGIN CERTIFICATE-----").skip(1).peekable();
    if blocks.peek().is_none() {
        return Some("no certificate");
    }
    let is_whole = |block: &str| {
        let body = block.split_once("-----END CERTIFICATE-----").map(|(body, _)| body);
        let body = body.map(|body| body.split_ascii_whitespace().collect::<String>());
        let bytes = body.and_then(|body| STANDARD.decode(body).ok());
        bytes.is_some_and(|bytes| private_key::der(&bytes).is_none())
    };
    (!blocks.all(is_whole)).then_some("a certificate that is cut off, or damaged")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn pem(label: &str, bytes: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(bytes))
    }

    fn certificate() -> String {
        pem("CERTIFICATE", &[[0x30, 0x04].as_slice(), b"cert"].concat())
    }

    fn private_key() -> String {
        pem("EC PRIVATE KEY", &[[0x30, 0x06].as_slice(), b"canary"].concat())
    }

    pub fn secret(changed: &[(&str, &str)]) -> Secret {
        let mut data: BTreeMap<String, String> = [
            ("ca.crt".to_owned(), certificate() + &certificate()),
            ("tls.crt".to_owned(), certificate()),
            ("tls.key".to_owned(), private_key()),
        ]
        .into();
        data.extend(changed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let data = data.into_iter().map(|(key, value)| (key, ByteString(value.into_bytes())));
        Secret { data: Some(data.collect()), ..Secret::default() }
    }

    fn refusal(changed: &[(&str, &str)]) -> (String, String) {
        let problem = etcd_client_files("etcd", Some(&secret(changed))).unwrap_err();
        assert!(!problem.permanent && !problem.message.contains("canary"), "{}", problem.message);
        assert!(problem.message.starts_with("Secret etcd of spec.etcd.secretRef "), "{}", problem.message);
        (problem.reason.to_string(), problem.message)
    }

    #[test]
    fn a_whole_secret_is_brought_under_the_names_that_control_planes_know() {
        let files = etcd_client_files("etcd", Some(&secret(&[]))).unwrap();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["pki.apiserver-etcd-client.crt", "pki.apiserver-etcd-client.key", "pki.etcd-ca.crt"]);
        let key_and_certificate = private_key() + &certificate();
        assert!(etcd_client_files("etcd", Some(&secret(&[("tls.key", &key_and_certificate)]))).is_ok());
        let parameters = pem("EC PARAMETERS", &[0x06, 0x01, 0x2a]) + &private_key();
        assert!(etcd_client_files("etcd", Some(&secret(&[("tls.key", &parameters)]))).is_ok());
        assert!(etcd_client_files("etcd", Some(&secret(&[("tls.key", &private_key().replace('\n', "\r\n"))]))).is_ok());
    }

    #[test]
    fn what_is_missing_is_named_and_waited_for() {
        assert_eq!(etcd_client_files("etcd", None).unwrap_err().reason, Reason::SecretNotFound);
        for key in ["ca.crt", "tls.crt", "tls.key"] {
            let (reason, message) = refusal(&[(key, " \n")]);
            assert_eq!((reason.as_str(), message.contains(key)), ("SecretNotFound", true), "{message}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_told_without_a_word_of_it() {
        let check = |key: &str, value: &str, found: &str| {
            let (reason, message) = refusal(&[(key, value)]);
            assert_eq!(reason, "InvalidEtcdClient");
            assert!(message.contains(&format!("holds in {key} {found}: give")), "{message}");
        };
        check("ca.crt", "canary", "no certificate");
        check("tls.crt", &private_key(), "a private key");
        check("tls.crt", &pem("CERTIFICATE", b"canary"), "a certificate that is cut off, or damaged");
        let cut_off = format!("{}-----BEGIN CERTIFICATE-----\nMIIB", certificate());
        check("ca.crt", &cut_off, "a certificate that is cut off, or damaged");
        check("tls.key", &certificate(), "a certificate");
        check("tls.key", "canary", "no private key");
        check("tls.key", &pem("ENCRYPTED PRIVATE KEY", b"canary"), "protected by a passphrase");
        check("tls.key", &pem("OPENSSH PRIVATE KEY", b"canary"), "a key of SSH");
        check("tls.key", &pem("PRIVATE KEY", b"canary"), "cut off, or damaged");
    }

    #[test]
    fn a_digest_follows_the_certificates() {
        let digest =
            |changed: &[(&str, &str)]| etcd_client_digest(&etcd_client_files("etcd", Some(&secret(changed))).unwrap());
        assert_eq!(digest(&[]), digest(&[]));
        let other = pem("CERTIFICATE", &[[0x30, 0x04].as_slice(), b"next"].concat());
        assert_ne!(digest(&[]), digest(&[("tls.crt", &other)]));
        assert_ne!(digest(&[]), digest(&[("ca.crt", &other)]));
    }
}
