//! The administrator's kubeconfig of a cluster that was built here, kept in the Secret `<cluster>-kubeconfig`.

pub mod check;
pub mod on_machine;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::Reason;
use crds::names::{KUBECONFIG_KEY, annotation};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use plan::addon::Problem;
use plan::certificates::RenewalPolicy;
use plan::rotation::Subject;
use serde_json::json;

use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::pki::authority::Leaf;
use crate::pki::certificate::Certificate;
use crate::pki::{Certified, Pki, PkiError, PkiOwner};
use crate::{execute, live};
use check::{Checked, check};

/// Who administers, as the API server of a kubeconfig sees them: in the group `system:masters`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Administrator {
    /// The user's name, which audit logs have: the common name of the certificate.
    pub common_name: &'static str,
    /// What the kubeconfig calls the user.
    pub user: &'static str,
}

/// Of a cluster with Kubernetes.
pub const KUBERNETES: Administrator =
    Administrator { common_name: "kubernetes-admin:clusterwright", user: "kubernetes-admin" };

/// The administrator's kubeconfig of a cluster, in its Secret: kept while its certificate lasts and names this server
/// (`https://host:port`), made anew otherwise.
pub async fn ensure(
    ctx: &Context,
    owner: &PkiOwner,
    administrator: &Administrator,
    pki: &Pki,
    server: &str,
    now: Timestamp,
) -> Result<Secret, Error> {
    let (name, policy) = (owner.kubeconfig_secret(), owner.renewal);
    let found = owner.find(ctx, &name).await?;
    if let Some(found) = found {
        owner.check(&found).doing(|| format!("use Secret {name}"))?;
        let data = found.data.as_ref().and_then(|data| data.get(KUBECONFIG_KEY));
        if data.is_some_and(|data| still_good(data, pki, server, policy, now)) {
            return Ok(found);
        }
    }
    let doing = || format!("make the kubeconfig of {}", owner.title());
    let text = administrator.kubeconfig(&owner.name, pki, server, policy, now).doing(doing)?;
    let data = [(KUBECONFIG_KEY.to_owned(), ByteString(text.into()))].into();
    let mut secret = owner.secret(&name, data);
    let authority = pki.authority(Subject::Ca).doing(doing)?.seen().digest();
    secret.metadata.annotations = Some([(annotation::AUTHORITY.to_owned(), authority)].into());
    execute::apply(ctx, &secret).await
}

impl Administrator {
    /// The kubeconfig with a new client certificate.
    fn kubeconfig(
        &self,
        cluster: &str,
        pki: &Pki,
        server: &str,
        policy: RenewalPolicy,
        now: Timestamp,
    ) -> Result<String, PkiError> {
        let leaf =
            Leaf { common_name: self.common_name.into(), organization: Some("system:masters"), ..Leaf::default() };
        let authority = pki.authority(Subject::Ca)?;
        let Certified { certificate, key } = authority.signer().issue(&leaf, policy.validity, now)?;
        let (user, context) = (self.user, format!("{}@{cluster}", self.user));
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": cluster, "cluster": {
                "server": server,
                "certificate-authority-data": STANDARD.encode(authority.trusted()),
            }}],
            "users": [{ "name": user, "user": {
                "client-certificate-data": STANDARD.encode(certificate),
                "client-key-data": STANDARD.encode(key),
            }}],
            "contexts": [{ "name": context, "context": { "cluster": cluster, "user": user }}],
            "current-context": context,
        });
        serde_yaml::to_string(&kubeconfig)
            .map_err(|error| PkiError::Read { what: "the kubeconfig".into(), problem: error.to_string() })
    }
}

/// The kubeconfig that a person has put into a Secret, checked; or why there is none that can be used.
pub async fn from_secret(ctx: &Context, namespace: &str, secret: &str) -> Result<Result<Checked, Problem>, Error> {
    let refused = |reason, message| Ok(Err(Problem { reason, message }));
    let Some(found) = live::get::<Secret>(ctx, namespace, secret).await? else {
        let message = format!("waits for Secret {secret}, which holds the kubeconfig");
        return refused(Reason::SecretNotFound, message);
    };
    let data = found.data.as_ref().and_then(|data| data.get(KUBECONFIG_KEY));
    let Some(text) = data.and_then(|data| std::str::from_utf8(&data.0).ok()) else {
        return refused(Reason::SecretNotFound, format!("Secret {secret} has no text under the key {KUBECONFIG_KEY}"));
    };
    match check(text) {
        Ok(checked) => Ok(Ok(checked)),
        Err(why) => refused(Reason::KubeconfigRejected, format!("Secret {secret}: {why}")),
    }
}

/// A kubeconfig as it is kept.
pub struct Kept {
    /// What a client is made from.
    pub checked: Checked,
    /// Whether it is one that was made from these keys, and its certificate is not to be renewed.
    pub lasts: bool,
}

/// The administrator's kubeconfig that is there; none: there is none that can be used.
pub async fn read(ctx: &Context, owner: &PkiOwner, pki: &Pki, now: Timestamp) -> Result<Option<Kept>, Error> {
    let name = owner.kubeconfig_secret();
    let Some(found) = owner.find(ctx, &name).await? else { return Ok(None) };
    owner.check(&found).doing(|| format!("use Secret {name}"))?;
    let data = found.data.as_ref().and_then(|data| data.get(KUBECONFIG_KEY));
    let policy = owner.renewal;
    let checked = data.and_then(|data| check(std::str::from_utf8(&data.0).ok()?).ok());
    Ok(checked.map(|checked| Kept { lasts: is_of(&checked, pki, |end| !policy.is_due(end, now)), checked }))
}

fn still_good(data: &ByteString, pki: &Pki, server: &str, policy: RenewalPolicy, now: Timestamp) -> bool {
    let checked = std::str::from_utf8(&data.0).ok().and_then(|text| check(text).ok());
    let ends_late = |end: Timestamp| !policy.is_worth_a_new_one(end, now);
    checked.is_some_and(|checked| checked.server == server && is_of(&checked, pki, ends_late))
}

/// Whether it trusts these authorities, and has a certificate of theirs that ends late.
fn is_of(checked: &Checked, pki: &Pki, ends_late: impl Fn(Timestamp) -> bool) -> bool {
    let Ok(authority) = pki.authority(Subject::Ca) else { return false };
    let Ok(ours) = Certificate::parse("the authority", authority.signer().certificate()) else {
        return false;
    };
    checked.authority_pem.as_deref() == Some(authority.trusted().as_str())
        && checked
            .client
            .as_ref()
            .is_some_and(|client| client.is_signed_by(&ours) && client.not_after().is_ok_and(ends_late))
}

#[cfg(test)]
mod tests {
    use super::check::check;
    use super::{Administrator, KUBERNETES, ensure, still_good};
    use crate::fake_api::FakeApi;
    use crate::pki::Pki;
    use crate::pki::fixtures::{TWO, plane, policy};
    use jiff::{Span, Timestamp};
    use k8s_openapi::ByteString;
    use plan::cluster_deployment::pki::TABLE;
    use plan::encryption::Scheme;
    use serde_json::{Value, json};

    const SERVER: &str = "https://172.30.0.10:6443";

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    fn another() -> Pki {
        Pki::generate(TABLE, &Scheme::default(), now()).unwrap()
    }

    fn kubeconfig() -> (Pki, Value) {
        let pki = another();
        let text = KUBERNETES.kubeconfig("prod-a", &pki, SERVER, policy(), now()).unwrap();
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
        assert!(!still_good(&data, &another(), SERVER, policy(), now()));
    }

    #[tokio::test]
    async fn another_administrator_of_another_object_has_a_kubeconfig_from_its_own_authority() {
        let api = FakeApi::default();
        let (ctx, owner) = (api.context(), plane("uid-plane"));
        let pki = Pki::generate(TWO, &Scheme::default(), now()).unwrap();
        let administrator = Administrator { common_name: "system:admin", user: "plane-admin" };
        let made = ensure(&ctx, &owner, &administrator, &pki, SERVER, now()).await.unwrap();
        assert_eq!(made.metadata.name.as_deref(), Some("plane-kubeconfig"));
        assert_eq!(made.metadata.owner_references.clone().unwrap()[0].uid, "uid-plane");
        let text = String::from_utf8(made.data.clone().unwrap()["kubeconfig"].0.clone()).unwrap();
        assert!(text.contains("current-context: plane-admin@plane"), "{text}");
        let checked = check(&text).unwrap();
        let authority = pki.authority(plan::rotation::Subject::Ca).unwrap();
        assert_eq!(checked.authority_pem, Some(authority.trusted()));
        let again = ensure(&ctx, &owner, &administrator, &pki, SERVER, now()).await.unwrap();
        assert_eq!(again.data, made.data, "it is kept");
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
