//! Which machines of a set are available: Ready for `minReadySeconds`, and not drained.

use crds::Conditions;
use crds::Machine;
use crds::names::condition;
use jiff::{SignedDuration, Timestamp};

use super::scale_down::serves;
use crate::Next;

/// How many there are, and when there will be more if nothing changes.
pub(super) fn count(live: &[&Machine], min_ready_seconds: i32, now: Timestamp) -> (i32, Next) {
    let wait = SignedDuration::from_secs(min_ready_seconds.into());
    let (mut available, mut next) = (0, Next::OnChange);
    for machine in live.iter().filter(|machine| serves(machine)) {
        let ready = machine.condition(condition::READY);
        let since = ready.map_or(now, |ready| ready.last_transition_time.0);
        let left = wait - now.duration_since(since);
        match left.is_positive() {
            true => next = next.or_sooner(Next::After(left.unsigned_abs())),
            false => available += 1,
        }
    }
    (available, next)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn machine(ready: &str, since: &str) -> Machine {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m}}, spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4}},
              status: {{conditions: [{{type: Ready, status: '{ready}', reason: R, message: m, lastTransitionTime: '{since}'}}]}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    #[test]
    fn a_machine_is_available_once_it_has_been_ready_for_min_ready_seconds() {
        let machines = [
            machine("True", "2026-01-01T00:00:00Z"),
            machine("True", "2026-01-01T00:00:50Z"),
            machine("True", "2026-01-01T00:00:55Z"),
            machine("False", "2026-01-01T00:00:00Z"),
        ];
        let live: Vec<&Machine> = machines.iter().collect();
        let at = |seconds: i32, now: &str| count(&live, seconds, now.parse().unwrap());
        assert_eq!(at(0, "2026-01-01T00:01:00Z"), (3, Next::OnChange));
        assert_eq!(at(30, "2026-01-01T00:01:00Z"), (1, Next::After(Duration::from_secs(20))));
        assert_eq!(at(30, "2026-01-01T00:01:25Z"), (3, Next::OnChange));
    }
}
