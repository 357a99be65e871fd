//! One Host: what the last probe found, whose it is, and when it is looked at again.

mod clones;
pub mod identity;
mod probes;
mod quarantine;
mod result;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::ObjectExt;
use crds::host::Quarantine;
use crds::inputs::HostIdentity;
use crds::{Host, HostStatus, PlaybookRun};
use jiff::Timestamp;

use crate::inputs::InputsProblem;
use crate::{Next, Plan};

pub use clones::have_one_machine_id;
pub use probes::{due_soon, is_probe};

/// What was observed.
#[derive(Clone, Copy, Debug)]
pub struct HostObserved<'a> {
    /// The Host.
    pub host: &'a Host,
    /// Now, in whole seconds.
    pub now: Timestamp,
    /// Between two probes of a Host that is well.
    pub interval_seconds: u64,
    /// All Hosts of the namespace.
    pub hosts: &'a [Arc<Host>],
    /// The operator's probes of the namespace.
    pub probes: &'a [Arc<PlaybookRun>],
    /// Runs that name the Host.
    pub runs: &'a [Arc<PlaybookRun>],
    /// Hosts that no probe can reach for, by name, and why: a Secret or a bastion is missing.
    pub problems: &'a BTreeMap<String, InputsProblem>,
    /// Whether the Machine that has claimed the Host is not there, as the API says and not a cache.
    pub holder_is_gone: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create this probe, unless it is there already.
    Probe(Box<PlaybookRun>),
    /// Delete an old probe.
    Forget(Box<PlaybookRun>),
    /// Write which machine the claimed Host is, if nobody has written the Host since it was read.
    SetIdentity {
        /// The Host, as it was read.
        host: Box<Host>,
        /// The machine.
        identity: HostIdentity,
    },
    /// Take the quarantine off the Host, and which machine it was, if nobody has written the Host since it was read.
    EndQuarantine(Box<Host>),
    /// Take the claim of a Machine that is gone off the Host, if nobody has written the Host since it was read.
    ReleaseClaim {
        /// The Host, as it was read.
        host: Box<Host>,
        /// Finalizers of the Host from now on.
        finalizers: Vec<String>,
        /// What keeps it out of the pool until it is known to be clean.
        quarantine: Quarantine,
    },
}

/// Decides.
pub fn host(observed: &HostObserved<'_>) -> Plan<Step, HostStatus> {
    let mut status = observed.host.status.clone().unwrap_or_default();
    result::fold(observed, &mut status);
    identity::state(observed, &mut status);
    clones::state(observed, &mut status);
    view::show(observed, &mut status);
    let told = observed.host.status.as_ref() == Some(&status);
    // What a probe found is written before the next one is made.
    let (mut steps, next) = if told || !result::is_new(observed) {
        probes::next(observed, &status)
    } else {
        (Vec::new(), Next::after_seconds(1))
    };
    steps.extend(quarantine::steps(observed, &status));
    let identity = identity::to_write(observed.host, &status);
    steps.extend(identity.map(|identity| Step::SetIdentity {
        host: Box::new(observed.host.clone()),
        identity,
    }));
    let is_well = crds::conditions::is_true(&status.conditions, crds::names::condition::READY);
    let waits_for = if is_well { None } else { status.message.clone() };
    Plan {
        steps,
        status,
        next,
        waits_for,
    }
}

/// A thing with a name.
trait Named {
    fn named(&self) -> &str;
}
impl Named for Host {
    fn named(&self) -> &str {
        self.name()
    }
}
impl Named for PlaybookRun {
    fn named(&self) -> &str {
        self.name()
    }
}

fn name_of(object: &impl Named) -> &str {
    object.named()
}

#[cfg(test)]
mod tests;
