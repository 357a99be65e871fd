//! What people see of a Host: `Ready`, the phase, and one sentence.

use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::host::HostPhase;
use crds::names::condition;
use crds::playbook_run::RunPhase;
use crds::{Conditions, Host, HostStatus, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::observed::HostObserved;
use super::probes::{covers, under_way};
use super::{identity, quarantine, store};
use crate::claims::Identities;

/// A probe that has not begun by then is held up.
const LATE_SECONDS: i64 = 15;

struct View {
    phase: HostPhase,
    ready: Option<bool>,
    reason: String,
    message: String,
}

impl View {
    fn ready(phase: HostPhase, reason: Reason, message: String) -> Self {
        Self { ready: Some(true), ..Self::not_ready(phase, reason, message) }
    }

    fn not_ready(phase: HostPhase, reason: impl Into<String>, message: String) -> Self {
        Self { phase, ready: Some(false), reason: reason.into(), message }
    }
}

/// States `Ready`, phase and message from what the status already holds.
pub(super) fn show(observed: &HostObserved<'_>, status: &mut HostStatus) {
    let view = view(observed, status);
    let generation = observed.host.metadata.generation;
    let ready = Statement::new(condition::READY, view.ready, view.reason, view.message.clone());
    status.conditions = conditions::state(&status.conditions, &[ready], generation, &Time(observed.now));
    status.phase = Some(view.phase);
    status.message = Some(view.message);
    status.observed_generation = generation;
}

fn view(observed: &HostObserved<'_>, status: &HostStatus) -> View {
    let host = observed.host;
    let reachable = conditions::find(&status.conditions, condition::REACHABLE);
    if let Some(claim) = &host.spec.claim_ref {
        return claimed(observed, status, &claim.name, reachable);
    }
    let before = status.phase.filter(|phase| *phase != HostPhase::Claimed);
    if let Some(problem) = observed.problems.get(host.name()) {
        let kept = host.spec.quarantine.as_ref().map(|_| HostPhase::Quarantined);
        let phase = kept.or(before).unwrap_or(HostPhase::Unreachable);
        return View::not_ready(phase, problem.reason, problem.message.clone());
    }
    if let Some((reason, message)) = double(observed, status) {
        return View::not_ready(HostPhase::Quarantined, reason, message);
    }
    if let Some(quarantine) = &host.spec.quarantine {
        let message = quarantine::message(host, status, quarantine);
        let reason = format!("{:?}", quarantine.reason);
        return View::not_ready(HostPhase::Quarantined, reason, message);
    }
    if let Some(message) = store::contradicts(host, status) {
        return View::not_ready(HostPhase::Quarantined, Reason::MachineIsNewer, message);
    }
    // A probe of an earlier spec, or of another claim, says nothing about this one.
    let probed = reachable.filter(|reachable| reachable.observed_generation == host.metadata.generation);
    match probed {
        Some(probed) if probed.status == "True" => cleanliness(observed, status),
        Some(probed) if probed.status == "False" => View::not_ready(
            HostPhase::Unreachable,
            probed.reason.as_str(),
            format!("{}: {}", probed.reason, probed.message),
        ),
        Some(probed) => View {
            ready: None,
            ..View::not_ready(HostPhase::Unreachable, probed.reason.as_str(), probed.message.clone())
        },
        None => {
            let phase = match (before, status.cleaned_epoch == Some(host.spec.claim_epoch)) {
                (None, _) if host.spec.claim_epoch == 0 => HostPhase::Unreachable,
                (_, false) if host.spec.claim_epoch > 0 => HostPhase::Cleaning,
                (before, _) => before.unwrap_or(HostPhase::Unreachable),
            };
            View::not_ready(phase, Reason::WaitingForProbe, waiting(observed))
        }
    }
}

/// A Host that the Machine of this name has.
fn claimed(observed: &HostObserved<'_>, status: &HostStatus, machine: &str, reachable: Option<&Condition>) -> View {
    let not_ready = |reason: &str, message: String| View::not_ready(HostPhase::Claimed, reason, message);
    if observed.holder_is_gone {
        let message = quarantine::stuck(observed.host, machine);
        return not_ready(Reason::MachineGone.as_str(), message);
    }
    if let Some(message) = store::contradicts(observed.host, status) {
        return not_ready(Reason::MachineIsNewer.as_str(), message);
    }
    if let Some(message) = identity::another_in(observed.host, status) {
        return not_ready(Reason::MachineIdentityMismatch.as_str(), message);
    }
    let message = format!("claimed by Machine {machine}");
    match reachable.filter(|reachable| reachable.status == "False") {
        Some(refused) => not_ready(&refused.reason, format!("{message}, unreachable: {}", refused.message)),
        None => View::ready(HostPhase::Claimed, Reason::Claimed, message),
    }
}

/// A Host that is nobody's and that SSH reaches: available once its machine is clean.
fn cleanliness(observed: &HostObserved<'_>, status: &HostStatus) -> View {
    let spec = &observed.host.spec;
    let Some(clean) = conditions::find(&status.conditions, condition::CLEAN) else {
        return View::not_ready(HostPhase::Cleaning, Reason::WaitingForProbe, waiting(observed));
    };
    if clean.status == "True" && status.cleaned_epoch == Some(spec.claim_epoch) {
        let message = match spec.unschedulable {
            true => "available, but unschedulable",
            false => "available",
        };
        return View::ready(HostPhase::Available, Reason::Available, message.into());
    }
    let message = match clean.status.as_str() {
        // A member of a Karmada control plane perhaps, which nobody is to reset.
        "False" if spec.unschedulable => format!("unschedulable, and not clean: {}", clean.message),
        "False" => format!("not clean: {}; reset the machine, it is looked at again by itself", clean.message),
        _ => format!("not known to be clean: {}", clean.message),
    };
    View::not_ready(HostPhase::Quarantined, clean.reason.as_str(), message)
}

/// Whether it was found last that another Host is the same machine, and comes first.
pub fn is_double(host: &Host) -> bool {
    let ready = host.condition(condition::READY);
    ready.is_some_and(|ready| Reason::among(&ready.reason, &[Reason::SameAddress, Reason::SameHostKey]))
}

/// Another Host that comes first on the same machine: two clusters must not get one machine.
fn double(observed: &HostObserved<'_>, status: &HostStatus) -> Option<(Reason, String)> {
    // What was pinned just now counts.
    let mut ours = observed.host.clone();
    ours.status = Some(status.clone());
    let others = observed.hosts.iter().map(|host| &**host);
    let others = others.filter(|host| host.name() != ours.name());
    let double = Identities::new(others.chain([&ours])).double(&ours)?;
    Some((double.reason(), double.message()))
}

/// What the probe does that this Host waits for.
fn waiting(observed: &HostObserved<'_>) -> String {
    let run = under_way(observed.probes);
    let ours = run.filter(|run| covers(run, observed.host));
    let trouble = |run: &PlaybookRun| trouble(run, observed.now).unwrap_or_default();
    match (ours, run) {
        (Some(run), _) => format!("is being probed by {}{}", run.name(), trouble(run)),
        // One that is well is not named: each Host that waits would be written with each probe that ends.
        (None, run) => match run.map(|run| (run.name(), trouble(run))) {
            Some((name, trouble)) if !trouble.is_empty() => format!("waits for a probe, after {name}{trouble}"),
            _ => "waits for a probe".to_owned(),
        },
    }
}

/// What holds up a probe that should have begun long ago. A Host's status does not follow one that is well.
fn trouble(run: &PlaybookRun, now: Timestamp) -> Option<String> {
    let status = run.status.as_ref()?;
    let created = run.created_at()?.0.as_second();
    let late = now.as_second() - created > LATE_SECONDS && status.phase == Some(RunPhase::Pending);
    status.message.as_ref().filter(|_| late).map(|message| format!(": {message}"))
}
