//! Growth: changes of the control plane and etcd of a running cluster, one at a time. Who leaves is taken out of etcd
//! first, then the API servers are told of the members, and only then the next machine joins.

mod balancing;
mod joining;
mod loss;
mod removal;
mod shrink;
mod telling;

use crds::PlaybookRun;
use crds::step::{Intent, Role, Step as RunStep};

use super::Step;
use super::runs::describe;
use super::scene::Scene;
use crate::Next;
use crate::attempts;
use crate::departure::Council;

pub(super) use joining::api_is_gone;
pub(super) use removal::why_it_stays;
pub(super) use shrink::held;

/// What is under way with the control plane and etcd.
#[derive(Default)]
pub(super) struct Growth {
    pub steps: Vec<Step>,
    /// When to look again.
    pub next: Option<Next>,
    /// What goes on, or why it does not.
    pub says: Option<Says>,
    /// etcd is lost: nothing else is begun.
    pub stops: bool,
}

impl Growth {
    /// The change of the control plane or etcd that begins now.
    pub fn begins(&self) -> Option<&PlaybookRun> {
        self.steps.iter().find_map(|step| match step {
            Step::CreateRun(run) if run.spec.intent != Intent::Probe => Some(&**run),
            _ => None,
        })
    }
}

/// What goes on with the machines of a role.
pub(super) struct Says {
    pub role: Role,
    pub reason: &'static str,
    pub message: String,
    /// Something is wrong, and not only on its way.
    pub bad: bool,
}

/// What one kind of change comes to; nothing after it is looked at.
#[derive(Default)]
struct Found {
    steps: Vec<Step>,
    next: Option<Next>,
    says: Option<Says>,
}

impl Found {
    fn says(role: Role, reason: &'static str, message: String, bad: bool) -> Self {
        let says = Says {
            role,
            reason,
            message,
            bad,
        };
        Self {
            says: Some(says),
            ..Self::default()
        }
    }

    fn and(self, step: Step) -> Self {
        Self {
            steps: vec![step],
            ..self
        }
    }

    fn later(self, next: Next) -> Self {
        Self {
            next: Some(next),
            ..self
        }
    }
}

/// Decides; machines join only where the cluster's wishes can be met.
pub(super) fn of(scene: &Scene<'_>, may_join: bool) -> Growth {
    let mut growth = Growth::default();
    if scene.installed.is_none() {
        return growth;
    }
    let council = scene.council();
    growth.steps.extend(outcasts(scene, &council));
    let loss = loss::of(scene, &council);
    (growth.stops, growth.says, growth.next) = (loss.says.is_some(), loss.says, loss.next);
    growth.steps.extend(loss.steps);
    if growth.stops {
        return growth;
    }
    let found = removal::of(scene, &council)
        .or_else(|| telling::of(scene, &council))
        .or_else(|| balancing::of(scene, &council))
        .or_else(|| joining::of(scene, &council).filter(|_| may_join));
    if let Some(found) = found {
        growth.steps.extend(found.steps);
        growth.says = found.says;
        let next = found.next.unwrap_or(Next::OnChange);
        growth.next = Some(growth.next.unwrap_or(Next::OnChange).or_sooner(next));
    }
    growth
}

/// Machines that stay although etcd goes on without them, since one member was made the only one: others take their place.
fn outcasts(scene: &Scene<'_>, council: &Council<'_>) -> Vec<Step> {
    let live = scene.live.iter();
    live.filter(|member| council.is_of_etcd(member.machine) && council.left_at(member.machine).is_some())
        .map(|member| Step::DeleteMachine(Box::new(member.machine.clone())))
        .collect()
}

/// The run that works, or waits, for a step.
fn active_with<'a>(scene: &Scene<'a>, step: RunStep) -> Option<&'a crds::PlaybookRun> {
    let mut active = scene.active.iter().copied();
    active.find(|run| run.spec.steps.contains(&step) && !attempts::marks(run).is_empty())
}

/// What a run says of itself, or that it waits.
fn under_way(scene: &Scene<'_>, role: Role, reason: &'static str, run: &crds::PlaybookRun) -> Found {
    Found::says(role, reason, describe(scene, run), false)
}

/// The same, in other words than those of its intent.
fn doing(scene: &Scene<'_>, role: Role, reason: &'static str, what: &str, run: &crds::PlaybookRun) -> Found {
    let says = describe(scene, run);
    let (_, place) = says.split_once(": ").unwrap_or(("", &says));
    Found::says(role, reason, format!("{what}: {place}"), false)
}
