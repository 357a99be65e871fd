//! Addons and ClusterAddons.

use anyhow::Result;
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{Admitted, check, check_changes, cluster_addon, many_fields, object, refused, refused_at};

fn addon() -> Value {
    let from = json!([{ "configMapRef": { "name": "agent" } }]);
    object("Addon", "agent", json!({ "clusterSelector": {}, "source": { "manifests": { "from": from } } }))
}

/// `from` with an entry of a bundle.
fn of_bundle(more: Value) -> Value {
    let mut bundle = json!({ "url": "https://artifacts.example.com/bundle", "name": "agent", "version": "v1.4.2" });
    if let (Some(bundle), Some(more)) = (bundle.as_object_mut(), more.as_object()) {
        bundle.extend(more.clone());
    }
    json!([[{ "bundle": bundle }]])
}

const KEY: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6kpsY+Kcn0UqR1wDPH0yqoVqYH0nN7AQO0Gu6m0Pz8s=\n-----END PUBLIC KEY-----\n";

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn an_addon_has_one_source_and_says_which_clusters_it_is_for() -> Result<()> {
    let server = ApiServer::shared().await?;
    let from = "spec.source.manifests.from";
    let check_of = |field: &str| format!("spec.healthChecks[0].{field}");
    let mut checked = addon();
    checked["spec"]["healthChecks"] = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "expression": "true" }]);
    let checked = || checked.clone();
    check(&server, [
        (0, "no clusters, or two kinds of them", addon(), "spec.clusterRef", json!([{ "name": "a" }]), refused_at("spec", "exactly one of clusterRef and clusterSelector")),
        (0, "no clusters", addon(), "spec.clusterSelector", json!([null]), refused_at("spec", "exactly one of clusterRef and clusterSelector")),
        (0, "no source", addon(), "spec.source", json!([{}]), refused("exactly one of source.manifests and source.chart")),
        (0, "no source", addon(), "spec.source", json!([null]), refused("Required value")),
        (0, "nothing in it", addon(), from, json!([[], null]), refused("")),
        (0, "neither or both", addon(), from, json!([[{}], [{ "configMapRef": { "name": "a" }, "secretRef": { "name": "b" } }]]), refused("exactly one of configMapRef, secretRef and bundle")),
        (22, "elsewhere", addon(), from, json!([[{ "secretRef": { "name": "a", "namespace": "kube-system" } }]]), refused("unknown field")),
        (0, "a Secret", addon(), from, json!([[{ "secretRef": { "name": "a" } }]]), Admitted),
        (0, "of a bundle", addon(), from, of_bundle(json!({})), Admitted),
        (0, "its index or its key vouches for it", addon(), from, of_bundle(json!({ "url": "http://a:80/b", "indexSHA256": "0a".repeat(32) })), Admitted),
        (0, "its index or its key vouches for it", addon(), from, of_bundle(json!({ "url": "http://a", "signedBy": KEY })), Admitted),
        (0, "nobody vouches for it", addon(), from, of_bundle(json!({ "url": "http://a" })), refused("indexSHA256 or signedBy is required")),
        (0, "a login over plain HTTP", addon(), from, of_bundle(json!({ "url": "http://a", "signedBy": KEY, "credentialsRef": { "name": "x" } })), refused("need an https URL")),
        (0, "a login in it", addon(), from, of_bundle(json!({ "url": "https://u:p@a" })), refused("bundle.url")),
        (0, "no key", addon(), from, of_bundle(json!({ "signedBy": "x" })), refused("bundle.signedBy")),
        (0, "no version", addon(), "spec.version", json!(["", "a b", "-1", "x".repeat(65)]), refused("")),
        (0, "a version", addon(), "spec.version", json!(["1", "v1.2.3-rc.1+x"]), Admitted),
        (0, "a pause without canaries", addon(), "spec.rollout", json!([{ "pauseSeconds": 60 }]), refused_at("spec", "set rollout.canaries too")),
        (0, "out of range", addon(), "spec.rollout", json!([{ "maxConcurrent": 0 }, { "maxConcurrent": 1001 }, { "canaries": 101 }, { "canaries": -1 }]), refused("")),
        (0, "canaries", addon(), "spec.rollout", json!([{ "canaries": 2, "pauseSeconds": 3600, "maxConcurrent": 50 }]), Admitted),
        (0, "named twice, or no name", addon(), "spec.dependsOn", json!([["a", "a"], ["A"], [""]]), refused("")),
        (0, "out of range", addon(), "spec.wave", json!([-1, 101]), refused("")),
        (0, "no policy", addon(), "spec.deletionPolicy", json!(["Keep"]), refused("Unsupported value")),
        (0, "no policy", addon(), "spec.conflicts", json!(["Fight"]), refused("Unsupported value")),
        (0, "out of range", addon(), "spec.resyncSeconds", json!([59, 86401]), refused("")),
        (0, "out of range", addon(), "spec.healthTimeoutSeconds", json!([29, 86401]), refused("")),
        (0, "no kind", checked(), &check_of("kind"), json!(["deployment", ""]), refused("")),
        (0, "no version", checked(), &check_of("apiVersion"), json!(["apps", "Apps/v1"]), refused("")),
        (0, "no expression", checked(), &check_of("expression"), json!(["", "x".repeat(1025)]), refused("")),
        (0, "too many labels", addon(), "spec.clusterSelector.matchLabels", json!([many_fields(33)]), refused("at most 32")),
        (3, "no name", addon(), "metadata.name", json!(["a".repeat(41), "a.b", "A"]), refused("")),
    ]).await
}

fn charted(name: &str) -> Value {
    let chart = json!({ "oci": "oci://registry.example.com:5000/charts/agent", "version": "1.4.2" });
    object("Addon", name, json!({ "clusterSelector": {}, "source": { "chart": chart } }))
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_chart_has_one_place_and_an_exact_version() -> Result<()> {
    let server = ApiServer::shared().await?;
    let chart = |more: Value| {
        let mut chart = charted("agent")["spec"]["source"]["chart"].clone();
        if let (Some(chart), Some(more)) = (chart.as_object_mut(), more.as_object()) {
            chart.extend(more.clone());
        }
        json!([chart])
    };
    let (place, digest) = ("spec.source.chart", format!("sha256:{}", "0a".repeat(32)));
    let of = |field: &str| format!("{place}.{field}");
    let bundled = |more: Value| {
        let mut chart = json!({ "bundle": { "url": "https://artifacts.example.com/bundle" }, "name": "agent", "version": "1.4.2" });
        if let (Some(chart), Some(more)) = (chart.as_object_mut(), more.as_object()) {
            chart.extend(more.clone());
        }
        json!([chart])
    };
    let repository = |more: Value| {
        let mut chart = json!({ "repository": "https://charts.example.com/stable", "name": "agent", "version": "1.4.2" });
        if let (Some(chart), Some(more)) = (chart.as_object_mut(), more.as_object()) {
            chart.extend(more.clone());
        }
        json!([chart])
    };
    check(&server, [
        (0, "in a registry", charted("agent"), place, chart(json!({})), Admitted),
        (0, "in a repository", charted("agent"), place, repository(json!({})), Admitted),
        (0, "in a bundle", charted("agent"), place, bundled(json!({})), Admitted),
        (0, "a bundle and a registry", charted("agent"), place, bundled(json!({ "oci": "oci://a/b" })), refused_at(place, "exactly one of oci")),
        (0, "nobody vouches for it", charted("agent"), place, bundled(json!({ "bundle": { "url": "http://a" } })), refused("indexSHA256 or signedBy is required")),
        (0, "authorities without TLS", charted("agent"), place, bundled(json!({ "bundle": { "url": "http://a", "signedBy": KEY }, "caRef": { "name": "x" } })), refused_at(place, "need a bundle with an https URL")),
        (0, "two places", charted("agent"), place, repository(json!({ "oci": "oci://a/b" })), refused_at(place, "exactly one of oci")),
        (0, "no place, or half of one", charted("agent"), place, json!([{ "version": "1.0.0" }, { "version": "1.0.0", "repository": "https://a" }]), refused_at(place, "exactly one of oci")),
        (0, "a name in a registry", charted("agent"), place, chart(json!({ "name": "x" })), refused_at(place, "exactly one of oci")),
        (0, "no registry", charted("agent"), &of("oci"), json!(["https://a/b", "oci://a", "oci://a/B", "oci://u:p@a/b"]), refused("")),
        (0, "a login in it", charted("agent"), place, repository(json!({ "repository": "https://u:p@a" })), refused("")),
        (0, "nobody vouches for it", charted("agent"), place, repository(json!({ "repository": "http://a" })), refused_at(place, "digest is required")),
        (0, "nobody vouches for it", charted("agent"), place, chart(json!({ "plainHTTP": true })), refused_at(place, "digest is required")),
        (0, "its digest does", charted("agent"), place, repository(json!({ "repository": "http://a", "digest": digest })), Admitted),
        (0, "its digest does", charted("agent"), place, chart(json!({ "plainHTTP": true, "digest": digest })), Admitted),
        (0, "of a repository", charted("agent"), place, repository(json!({ "plainHTTP": true, "digest": digest })), refused_at(place, "plainHTTP is for oci")),
        (0, "a range", charted("agent"), &of("version"), json!(["1", "1.x.0", ">=1.0.0", "^1.2.3", "latest"]), refused("")),
        (0, "a version", charted("agent"), &of("version"), json!(["1.0.0-rc.1", "v2.3.4", "1.0.0+build.7"]), Admitted),
        (0, "no digest", charted("agent"), &of("digest"), json!(["0a".repeat(32), "sha256:0a"]), refused("")),
        (0, "any values", charted("agent"), &of("values"), json!([{ "a": { "b": [1, { "c": null }] }, "d": "x" }]), Admitted),
        (0, "no map", charted("agent"), &of("values"), json!(["a: b", ["a"]]), refused("")),
        (0, "neither or both", charted("agent"), &of("valuesFrom"), json!([[{}], [{ "configMapRef": { "name": "a" }, "secretRef": { "name": "b" } }]]), refused("exactly one of configMapRef and secretRef")),
        (0, "of nobody, or twice", charted("agent"), &of("overrides"), json!([[{ "values": {} }], [{ "clusters": ["a"], "clusterSelector": {}, "values": {} }]]), refused("exactly one of clusters and clusterSelector")),
        (0, "of some", charted("agent"), &of("overrides"), json!([[{ "clusters": ["a"], "values": { "a": 1 } }, { "clusterSelector": {}, "values": {} }]]), Admitted),
        (0, "no release", charted("agent"), &of("releaseName"), json!(["A", "a.b", "a".repeat(54)]), refused("")),
        (0, "out of range", charted("agent"), &of("timeoutSeconds"), json!([9, 3601]), refused("")),
        (0, "two sources", addon(), place, chart(json!({})), refused_at("spec.source", "exactly one of source.manifests and source.chart")),
    ]).await?;
    let is = |chart: Value| json!({ "source": { "chart": chart } });
    let from = json!([{ "configMapRef": { "name": "agent" } }]);
    check_changes(&server, charted("charted"), [
        (0, "another version", is(json!({ "version": "1.5.0", "values": { "a": 1 } })), Admitted),
        (0, "another release", is(json!({ "releaseName": "other" })), refused("releaseName and namespace cannot be changed")),
        (0, "elsewhere", is(json!({ "namespace": "other" })), refused("releaseName and namespace cannot be changed")),
        (0, "another kind", json!({ "source": { "chart": null, "manifests": { "from": from } } }), refused("source cannot become another kind")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_cluster_addon_stays_that_of_its_addon_and_its_cluster() -> Result<()> {
    let server = ApiServer::shared().await?;
    check_changes(&server, cluster_addon("agent-paris"), [
        (0, "another Addon", json!({ "addonRef": { "name": "other" } }), refused("addonRef and clusterRef cannot be changed")),
        (0, "another Cluster", json!({ "clusterRef": { "name": "lyon" } }), refused("addonRef and clusterRef cannot be changed")),
        (0, "no revision", json!({ "revision": "A b" }), refused("revision")),
        (0, "a revision", json!({ "revision": "0a1b2c3d4e", "waitsFor": ["other"] }), Admitted),
    ]).await
}
