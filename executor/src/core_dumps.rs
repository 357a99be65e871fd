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

    const ALONE: &str = "CLUSTERWRIGHT_TEST_ALONE";

    /// In a process of its own: other tests start children in this one, and share its memory with them for a moment.
    #[tokio::test]
    async fn no_core_is_dumped_of_us_and_of_our_children() {
        if std::env::var_os(ALONE).is_none() {
            let said = tempfile::NamedTempFile::new().unwrap();
            let mut own = tokio::process::Command::new(std::env::current_exe().unwrap());
            own.args(["--exact", "core_dumps::tests::no_core_is_dumped_of_us_and_of_our_children"]);
            own.env(ALONE, "yes").stdout(said.reopen().unwrap());
            // Another test's reaper takes children that nobody waits for.
            let ended = crate::children::spawn(&mut own).unwrap().child().wait().await.unwrap();
            let said = std::fs::read_to_string(said.path()).unwrap();
            assert!(ended.success() && said.contains("1 passed"), "{said}");
            return;
        }
        super::forbid().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_CORE).unwrap(), (0, 0));
        assert!(!get_dumpable().unwrap());
        let child = std::process::Command::new("sh").args(["-c", "ulimit -c; ulimit -Hc"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&child.stdout), "0\n0\n");
    }
}
