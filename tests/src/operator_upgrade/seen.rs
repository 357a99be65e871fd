//! What there is in a namespace, and what became of it.

use std::collections::BTreeMap;

use anyhow::Result;
use crds::playbook_run::RunPhase;
use crds::step::{Effect, Intent};
use crds::{Cluster, ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::ListParams;
use serde::de::DeserializeOwned;

use crate::scenario::Scenario;

/// UID of each object by its kind and name.
pub(super) type Objects = BTreeMap<String, String>;

/// All that an administrator, or the operator for a cluster, has made. What a run is given goes with the run.
pub(super) async fn objects(scenario: &Scenario) -> Result<Objects> {
    let mut all = Objects::new();
    of_kind::<Host>(scenario, &mut all).await?;
    of_kind::<ClusterDeployment>(scenario, &mut all).await?;
    of_kind::<MachineSet>(scenario, &mut all).await?;
    of_kind::<Machine>(scenario, &mut all).await?;
    of_kind::<Cluster>(scenario, &mut all).await?;
    let runs = scenario.api::<PlaybookRun>().list(&ListParams::default()).await?;
    // Probes go once they have been read.
    for run in runs.into_iter().filter(changes_machines) {
        all.insert(format!("PlaybookRun {}", run.name_any()), run.uid().unwrap_or_default());
    }
    let mut secrets = Objects::new();
    of_kind::<Secret>(scenario, &mut secrets).await?;
    all.extend(secrets.into_iter().filter(|(name, _)| name.ends_with("-pki") || name.ends_with("-kubeconfig")));
    Ok(all)
}

async fn of_kind<K>(scenario: &Scenario, all: &mut Objects) -> Result<()>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    for object in scenario.api::<K>().list(&ListParams::default()).await? {
        all.insert(format!("{} {}", K::kind(&()), object.name_any()), object.uid().unwrap_or_default());
    }
    Ok(())
}

/// Those that are not there any more, or as other objects of their names.
pub(super) fn lost(before: &Objects, now: &Objects) -> Vec<String> {
    before.iter().filter(|(name, uid)| now.get(*name) != Some(uid)).map(|(name, _)| name.clone()).collect()
}

pub(super) fn changes_machines(run: &PlaybookRun) -> bool {
    run.spec.intent.spec().effect != Effect::Looks
}

/// Runs that change machines and did not succeed, and Hosts on which several of one intent did the same steps.
pub(super) fn doubled(runs: &[PlaybookRun]) -> Vec<String> {
    let changing = || runs.iter().filter(|run| changes_machines(run));
    let phase = |run: &PlaybookRun| run.status.as_ref().and_then(|status| status.phase);
    let bad = changing().filter(|run| phase(run).is_some_and(|phase| phase.is_final() && phase != RunPhase::Succeeded));
    let mut wrong: Vec<String> = bad.map(|run| format!("run {} is {:?}", run.name_any(), phase(run))).collect();
    let mut done: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for run in changing() {
        for host in &run.spec.hosts {
            let what = format!("{:?} {:?} of {host}", run.spec.intent, run.spec.steps);
            done.entry(what).or_default().push(run.name_any());
        }
    }
    let twice = done.into_iter().filter(|(_, runs)| runs.len() > 1);
    wrong.extend(twice.map(|(what, runs)| format!("{what} by {}", runs.join(" and "))));
    wrong
}

/// The Hosts that runs of that intent are for, each once.
pub(super) fn hosts_of(runs: &[PlaybookRun], intent: Intent) -> Vec<&str> {
    let of_intent = runs.iter().filter(|run| run.spec.intent == intent);
    let mut hosts: Vec<&str> = of_intent.flat_map(|run| run.spec.hosts.iter().map(String::as_str)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, intent: &str, steps: &str, hosts: &str, phase: &str) -> PlaybookRun {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: {name}}},
              spec: {{clusterName: a, intent: {intent}, hosts: [{hosts}], steps: [{steps}]}}, status: {{phase: {phase}}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    #[test]
    fn what_is_gone_or_was_made_anew_is_lost() {
        let objects = |all: &[(&str, &str)]| all.iter().map(|(name, uid)| ((*name).into(), (*uid).into())).collect();
        let before: Objects = objects(&[("Host a", "1"), ("Host b", "2"), ("Host c", "3")]);
        assert_eq!(lost(&before, &before), [""; 0]);
        assert_eq!(lost(&before, &objects(&[("Host a", "1"), ("Host c", "4"), ("Host d", "5")])), ["Host b", "Host c"]);
    }

    #[test]
    fn a_host_that_was_joined_twice_and_a_run_that_failed_are_told_and_looks_are_not() {
        let install = run("i", "Install", "prepare, node", "c", "Succeeded");
        let one = run("j1", "Join", "prepare, node", "w1, w2", "Succeeded");
        let probe = |name: &str| run(name, "Probe", "probe-host", "w1", "Succeeded");
        let well = [install, one, run("j2", "Join", "prepare, node", "w3", "Running"), probe("p1"), probe("p2")];
        assert_eq!(doubled(&well), [""; 0]);
        assert_eq!(hosts_of(&well, Intent::Join), ["w1", "w2", "w3"]);
        let twice = [&well[..], &[run("j3", "Join", "prepare, node", "w2", "Failed")]].concat();
        let said = doubled(&twice);
        assert!(
            said.len() == 2 && said[0].contains("run j3 is Some(Failed)") && said[1].ends_with("by j1 and j3"),
            "{said:?}"
        );
    }
}
