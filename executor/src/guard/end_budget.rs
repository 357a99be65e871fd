//! The time that each machine of a stopped run has to end its processes: all of them within the time that the Pod has
//! left. Pure.

use std::time::Duration;

/// Machines that are called at once: Ansible is gone by then, and its memory free.
pub const AT_ONCE: usize = 200;
/// To connect, on a connection that mostly stands.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the kernel may take to end a killed process.
const KILLED: Duration = Duration::from_secs(2);
/// How long a command may take to end by itself, and after its signal.
const WAIT: Duration = Duration::from_secs(15);
const KILL_AFTER: Duration = Duration::from_secs(8);
/// No machine has longer.
const LONGEST: Duration = Duration::from_secs(55);

/// The time of each machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndBudget {
    /// How long a running process may take to end by itself.
    pub wait: Duration,
    /// How long it may take after its signal.
    pub kill_after: Duration,
    /// How long the machine's answer is waited for.
    pub timeout: Duration,
}

/// The time of each of so many machines, which share what is left.
pub fn end_budget(machines: usize, left: Duration) -> EndBudget {
    let rounds = u32::try_from(machines.div_ceil(AT_ONCE).max(1)).unwrap_or(u32::MAX);
    let timeout = (left / rounds).min(LONGEST);
    let work = timeout.saturating_sub(CONNECT + KILLED);
    // Two parts of three to end by itself, whole seconds: the guard takes no others.
    let seconds = |time: Duration| Duration::from_secs(time.as_secs());
    let kill_after = seconds((work / 3).min(KILL_AFTER));
    EndBudget { wait: seconds((work - kill_after).min(WAIT)), kill_after, timeout }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_is_heard_within_what_is_left() {
        for machines in [0, 1, 50, 200, 201, 500, 1000] {
            for left in [0, 3, 20, 70] {
                let left = Duration::from_secs(left);
                let each = end_budget(machines, left);
                let rounds = u32::try_from(machines.div_ceil(AT_ONCE)).unwrap();
                assert!(each.timeout * rounds <= left.max(each.timeout), "{machines}: {each:?}");
                assert!(each.wait + each.kill_after <= each.timeout, "{machines}: {each:?}");
            }
        }
    }

    #[test]
    fn few_machines_have_as_long_as_their_commands_need() {
        let each = end_budget(50, Duration::from_secs(70));
        assert_eq!((each.wait, each.kill_after, each.timeout), (WAIT, KILL_AFTER, LONGEST));
        let each = end_budget(500, Duration::from_secs(70));
        assert!(each.wait >= Duration::from_secs(8), "{each:?}");
    }
}
