//! What people see of a Host: `Ready`, the phase, and one sentence.

use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::host::HostPhase;
use crds::names::condition;
use crds::playbook_run::RunPhase;
use crds::{HostStatus, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::probes::{covers, under_way};
use super::{HostObserved, identity, name_of, quarantine};
use crate::claims::Identities;

/// A probe that has not begun by then is held up.
const LATE_SECONDS: i64 = 15;

struct View {
    phase: HostPhase,
    ready: Option<bool>,
    reason: String,
    message: String,
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
    let find = |type_: &str| conditions::find(&status.conditions, type_);
    fn make(phase: HostPhase, ready: Option<bool>, reason: impl Into<String>, message: String) -> View {
        View {
            phase,
            ready,
            reason: reason.into(),
            message,
        }
    }
    let reachable = find(condition::REACHABLE);
    let refused = reachable.filter(|reachable| reachable.status == "False");
    if let Some(claim) = &host.spec.claim_ref {
        if observed.holder_is_gone {
            let message = quarantine::stuck(host, &claim.name);
            return make(HostPhase::Claimed, Some(false), Reason::MachineGone, message);
        }
        if let Some(message) = identity::another_in(host, status) {
            let reason = Reason::MachineIdentityMismatch;
            return make(HostPhase::Claimed, Some(false), reason, message);
        }
        return match refused {
            Some(refused) => {
                let message = format!(
                    "claimed by Machine {}, unreachable: {}",
                    claim.name, refused.message
                );
                make(HostPhase::Claimed, Some(false), refused.reason.as_str(), message)
            }
            None => make(
                HostPhase::Claimed,
                Some(true),
                Reason::Claimed,
                format!("claimed by Machine {}", claim.name),
            ),
        };
    }
    let before = status.phase.filter(|phase| *phase != HostPhase::Claimed);
    if let Some(problem) = observed.problems.get(name_of(host)) {
        let kept = host.spec.quarantine.as_ref().map(|_| HostPhase::Quarantined);
        let phase = kept.or(before).unwrap_or(HostPhase::Unreachable);
        return make(phase, Some(false), problem.reason, problem.message.clone());
    }
    if let Some(double) = double(observed, status) {
        return make(HostPhase::Quarantined, Some(false), double.0, double.1);
    }
    if let Some(quarantine) = &host.spec.quarantine {
        let message = quarantine::message(host, status, quarantine);
        let reason = format!("{:?}", quarantine.reason);
        return make(HostPhase::Quarantined, Some(false), reason, message);
    }
    // A probe of an earlier spec, or of another claim, says nothing about this one.
    let probed = reachable.and_then(|reachable| reachable.observed_generation);
    if probed != host.metadata.generation {
        let phase = match (before, status.cleaned_epoch == Some(host.spec.claim_epoch)) {
            (None, _) if host.spec.claim_epoch == 0 => HostPhase::Unreachable,
            (_, false) if host.spec.claim_epoch > 0 => HostPhase::Cleaning,
            (before, _) => before.unwrap_or(HostPhase::Unreachable),
        };
        return make(phase, Some(false), Reason::WaitingForProbe, waiting(observed));
    }
    if let Some(refused) = refused {
        let message = format!("{}: {}", refused.reason, refused.message);
        return make(
            HostPhase::Unreachable,
            Some(false),
            refused.reason.as_str(),
            message,
        );
    }
    if let Some(unknown) = reachable.filter(|reachable| reachable.status != "True") {
        return make(
            HostPhase::Unreachable,
            None,
            unknown.reason.as_str(),
            unknown.message.clone(),
        );
    }
    match find(condition::CLEAN) {
        Some(clean) if clean.status == "True" && status.cleaned_epoch == Some(host.spec.claim_epoch) => {
            let message = if host.spec.unschedulable {
                "available, but unschedulable"
            } else {
                "available"
            };
            make(
                HostPhase::Available,
                Some(true),
                Reason::Available,
                message.to_owned(),
            )
        }
        Some(clean) if clean.status == "False" => {
            let message = format!(
                "not clean: {}; reset the machine, it is looked at again by itself",
                clean.message
            );
            make(
                HostPhase::Quarantined,
                Some(false),
                clean.reason.as_str(),
                message,
            )
        }
        Some(clean) => {
            let message = format!("not known to be clean: {}", clean.message);
            make(
                HostPhase::Quarantined,
                Some(false),
                clean.reason.as_str(),
                message,
            )
        }
        None => make(
            HostPhase::Cleaning,
            Some(false),
            Reason::WaitingForProbe,
            waiting(observed),
        ),
    }
}

/// Another Host that comes first on the same machine: two clusters must not get one machine.
fn double(observed: &HostObserved<'_>, status: &HostStatus) -> Option<(Reason, String)> {
    // What was pinned just now counts.
    let mut ours = observed.host.clone();
    ours.status = Some(status.clone());
    let others = observed.hosts.iter().map(|host| &**host);
    let others = others.filter(|host| name_of(*host) != name_of(&ours));
    let double = Identities::of(others.chain([&ours])).double(&ours)?;
    Some((double.reason(), double.message()))
}

/// What the probe does that this Host waits for.
fn waiting(observed: &HostObserved<'_>) -> String {
    let run = under_way(observed.probes);
    let ours = run.filter(|run| covers(run, observed.host));
    let trouble = |run: &PlaybookRun| trouble(run, observed.now).unwrap_or_default();
    match (ours, run) {
        (Some(run), _) => format!("is being probed by {}{}", name_of(run), trouble(run)),
        (None, Some(run)) => format!("waits for a probe, after {}{}", name_of(run), trouble(run)),
        (None, None) => "waits for a probe".to_owned(),
    }
}

/// What holds up a probe that should have begun long ago. A Host's status does not follow one that is well.
fn trouble(run: &PlaybookRun, now: Timestamp) -> Option<String> {
    let status = run.status.as_ref()?;
    let created = run.created_at()?.0.as_second();
    let late = now.as_second() - created > LATE_SECONDS && status.phase == Some(RunPhase::Pending);
    status
        .message
        .as_ref()
        .filter(|_| late)
        .map(|message| format!(": {message}"))
}
