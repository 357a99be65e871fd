//! Brakes: what keeps an action from beginning. How many are sick, how many are being repaired, what else goes on with
//! the control plane, and what the pool has left.

use std::collections::BTreeMap;

use crds::Reason;
use crds::remediation_policy::{Remediation, RemediationAction as Action};
use crds::step::Role;
use jiff::{SignedDuration, Timestamp};

use super::words::name;
use super::{Patient, Rule, Spares, State, Verdict, Ward};
use crate::moment::after;
use crate::moment::clock;
use crate::sentence::count;
use crate::share::{Rounded, share, written};

/// What is counted while a round is decided.
pub(super) struct Brakes {
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

impl Brakes {
    pub fn of(ward: &Ward) -> Self {
        let sick = ward
            .patients
            .iter()
            .filter(|patient| is_sick(patient, ward.now))
            .count();
        let judged = ward
            .patients
            .iter()
            .filter(|patient| patient.state != State::NotJudged)
            .count();
        let mut brakes = Self {
            sick,
            judged,
            under_repair: ward.elsewhere,
            control_plane: None,
            spares: ward.spares,
            out_of_service: ward
                .sets
                .iter()
                .map(|(name, set)| (name.clone(), set.replaced))
                .collect(),
            calm_since: ward.calm_since,
        };
        let unknown = ward.unreachable.is_some();
        if ward.was_too_many && !unknown && !brakes.too_many(ward) {
            brakes.calm_since = Some(ward.now);
        }
        brakes
    }

    /// Whether there are more sick machines than the policy of any machine allows.
    pub fn too_many(&self, ward: &Ward) -> bool {
        // Not to know is not to be well.
        if ward.unreachable.is_some() {
            return ward.was_too_many;
        }
        let rules = ward.patients.iter().filter_map(|patient| patient.rule.as_ref());
        let mut most = rules.map(|rule| self.most(&rule.remediation));
        most.any(|most| self.sick > most)
    }

    pub fn most(&self, remediation: &Remediation) -> usize {
        // Of three machines one may always be sick, unless it says 0.
        share(&remediation.max_unhealthy, self.judged, Rounded::Up)
    }

    /// From now on something is being done about it.
    pub fn count(&mut self, patient: &Patient) {
        self.under_repair += 1;
        if let Some(set) = patient.set.as_ref().filter(|_| patient.may_serve()) {
            *self.out_of_service.entry(set.clone()).or_default() += 1;
        }
        if patient.role != Role::Worker {
            self.control_plane = Some(patient.name.clone());
        }
    }

    /// A spare Host is spoken for.
    pub fn take_spare(&mut self) {
        self.spares.awaited += 1;
    }

    /// What holds for whatever would be done.
    pub fn for_all(&self, ward: &Ward, patient: &Patient, rule: &Rule) -> Option<Verdict> {
        let remediation = &rule.remediation;
        let stop = |reason: Reason, message: String| Some(Verdict::none(patient, reason, message));
        if ward.paused {
            return stop(
                Reason::ClusterPaused,
                "nothing is done until spec.paused of its cluster is false".into(),
            );
        }
        if !ward.lock_known {
            return stop(
                Reason::LockClosed,
                "nothing is done until the cluster's lock is found again".into(),
            );
        }
        if remediation.paused {
            return stop(
                Reason::RemediationPaused,
                format!("nothing is done while {} is paused", rule.source),
            );
        }
        if patient.skipped {
            let annotation = crds::names::annotation::SKIP_REMEDIATION;
            return stop(
                Reason::Skipped,
                format!("nothing is done while the Machine has the annotation {annotation}"),
            );
        }
        if let Some(lost) = &ward.unreachable {
            return stop(Reason::ClusterUnreachable, format!("nothing is done: {lost}"));
        }
        if let Some(etcd) = &ward.etcd {
            return stop(
                Reason::EtcdUnhealthy,
                format!("nothing is done while etcd is not well: {etcd}"),
            );
        }
        let most = self.most(remediation);
        if self.sick > most && !ward.approved {
            let message = self.too_many_message(remediation, most);
            let message = format!(
                "{message}; or let them be repaired all the same: {}",
                ward.approve
            );
            return stop(Reason::TooManyUnhealthy, message);
        }
        let cooldown = SignedDuration::from_secs(i64::from(remediation.cooldown_seconds));
        let calm = self
            .calm_since
            .map(|calm| after(calm, cooldown))
            .filter(|at| *at > ward.now)?;
        let message = format!("many were sick at once: nothing is done before {}", clock(calm));
        stop(Reason::CoolingDown, message).map(|verdict| verdict.until(calm))
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
    pub fn for_one(&self, ward: &Ward, patient: &Patient, rule: &Rule, action: Action) -> Option<Verdict> {
        let remediation = &rule.remediation;
        let stop = |reason: Reason, message: String| {
            let message = format!("{} waits: {message}", name(action));
            Some(Verdict::none(patient, reason, message))
        };
        if patient.role != Role::Worker {
            let other = self
                .control_plane
                .as_ref()
                .map(|other| format!("{other} is being repaired"));
            if let Some(change) = other.or_else(|| ward.change.clone()) {
                return stop(
                    Reason::OneAtATime,
                    format!("{change}, and one control plane or etcd machine changes at a time"),
                );
            }
            if let Some(risk) = quorum_risk(ward, patient, action) {
                return stop(Reason::QuorumRisk, risk);
            }
        }
        if action == Action::Replace {
            if let Some(why) = &patient.irreplaceable {
                return stop(Reason::NotReplaceable, why.clone());
            }
            let keep = usize::try_from(remediation.keep_spare_hosts).unwrap_or_default();
            if let Some((reason, message)) = self.spares.refuses(patient.fitting, keep) {
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
        self.out_of_service(ward, patient)
            .and_then(|message| stop(Reason::MaxUnavailable, message))
    }

    /// Why no more machines of its set may be out of service: one that serves nobody is no more so for being repaired.
    fn out_of_service(&self, ward: &Ward, patient: &Patient) -> Option<String> {
        let name = patient.set.as_ref().filter(|_| patient.may_serve())?;
        let most = ward.sets.get(name)?.most;
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
fn is_sick(patient: &Patient, now: Timestamp) -> bool {
    match &patient.state {
        State::Sick { .. } => true,
        State::NeverStarted { since, .. } => patient.rule.as_ref().is_some_and(|rule| {
            let seconds = i64::from(rule.remediation.never_started_after_seconds);
            after(*since, SignedDuration::from_secs(seconds)) <= now
        }),
        State::Well | State::NotJudged | State::Unknown => false,
    }
}

/// Why etcd, or the API, would be lost by it.
fn quorum_risk(ward: &Ward, patient: &Patient, action: Action) -> Option<String> {
    let of_etcd = ward.stacked || patient.role == Role::Etcd;
    let disturbs = match action {
        // etcd is no service of kubelet's or containerd's; on a machine of its own it is what is restarted.
        Action::RestartServices => patient.role == Role::Etcd,
        Action::Reboot => of_etcd,
        Action::Replace => true,
    };
    let is_member = |other: &&Patient| other.role == patient.role && other.joined;
    if !disturbs || !patient.joined {
        return None;
    }
    let members = ward.patients.iter().filter(is_member).count();
    let well = ward
        .patients
        .iter()
        .filter(is_member)
        .filter(|other| other.name != patient.name && other.state == State::Well)
        .count();
    let needed = if of_etcd { members / 2 + 1 } else { 1 };
    let (kind, carries) = match patient.role {
        Role::Etcd => ("etcd machine", "data"),
        Role::ControlPlane | Role::Worker => ("control plane", "API"),
    };
    (well < needed).then(|| match members {
        1 => format!("it is the only {kind}: without it there is no {carries}"),
        _ => format!("of {members} {kind}s {well} would be left that are well, and {needed} are needed"),
    })
}
