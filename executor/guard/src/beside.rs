//! Whether a command may start while another of its run is running on the machine.
//!
//! A run sends a machine one command at a time. A second one beside it is the same command sent again after its
//! connection broke, or one of a task that was delegated here by several hosts: both wait. A command inside another
//! (`become` calls the shell twice) belongs to the one that started it, and passes. What a command left in the
//! background (`async`) has no guard any more, and holds nobody up.

use std::time::Duration;

/// How long a command waits for the one before it.
pub const WAIT: Duration = Duration::from_secs(300);

/// The next act of a command that finds another of its run still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// It is a part of the other one.
    Nested,
    /// Let the other one end first.
    Wait,
    /// The other one does not end.
    Refuse,
}

/// The act of a command with these ancestors, beside the command of the guard `holder` (none where it is just
/// about to say its number), after so much waiting.
pub fn beside(holder: Option<i32>, ancestors: &[i32], waited: Duration) -> Beside {
    if holder.is_some_and(|holder| ancestors.contains(&holder)) {
        Beside::Nested
    } else if waited < WAIT {
        Beside::Wait
    } else {
        Beside::Refuse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_inside_another_passes_and_one_beside_it_waits_and_is_refused_in_the_end() {
        let ancestors = [70, 60, 1];
        assert_eq!(beside(Some(60), &ancestors, Duration::ZERO), Beside::Nested);
        assert_eq!(beside(Some(60), &ancestors, WAIT * 2), Beside::Nested);
        for holder in [Some(61), None] {
            assert_eq!(beside(holder, &ancestors, Duration::ZERO), Beside::Wait);
            assert_eq!(beside(holder, &ancestors, WAIT), Beside::Refuse);
        }
    }
}
