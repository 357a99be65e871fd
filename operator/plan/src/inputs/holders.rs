//! Whose a run's Hosts are by now. A run names Hosts; it works for Machines. One that outlived its Machines, because a
//! backup brought it back or they were made anew, touches nothing.

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::Reason;
use crds::{Host, Machine, PlaybookRun};

use super::problem::InputsProblem;
use crate::attempts::targets;

/// Refuses a run one of whose Hosts is not held by the Machine that the run is for.
pub(super) fn check(
    run: &PlaybookRun,
    machines: &BTreeMap<&str, &Machine>,
    hosts: &BTreeMap<String, Host>,
) -> Result<(), InputsProblem> {
    let targets = targets(run);
    for (name, machine) in machines.iter().filter(|(name, _)| run.spec.hosts.iter().any(|host| host == *name)) {
        let uid = machine.uid();
        let machine = machine.name();
        match targets.get(*name) {
            Some(target) if target.uid != uid => {
                let made_for = &target.uid;
                let message = format!(
                    "Host {name} was another Machine's when this run was made (UID {made_for}; now it is Machine {machine}, UID {uid}): this run is for nothing any more, make a new one"
                );
                return Err(InputsProblem::refused(Reason::MachineReplaced, message));
            }
            None if !targets.is_empty() => {
                let message = format!(
                    "Host {name}: annotation {} names no Machine for it: make a new run",
                    crds::names::annotation::MACHINES
                );
                return Err(InputsProblem::refused(Reason::MachineReplaced, message));
            }
            _ => {}
        }
        let Some(host) = hosts.get(*name) else { continue };
        let claim = host.spec.claim_ref.as_ref();
        if claim.is_none_or(|claim| claim.uid != uid) {
            let holder = match claim {
                None => "nobody".to_owned(),
                Some(claim) => format!("{} {} (UID {})", claim.kind, claim.name, claim.uid),
            };
            let message = format!(
                "Host {name} is claimed by {holder}, not by Machine {machine} (UID {uid}) of this cluster: nothing is done to a machine that may be another's; make a new run once the claim is right"
            );
            return Err(InputsProblem::refused(Reason::HostNotHeld, message));
        }
    }
    Ok(())
}
