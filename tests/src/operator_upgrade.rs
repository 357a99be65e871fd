//! The operator is replaced by a newer one in the middle of an install: the run that is under way ends well with the
//! executor that it has, nothing is done twice, no object is lost, and what comes next is the newer one's. Another
//! cluster stands already: nothing is done to its machines.

mod adopted;
mod seen;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use crds::playbook_run::{RunPhase, StepPhase};
use crds::step::Intent;
use crds::{ClusterDeployment, Host, PlaybookRun, conditions, names};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::task::block_in_place;

use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::objects::cluster;
use crate::scenario::{Scenario, within};

const NAMESPACE: &str = "operator-upgrade";
const CLUSTER: &str = "rolled";
const POD_CIDR: &str = "10.246.0.0/16";
/// The cluster that stands, and its Pods.
const STANDING: &str = "standing";
const STANDING_CIDR: &str = "10.245.0.0/16";
/// Where the operator is.
const SYSTEM: &str = "clusterwright-system";
/// How long nobody writes to a cluster that has converged.
const REST: Duration = Duration::from_secs(40);
/// How long it may take until then.
const SETTLED: Duration = Duration::from_secs(150);

/// How the operator is replaced.
#[derive(Debug)]
pub struct Upgrade {
    /// Program and arguments that replace operator and executor, CustomResourceDefinitions first, and end once the new
    /// operator runs.
    pub command: Vec<String>,
    /// Whether the newer executor is another image.
    pub executor_changes: bool,
}

/// Plays it on the lab that is up, with the former operator. What was seen, for a person.
pub async fn play(upgrade: &Upgrade) -> Result<String> {
    within(NAMESPACE, async |scenario| play_in(scenario, upgrade).await).await
}

async fn play_in(scenario: &Scenario, upgrade: &Upgrade) -> Result<String> {
    let machines = scenario.machines(&["c1", "w1", "w2", "spare", "old"]).await?;
    let name = |suffix: &str| scenario.machine_name(suffix);
    let (first, workers, spare) = (name("c1"), [name("w1"), name("w2")], name("spare"));
    let workers: Vec<&str> = workers.iter().map(String::as_str).collect();
    let mut standing = cluster(NAMESPACE, STANDING, STANDING_CIDR, &[&name("old")], &[]);
    let mut rolled = cluster(NAMESPACE, CLUSTER, POD_CIDR, &[&first], &workers);
    adopted::wish(scenario, &mut [&mut standing, &mut rolled]).await?;
    scenario.apply(&standing).await?;
    scenario.ready(STANDING, Duration::from_secs(600)).await?;
    scenario.apply(&rolled).await?;

    let run = in_the_middle(scenario).await?;
    let former = executors(scenario).await?;
    let before = seen::objects(scenario).await?;
    scenario.say(&format!("{} objects, run {} is under way; the operator is replaced", before.len(), run.name_any()));
    let replaced = replace(upgrade)?;
    scenario.say(&format!("replaced in {:.1} s", replaced.as_secs_f64()));

    let ended = scenario.succeeded(&run.name_any(), Duration::from_secs(600)).await?;
    ensure!(ended.metadata.uid == run.metadata.uid, "run {} is another one by now", run.name_any());
    outlived(scenario, &ended).await?;
    scenario.ready(CLUSTER, Duration::from_secs(900)).await?;
    nothing_lost(scenario, &before).await?;
    nothing_doubled(scenario, 2).await?;
    guards::hold(&machines)?;
    for adopted in [CLUSTER, STANDING] {
        adopted::is_an_addon(scenario, adopted).await?;
    }
    stands_as_it_was(scenario).await?;
    at_rest(scenario).await?;

    grow(scenario, &[&workers[..], &[spare.as_str()]].concat()).await?;
    let latter = executors_of_all(scenario, &former, upgrade.executor_changes).await?;
    scenario.ready(CLUSTER, Duration::from_secs(600)).await?;
    nothing_lost(scenario, &before).await?;
    nothing_doubled(scenario, 3).await?;
    guards::hold(&machines)?;
    stands_as_it_was(scenario).await?;
    for done in [CLUSTER, STANDING] {
        scenario.delete_cluster(done, Duration::from_secs(600)).await?;
    }
    all_available(scenario).await?;
    Ok(format!(
        "run {} went on while the operator was replaced in {:.0} s, and ended well; {} objects stayed; {latter}",
        run.name_any(),
        replaced.as_secs_f64(),
        before.len()
    ))
}

/// Waits until the install has done a step and is at another one.
async fn in_the_middle(scenario: &Scenario) -> Result<PlaybookRun> {
    let api = scenario.api::<PlaybookRun>();
    eventually("an install in the middle", Duration::from_secs(300), async || {
        let runs = api.list(&ListParams::default()).await?;
        let is_asked = |run: &PlaybookRun| run.spec.cluster_name.as_deref() == Some(CLUSTER);
        let Some(run) = runs.into_iter().find(|run| is_asked(run) && run.spec.intent == Intent::Install) else {
            return Ok(Look::Waiting("no run of the intent Install".into()));
        };
        let status = run.status.clone().unwrap_or_default();
        ensure!(!status.phase.is_some_and(RunPhase::is_final), "it ended before it was seen at work");
        let is = |phase: StepPhase| status.steps.iter().any(|step| step.phase == phase);
        Ok(match is(StepPhase::Succeeded) && is(StepPhase::Running) {
            true => Look::Done(run),
            false => Look::Waiting(status.message.unwrap_or_default()),
        })
    })
    .await
}

fn replace(upgrade: &Upgrade) -> Result<Duration> {
    let (program, arguments) = upgrade.command.split_first().context("no command replaces the operator")?;
    let began = Instant::now();
    let status = block_in_place(|| Command::new(program).args(arguments).status());
    let status = status.with_context(|| format!("failed to start {program}"))?;
    ensure!(status.success(), "{program} ended with {status}: the operator was not replaced");
    Ok(began.elapsed())
}

/// The newer operator was there before the run had ended: else nothing was tried.
async fn outlived(scenario: &Scenario, run: &PlaybookRun) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(scenario.client.clone(), SYSTEM);
    let pods = pods.list(&ListParams::default()).await?;
    // Those of the former one may be on their way out.
    let newer = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let started = newer.filter_map(|pod| pod.status.as_ref()?.start_time.as_ref()).min();
    let started = started.with_context(|| format!("no Pod in {SYSTEM} has begun"))?;
    let finished = run.status.as_ref().and_then(|status| status.finished_at.as_ref());
    let finished = finished.context("the run has no finishedAt")?;
    ensure!(
        finished.0 > started.0,
        "the run ended at {:?}, before the newer operator began at {:?}: the middle of the install was missed",
        finished.0,
        started.0
    );
    Ok(())
}

async fn nothing_lost(scenario: &Scenario, before: &seen::Objects) -> Result<()> {
    let now = seen::objects(scenario).await?;
    let lost = seen::lost(before, &now);
    ensure!(lost.is_empty(), "lost, or made anew: {}", lost.join(", "));
    Ok(())
}

async fn nothing_doubled(scenario: &Scenario, workers: usize) -> Result<()> {
    let runs = scenario.api::<PlaybookRun>().list(&ListParams::default()).await?.items;
    let wrong = seen::doubled(&runs);
    ensure!(wrong.is_empty(), "done twice, or not well: {}", wrong.join(", "));
    let joined = seen::hosts_of(&runs, Intent::Join).len();
    ensure!(joined == workers, "{joined} Hosts were joined, and {workers} are wanted");
    Ok(())
}

/// Nothing but its install was ever done to the machines of the cluster that stood before.
async fn stands_as_it_was(scenario: &Scenario) -> Result<()> {
    scenario.ready(STANDING, Duration::from_secs(60)).await?;
    let runs = scenario.api::<PlaybookRun>().list(&ListParams::default()).await?;
    let done = runs.iter().filter(|run| run.spec.cluster_name.as_deref() == Some(STANDING));
    let others = done.filter(|run| seen::changes_machines(run) && run.spec.intent != Intent::Install);
    let others: Vec<String> = others.map(ResourceExt::name_any).collect();
    ensure!(others.is_empty(), "done to a cluster that stood: {}", others.join(", "));
    Ok(())
}

/// A cluster that has converged is not written to. What follows from the last run, and from what its machines find out
/// of their Pods' network, is written first.
async fn at_rest(scenario: &Scenario) -> Result<()> {
    let api = scenario.api::<ClusterDeployment>();
    let version = async || anyhow::Ok(api.get(CLUSTER).await?.resource_version());
    let (mut last, mut since) = (version().await?, Instant::now());
    eventually(&format!("nobody writes to ClusterDeployment {CLUSTER}"), SETTLED, async || {
        let now = version().await?;
        if now != last {
            (last, since) = (now, Instant::now());
        }
        let quiet = since.elapsed();
        Ok(match quiet >= REST {
            true => Look::Done(()),
            false => Look::Waiting(format!("resourceVersion {last:?}, for {:.0} s", quiet.as_secs_f64())),
        })
    })
    .await
}

async fn grow(scenario: &Scenario, workers: &[&str]) -> Result<()> {
    let wish = json!({"spec": {"workers": [{"name": "general", "replicas": workers.len(), "hosts": workers}]}});
    let api = scenario.api::<ClusterDeployment>();
    api.patch(CLUSTER, &PatchParams::default(), &Patch::Merge(&wish)).await?;
    Ok(())
}

/// The images of executors that are there now, by their digests.
async fn executors(scenario: &Scenario) -> Result<Vec<String>> {
    let pods = scenario.api::<Pod>().list(&ListParams::default().labels(names::label::RUN)).await?;
    let statuses = pods.items.into_iter().filter_map(|pod| pod.status?.container_statuses);
    let mut images: Vec<String> =
        statuses.flatten().map(|status| status.image_id).filter(|id| !id.is_empty()).collect();
    images.sort();
    images.dedup();
    Ok(images)
}

/// Waits for an executor of the run that the newer operator starts, and says which it is.
async fn executors_of_all(scenario: &Scenario, former: &[String], changes: bool) -> Result<String> {
    ensure!(!former.is_empty(), "no executor was seen before the operator was replaced");
    let latter = eventually("an executor of the newer operator", Duration::from_secs(180), async || {
        let now = executors(scenario).await?;
        let newer: Vec<String> = now.into_iter().filter(|image| !changes || !former.contains(image)).collect();
        Ok(if newer.is_empty() { Look::Waiting("none yet".into()) } else { Look::Done(newer) })
    });
    match (latter.await?.as_slice(), changes) {
        ([image], true) => Ok(format!("the next run had the newer executor ({image})")),
        ([_], false) => Ok("the executor is the same image in both".to_owned()),
        (several, _) => bail!("runs of the newer operator have several executors: {}", several.join(", ")),
    }
}

async fn all_available(scenario: &Scenario) -> Result<()> {
    let api = scenario.api::<Host>();
    eventually("all Hosts Ready and claimed by nobody", Duration::from_secs(120), async || {
        let hosts = api.list(&ListParams::default()).await?;
        let is_free = |host: &&Host| {
            let ready = host
                .status
                .as_ref()
                .is_some_and(|status| conditions::is_true(&status.conditions, names::condition::READY));
            ready && host.spec.claim_ref.is_none()
        };
        let held: Vec<String> = hosts.iter().filter(|host| !is_free(host)).map(ResourceExt::name_any).collect();
        Ok(if held.is_empty() { Look::Done(()) } else { Look::Waiting(held.join(", ")) })
    })
    .await
}
