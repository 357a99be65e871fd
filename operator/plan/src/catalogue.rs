//! The catalogue of upstream's releases: where machines find programs and images where their cluster has no bundle, and
//! the versions that go with each minor of Kubernetes. It is the one of `wright bundle`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crds::{ClusterDeployment, KubernetesVersion};
use serde_json::{Value, json};

const SOURCES: &str = include_str!("../../../hack/bundle/catalogue/sources.yaml");
const MINORS: [(&str, &str); 3] = [
    ("1.34", include_str!("../../../hack/bundle/catalogue/1.34.yaml")),
    ("1.35", include_str!("../../../hack/bundle/catalogue/1.35.yaml")),
    ("1.36", include_str!("../../../hack/bundle/catalogue/1.36.yaml")),
];

/// A test reads what is built in here.
static CATALOGUE: LazyLock<Value> = LazyLock::new(|| {
    let parsed = |text: &str| serde_yaml::from_str::<Value>(text).unwrap_or_default();
    let sources = parsed(SOURCES);
    let versions: BTreeMap<&str, Value> = MINORS.iter().map(|(minor, text)| (*minor, parsed(text))).collect();
    json!({"kubernetes": sources["kubernetes"], "components": sources["components"], "versions": versions})
});

/// As runs have it: `{kubernetes, components, versions}`. The first two have for each name a kind and templates of
/// its URLs, the last for each minor the version of each component.
pub(crate) fn variable() -> Value {
    CATALOGUE.clone()
}

/// Where upstream has the archive of a component, and by which URL a lock knows it; none: it is none of the catalogue.
pub(crate) fn archive_url(name: &str, version: &str, arch: &str) -> Option<String> {
    let template = CATALOGUE["components"][name]["url"].as_str()?;
    Some(template.replace("{version}", version.trim_start_matches('v')).replace("{arch}", arch))
}

/// Why machines of that version find nothing upstream; none: they do, or have a bundle.
pub(crate) fn missing(deployment: &ClusterDeployment, version: KubernetesVersion) -> Option<String> {
    let minor = format!("1.{}", version.minor());
    if deployment.spec.bundle_url().is_some() || MINORS.iter().any(|(known, _)| *known == minor) {
        return None;
    }
    let known: Vec<&str> = MINORS.iter().map(|(known, _)| *known).collect();
    Some(format!(
        "spec.artifacts.url is absent, and of upstream's releases those for Kubernetes {} are known here, not {version}: \
         give the URL of an artifact bundle with {version}, or use a Clusterwright that knows it",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn it_is_all_of_the_catalogue_by_which_bundles_are_made() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hack/bundle/catalogue");
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let minors: BTreeSet<String> =
            files.filter(|name| name.starts_with(|first: char| first.is_ascii_digit())).collect();
        assert_eq!(minors, MINORS.iter().map(|(minor, _)| format!("{minor}.yaml")).collect());
        let catalogue = variable();
        assert_eq!(catalogue["versions"]["1.35"]["etcd"], "3.6.16");
        assert_eq!(catalogue["components"]["registry.k8s.io/pause"]["from"], "registry.k8s.io/pause:{version}");
        let etcd = "https://github.com/etcd-io/etcd/releases/download/v3.6.16/etcd-v3.6.16-linux-arm64.tar.gz";
        assert_eq!(archive_url("etcd", "v3.6.16", "arm64").as_deref(), Some(etcd));
        assert_eq!(archive_url("registry.k8s.io/pause", "3.10", "arm64"), None);
    }

    /// TLS alone tells a machine whose the checksums are.
    #[test]
    fn every_file_is_at_https_with_its_checksums() {
        let catalogue = variable();
        let sources = ["kubernetes", "components"].into_iter().flat_map(|part| catalogue[part].as_object().unwrap());
        let mut count = 0;
        for (name, source) in sources {
            let is = |field: &str, start: &str| source[field].as_str().is_some_and(|text| text.starts_with(start));
            let known = match source["kind"].as_str() {
                Some("image") => is("from", "registry.k8s.io/") || is("from", "docker.io/"),
                Some("file" | "archive") => is("url", "https://") && is("checksums", "https://"),
                _ => false,
            };
            assert!(known, "{name}: {source}");
            count += 1;
        }
        assert_eq!(count, 14);
    }

    #[test]
    fn a_minor_that_it_does_not_know_needs_a_bundle() {
        let deployment = |artifacts: &str| -> ClusterDeployment {
            let spec = format!("{{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}{artifacts}}}");
            let yaml = format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a}}, spec: {spec}}}"
            );
            serde_yaml::from_str(&yaml).unwrap()
        };
        let (known, other) = ("1.36.9".parse().unwrap(), "1.33.1".parse().unwrap());
        for upstream in ["", ", artifacts: {}", ", artifacts: {lockRef: {name: l}}"] {
            assert_eq!(missing(&deployment(upstream), known), None);
            let message = missing(&deployment(upstream), other).unwrap();
            assert!(
                message.starts_with("spec.artifacts.url") && message.contains("1.34, 1.35, 1.36 are known"),
                "{message}"
            );
        }
        assert_eq!(missing(&deployment(", artifacts: {url: 'https://b'}"), other), None);
    }
}
