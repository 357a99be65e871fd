//! Manifests that an administrator gives: rendered with the cluster's facts, strictly. What is no template stays as it
//! is.

use std::collections::BTreeMap;

use super::problem::InputsProblem;
use crate::template;
use crds::ClusterDeployment;
use crds::Reason;
use crds::placement::plain;
use serde_json::{Map, Value, json};

/// What manifests may name, by the names of the variables of runs.
pub(super) fn facts(deployment: &ClusterDeployment, vars: &BTreeMap<String, Value>) -> Map<String, Value> {
    const SHARED: [&str; 7] = [
        "cluster_name",
        "dns_domain",
        "kube_apiserver_endpoint",
        "kube_network_plugin",
        "kube_pods_subnet",
        "kube_service_addresses",
        "kube_version",
    ];
    let shared = SHARED.iter().filter_map(|name| Some(((*name).to_owned(), vars.get(*name)?.clone())));
    let mut facts: Map<String, Value> = shared.collect();
    facts.insert("cluster_labels".into(), json!(deployment.metadata.labels.clone().unwrap_or_default()));
    facts.insert("node_labels".into(), node_labels(deployment));
    facts
}

/// The labels of each set of workers.
pub(crate) fn node_labels(deployment: &ClusterDeployment) -> Value {
    let workers = deployment.spec.workers.iter();
    let labels = workers.map(|set| (set.name.clone(), json!(plain(&set.labels))));
    Value::Object(labels.collect())
}

/// The manifests of a field's ConfigMap, as variables of a run.
pub(super) fn render(
    field: &str,
    data: &BTreeMap<String, String>,
    facts: &Map<String, Value>,
) -> Result<Value, InputsProblem> {
    let rendered = data.iter().map(|(name, content)| match template::render(name, content, facts) {
        Ok(content) => Ok(json!({ "name": name, "content": content })),
        Err(why) => {
            let message = format!("ConfigMap of {field}: {why}");
            Err(InputsProblem::waits(Reason::ManifestNotRendered, message))
        }
    });
    rendered.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Map, Value, json};

    use super::render;

    fn facts() -> Map<String, Value> {
        let facts = json!({
            "kube_pods_subnet": "10.244.0.0/16",
            "kube_apiserver_endpoint": { "host": "10.0.0.9", "port": 6443 },
            "node_labels": { "general": { "pool": "general" } },
        });
        facts.as_object().cloned().unwrap()
    }

    fn check(content: &str, expected: Result<&str, &[&str]>) {
        let data = BTreeMap::from([("net.yaml".to_owned(), content.to_owned())]);
        match (render("networking.plugin.manifestsRef", &data, &facts()), expected) {
            (Ok(rendered), Ok(expected)) => assert_eq!(rendered[0]["content"], *expected),
            (Err(problem), Err(parts)) => {
                for part in parts {
                    assert!(problem.message.contains(part), "no {part}: {}", problem.message);
                }
            }
            (rendered, expected) => panic!("{content}: {rendered:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn manifests_are_rendered_with_the_clusters_facts() {
        check("Network: {{ kube_pods_subnet }}\n", Ok("Network: 10.244.0.0/16\n"));
        let endpoint = "{{ kube_apiserver_endpoint.host }}:{{ kube_apiserver_endpoint.port }}";
        check(endpoint, Ok("10.0.0.9:6443"));
        check("pool: {{ node_labels.general.pool }}", Ok("pool: general"));
        check("kind: ConfigMap\n", Ok("kind: ConfigMap\n"));
        check("{% raw %}{{ $labels.instance }}{% endraw %}", Ok("{{ $labels.instance }}"));
    }

    #[test]
    fn a_name_that_nothing_defines_is_an_error_that_says_which_and_where() {
        let place = "ConfigMap of networking.plugin.manifestsRef: net.yaml, line 2";
        check("a: 1\nb: {{ pod_cidr }}\n", Err(&[place, "pod_cidr is not defined", "kube_pods_subnet"]));
        check("a: 1\nb: {{ kube_apiserver_endpoint.hots }}\n", Err(&[place, "kube_apiserver_endpoint.hots"]));
        check("a: 1\nb: {{ $labels.instance }}\n", Err(&[place, "{% raw %}"]));
    }

    #[test]
    fn a_template_that_does_not_end_is_refused() {
        let endless = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
        check(endless, Err(&["net.yaml"]));
    }
}
