//! The administrator's kubeconfig of a cluster that was built here, kept in the Secret `<cluster>-kubeconfig`.

pub mod check;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::ClusterDeployment;
use crds::names::{KUBECONFIG_KEY, annotation, kubeconfig_secret};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use plan::certificates::RenewalPolicy;
use serde_json::json;

use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::execute;
use crate::pki::authority::Leaf;
use crate::pki::certificate::Certificate;
use crate::pki::{self, Certified, Pki};
use check::check;

/// The administrator's kubeconfig of a cluster, in its Secret: kept while its certificate lasts and names this server
/// (`https://host:port`), made anew otherwise.
pub async fn ensure(
    ctx: &Context,
    cd: &ClusterDeployment,
    pki: &Pki,
    server: &str,
    now: Timestamp,
) -> Result<Secret, Error> {
    let name = kubeconfig_secret(&cd.name_any());
    let policy = RenewalPolicy::new(cd);
    let found = pki::find(ctx, cd, &name).await?;
    if let Some(found) = found {
        pki::belongs_to(&found, cd).doing(|| format!("use Secret {name}"))?;
        let data = found.data.as_ref().and_then(|data| data.get(KUBECONFIG_KEY));
        if data.is_some_and(|data| still_good(data, pki, server, policy, now)) {
            return Ok(found);
        }
    }
    let text = administrator(&cd.name_any(), pki, server, policy, now)
        .doing(|| format!("make the kubeconfig of cluster {}", cd.name_any()))?;
    let data = [(KUBECONFIG_KEY.to_owned(), ByteString(text.into()))].into();
    let mut secret = pki::secret(cd, &name, data);
    let authority = pki.kubernetes.seen().digest();
    secret.metadata.annotations = Some([(annotation::AUTHORITY.to_owned(), authority)].into());
    execute::apply(ctx, &secret).await
}

/// An administrator's kubeconfig with a new client certificate.
fn administrator(
    cluster: &str,
    pki: &Pki,
    server: &str,
    policy: RenewalPolicy,
    now: Timestamp,
) -> Result<String, pki::PkiError> {
    let leaf = Leaf {
        common_name: "kubernetes-admin:clusterwright".into(),
        organization: Some("system:masters"),
        ..Leaf::default()
    };
    let Certified { certificate, key } = pki.kubernetes.signer().issue(&leaf, policy.validity, now)?;
    let (user, context) = ("kubernetes-admin", format!("kubernetes-admin@{cluster}"));
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": cluster, "cluster": {
            "server": server,
            "certificate-authority-data": STANDARD.encode(pki.kubernetes.trusted()),
        }}],
        "users": [{ "name": user, "user": {
            "client-certificate-data": STANDARD.encode(certificate),
            "client-key-data": STANDARD.encode(key),
        }}],
        "contexts": [{ "name": context, "context": { "cluster": cluster, "user": user }}],
        "current-context": context,
    });
    serde_yaml::to_string(&kubeconfig)
        .map_err(|error| pki::PkiError::Read { what: "the kubeconfig".into(), problem: error.to_string() })
}

fn still_good(data: &ByteString, pki: &Pki, server: &str, policy: RenewalPolicy, now: Timestamp) -> bool {
    let Ok(checked) = std::str::from_utf8(&data.0).map_err(drop).and_then(|text| check(text).map_err(drop)) else {
        return false;
    };
    let Ok(ours) = Certificate::parse("the authority", pki.kubernetes.signer().certificate()) else {
        return false;
    };
    checked.server == server
        && checked.authority_pem.as_deref() == Some(pki.kubernetes.trusted().as_str())
        && checked.client.is_some_and(|client| {
            client.is_signed_by(&ours) && client.not_after().is_ok_and(|end| !policy.is_worth_a_new_one(end, now))
        })
}

#[cfg(test)]
mod tests {
    use super::check::check;
    use super::{RenewalPolicy, administrator, still_good};
    use crate::pki::Pki;
    use jiff::{SignedDuration, Span, Timestamp};
    use k8s_openapi::ByteString;
    use serde_json::{Value, json};

    const SERVER: &str = "https://172.30.0.10:6443";

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    fn policy() -> RenewalPolicy {
        let days = |days: i64| SignedDuration::from_hours(24 * days);
        RenewalPolicy { validity: days(365), renew_before: days(121) }
    }

    fn kubeconfig() -> (Pki, Value) {
        let pki = Pki::generate(now()).unwrap();
        let text = administrator("prod-a", &pki, SERVER, policy(), now()).unwrap();
        (pki, serde_yaml::from_str(&text).unwrap())
    }

    #[test]
    fn the_one_made_is_accepted_and_says_when_it_ends() {
        let (_, kubeconfig) = kubeconfig();
        let checked = check(&kubeconfig.to_string()).unwrap();
        assert_eq!(checked.server, SERVER);
        let ends: Vec<String> = checked.certificates().iter().map(|(name, end)| format!("{name} {end}")).collect();
        assert_eq!(ends, ["admin-kubeconfig 2027-11-21T00:00:00Z", "kubernetes-ca 2036-11-18T00:00:00Z"]);
    }

    #[test]
    fn it_is_kept_until_it_is_worth_a_new_one() {
        let (pki, kubeconfig) = kubeconfig();
        let data = ByteString(kubeconfig.to_string().into());
        let after = |days: i64| now() + Span::new().hours(24 * days);
        assert!(still_good(&data, &pki, SERVER, policy(), after(200)));
        assert!(!still_good(&data, &pki, SERVER, policy(), after(220)));
        assert!(!still_good(&data, &pki, "https://172.30.0.11:6443", policy(), now()));
        assert!(!still_good(&data, &Pki::generate(now()).unwrap(), SERVER, policy(), now()));
    }

    #[test]
    fn what_would_run_or_read_or_trust_too_much_is_refused() {
        let (_, good) = kubeconfig();
        let check = |path: &str, value: Value, expected: &str| {
            let mut bad = good.clone();
            let (parent, key) = path.rsplit_once('/').unwrap();
            bad.pointer_mut(parent).unwrap()[key] = value;
            let error = check(&bad.to_string()).unwrap_err().to_string();
            assert!(error.contains(expected), "{path}: {error}");
        };
        let (user, cluster) = ("/users/0/user", "/clusters/0/cluster");
        check(&format!("{user}/exec"), json!({"command": "sh"}), "exec is not allowed");
        check(&format!("{user}/auth-provider"), json!({"name": "oidc", "config": {}}), "auth-provider");
        check(&format!("{user}/tokenFile"), json!("/etc/passwd"), "tokenFile is not allowed");
        check(&format!("{user}/client-key"), json!("/etc/key"), "client-key is not allowed");
        check(&format!("{user}/client-certificate"), json!("/etc/crt"), "client-certificate is not allowed");
        check(&format!("{user}/client-certificate-data"), json!("!"), "no PEM text");
        check(&format!("{user}/client-certificate-data"), Value::Null, "neither a client certificate nor a token");
        check(&format!("{cluster}/certificate-authority"), json!("/etc/ca"), "certificate-authority is not");
        check(&format!("{cluster}/insecure-skip-tls-verify"), json!(true), "insecure-skip-tls-verify");
        check(&format!("{cluster}/proxy-url"), json!("http://x"), "proxy-url");
        check(&format!("{cluster}/server"), json!("http://172.30.0.10"), "not https");
        for host in ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"] {
            check(&format!("{cluster}/server"), json!(format!("https://{host}:6443")), "own Pod");
        }
        check("/current-context", json!("other"), "names no context");
        assert!(super::check("a: [").is_err());
    }
}
