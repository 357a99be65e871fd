//! What a probe found becomes conditions of the Host; they carry the generation that was probed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::host::HostKeyPolicy;
use crds::names::{annotation, condition};
use crds::playbook_run::HostResult;
use crds::{Host, HostStatus, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use super::observed::HostObserved;
use super::quarantine::asked_release;
use crate::attempts::{ended_at, is_over};

const PINNED: &str = "the host key is the pinned one";

/// What a Host was when a probe was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProbedHost {
    pub uid: String,
    pub generation: i64,
    pub claim_epoch: i64,
    /// The value of the annotation `release`, when one was meant for this generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// When the store had been taken up again then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
}

pub(super) fn probed_hosts(run: &PlaybookRun) -> BTreeMap<String, ProbedHost> {
    let annotations = run.metadata.annotations.as_ref();
    let text = annotations.and_then(|annotations| annotations.get(annotation::PROBED));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

pub(super) fn probed_host(host: &Host, resumed_at: Option<Timestamp>) -> ProbedHost {
    ProbedHost {
        uid: host.uid().to_owned(),
        generation: host.generation(),
        claim_epoch: host.spec.claim_epoch,
        release: asked_release(host),
        resumed_at,
    }
}

/// The newest probe of this Host that has ended and has not been folded yet.
pub(super) fn newest<'a>(host: &Host, probes: &'a [Arc<PlaybookRun>]) -> Option<(&'a PlaybookRun, ProbedHost)> {
    let (name, uid) = (host.name(), host.uid());
    let looked = |run: &&Arc<PlaybookRun>| is_over(run) && run.spec.hosts.iter().any(|host| host == name);
    let ended = probes.iter().filter(looked).filter_map(|run| {
        let probed_host = probed_hosts(run).remove(name).filter(|probed_host| probed_host.uid == uid)?;
        Some(((ended_at(run)?, run.name()), &**run, probed_host))
    });
    let newest = ended.filter(|((at, run), _, _)| !is_folded(host, *at, run));
    newest.max_by_key(|(place, _, _)| *place).map(|(_, run, probed_host)| (run, probed_host))
}

/// Whether the Host's status has what a probe found that ended then, or what a later one did: in the order of their
/// ends, and of their names where two ended in one second, so none is folded twice.
pub(super) fn is_folded(host: &Host, at: Timestamp, run: &str) -> bool {
    let status = host.status.as_ref();
    let folded = status.and_then(|status| Some((status.last_probe_at.as_ref()?.0, status.last_probe_run.as_deref()?)));
    folded.is_some_and(|folded| folded >= (at, run))
}

/// True when there is something to fold.
pub(super) fn is_new(observed: &HostObserved<'_>) -> bool {
    newest(observed.host, observed.probes).is_some()
}

/// Puts what the newest probe found into the status.
pub(super) fn fold(observed: &HostObserved<'_>, status: &mut HostStatus) {
    let Some((run, probed_host)) = newest(observed.host, observed.probes) else {
        return;
    };
    let run_status = run.status.clone().unwrap_or_default();
    let result = run_status.hosts.iter().find(|result| result.name == observed.host.name());
    let statements = match result {
        Some(result) => statements(result),
        None => {
            let message = run_status.message.as_deref().unwrap_or("it ended without a message");
            let message = format!("probe {} came to no result: {message}", run.name());
            vec![Statement::new(condition::REACHABLE, None, Reason::ProbeFailed, message)]
        }
    };
    let ended = ended_at(run).unwrap_or(observed.now);
    status.conditions =
        conditions::state(&status.conditions, &statements, Some(probed_host.generation), &Time(observed.now));
    status.last_probe_at = Some(Time(ended));
    status.last_probe_run = Some(run.name().to_owned());
    let Some(result) = result else { return };
    status.asked_since = probed_host.resumed_at.map(Time).or(status.asked_since.take());
    status.probed_for_release = probed_host.release;
    if !result.unreachable {
        (status.fence, status.fence_owner) = (result.fence, result.fence_owner.clone());
    }
    if let Some(facts) = &result.facts {
        status.facts = Some(facts.clone());
    }
    // Being clean while it is claimed says nothing of how it is given back.
    if result.clean == Some(true) && observed.host.spec.claim_ref.is_none() {
        status.cleaned_epoch = Some(probed_host.claim_epoch);
    } else if result.clean == Some(false) {
        status.cleaned_epoch = None;
    }
    let ssh = &observed.host.spec.ssh;
    let pins = ssh.host_key_policy == HostKeyPolicy::TrustOnFirstUse && ssh.host_keys.is_empty();
    if let Some(key) = &result.host_key
        && pins
        && status.host_keys.is_empty()
    {
        status.host_keys = vec![key.clone()];
    }
}

fn statements(result: &HostResult) -> Vec<Statement> {
    let failure = result.failure.as_ref();
    let reason = failure.map_or(Reason::Unreachable.as_str(), |failure| failure.reason.as_str());
    let known = failure.and_then(|failure| Reason::from_name(&failure.reason));
    let message = failure.map_or("SSH did not answer", |failure| failure.message.as_str());
    let reached = !(result.unreachable
        || matches!(known, Some(Reason::AuthenticationFailed | Reason::HostKeyChanged | Reason::HostKeyUnknown)));
    if !reached {
        let (key, key_reason, key_message) = match known {
            Some(Reason::HostKeyChanged | Reason::HostKeyUnknown) => (Some(false), reason, message),
            Some(Reason::AuthenticationFailed) => (Some(true), Reason::Pinned.as_str(), PINNED),
            _ => (None, reason, "the host key was not seen: no connection was made"),
        };
        return vec![
            Statement::new(condition::REACHABLE, false, reason, message),
            Statement::new(condition::HOST_KEY_VERIFIED, key, key_reason, key_message),
        ];
    }
    let clean = match (result.clean, failure) {
        (Some(true), _) => {
            Statement::new(condition::CLEAN, true, Reason::NothingFound, "nothing of a cluster was found")
        }
        (Some(false), _) => {
            Statement::new(condition::CLEAN, false, Reason::LeftoversFound, leftovers(&result.leftovers))
        }
        (None, Some(failure)) => {
            let message = format!("{}, {}: {}", failure.step, failure.task, failure.message);
            Statement::new(condition::CLEAN, None, failure.reason.as_str(), message)
        }
        (None, None) => Statement::new(condition::CLEAN, None, Reason::NotLookedAt, "no step looked"),
    };
    vec![
        Statement::new(condition::REACHABLE, true, Reason::Answers, "SSH lets us in"),
        Statement::new(condition::HOST_KEY_VERIFIED, true, Reason::Pinned, PINNED),
        clean,
    ]
}

fn leftovers(found: &[String]) -> String {
    let shown: Vec<&str> = found.iter().take(5).map(String::as_str).collect();
    let more = found.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("left on the machine: {}{more}", shown.join(", "))
}
