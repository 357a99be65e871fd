//! Whom machines believe to be mirrors of registries, and how they log in there: what the references of
//! `containerRuntime.registryMirrors` lead to. A login is looked at, never repeated.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::Reason;
use crds::cluster_deployment::RegistryMirror;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::artifacts::ca_of;
use super::problem::InputsProblem;
use crate::{naming, settings};

/// What the references of one registry's mirrors lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistrySeen {
    /// Certificates in PEM.
    pub ca: Option<String>,
    /// A digest of the login.
    pub login: Option<String>,
}

/// By the registry's prefix; those without references are not among them.
pub type Registries = BTreeMap<String, RegistrySeen>;

/// How machines log in: the header of requests, and what tells another login from it.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryLogin {
    /// `Basic <base64>`.
    pub authorization: ByteString,
    /// A digest that says nothing of the password: the UID of the Secret, which nobody can guess, is in it.
    pub digest: String,
}

/// How the Secret of this name logs in; `None`: it is not there.
pub fn registry_login(prefix: &str, name: &str, secret: Option<&Secret>) -> Result<RegistryLogin, InputsProblem> {
    let refused = |what: &str| {
        let message = format!(
            "Secret {name} of spec.containerRuntime.registryMirrors[{prefix}].credentialsRef {what}: give username and password"
        );
        InputsProblem::waits(Reason::SecretNotFound, message)
    };
    let secret = secret.ok_or_else(|| refused("is not there"))?;
    let value = |key: &str| {
        let value = secret.data.as_ref().and_then(|data| data.get(key))?;
        let text = std::str::from_utf8(value.0.trim_ascii_end()).ok()?;
        (!text.is_empty() && !text.chars().any(char::is_control)).then_some(text)
    };
    let username = value("username").filter(|username| !username.contains(':'));
    let username = username.ok_or_else(|| refused("has no username, one line of text without a colon"))?;
    let password = value("password").ok_or_else(|| refused("has no password, one line of text"))?;
    let authorization = format!("Basic {}", STANDARD.encode(format!("{username}:{password}")));
    let digest = settings::digest(&(&secret.metadata.uid, &authorization));
    Ok(RegistryLogin { authorization: ByteString(authorization.into_bytes()), digest })
}

/// The certificates of `caRef`; `None`: the ConfigMap is not there.
pub fn registry_ca(prefix: &str, name: &str, map: Option<&ConfigMap>) -> Result<String, InputsProblem> {
    ca_of(&format!("spec.containerRuntime.registryMirrors[{prefix}].caRef"), name, map)
}

/// The key of a run's Secret with the header for a registry's mirrors: no prefix is too long for it.
pub fn login_key(prefix: &str) -> String {
    format!("registry.{}", naming::short_hash(&[prefix], 16))
}

/// What statuses remember of them, by prefix.
pub fn digests(registries: &Registries) -> BTreeMap<String, String> {
    let digest = |seen: &RegistrySeen| settings::digest(&(&seen.ca, &seen.login));
    registries.iter().map(|(prefix, seen)| (prefix.clone(), digest(seen))).collect()
}

/// The mirrors of a registry, as the role has them.
pub(super) fn variable(mirror: &RegistryMirror, registries: &Registries) -> Value {
    let host = |endpoint: &String| match mirror.skip_verify {
        false => json!({"host": endpoint, "capabilities": ["pull", "resolve"]}),
        true => json!({"host": endpoint, "capabilities": ["pull", "resolve"], "skip_verify": true}),
    };
    let mut value = json!({"prefix": mirror.prefix, "mirrors": mirror.endpoints.iter().map(host).collect::<Vec<_>>()});
    let seen = registries.get(&mirror.prefix);
    if let Some(ca) = seen.and_then(|seen| seen.ca.as_ref()) {
        value["ca"] = json!(ca);
    }
    if seen.is_some_and(|seen| seen.login.is_some()) {
        value["login"] = json!(login_key(&mirror.prefix));
    }
    value
}

/// The registries to whose mirrors a run with these variables logs in.
pub(super) fn logins(vars: &BTreeMap<String, Value>) -> Vec<String> {
    let registries = vars.get("containerd_registries_mirrors").and_then(Value::as_array);
    let with_login = registries.into_iter().flatten().filter(|registry| registry["login"].is_string());
    with_login.filter_map(|registry| Some(registry["prefix"].as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(uid: &str, data: &[(&str, &str)]) -> Secret {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        let mut secret = Secret { data: Some(data.collect()), ..Secret::default() };
        secret.metadata.uid = Some(uid.into());
        secret
    }

    #[test]
    fn a_login_is_a_header_and_its_digest_says_nothing_of_the_password() {
        let login =
            |uid, password| registry_login("r", "s", Some(&secret(uid, &[("username", "me"), ("password", password)])));
        let one = login("1", "pass\n").unwrap_or_else(|problem| panic!("{}", problem.message));
        assert_eq!(one.authorization.0, b"Basic bWU6cGFzcw==");
        let digest = |uid, password| login(uid, password).map(|login| login.digest).unwrap_or_default();
        assert_eq!(one.digest, digest("1", "pass"));
        assert!(one.digest != digest("1", "other") && one.digest != digest("2", "pass"));
    }

    #[test]
    fn what_is_wrong_with_a_login_is_said_without_it() {
        for wrong in [
            &[][..],
            &[("username", "canary")],
            &[("username", "can:ary"), ("password", "x")],
            &[("username", "x"), ("password", "canary\r\nHost: other")],
            &[("username", "x"), ("password", " \n")],
        ] {
            let problem =
                registry_login("r.example", "s", Some(&secret("1", wrong))).map(|login| login.digest).unwrap_err();
            assert_eq!(problem.reason, "SecretNotFound");
            assert!(
                problem.message.contains("Secret s of spec.containerRuntime.registryMirrors[r.example].credentialsRef")
            );
            assert!(!problem.message.contains("can"), "{}", problem.message);
        }
        let message = registry_login("r", "s", None).map(|login| login.digest).unwrap_err().message;
        assert!(message.contains("is not there: give username and password"), "{message}");
    }

    #[test]
    fn a_role_is_told_of_a_login_and_never_the_login() {
        let mirror = RegistryMirror {
            prefix: "r.example:5000".into(),
            endpoints: vec!["https://m".into()],
            ..RegistryMirror::default()
        };
        let plain = json!({"prefix": "r.example:5000", "mirrors": [{"host": "https://m", "capabilities": ["pull", "resolve"]}]});
        assert_eq!(variable(&mirror, &Registries::new()), plain);
        let seen = RegistrySeen { ca: Some("PEM".into()), login: Some("digest".into()) };
        let value = variable(&mirror, &[(mirror.prefix.clone(), seen)].into());
        assert_eq!((&value["ca"], &value["login"]), (&json!("PEM"), &json!(login_key("r.example:5000"))));
        let vars = [("containerd_registries_mirrors".to_owned(), json!([plain, value]))].into();
        assert_eq!(logins(&vars), ["r.example:5000"]);
        assert!(login_key("r.example:5000").len() < 32 && login_key("r.example:5000") != login_key("r.example:5001"));
        let believed = RegistryMirror { skip_verify: true, ..mirror };
        assert_eq!(variable(&believed, &Registries::new())["mirrors"][0]["skip_verify"], json!(true));
    }
}
