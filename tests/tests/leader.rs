//! Two operators, one Lease, a real API server: whatever becomes of the one that leads, the other takes over in time,
//! and one whose time is over writes nothing more.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::api_server::ApiServer;
use e2e::operator_process::Operator;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use nix::sys::signal::Signal;
use tokio::time::sleep;

/// Clusters that keep an operator busy: it makes their Machines.
const CLUSTERS: usize = 60;

/// How long anything may take here before it is taken for never.
const PATIENCE: Duration = Duration::from_secs(180);

/// A namespace in which operators meet.
struct Place {
    server: ApiServer,
    name: &'static str,
}

impl Place {
    async fn make(name: &'static str) -> Result<Self> {
        let server = ApiServer::shared().await?;
        let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        Api::all(server.client()).create(&PostParams::default(), &namespace).await?;
        Ok(Self { server, name })
    }

    async fn holder(&self) -> Result<String> {
        let leases: Api<Lease> = Api::namespaced(self.server.client(), self.name);
        let lease = leases.get_opt("clusterwright-operator").await?;
        let spec = lease.and_then(|lease| lease.spec).unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        Ok(holder.rsplit_once('_').map(|(user, _)| user.to_owned()).unwrap_or_default())
    }

    /// Waits until it leads; how long that took.
    async fn led_by(&self, operator: &Operator) -> Result<Duration> {
        let begun = Instant::now();
        while self.holder().await? != operator.user {
            ensure!(begun.elapsed() < PATIENCE, "{} does not lead:\n{}", operator.user, operator.log());
            sleep(Duration::from_millis(20)).await;
        }
        Ok(begun.elapsed())
    }

    async fn machines(&self) -> Result<usize> {
        let machines: Api<crds::Machine> = Api::namespaced(self.server.client(), self.name);
        Ok(machines.list_metadata(&ListParams::default()).await?.items.len())
    }

    async fn work(&self) -> Result<()> {
        let deployments: Api<crds::ClusterDeployment> = Api::namespaced(self.server.client(), self.name);
        for index in 0..CLUSTERS {
            let deployment = serde_json::from_value(serde_json::json!({
                "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment",
                "metadata": {"name": format!("c{index}")},
                "spec": {
                    "kubernetesVersion": "1.35.4", "controlPlane": {"replicas": 1},
                    "workers": [{"name": "general", "replicas": 9}],
                    "artifacts": {"url": "http://192.0.2.1:8080"},
                },
            }))?;
            deployments.create(&PostParams::default(), &deployment).await?;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_stopped_past_its_lease_writes_nothing_when_it_wakes_up() -> Result<()> {
    let place = Place::make("stopped").await?;
    let mut a = Operator::start(&place.server, "operator-a", place.name)?;
    place.led_by(&a).await?;
    let b = Operator::start(&place.server, "operator-b", place.name)?;
    a.answers("/readyz", "ok: leads").await?;
    a.answers("/metrics", "clusterwright_leader 1").await?;
    b.answers("/readyz", "ok: standing by").await?;
    b.answers("/metrics", "clusterwright_leader 0").await?;

    // In the middle of its work.
    place.work().await?;
    let until = Instant::now() + PATIENCE;
    while place.machines().await? < 10 {
        ensure!(Instant::now() < until, "no Machines:\n{}", a.log());
        sleep(Duration::from_millis(10)).await;
    }
    let wrote = |requests: &[e2e::audit::Request], user: &str, after: Timestamp| {
        let ours = requests.iter().filter(|request| request.user == user && request.at > after);
        ours.filter(|request| request.writes()).cloned().collect::<Vec<_>>()
    };
    let begun = Timestamp::now();
    a.signal(Signal::SIGSTOP)?;
    let stopped = Instant::now();
    let took = place.led_by(&b).await?;
    println!("stopped: taken over after {took:.1?}");
    // The other one works on.
    let until = Instant::now() + PATIENCE;
    let worked = |request: &e2e::audit::Request| request.resource != "leases";
    while !wrote(&place.server.audit()?, b.user, begun).iter().any(worked) {
        ensure!(Instant::now() < until, "the other did not work:\n{}", b.log());
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(20).saturating_sub(stopped.elapsed())).await;
    let woken = Timestamp::now();
    a.signal(Signal::SIGCONT)?;
    let status = a.ended(PATIENCE).await?;
    ensure!(status.code() == Some(1), "it ended with {status}");
    ensure!(a.log().contains("keep Lease stopped/clusterwright-operator"), "{}", a.log());
    sleep(Duration::from_millis(300)).await;

    let requests = place.server.audit()?;
    let before = wrote(&requests, a.user, Timestamp::UNIX_EPOCH).len();
    let since = wrote(&requests, a.user, woken);
    let others = wrote(&requests, b.user, begun).len();
    println!("stopped: it wrote {before} times, {} times since it woke up; the other {others} times", since.len());
    ensure!(before > 0, "it did not work before it was stopped:\n{}", a.log());
    // It may have tried to renew, in vain; and what it had begun to send before may reach the API, and is dropped
    // there.
    let renewal = |request: &e2e::audit::Request| request.resource == "leases" && request.code == 409;
    let dropped = |request: &e2e::audit::Request| request.code == 504 && request.message.contains("context canceled");
    let beyond = |request: &&e2e::audit::Request| !renewal(request) && !dropped(request);
    let beyond: Vec<_> = since.iter().filter(beyond).collect();
    ensure!(beyond.is_empty(), "it wrote after it woke up: {beyond:?}\n{}", a.log());
    ensure!(place.holder().await? == b.user);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_killed_is_followed_in_time_and_one_that_is_asked_to_end_at_once() -> Result<()> {
    let place = Place::make("killed").await?;
    let mut c = Operator::start(&place.server, "operator-c", place.name)?;
    place.led_by(&c).await?;
    let mut d = Operator::start(&place.server, "operator-d", place.name)?;
    d.answers("/readyz", "ok: standing by").await?;
    c.signal(Signal::SIGKILL)?;
    let killed = place.led_by(&d).await?;
    println!("killed: taken over after {killed:.1?}");
    c.ended(PATIENCE).await?;

    let c = Operator::start(&place.server, "operator-c", place.name)?;
    c.answers("/readyz", "ok: standing by").await?;
    d.signal(Signal::SIGTERM)?;
    let took = place.led_by(&c).await?;
    println!("asked to end: taken over after {took:.1?}");
    ensure!(took < killed, "given back, it was taken over after {took:?}; left to run out, after {killed:?}");
    let status = d.ended(PATIENCE).await?;
    ensure!(status.success(), "it ended with {status}:\n{}", d.log());
    Ok(())
}
