//! etcd is set back to a backup, with what may come between: an executor that is killed, machines that came and went.

use std::time::{Duration, Instant};

use age::x25519::Identity;
use anyhow::{Context, Result, ensure};
use crds::etcd_restore::{EtcdRestoreStatus, RestorePhase};
use crds::names::annotation;
use crds::step::Role;
use crds::{EtcdRestore, PlaybookRun};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ListParams;
use lab::machines::Machine;
use nix::sys::signal::Signal;
use serde_json::json;

use super::Seen;
use crate::client::apply;
use crate::eventually::{Look, eventually};
use crate::faults::inject;
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, Stage, host_of};
use crate::lifecycle::whole::{etcd_members, healthy};
use crate::lifecycle::writer::Writer;
use crate::object_storage::ObjectStorage;
use crate::{backups, restores, workload};

const STORAGE: Duration = Duration::from_secs(90);
/// From the request until all is ready, or from an approval to its end.
pub(super) const RESTORED: Duration = Duration::from_secs(300);
/// As long nothing may happen by itself.
const QUIET: Duration = Duration::from_secs(20);
/// On the control plane once its manifests are held; then its Pods have to end.
const IS_HELD: &str = "ls /etc/clusterwright/held/*/kube-apiserver.yaml";
/// On a machine with a member once the data is the backup's; then etcd is started.
const IS_SWAPPED: &str = "ls -d /var/lib/etcd/member.before-*";

/// The executor is killed while the control plane is held: it goes on once that is approved, and not before.
pub async fn interrupted(stage: &mut Stage<'_>) -> Result<Seen> {
    let restore = Restore::prepare(stage, "interrupted").await?;
    let machine = control_plane(stage).await?;
    restore.approve(stage).await?;
    restore.kill_executor(stage, &machine, IS_HELD).await?;
    restore.is_interrupted(stage).await?;
    let began = Instant::now();
    restores::approve(stage.scenario, restore.name, restores::GO_ON).await?;
    restores::reaches(stage.scenario, restore.name, RestorePhase::Succeeded, RESTORED).await?;
    let seen = Seen::since(began, "went on where it was, once approved, and nothing was repeated before");
    restore.has_the_data_of_the_backup(stage).await?;
    restore.ends(stage).await?;
    Ok(seen)
}

/// The executor is killed once the data is replaced: the data of before is back once that is approved.
pub async fn undone(stage: &mut Stage<'_>) -> Result<Seen> {
    let restore = Restore::prepare(stage, "undone").await?;
    let machine = control_plane(stage).await?;
    restore.approve(stage).await?;
    restore.kill_executor(stage, &machine, IS_SWAPPED).await?;
    restore.is_interrupted(stage).await?;
    let began = Instant::now();
    restores::approve(stage.scenario, restore.name, restores::GO_BACK).await?;
    restores::reaches(stage.scenario, restore.name, RestorePhase::Undone, RESTORED).await?;
    let seen = Seen::since(began, "the data of before is back, once approved");
    restore.has(stage, &restore.after(), true).await?;
    restore.ends(stage).await?;
    Ok(seen)
}

/// A worker joined after the backup, and one that was there has left: exactly the machines of today are Nodes.
pub async fn across_join(stage: &mut Stage<'_>) -> Result<Seen> {
    let restore = Restore::prepare(stage, "across-join").await?;
    let before = stage.members(Role::Worker).await?;
    stage.workers(before.len() + 1).await?;
    stage.ready(2 + before.len()).await?;
    let leaver = before.first().context("there is no worker")?;
    let gone = host_of(leaver).context("the worker has no Host")?.to_owned();
    stage.annotate(leaver, annotation::DELETE_FIRST, "").await?;
    stage.workers(before.len()).await?;
    stage.gone(leaver, RESTORED).await?;
    stage.ready(1 + before.len()).await?;
    let began = Instant::now();
    restore.approve(stage).await?;
    restores::reaches(stage.scenario, restore.name, RestorePhase::Succeeded, RESTORED).await?;
    let seen = Seen::since(began, format!("the Node of {gone} did not come back, and the newcomer's did"));
    restore.has_the_data_of_the_backup(stage).await?;
    let nodes = workload::node_names(&stage.ready(1 + before.len()).await?);
    ensure!(!nodes.contains(&gone), "the Nodes are {nodes:?}");
    restore.ends(stage).await?;
    Ok(seen)
}

/// The members are on machines of their own.
pub async fn dedicated(stage: &mut Stage<'_>) -> Result<Seen> {
    let restore = Restore::prepare(stage, "dedicated").await?;
    let writer = Writer::to(stage.scenario, CLUSTER).await?;
    let began = Instant::now();
    restore.approve(stage).await?;
    restores::reaches(stage.scenario, restore.name, RestorePhase::Succeeded, RESTORED).await?;
    let members = stage.members(Role::Etcd).await?.len();
    let seen = Seen::since(began, format!("{members} members; {}", writer.written().told()));
    drop(writer);
    restore.has_the_data_of_the_backup(stage).await?;
    etcd_members(stage, Role::Etcd, members).await?;
    stage.stays_without_kube_proxy().await?;
    restore.ends(stage).await?;
    Ok(seen)
}

async fn control_plane(stage: &Stage<'_>) -> Result<Machine> {
    let machines = stage.members(Role::ControlPlane).await?;
    stage.machine_of(machines.first().context("there is no control plane")?)
}

/// A storage of a scenario's own, and whom backups there are encrypted for.
pub(super) struct Backups {
    /// Of the storage, and of all that is made beside it.
    pub name: &'static str,
    /// It decrypts them.
    pub identity: Identity,
    /// The server of the storage.
    pub bucket: ObjectStorage,
}

impl Backups {
    pub(super) async fn prepare(stage: &Stage<'_>, name: &'static str) -> Result<Self> {
        let bucket = ObjectStorage::start().await?;
        for object in bucket.objects(&stage.scenario.name, name) {
            stage.scenario.apply(&object).await?;
        }
        backups::storage_is(stage.scenario, name, "True", STORAGE).await?;
        Ok(Self { name, identity: Identity::generate(), bucket })
    }
}

/// A backup, with something written before and something after it, and a restore of the same name.
struct Restore {
    name: &'static str,
    backups: Backups,
}

impl Restore {
    async fn prepare(stage: &Stage<'_>, name: &'static str) -> Result<Self> {
        let restore = Self { name, backups: Backups::prepare(stage, name).await? };
        let client = stage.client().await?;
        let mark = |name: String| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
        apply(&client, &mark(restore.before())).await?;
        backups::take(stage.scenario, name, CLUSTER, name, &restore.backups.identity).await?;
        apply(&client, &mark(restore.after())).await?;
        Ok(restore)
    }

    fn before(&self) -> String {
        format!("{}-before", self.name)
    }

    fn after(&self) -> String {
        format!("{}-after", self.name)
    }

    /// Has it staged, and approves it.
    async fn approve(&self, stage: &Stage<'_>) -> Result<()> {
        let source = json!({"backupRef": {"name": self.name}});
        restores::begin(stage.scenario, self.name, restores::Of::Cluster(CLUSTER), source, &self.backups.identity)
            .await?;
        let asks = RestorePhase::AwaitingApproval;
        restores::reaches(stage.scenario, self.name, asks, RESTORED).await?;
        restores::approve(stage.scenario, self.name, restores::DO_IT).await
    }

    /// Kills the executor of the run that replaces the data, once this command succeeds on a machine.
    async fn kill_executor(&self, stage: &Stage<'_>, machine: &Machine, once: &str) -> Result<()> {
        let scenario = stage.scenario;
        let status = restores::reaches(scenario, self.name, RestorePhase::Restoring, RESTORED).await?;
        let run = status.run_ref.context("it names no run")?.name;
        let executor = eventually("the executor runs", Duration::from_secs(60), async || {
            Ok(Look::Done(inject::executor(scenario, &run).await?))
        })
        .await?;
        scenario.ssh(machine, &format!("timeout 50 sh -c 'until {once} 2>/dev/null; do sleep 0.05; done'")).await?;
        inject::all(&executor, Signal::SIGKILL)?;
        scenario.say(&format!("the executor of run {run} is killed"));
        Ok(())
    }

    /// It waits for a person, and does nothing by itself.
    async fn is_interrupted(&self, stage: &Stage<'_>) -> Result<()> {
        let (scenario, stopped) = (stage.scenario, RestorePhase::Interrupted);
        restores::reaches(scenario, self.name, stopped, RESTORED).await?;
        let runs = async || {
            Ok::<_, anyhow::Error>(scenario.api::<PlaybookRun>().list(&ListParams::default()).await?.items.len())
        };
        let before = runs().await?;
        tokio::time::sleep(QUIET).await;
        let still: EtcdRestoreStatus = scenario.api::<EtcdRestore>().get(self.name).await?.status.unwrap_or_default();
        ensure!(still.phase == Some(stopped), "by itself it came to {:?}: {:?}", still.phase, still.message);
        ensure!(runs().await? == before, "a run was made by itself");
        Ok(())
    }

    async fn has_the_data_of_the_backup(&self, stage: &Stage<'_>) -> Result<()> {
        self.has(stage, &self.before(), true).await?;
        self.has(stage, &self.after(), false).await
    }

    async fn has(&self, stage: &Stage<'_>, mark: &str, there: bool) -> Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(stage.client().await?, "default");
        let found = maps.get_opt(mark).await?.is_some();
        ensure!(found == there, "ConfigMap {mark}: found {found}, not {there}");
        Ok(())
    }

    /// The cluster is well, and nothing is left once the restore is deleted.
    async fn ends(&self, stage: &Stage<'_>) -> Result<()> {
        let workers = stage.workers_wished();
        let planes = stage.members(Role::ControlPlane).await?.len();
        stage.ready(planes + workers).await?;
        healthy(stage.scenario, CLUSTER).await?;
        restores::delete(stage.scenario, self.name).await?;
        restores::nothing_is_left(stage.scenario, &stage.in_use().await?).await?;
        guards::hold(&stage.machines)
    }
}
