//! What the operator's role lets it do with our own kinds. No server but that of the metadata cluster has these, so a
//! request for one is the operator's, and what its role lacks is refused as a real API server would.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use super::target::Target;

const GROUP: &str = "clusterwright.dev";
const PATH: &str = "/apis/clusterwright.dev/";
const MANIFESTS: &str = include_str!("../../../manifests/rbac/operator.yaml");

/// Verb and resource, with its subresource.
static GRANTED: LazyLock<BTreeSet<(String, String)>> = LazyLock::new(|| {
    let documents = serde_yaml::Deserializer::from_str(MANIFESTS).map(|document| Value::deserialize(document).unwrap());
    let role =
        documents.filter(|object| object["kind"] == "ClusterRole").find(|role| role["rules"].is_array()).unwrap();
    let texts = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap_or_default() };
    let rules = role["rules"].as_array().unwrap().iter();
    let ours = rules.filter(|rule| texts(&rule["apiGroups"]).iter().any(|group| group == GROUP));
    ours.flat_map(|rule| {
        let resources = texts(&rule["resources"]);
        texts(&rule["verbs"])
            .into_iter()
            .flat_map(move |verb| resources.clone().into_iter().map(move |resource| (verb.clone(), resource)))
    })
    .collect()
});

/// Whether a request is granted, or is for no kind of ours.
pub(super) fn is_granted(method: &Method, path: &str, target: &Target<'_>, query: &str) -> bool {
    if !path.starts_with(PATH) {
        return true;
    }
    let verb = match (method.as_str(), target.name) {
        ("GET", Some(_)) => "get",
        ("GET", None) if query.split('&').any(|pair| pair == "watch=true") => "watch",
        ("GET", None) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", Some(_)) => "delete",
        _ => return false,
    };
    let sub = target.sub.map(|sub| format!("/{sub}")).unwrap_or_default();
    GRANTED.contains(&(verb.to_owned(), format!("{}{sub}", target.plural)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_role_lacks_is_refused_and_what_it_has_is_not() {
        let is = |method: &str, path: &str| {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            is_granted(&method, path, &Target::parse(path).unwrap(), "")
        };
        let hosts = format!("{PATH}v1alpha1/namespaces/fleet/hosts");
        assert!(is("GET", &hosts) && is("GET", &format!("{hosts}/a")) && is("PATCH", &format!("{hosts}/a/status")));
        assert!(!is("DELETE", &format!("{hosts}/a")) && !is("PUT", &format!("{hosts}/a")));
        assert!(is("DELETE", "/api/v1/namespaces/fleet/secrets/a"), "it is of no kind of ours");
    }
}
