//! What may be reset: a machine that leaves its cluster, and no other. Its Machine is deleted by then, which is never
//! taken back; a run that is older than its Machine, or made by hand, wipes nothing that serves.

use std::collections::BTreeMap;

use super::problem::InputsProblem;
use crds::ObjectExt;
use crds::Reason;
use crds::commands::{self, Target};
use crds::step::Step;
use crds::{Machine, PlaybookRun};

/// Refuses to reset a machine that stays.
pub(super) fn check(run: &PlaybookRun, machines: &BTreeMap<&str, &Machine>) -> Result<(), InputsProblem> {
    if !run.spec.steps.contains(&Step::Reset) {
        return Ok(());
    }
    for name in &run.spec.hosts {
        let Some(machine) = machines.get(name.as_str()) else {
            continue;
        };
        if !machine.is_deleting() {
            let message = format!(
                "Host {name} is not reset: its Machine {} is part of the cluster and is not being deleted. To take it out, which resets the Host: {}",
                machine.name(),
                commands::delete(Target::Machine, &machine.metadata)
            );
            return Err(InputsProblem::refused(Reason::MachineStays, message));
        }
    }
    Ok(())
}
