//! KarmadaDeployments.

use anyhow::{Result, ensure};
use e2e::api_server::ApiServer;
use serde_json::json;

use super::{Admitted, admitted, check, check_changes, karmada_deployment as plane, refused, refused_at, with};

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_plane_that_cannot_be_made_is_refused_by_what_is_wrong() -> Result<()> {
    let member = |name: &str| json!({ "name": name, "syncMode": "push", "clusterRef": { "name": "a" } });
    let nowhere = json!([{ "name": "m1", "syncMode": "push" }]);
    let exposed = || with(plane("k1"), "spec.apiServer", json!({ "serviceType": "NodePort", "loadBalancerApiserverIp": "10.0.0.1" }));
    check(&ApiServer::shared().await?, [
        (3, "no name of a Service", plane("k1"), "metadata.name", json!(["1a", "a.b", "a".repeat(33)]), refused("at most 32")),
        (0, "a version", plane("k1"), "spec.version", json!(["1.16.8", "2.0.0"]), refused("are known here")),
        (0, "a version", plane("k1"), "spec.version", json!(["v1.18.2"]), refused("should match")),
        (0, "not ours", plane("k1"), "spec.hostNamespace", json!(["kube-system", "default"]), refused("are not a plane's")),
        (22, "elsewhere", plane("k1"), "spec.hostClusterRef", json!([{ "name": "a", "namespace": "b" }]), refused("unknown field")),
        (0, "nobody reaches it", plane("k1"), "spec.hostClusterRef", json!([{ "name": "a" }]), refused_at("spec.apiServer", "with hostClusterRef")),
        (0, "reached", exposed(), "spec.hostClusterRef", json!([{ "name": "a" }]), Admitted),
        (0, "no address", plane("k1"), "spec.apiServer.serviceType", json!(["NodePort"]), refused_at("spec.apiServer", "loadBalancerApiserverIp is required")),
        (0, "even", plane("k1"), "spec.etcd.local.replicas", json!([2, 4]), refused("must be 1, 3 or 5")),
        (28, "a flag of ours", plane("k1"), "spec.scheduler.extraArgs.kubeconfig", json!(["x"]), refused_at("spec.scheduler", "extraArgs may not have")),
        (0, "nothing leads to it", plane("k1"), "spec.members", json!([nowhere]), refused_at("spec.members[0]", "exactly one of")),
        (0, "twice", plane("k1"), "spec.members", json!([[member("m1"), member("m1")]]), refused_at("spec.members[1]", "Duplicate")),
        (0, "two", plane("k1"), "spec.members", json!([[member("m1"), member("m2")]]), Admitted),
        (0, "fields of others", plane("k1"), "spec.hostCluster", json!([{}]), refused("unknown field")),
        (0, "a way in the clear", plane("k1"), "spec.crds.bundle.url", json!(["http://b.example.com"]), refused_at("spec.crds", "indexSHA256 or signedBy")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plane_has_its_data_and_its_names_by_does_not_change() -> Result<()> {
    let elsewhere = refused_at("spec", "cannot be changed");
    check_changes(
        &ApiServer::shared().await?,
        plane("stays"),
        [
            (0, "another namespace", json!({ "hostNamespace": "other" }), elsewhere),
            (0, "another domain", json!({ "hostDNSDomain": "example.org" }), elsewhere),
            (0, "other storage", json!({ "etcd": { "local": { "storage": { "size": "9Gi" } } } }), elsewhere),
            (0, "an add-on", json!({ "search": {} }), Admitted),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_plane_is_completed() -> Result<()> {
    let spec = admitted(&ApiServer::shared().await?, plane("least")).await?["spec"].take();
    for (path, value) in [
        ("/mode", json!("Containers")),
        ("/hostNamespace", json!("karmada-system")),
        ("/apiServer/serviceType", json!("ClusterIP")),
        ("/images/karmada", json!("docker.io/karmada")),
        ("/deletionPolicy", json!("Delete")),
    ] {
        ensure!(spec.pointer(path) == Some(&value), "{path}: {:?}", spec.pointer(path));
    }
    Ok(())
}
