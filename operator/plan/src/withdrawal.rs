//! What becomes of a run that is in the way of machines that leave: what has not begun never does, and a join that
//! works for nobody else ends. A backup that has not begun is taken by another run, on the machines that stay.

use crds::PlaybookRun;
use crds::lock::Operation;
use crds::step::{Effect, Intent};

use crate::attempts;
use crate::run_request::brings_machines;

/// How a run is withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    /// It is deleted: nobody has to know of it.
    Delete,
    /// It is asked to stop, and stays to be seen.
    Cancel,
}

/// How this run is withdrawn; none: it stays. `held`: the runs that hold the lock; `leaves`: whether a Host's machine
/// leaves; `is_superseded`: whether what it brings is not wanted any more, whoever leaves.
pub(crate) fn withdrawal(
    run: &PlaybookRun,
    held: &[Operation],
    leaves: impl Fn(&str) -> bool,
    is_superseded: impl FnOnce() -> bool,
) -> Option<Withdrawal> {
    let intent = run.spec.intent;
    let is_for_who_stays =
        [Effect::Provisions, Effect::Maintains].contains(&intent.spec().effect) || intent == Intent::Backup;
    if run.spec.cancel || !is_for_who_stays {
        return None;
    }
    let mut hosts = run.spec.hosts.iter();
    if !hosts.clone().any(|host| leaves(host)) && !is_superseded() {
        return None;
    }
    let token = run.status.as_ref().map_or(0, |status| status.token);
    let has_begun = token > 0 || held.iter().any(|held| Some(&held.run) == run.metadata.name.as_ref());
    match has_begun {
        false if intent == Intent::Backup => Some(Withdrawal::Delete),
        // What was asked for by it counts as followed: how it ended is said, and how to have another one.
        false if intent == Intent::Maintain => Some(Withdrawal::Cancel),
        // The lock never lets it begin. Its other machines get another one; what a person asked for is canceled, and
        // not forgotten.
        false if attempts::targets(run).is_empty() => Some(Withdrawal::Cancel),
        false => Some(Withdrawal::Delete),
        true if brings_machines(run) && hosts.all(|host| leaves(host)) => Some(Withdrawal::Cancel),
        true => None,
    }
}

#[cfg(test)]
mod tests {
    use crds::PlaybookRun;
    use crds::lock::{LockMode, Operation};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::{Withdrawal, withdrawal};

    /// A run on `a` and `b`.
    fn run(intent: &str, metadata: &str, more: &str) -> PlaybookRun {
        serde_yaml::from_str(&format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r{metadata}}}, spec: {{clusterName: c, intent: {intent}, steps: [preflight], hosts: [a, b]{more}}}}}"
        ))
        .unwrap()
    }

    const OURS: &str = ", annotations: {clusterwright.dev/machines: '{\"a\": {\"uid\": \"u\"}}'}";

    #[test]
    fn what_has_not_begun_never_does_and_only_a_join_for_nobody_else_is_stopped() {
        let started_at = Time("2026-01-01T00:00:00Z".parse().unwrap());
        let held = Operation { run: "r".into(), mode: LockMode::Exclusive, hosts: Vec::new(), token: 7, started_at };
        let check = |run: &PlaybookRun, leaving: &[&str], expected: [Option<Withdrawal>; 2]| {
            let how = |held: &[Operation]| withdrawal(run, held, |host| leaving.contains(&host), || false);
            let found = [how(&[]), how(std::slice::from_ref(&held))];
            assert_eq!(found, expected, "{:?} {leaving:?}", run.spec.intent);
        };
        let (delete, cancel) = (Some(Withdrawal::Delete), Some(Withdrawal::Cancel));
        let join = run("Join", OURS, "");
        check(&join, &[], [None, None]);
        check(&join, &["c"], [None, None]);
        check(&join, &["a"], [delete, None]);
        check(&join, &["a", "b"], [delete, cancel]);
        check(&run("Configure", OURS, ""), &["a", "b"], [delete, None]);
        check(&run("Configure", "", ""), &["a"], [cancel, None]);
        check(&run("Backup", "", ""), &["a"], [delete, None]);
        check(&run("Maintain", OURS, ""), &["a"], [cancel, None]);
        check(&run("Join", OURS, ", cancel: true"), &["a", "b"], [None, None]);
        for cleans in ["Reset", "Probe"] {
            check(&run(cleans, OURS, ""), &["a", "b"], [None, None]);
        }
        assert_eq!(withdrawal(&join, &[], |_| false, || true), delete, "what nobody has approved");
    }
}
