//! Cleaning: which machines that leave a cluster are reset now, and which later; over and over until they are clean,
//! the later the longer between.

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::step::{Intent, Step};
use jiff::Timestamp;

use crate::attempts::{self, Failure, Outcome, RetryDecision, Terms};
use crate::cluster_machine::{ClusterMachine, first_role_to_leave};
use crate::machine::leaving;
use crate::provisioning;
use crate::run_owner::BATCH;
use crate::run_request::{Attempt, Target};

/// What it is decided by.
pub(crate) struct CleaningObserved<'s, 'a> {
    pub now: Timestamp,
    /// Machines that are being deleted.
    pub leaving: &'s [ClusterMachine<'a>],
    /// Runs of the cluster.
    pub runs: &'s [&'a PlaybookRun],
    /// Those of them that are not over, and change something.
    pub active: &'s [&'a PlaybookRun],
    /// What holds for all attempts at its machines.
    pub terms: &'s Terms,
    /// Whether the whole cluster is deleted: then machines go role by role, and what was stopped is tried again.
    pub is_deleting: bool,
}

/// Where the cleaning stands.
#[derive(Default)]
pub(crate) struct Cleaning<'a> {
    /// Machines that are cleaned now, together those that are in one run.
    pub batches: Vec<(Attempt, Vec<Target<'a>>)>,
    /// Machines that could not be cleaned, and when it is tried again.
    pub later: Vec<(ClusterMachine<'a>, Timestamp, Failure)>,
}

/// Which machines are cleaned now, and which later.
pub(crate) fn cleaning<'a>(observed: &CleaningObserved<'_, 'a>) -> Cleaning<'a> {
    let mut found = Cleaning::default();
    // What did not answer last time is tried alone, so that it holds up no other.
    let mut due: BTreeMap<(i32, bool), Vec<Target<'a>>> = BTreeMap::new();
    // A machine that leaves has other runs, too: its hooks before the drain, and what takes it out of etcd.
    let cleans = |run: &&PlaybookRun| run.spec.steps.contains(&Step::Reset);
    let cleaned: Vec<&PlaybookRun> = observed.runs.iter().copied().filter(cleans).collect();
    // When all go, they go in their order.
    let first = first_role_to_leave(observed.leaving).filter(|_| observed.is_deleting);
    for machine in observed.leaving.iter().copied() {
        if first.is_some_and(|first| machine.machine.spec.role != first) {
            continue;
        }
        let Some(host) = machine.host_name() else { continue };
        let is_worked_on = observed.active.iter().any(|run| run.spec.hosts.iter().any(|named| named == host));
        if is_worked_on || !provisioning::was_touched(machine.machine, observed.runs) {
            continue;
        }
        let tried = attempts::tried(&cleaned, &[Intent::Reset, Intent::Remove], machine.uid());
        let retries = observed.terms.asked_retries(machine.machine);
        let policy = observed.terms.endless(retries);
        let policy = if observed.is_deleting { policy } else { policy.stopped_is_final() };
        match attempts::retry_decision(&tried, &policy, observed.now) {
            // What comes before the cleaning is not done yet.
            RetryDecision::Now { .. } if !leaving::waits_for_reset(machine.machine) => {}
            // One step: there is nothing to go on from.
            RetryDecision::Now { attempt, retry, .. } => {
                let silent = tried
                    .last()
                    .is_some_and(|last| matches!(&last.outcome, Outcome::Failed(failure) if failure.unreachable));
                due.entry((attempt, silent)).or_default().push((machine, retry));
            }
            RetryDecision::Later { at, cause, .. } => found.later.push((machine, at, cause)),
            // The Machine says what a person must do.
            RetryDecision::Halted { .. } | RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => {}
        }
    }
    for ((attempt, _), targets) in due {
        let attempt = Attempt::from_start(attempt);
        found.batches.extend(targets.chunks(BATCH).map(|batch| (attempt, batch.to_vec())));
    }
    found
}

#[cfg(test)]
mod tests {
    use crds::{Host, Machine, PlaybookRun};
    use jiff::Timestamp;

    use super::{Cleaning, CleaningObserved, cleaning};
    use crate::attempts::Terms;
    use crate::cluster_machine::gather;

    fn machine(name: &str, role: &str, reason: &str) -> Machine {
        serde_yaml::from_str(&format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, namespace: fleet, uid: {name}-uid, creationTimestamp: '2026-01-01T00:00:00Z', deletionTimestamp: '2026-01-02T00:00:00Z'}}, spec: {{clusterName: plane, role: {role}, hostRef: {{name: h-{name}}}}}, status: {{provisionedAt: '2026-01-01T01:00:00Z', conditions: [{{type: Deleting, status: 'True', reason: {reason}, message: '', lastTransitionTime: '2026-01-02T00:00:00Z'}}]}}}}"
        ))
        .unwrap()
    }

    fn host(name: &str) -> Host {
        serde_yaml::from_str(&format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h-{name}}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: key}}}}, claimRef: {{kind: Machine, name: {name}, uid: {name}-uid}}}}}}"
        ))
        .unwrap()
    }

    fn silent(name: &str) -> PlaybookRun {
        serde_yaml::from_str(&format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r-{name}, creationTimestamp: '2026-01-02T00:00:01Z', annotations: {{clusterwright.dev/wanted: d1, clusterwright.dev/attempt: '0', clusterwright.dev/machines: '{{\"h-{name}\": {{\"uid\": \"{name}-uid\"}}}}'}}}}, spec: {{clusterName: plane, intent: Reset, steps: [reset], hosts: [h-{name}]}}, status: {{phase: Failed, finishedAt: '2026-01-02T00:00:05Z', hosts: [{{name: h-{name}, unreachable: true}}]}}}}"
        ))
        .unwrap()
    }

    /// The Hosts that are cleaned now, run by run, and those later.
    fn check(machines: &[Machine], runs: &[PlaybookRun], is_deleting: bool, now: &[&[&str]], later: &[&str]) {
        let hosts: Vec<Host> = machines.iter().map(|machine| host(machine.metadata.name.as_deref().unwrap())).collect();
        let (_, leaving) = gather(&machines.iter().collect::<Vec<_>>(), &hosts.iter().collect::<Vec<_>>());
        let terms = Terms { wanted: "d1".into(), most: 3, retry: None };
        let runs: Vec<&PlaybookRun> = runs.iter().collect();
        let at = "2026-01-02T01:00:00Z".parse::<Timestamp>().unwrap();
        let observed =
            CleaningObserved { now: at, leaving: &leaving, runs: &runs, active: &[], terms: &terms, is_deleting };
        let Cleaning { batches, later: waiting } = cleaning(&observed);
        let named = |targets: &Vec<super::Target<'_>>| -> Vec<String> {
            targets.iter().filter_map(|(machine, _)| machine.host_name().map(str::to_owned)).collect()
        };
        let found: Vec<Vec<String>> = batches.iter().map(|(_, targets)| named(targets)).collect();
        assert_eq!(found, now);
        let waiting: Vec<&str> = waiting.iter().filter_map(|(machine, _, _)| machine.host_name()).collect();
        assert_eq!(waiting, later);
    }

    #[test]
    fn machines_that_wait_for_it_are_cleaned_together_whatever_formed_their_cluster() {
        let machines = [
            machine("a", "control-plane", "WaitingForReset"),
            machine("b", "etcd", "WaitingForReset"),
            machine("c", "control-plane", "LeavingEtcd"),
        ];
        check(&machines, &[], false, &[&["h-a", "h-b"]], &[]);
    }

    #[test]
    fn where_all_go_those_with_etcds_data_go_last() {
        let machines = [machine("a", "etcd", "WaitingForReset"), machine("b", "control-plane", "WaitingForReset")];
        check(&machines, &[], true, &[&["h-b"]], &[]);
        check(&machines[..1], &[], true, &[&["h-a"]], &[]);
    }

    #[test]
    fn one_that_did_not_answer_is_tried_alone_and_holds_up_no_other() {
        let machines =
            [machine("a", "control-plane", "WaitingForReset"), machine("b", "control-plane", "WaitingForReset")];
        check(&machines, &[silent("a")], false, &[&["h-b"], &["h-a"]], &[]);
    }
}
