//! A cluster whose etcd others run: its data is there and nowhere else, another cluster does not get into it, and all
//! of it stays when the cluster is deleted. It has no bundle: its machines take all from upstream, through a proxy.

use std::time::Duration;

use age::x25519::Identity;
use anyhow::{Context, Result, ensure};
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Step};
use crds::{ClusterDeployment, Conditions, PlaybookRun};
use e2e::backups::{self, Drill};
use e2e::client::apply;
use e2e::eventually::{Look, eventually};
use e2e::external_etcd::ExternalEtcd;
use e2e::lifecycle::whole::healthy;
use e2e::scenario::{Scenario, scenario};
use e2e::upstream::Upstream;
use e2e::volume::Volume;
use e2e::{objects, workload};
use kube::api::ListParams;
use lab::machines::Machine;
use serde_json::{Value, json};

const INSTALL: Duration = Duration::from_secs(600);
const RUN: Duration = Duration::from_secs(300);
const GONE: Duration = Duration::from_secs(300);
/// The operator looks at Secrets every 30 s.
const SEEN: Duration = Duration::from_secs(90);
/// Other scenarios' clusters have others meanwhile.
const POD_CIDR: &str = "10.247.0.0/16";
const PREFIX: &str = "/lab/kept";

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_keeps_its_data_in_an_etcd_of_others_and_leaves_it_there() {
    scenario("elsewhere", async |scenario: &Scenario| {
        let etcd = ExternalEtcd::start().await?;
        let upstream = Upstream::start(7083).await?;
        let machines = scenario.machines(&["cp", "w"]).await?;
        let mut kept = cluster(&etcd, "kept");
        upstream.wish(scenario, &mut kept).await?;
        scenario.apply(&kept).await?;
        waits_for_the_secret(scenario).await?;
        scenario.apply(&etcd.secret_of_a_stranger(&scenario.name, "etcd")?).await?;
        a_stranger_is_refused(scenario).await?;
        scenario.delete_cluster("kept", GONE).await?;
        ensure!(etcd.keys("/")?.is_empty(), "something was written before the first install");

        scenario.apply(&etcd.secret(&scenario.name, "etcd")?).await?;
        scenario.apply(&kept).await?;
        let ready = scenario.ready("kept", INSTALL).await?;
        let told = ready.condition("EtcdReady").context("there is no EtcdReady")?;
        scenario.say(&format!("EtcdReady {}: {}", told.status, told.message));
        let client = scenario.cluster_client("kept").await?;
        workload::nodes_ready(&client, 2, Duration::from_secs(30)).await?;
        healthy(scenario, "kept").await?;
        upstream.was_all_asked()?;
        let note =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}});
        apply(&client, &note).await?;
        let keys = etcd.keys(&format!("{PREFIX}/configmaps/default/"))?;
        ensure!(keys.contains(&format!("{PREFIX}/configmaps/default/kept")), "what was written is not there: {keys:?}");
        ensure!(etcd.keys("/registry")?.is_empty(), "something is outside of the prefix");
        nothing_of_etcd_is_on_the_machine(scenario, &machines[0]).await?;
        the_secret_is_rolled_out(scenario, &etcd).await?;
        healthy(scenario, "kept").await?;
        it_is_backed_up_with_its_cluster_and_without(scenario, &etcd).await?;

        scenario.delete_cluster("kept", GONE).await?;
        let left = lasting(&etcd)?;
        let found = etcd.keys(&format!("{PREFIX}/configmaps/default/"))?;
        ensure!(found == keys, "what was there is not what is left: {found:?}");
        scenario.apply(&cluster(&etcd, "next")).await?;
        another_clusters_data_is_refused(scenario).await?;
        ensure!(lasting(&etcd)? == left, "something was written after the cluster was deleted");
        ensure!(etcd.members()? == 1, "it has other members than before");
        Ok(())
    })
    .await;
}

fn cluster(etcd: &ExternalEtcd, name: &str) -> Value {
    let mut cluster = objects::cluster("elsewhere", name, POD_CIDR, &["elsewhere-cp"], &["elsewhere-w"]);
    cluster["spec"]["etcd"] = json!({
        "topology": "External", "endpoints": [etcd.endpoint], "secretRef": {"name": "etcd"}, "prefix": PREFIX,
    });
    cluster
}

/// By the endpoints and the Secret of the cluster, and by those of an EtcdBackup alone: read without us, both hold what
/// was written.
async fn it_is_backed_up_with_its_cluster_and_without(scenario: &Scenario, etcd: &ExternalEtcd) -> Result<()> {
    let volume = Volume::make(scenario, "backups").await?;
    let storage = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage",
        "metadata": {"namespace": scenario.name, "name": "volume"}, "spec": {"volume": {"claimName": "backups"}},
    });
    scenario.apply(&storage).await?;
    backups::storage_is(scenario, "volume", "True", SEEN).await?;
    let identity = Identity::generate();
    let bare = json!({"endpoints": [etcd.endpoint], "secretRef": {"name": "etcd"}, "prefix": PREFIX});
    for (name, of, files) in [
        ("of-the-cluster", json!({"clusterName": "kept"}), backups::OF_EXTERNAL),
        ("of-the-etcd", json!({"etcd": bare}), backups::OF_ETCD),
    ] {
        let content = backups::take_of(scenario, name, of, "volume", &identity).await?;
        scenario.say(&format!("{name}: {} keys at revision {}, {}", content.keys, content.revision, content.location));
        ensure!(content.keys > 100 && etcd.endpoint.ends_with(&content.member), "it has {content:?}");
        let scratch = tempfile::tempdir()?;
        let snapshot = scratch.path().join("snapshot.db");
        let manifest = backups::read_with(&volume.path(), &content, &identity, &snapshot, files)?;
        ensure!((manifest.cluster == "kept") == (name == "of-the-cluster"), "the manifest is {manifest:?}");
        let drill = Drill::start(&snapshot, scratch.path())?;
        ensure!(drill.has(&format!("{PREFIX}/configmaps/default/kept")).await?, "what was written is not there");
    }
    volume.remove(scenario).await
}

/// What nobody but an API server changes: leases of etcd's own end Events and the like.
fn lasting(etcd: &ExternalEtcd) -> Result<Vec<Value>> {
    let kinds = ["configmaps", "namespaces", "pods", "secrets"].iter();
    kinds.map(|kind| etcd.versions(&format!("{PREFIX}/{kind}/"))).collect()
}

async fn waits_for_the_secret(scenario: &Scenario) -> Result<()> {
    let api = scenario.api::<ClusterDeployment>();
    eventually("the ClusterDeployment waits for the Secret", SEEN, async || {
        let found = api.get("kept").await?;
        Ok(match found.condition("Ready") {
            Some(ready) if ready.reason == "SecretNotFound" => {
                scenario.say(&ready.message);
                Look::Done(())
            }
            other => Look::Waiting(format!("{other:?}")),
        })
    })
    .await
}

/// The findings of a preflight that failed for this cluster.
async fn findings(scenario: &Scenario, cluster: &str) -> Result<Vec<(String, String)>> {
    let runs = scenario.api::<PlaybookRun>();
    eventually("preflight finds what is wrong", INSTALL, async || {
        let all = runs.list(&ListParams::default()).await?;
        let failed = all.items.into_iter().filter(|run| {
            let phase = run.status.as_ref().and_then(|status| status.phase);
            run.spec.cluster_name.as_deref() == Some(cluster) && phase == Some(RunPhase::Failed)
        });
        let hosts = failed.filter_map(|run| run.status).flat_map(|status| status.hosts);
        let found: Vec<(String, String)> =
            hosts.flat_map(|host| host.findings).map(|finding| (finding.name, finding.message)).collect();
        Ok(match found.iter().any(|(name, _)| name.starts_with("etcd-")) {
            true => Look::Done(found),
            false => Look::Waiting(format!("{found:?}")),
        })
    })
    .await
}

async fn a_stranger_is_refused(scenario: &Scenario) -> Result<()> {
    let found = findings(scenario, "kept").await?;
    let refused = found.iter().find(|(name, _)| name == "etcd-client-certificate");
    let (_, message) = refused.with_context(|| format!("the findings are {found:?}"))?;
    scenario.say(message);
    Ok(())
}

async fn another_clusters_data_is_refused(scenario: &Scenario) -> Result<()> {
    let found = findings(scenario, "next").await?;
    let refused = found.iter().find(|(name, _)| name == "etcd-foreign-data");
    let (_, message) = refused.with_context(|| format!("the findings are {found:?}"))?;
    scenario.say(message);
    ensure!(message.contains("UID") && message.contains(PREFIX), "it says {message}");
    Ok(())
}

/// No member, no step on one, and the key readable by root alone.
async fn nothing_of_etcd_is_on_the_machine(scenario: &Scenario, machine: &Machine) -> Result<()> {
    let said = scenario.ssh(machine, "systemctl is-active etcd || true; ls /var/lib/etcd 2>/dev/null || true").await?;
    ensure!(said.trim() == "inactive", "the control plane has a member of etcd: {said}");
    let mode = scenario.ssh(machine, "stat -c '%a %U' /etc/kubernetes/pki/apiserver-etcd-client.key").await?;
    ensure!(mode.trim() == "600 root", "the key of etcd's client has {mode}");
    let runs = scenario.api::<PlaybookRun>().list(&ListParams::default()).await?;
    let steps: Vec<Step> = runs.items.into_iter().flat_map(|run| run.spec.steps).collect();
    ensure!(!steps.contains(&Step::Etcd), "a run had a step on etcd: {steps:?}");
    Ok(())
}

/// Another certificate comes to the control plane by itself.
async fn the_secret_is_rolled_out(scenario: &Scenario, etcd: &ExternalEtcd) -> Result<()> {
    scenario.apply(&etcd.secret(&scenario.name, "etcd")?).await?;
    let runs = scenario.api::<PlaybookRun>();
    let run = eventually("a run brings the certificate", SEEN + RUN, async || {
        let all = runs.list(&ListParams::default()).await?;
        let mut ours = all.items.into_iter().filter(|run| run.spec.intent == Intent::Configure);
        let ended = ours.find(|run| run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Succeeded));
        Ok(ended.map_or_else(|| Look::Waiting("no run has succeeded".to_owned()), Look::Done))
    })
    .await?;
    ensure!(run.spec.steps == [Step::EtcdEndpoints], "the run had {:?}", run.spec.steps);
    up_to_date_is(scenario, "True").await
}

async fn up_to_date_is(scenario: &Scenario, wanted: &str) -> Result<()> {
    let api = scenario.api::<ClusterDeployment>();
    eventually(&format!("UpToDate {wanted}"), SEEN, async || {
        let found = api.get("kept").await?;
        Ok(match found.condition("UpToDate") {
            Some(told) if told.status == wanted => {
                scenario.say(&told.message);
                Look::Done(())
            }
            other => Look::Waiting(format!("{other:?}")),
        })
    })
    .await
}
