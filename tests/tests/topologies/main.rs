//! Where the control plane and etcd may stand: three stacked control planes, etcd on a machine of its own. The first
//! ones have their certificates renewed, are given what they refuse, and are defragmented, backed up, restored and
//! upgraded, too.

mod access;
mod backup;
mod certificates;
mod defragment;
mod packages;
mod refused;
mod restore;
mod upgrade;

use std::net::SocketAddr;
use std::time::Duration;

use age::x25519::Identity;
use anyhow::ensure;
use e2e::bundle::Bundle;
use e2e::lifecycle::whole::{healthy, list_members};
use e2e::object_storage::ObjectStorage;
use e2e::objects;
use e2e::own_authorities::Company;
use e2e::own_network;
use e2e::scenario::{Scenario, scenario};
use e2e::workload;
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;
use lab::Lab;
use lab::rootfs::Release;
use serde_json::json;

const INSTALL: Duration = Duration::from_secs(900);
/// Other scenarios' clusters have the default network meanwhile.
const POD_CIDR: &str = "10.246.0.0/16";

#[tokio::test(flavor = "multi_thread")]
async fn three_control_planes_stand_behind_one_endpoint_with_stacked_etcd() {
    scenario("three", async |scenario: &Scenario| {
        let machines = scenario.machines(&["a", "b", "c"]).await?;
        let listen: SocketAddr = "172.30.0.1:7001".parse()?;
        let backends = machines.iter().map(|m| SocketAddr::new(m.address().into(), 6443)).collect();
        let _balancer = Lab::endpoint(listen, backends)?;
        let names: Vec<&str> = machines.iter().map(|machine| machine.name()).collect();
        let mut cluster = objects::cluster("three", "stacked", POD_CIDR, &names, &[]);
        cluster["spec"]["controlPlane"]["endpoint"] = json!({"host": "172.30.0.1", "port": 7001});
        cluster["spec"]["certificates"] = json!({"validityDays": certificates::SHORT});
        cluster["spec"]["kubernetesVersion"] = json!(objects::OLDER);
        cluster["spec"]["artifacts"]["url"] = json!(Lab::upgrades_bundle_url());
        scenario.apply(&cluster).await?;
        scenario.ready("stacked", INSTALL).await?;

        let client = scenario.cluster_client("stacked").await?;
        workload::nodes_ready(&client, 3, Duration::from_secs(30)).await?;
        let members = scenario.ssh(&machines[0], &list_members()).await?;
        ensure!(members.matches("started").count() == 3, "three etcd members are started: {members}");
        healthy(scenario, "stacked").await?;
        certificates::are_renewed_while_a_client_writes(scenario, "stacked", &machines).await?;
        refused::is_put_back_and_goes_no_further(scenario, "stacked", &machines).await?;
        defragment::makes_databases_small_while_a_client_writes(scenario, "stacked", &machines).await?;
        let bucket = ObjectStorage::start().await?;
        let identity = Identity::generate();
        restore::something_is_there_to_lose(&client).await?;
        backup::holds_what_was_written_before_it_and_is_read_without_us(scenario, &client, &bucket, &identity).await?;
        restore::brings_back_what_was_deleted(scenario, &client, &machines, &bucket, &identity).await?;
        upgrade::brings_the_next_minor_while_a_client_writes(scenario, "stacked", &client, machines.len()).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_stands_on_a_machine_of_its_own_and_network_plugin_service_proxy_and_authorities_are_the_users() {
    scenario("apart", async |scenario: &Scenario| {
        let (older, newer) = (Release::Debian12, Release::Debian13);
        let machines = scenario.machines_of(vec![("etcd", older), ("cp", newer), ("w", newer)]).await?;
        own_network::bring(scenario, &machines[1..]).await?;
        let mut cluster = objects::cluster("apart", "dedicated", POD_CIDR, &["apart-cp"], &["apart-w"]);
        cluster["spec"]["etcd"] = json!({"topology": "Dedicated", "replicas": 1, "hosts": ["apart-etcd"]});
        // Its programs and images are those of a bundle as administrators make one.
        let bundle = Bundle::made_by_wright(7082).await?;
        cluster["spec"]["artifacts"] = json!({
            "url": bundle.url, "indexSHA256": bundle.index_sha256, "osPackages": {"signedBy": bundle.packages_key},
        });
        packages::are_missing_and_have_no_source(scenario, &machines).await?;
        access::is_over_a_bastion_by_password(scenario, &machines[0], &machines[2]).await?;
        own_network::wish(&mut cluster);
        // Its authorities are its owner's, who has them from elsewhere.
        let own = Company::make()?.issue(&["ca", "etcd-ca"])?;
        own.put(scenario, "own").await?;
        cluster["spec"]["certificates"] = json!({"caRef": {"name": "own"}});
        scenario.apply(&cluster).await?;
        scenario.ready("dedicated", INSTALL).await?;
        own.is_on(scenario, &machines[1], "/etc/kubernetes/pki/ca.crt", "ca").await?;
        own.is_on(scenario, &machines[2], "/etc/kubernetes/pki/ca.crt", "ca").await?;
        own.is_on(scenario, &machines[0], "/etc/etcd/pki/ca.crt", "etcd-ca").await?;

        let client = scenario.cluster_client("dedicated").await?;
        let nodes = workload::nodes_ready(&client, 2, Duration::from_secs(30)).await?;
        ensure!(workload::node_names(&nodes) == ["apart-cp", "apart-w"], "the etcd machine is no node");
        let members = scenario.ssh(&machines[0], &list_members()).await?;
        ensure!(members.matches("started").count() == 1, "the etcd machine has the member: {members}");
        let here = scenario.ssh(&machines[1], "systemctl is-active etcd || true").await?;
        ensure!(here.trim() != "active", "the control plane runs no etcd");
        workload::service_answers(&client, "apart-cp", "apart-w", Duration::from_secs(120)).await?;
        let plugins = scenario.ssh(&machines[2], "ls /etc/cni/net.d | grep conf").await?;
        ensure!(plugins.trim() == "10-routes.conflist", "the plugin is the only one: {plugins}");
        let set = Api::<DaemonSet>::namespaced(client.clone(), "kube-system").get("routes").await?;
        let template = set.spec.and_then(|spec| spec.template.metadata).unwrap_or_default();
        ensure!(
            template.annotations.is_some_and(|all| all.get("pods").is_some_and(|pods| pods == POD_CIDR)),
            "the manifests have the cluster's facts"
        );
        own_network::serves(scenario, "dedicated", &client, &[&machines[1], &machines[2]]).await?;
        packages::came_from_the_bundle(scenario, &machines).await?;
        access::was_over_the_bastion(scenario, &machines[2]).await?;
        healthy(scenario, "dedicated").await
    })
    .await;
}
