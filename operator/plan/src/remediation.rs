//! Remediation: what is done about sick machines, decided for all of a cluster at once. For each of them there is an
//! answer, also when nothing is done; what was tried is read from the runs, so that a lost status costs time at most.

mod brake;
mod ladder;
mod policy;
mod spares;

use crds::remediation_policy::{Remediation, RemediationAction as Action};
use crds::step::Role;
use jiff::{SignedDuration, Timestamp};

pub use ladder::{Effort, Result as EffortResult};
pub use policy::{Rule, holding, policy_of};
pub use spares::Spares;

use brake::Brakes;
use ladder::Rung;

/// How a machine is, as far as its repair is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its node is Ready.
    Well,
    /// It is on its way into the cluster, or has no node that says how it is.
    NotJudged,
    /// Its node was Ready, or should be, and is not.
    Sick {
        /// Since when that has been seen without a gap.
        since: Timestamp,
        /// What is wrong: `its kubelet is silent`.
        what: String,
    },
    /// It has a Host, was tried, and is no part of the cluster yet.
    NeverStarted {
        /// When its Host was claimed.
        since: Timestamp,
        /// What is wrong.
        what: String,
    },
    /// The API of the cluster is out of reach.
    Unknown,
}

/// A machine that stays, as remediation sees it.
#[derive(Clone, Debug)]
pub struct Patient {
    /// Name of the Machine.
    pub name: String,
    /// Its Host.
    pub host: String,
    /// What it is in its cluster.
    pub role: Role,
    /// How it is.
    pub state: State,
    /// It is part of the cluster.
    pub joined: bool,
    /// What is to be done about it; none: nothing ever.
    pub rule: Option<Rule>,
    /// A person asked to leave it alone.
    pub skipped: bool,
    /// Another run works on its Host.
    pub busy: Option<String>,
    /// What was tried, oldest first.
    pub efforts: Vec<Effort>,
    /// The retry that a person asks for now.
    pub retry: Option<String>,
    /// Why no other Machine would come in its place; none: its set makes one.
    pub irreplaceable: Option<String>,
    /// Spare Hosts that would do in its place.
    pub fitting: usize,
    /// Something was said of it before.
    pub told: bool,
}

/// Everything that is looked at.
#[derive(Clone, Debug)]
pub struct Ward {
    /// The time.
    pub now: Timestamp,
    /// The machines of the cluster that stay, the well ones too.
    pub patients: Vec<Patient>,
    /// Why nothing is known of the nodes: the API is out of reach.
    pub unreachable: Option<String>,
    /// Why etcd is not well.
    pub etcd: Option<String>,
    /// The cluster is paused.
    pub paused: bool,
    /// The cluster's last token is known, so that runs may begin.
    pub lock_known: bool,
    /// What else goes on with a control plane or etcd machine: one is made, leaves, or a run works there.
    pub change: Option<String>,
    /// Members of etcd stand on the control planes.
    pub stacked: bool,
    /// Machines of the namespace's other clusters, and replaced ones of this one, that something is being done about.
    pub elsewhere: usize,
    /// More than allowed were sick at once when last looked.
    pub was_too_many: bool,
    /// When it was last seen that too many are so no more.
    pub calm_since: Option<Timestamp>,
    /// The pool that replacements come from.
    pub spares: Spares,
}

/// What begins now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// What.
    pub action: Action,
    /// The retry that it answers.
    pub retry: Option<String>,
}

/// What is done about one machine, or why nothing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Name of the Machine.
    pub machine: String,
    /// The action under way, or beginning.
    pub action: Option<Action>,
    /// What begins now.
    pub begin: Option<Begin>,
    /// CamelCase.
    pub reason: String,
    /// What is wrong with it: `its kubelet is silent`.
    pub what: String,
    /// What is done, or why nothing is, without the machine's name.
    pub message: String,
    /// When to look again.
    pub until: Option<Timestamp>,
}

impl Verdict {
    fn none(patient: &Patient, reason: impl Into<String>, message: String) -> Self {
        Self {
            machine: patient.name.clone(),
            action: None,
            begin: None,
            reason: reason.into(),
            what: what(patient).to_owned(),
            message,
            until: None,
        }
    }

    /// What is wrong with it, and what is done or why nothing is.
    pub fn sentence(&self) -> String {
        match self.what.as_str() {
            "" => self.message.clone(),
            what => format!("{what}: {}", self.message),
        }
    }

    fn until(self, at: Timestamp) -> Self {
        Self {
            until: Some(at),
            ..self
        }
    }
}

/// What was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// One for each machine that is not well.
    pub verdicts: Vec<Verdict>,
    /// More than allowed are sick at once.
    pub too_many: bool,
    /// When it was last seen that too many are so no more.
    pub calm_since: Option<Timestamp>,
    /// When to look again.
    pub look_again: Option<Timestamp>,
}

/// Decides.
pub fn decide(ward: &Ward) -> Round {
    let mut brakes = Brakes::of(ward);
    let mut order: Vec<&Patient> = ward.patients.iter().collect();
    order.sort_by_key(|patient| (patient.role == Role::Worker, since(patient), patient.name.clone()));
    // What is under way comes first: it is counted before anything begins.
    let rungs: Vec<(&Patient, Option<Rung>)> = order
        .into_iter()
        .map(|patient| (patient, rung(ward, patient)))
        .collect();
    for (patient, rung) in &rungs {
        if rung.as_ref().is_some_and(Rung::is_under_way) {
            brakes.count(patient);
        }
    }
    let mut round = Round {
        too_many: brakes.too_many(ward),
        calm_since: brakes.calm_since,
        ..Round::default()
    };
    for (patient, rung) in rungs {
        let verdict = match rung {
            Some(rung) => verdict(ward, &mut brakes, patient, rung),
            None => frozen(ward, patient),
        };
        round.verdicts.extend(verdict);
    }
    round.verdicts.sort_by(|a, b| a.machine.cmp(&b.machine));
    round.look_again = round
        .verdicts
        .iter()
        .filter_map(|verdict| verdict.until)
        .filter(|at| *at > ward.now)
        .min();
    round
}

fn since(patient: &Patient) -> Option<Timestamp> {
    match &patient.state {
        State::Sick { since, .. } | State::NeverStarted { since, .. } => Some(*since),
        State::Well | State::NotJudged | State::Unknown => None,
    }
}

/// What is wrong with it.
fn what(patient: &Patient) -> &str {
    match &patient.state {
        State::Sick { what, .. } | State::NeverStarted { what, .. } => what,
        State::Well | State::NotJudged | State::Unknown => "",
    }
}

/// Where a machine that is sick, and that somebody cares for, stands.
fn rung(ward: &Ward, patient: &Patient) -> Option<Rung> {
    let rule = patient.rule.as_ref()?;
    match &patient.state {
        State::Sick { since, .. } => Some(ladder::next(patient, &rule.remediation, *since, ward.now)),
        State::NeverStarted { .. } => Some(ladder::for_one_that_never_started(&rule.remediation)),
        State::Well | State::NotJudged => None,
        // What works on the machine goes on; nothing else does.
        State::Unknown => ladder::under_way(patient),
    }
}

fn frozen(ward: &Ward, patient: &Patient) -> Option<Verdict> {
    let lost = ward.unreachable.as_ref()?;
    let concerned = patient.state == State::Unknown && patient.told && patient.rule.is_some();
    concerned.then(|| {
        Verdict::none(
            patient,
            "ClusterUnreachable",
            format!("not known how it is: {lost}"),
        )
    })
}

fn verdict(ward: &Ward, brakes: &mut Brakes, patient: &Patient, rung: Rung) -> Option<Verdict> {
    let rule = patient.rule.as_ref()?;
    let remediation = &rule.remediation;
    let (action, retry, tried) = match rung {
        Rung::UnderWay { action, run } => {
            return Some(Verdict {
                action: Some(action),
                ..Verdict::none(patient, doing(action), format!("{} (run {run})", verb(action)))
            });
        }
        Rung::Settles { action, until, said } => {
            let message = format!("{said}; its node has until {} to be Ready", clock(until));
            return Some(
                Verdict {
                    action: Some(action),
                    ..Verdict::none(patient, "WaitsForNode", message)
                }
                .until(until),
            );
        }
        Rung::Later { at, reason, message } => {
            return Some(
                Verdict::none(
                    patient,
                    reason,
                    format!("{message}; tried again at {}", clock(at)),
                )
                .until(at),
            );
        }
        Rung::Canceled { run } => {
            let message = format!(
                "a person canceled run {run}: nothing more is done until the Machine has the annotation {} = its generation, or is deleted",
                crds::names::annotation::RETRY
            );
            return Some(Verdict::none(patient, "Canceled", message));
        }
        Rung::Exhausted { message } => {
            return Some(Verdict::none(patient, "NothingLeftToTry", message));
        }
        Rung::Next { action, retry, tried } => (action, retry, tried),
    };
    if let Some(stop) = brakes.for_all(ward, patient, rule) {
        return Some(stop);
    }
    let due = since(patient)? + patience(patient, remediation);
    // Once something was tried it is known to be sick; what was tried before says nothing of this time.
    let known = patient
        .efforts
        .last()
        .is_some_and(|last| Some(last.made) >= since(patient));
    if !known && due > ward.now {
        let message = format!(
            "since {}; {} follows at {} if that stays so",
            clock(since(patient)?),
            name(action),
            clock(due)
        );
        return Some(Verdict::none(patient, "Waiting", message).until(due));
    }
    if let Some(run) = &patient.busy {
        let message = format!("{} waits for run {run} to end", name(action));
        return Some(Verdict::none(patient, "RunUnderWay", message));
    }
    if let Some(stop) = brakes.for_one(ward, patient, rule, action) {
        return Some(stop);
    }
    brakes.count(patient);
    if action == Action::Replace {
        brakes.take_spare();
    }
    let why = tried.map(|tried| format!(" ({tried})")).unwrap_or_default();
    Some(Verdict {
        machine: patient.name.clone(),
        action: Some(action),
        begin: Some(Begin { action, retry }),
        reason: doing(action).into(),
        what: what(patient).to_owned(),
        message: format!("{}{why}", verb(action)),
        until: None,
    })
}

/// How long it must have been sick before anything is done.
fn patience(patient: &Patient, remediation: &Remediation) -> SignedDuration {
    let seconds = match patient.state {
        State::NeverStarted { .. } => remediation.never_started_after_seconds,
        _ => remediation.unhealthy_after_seconds,
    };
    SignedDuration::from_secs(i64::from(seconds))
}

/// The action's name, as in the API.
pub fn name(action: Action) -> &'static str {
    match action {
        Action::RestartServices => "RestartServices",
        Action::Reboot => "Reboot",
        Action::Replace => "Replace",
    }
}

fn doing(action: Action) -> &'static str {
    match action {
        Action::RestartServices => "RestartingServices",
        Action::Reboot => "Rebooting",
        Action::Replace => "Replacing",
    }
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::RestartServices => "kubelet and containerd are restarted",
        Action::Reboot => "it is rebooted",
        Action::Replace => "another machine takes its place, and it is removed",
    }
}

fn done(action: Action) -> &'static str {
    match action {
        Action::RestartServices => "restarted kubelet and containerd",
        Action::Reboot => "rebooted it",
        Action::Replace => "replaced it",
    }
}

/// `12:05:09 UTC`.
fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests;
