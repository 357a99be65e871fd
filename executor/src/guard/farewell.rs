//! How the machines of a stopped run are called for the last time: all of them within what its Pod has left. Pure.

use std::time::Duration;

/// Machines that are called at once: Ansible is gone by then, and its memory free.
pub const AT_ONCE: usize = 200;
/// To connect, on a connection that mostly stands.
const CONNECT: Duration = Duration::from_secs(5);
/// What the kernel has to end what was killed.
const KILLED: Duration = Duration::from_secs(2);
/// What a command gets to end by itself, and after its signal.
const WAIT: Duration = Duration::from_secs(15);
const KILL_AFTER: Duration = Duration::from_secs(8);
/// No machine has longer.
const LONGEST: Duration = Duration::from_secs(55);

/// What each machine is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Farewell {
    /// What is at work gets to end by itself.
    pub wait: Duration,
    /// And after its signal.
    pub kill_after: Duration,
    /// Until the machine's answer is not waited for any more.
    pub patience: Duration,
}

/// Shares what is left among so many machines.
pub fn farewell(machines: usize, left: Duration) -> Farewell {
    let rounds = u32::try_from(machines.div_ceil(AT_ONCE).max(1)).unwrap_or(u32::MAX);
    let patience = (left / rounds).min(LONGEST);
    let work = patience.saturating_sub(CONNECT + KILLED);
    // Two parts of three to end by itself, whole seconds: the guard takes no others.
    let seconds = |time: Duration| Duration::from_secs(time.as_secs());
    let kill_after = seconds((work / 3).min(KILL_AFTER));
    Farewell {
        wait: seconds((work - kill_after).min(WAIT)),
        kill_after,
        patience,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_is_heard_within_what_is_left() {
        for machines in [0, 1, 50, 200, 201, 500, 1000] {
            for left in [0, 3, 20, 70] {
                let left = Duration::from_secs(left);
                let each = farewell(machines, left);
                let rounds = u32::try_from(machines.div_ceil(AT_ONCE)).unwrap();
                assert!(
                    each.patience * rounds <= left.max(each.patience),
                    "{machines}: {each:?}"
                );
                assert!(
                    each.wait + each.kill_after <= each.patience,
                    "{machines}: {each:?}"
                );
            }
        }
    }

    #[test]
    fn few_machines_have_as_long_as_their_commands_need() {
        let each = farewell(50, Duration::from_secs(70));
        assert_eq!(
            (each.wait, each.kill_after, each.patience),
            (WAIT, KILL_AFTER, LONGEST)
        );
        let each = farewell(500, Duration::from_secs(70));
        assert!(each.wait >= Duration::from_secs(8), "{each:?}");
    }
}
