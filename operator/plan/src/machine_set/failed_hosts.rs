//! Failed hosts: workers whose Host could not be made part of the cluster. The Host is put aside and another one is
//! taken, as long as there is one, and not for ever: what goes wrong on every machine does not lie with the machines.
//! Also those of MachineRequests: the request makes another Machine, or says that it has none.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::ops::Deref;

use crds::ObjectExt;
use crds::Reason;
use crds::host::QuarantineReason;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role};
use crds::{Host, Machine, PlaybookRun, conditions};
use jiff::SignedDuration;
use serde_json::json;

use super::action::Action;
use super::members::{Members, is_live};
use super::observed::Observed;
use crate::attempts::{self, RetryDecision, Terms};
use crate::claims::{self, HostRequest};
use crate::machine_request::is_requested;
use crate::message::{count, cut};
use crate::{Next, provisioning};

/// Hosts that are put aside for one set before a person must look.
const MOST: usize = 3;
/// How long a machine that SSH does not reach is waited for before another one is taken.
const SILENT: SignedDuration = SignedDuration::from_mins(5);
/// What goes wrong on a machine and does not lie with it: it would go wrong on every other one.
const NOT_ITS_FAULT: [Reason; 11] = [
    Reason::ApiserverNotReady,
    Reason::ArtifactIndexInvalid,
    Reason::ArtifactNotFound,
    Reason::ArtifactSourceMissing,
    Reason::ComponentChanged,
    Reason::DigestMismatch,
    Reason::Fenced,
    Reason::InvalidVariables,
    Reason::LoadBalancerNotReady,
    Reason::ManifestsNotApplied,
    Reason::SecretMissing,
];

/// What is done about workers that could not join.
#[derive(Default)]
pub(super) struct FailedHosts {
    pub actions: Vec<Action>,
    /// Why nothing is done about one.
    pub message: Option<String>,
    /// When one has been silent for too long.
    pub next: Option<Next>,
}

pub(super) fn replace_failed_hosts(observed: &Observed<'_>, members: &Members<'_>) -> FailedHosts {
    let mut failed_hosts = FailedHosts::default();
    let Some(cluster) = observed.formed.filter(|_| observed.set.spec.role == Role::Worker) else {
        return failed_hosts;
    };
    let terms = LazyCell::new(|| cluster.terms.terms());
    let holders = claims::holders(observed.hosts);
    let all: Vec<&Machine> = members.own.iter().chain(&members.requested).copied().collect();
    let (mut aside, mut taken) = (put_aside(observed, &all, &holders), 0);
    for machine in all.iter().copied().filter(|machine| is_live(machine)) {
        if is_marked(machine) {
            // It was put aside, and the operator was cut off.
            failed_hosts.actions.push(Action::DeleteMachine(Box::new(machine.clone())));
            continue;
        }
        let (host, failure) = match failure(observed, machine, &terms, &holders) {
            Failure::None => continue,
            Failure::In(wait) => {
                let seconds = wait.as_secs().unsigned_abs();
                let next = failed_hosts.next.unwrap_or(Next::OnChange);
                failed_hosts.next = Some(next.or_sooner(Next::after_seconds(seconds)));
                continue;
            }
            Failure::Of(host, failure) => (host, failure),
        };
        let name = machine.name();
        let host = host.name();
        // The pool is looked through once a join has failed.
        let left = free_for(observed, machine, &all).saturating_sub(taken);
        if aside >= MOST || left == 0 {
            let why = if aside >= MOST {
                format!(
                    "{} are quarantined for this set already, so it is not the machines: find out why, release them, then retry",
                    count(aside, "Host")
                )
            } else {
                "no other Host is free for it".to_owned()
            };
            // Of a Machine that was requested, its request says what it waits for.
            if !is_requested(machine) {
                failed_hosts.message.get_or_insert(format!("{name} ({host}) {failure}; {why}"));
            }
            continue;
        }
        (aside, taken) = (aside + 1, taken + 1);
        let quarantine = json!({ "reason": QuarantineReason::JoinFailed, "message": cut(failure) });
        failed_hosts.actions.push(Action::QuarantineHost {
            machine: Box::new(machine.clone()),
            host: host.to_owned(),
            quarantine: quarantine.to_string(),
        });
        failed_hosts.actions.push(Action::DeleteMachine(Box::new(machine.clone())));
    }
    failed_hosts
}

/// Hosts put aside for the set: those in quarantine, and those whose Machine is on its way there.
fn put_aside(observed: &Observed<'_>, all: &[&Machine], holders: &HashMap<&str, &Host>) -> usize {
    let of_set = |host: &&&Host| {
        host.spec.quarantine.as_ref().is_some_and(|quarantine| {
            // One that could not be cleaned after it could not join counts, too.
            ![QuarantineReason::ForceRemoved, QuarantineReason::StoreIsOlder].contains(&quarantine.reason)
                && quarantine.machine_set.is_some()
                && quarantine.machine_set == observed.set.metadata.name
        })
    };
    let there = observed.hosts.iter().filter(of_set).count();
    let holds = |machine: &Machine| holders.contains_key(machine.uid());
    let coming = all.iter().filter(|machine| is_marked(machine) && holds(machine));
    there + coming.count()
}

/// Hosts that are free for another Machine in place of this one, and that none of the set is about to take.
fn free_for(observed: &Observed<'_>, machine: &Machine, all: &[&Machine]) -> usize {
    let template = &observed.set.spec.template;
    let host_request = match is_requested(machine) {
        true => HostRequest::from_machine(machine),
        false => HostRequest {
            selector: template.host_selector.as_ref(),
            hosts: template.hosts.as_deref(),
            spread_by: &template.spread_by,
        },
    };
    let looking = all.iter().filter(|machine| claims::is_looking(machine)).count();
    let live = all.iter().filter(|machine| is_live(machine) && !is_requested(machine)).count();
    let wanted = observed.set.spec.count();
    let lacking = wanted.saturating_sub(live);
    claims::offer(&host_request, observed.hosts).free.saturating_sub(looking + lacking)
}

fn is_marked(machine: &Machine) -> bool {
    machine.annotation(annotation::QUARANTINE).is_some()
}

/// Whether a machine could not join, and that lies with it.
enum Failure<'a> {
    None,
    /// It will have, after this.
    In(SignedDuration),
    /// On this Host, and what went wrong.
    Of(&'a Host, String),
}

fn failure<'a>(
    observed: &Observed<'a>,
    machine: &Machine,
    terms: &impl Deref<Target = Terms>,
    holders: &HashMap<&str, &'a Host>,
) -> Failure<'a> {
    let Some(host) = holders.get(machine.uid()).copied() else {
        return Failure::None;
    };
    match provisioning::retry_decision(machine, Some(host), || (**terms).clone(), observed.runs, observed.now) {
        RetryDecision::Halted { failures, cause: Some(cause) }
            if !Reason::among(&cause.reason, &NOT_ITS_FAULT) && failed_itself(observed, machine, host) =>
        {
            let tried = count(failures, "attempt");
            let message = format!("could not join after {tried} ({}): {}", cause.reason, cause.message);
            Failure::Of(host, message)
        }
        RetryDecision::Later { failures, cause, .. } if cause.unreachable && failures >= terms.most => {
            let waited = claimed_since(observed, machine).unwrap_or_default();
            if waited < SILENT {
                return Failure::In(SILENT - waited);
            }
            let minutes = SILENT.as_mins();
            let message = format!("could not be reached to join for {minutes} minutes: {}", cause.message);
            Failure::Of(host, message)
        }
        RetryDecision::Now { .. }
        | RetryDecision::UnderWay { .. }
        | RetryDecision::Done { .. }
        | RetryDecision::Later { .. }
        | RetryDecision::Halted { .. } => Failure::None,
    }
}

/// Whether the last attempt failed on this very machine, and not the run as a whole.
fn failed_itself(observed: &Observed<'_>, machine: &Machine, host: &Host) -> bool {
    let uid = machine.uid();
    let tried = attempts::tried(observed.runs, &[Intent::Install, Intent::Join], uid);
    let named = |run: &PlaybookRun, name: &str| run.metadata.name.as_deref() == Some(name);
    let last = tried.last().and_then(|tried| {
        let mut runs = observed.runs.iter().copied();
        runs.find(|run| named(run, &tried.run))
    });
    let results = last.and_then(|run| run.status.as_ref()).map(|status| status.hosts.as_slice());
    let mut results = results.unwrap_or_default().iter();
    results.any(|result| {
        Some(&result.name) == host.metadata.name.as_ref() && (result.failure.is_some() || result.failed > 0)
    })
}

fn claimed_since(observed: &Observed<'_>, machine: &Machine) -> Option<SignedDuration> {
    let conditions = &machine.status.as_ref()?.conditions;
    let claimed = conditions::find(conditions, condition::HOST_CLAIMED)?;
    let at = claimed.last_transition_time.0;
    (claimed.status == "True").then(|| observed.now.duration_since(at))
}
