//! A member with simulated nodes dies, and what it ran comes to run in another one. Of each member the control plane is
//! Kubernetes' own; what would run on its nodes is not there.

mod load;
mod observer;
pub mod size;
mod timeline;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tokio::time::sleep;

use super::kubelets::Kubelets;
use super::member::{CONTROLLERS, Large, OF_LARGE};
use super::plane::Plane;
use super::processes::{Named, Sample};
use super::settings::{render, spec};
use load::OF_PLANE;
use observer::Observer;
use size::{Load, Size};
use timeline::{Facts, Timeline};

const SOURCE: &str = "source";
const TARGET: &str = "target";
/// How often is looked.
const INTERVAL: Duration = Duration::from_millis(100);
/// How long the machine is left alone before the member dies.
const REST: Duration = Duration::from_secs(20);

/// Measures it, and prints what it took.
pub async fn run(operator: Option<&Path>, size: Size) -> Result<()> {
    let load = size.load();
    let mut fields = spec(OF_PLANE);
    fields.insert("featureGates".into(), json!({"Failover": true}));
    let plane = Plane::start(operator, fields).await?;
    let source = Large::start(SOURCE, CONTROLLERS).await?;
    let ran = Kubelets::start(&source.client(), load.nodes).await?;
    join(&plane, &source, &[SOURCE]).await?;
    let administrator = plane.administrator().await?;
    let begun = Instant::now();
    load::create(&administrator, &load, [SOURCE, TARGET]).await?;
    until(&plane, size, "running in the source", || {
        (ran.running() >= load.pods(), format!("{} Pods run", ran.running()))
    })
    .await?;
    println!("{} Pods run in the source after {:.1} s", load.pods(), begun.elapsed().as_secs_f64());
    let target = Large::start(TARGET, CONTROLLERS).await?;
    let runs = Kubelets::start(&target.client(), load.nodes).await?;
    join(&plane, &target, &[SOURCE, TARGET]).await?;
    let observer = Observer::start(&administrator, TARGET).await?;
    sleep(REST).await;
    let bound = observer.bound_to(SOURCE);
    ensure!(bound == load.deployments, "{bound} of {} ResourceBindings are in the source alone", load.deployments);

    let processes = |all: &[&Large]| -> Vec<Named> {
        plane.processes().into_iter().chain(all.iter().flat_map(|member| member.processes())).collect()
    };
    let before = Sample::take(processes(&[&target]))?;
    let died = Instant::now();
    source.kill();
    drop(ran);
    let facts = || Facts { running: runs.running(), ..observer.facts(SOURCE, TARGET) };
    let mut timeline = Timeline::new(load);
    let seen = until(&plane, size, "running in the target", || {
        let facts = facts();
        timeline.look(died.elapsed(), &facts);
        (timeline.is_over(), format!("{facts:?}"))
    });
    let seen = seen.await;
    let used = Sample::take(processes(&[&target]))?.since(&before);
    print(&load, &timeline, &used);
    if let Err(error) = seen {
        bail!("{error:#}\n{}", plane.complaints().await);
    }
    Ok(())
}

/// Lets a cluster join, and waits until Karmada reaches it.
async fn join(plane: &Plane, cluster: &Large, members: &[&str]) -> Result<()> {
    plane.give(cluster.name(), &cluster.kubeconfig()?).await?;
    let members: Vec<String> = members.iter().map(|name| (*name).to_owned()).collect();
    let took = super::join::join(plane, &members).await?;
    let took = took.get(cluster.name()).with_context(|| format!("{} has not joined", cluster.name()))?;
    println!("{} has joined after {:.1} s", cluster.name(), took.as_secs_f64());
    Ok(())
}

/// Looks until it is over; what is seen is said now and then.
async fn until(plane: &Plane, size: Size, what: &str, mut look: impl FnMut() -> (bool, String)) -> Result<()> {
    let (begun, mut said) = (Instant::now(), Instant::now());
    loop {
        let (is_over, seen) = look();
        if is_over {
            return Ok(());
        }
        plane.check()?;
        ensure!(begun.elapsed() < size.deadline(), "not {what} after {} s: {seen}", begun.elapsed().as_secs());
        if said.elapsed() > Duration::from_secs(10) {
            println!("{what}, {:.0} s: {seen}", begun.elapsed().as_secs_f64());
            said = Instant::now();
        }
        sleep(INTERVAL).await;
    }
}

fn print(load: &Load, timeline: &Timeline, used: &str) {
    let Load { nodes, deployments, replicas } = load;
    println!(
        "\n{nodes} simulated nodes a member, {deployments} ResourceBindings of {replicas} Pods, {} Pods",
        load.pods()
    );
    println!("{}\nFrom t0 to t5: {used}", timeline.render());
    println!("Changed settings of the plane, beside featureGates: {{Failover: true}}:\n{}", render(OF_PLANE));
    println!("Changed settings of the members, whose etcd does not wait for the disk:\n{}", render(OF_LARGE));
}
