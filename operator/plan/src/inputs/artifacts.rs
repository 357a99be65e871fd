//! Whom runs trust where programs and images come from, and how they log in there; secrets are looked at, never
//! repeated.

use crds::Reason;
use crds::cluster_deployment::Artifacts;
use std::collections::BTreeMap;

use super::artifact_lock::ArtifactLock;
use super::problem::InputsProblem;
use crate::catalogue;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::Value;

/// Key of the ConfigMap of `artifacts.caRef`.
const CA_KEY: &str = "ca.crt";
/// The variable that says how a run logs in; empty: it does not.
pub(super) const LOGIN: &str = "artifacts_login";

/// What is found of the artifact source's references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactsSeen {
    /// Certificates in PEM.
    pub ca: Option<String>,
    /// How runs log in.
    pub login: Option<Login>,
    /// What may be taken from upstream.
    pub lock: Option<ArtifactLock>,
}

/// How runs log in to the artifact source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// With `username` and `password`.
    Basic,
    /// With `token`.
    Bearer,
}

impl Login {
    /// As the variable says it.
    pub fn name(self) -> &'static str {
        match self {
            Login::Basic => "Basic",
            Login::Bearer => "Bearer",
        }
    }

    /// The keys of the Secret that it takes.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Login::Basic => &["username", "password"],
            Login::Bearer => &["token"],
        }
    }
}

/// Whether these variables say that a run logs in.
pub(super) fn has_login(vars: &BTreeMap<String, Value>) -> bool {
    let login = vars.get(LOGIN).and_then(Value::as_str);
    login.is_some_and(|login| !login.is_empty())
}

/// The certificates in the ConfigMap of this name, which this field refers to; `None`: it is not there.
pub fn ca_of(field: &str, name: &str, map: Option<&ConfigMap>) -> Result<String, InputsProblem> {
    let Some(map) = map else {
        let message =
            format!("ConfigMap {name} of {field} is not there: make it, with the certificate in key {CA_KEY}");
        return Err(InputsProblem::waits(Reason::ConfigMapNotFound, message));
    };
    let pem = map.data.as_ref().and_then(|data| data.get(CA_KEY));
    match pem.filter(|pem| pem.contains("-----BEGIN CERTIFICATE-----")) {
        Some(pem) => Ok(pem.clone()),
        None => Err(InputsProblem::waits(
            Reason::InvalidCA,
            format!("ConfigMap {name} of {field} has no certificate in key {CA_KEY}: give one or more in PEM"),
        )),
    }
}

/// Name of the field of a ClusterDeployment that refers to a login.
pub const CREDENTIALS: &str = "spec.artifacts.credentialsRef";

/// How the Secret of this name, which this field refers to, logs in; `None`: it is not there.
pub fn login_of(field: &str, name: &str, secret: Option<&Secret>) -> Result<Login, InputsProblem> {
    let Some(secret) = secret else {
        let message =
            format!("Secret {name} of {field} is not there: make it, with username and password, or with token");
        return Err(InputsProblem::waits(Reason::SecretNotFound, message));
    };
    let has = |key: &&str| {
        let value = secret.data.as_ref().and_then(|data| data.get(*key));
        value.is_some_and(|value| is_one_line(&value.0))
    };
    [Login::Bearer, Login::Basic].into_iter().find(|login| login.keys().iter().all(has)).ok_or_else(|| {
        let message = format!(
            "Secret {name} of {field} holds neither username and password nor token, each one line \
                 of text: give one of them"
        );
        InputsProblem::waits(Reason::SecretNotFound, message)
    })
}

/// What an HTTP header can carry; an editor's newline at its end is not part of it.
fn is_one_line(value: &[u8]) -> bool {
    let value = value.trim_ascii_end();
    !value.is_empty() && std::str::from_utf8(value).is_ok_and(|text| !text.chars().any(char::is_control))
}

/// The variables of roles that use the bundle.
pub(super) fn variables(artifacts: Option<&Artifacts>, seen: &ArtifactsSeen) -> BTreeMap<String, Value> {
    let index_sha256 = artifacts.and_then(|artifacts| artifacts.index_sha256.as_deref());
    BTreeMap::from([
        ("artifacts_index_sha256".to_owned(), index_sha256.unwrap_or_default().into()),
        ("artifacts_ca".to_owned(), seen.ca.as_deref().unwrap_or_default().into()),
        (LOGIN.to_owned(), seen.login.map_or("", Login::name).into()),
    ])
}

/// Further ones where there is no bundle.
pub(super) fn of_upstream(seen: &ArtifactsSeen) -> BTreeMap<String, Value> {
    let catalogue = ("artifacts_catalogue".to_owned(), catalogue::variable());
    let lock = seen.lock.as_ref().map(|lock| ("artifacts_lock".to_owned(), lock.variable()));
    std::iter::once(catalogue).chain(lock).collect()
}

/// The key that signs the bundle's packages, for the roles; empty: machines install from their own sources.
pub(super) fn packages(artifacts: Option<&Artifacts>, seen: &ArtifactsSeen) -> Result<Value, InputsProblem> {
    let key = artifacts.and_then(|artifacts| artifacts.os_packages.as_ref()).map(|packages| &packages.signed_by);
    if key.is_some() && seen.login == Some(Login::Bearer) {
        let message = "spec.artifacts.credentialsRef names a Secret with token, and apt logs in with username and password \
                       alone: give these in the Secret, or leave out spec.artifacts.osPackages";
        return Err(InputsProblem::waits(Reason::SecretNotFound, message.to_owned()));
    }
    Ok(key.map_or("", String::as_str).into())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn login(data: &[(&str, &str)]) -> Result<Login, InputsProblem> {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        let secret = Secret { data: Some(data.collect()), ..Secret::default() };
        login_of(CREDENTIALS, "bundle", Some(&secret))
    }

    #[test]
    fn a_secret_logs_in_by_what_it_holds() {
        assert_eq!(login(&[("username", "fleet"), ("password", "x\n")]), Ok(Login::Basic));
        assert_eq!(login(&[("token", "x")]), Ok(Login::Bearer));
        for wrong in [&[][..], &[("username", "fleet")], &[("token", " \n")], &[("token", "canary\r\nHost: other")]] {
            let problem = login(wrong).unwrap_err();
            assert_eq!(problem.reason, "SecretNotFound");
            assert!(problem.message.contains("Secret bundle") && !problem.message.contains("canary"));
        }
        assert_eq!(login_of(CREDENTIALS, "bundle", None).unwrap_err().reason, "SecretNotFound");
    }

    #[test]
    fn apt_is_given_a_key_and_no_token() {
        let artifacts: Artifacts =
            serde_json::from_value(serde_json::json!({"url": "https://b", "osPackages": {"signedBy": "key"}})).unwrap();
        let seen = |login| ArtifactsSeen { login, ..ArtifactsSeen::default() };
        assert_eq!(packages(Some(&artifacts), &seen(Some(Login::Basic))).unwrap(), "key");
        assert_eq!(packages(None, &seen(Some(Login::Bearer))).unwrap(), "");
        let problem = packages(Some(&artifacts), &seen(Some(Login::Bearer))).unwrap_err();
        assert!(problem.message.contains("spec.artifacts.osPackages"), "{}", problem.message);
    }

    #[test]
    fn a_ca_is_a_certificate_in_pem() {
        let map = |text: &str| ConfigMap {
            data: Some([("ca.crt".to_owned(), text.to_owned())].into()),
            ..ConfigMap::default()
        };
        let pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        assert_eq!(ca_of("spec.artifacts.caRef", "ca", Some(&map(pem))).as_deref(), Ok(pem));
        assert_eq!(ca_of("spec.artifacts.caRef", "ca", Some(&map("text"))).unwrap_err().reason, "InvalidCA");
        assert_eq!(ca_of("spec.artifacts.caRef", "ca", None).unwrap_err().reason, "ConfigMapNotFound");
    }
}
