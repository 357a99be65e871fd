//! How far each stage is: what is to be written, what keeps it from being written, and whether what is there works.

use crds::cluster_addon::AppliedObject;
use crds::names::annotation;
use crds::{KarmadaDeployment, Reason};
use serde_json::Value;

use super::action::Action;
use super::component::Component;
use super::contact::Contact;
use super::names::is_made_for;
use super::observed::Observed;
use super::place::{Hold, Place, Stage, Wanted};
use super::pod::{is_of, trouble};
use super::unseen::unseen;
use super::wanted::definitions::incomplete;
use crate::addon::Problem;
use crate::cluster_addon::conflict::{self, FieldConflict};
use crate::cluster_addon::health::{Health, health};
use crate::cluster_addon::{State, Trial};
use crate::message::{count, quote};

/// How far a stage is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StageReport {
    pub stage: Stage,
    /// What is to be written now.
    pub writes: Vec<Action>,
    /// Whether one of its objects is not there.
    pub is_missing: bool,
    /// What is not written until somebody acts.
    pub problem: Option<Problem>,
    /// Why it cannot be looked at.
    pub unseen: Option<Problem>,
    /// What is not healthy, and why.
    pub unhealthy: Option<Problem>,
    /// Whether an upgrade has yet to come to it: nothing waits for it to work.
    pub is_held: bool,
    /// What goes on, in other words than that it is applied.
    pub doing: Option<String>,
    /// What is passed over: it does not work, and nothing waits for it.
    pub aside: Option<Problem>,
}

impl StageReport {
    /// Nothing is to be done, and nothing known to be wrong.
    pub fn new(stage: Stage) -> Self {
        Self {
            stage,
            writes: Vec::new(),
            is_missing: false,
            problem: None,
            unseen: None,
            unhealthy: None,
            is_held: false,
            doing: None,
            aside: None,
        }
    }

    /// Whether the next stage may begin.
    pub fn is_done(&self) -> bool {
        self.waits_for().is_none()
    }

    /// Why it may not.
    pub fn waits_for(&self) -> Option<Problem> {
        let unhealthy = || self.unhealthy.clone().filter(|_| !self.is_held);
        self.unseen.clone().or_else(|| self.difference()).or_else(unhealthy)
    }

    /// What is not as it is wanted.
    pub fn difference(&self) -> Option<Problem> {
        let message = || self.doing.clone().unwrap_or_else(|| format!("applying {}", self.stage.title()));
        let is_applied = !self.writes.is_empty() || self.doing.is_some();
        let applying = is_applied.then(|| Problem { reason: Reason::Applying, message: message() });
        self.problem.clone().or(applying)
    }

    /// Why it does not work; what works may still differ from what is wanted.
    pub fn broken(&self) -> Option<Problem> {
        let missing = || self.difference().filter(|_| self.is_missing);
        self.unseen.clone().or_else(missing).or_else(|| self.unhealthy.clone()).or_else(|| self.aside.clone())
    }
}

/// The reports of all stages that are wanted, in their order.
pub(super) fn progress(observed: &Observed<'_>, wanted: &[Wanted]) -> Vec<StageReport> {
    let mut reports: Vec<StageReport> = Vec::new();
    let (mut on_host, mut in_plane) = (0, 0);
    for one in wanted {
        if reports.last().is_none_or(|last| last.stage != one.stage) {
            reports.push(StageReport::new(one.stage));
        }
        let (index, seen) = match one.place {
            Place::Host => (on_host, observed.host.look().map(|seen| &seen.states)),
            Place::Plane => (in_plane, observed.plane.look().map(|seen| &seen.states)),
        };
        match one.place {
            Place::Host => on_host += 1,
            Place::Plane => in_plane += 1,
        }
        let Some(report) = reports.last_mut() else { continue };
        match seen {
            Ok(states) => look(observed, one, index, states.get(index).unwrap_or(&State::Missing), report),
            Err(why) => report.unseen = Some(unseen(observed, one.place, why)),
        }
    }
    let needs_definitions = wanted.iter().any(|one| one.stage == Stage::Namespaces);
    if let Some(problem) = definitions_problem(observed).filter(|_| needs_definitions) {
        let at = reports.partition_point(|report| report.stage < Stage::Definitions);
        if reports.get(at).is_none_or(|report| report.stage != Stage::Definitions) {
            reports.insert(at, StageReport::new(Stage::Definitions));
        }
        // Of a bundle that is not the release's nothing is applied.
        reports[at].writes.clear();
        reports[at].is_missing = true;
        reports[at].problem = Some(problem);
    }
    reports
}

fn definitions_problem(observed: &Observed<'_>) -> Option<Problem> {
    match observed.crds {
        Err(problem) => Some(problem.clone()),
        Ok(documents) => incomplete(documents).map(|what| {
            let version = observed.object.spec.version.as_str();
            let message = format!(
                "spec.crds: manifests karmada-crds {version} of the bundle are not those of Karmada {version}: {what}: make the entry of all files of the release's crds.tar.gz"
            );
            Problem { reason: Reason::BundleInvalid, message }
        }),
    }
}

/// What becomes of an object.
enum Fate {
    Settled,
    Apply { force: bool },
    Problem(Problem),
}

fn look(observed: &Observed<'_>, wanted: &Wanted, index: usize, state: &State, report: &mut StageReport) {
    let is_held = match wanted.hold {
        Hold::Free => false,
        Hold::Kept => !matches!(state, State::Missing),
        Hold::Untouched => true,
    };
    match fate(observed, wanted, state) {
        _ if is_held => {}
        Fate::Settled => {}
        Fate::Problem(problem) => drop(report.problem.get_or_insert(problem)),
        Fate::Apply { force } => report.writes.push(Action::Apply {
            place: wanted.place,
            index,
            object: wanted.object.clone(),
            manifest: Box::new(wanted.manifest.clone()),
            force,
        }),
    }
    report.is_missing |= !matches!(state, State::There { .. }) && wanted.hold != Hold::Untouched;
    report.is_held |= wanted.hold != Hold::Free;
    if let Some(unhealthy) = unhealthy(observed, wanted, state) {
        report.unhealthy.get_or_insert(unhealthy);
    }
}

fn fate(observed: &Observed<'_>, wanted: &Wanted, state: &State) -> Fate {
    let object = &wanted.object;
    let problem = |reason: Reason, message: String| Fate::Problem(Problem { reason, message });
    let refused = |why: &str| problem(Reason::ApplyFailed, format!("{object} is refused: {}", quote(why.to_owned())));
    let conflicting = |conflicts: &[FieldConflict]| {
        let message =
            format!("{object}: {}: take that away, or let the operator have the object", conflict::message(conflicts));
        problem(Reason::FieldConflict, message)
    };
    // The plane is nobody else's; of the host only what was made here.
    let is_own = wanted.place == Place::Plane;
    if let State::There { live, .. } = state
        && !is_own
        && !is_made_for(live, observed.object)
    {
        return match is_namespace(object) {
            true => Fate::Settled,
            false => problem(Reason::ObjectTaken, taken(object, live)),
        };
    }
    match state {
        State::There { live, .. } if is_definition(object) && is_newer(live, &wanted.manifest.0) => Fate::Settled,
        State::Missing => Fate::Apply { force: is_own },
        State::There { trial: Trial::Same | Trial::Unknown, .. } => Fate::Settled,
        State::There { trial: Trial::Differs, .. } => Fate::Apply { force: is_own },
        State::There { trial: Trial::Conflicts(conflicts), .. } | State::Conflicting(conflicts) => {
            match is_own || conflicts.iter().all(FieldConflict::is_by_hand) {
                true => Fate::Apply { force: true },
                false => conflicting(conflicts),
            }
        }
        State::There { trial: Trial::Refused(why), .. } | State::Refused(why) => refused(why),
        State::KindUnknown => problem(
            Reason::KindNotFound,
            format!("{object}: its API server knows no {} of {}", object.kind, object.api_version()),
        ),
    }
}

fn is_definition(object: &AppliedObject) -> bool {
    object.kind == "CustomResourceDefinition"
}

/// Whether what is there is of a newer version of Karmada: a definition is never set back, since objects may have
/// fields that the older one would take away.
fn is_newer(live: &Value, wanted: &Value) -> bool {
    let version = |of: &Value| {
        let text = of["metadata"]["annotations"][annotation::VERSION].as_str()?;
        let core = text.split('-').next()?;
        core.split('.').map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    version(live).zip(version(wanted)).is_some_and(|(live, wanted)| live > wanted)
}

fn is_namespace(object: &AppliedObject) -> bool {
    object.group.is_empty() && object.kind == "Namespace"
}

fn taken(object: &AppliedObject, live: &Value) -> String {
    let owner = live["metadata"]["labels"][crds::names::label::KARMADA].as_str();
    let owner = owner.map(|name| format!(" (KarmadaDeployment {name}, or a former one)")).unwrap_or_default();
    format!(
        "{object} is there and was not made for this plane{owner}: delete it, or make this plane in another namespace"
    )
}

/// Why what is there does not work, of the kinds that say so.
fn unhealthy(observed: &Observed<'_>, wanted: &Wanted, state: &State) -> Option<Problem> {
    let State::There { live, .. } = state else { return None };
    let says_so = ["Deployment", "StatefulSet", "CustomResourceDefinition", "APIService"];
    if !says_so.contains(&wanted.object.kind.as_str()) {
        return None;
    }
    let component = Component::ALL.into_iter().find(|component| component.stage() == wanted.stage);
    let pods = match observed.host {
        Contact::Made(seen) => seen.pods.as_slice(),
        _ => &[],
    };
    let (why, has_failed) = match health(live) {
        // Pods that are ending still work.
        Health::Healthy => {
            (component.and_then(|component| still_to_end(live, pods, observed.object, component))?, false)
        }
        Health::Progressing(why) => (why, false),
        Health::Failed(why) => (why, true),
    };
    let pod = component.and_then(|component| trouble(pods, observed.object, component));
    let reason = if has_failed || pod.is_some() { Reason::ComponentUnhealthy } else { Reason::ComponentStarting };
    let pod = pod.map(|pod| format!(": {}", quote(pod))).unwrap_or_default();
    let message = format!("waiting for {}: {}: {}{pod}", wanted.stage.title(), wanted.object, quote(why));
    Some(Problem { reason, message })
}

/// What is left of a workload that is to have no Pods.
fn still_to_end(live: &Value, pods: &[Value], object: &KarmadaDeployment, component: Component) -> Option<String> {
    let left = pods.iter().filter(|pod| is_of(pod, object, component)).count();
    (live["spec"]["replicas"] == 0 && left > 0).then(|| format!("{} still to end", count(left, "Pod")))
}
