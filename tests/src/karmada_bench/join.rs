//! One member joins a plane, and then many at once. Each is a cluster with an API server of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use crds::KarmadaDeployment;
use crds::karmada_deployment::KarmadaMemberPhase as Phase;
use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::time::{sleep, timeout};

use super::member::Small;
use super::plane::{NAME, Plane};
use super::processes::{Named, Sample};

/// How long members may take to join.
const DEADLINE: Duration = Duration::from_secs(600);
/// How long nothing may be seen before it is asked why.
const SILENCE: Duration = Duration::from_secs(5);
/// How long the machine is left alone before something is measured.
const REST: Duration = Duration::from_secs(15);

/// Measures it, and prints what it took.
pub async fn run(operator: Option<&Path>, many: u8) -> Result<()> {
    ensure!(many > 0, "--members is at least 1");
    let plane = Plane::start(operator, serde_json::Map::new()).await?;
    let names: Vec<String> = (0..=many).map(|number| format!("m{number:02}")).collect();
    println!("starting {} clusters: {}", names.len(), Small::DESCRIPTION);
    let mut clusters: Vec<Small> = Vec::new();
    for name in &names {
        let cluster = Small::start(name, clusters.first()).await?;
        plane.give(name, &cluster.kubeconfig()?).await?;
        clusters.push(cluster);
    }
    let processes =
        || -> Vec<Named> { plane.processes().into_iter().chain(clusters.iter().flat_map(Small::processes)).collect() };
    let mut joined = Vec::new();
    for wanted in [&names[..1], &names[..]] {
        sleep(REST).await;
        let before = Sample::take(processes())?;
        let took = join(&plane, wanted).await?;
        println!("{}", Sample::take(processes())?.since(&before));
        joined.push(took);
    }
    let [one, all] = joined.as_slice() else { bail!("joined {} times", joined.len()) };
    println!("{}", report(one, all)?);
    Ok(())
}

/// Wants these members; how long after that each was said to have joined that had not before.
pub async fn join(plane: &Plane, wanted: &[String]) -> Result<BTreeMap<String, Duration>> {
    let known = plane.planes().get(NAME).await?;
    let before: Vec<String> = joined(&known).collect();
    let config = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
    let mut changes = pin!(watcher(plane.planes(), config).default_backoff().applied_objects());
    // The watch is there before anything is wanted.
    changes.next().await.context("the watch has ended")??;
    let (begun, mut took) = (Instant::now(), BTreeMap::new());
    plane.want(wanted).await?;
    while took.len() + before.len() < wanted.len() {
        let Ok(change) = timeout(SILENCE, changes.next()).await else {
            plane.check()?;
            if begun.elapsed() > DEADLINE {
                let (joined, all) = (took.len(), wanted.len() - before.len());
                bail!("{joined} of {all} members have joined\n{}", plane.complaints().await);
            }
            continue;
        };
        let now = begun.elapsed();
        let object = change.context("the watch has ended")??;
        for name in joined(&object).filter(|name| !before.contains(name)) {
            took.entry(name).or_insert(now);
        }
    }
    Ok(took)
}

fn joined(plane: &KarmadaDeployment) -> impl Iterator<Item = String> {
    let members = plane.status.iter().flat_map(|status| &status.members);
    members.filter(|member| member.phase == Phase::Joined).map(|member| member.name.clone())
}

/// The times of the one and of the many, and how many times as long the many took.
fn report(one: &BTreeMap<String, Duration>, many: &BTreeMap<String, Duration>) -> Result<String> {
    let one = one.values().max().context("nobody has joined")?.as_secs_f64();
    let mut sorted: Vec<f64> = many.values().map(Duration::as_secs_f64).collect();
    sorted.sort_by(f64::total_cmp);
    let (first, middle, last) = match (sorted.first(), sorted.get(sorted.len() / 2), sorted.last()) {
        (Some(first), Some(middle), Some(last)) => (first, middle, last),
        _ => bail!("nobody has joined at once"),
    };
    Ok(format!(
        "1 member: {one:.1} s\n{} members at once: {last:.1} s (the first after {first:.1} s, the middle one after \
         {middle:.1} s)\nratio: {:.2}",
        sorted.len(),
        last / one
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::report;

    #[test]
    fn the_ratio_is_that_of_the_last_of_many_to_the_one() {
        let took = |seconds: &[u64]| -> BTreeMap<String, Duration> {
            seconds.iter().map(|s| (format!("m{s}"), Duration::from_secs(*s))).collect()
        };
        let expected = "1 member: 4.0 s\n3 members at once: 10.0 s (the first after 5.0 s, the middle one after \
                        8.0 s)\nratio: 2.50";
        assert_eq!(report(&took(&[4]), &took(&[8, 10, 5])).unwrap(), expected);
        assert!(report(&took(&[4]), &took(&[])).is_err());
    }
}
