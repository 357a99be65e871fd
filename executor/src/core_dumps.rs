//! Keys and passwords are in this process's memory and in those of its children: none of them leaves a core dump.

use nix::sys::prctl::set_dumpable;
use nix::sys::resource::{Resource, setrlimit};

/// From now on neither this process nor its children (they inherit the limit) leave one.
pub fn forbid() -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    // A core_pattern that is a pipe does not look at the limit.
    set_dumpable(false)
}

#[cfg(test)]
mod tests {
    use nix::sys::prctl::get_dumpable;
    use nix::sys::resource::{Resource, getrlimit};

    /// Whether it holds now: other tests start children in the same process meanwhile, and what they do to the memory that
    /// they share until they are another program may show for a moment.
    fn holds() -> bool {
        super::forbid().unwrap();
        let child = std::process::Command::new("sh")
            .args(["-c", "ulimit -c; ulimit -Hc"])
            .output()
            .unwrap();
        getrlimit(Resource::RLIMIT_CORE).unwrap() == (0, 0)
            && !get_dumpable().unwrap()
            && child.stdout == b"0\n0\n"
    }

    #[test]
    fn no_core_is_dumped_of_us_and_of_our_children() {
        assert!((0..5).any(|_| holds()));
    }
}
