//! KarmadaDeployments.

use anyhow::{Result, ensure};
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{Admitted, admitted, check, check_changes, karmada_deployment as plane, refused, refused_at, with};

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_plane_that_cannot_be_made_is_refused_by_what_is_wrong() -> Result<()> {
    let member = |name: &str| json!({ "name": name, "syncMode": "push", "clusterRef": { "name": "a" } });
    let nowhere = json!([{ "name": "m1", "syncMode": "push" }]);
    let by_host = || with(plane("k1"), "spec.members", json!([{ "name": "m1", "syncMode": "pull", "hostRef": { "name": "h" } }]));
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
        (0, "a Host", by_host(), "spec.members[0].syncMode", json!(["push", "pull"]), Admitted),
        (0, "a Host and a Cluster", by_host(), "spec.members[0].clusterRef", json!([{ "name": "a" }]), refused_at("spec.members[0]", "exactly one of clusterRef, kubeConfigSecretName and hostRef")),
        (0, "a Host and a Secret", by_host(), "spec.members[0].kubeConfigSecretName", json!(["b"]), refused_at("spec.members[0]", "exactly one of clusterRef, kubeConfigSecretName and hostRef")),
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

/// A plane on one machine.
fn on_machines(name: &str) -> Value {
    let binary = json!({ "controlPlane": { "replicas": 1 }, "artifacts": { "url": "https://172.30.0.1:8080" } });
    with(with(plane(name), "spec.mode", json!("Binary")), "spec.binary", binary)
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_plane_on_machines_has_nothing_of_a_host_cluster() -> Result<()> {
    let binary = || on_machines("m1");
    let toleration = json!([{ "key": "a", "operator": "Exists" }]);
    let affinity = json!({ "nodeAffinity": {} });
    let external = json!({ "endpoints": ["https://10.0.0.5:2379"], "secretRef": { "name": "etcd" } });
    check(&ApiServer::shared().await?, [
        (0, "the least", binary(), "spec.paused", json!([false, true]), Admitted),
        (0, "no machines", plane("m1"), "spec.mode", json!(["Binary"]), refused_at("spec", "binary is required with mode Binary")),
        (0, "machines of Pods", binary(), "spec.mode", json!(["Containers"]), refused_at("spec", "goes with no other mode")),
        (0, "a host cluster", with(binary(), "spec.apiServer", json!({ "serviceType": "LoadBalancer" })), "spec.hostClusterRef", json!([{ "name": "a" }]), refused_at("spec", "which a plane with mode Binary has not")),
        (0, "a host's namespace", binary(), "spec.hostNamespace", json!(["karmada-2"]), refused_at("spec", "which a plane with mode Binary has not")),
        (0, "a host's domain", binary(), "spec.hostDNSDomain", json!(["example.org"]), refused_at("spec", "which a plane with mode Binary has not")),
        (0, "Kubernetes' images", binary(), "spec.images.kubernetes", json!(["registry.example.com/k8s"]), refused_at("spec.images", "come from binary.artifacts")),
        (0, "agents' images", binary(), "spec.images.karmada", json!(["registry.example.com/karmada"]), Admitted),
        (0, "volumes", binary(), "spec.etcd.local.storage.size", json!(["9Gi"]), refused_at("spec.etcd", "binary.etcd says on which machines")),
        (0, "members in Pods", binary(), "spec.etcd.local.replicas", json!([3]), refused_at("spec.etcd", "binary.etcd says on which machines")),
        (0, "an etcd of others", binary(), "spec.etcd.external", json!([external.clone()]), Admitted),
        (0, "two etcds", with(binary(), "spec.binary.etcd", json!({})), "spec.etcd.external", json!([external]), refused_at("spec", "the plane has one etcd")),
        (0, "a Service", binary(), "spec.apiServer.serviceType", json!(["LoadBalancer"]), refused_at("spec.apiServer", "give binary.endpoint")),
        (0, "a Service's annotations", binary(), "spec.apiServer.serviceAnnotations", json!([{ "a": "b" }]), refused_at("spec.apiServer", "give binary.endpoint")),
        (0, "names in its certificate", binary(), "spec.apiServer.certSANs", json!([["karmada.example.com"]]), Admitted),
        (0, "estimators", binary(), "spec.estimator", json!([{}]), Admitted),
        (0, "Pods of estimators", binary(), "spec.estimator.replicas", json!([2]), refused_at("spec", "estimator.replicas: with mode Binary")),
        (0, "what may be left out", binary(), "spec.search", json!([{}]), Admitted),
        (0, "flags", binary(), "spec.scheduler.extraArgs.v", json!(["4"]), Admitted),
        (0, "Pods of one", binary(), "spec.webhook.replicas", json!([2]), refused_at("spec", "webhook.replicas: with mode Binary")),
        (0, "Pods of an add-on", binary(), "spec.search.replicas", json!([3]), refused_at("spec", "search.replicas: with mode Binary")),
        (0, "tolerations", binary(), "spec.scheduler.tolerations", json!([toleration]), refused_at("spec", "scheduler: affinity, annotations")),
        (0, "affinity", binary(), "spec.apiServer.affinity", json!([affinity]), refused_at("spec", "apiServer: affinity, annotations")),
        (0, "a priority", binary(), "spec.controllerManager.priorityClassName", json!(["high"]), refused_at("spec", "controllerManager: affinity")),
        (0, "labels", binary(), "spec.metricsAdapter.labels", json!([{ "a": "b" }]), refused_at("spec", "metricsAdapter: affinity")),
        (0, "annotations", binary(), "spec.descheduler.annotations", json!([{ "a": "b" }]), refused_at("spec", "descheduler: affinity")),
        (0, "requests", binary(), "spec.kubeControllerManager.resources.requests", json!([{ "cpu": "1" }]), refused_at("spec", "kubeControllerManager: affinity")),
        (0, "limits", binary(), "spec.aggregatedApiServer.resources.limits", json!([{ "cpu": "1" }]), refused_at("spec", "aggregatedApiServer: affinity")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn the_machines_of_a_plane_have_a_majority_an_endpoint_and_a_bundle() -> Result<()> {
    let binary = || on_machines("m2");
    let endpoint = json!({ "host": "10.0.0.100" });
    let reached = || with(binary(), "spec.binary.endpoint", endpoint.clone());
    let labels = json!({ "matchLabels": { "a": "b" } });
    let named = || with(reached(), "spec.binary.controlPlane.hosts", json!(["h1", "h2"]));
    let dedicated = |hosts: &[&str]| json!({ "topology": "Dedicated", "replicas": 3, "hosts": hosts });
    check(&ApiServer::shared().await?, [
        (0, "a majority", reached(), "spec.binary.controlPlane.replicas", json!([1, 3, 5]), Admitted),
        (0, "no majority", reached(), "spec.binary.controlPlane.replicas", json!([2, 4]), refused("must be 1, 3 or 5")),
        (0, "too many", reached(), "spec.binary.controlPlane.replicas", json!([0, 7]), refused("should be")),
        (0, "no endpoint", binary(), "spec.binary.controlPlane.replicas", json!([3]), refused_at("spec.binary", "binary.endpoint is required")),
        (0, "two ways to choose", named(), "spec.binary.controlPlane.hostSelector", json!([labels]), refused_at("spec.binary.controlPlane", "exclude each other")),
        (0, "an endpoint in the air", reached(), "spec.binary.endpoint", json!([{ "host": "a.example.com", "provider": "Keepalived" }]), refused("it is a free IPv4 address")),
        (0, "an endpoint's holder", reached(), "spec.binary.endpoint", json!([{ "host": "10.0.0.9", "provider": "Keepalived", "keepalived": { "virtualRouterID": 7 } }]), Admitted),
        (0, "etcd elsewhere", named(), "spec.binary.etcd", json!([{ "topology": "External" }]), refused("given in etcd.external")),
        (0, "no count", named(), "spec.binary.etcd", json!([{ "topology": "Dedicated" }]), refused("goes with topology Dedicated")),
        (0, "a count of Stacked", named(), "spec.binary.etcd", json!([{ "replicas": 3 }]), refused("goes with topology Dedicated")),
        (0, "Hosts of Stacked", named(), "spec.binary.etcd", json!([{ "hosts": ["h9"] }]), refused("go with topology Dedicated")),
        (0, "etcd's machines", named(), "spec.binary.etcd", json!([dedicated(&["h3", "h4", "h5"])]), Admitted),
        (0, "two roles", named(), "spec.binary.etcd", json!([dedicated(&["h1", "h4", "h5"])]), refused_at("spec.binary", "one role only")),
        (0, "upstream", binary(), "spec.binary.artifacts", json!([{}, { "lockRef": { "name": "lock" } }]), refused_at("spec.binary.artifacts", "binary.artifacts.url is required")),
        (0, "attempts", binary(), "spec.binary.executor", json!([{ "maxAttempts": 5 }]), Admitted),
        (0, "hooks", binary(), "spec.binary.executor", json!([{ "customPlaybooksRef": { "name": "hooks" } }]), refused_at("spec.binary", "which a plane has none of")),
        (0, "forgotten at once", binary(), "spec.binary.forceRemoveAfterSeconds", json!([59]), refused("greater than or equal to 60")),
    ]).await?;
    check_changes(&ApiServer::shared().await?, with(reached(), "spec.binary.controlPlane.replicas", json!(3)), [
        (0, "more machines", json!({ "binary": { "controlPlane": { "replicas": 5 } } }), Admitted),
        (0, "another endpoint", json!({ "binary": { "endpoint": { "host": "10.0.0.101" } } }), refused_at("spec.binary", "binary.endpoint is immutable")),
        (0, "etcd moves", json!({ "binary": { "etcd": { "topology": "Dedicated", "replicas": 3 } } }), refused_at("spec.binary", "topology is immutable")),
        (0, "what was meant", json!({ "binary": { "etcd": { "topology": "Stacked" } } }), Admitted),
        (0, "into Pods", json!({ "mode": "Containers", "binary": null }), refused_at("spec", "mode cannot be changed")),
    ]).await
}
