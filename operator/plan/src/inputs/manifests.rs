//! Manifests that an administrator gives: rendered with the cluster's facts, strictly. What is no template stays as it
//! is.

use std::collections::{BTreeMap, BTreeSet};

use super::problem::InputsProblem;
use crds::ClusterDeployment;
use crds::Reason;
use crds::placement::plain;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value, json};

/// Steps of a template before it counts as one that does not end.
const FUEL: u64 = 1_000_000;

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
    let workers = deployment.spec.workers.iter();
    let labels = workers.map(|set| (set.name.clone(), json!(plain(&set.labels))));
    facts.insert("node_labels".into(), Value::Object(labels.collect()));
    facts
}

/// The manifests of a field's ConfigMap, as variables of a run.
pub(super) fn render(
    field: &str,
    data: &BTreeMap<String, String>,
    facts: &Map<String, Value>,
) -> Result<Value, InputsProblem> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_keep_trailing_newline(true);
    environment.set_fuel(Some(FUEL));
    let rendered = data.iter().map(|(name, content)| {
        let content = environment
            .render_named_str(name, content, facts)
            .map_err(|error| problem(field, name, content, &environment, facts, &error))?;
        Ok(json!({ "name": name, "content": content }))
    });
    rendered.collect()
}

fn problem(
    field: &str,
    name: &str,
    content: &str,
    environment: &Environment<'_>,
    facts: &Map<String, Value>,
    error: &minijinja::Error,
) -> InputsProblem {
    let place = match error.line() {
        Some(line) => format!("ConfigMap of {field}: {name}, line {line}"),
        None => format!("ConfigMap of {field}: {name}"),
    };
    let what = match error.kind() {
        ErrorKind::UndefinedError => {
            let unknown = undefined(environment, content, facts);
            let known: Vec<&str> = facts.keys().map(String::as_str).collect();
            format!("{unknown} is not defined; defined are {}", known.join(", "))
        }
        _ => format!(
            "it is no template that can be rendered ({error}); braces that are the manifest's own go between {{% raw %}} and {{% endraw %}}"
        ),
    };
    InputsProblem::waits(Reason::ManifestNotRendered, format!("{place}: {what}"))
}

/// The names that a template uses and that nothing defines.
fn undefined(environment: &Environment<'_>, content: &str, facts: &Map<String, Value>) -> String {
    let facts = Value::Object(facts.clone());
    let used: BTreeSet<String> = match environment.template_from_str(content) {
        Ok(template) => template.undeclared_variables(true).into_iter().collect(),
        Err(_) => BTreeSet::new(),
    };
    let is_there = |path: &str| facts.pointer(&format!("/{}", path.replace('.', "/"))).is_some();
    let names: Vec<&str> = used.iter().map(String::as_str).filter(|path| !is_there(path)).collect();
    match names.as_slice() {
        [] => "a name".to_owned(),
        names => names.join(", "),
    }
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
