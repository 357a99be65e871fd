//! Processes in the middle of an exec show nothing of themselves: one has its new file already, and neither arguments
//! nor environment.

use std::path::Path;
use std::time::Duration;

use crate::process_owner::{Seen, owner_of};

/// A program that waits for its disk in the middle of its start is no more than that late.
pub const EXEC: Duration = Duration::from_secs(1);
/// The arguments are read a moment before the environment: they may be those of the program before.
const BETWEEN: Duration = Duration::from_millis(10);

/// For how long a process that shows what this one shows may be in the middle of an exec that hides its owner; `None`
/// if its owner is clear. One that shows the same for longer was started with nothing.
pub fn race_window(seen: &Seen, directory: &Path) -> Option<Duration> {
    // A process of a container counts by its scope alone, and what may not be read has no file either.
    let silent = seen.environment.is_empty() && !seen.contained && !seen.executable.as_os_str().is_empty();
    // The kernel shows the new arguments before the new environment, and may be held up between them.
    let longest = if seen.arguments.is_empty() || !seen.sleeping { EXEC } else { BETWEEN };
    (silent && owner_of(seen, directory).is_none()).then_some(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "/var/lib/clusterwright/guard";

    fn window(change: impl FnOnce(&mut Seen)) -> Option<Duration> {
        let mut seen = Seen { pid: 7, executable: "/usr/bin/sleep".into(), ..Seen::default() };
        change(&mut seen);
        race_window(&seen, Path::new(HERE))
    }

    #[test]
    fn what_shows_nothing_is_unclear_and_what_sleeps_with_arguments_only_for_a_moment() {
        assert_eq!(window(|_| ()), Some(EXEC));
        assert_eq!(window(|seen| seen.sleeping = true), Some(EXEC));
        assert_eq!(window(|seen| seen.arguments = b"sleep\0".to_vec()), Some(EXEC));
        let sleeps = |seen: &mut Seen| (seen.arguments, seen.sleeping) = (b"sleep\0".to_vec(), true);
        assert_eq!(window(sleeps), Some(BETWEEN));
    }

    #[test]
    fn what_can_be_told_is_clear() {
        assert_eq!(window(|seen| seen.environment = b"HOME=/root\0".to_vec()), None);
        assert_eq!(window(|seen| seen.contained = true), None);
        assert_eq!(window(|seen| seen.executable = "".into()), None);
        let scope = "0::/clusterwright.slice/clusterwright-3-41-9.scope\n";
        assert_eq!(window(|seen| seen.cgroups = scope.into()), None);
    }
}
