//! What the chart renders is what the kustomization does, for the same settings; and what it refuses.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use e2e::helm::{Helm, Objects, kustomized};
use serde_json::Value;

pub fn chart() -> PathBuf {
    lab::project::path("manifests/chart")
}

/// What differs on purpose: Helm has no Namespaces in a release, and the chart's definitions stay when it goes.
fn comparable(mut objects: Objects) -> Objects {
    objects.retain(|_, object| object["kind"] != "Namespace");
    for object in objects.values_mut().filter(|object| object["kind"] == "CustomResourceDefinition") {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("annotations");
        }
    }
    objects
}

fn differences(chart: &Objects, kustomization: &Objects) -> Vec<String> {
    let mut found = Vec::new();
    for key in chart.keys().chain(kustomization.keys().filter(|key| !chart.contains_key(*key))) {
        if chart.get(key) != kustomization.get(key) {
            let text = |objects: &Objects| objects.get(key).map_or("none".into(), Value::to_string);
            found.push(format!("{key}\n  chart:         {}\n  kustomization: {}", text(chart), text(kustomization)));
        }
    }
    found
}

#[test]
fn the_chart_renders_what_the_kustomization_does() -> Result<()> {
    let helm = Helm::new(None)?;
    let secure = ["metrics.tls.secretName=clusterwright-metrics-tls", "metrics.authorization.enabled=true"];
    let monitoring = ["serviceMonitor.enabled=true", "prometheusRule.enabled=true", "dashboard.enabled=true"];
    let policies = ["networkPolicy.enabled=true", "networkPolicy.executorNamespaces={fleet}"];
    let one = ["watchNamespace=fleet"];
    let planes = ["karmada.hostNamespaces={karmada-system}"];
    let proxies = ["proxy.httpProxy=http://proxy.example:3128", "proxy.httpsProxy=http://proxy.example:3128"];
    for (settings, components) in [
        (vec![], vec![]),
        (secure.to_vec(), vec!["secure-metrics"]),
        (monitoring.to_vec(), vec!["monitoring"]),
        (policies.to_vec(), vec!["network-policy"]),
        (one.to_vec(), vec!["one-namespace"]),
        (planes.to_vec(), vec!["karmada"]),
        ([&one[..], &planes[..]].concat(), vec!["one-namespace", "karmada"]),
        (proxies.to_vec(), vec!["proxy"]),
        ([&one[..], &proxies[..]].concat(), vec!["one-namespace", "proxy"]),
        ([&one[..], &secure[..]].concat(), vec!["one-namespace", "secure-metrics"]),
        ([&policies[..], &one[..], &monitoring[..]].concat(), vec!["network-policy", "one-namespace", "monitoring"]),
    ] {
        let (rendered, expected) = (helm.render(&chart(), &settings)?, kustomized(&components)?);
        let found = differences(&comparable(rendered), &comparable(expected));
        ensure!(found.is_empty(), "with {settings:?}:\n{}", found.join("\n"));
    }
    Ok(())
}

/// One setting for each value, and a text that is in what is rendered with it alone.
const EFFECTS: [(&str, &str); 42] = [
    ("image.operator.repository=r.example/o", "r.example/o:dev"),
    ("image.operator.tag=1.2.3", "operator:1.2.3"),
    (
        "image.operator.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
        "clusterwright.dev/operator@sha256:0000",
    ),
    ("image.executor.repository=r.example/e", "r.example/e:dev"),
    ("image.executor.tag=1.2.3", "executor:1.2.3"),
    (
        "image.executor.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
        "clusterwright.dev/executor@sha256:0000",
    ),
    ("image.pullPolicy=Always", "\"imagePullPolicy\":\"Always\""),
    ("imagePullSecrets[0].name=login", "\"imagePullSecrets\":[{\"name\":\"login\"}]"),
    ("executorPullSecrets={a,b}", "\"CLUSTERWRIGHT_EXECUTOR_PULL_SECRETS\",\"value\":\"a,b\""),
    ("replicas=3", "\"replicas\":3"),
    ("watchNamespace=fleet", "CLUSTERWRIGHT_NAMESPACE"),
    ("karmada.hostNamespaces={a,planes}", "\"name\":\"clusterwright-karmada-host\",\"namespace\":\"planes\""),
    ("karmada.hostNamespaces={planes}", "\"namespace\":\"kube-system\""),
    ("proxy.httpProxy=http://p:1", "\"HTTP_PROXY\",\"value\":\"http://p:1\""),
    ("proxy.httpsProxy=http://p:1", "\"CLUSTERWRIGHT_EXECUTOR_PROXIES\",\"value\":\"true\""),
    ("proxy.httpsProxy=http://p:1,proxy.noProxy={a}", "\"NO_PROXY\",\"value\":\"a\""),
    ("log.format=json", "\"value\":\"json\""),
    ("concurrency=33", "\"CLUSTERWRIGHT_CONCURRENCY\",\"value\":\"33\""),
    ("probeIntervalSeconds=33", "\"CLUSTERWRIGHT_PROBE_INTERVAL_SECONDS\",\"value\":\"33\""),
    ("messageIntervalSeconds=0", "\"CLUSTERWRIGHT_MESSAGE_INTERVAL_SECONDS\",\"value\":\"0\""),
    ("lease.durationSeconds=33", "\"CLUSTERWRIGHT_LEASE_DURATION_SECONDS\",\"value\":\"33\""),
    ("lease.renewDeadlineSeconds=11", "\"CLUSTERWRIGHT_RENEW_DEADLINE_SECONDS\",\"value\":\"11\""),
    ("lease.retryPeriodSeconds=3", "\"CLUSTERWRIGHT_RETRY_PERIOD_SECONDS\",\"value\":\"3\""),
    ("resources.limits.memory=1Gi", "\"memory\":\"1Gi\""),
    ("nodeSelector.disk=fast", "\"nodeSelector\":{\"disk\":\"fast\"}"),
    ("tolerations[0].operator=Exists", "\"tolerations\":[{\"operator\":\"Exists\"}]"),
    ("affinity.nodeAffinity.x=y", "\"affinity\":{\"nodeAffinity\""),
    ("topologySpreadConstraints[0].maxSkew=1", "\"topologySpreadConstraints\":[{\"maxSkew\":1"),
    ("priorityClassName=high", "\"priorityClassName\":\"high\""),
    ("podAnnotations.a=b", "\"annotations\":{\"a\":\"b\"}"),
    ("podLabels.team=x", "\"team\":\"x\""),
    ("podDisruptionBudget.maxUnavailable=50%", "\"maxUnavailable\":\"50%\""),
    ("metrics.tls.secretName=s", "\"secretName\":\"s\""),
    ("networkPolicy.enabled=true", "\"kind\":\"NetworkPolicy\""),
    ("serviceMonitor.enabled=true", "ServiceMonitor"),
    ("prometheusRule.enabled=true", "PrometheusRule"),
    ("dashboard.enabled=true", "clusterwright-dashboard"),
    ("serviceMonitor.enabled=true,serviceMonitor.interval=7s", "\"interval\":\"7s\""),
    ("serviceMonitor.enabled=true,serviceMonitor.labels.a=b", "\"a\":\"b\""),
    ("prometheusRule.enabled=true,prometheusRule.labels.a=b", "\"a\":\"b\""),
    ("dashboard.enabled=true,dashboard.labels.a=b", "\"a\":\"b\""),
    (
        "networkPolicy.enabled=true,networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b",
        "\"from\":[{\"podSelector\":{\"matchLabels\":{\"a\":\"b\"}}}]",
    ),
];

/// Those that leave something out.
const OMISSIONS: [(&str, &str); 5] = [
    ("podDisruptionBudget.enabled=false", "\"kind\":\"PodDisruptionBudget\""),
    ("crds.enabled=false", "\"kind\":\"CustomResourceDefinition\""),
    ("admissionPolicies.enabled=false", "\"kind\":\"ValidatingAdmissionPolicy\""),
    ("userRoles.enabled=false", "clusterwright-view"),
    ("karmadaHostRole.enabled=false", "\"name\":\"clusterwright-karmada-host\""),
];

fn text(objects: &Objects) -> Result<String> {
    Ok(serde_json::to_string(&objects.values().collect::<Vec<_>>())?)
}

#[test]
fn every_value_has_an_effect() -> Result<()> {
    let helm = Helm::new(None)?;
    let without = text(&helm.render(&chart(), &[])?)?;
    for (setting, part) in EFFECTS {
        let with = text(&helm.render(&chart(), &[setting])?)?;
        ensure!(with.contains(part), "{setting}: no {part} in what is rendered");
        ensure!(!without.contains(part), "{part} is there without {setting}");
    }
    for (setting, part) in OMISSIONS {
        ensure!(without.contains(part), "{part} is not there without {setting}");
        ensure!(!text(&helm.render(&chart(), &[setting])?)?.contains(part), "{part} is there with {setting}");
    }
    Ok(())
}

#[test]
fn every_value_is_described_and_tested() -> Result<()> {
    let read = |name: &str| std::fs::read_to_string(chart().join(name));
    let values: Value = serde_yaml::from_str(&read("values.yaml")?)?;
    let schema: Value = serde_json::from_str(&read("values.schema.json")?)?;
    let mut missing = Vec::new();
    let others = ["metrics.authorization.enabled", "networkPolicy.executorNamespaces"]; // compared with the kustomization
    let tested = |path: &str| {
        let all = EFFECTS.iter().chain(&OMISSIONS).map(|(setting, _)| *setting).chain(others);
        all.flat_map(|setting| setting.split(',')).any(|setting| setting.starts_with(path))
    };
    walk(&values, &schema, String::new(), &mut |path, rule| {
        if !rule.is_object() {
            missing.push(format!("{path} is not in values.schema.json"));
        }
        if !tested(path) {
            missing.push(format!("{path} is not known to have an effect"));
        }
    });
    ensure!(missing.is_empty(), "{}", missing.join("\n"));
    Ok(())
}

/// Every value that is no further object of the chart's own, with its rule.
fn walk(values: &Value, rule: &Value, path: String, seen: &mut impl FnMut(&str, &Value)) {
    match (values.as_object(), rule.get("properties")) {
        (Some(fields), Some(rules)) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(value, rules.get(name).unwrap_or(&Value::Null), path, seen);
            }
        }
        _ => seen(&path, rule),
    }
}

#[test]
fn what_cannot_work_is_refused_with_what_is_allowed() -> Result<()> {
    let helm = Helm::new(None)?;
    for (setting, parts) in [
        ("replicas=none", ["/replicas", "got string, want integer"]),
        ("replicas=0", ["/replicas", "minimum: got 0, want 1"]),
        ("replica=3", ["additional properties", "replica"]),
        ("proxy.httpsProxy=http://me:secret@p:1", ["/proxy/httpsProxy", "does not match pattern"]),
        ("proxy.noProxy=.svc", ["/proxy/noProxy", "want array"]),
        ("log.format=xml", ["/log/format", "'text', 'json'"]),
        ("image.operator.digest=abc", ["/image/operator/digest", "sha256"]),
        ("watchNamespace=Fleet", ["/watchNamespace", "does not match pattern"]),
        ("karmada.hostNamespaces={Planes}", ["/karmada/hostNamespaces/0", "does not match pattern"]),
        ("karmada.hostNamespaces={kube-system}", ["kube-system is a namespace of Kubernetes", "karmada-system"]),
        ("serviceMonitor.interval=often", ["/serviceMonitor/interval", "does not match pattern"]),
        ("metrics.authorization.enabled=true", ["metrics.tls.secretName is empty", "Make a Secret"]),
        ("lease.durationSeconds=5", ["durationSeconds (5)", "renewDeadlineSeconds (10)"]),
        ("networkPolicy.executorNamespaces={fleet}", ["networkPolicy.enabled is false", "Set it to true"]),
    ] {
        let Err(error) = helm.render(&chart(), &[setting]) else { anyhow::bail!("{setting} is accepted") };
        let error = error.to_string();
        ensure!(parts.iter().all(|part| error.contains(part)), "{setting}: {error}");
    }
    Ok(())
}
