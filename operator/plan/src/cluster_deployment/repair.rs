//! Repair: what is done about the cluster's sick machines. Looks at the scene for [`remediation`], makes the runs and
//! deletions that it decides on, and tells every decision, also not to act.

use crds::cluster_deployment::{EtcdTopology, Repair};
use crds::conditions::{self, Statement};
use crds::machine_set::MachineSetMode;
use crds::names::{annotation, condition};
use crds::playbook_run::RunPhase;
use crds::remediation_policy::RemediationAction as Action;
use crds::step::{Intent, Role, Step as RunStep};
use crds::{ClusterDeploymentStatus, Machine, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Step;
use super::part::component;
use super::runs::{self, Attempt};
use super::scene::{Member, Scene};
use crate::attempts::{self, Outcome, Turn};
use crate::claims::{self, Wish};
use crate::naming;
use crate::remediation::{self, Effort, EffortResult, Patient, Round, Spares, State, Verdict, Ward};
use crate::sentence::{count, cut};

/// Efforts at a machine that are remembered however many runs are kept.
const REMEMBERED: usize = 6;
/// Entries that the status takes.
const MOST_TOLD: usize = 100;
/// Reasons of a machine that leaves and of which the cluster has nothing any more.
const OUT: [&str; 3] = ["WaitsForReset", "ReleasesHost", "HostReleased"];
/// Reasons of a machine that is about to be seen for the first time.
const NOT_SEEN_YET: [&str; 4] = [
    "NodeStarting",
    "NodeNotSeenYet",
    "NodeNotThereYet",
    "ClusterNotThereYet",
];
const LOST: &str = "ClusterUnreachable";

/// What is done about sick machines.
#[derive(Default)]
pub(super) struct Repairs {
    /// Runs to make and Machines to delete.
    pub steps: Vec<Step>,
    /// When to look again.
    pub look_again: Option<Timestamp>,
    entries: Vec<Repair>,
    statement: Option<Statement>,
    calm_since: Option<Time>,
    /// What is being done, as a clause; none: nothing.
    pub says: Option<String>,
}

/// Decides. Without the cluster's last token (`lock_known`) nothing begins.
pub(super) fn of(scene: &Scene<'_>, lock_known: bool) -> Repairs {
    let recorded = scene.deployment.status.as_ref();
    let calm_since = recorded.and_then(|status| status.calm_since.clone());
    if scene.installed.is_none() {
        return Repairs::default();
    }
    let ward = ward(scene, calm_since.as_ref(), lock_known);
    if ward.patients.iter().all(|patient| patient.rule.is_none()) {
        return Repairs::default();
    }
    let round = remediation::decide(&ward);
    let begun = round.verdicts.iter().filter_map(|verdict| {
        let begin = verdict.begin.as_ref()?;
        let member = scene
            .live
            .iter()
            .find(|member| member.name() == verdict.machine)?;
        Some(match run_step(begin.action) {
            Some(step) => create(scene, member, begin.action, step, begin.retry.clone()),
            None => Step::DeleteMachine(Box::new(member.machine.clone())),
        })
    });
    let steps = begun.collect();
    let replaced = replaced(scene);
    let (statement, says) = summary(scene, &ward, &round, &replaced);
    let mut entries: Vec<Repair> = round.verdicts.iter().map(entry).chain(replaced).collect();
    entries.sort_by(|a, b| (a.action.is_none(), &a.machine).cmp(&(b.action.is_none(), &b.machine)));
    entries.truncate(MOST_TOLD);
    entries.sort_by(|a, b| a.machine.cmp(&b.machine));
    for entry in &mut entries {
        entry.since = Time(scene.observed.now);
        let before = told(scene, &entry.machine);
        if let Some(before) =
            before.filter(|before| before.reason == entry.reason && before.action == entry.action)
        {
            entry.since = before.since.clone();
        }
    }
    Repairs {
        steps,
        look_again: round.look_again,
        entries,
        statement: Some(statement),
        calm_since: round.calm_since.map(Time),
        says,
    }
}

impl Repairs {
    /// Puts what was decided into the status.
    pub fn tell(&self, status: &mut ClusterDeploymentStatus, statements: &mut Vec<Statement>) {
        status.repairs = self.entries.clone();
        status.calm_since = self.calm_since.clone();
        match &self.statement {
            Some(statement) => statements.push(statement.clone()),
            None => status
                .conditions
                .retain(|there| there.type_ != condition::REMEDIATION),
        }
    }
}

fn run_step(action: Action) -> Option<RunStep> {
    match action {
        Action::RestartServices => Some(RunStep::RestartServices),
        Action::Reboot => Some(RunStep::Reboot),
        Action::Replace => None,
    }
}

fn create(
    scene: &Scene<'_>,
    member: &Member<'_>,
    action: Action,
    step: RunStep,
    retry: Option<String>,
) -> Step {
    let known = scene
        .observed
        .runs
        .iter()
        .filter(|run| is_effort(run, member.uid()).is_some());
    let number = known
        .map(|run| attempts::attempt_of(run).saturating_add(1))
        .max()
        .unwrap_or_default();
    let attempt = Attempt {
        number,
        resume: false,
    };
    let target = (*member, retry);
    let mut made = runs::create(scene, Intent::Repair, &[target], attempt);
    if let Step::CreateRun(run) = &mut made {
        let parts = [member.uid(), remediation::name(action)];
        run.metadata.name = Some(naming::run(
            &scene.name,
            scene.uid(),
            Intent::Repair,
            parts,
            number,
        ));
        run.spec.steps = vec![step];
    }
    made
}

/// What a run tries on a machine for its repair; none: it is another run.
fn is_effort(run: &PlaybookRun, machine_uid: &str) -> Option<(Action, String, attempts::Mark)> {
    if run.spec.intent != Intent::Repair {
        return None;
    }
    let action = match run.spec.steps.as_slice() {
        [RunStep::RestartServices] => Action::RestartServices,
        [RunStep::Reboot] => Action::Reboot,
        _ => return None,
    };
    let marks = attempts::marks(run);
    let (host, mark) = marks.into_iter().find(|(_, mark)| mark.uid == machine_uid)?;
    Some((action, host, mark))
}

/// What was tried on a machine, oldest first.
fn efforts_of(scene: &Scene<'_>, machine_uid: &str) -> Vec<Effort> {
    let effort = |run: &&PlaybookRun| {
        let (action, host, mark) = is_effort(run, machine_uid)?;
        let made = run.metadata.creation_timestamp.as_ref()?.0;
        Some(Effort {
            run: run.metadata.name.clone().unwrap_or_default(),
            action,
            made,
            ended: attempts::ended_at(run).unwrap_or(made),
            retry: mark.retry,
            result: result(run, &host),
        })
    };
    let mut efforts: Vec<Effort> = scene.observed.runs.iter().filter_map(effort).collect();
    efforts.sort_by(|a, b| (a.made, &a.run).cmp(&(b.made, &b.run)));
    efforts
}

fn result(run: &PlaybookRun, host: &str) -> EffortResult {
    match attempts::outcome(run, host) {
        Outcome::UnderWay => EffortResult::UnderWay,
        Outcome::Succeeded => EffortResult::Done,
        Outcome::Canceled => EffortResult::Canceled,
        Outcome::Held => EffortResult::Held,
        Outcome::Failed(failure) => {
            let status = run.status.as_ref();
            let results = status.map(|status| status.hosts.as_slice()).unwrap_or_default();
            let own = results.iter().find(|result| result.name == host);
            let reached = own.is_some_and(|own| own.failure.is_some() || own.failed > 0);
            let kept_out = failure.unreachable && failure.reason != "Unreachable";
            let phase = status.and_then(|status| status.phase);
            // A run that could not be made ready says nothing of the machine, and one that is kept out says it of a key.
            let elsewhere = phase == Some(RunPhase::Failed) && !reached && !failure.unreachable;
            if kept_out || elsewhere || !failure.has_begun() {
                EffortResult::NotTried(failure)
            } else {
                EffortResult::Failed(failure)
            }
        }
    }
}

fn ward(scene: &Scene<'_>, calm_since: Option<&Time>, lock_known: bool) -> Ward {
    let observed = scene.observed;
    let (unreachable, contact_since) = contact(scene);
    let status = scene.deployment.status.as_ref();
    let recorded = status.map(|status| status.repairs.as_slice()).unwrap_or_default();
    let too_many = recorded.iter().any(|repair| repair.reason == "TooManyUnhealthy");
    let patients: Vec<Patient> = scene
        .live
        .iter()
        .map(|member| patient(scene, member, contact_since, unreachable.is_some()))
        .collect();
    let others = observed
        .deployments
        .iter()
        .filter(|other| other.metadata.uid != scene.deployment.metadata.uid)
        .filter_map(|other| other.status.as_ref())
        .flat_map(|status| &status.repairs);
    let under_repair = others
        .chain(&replaced(scene))
        .filter(|repair| repair.action.is_some())
        .count();
    let sets: Vec<_> = scene.sets().collect();
    Ward {
        now: observed.now,
        unreachable,
        etcd: component(scene, "etcd").and_then(|(well, message)| (!well).then_some(message)),
        paused: scene.deployment.spec.paused,
        lock_known,
        change: change(scene),
        stacked: scene.deployment.spec.etcd.topology == EtcdTopology::Stacked,
        elsewhere: under_repair,
        was_too_many: too_many,
        calm_since: calm_since.map(|time| time.0),
        spares: Spares::of(observed.hosts, observed.machines, &sets),
        patients,
    }
}

/// Why the API is out of reach; or since when it is in reach without a gap.
fn contact(scene: &Scene<'_>) -> (Option<String>, Option<Timestamp>) {
    let status = scene.observed.cluster.and_then(|cluster| cluster.status.as_ref());
    let reachable = status.and_then(|status| conditions::find(&status.conditions, condition::REACHABLE));
    match reachable {
        Some(reachable) if reachable.status == "True" => (None, Some(reachable.last_transition_time.0)),
        Some(reachable) => (Some(reachable.message.clone()), None),
        None => (
            Some(format!(
                "the API of cluster {} has not been looked at yet",
                scene.name
            )),
            None,
        ),
    }
}

fn patient(scene: &Scene<'_>, member: &Member<'_>, contact_since: Option<Timestamp>, lost: bool) -> Patient {
    let machine = member.machine;
    let status = machine.status.as_ref();
    let host = member.host_name().unwrap_or_default();
    let rule = remediation::holding(machine, scene.observed.policies, Some(scene.deployment));
    let efforts = efforts_of(scene, member.uid());
    let own = |run: &PlaybookRun| is_effort(run, member.uid()).is_some();
    let busy = scene.active_on(host).filter(|run| !own(run));
    let state = state(scene, member, contact_since, lost);
    let fitting = match state {
        State::Sick { .. } | State::NeverStarted { .. } => {
            claims::offer(&Wish::of(machine), scene.observed.hosts).free
        }
        State::Well | State::NotJudged | State::Unknown => 0,
    };
    let annotations = machine.metadata.annotations.as_ref();
    Patient {
        name: member.name().to_owned(),
        host: host.to_owned(),
        role: machine.spec.role,
        state,
        joined: status.is_some_and(|status| status.provisioned_at.is_some()),
        skipped: annotations.is_some_and(|all| all.contains_key(annotation::SKIP_REMEDIATION)),
        busy: busy.and_then(|run| run.metadata.name.clone()),
        efforts,
        retry: attempts::asked_retry(annotations, machine.metadata.generation.unwrap_or_default()),
        irreplaceable: irreplaceable(scene, machine),
        fitting,
        told: told(scene, member.name()).is_some(),
        rule,
    }
}

fn irreplaceable(scene: &Scene<'_>, machine: &Machine) -> Option<String> {
    let Some(name) = claims::set_of(machine) else {
        return Some("the Machine is of no MachineSet, so that none would be made in its place".into());
    };
    match scene.set(name) {
        None => Some(format!("its MachineSet {name} is gone")),
        Some(set) if set.spec.mode == MachineSetMode::Manual => Some(format!(
            "its MachineSet {name} is in mode Manual: whoever makes its Machines replaces them"
        )),
        Some(_) => None,
    }
}

fn state(scene: &Scene<'_>, member: &Member<'_>, contact_since: Option<Timestamp>, lost: bool) -> State {
    let status = member.machine.status.as_ref();
    let conditions = status
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let joined = status.is_some_and(|status| status.provisioned_at.is_some());
    if member.machine.spec.role == Role::Etcd {
        return State::NotJudged;
    }
    if !joined {
        return never_started(scene, member).unwrap_or(State::NotJudged);
    }
    let Some(node) = conditions::find(conditions, condition::NODE_READY) else {
        return State::NotJudged;
    };
    match (node.status.as_str(), node.reason.as_str()) {
        ("True", _) if !lost => State::Well,
        (_, reason) if lost || reason == LOST => State::Unknown,
        (_, reason) if NOT_SEEN_YET.contains(&reason) => State::NotJudged,
        _ => State::Sick {
            // What was before contact was lost says nothing of the time without it.
            since: node
                .last_transition_time
                .0
                .max(contact_since.unwrap_or(Timestamp::MIN)),
            what: match node.message.as_str() {
                "" => "its node is not Ready".into(),
                said => said.trim_end_matches('.').to_owned(),
            },
        },
    }
}

/// A machine that was tried in vain. One that waits for its turn, or whose runs do not begin, is not to blame.
fn never_started(scene: &Scene<'_>, member: &Member<'_>) -> Option<State> {
    let status = member.machine.status.as_ref()?;
    let claimed = conditions::find(&status.conditions, condition::HOST_CLAIMED)?;
    member.host.filter(|_| claimed.status == "True")?;
    let what = match scene.turn(member) {
        Turn::Later { cause, .. }
        | Turn::Halted {
            cause: Some(cause), ..
        } if cause.has_begun() => {
            format!(
                "it has not become part of the cluster: {}: {}",
                cause.reason, cause.message
            )
        }
        _ => return None,
    };
    Some(State::NeverStarted {
        since: claimed.last_transition_time.0,
        what,
    })
}

/// What else goes on with the control plane and etcd.
fn change(scene: &Scene<'_>) -> Option<String> {
    let of_control = |member: &&Member<'_>| member.machine.spec.role != Role::Worker;
    let leaves = scene.leaving.iter().filter(of_control).find(|member| {
        let reason = deleting_reason(member.machine);
        !reason.is_some_and(|reason| OUT.contains(&reason))
    });
    if let Some(member) = leaves {
        return Some(format!("{} leaves", member.title()));
    }
    let members = || scene.live.iter().chain(&scene.leaving).filter(of_control);
    let run = scene.active.iter().find(|run| {
        members().any(|member| {
            let host = member.host_name();
            let works = host.is_some_and(|host| run.spec.hosts.iter().any(|named| named == host));
            works && is_effort(run, member.uid()).is_none()
        })
    });
    if let Some(run) = run {
        let name = run.metadata.name.as_deref().unwrap_or_default();
        return Some(format!("run {name} works on {}", run.spec.hosts.join(", ")));
    }
    let joins = scene.live.iter().filter(of_control).find(|member| {
        let joined = member
            .machine
            .status
            .as_ref()
            .is_some_and(|status| status.provisioned_at.is_some());
        // One that cannot join is in nobody's way.
        !joined
            && member.host.is_some()
            && !matches!(scene.turn(member), Turn::Later { .. } | Turn::Halted { .. })
    })?;
    Some(format!("{} joins", joins.title()))
}

fn deleting_reason(machine: &Machine) -> Option<&str> {
    let status = machine.status.as_ref()?;
    conditions::find(&status.conditions, condition::DELETING).map(|deleting| deleting.reason.as_str())
}

fn told<'a>(scene: &Scene<'a>, machine: &str) -> Option<&'a Repair> {
    let status = scene.deployment.status.as_ref()?;
    status.repairs.iter().find(|repair| repair.machine == machine)
}

fn entry(verdict: &Verdict) -> Repair {
    Repair {
        machine: verdict.machine.clone(),
        action: verdict.action,
        reason: verdict.reason.clone(),
        message: cut(verdict.sentence()),
        since: Time(Timestamp::UNIX_EPOCH),
    }
}

/// Machines that were deleted to be replaced, until the cluster has nothing of them any more.
fn replaced(scene: &Scene<'_>) -> Vec<Repair> {
    let leaving = scene.leaving.iter().filter_map(|member| {
        let before = told(scene, member.name()).filter(|before| before.action == Some(Action::Replace))?;
        let out = deleting_reason(member.machine).is_some_and(|reason| OUT.contains(&reason));
        (!out).then(|| Repair {
            message: cut(format!("it is being replaced: {}", member.says())),
            ..before.clone()
        })
    });
    leaving.collect()
}

/// The condition, and the clause that goes with the cluster's own sentence, which has said already what is wrong.
fn summary(
    scene: &Scene<'_>,
    ward: &Ward,
    round: &Round,
    replaced: &[Repair],
) -> (Statement, Option<String>) {
    let of = |status: bool, reason: &str, message: String| {
        Statement::new(condition::REMEDIATION, status, reason, cut(message))
    };
    let acts = round.verdicts.iter().any(|verdict| verdict.action.is_some()) || !replaced.is_empty();
    let idle = round.verdicts.iter().find(|verdict| verdict.action.is_none());
    let told = sentence(scene, round, replaced, Verdict::sentence);
    let says = sentence(scene, round, replaced, |verdict| verdict.message.clone());
    match (acts, &ward.unreachable, idle) {
        (true, _, _) => (of(true, "Repairing", told), Some(says)),
        (false, Some(lost), _) => {
            let message = format!("no machine is repaired: {lost}");
            (of(false, LOST, message), None)
        }
        (false, None, Some(first)) => (of(false, &first.reason, told), Some(says)),
        (false, None, None) => (of(false, "NothingToRepair", "no machine is sick".into()), None),
    }
}

/// What is done about the first machine, and why nothing about the first of the others.
fn sentence(
    scene: &Scene<'_>,
    round: &Round,
    replaced: &[Repair],
    says: impl Fn(&Verdict) -> String,
) -> String {
    let clause = |name: &str, message: &str| {
        let mut members = scene.live.iter().chain(&scene.leaving);
        let member = members.find(|member| member.name() == name);
        let title = member.map_or_else(|| name.to_owned(), Member::title);
        format!("{title}: {message}")
    };
    let (acting, idle): (Vec<&Verdict>, Vec<&Verdict>) = round
        .verdicts
        .iter()
        .partition(|verdict| verdict.action.is_some());
    let of_verdict = |verdict: &&Verdict| clause(&verdict.machine, &says(verdict));
    let mut acting: Vec<String> = acting.iter().map(of_verdict).collect();
    acting.extend(
        replaced
            .iter()
            .map(|repair| clause(&repair.machine, &repair.message)),
    );
    let first = |clauses: &[String]| match clauses {
        [] => None,
        [one] => Some(one.clone()),
        [one, more @ ..] => Some(format!("{one}; and {}", count(more.len(), "more machine"))),
    };
    let idle: Vec<String> = idle.iter().map(of_verdict).collect();
    let parts = [first(&acting), first(&idle)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Names of the repairs that decide what comes next for machines that live.
pub(super) fn needed(scene: &Scene<'_>) -> Vec<String> {
    let of_member = |member: &Member<'_>| {
        let efforts = efforts_of(scene, member.uid());
        efforts
            .into_iter()
            .rev()
            .take(REMEMBERED)
            .map(|effort| effort.run)
    };
    scene.live.iter().flat_map(of_member).collect()
}
