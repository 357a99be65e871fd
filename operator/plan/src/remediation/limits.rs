//! Limits: what keeps an action from beginning. How many are sick, how many are being repaired, what else goes on with
//! the control plane, and what the pool has left.

use std::collections::BTreeMap;

use crds::Reason;
use crds::remediation_policy::{Remediation, RemediationAction as Action};
use crds::step::Role;
use jiff::{SignedDuration, Timestamp};

use super::decision::Decision;
use super::words::name;
use super::{MachineHealth, RemediationInput, Rule, Spares, State};
use crate::int_or_percent::{Rounded, int_or_percent, written};
use crate::message::count;
use crate::moment::after;
use crate::moment::clock;

/// What is counted while a round is decided.
pub(super) struct Limits {
    pub sick: usize,
    pub judged: usize,
    /// Machines of the namespace that something is being done about.
    under_repair: usize,
    /// A control plane that something is being done about.
    control_plane: Option<String>,
    spares: Spares,
    /// By set: machines that are out of service for our own doing.
    out_of_service: BTreeMap<String, usize>,
    /// When it was last seen that too many are so no more.
    pub calm_since: Option<Timestamp>,
}

impl Limits {
    pub fn new(input: &RemediationInput) -> Self {
        let sick = input.machines.iter().filter(|health| is_sick(health, input.now)).count();
        let judged = input.machines.iter().filter(|health| health.state != State::NotJudged).count();
        let mut limits = Self {
            sick,
            judged,
            under_repair: input.elsewhere,
            control_plane: None,
            spares: input.spares,
            out_of_service: input.sets.iter().map(|(name, set)| (name.clone(), set.replaced)).collect(),
            calm_since: input.calm_since,
        };
        let unknown = input.unreachable.is_some();
        if input.was_too_many && !unknown && !limits.too_many(input) {
            limits.calm_since = Some(input.now);
        }
        limits
    }

    /// Whether there are more sick machines than the policy of any machine allows.
    pub fn too_many(&self, input: &RemediationInput) -> bool {
        // Not to know is not to be well.
        if input.unreachable.is_some() {
            return input.was_too_many;
        }
        let rules = input.machines.iter().filter_map(|health| health.rule.as_ref());
        let mut most = rules.map(|rule| self.most(&rule.remediation));
        most.any(|most| self.sick > most)
    }

    pub fn most(&self, remediation: &Remediation) -> usize {
        // Of three machines one may always be sick, unless it says 0.
        int_or_percent(&remediation.max_unhealthy, self.judged, Rounded::Up)
    }

    /// From now on something is being done about it.
    pub fn count(&mut self, health: &MachineHealth) {
        self.under_repair += 1;
        if let Some(set) = health.set.as_ref().filter(|_| health.may_serve()) {
            *self.out_of_service.entry(set.clone()).or_default() += 1;
        }
        if health.role != Role::Worker {
            self.control_plane = Some(health.name.clone());
        }
    }

    /// A spare Host is spoken for.
    pub fn take_spare(&mut self) {
        self.spares.awaited += 1;
    }

    /// What holds for whatever would be done.
    pub fn for_all(&self, input: &RemediationInput, health: &MachineHealth, rule: &Rule) -> Option<Decision> {
        let remediation = &rule.remediation;
        let stop = |reason: Reason, message: String| Some(Decision::none(health, reason, message));
        if input.paused {
            return stop(Reason::ClusterPaused, "nothing is done until spec.paused of its cluster is false".into());
        }
        if !input.lock_known {
            return stop(Reason::LockClosed, "nothing is done until the cluster's lock is found again".into());
        }
        if remediation.paused {
            return stop(Reason::RemediationPaused, format!("nothing is done while {} is paused", rule.source));
        }
        if let Some(why) = &health.skipped {
            return stop(Reason::Skipped, format!("nothing is done while {why}"));
        }
        if let Some(lost) = &input.unreachable {
            return stop(Reason::ClusterUnreachable, format!("nothing is done: {lost}"));
        }
        if let Some(etcd) = &input.etcd {
            return stop(Reason::EtcdUnhealthy, format!("nothing is done while etcd is not well: {etcd}"));
        }
        let most = self.most(remediation);
        if self.sick > most && !input.approved {
            let message = self.too_many_message(remediation, most);
            let message = format!("{message}; or let them be repaired all the same: {}", input.approve);
            return stop(Reason::TooManyUnhealthy, message);
        }
        let cooldown = SignedDuration::from_secs(i64::from(remediation.cooldown_seconds));
        let calm = self.calm_since.map(|calm| after(calm, cooldown)).filter(|at| *at > input.now)?;
        let message = format!("many were sick at once: nothing is done before {}", clock(calm));
        stop(Reason::CoolingDown, message).map(|decision| decision.until(calm))
    }

    fn too_many_message(&self, remediation: &Remediation, most: usize) -> String {
        format!(
            "{} of {} are sick at once, more than maxUnhealthy {} ({most}): that is no trouble of single machines, and nothing is done until fewer are, or maxUnhealthy is raised",
            self.sick,
            count(self.judged, "machine"),
            written(&remediation.max_unhealthy)
        )
    }

    /// What holds for this machine and this action.
    pub fn for_one(
        &self,
        input: &RemediationInput,
        health: &MachineHealth,
        rule: &Rule,
        action: Action,
    ) -> Option<Decision> {
        let remediation = &rule.remediation;
        let stop = |reason: Reason, message: String| {
            let message = format!("{} waits: {message}", name(action));
            Some(Decision::none(health, reason, message))
        };
        if health.role != Role::Worker {
            let other = self.control_plane.as_ref().map(|other| format!("{other} is being repaired"));
            if let Some(change) = other.or_else(|| input.change.clone()) {
                return stop(
                    Reason::OneAtATime,
                    format!("{change}, and one control plane or etcd machine changes at a time"),
                );
            }
            if let Some(risk) = quorum_risk(input, health, action) {
                return stop(Reason::QuorumRisk, risk);
            }
        }
        if action == Action::Replace {
            if let Some(why) = &health.irreplaceable {
                return stop(Reason::NotReplaceable, why.clone());
            }
            let keep = usize::try_from(remediation.keep_spare_hosts).unwrap_or_default();
            if let Some((reason, message)) = self.spares.refuses(health.fitting, keep) {
                return stop(reason, message);
            }
        }
        let most = usize::try_from(remediation.max_concurrent).unwrap_or(1);
        if self.under_repair >= most {
            let message = format!(
                "{} under repair, and maxConcurrent of {} is {most}",
                match self.under_repair {
                    1 => "1 machine of this namespace is".to_owned(),
                    more => format!("{more} machines of this namespace are"),
                },
                rule.source
            );
            return stop(Reason::BudgetExhausted, message);
        }
        self.out_of_service(input, health).and_then(|message| stop(Reason::MaxUnavailable, message))
    }

    /// Why no more machines of its set may be out of service: one that serves nobody is no more so for being repaired.
    fn out_of_service(&self, input: &RemediationInput, health: &MachineHealth) -> Option<String> {
        let name = health.set.as_ref().filter(|_| health.may_serve())?;
        let most = input.sets.get(name)?.most;
        let out = self.out_of_service.get(name).copied().unwrap_or_default();
        (out >= most).then(|| {
            format!(
                "{} of set {name} {} out of service for a repair, and its maxUnavailable comes to {most}",
                count(out, "machine"),
                if out == 1 { "is" } else { "are" }
            )
        })
    }
}

/// Counts from the first moment on: a wave of failures is to be seen as one before anything is done about its first.
fn is_sick(health: &MachineHealth, now: Timestamp) -> bool {
    match &health.state {
        State::Sick { .. } => true,
        State::NeverStarted { since, .. } => health.rule.as_ref().is_some_and(|rule| {
            let seconds = i64::from(rule.remediation.never_started_after_seconds);
            after(*since, SignedDuration::from_secs(seconds)) <= now
        }),
        State::Well | State::NotJudged | State::Unknown => false,
    }
}

/// Why etcd, or the API, would be lost by it.
fn quorum_risk(input: &RemediationInput, health: &MachineHealth, action: Action) -> Option<String> {
    let of_etcd = input.stacked || health.role == Role::Etcd;
    let disturbs = match action {
        // etcd is no service of kubelet's or containerd's; on a machine of its own it is what is restarted.
        Action::RestartServices => health.role == Role::Etcd,
        Action::Reboot => of_etcd,
        Action::Replace => true,
    };
    let is_member = |other: &&MachineHealth| other.role == health.role && other.joined;
    if !disturbs || !health.joined {
        return None;
    }
    let members = input.machines.iter().filter(is_member).count();
    let well = input
        .machines
        .iter()
        .filter(is_member)
        .filter(|other| other.name != health.name && other.state == State::Well)
        .count();
    let needed = if of_etcd { members / 2 + 1 } else { 1 };
    let (kind, carries) = match health.role {
        Role::Etcd => ("etcd machine", "data"),
        Role::ControlPlane | Role::Worker => ("control plane", "API"),
    };
    (well < needed).then(|| match members {
        1 => format!("it is the only {kind}: without it there is no {carries}"),
        _ => format!("of {members} {kind}s {well} would be left that are well, and {needed} are needed"),
    })
}
