//! `spec.versions`: versions of components that go before those of the artifact bundle's table.

use anyhow::Result;
use e2e::api_server::ApiServer;
use serde_json::json;

use super::{Admitted, check, deployment, refused, refused_at, with};

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn versions_are_those_of_five_components_as_the_bundle_writes_them_without_v() -> Result<()> {
    let demo = || deployment("demo");
    let external = || with(demo(), "spec.etcd", json!({
        "topology": "External", "endpoints": ["https://10.0.0.1:2379"], "secretRef": {"name": "etcd"},
    }));
    check(&ApiServer::shared().await?, [
        (0, "none, one, all", demo(), "spec.versions", json!([{}, {"etcd": "3.6.16"}, {
            "containerd": "2.2.1", "runc": "1.4.0-rc.1", "cniPlugins": "1.9.0", "etcd": "3.6.16", "coredns": "1.14.7",
        }]), Admitted),
        (0, "no version", demo(), "spec.versions.etcd", json!(["v3.6.16", "3.6", "latest", "3.06.1", ""]), refused("should ")),
        (0, "another component", demo(), "spec.versions", json!([{"kubelet": "1.35.4"}, {"pause": "3.10.0"}]), refused("unknown field")),
        (0, "an etcd of others", external(), "spec.versions", json!([{"etcd": "3.6.16"}]),
            refused_at("spec.versions.etcd", "leave versions.etcd out")),
        (0, "beside an etcd of others", external(), "spec.versions", json!([{"containerd": "2.2.1"}]), Admitted),
    ]).await
}
