//! What a fleet costs the operator. The operator and its API server (with etcd) are real; the machines are simulated:
//! Jobs come to the outcome that real ones would, and one process answers for the API servers of all clusters.
//!
//! Prints what it measured, and asserts nothing. `make bench-fleet ARGS='--clusters 100'`.

mod executor;
mod fleet;
mod measure;
mod targets;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use e2e::api_server::ApiServer;
use e2e::operator_process::Operator;
use nix::sys::signal::Signal;
use tokio::time::sleep;

use executor::Executor;
use fleet::Fleet;
use measure::{Sample, percentile, queue_depth};
use targets::Targets;

/// Measures what a fleet of clusters costs the operator.
#[derive(Parser)]
struct Arguments {
    /// Clusters.
    #[arg(long, default_value_t = 1000)]
    clusters: usize,
    /// Machines of each, one of them a control plane.
    #[arg(long, default_value_t = 10)]
    machines: usize,
    /// Clusters that are created at the same moment, each batch once the one before is Ready.
    #[arg(long, default_value_t = 50)]
    batch: usize,
    /// Clusters that get one more worker at the same moment.
    #[arg(long, default_value_t = 50)]
    joins: usize,
    /// The operator, as it is released.
    #[arg(long)]
    operator: PathBuf,
    /// How long the fleet is watched at rest, in seconds.
    #[arg(long, default_value_t = 120)]
    rest_seconds: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let made_network = !lab::network::exists();
    lab::network::up()?;
    let measured = measure_fleet(&arguments).await;
    if made_network {
        lab::network::down()?;
    }
    measured
}

async fn measure_fleet(arguments: &Arguments) -> Result<()> {
    let server = ApiServer::shared().await?;
    let targets = Arc::new(Targets::start(arguments.clusters).await?);
    let fleet = Fleet::new(&server, targets.clone(), arguments.machines);
    fleet.prepare().await?;
    let executor = Executor::start(server.client(), targets);
    let operator = lead(arguments, &server, "operator-a").await?;

    let machines = arguments.clusters * arguments.machines;
    println!("{} clusters of {} machines each: {machines} machines", arguments.clusters, arguments.machines);
    build(arguments, &fleet, &operator).await?;
    println!("  Jobs: {}", executor.jobs());

    let before = settled(&operator).await?;
    sleep(Duration::from_secs(arguments.rest_seconds)).await;
    println!("at rest for {} s: {}", arguments.rest_seconds, Sample::take(&operator).await?.since(&before));

    let latencies = join(arguments, &fleet, &executor).await?;
    println!(
        "{} joins at once: spec changed to Job seen, median {:.2} s, p99 {:.2} s, longest {:.2} s; {}",
        latencies.len(),
        percentile(&latencies, 50),
        percentile(&latencies, 99),
        percentile(&latencies, 100),
        Sample::take(&operator).await?.since(&before)
    );
    restart(arguments, &server, operator, &executor).await
}

/// Builds the clusters, batch by batch, each with Hosts of its own.
async fn build(arguments: &Arguments, fleet: &Fleet, operator: &Operator) -> Result<()> {
    let (begun, before) = (Instant::now(), Sample::take(operator).await?);
    let mut built = 0;
    while built < arguments.clusters {
        let batch = built..arguments.clusters.min(built + arguments.batch.max(1));
        let (batch_begun, batch_before) = (Instant::now(), Sample::take(operator).await?);
        let hosts = batch.start * arguments.machines..batch.end * arguments.machines;
        fleet.create_hosts(hosts.clone()).await?;
        fleet.await_hosts(hosts.len()).await?;
        let probed = batch_begun.elapsed();
        fleet.create_clusters(batch.clone()).await?;
        fleet.await_clusters(batch.end).await?;
        println!(
            "clusters {} to {}: Hosts probed after {:.0} s, all Ready after {:.0} s; {}",
            batch.start + 1,
            batch.end,
            probed.as_secs_f64(),
            batch_begun.elapsed().as_secs_f64(),
            Sample::take(operator).await?.since(&batch_before)
        );
        built = batch.end;
    }
    let after = Sample::take(operator).await?;
    println!("built after {:.0} s; {}", begun.elapsed().as_secs_f64(), after.since(&before));
    println!("  written: {}", after.written());
    Ok(())
}

async fn lead(arguments: &Arguments, server: &ApiServer, user: &'static str) -> Result<Operator> {
    let operator = Operator::start_program(&arguments.operator, server, user, fleet::NAMESPACE)?;
    operator.answers("/readyz", "ok: leads").await?;
    Ok(operator)
}

/// Waits until nothing has been written for a while.
async fn settled(operator: &Operator) -> Result<Sample> {
    let mut last = Sample::take(operator).await?;
    loop {
        sleep(Duration::from_secs(20)).await;
        let sample = Sample::take(operator).await?;
        if sample.writes == last.writes {
            return Ok(sample);
        }
        last = sample;
    }
}

/// One worker more for some of the clusters; how long each of them waited for its Job, in seconds.
async fn join(arguments: &Arguments, fleet: &Fleet, executor: &Executor) -> Result<Vec<f64>> {
    let machines = arguments.clusters * arguments.machines;
    fleet.create_hosts(machines..machines + arguments.joins).await?;
    fleet.await_hosts(arguments.joins).await?;
    executor.forget();
    let clusters: Vec<usize> = (0..arguments.joins.min(arguments.clusters)).collect();
    let mut begun = Vec::new();
    for cluster in &clusters {
        begun.push((fleet::name(*cluster), Instant::now()));
        fleet.grow(*cluster).await?;
    }
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        let seen = executor.seen();
        let waited = begun.iter().map(|(cluster, begun)| Some((*seen.get(cluster)? - *begun).as_secs_f64()));
        if let Some(waited) = waited.collect::<Option<Vec<f64>>>() {
            fleet.await_clusters(arguments.clusters).await?;
            return Ok(waited);
        }
        anyhow::ensure!(Instant::now() < until, "{} of {} Jobs", seen.len(), begun.len());
        sleep(Duration::from_millis(50)).await;
    }
}

/// The operator ends, and another one takes the fleet over.
async fn restart(arguments: &Arguments, server: &ApiServer, mut operator: Operator, executor: &Executor) -> Result<()> {
    settled(&operator).await?;
    operator.signal(Signal::SIGTERM)?;
    operator.ended(Duration::from_secs(60)).await?;
    let (jobs, begun) = (executor.jobs(), Instant::now());
    let operator = lead(arguments, server, "operator-b").await?;
    let leads = begun.elapsed();
    // Empty twice in a row: between two objects it may be for a moment.
    let mut empty = 0;
    while empty < 2 {
        sleep(Duration::from_millis(250)).await;
        let depth = queue_depth(&operator).await.context("failed to read the metrics")?;
        empty = if depth == 0 { empty + 1 } else { 0 };
    }
    let drained = begun.elapsed();
    let sample = Sample::take(&operator).await?;
    println!(
        "restart: leads after {:.1} s, queues drained after {:.1} s, {} Jobs, {} writes, {:.0} MiB",
        leads.as_secs_f64(),
        drained.as_secs_f64(),
        executor.jobs() - jobs,
        sample.writes,
        sample.resident_mib
    );
    println!("  written: {}", sample.written());
    Ok(())
}
