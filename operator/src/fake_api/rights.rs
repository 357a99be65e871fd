//! What the operator's role lets it do with our own kinds. No server but that of the metadata cluster has these, so a
//! request for one is the operator's, and what its role lacks is refused as a real API server would.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use http::Method;
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde::Deserialize;

use super::target::{Target, is_watch};

const GROUP: &str = "clusterwright.dev";
const PATH: &str = "/apis/clusterwright.dev/";
const MANIFESTS: &str = include_str!("../../../manifests/rbac/operator.yaml");

/// Verb and resource, with its subresource.
static GRANTED: LazyLock<BTreeSet<(String, String)>> = LazyLock::new(|| {
    let mut documents = serde_yaml::Deserializer::from_str(MANIFESTS);
    let role = documents.find_map(|document| ClusterRole::deserialize(document).ok()).unwrap();
    let mut granted = BTreeSet::new();
    for rule in role.rules.unwrap() {
        let resources = rule.resources.filter(|_| rule.api_groups.iter().flatten().any(|group| group == GROUP));
        for resource in resources.into_iter().flatten() {
            granted.extend(rule.verbs.iter().map(|verb| (verb.clone(), resource.clone())));
        }
    }
    granted
});

/// Whether a request is granted, or is for no kind of ours.
pub(super) fn is_granted(method: &Method, path: &str, target: &Target<'_>, query: &str) -> bool {
    if !path.starts_with(PATH) {
        return true;
    }
    let verb = match (method.as_str(), target.name) {
        ("GET", Some(_)) => "get",
        ("GET", None) if is_watch(query) => "watch",
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
