//! What a set that shrinks leaves in service.

use crds::{ClusterDeployment, Machine};
use jiff::Timestamp;
use proptest::prelude::*;

use super::{HOST, annotate, condition, machine, set};
use crate::formed_cluster::FormedCluster;
use crate::machine_set::{Action, Observed, plan};

fn deployment(max_unavailable: &str) -> ClusterDeployment {
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}, workers: [{{name: w, maxUnavailable: {max_unavailable}}}]}}, status: {{installedAt: '2026-01-01T00:00:00Z'}}}}"
    ))
    .unwrap()
}

/// Names of the Machines that go, and the set's sentence.
fn shrunk(replicas: u32, max_unavailable: &str, machines: &[Machine]) -> (Vec<String>, String) {
    let machines: Vec<&Machine> = machines.iter().collect();
    let plan = plan(&Observed {
        now: Timestamp::UNIX_EPOCH,
        set: &set(replicas, ""),
        formed: Some(FormedCluster::from(&deployment(max_unavailable))),
        machines: &machines,
        hosts: &[],
        has_pool: true,
        runs: &[],
    });
    let name = |step: Action| match step {
        Action::DeleteMachine(machine) => machine.metadata.name,
        _ => None,
    };
    let gone = plan.actions.into_iter().filter_map(name).collect();
    (gone, plan.status.message.unwrap_or_default())
}

fn is_ready(machine: &Machine) -> bool {
    let conditions = &machine.status.as_ref().unwrap().conditions;
    crds::conditions::is_true(conditions, "Ready")
}

#[test]
fn ready_machines_that_are_marked_stay_while_too_few_others_are_ready() {
    let mut machines: Vec<Machine> = (0..4).map(|ordinal| machine(ordinal, HOST, ordinal >= 2)).collect();
    for marked in &mut machines[2..] {
        annotate(marked, crds::names::annotation::DELETE_FIRST, "yes");
    }
    let (gone, says) = shrunk(2, "1", &machines);
    assert_eq!(gone, ["m3"]);
    assert_eq!(says, "machine m2 cannot go: 2 of the 2 wanted are Ready, and maxUnavailable comes to 1");
    assert_eq!(shrunk(2, "2", &machines).0, ["m3", "m2"]);
    condition(&mut machines[0], "Ready", "True");
    assert_eq!(shrunk(2, "50%", &machines).0, ["m3", "m2"]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_set_that_shrinks_takes_no_more_out_of_service_than_it_may(
        seen in proptest::collection::vec((0u8..3, any::<bool>()), 1..9),
        replicas in 0u32..8,
        max_unavailable in prop_oneof![Just(("1", 1, 0)), Just(("2", 2, 0)), Just(("25%", 0, 25)), Just(("60%", 0, 60))],
    ) {
        let (said, count, percent) = max_unavailable;
        let wanted = usize::try_from(replicas).unwrap();
        let most = (count + wanted * percent / 100).max(1);
        let mut machines: Vec<Machine> = (0u32..).zip(&seen).map(|(ordinal, (ready, marked))| {
            let mut machine = machine(ordinal, HOST, false);
            condition(&mut machine, "Ready", ["False", "Unknown", "True"][usize::from(*ready)]);
            if *marked {
                annotate(&mut machine, crds::names::annotation::DELETE_FIRST, "yes");
            }
            machine
        }).collect();
        for turn in 0..2 {
            for _ in 0..9 {
                let (gone, _) = shrunk(replicas, said, &machines);
                let is_gone = |machine: &Machine| machine.metadata.name.as_ref().is_some_and(|name| gone.contains(name));
                let takes_ready = machines.iter().any(|machine| is_gone(machine) && is_ready(machine));
                machines.retain(|machine| !is_gone(machine));
                let left = machines.iter().filter(|machine| is_ready(machine)).count();
                prop_assert!(!takes_ready || left + most >= wanted, "{left} of {wanted} are left in service, {said}");
                prop_assert!(machines.len() >= wanted.min(seen.len()));
            }
            if turn == 0 {
                machines.iter_mut().for_each(|machine| condition(machine, "Ready", "True"));
            }
        }
        prop_assert_eq!(machines.len(), wanted.min(seen.len()), "once all are Ready it comes to its count");
    }
}
