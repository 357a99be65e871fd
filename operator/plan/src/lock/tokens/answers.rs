//! What the machines of a cluster say of the last token that their guards have seen.

use std::collections::BTreeMap;

use crds::playbook_run::{HostResult, RunPhase};
use crds::step::{Intent, Step};
use crds::{Host, PlaybookRun};
use jiff::Timestamp;

use super::observed::TokensObserved;
use crate::attempts;
use crate::lock::HIGHEST;

/// Machines that are named in a message.
const NAMED: usize = 3;

/// The probes of ours that were made for this loss: their names say so, while the time of their creation is of another
/// clock.
pub(super) fn probes<'a>(observed: &TokensObserved<'a>, noticed: Timestamp) -> Vec<&'a PlaybookRun> {
    let since = |run: &&PlaybookRun| {
        let hosts: Vec<&str> = run.spec.hosts.iter().map(String::as_str).collect();
        let number = attempts::attempt_of(run);
        let name = observed.owner.probe_name(&hosts, &[&noticed.to_string()], number);
        run.spec.intent == Intent::Probe
            && observed.owner.owns(&run.metadata)
            && run.metadata.name.as_ref() == Some(&name)
    };
    observed.runs.iter().copied().filter(since).collect()
}

/// What a machine said of the highest token of its present claim, or why it said nothing; none: it was not asked.
pub(super) fn answer(host: &Host, name: &str, probes: &[&PlaybookRun]) -> Option<Result<i64, String>> {
    let asked = probes.iter().filter(|run| run.spec.hosts.iter().any(|asked| asked == name));
    asked.map(|run| said(host, name, run)).max_by_key(|answer| {
        // One answer is enough; of failures the last one is told.
        answer.as_ref().map_or(-1, |token| *token)
    })
}

fn said(host: &Host, name: &str, run: &PlaybookRun) -> Result<i64, String> {
    let status = run.status.as_ref();
    let result = status.and_then(|status| status.hosts.iter().find(|result| result.name == name));
    let ended_well = status.and_then(|status| status.phase) == Some(RunPhase::Succeeded);
    let epoch = host.spec.claim_epoch;
    match result {
        Some(HostResult { failure: Some(failure), .. }) => Err(format!("{}: {}", failure.reason, failure.message)),
        Some(result) if result.unreachable => Err("SSH does not answer".into()),
        Some(HostResult { fence: Some(fence), .. }) if fence.epoch > epoch => Err(format!(
            "its guard has seen claim epoch {}, and the Host says {epoch} (from an old backup?): set spec.claimEpoch of the Host to {}",
            fence.epoch, fence.epoch
        )),
        Some(HostResult { fence: Some(fence), .. }) if fence.epoch == epoch && fence.token > HIGHEST => {
            Err("its guard tells a token that nobody gives out".into())
        }
        Some(HostResult { fence: Some(fence), .. }) if fence.epoch == epoch => Ok(fence.token),
        // No guard, or one of an earlier claim only.
        Some(HostResult { fence: Some(_), .. }) => Ok(0),
        Some(_) => Err("its guard was not asked".into()),
        None if ended_well => Err("the probe has no result for it".into()),
        None => Err(status.and_then(|status| status.message.clone()).unwrap_or_else(|| "the probe failed".into())),
    }
}

/// Which machines have not answered, why, and what a person can do.
pub(super) fn silent(observed: &TokensObserved<'_>, answers: &BTreeMap<&str, Result<i64, String>>) -> String {
    let silent: Vec<String> =
        answers.iter().filter_map(|(name, answer)| Some(format!("{name} ({})", answer.as_ref().err()?))).collect();
    if silent.is_empty() {
        return String::new();
    }
    let more = match silent.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "no answer from {}{more}: mend that, or open it without them: {}",
        silent[..silent.len().min(NAMED)].join(", "),
        observed.unlock
    )
}

/// A read-only look at machines; what their guards know comes with it.
pub(super) fn probe(observed: &TokensObserved<'_>, hosts: &[&str], noticed: Timestamp, attempt: i32) -> PlaybookRun {
    observed.owner.probe(Step::ProbeHost, hosts, &[&noticed.to_string()], attempt)
}
