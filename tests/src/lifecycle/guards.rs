//! What machines' guards have written down: who was touched, and whether two fences ever met.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use lab::machines::Machine;

/// How many lines each machine's log has.
pub type Lengths = BTreeMap<String, usize>;

/// How many lines each machine's log has now; read from the host's side.
pub fn lengths(machines: &[Machine]) -> Lengths {
    let of = |machine: &Machine| {
        let lines = text(machine, "log.1").lines().count() + text(machine, "log").lines().count();
        (machine.name().to_owned(), lines)
    };
    machines.iter().map(of).collect()
}

/// No guard of these machines has written a line since.
pub fn untouched(machines: &[Machine], before: &Lengths) -> Result<()> {
    let now = lengths(machines);
    let touched: Vec<String> = now
        .iter()
        .filter_map(|(name, lines)| {
            let more = lines.saturating_sub(before.get(name).copied().unwrap_or_default());
            (more > 0).then(|| format!("{name}: {more} lines"))
        })
        .collect();
    ensure!(touched.is_empty(), "machines that were none of its business were touched: {}", touched.join(", "));
    Ok(())
}

/// No guard shows two fences at a time, nor one that goes down.
pub fn hold(machines: &[Machine]) -> Result<()> {
    for machine in machines {
        let report = guard::log_audit::read(&text(machine, "log.1"), &text(machine, "log"));
        let said: Vec<String> = report.violations.iter().map(|violation| violation.to_string()).collect();
        ensure!(said.is_empty(), "the guard of {}: {}", machine.name(), said.join("; "));
    }
    Ok(())
}

/// A file of the guard's; empty where there is none.
fn text(machine: &Machine, name: &str) -> String {
    let path: PathBuf = machine.root().join(guard::DIRECTORY.trim_start_matches('/')).join(name);
    std::fs::read_to_string(path).unwrap_or_default()
}
