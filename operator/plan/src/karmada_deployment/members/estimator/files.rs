//! What an estimator reads: how it reaches its member, and who it is.

use serde_json::json;

use super::super::super::files::File;
use super::super::leaf::Certificate;
use super::super::observed::{Basis, Facts};
use super::wish::ACCOUNT;

/// Its files, which it finds at these paths; none: one of them is not there yet.
pub(super) fn files(
    basis: &Basis<'_>,
    facts: &Facts,
    certificate: &Certificate,
    path: impl Fn(&str) -> String,
) -> Option<Vec<File>> {
    let (token, own) = (facts.files.get("estimator")?, certificate.files.as_ref()?);
    let authority = facts.files.get("ca");
    let mut files = vec![
        File::new("kubeconfig", kubeconfig(&facts.server, authority.is_some(), path)),
        File::new("member/token", token),
        File::new("pki/ca.crt", basis.material.keys.as_ref()?.get("ca.crt")?),
        File::new("pki/estimator.crt", own.get("estimator.crt")?),
        File::new("pki/estimator.key", own.get("estimator.key")?),
    ];
    files.extend(authority.map(|authority| File::new("member/ca.crt", authority)));
    Some(files)
}

/// The kubeconfig that leads to the member. JSON is YAML.
fn kubeconfig(server: &str, has_authority: bool, path: impl Fn(&str) -> String) -> String {
    let mut cluster = json!({ "server": server });
    if has_authority {
        cluster["certificate-authority"] = json!(path("member/ca.crt"));
    }
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "member",
        "clusters": [{ "name": "member", "cluster": cluster }],
        "contexts": [{ "name": "member", "context": { "cluster": "member", "user": ACCOUNT } }],
        "users": [{ "name": ACCOUNT, "user": { "tokenFile": path("member/token") } }],
    })
    .to_string()
}
