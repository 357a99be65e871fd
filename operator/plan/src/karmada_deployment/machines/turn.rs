//! Turn: on which machines a part of the plane is brought to what is wanted now. What nobody has yet is brought to all
//! at once; what serves is changed on one machine after the other, and never on the last one where it works.

use std::collections::BTreeMap;

use super::order::Part;
use crate::settings::is_stopped;

/// A part as it is on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The digest with which a run brought it.
    pub digest: String,
    /// Whether it works; none: nobody has looked since.
    pub is_well: Option<bool>,
}

/// A machine of the plane that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneMachine {
    /// Name of the Machine.
    pub name: String,
    /// Why nothing can be done on it now: it does not answer, or its attempts are used up. Others do not wait for it.
    pub set_aside: Option<String>,
    /// What runs have brought to it.
    pub has: BTreeMap<Part, Placed>,
}

/// What is done about a part now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is on all machines as it is wanted, and works; the next part may follow.
    Done,
    /// It is brought to these machines, by name, in one run.
    On(Vec<String>),
    /// Why nothing is done.
    Waits(String),
}

/// Decides; `wanted`: the digest that each machine is to have, by its name.
pub fn turn(machines: &[PlaneMachine], part: Part, wanted: &BTreeMap<String, String>) -> Turn {
    let able = || machines.iter().filter(|machine| machine.set_aside.is_none());
    let is_as_wanted = |machine: &PlaneMachine| {
        machine.has.get(&part).is_some_and(|placed| Some(&placed.digest) == wanted.get(&machine.name))
    };
    let names = |machines: Vec<&PlaneMachine>| Turn::On(machines.iter().map(|machine| machine.name.clone()).collect());
    if able().next().is_none() {
        return Turn::Waits(match machines.iter().find_map(|machine| Some((machine, machine.set_aside.as_ref()?))) {
            Some((machine, why)) => format!("{} on machine {}: {why}", part.title(), machine.name),
            None => format!("{}: the plane has no machine yet", part.title()),
        });
    }
    // Who has nothing of it interrupts nobody: all machines of a new plane, and one that joins; nor does one where it
    // is stopped.
    let runs = |machine: &PlaneMachine| machine.has.get(&part).is_some_and(|placed| !is_stopped(&placed.digest));
    let is_to_stop = |machine: &PlaneMachine| wanted.get(&machine.name).is_some_and(|digest| is_stopped(digest));
    let is_lacking = |machine: &&PlaneMachine| match machine.has.get(&part) {
        None => true,
        Some(_) => !runs(machine) && !is_to_stop(machine),
    };
    let lacking: Vec<&PlaneMachine> = able().filter(is_lacking).collect();
    let has_old = |machine: &&PlaneMachine| !is_lacking(machine) && !is_as_wanted(machine);
    let outdated: Vec<&PlaneMachine> = able().filter(has_old).collect();
    if !lacking.is_empty() && (outdated.is_empty() || !part.is_told_to_peers_first()) {
        return names(lacking);
    }
    if !outdated.is_empty() && (!part.interrupts() || outdated.iter().all(|machine| is_to_stop(machine))) {
        return names(outdated);
    }
    // Where it is changed it may not work yet.
    let settling = able().find(|machine| is_as_wanted(machine) && machine.has[&part].is_well != Some(true));
    if let Some(machine) = settling {
        let state = if machine.has[&part].is_well.is_some() { "does not work" } else { "has not answered yet" };
        return Turn::Waits(format!("{} {state} on machine {}", part.title(), machine.name));
    }
    // Those of which it is known interrupt nobody, and may need each other to work again.
    let broken: Vec<&PlaneMachine> =
        outdated.iter().copied().filter(|machine| machine.has[&part].is_well == Some(false)).collect();
    if !broken.is_empty() {
        return names(broken);
    }
    if let Some(unknown) = outdated.iter().find(|machine| machine.has[&part].is_well.is_none()) {
        return Turn::On(vec![unknown.name.clone()]);
    }
    let Some(first) = outdated.first() else { return Turn::Done };
    let others = machines.iter().filter(|other| other.name != first.name);
    let serves = |other: &PlaneMachine| other.has.get(&part).is_some_and(|placed| placed.is_well == Some(true));
    // A machine that waits for its peers to know it is no other one to serve meanwhile.
    if machines.len() > 1
        && lacking.is_empty()
        && !others.clone().any(|other| other.set_aside.is_none() && serves(other))
    {
        return Turn::Waits(format!(
            "{} works on machine {} alone: it stays as it is until another one works",
            part.title(),
            first.name
        ));
    }
    Turn::On(vec![first.name.clone()])
}
