//! A command in a machine without SSH: from the host, through its first process's namespaces.

use anyhow::{Context, Result, bail};

use super::Machine;
use crate::command::{Invocation, Output};

impl Machine {
    /// Runs a command as root in the machine, also when its network or its sshd is what is broken.
    pub fn enter(&self, command: &str) -> Result<Output> {
        let Some(init) = self.init() else {
            bail!("machine {} does not run", self.name());
        };
        let pid = init.pid.to_string();
        Invocation::new("nsenter")
            .args(["-t", &pid, "-m", "-u", "-i", "-n", "-p", "--", "/bin/sh", "-c", command])
            .output()
            .with_context(|| format!("failed to enter machine {}", self.name()))
    }

    /// Whether a process of the host's process tree belongs to the machine, by its control groups.
    pub fn owns(&self, pid: i32) -> bool {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let own = format!("{}/", self.group().path());
        groups.lines().any(|line| format!("{line}/").contains(&own))
    }
}
