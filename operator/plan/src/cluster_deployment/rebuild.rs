//! Rebuild: a cluster all of whose machines are lost. That is said; and where `spec.recovery` wishes it, the machines are
//! forgotten, others take their places, and the cluster is installed anew under its name and with its keys.
//!
//! Lost is what nobody has answered for: neither the API nor any machine, for long enough, in probes of all of them. From
//! the moment when the condition `Rebuilding` is written, machines older than that moment are of the past; everything
//! else follows from it and may be cut off at any point.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_deployment::RecoveryStrategy;
use crds::conditions::{self, Statement};
use crds::names::condition;
use crds::playbook_run::HostResult;
use crds::step::{Intent, Step as RunStep};
use crds::{ClusterDeployment, ClusterDeploymentStatus, Machine, PlaybookRun};
use jiff::{SignedDuration, Timestamp};

use super::Step;
use super::deletion::until;
use super::lack::Lack;
use super::runs;
use super::scene::{Member, Scene};
use crate::machine::leaving;
use crate::sentence::{count, cut};
use crate::{Next, attempts, naming};

/// Deadline of a probe.
const TIMEOUT_SECONDS: i32 = 300;
/// How often machines are asked at most, and at least.
const PERIOD_SECONDS: (i64, i64) = (30, 300);

/// Where a cluster stands that may have lost all of its machines.
#[derive(Default)]
pub(super) struct Rebuild {
    pub steps: Vec<Step>,
    /// When to look again.
    pub next: Option<Next>,
    /// `MachinesLost` and `Rebuilding`, while they say something.
    pub statements: Vec<Statement>,
    /// What the cluster lacks, if it is this.
    pub lack: Option<Lack>,
    /// Nothing else is done meanwhile.
    pub stops: bool,
}

impl Rebuild {
    /// States its conditions, and drops those that have nothing more to say.
    pub fn tell(&self, status: &mut ClusterDeploymentStatus, statements: &mut Vec<Statement>) {
        let ours = [condition::MACHINES_LOST, condition::REBUILDING];
        let is_over = |type_: &str| {
            let stated = self.statements.iter().any(|statement| statement.type_ == type_);
            ours.contains(&type_) && !stated
        };
        status.conditions.retain(|there| !is_over(&there.type_));
        statements.extend(self.statements.iter().cloned().map(|statement| Statement {
            message: cut(statement.message),
            ..statement
        }));
    }
}

/// What comes back into a cluster that was installed anew, before anything else is done with it. A snapshot of its etcd
/// will be named here; for now there is none, and the cluster begins empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restore {
    /// It begins empty.
    Nothing,
}

/// What is to be restored.
pub(super) fn restore(_: &ClusterDeployment) -> Restore {
    Restore::Nothing
}

pub(super) fn of(scene: &Scene<'_>, works: bool) -> Rebuild {
    if let Some(since) = begun(scene.deployment) {
        return goes_on(scene, since, works);
    }
    match silent_since(scene) {
        Some(since) if scene.installed.is_some() => look(scene, since, works),
        _ => Rebuild::default(),
    }
}

/// When the machines of a cluster that is being rebuilt began to be of the past.
fn begun(deployment: &ClusterDeployment) -> Option<Timestamp> {
    let status = deployment.status.as_ref()?;
    let rebuilding = conditions::find(&status.conditions, condition::REBUILDING)?;
    (rebuilding.status == "True").then_some(rebuilding.last_transition_time.0)
}

/// An install that is not younger than this is of the past: the machines that it was of are forgotten.
pub(super) fn anew_since(deployment: &ClusterDeployment, machines: &[&Machine]) -> Option<Timestamp> {
    let since = begun(deployment)?;
    machines
        .iter()
        .all(|machine| !is_old(machine, since))
        .then_some(since)
}

fn is_old(machine: &Machine, since: Timestamp) -> bool {
    let made = machine.metadata.creation_timestamp.as_ref();
    made.is_none_or(|made| made.0 <= since)
}

/// Since when the API has not answered.
fn silent_since(scene: &Scene<'_>) -> Option<Timestamp> {
    let status = scene.observed.cluster?.status.as_ref()?;
    status.unreachable_since.as_ref().map(|since| since.0)
}

fn members<'s, 'a>(scene: &'s Scene<'a>) -> impl Iterator<Item = &'s Member<'a>> {
    scene.live.iter().chain(&scene.leaving)
}

/// Asks the machines of a cluster whose API is silent, and counts how long nobody has answered.
fn look(scene: &Scene<'_>, api_since: Timestamp, works: bool) -> Rebuild {
    let recovery = &scene.deployment.spec.recovery;
    let after = SignedDuration::from_secs(recovery.lost_after_seconds.into());
    let held: BTreeSet<&str> = members(scene).filter_map(Member::host_name).collect();
    let asked = asked(scene, api_since, &held);
    let silent = held
        .iter()
        .all(|host| asked.last.get(host).is_some_and(|last| !last.answered));
    let answered = asked.last.values().any(|last| last.answered);
    let old = scene.deployment.status.as_ref();
    let old = old.and_then(|status| conditions::find(&status.conditions, condition::MACHINES_LOST));
    let was_lost = old.is_some_and(|old| old.status == "True");
    let since = old.map_or(scene.observed.now, |old| old.last_transition_time.0);
    // Each machine was silent when it began, and still is at the end.
    let asked_late = asked.last.values().all(|last| last.at >= since + after);
    let is_lost = silent && (was_lost || (asked_late && scene.observed.now >= since + after));

    let mut rebuild = Rebuild::default();
    let period = match was_lost || answered {
        true => PERIOD_SECONDS.1,
        false => (after.as_secs() / 4).clamp(PERIOD_SECONDS.0, PERIOD_SECONDS.1),
    };
    let period = SignedDuration::from_secs(period);
    let due_at = |host: &&str| asked.last.get(host).map_or(api_since, |last| last.at) + period;
    let due: BTreeSet<&str> = held
        .iter()
        .copied()
        .filter(|host| due_at(host) <= scene.observed.now)
        .collect();
    if works && !asked.under_way {
        match held.iter().map(due_at).min() {
            _ if !due.is_empty() => rebuild.steps.push(probe(scene, &due, api_since, asked.probes)),
            Some(next) => rebuild.next = Some(until(scene, next)),
            None => {}
        }
    }
    let who = format!(
        "neither the API nor any of {} has answered",
        count(held.len(), "machine")
    );
    if is_lost {
        lost(scene, &mut rebuild, &who, works);
    } else if silent || (old.is_some() && !answered) {
        let at = since + after;
        let message = format!(
            "{who} since {}; at {} they are taken for lost",
            clock(since),
            clock(at)
        );
        let statement = Statement::new(condition::MACHINES_LOST, None, "NobodyAnswers", message);
        rebuild.statements.push(statement);
        rebuild.next = Some(rebuild.next.unwrap_or(Next::OnChange).or_sooner(until(scene, at)));
    }
    rebuild
}

fn lost(scene: &Scene<'_>, rebuild: &mut Rebuild, who: &str, works: bool) {
    let state = |message: &str| {
        Statement::new(
            condition::MACHINES_LOST,
            true,
            "AllMachinesLost",
            message.to_owned(),
        )
    };
    match scene.deployment.spec.recovery.strategy {
        RecoveryStrategy::Rebuild if works => {
            // Written down first; what is removed is told by it.
            let message =
                format!("all machines are lost: {who}; the cluster is built anew, empty, on others");
            rebuild.statements.push(state(&message));
            rebuild.statements.push(Statement::new(
                condition::REBUILDING,
                true,
                "AllMachinesLost",
                message.clone(),
            ));
            rebuild.lack = lack("Rebuilding", message);
            rebuild.stops = true;
            rebuild.next = Some(Next::after_seconds(1));
        }
        RecoveryStrategy::Rebuild | RecoveryStrategy::None => {
            let message = format!(
                "all machines are lost: {who}; bring one back, or set spec.recovery.strategy to Rebuild to have the cluster installed anew, empty, on spare Hosts, or delete it"
            );
            rebuild.statements.push(state(&message));
            rebuild.lack = lack("AllMachinesLost", message);
        }
    }
}

fn lack(reason: &str, message: String) -> Option<Lack> {
    Some(Lack {
        known: true,
        reason: reason.into(),
        message,
    })
}

/// A rebuild that has begun: the old machines are forgotten, then the cluster is installed as a new one is.
fn goes_on(scene: &Scene<'_>, since: Timestamp, works: bool) -> Rebuild {
    let mut rebuild = Rebuild::default();
    let old: Vec<&Member<'_>> = members(scene)
        .filter(|member| is_old(member.machine, since))
        .collect();
    let state = |message: &str| Statement::new(condition::REBUILDING, true, "Rebuilding", message.to_owned());
    if !old.is_empty() {
        let untouched = old.iter().all(|member| member.deleted_at().is_none());
        if untouched && silent_since(scene).is_none() {
            // Somebody answers after all, and nothing has been done yet.
            return rebuild;
        }
        let message = format!(
            "builds the cluster anew: {} are forgotten",
            count(old.len(), "lost machine")
        );
        if works {
            rebuild.steps = forget(scene, &old);
        }
        rebuild.statements.push(state(&message));
        rebuild.lack = lack("Rebuilding", message);
        rebuild.stops = true;
        return rebuild;
    }
    if scene.installed.is_some() {
        return match restore(scene.deployment) {
            Restore::Nothing => rebuild,
        };
    }
    // What was seen of the old cluster is not the new one's: its UID is another.
    let is_old = |made: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| made.0 <= since;
    let seen = scene.observed.cluster;
    let seen = seen.filter(|seen| seen.metadata.creation_timestamp.as_ref().is_some_and(is_old));
    if let Some(seen) = seen.filter(|_| works) {
        rebuild.steps.push(Step::DeleteCluster(Box::new(seen.clone())));
        rebuild.stops = true;
        rebuild.next = Some(Next::after_seconds(1));
    }
    rebuild.statements.push(state(
        "builds the cluster anew: it is installed on other machines",
    ));
    rebuild
}

/// Runs on the old machines end, and the machines are deleted, to be forgotten without reaching them.
fn forget(scene: &Scene<'_>, old: &[&Member<'_>]) -> Vec<Step> {
    let on_old = |run: &&&PlaybookRun| {
        let hosts = &run.spec.hosts;
        let named = |member: &&&Member<'_>| {
            member
                .host_name()
                .is_some_and(|host| hosts.iter().any(|there| there == host))
        };
        !run.spec.cancel && old.iter().any(|member| named(&member))
    };
    let cancel = scene.active.iter().filter(on_old);
    let mut steps: Vec<Step> = cancel
        .map(|run| Step::CancelRun(Box::new((*run).clone())))
        .collect();
    for member in old {
        if !leaving::is_forced(member.machine) {
            steps.push(Step::ForceRemoveMachine(Box::new(member.machine.clone())));
        }
        if member.deleted_at().is_none() {
            steps.push(Step::DeleteMachine(Box::new(member.machine.clone())));
        }
    }
    steps
}

/// What the machines were last asked, since the API fell silent.
struct Asked<'a> {
    last: BTreeMap<&'a str, Last>,
    /// A probe is on its way.
    under_way: bool,
    /// How many there were.
    probes: usize,
}

/// What came of asking one machine.
struct Last {
    at: Timestamp,
    answered: bool,
}

/// Whoever asked: what is known of etcd's members is known here.
fn asked<'a>(scene: &Scene<'_>, since: Timestamp, held: &BTreeSet<&'a str>) -> Asked<'a> {
    let ours = |run: &&&PlaybookRun| {
        let made = run.metadata.creation_timestamp.as_ref();
        run.spec.intent == Intent::Probe
            && scene.owns(&run.metadata)
            && made.is_some_and(|made| made.0 >= since)
    };
    let probes: Vec<&&PlaybookRun> = scene.observed.runs.iter().filter(ours).collect();
    let mut last: BTreeMap<&str, Last> = BTreeMap::new();
    for run in probes.iter().filter(|run| attempts::is_over(run)) {
        let results = run.status.iter().flat_map(|status| &status.hosts);
        let Some(at) = attempts::ended_at(run) else {
            continue;
        };
        for result in results {
            let Some(host) = held.get(result.name.as_str()) else {
                continue;
            };
            let is_newer = last.get(host).is_none_or(|known| known.at < at);
            if is_newer {
                let answered = !is_silent(result);
                last.insert(host, Last { at, answered });
            }
        }
    }
    Asked {
        last,
        under_way: probes.iter().any(|run| !attempts::is_over(run)),
        probes: probes.len(),
    }
}

/// Whether nobody spoke: who refuses a key, or shows another one, is there.
fn is_silent(result: &HostResult) -> bool {
    let reason = result.failure.as_ref().map(|failure| failure.reason.as_str());
    result.unreachable && matches!(reason, None | Some("Unreachable"))
}

/// A read-only look at all machines of the cluster.
fn probe(scene: &Scene<'_>, held: &BTreeSet<&str>, since: Timestamp, before: usize) -> Step {
    let since = since.to_string();
    let number = i32::try_from(before).unwrap_or(i32::MAX);
    let taken = |name: &str| {
        let mut runs = scene.observed.runs.iter();
        runs.any(|run| run.metadata.name.as_deref() == Some(name))
    };
    let named = |number: i32| {
        let parts = held.iter().copied().chain([since.as_str(), "lost"]);
        naming::run(&scene.name, scene.uid(), Intent::Probe, parts, number)
    };
    // Old ones may be gone: no name comes twice.
    let number = (number..)
        .find(|number| !taken(&named(*number)))
        .unwrap_or(number);
    let hosts = held.iter().map(|host| (*host).to_owned()).collect();
    let steps = vec![RunStep::ProbeHost];
    let mut run = runs::of_cluster(scene, &named(number), Intent::Probe, steps, hosts, number);
    run.spec.timeout_seconds = TIMEOUT_SECONDS;
    Step::CreateRun(Box::new(run))
}

fn clock(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}
