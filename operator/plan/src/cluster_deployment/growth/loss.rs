//! Loss: etcd without a majority of its members' machines. Nothing is done until a person approves; then one machine that
//! still answers carries on alone, from its own data, and the others are made anew.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::{annotation, condition};
use crds::playbook_run::HostResult;
use crds::step::{Intent, Role, Step as RunStep};
use crds::{PlaybookRun, conditions};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Found, doing};
use crate::Next;
use crate::attempts::{self, Policy, Turn};
use crate::cluster_deployment::Step;
use crate::cluster_deployment::deletion::until;
use crate::cluster_deployment::lack::retry;
use crate::cluster_deployment::part::component;
use crate::cluster_deployment::runs::{self, Attempt, Order};
use crate::cluster_deployment::scene::{Member, Scene};
use crate::departure::Council;
use crate::naming;
use crate::provisioning::{self, asked_retries};
use crate::sentence::count;

/// Reason of `EtcdReady` while a person's word is waited for.
pub(in crate::cluster_deployment) const LOST: &str = "QuorumLost";
/// Silence shorter than this is no reason to ask machines.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);
/// Deadline of a probe.
const TIMEOUT_SECONDS: i32 = 300;

/// What it says means that etcd is lost; steps alone do not.
pub(super) fn of(scene: &Scene<'_>, council: &Council<'_>) -> Found {
    let (Some(role), Some(since)) = (council.etcd_role(), trouble_since(scene)) else {
        return Found::default();
    };
    if let Some(found) = recovery(scene, role, since) {
        return found;
    }
    let members: Vec<Member<'_>> = council
        .members()
        .into_iter()
        .filter_map(|machine| scene.member(machine))
        .collect();
    if members.is_empty() {
        return Found::default();
    }
    if scene.observed.now < since + PATIENCE {
        return Found::default().later(until(scene, since + PATIENCE));
    }
    let asked = ask(scene, &members, since);
    let (alive, silent): (Vec<Member<'_>>, Vec<Member<'_>>) = members
        .iter()
        .copied()
        .partition(|member| asked.answers.get(member.host_name().unwrap_or_default()) == Some(&true));
    let needed = members.len() / 2 + 1;
    if !asked.complete || alive.len() >= needed {
        // It is not known, or not etcd: others say what is wrong, and the machines are asked again.
        return Found {
            steps: asked.steps,
            next: asked.next,
            says: None,
        };
    }
    let names = |members: &[Member<'_>]| members.iter().map(Member::title).collect::<Vec<_>>().join(", ");
    let lost = format!(
        "etcd has lost its majority: {} with its members, of which {} answer and {needed} are needed (silent: {})",
        count(members.len(), "machine"),
        alive.len(),
        names(&silent)
    );
    let Some(survivor) = survivor(scene, &alive) else {
        let message = format!("{lost}; none is left to go on from: bring one back, or see spec.recovery");
        let mut found = Found::says(role, LOST, message, true);
        (found.steps, found.next) = (asked.steps, asked.next);
        return found;
    };
    let offered = offered(scene);
    let given = given(scene);
    if let Some(value) = offered
        .as_ref()
        .filter(|offered| given.as_ref() == Some(*offered))
    {
        let message = format!("etcd goes on with {} alone, from its own data", survivor.title());
        let run = recover(scene, survivor, value, 0, None);
        return Found::says(role, "RecoversEtcd", message, true).and(run);
    }
    let value = offered.unwrap_or_else(|| {
        let annotations = scene.deployment.metadata.annotations.as_ref();
        attempts::next_value(annotations, annotation::APPROVE, scene.generation())
    });
    let message = format!(
        "{lost}; nothing is done before you decide: bring a machine back, or let etcd go on with {} alone, from its own data (what only the others had is lost; the others are made anew): {}",
        survivor.title(),
        scene.approve(&value)
    );
    let mut found = Found::says(role, LOST, message, true);
    (found.steps, found.next) = (asked.steps, asked.next);
    found
}

/// Since when the API, or etcd behind it, has not answered.
fn trouble_since(scene: &Scene<'_>) -> Option<Timestamp> {
    let status = scene.observed.cluster?.status.as_ref()?;
    if let Some(since) = &status.unreachable_since {
        return Some(since.0);
    }
    let (false, _) = component(scene, "etcd")? else {
        return None;
    };
    let status = scene.deployment.status.as_ref()?;
    let ready = conditions::find(&status.conditions, condition::ETCD_READY)?;
    (ready.status != "True").then_some(ready.last_transition_time.0)
}

/// What the machines said, and the probe to make.
struct Asked {
    /// Whether each Host answered the last time that it was asked.
    answers: BTreeMap<String, bool>,
    /// All have been asked.
    complete: bool,
    steps: Vec<Step>,
    next: Option<Next>,
}

/// Asks the machines, the later the longer between: they may come back, or go.
fn ask(scene: &Scene<'_>, members: &[Member<'_>], since: Timestamp) -> Asked {
    let mut probes: Vec<&PlaybookRun> = scene
        .observed
        .runs
        .iter()
        .copied()
        .filter(|run| run.spec.intent == Intent::Probe && scene.owns(&run.metadata))
        .filter(|run| {
            let made = run.metadata.creation_timestamp.as_ref();
            made.is_some_and(|made| made.0 >= since)
        })
        .collect();
    probes.sort_by_key(|run| attempts::ended_at(run));
    let hosts: BTreeSet<&str> = members.iter().filter_map(Member::host_name).collect();
    let mut answers: BTreeMap<String, bool> = BTreeMap::new();
    for run in probes.iter().filter(|run| attempts::is_over(run)) {
        for host in run.spec.hosts.iter().filter(|host| hosts.contains(host.as_str())) {
            if let Some(answer) = answer(run, host) {
                answers.insert(host.clone(), answer);
            }
        }
    }
    // A machine without its Host cannot be asked, and counts as silent.
    let complete = hosts.iter().all(|host| answers.contains_key(*host));
    let mut asked = Asked {
        answers,
        complete,
        steps: Vec::new(),
        next: None,
    };
    if probes.iter().any(|run| !attempts::is_over(run)) {
        return asked;
    }
    let last = probes.iter().filter_map(|run| attempts::ended_at(run)).max();
    let at = last.map(|last| last + attempts::backoff(probes.len()));
    match at.filter(|at| *at > scene.observed.now) {
        Some(at) => asked.next = Some(until(scene, at)),
        None if hosts.is_empty() => {}
        None => {
            let number = probes.iter().map(|run| attempts::attempt_of(run) + 1).max();
            let run = probe(scene, &hosts, since, number.unwrap_or_default());
            asked.steps.push(Step::CreateRun(Box::new(run)));
        }
    }
    asked
}

/// Whether a machine let the probe in; none: the probe itself came to nothing.
fn answer(run: &PlaybookRun, host: &str) -> Option<bool> {
    let status = run.status.as_ref()?;
    let result = status.hosts.iter().find(|result| result.name == host)?;
    let reason = |result: &HostResult| result.failure.as_ref().map(|failure| failure.reason.clone());
    match reason(result).as_deref() {
        _ if result.unreachable => Some(false),
        Some("NotReached" | "Canceled" | "DeadlineExceeded") => None,
        _ => Some(true),
    }
}

fn probe(scene: &Scene<'_>, hosts: &BTreeSet<&str>, since: Timestamp, attempt: i32) -> PlaybookRun {
    let since = since.to_string();
    let parts = hosts.iter().copied().chain(["etcd", since.as_str()]);
    let name = naming::run(&scene.name, scene.uid(), Intent::Probe, parts, attempt);
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    let steps = vec![RunStep::ProbeHost];
    let mut run = runs::of_cluster(scene, &name, Intent::Probe, steps, hosts, attempt);
    run.spec.timeout_seconds = TIMEOUT_SECONDS;
    run
}

/// Who goes on alone: the first control plane if it answers, or else the first that does.
fn survivor<'a>(scene: &Scene<'_>, alive: &[Member<'a>]) -> Option<Member<'a>> {
    let status = scene.deployment.status.as_ref();
    let first = status.and_then(|status| status.first_control_plane.as_deref());
    let stays = || alive.iter().filter(|member| member.deleted_at().is_none());
    let chosen = stays().find(|member| Some(member.name()) == first);
    chosen.or_else(|| stays().next()).copied()
}

/// The value of `approve` that the status asks for: one that was there before says nothing of this loss.
fn offered(scene: &Scene<'_>) -> Option<String> {
    let status = scene.deployment.status.as_ref()?;
    let ready = conditions::find(&status.conditions, condition::ETCD_READY)?;
    let (_, value) = ready.message.rsplit_once(&format!("{}=", annotation::APPROVE))?;
    let current = value.split('.').next() == Some(scene.generation().to_string().as_str());
    (ready.reason == LOST && current).then(|| value.to_owned())
}

fn given(scene: &Scene<'_>) -> Option<String> {
    let annotations = scene.deployment.metadata.annotations.as_ref()?;
    annotations.get(annotation::APPROVE).cloned()
}

/// A recovery that was begun since the loss: it goes on, on the same machine, or has come to its end.
fn recovery(scene: &Scene<'_>, role: Role, since: Timestamp) -> Option<Found> {
    let begun: Vec<&PlaybookRun> = scene
        .observed
        .runs
        .iter()
        .copied()
        .filter(|run| run.spec.steps.contains(&RunStep::RecoverEtcd) && !attempts::marks(run).is_empty())
        .filter(|run| {
            let made = run.metadata.creation_timestamp.as_ref();
            made.is_some_and(|made| made.0 >= since)
        })
        .collect();
    let last = begun.iter().max_by_key(|run| attempts::attempt_of(run))?;
    if !attempts::is_over(last) {
        let what = format!("etcd goes on with {} alone", last.spec.hosts.join(", "));
        return Some(doing(scene, role, "RecoversEtcd", &what, last));
    }
    let survivor = attempts::marks(last)
        .into_values()
        .find_map(|mark| scene.live.iter().find(|member| member.uid() == mark.uid))?;
    let tried = attempts::tried_by(&begun, |run| {
        let host = survivor.host_name()?;
        let mark = attempts::marks(run).remove(host)?;
        (mark.uid == survivor.uid()).then(|| (host.to_owned(), mark))
    });
    let policy = Policy {
        limit: Some(provisioning::most_attempts(scene.deployment)),
        wanted: provisioning::wanted(scene.deployment),
        host_generation: None,
        retries: asked_retries(survivor.machine, scene.deployment),
        stopped_is_final: true,
    };
    let failed = |message| Found::says(role, "RecoveryFailed", message, true);
    match attempts::turn(&tried, &policy, scene.observed.now) {
        Turn::Now { attempt, retry, .. } => {
            let approval = last.metadata.annotations.as_ref();
            let approval = approval.and_then(|all| all.get(annotation::APPROVE));
            let run = recover(scene, *survivor, approval?, attempt, retry);
            let message = format!("etcd goes on with {} alone, from its own data", survivor.title());
            Some(Found::says(role, "RecoversEtcd", message, true).and(run))
        }
        Turn::Later { at, cause, .. } => {
            let message = format!(
                "{} could not go on alone ({}: {}); tried again at {}",
                survivor.title(),
                cause.reason,
                cause.message,
                at.strftime("%H:%M:%S UTC")
            );
            Some(failed(message).later(until(scene, at)))
        }
        Turn::Halted { failures, cause } => {
            let cause = cause.map_or("a person stopped it".to_owned(), |cause| {
                format!("{}: {}", cause.reason, cause.message)
            });
            let message = format!(
                "{} could not go on alone after {} ({cause}); correct it, then {}",
                survivor.title(),
                count(failures, "attempt"),
                retry(scene)
            );
            Some(failed(message))
        }
        // It has: the API servers are told, and then the API answers.
        Turn::Done { .. } | Turn::UnderWay { .. } => None,
    }
}

fn recover(
    scene: &Scene<'_>,
    survivor: Member<'_>,
    approval: &str,
    attempt: i32,
    retry: Option<String>,
) -> Step {
    let host = survivor.host_name().unwrap_or_default();
    let mut vars = scene.etcd_variables(&[survivor.machine]);
    vars.insert(
        "etcd_recover_member".into(),
        json!({ "name": host, "host": host }),
    );
    let order = Order {
        intent: Intent::Repair,
        steps: vec![RunStep::RecoverEtcd],
        targets: &[(survivor, retry)],
        attempt: Attempt {
            number: attempt,
            resume: false,
        },
        name_of: Some(vec!["recover".into(), survivor.uid().into(), approval.into()]),
        vars,
    };
    let mut run = runs::order(scene, order);
    run.metadata
        .annotations
        .get_or_insert_default()
        .insert(annotation::APPROVE.into(), approval.to_owned());
    Step::CreateRun(Box::new(run))
}
