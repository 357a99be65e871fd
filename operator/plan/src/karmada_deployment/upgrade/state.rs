//! An upgrade as it stands, and what follows from that for each component.

use std::collections::BTreeMap;

use crds::karmada_deployment::{KarmadaUpgradeStatus, UpgradeStep};
use crds::{ComponentVersion, KarmadaDeployment};

use super::super::component::Component;
use super::super::observed::HostFacts;
use super::super::place::Hold;
use super::super::release::Release;
use super::approval;
use super::route::{Extent, STOPPED, route, step};
use super::running::{changes, was_made};
use super::text::summary;
use crate::message::cut;

/// An upgrade that is planned, or under way.
pub(in super::super) struct Upgrade {
    /// As `status.upgrade` has it, or is to have it.
    pub record: KarmadaUpgradeStatus,
    /// The versions that run.
    pub running: BTreeMap<Component, String>,
    /// The last version of the plane that was whole.
    whole: Option<String>,
}

/// What an upgrade lets be done to a component now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Due {
    /// It is as the spec wants it.
    Now,
    /// It stays as it is; one that is gone comes back in this version.
    Kept(String),
    /// None of its Pods runs, of which the next would be of this version.
    Stopped(String),
    /// It is not there, and comes later.
    Later,
}

/// The upgrade that is wanted by this spec; none: what runs has the versions that are wanted, or nothing was made yet.
pub(in super::super) fn find(object: &KarmadaDeployment, facts: &HostFacts) -> Option<Upgrade> {
    let (release, running) = (Release::wanted(&object.spec)?, facts.versions.clone());
    let status = object.status.as_ref();
    let known = status.and_then(|status| status.upgrade.as_ref());
    let whole = status.and_then(|status| status.version.clone());
    let left = changes(object, release, &running);
    let is_same = |known: &&KarmadaUpgradeStatus| {
        let listed = |left: (&String, &String)| known.changes.iter().any(|change| (&change.name, &change.to) == left);
        let version = object.spec.version.as_str();
        known.step.is_some() && known.to == version && left.iter().all(|change| listed((&change.name, &change.to)))
    };
    if let Some(known) = known.filter(is_same) {
        return Some(Upgrade { record: known.clone(), running, whole });
    }
    if left.is_empty() || !was_made(object, &running) {
        return None;
    }
    let wanted: Vec<Component> =
        Component::every().filter(|component| component.replicas(&object.spec).is_some()).collect();
    let is_minor = left.iter().any(|change| {
        Component::from_name(&change.name).is_some_and(Component::is_of_karmada)
            && minor(&change.from) != minor(&change.to)
    });
    let follower = left.iter().find(|change| Component::from_name(&change.name).is_some_and(Component::follows_plane));
    let to = object.spec.version.as_str().to_owned();
    let mut record = KarmadaUpgradeStatus {
        from: follower.map_or_else(|| to.clone(), |change| change.from.clone()),
        to,
        steps: route(&Extent { changes: &left, is_minor, moves_plane: follower.is_some(), wanted: &wanted }),
        interrupts: known.is_some_and(|known| known.step.is_some() || known.interrupts),
        changes: left,
        ..KarmadaUpgradeStatus::default()
    };
    record.digest = approval::digest(object, &record);
    record.summary = summary(object, &record);
    Some(Upgrade { record, running, whole })
}

/// Major and minor of a version; none: it is no version.
pub(super) fn minor(version: &str) -> Option<(u32, u32)> {
    version.parse().ok().map(|version: ComponentVersion| version.minor())
}

impl Upgrade {
    /// The same, with this at the end of its plan; what has begun is past it.
    pub fn warned(mut self, warning: &str) -> Self {
        if !self.has_begun() {
            self.record.summary = cut(format!("{}{warning}", self.record.summary));
        }
        self
    }

    pub fn has_begun(&self) -> bool {
        self.record.step.is_some()
    }

    /// Whether the plane was never seen whole, so that nothing is asked of it.
    pub(super) fn was_never_whole(&self) -> bool {
        self.whole.is_none()
    }

    /// Whether a minor version of Karmada's programs changes.
    pub fn is_minor(&self) -> bool {
        self.record.steps.contains(&UpgradeStep::StopControllers)
    }

    /// Whether a step is taken, and lies ahead.
    pub(super) fn is_ahead(&self, step: UpgradeStep) -> bool {
        let at = |wanted: UpgradeStep| self.record.steps.iter().position(|step| *step == wanted);
        let now = self.record.step.and_then(at);
        at(step).is_some_and(|place| now.is_none_or(|now| now < place))
    }

    /// What is done to a component.
    pub fn due(&self, object: &KarmadaDeployment, component: Component) -> Due {
        if !self.is_ahead(step(component)) {
            return Due::Now;
        }
        let is_option = matches!(
            component,
            Component::Descheduler | Component::Estimator | Component::Search | Component::MetricsAdapter
        );
        let of_plane = || self.whole.clone().filter(|_| component.is_of_karmada());
        let wanted = || Release::wanted(&object.spec).map(|release| component.version(&object.spec, release));
        let running = self.running.get(&component).cloned();
        if running.is_none() && is_option {
            return Due::Later;
        }
        match running.or_else(of_plane).or_else(wanted) {
            None => Due::Now,
            Some(version) if self.is_stopped(component) => Due::Stopped(version),
            Some(version) => Due::Kept(version),
        }
    }

    /// The components of which no Pod runs now.
    pub fn stopped(&self, object: &KarmadaDeployment) -> Vec<Component> {
        let is_stopped = |component: &Component| matches!(self.due(object, *component), Due::Stopped(_));
        let wanted = STOPPED.into_iter().filter(|component| component.replicas(&object.spec).is_some());
        wanted.filter(is_stopped).collect()
    }

    fn is_stopped(&self, component: Component) -> bool {
        self.has_begun() && self.is_minor() && STOPPED.contains(&component)
    }

    /// What is done to the CustomResourceDefinitions of `spec.version`.
    pub fn definitions(&self) -> Hold {
        if self.is_ahead(UpgradeStep::Definitions) { Hold::Untouched } else { Hold::Free }
    }

    /// What the webhook is asked for: what all of these releases answer; and what is done to that.
    pub fn webhooks(&self, wanted: &'static Release) -> (Vec<&'static Release>, Hold) {
        let known = self.record.changes.iter().find(|change| change.name == Component::Webhook.name());
        let former = known.and_then(|change| Release::find(minor(&change.from)?)).unwrap_or(wanted);
        match (self.is_ahead(UpgradeStep::RetireWebhooks), self.is_ahead(UpgradeStep::AddWebhooks)) {
            (true, _) => (vec![former], Hold::Kept),
            (false, true) => (vec![wanted, former], Hold::Free),
            (false, false) => (vec![wanted], Hold::Free),
        }
    }
}
