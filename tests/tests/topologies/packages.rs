//! Machines that lack packages, and reach nothing but the bundle to install them from.

use anyhow::{Result, ensure};
use e2e::scenario::Scenario;
use lab::machines::Machine;

/// Removes packages, and every source that apt has. Python stays: probes of spare Hosts need it.
pub async fn are_missing_and_have_no_source(scenario: &Scenario, machines: &[Machine]) -> Result<()> {
    let remove = "dpkg --purge --force-depends socat conntrack >/dev/null 2>&1; \
                  rm -rf /etc/apt/sources.list* /var/lib/apt/lists; \
                  ls /usr/bin/socat /usr/sbin/conntrack 2>/dev/null || true";
    for machine in machines {
        let left = scenario.ssh(machine, remove).await?;
        ensure!(!left.contains("/bin/") && !left.contains("/sbin/"), "{} has still {left}", machine.name());
    }
    Ok(())
}

/// They are there, and apt has no more sources than before.
pub async fn came_from_the_bundle(scenario: &Scenario, machines: &[Machine]) -> Result<()> {
    for machine in machines {
        let found = scenario.ssh(machine, "ls /usr/bin/socat /usr/sbin/conntrack /etc/apt").await?;
        ensure!(!found.contains("sources.list"), "{} has another source: {found}", machine.name());
    }
    Ok(())
}
