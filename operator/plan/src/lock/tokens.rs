//! The last token of a lock whose status was lost: read back from the runs and from the guards of the machines. Until
//! all that may know a token have been asked, nothing is given out.
//!
//! A token that is given twice, or a lower one after a higher, would make two runs one to a guard, or be refused by it.

mod answers;
mod observed;

use std::collections::BTreeMap;

use crds::conditions::Statement;
use crds::names::condition;
use crds::step::Intent;
use crds::{ObjectExt, PlaybookRun, Reason};
use jiff::Timestamp;

use crate::lock::HIGHEST;
use crate::message::{count, cut};
use crate::moment::{after, clock};
use crate::run_owner::BATCH;
use crate::{Next, attempts};
use answers::{answer, probe, probes, silent};
pub use observed::TokensObserved;

/// A machine that did not answer may know a higher token than all that did: opened without it, the lock leaves this
/// much room.
const ROOM: i64 = 1000;

/// What is known of the last token.
#[derive(Clone, Debug, PartialEq)]
pub enum Tokens {
    /// The status says it.
    Known(i64),
    /// It has been found out now: the lock opens.
    Found(i64),
    /// The same, where no machine is held: what runs of the name had before says nothing of this one.
    New(i64),
    /// It is not known.
    Lost(Lost),
}

/// A lock that is closed.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// The probe to make, if one is due.
    pub probe: Option<Box<PlaybookRun>>,
    /// When to look again.
    pub next: Next,
    /// Why it is closed.
    pub reason: Reason,
    /// The same in words: who is asked, or does not answer, and what a person can do.
    pub message: String,
}

impl Lost {
    /// That the lock is closed; one that is open goes without saying.
    pub fn statement(&self) -> Statement {
        Statement::new(condition::LOCK_AVAILABLE, false, self.reason, cut(self.message.clone()))
    }
}

impl Tokens {
    /// The last token, if it is known.
    pub fn last(&self) -> Option<i64> {
        match self {
            Tokens::Known(last) | Tokens::Found(last) | Tokens::New(last) => Some(*last),
            Tokens::Lost(_) => None,
        }
    }

    /// The last token of before any machine was held, where that is found out now and is not 0.
    pub fn initial(&self) -> Option<i64> {
        match self {
            Tokens::New(last) => (*last > 0).then_some(*last),
            Tokens::Known(_) | Tokens::Found(_) | Tokens::Lost(_) => None,
        }
    }

    /// What is said and done while it is not known.
    pub fn lost(&self) -> Option<&Lost> {
        match self {
            Tokens::Lost(lost) => Some(lost),
            Tokens::Known(_) | Tokens::Found(_) | Tokens::New(_) => None,
        }
    }
}

/// A lost token, or what is done to find it out.
pub fn find(observed: &TokensObserved<'_>) -> Tokens {
    let known = known_to_runs(observed);
    let claimed = &observed.claimed;
    if claimed.is_empty() {
        return Tokens::New(known);
    }
    let Some(noticed) = observed.closed_since else {
        // What was asked before the loss says nothing: first it is written down when it was noticed.
        let message = "machines will be asked";
        return lost(Reason::TokensLost, Next::after_seconds(1), message);
    };
    let probes = probes(observed, noticed);
    if let Some(run) = probes.iter().find(|run| !attempts::is_over(run)) {
        let message = format!("run {} asks {} for it", run.name(), count(run.spec.hosts.len(), "machine"));
        return lost(Reason::QueryingMachines, Next::OnChange, &message);
    }
    let answers: BTreeMap<&str, Result<i64, String>> =
        claimed.iter().filter_map(|(name, host)| Some((*name, answer(host, name, &probes)?))).collect();
    let told = answers.values().filter_map(|answer| answer.as_ref().ok());
    let known = told.copied().fold(known, i64::max);
    let is_open = |name: &&str| !answers.get(name).is_some_and(Result::is_ok);
    let open: Vec<&str> = claimed.keys().copied().filter(is_open).collect();
    if open.is_empty() {
        return Tokens::Found(known);
    }
    let all_were_asked = open.iter().all(|name| answers.contains_key(name));
    if all_were_asked && observed.is_unlocked {
        return Tokens::Found(known.saturating_add(ROOM));
    }
    ask(observed, noticed, &probes, &open, &answers)
}

fn lost(reason: Reason, next: Next, message: &str) -> Tokens {
    Tokens::Lost(Lost {
        probe: None,
        next,
        reason,
        message: format!("the lock is closed: its last token is lost; {message}"),
    })
}

/// Asks the machines that have not been asked, or those that have not answered once their time has come.
fn ask(
    observed: &TokensObserved<'_>,
    noticed: Timestamp,
    probes: &[&PlaybookRun],
    open: &[&str],
    answers: &BTreeMap<&str, Result<i64, String>>,
) -> Tokens {
    let not_asked: Vec<&str> = open.iter().copied().filter(|name| !answers.contains_key(name)).collect();
    let silent = silent(observed, answers);
    let hosts = if not_asked.is_empty() {
        let last = probes.iter().filter_map(|run| attempts::ended_at(run)).max();
        let at = last.map_or(observed.now, |last| after(last, attempts::backoff(probes.len())));
        if at > observed.now {
            let message = format!("{silent}; asked again at {}", clock(at));
            return lost(Reason::MachinesSilent, Next::until(at, observed.now), &message);
        }
        open
    } else {
        &not_asked
    };
    // Old ones may be gone: the number grows, and no name comes twice.
    let number = attempts::number_after(probes.iter().copied());
    let run = probe(observed, &hosts[..hosts.len().min(BATCH)], noticed, number);
    let message = match silent.is_empty() {
        true => "machines are asked",
        false => &silent,
    };
    match lost(Reason::QueryingMachines, Next::OnChange, message) {
        Tokens::Lost(lost) => Tokens::Lost(Lost { probe: Some(Box::new(run)), ..lost }),
        known => known,
    }
}

/// The highest token of all runs; one more for each that may have one that its status does not tell yet.
fn known_to_runs(observed: &TokensObserved<'_>) -> i64 {
    let runs = observed.runs.iter().filter(|run| run.spec.intent != Intent::Probe);
    let token = |run: &PlaybookRun| {
        let token = run.status.as_ref().map(|status| status.token);
        token.filter(|token| *token <= HIGHEST).unwrap_or_default()
    };
    let held = observed.operations.iter().map(|held| held.token);
    let highest = runs.clone().map(|run| token(run)).chain(held).max();
    let untold = runs.filter(|run| !attempts::is_over(run) && token(run) == 0);
    highest.unwrap_or_default() + i64::try_from(untold.count()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crds::Reason;
    use crds::playbook_run::{Fence, HostResult, PlaybookRunStatus, RunPhase};
    use crds::references::controller_ref;
    use crds::step::Intent;
    use crds::{ClusterKind, Host, ObjectExt, PlaybookRun};
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
    use serde_json::json;

    use super::{Tokens, TokensObserved, find};
    use crate::attempts::backoff;
    use crate::run_owner::RunOwner;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn host(name: &str) -> Host {
        let spec = json!({ "address": "10.0.0.1", "claimEpoch": 2, "ssh": { "credentialsRef": { "name": "k" }, "hostKeys": ["ssh-ed25519 AAAAAAAAAAAAAAAA"] } });
        let object = json!({ "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Host", "metadata": { "name": name, "namespace": "fleet" }, "spec": spec });
        serde_json::from_value(object).unwrap()
    }

    /// The runs of a ConfigMap, which is no cluster.
    fn owner() -> RunOwner {
        let metadata = ObjectMeta {
            name: Some("plane".into()),
            namespace: Some("fleet".into()),
            uid: Some("uid-plane".into()),
            ..ObjectMeta::default()
        };
        let object = ConfigMap { metadata, ..ConfigMap::default() };
        RunOwner::new(&object, ClusterKind::KarmadaDeployment, controller_ref(&object))
    }

    fn ended(mut probe: PlaybookRun, results: Vec<HostResult>) -> PlaybookRun {
        probe.status = Some(PlaybookRunStatus {
            phase: Some(RunPhase::Succeeded),
            finished_at: Some(Time(NOW)),
            hosts: results,
            ..PlaybookRunStatus::default()
        });
        probe
    }

    fn result(name: &str, fence: Option<(i64, i64)>) -> HostResult {
        let fence = fence.map(|(epoch, token)| Fence { epoch, token });
        HostResult { name: name.into(), fence, unreachable: fence.is_none(), ..HostResult::default() }
    }

    #[test]
    fn of_whatever_object_the_lock_is_its_machines_are_asked_and_it_opens_above_all_that_they_have_seen() {
        let (owner, hosts) = (owner(), [host("h1"), host("h2")]);
        let claimed = || hosts.iter().map(|host| (host.name(), host)).collect();
        let with = |runs: &[&PlaybookRun], closed_since, is_unlocked| {
            find(&TokensObserved {
                now: NOW,
                operations: &[],
                closed_since,
                runs,
                claimed: claimed(),
                is_unlocked,
                unlock: "kubectl annotate planes plane unlock=1".into(),
                owner: &owner,
            })
        };
        let noticed = with(&[], None, false);
        assert_eq!(noticed.lost().map(|lost| (lost.reason, lost.probe.is_none())), Some((Reason::TokensLost, true)));
        let asked = with(&[], Some(NOW), false);
        let probe = *asked.lost().unwrap().probe.clone().unwrap();
        assert_eq!((probe.spec.intent, probe.spec.hosts.len()), (Intent::Probe, 2));
        assert!(owner.owns(&probe.metadata));
        let waits = with(&[&probe], Some(NOW), false);
        assert_eq!(waits.lost().map(|lost| lost.probe.is_none()), Some(true), "one probe at a time");

        let all = ended(probe.clone(), vec![result("h1", Some((2, 41))), result("h2", Some((1, 90)))]);
        assert_eq!(with(&[&all], Some(NOW), false), Tokens::Found(41), "what an earlier claim has seen does not count");
        let one = ended(probe, vec![result("h1", Some((2, 41))), result("h2", None)]);
        let silent = with(&[&one], Some(NOW), false);
        let silent = silent.lost().unwrap();
        assert_eq!(silent.reason, Reason::MachinesSilent);
        assert!(silent.message.contains("no answer from h2 (SSH does not answer)"), "{}", silent.message);
        assert!(silent.message.contains("kubectl annotate planes plane unlock=1"), "{}", silent.message);
        assert_eq!(with(&[&one], Some(NOW), true), Tokens::Found(1041));
        assert_eq!(silent.next, crate::Next::until(NOW + backoff(1), NOW));
    }

    #[test]
    fn without_machines_the_runs_alone_say_it() {
        let owner = owner();
        let mut run = owner.run("r", Intent::Install, Vec::new(), Vec::new(), 0);
        run.status = Some(PlaybookRunStatus { token: 7, ..PlaybookRunStatus::default() });
        let untold = owner.run("s", Intent::Install, Vec::new(), Vec::new(), 0);
        let runs = [&run, &untold];
        let observed = TokensObserved {
            now: NOW,
            operations: &[],
            closed_since: None,
            runs: &runs,
            claimed: Default::default(),
            is_unlocked: false,
            unlock: String::new(),
            owner: &owner,
        };
        assert_eq!(find(&observed), Tokens::New(8));
    }
}
