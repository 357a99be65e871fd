//! What is to be done about the plane itself: what comes before all stages, or the first stage that is open.

use crds::names::{finalizer, pki_secret};
use crds::{ObjectExt, Reason};

use super::action::Action;
use super::contact::Contact;
use super::endpoint::endpoint;
use super::machines::Machines;
use super::observed::Observed;
use super::place::{Place, Stage, Wanted};
use super::progress::StageReport;
use super::unseen::unseen;
use super::{leaves, names, own_cluster, pki, removal, restore, rotating};
use crate::addon::Problem;
use crate::lifecycle::is_provisioned;
use crate::message::count;
use crate::rotation::own;

/// What is to be done.
#[derive(Default)]
pub(super) struct Work {
    pub actions: Vec<Action>,
    /// What comes before all stages.
    pub before: Option<Problem>,
    /// What is to be changed besides.
    pub outdated: Option<Problem>,
}

impl Work {
    /// Nothing can be done.
    fn stopped(problem: Problem) -> Self {
        Self { before: Some(problem), ..Self::default() }
    }

    /// It is not done yet.
    pub fn pause(&mut self) {
        let changes = count(std::mem::take(&mut self.actions).len(), "change");
        let message = format!("paused: {changes} to be made once spec.paused is false");
        let paused = Some(Problem { reason: Reason::Paused, message });
        if self.before.is_some() { self.before = paused } else { self.outdated = paused }
    }

    /// Nothing is done yet, and nothing is said of that here.
    pub fn hold(&mut self) {
        self.actions.clear();
    }

    /// This comes before all stages.
    fn first(action: Action, message: &str) -> Self {
        let problem = Problem { reason: Reason::Applying, message: message.to_owned() };
        Self { actions: vec![action], before: Some(problem), outdated: None }
    }
}

/// Decides, of a plane that stays.
pub(super) fn work(
    observed: &Observed<'_>,
    (wanted, reports): (&[Wanted], &[StageReport]),
    problem: Option<Problem>,
    machines: Option<&Machines<'_>>,
    restore: Option<&restore::Outcome>,
) -> Work {
    let object = observed.object;
    if let Some(problem) = problem {
        return Work::stopped(problem);
    }
    if let Err(why) = observed.host.look() {
        return Work::stopped(unseen(observed, Place::Host, why));
    }
    if !object.has_finalizer(finalizer::KARMADA) {
        return Work::first(Action::AddFinalizer, "beginning");
    }
    if let Some(restore) = restore.filter(|restore| restore.is_before) {
        return Work { actions: restore.actions.clone(), before: restore.problem.clone(), outdated: None };
    }
    if observed.material.keys.is_none() {
        return match was_made(observed) {
            true => Work::stopped(Problem { reason: Reason::PKIMissing, message: pki::missing(object) }),
            false => make_keys(observed),
        };
    }
    prepare(observed, reports, machines).unwrap_or_else(|| {
        let removal = removal::removal(observed, wanted);
        let open = reports.iter().find(|report| !report.is_done());
        let mut actions = removal.actions;
        actions.extend(restore.into_iter().flat_map(|restore| restore.actions.clone()));
        actions.extend(own_cluster::apply(observed));
        actions.extend(open.into_iter().flat_map(|report| report.writes.clone()));
        let pruning = |message: String| Problem { reason: Reason::Pruning, message };
        let outdated = removal.left.first().map(|first| {
            pruning(format!("removing {first}, {} left that are wanted no more", count(removal.left.len(), "object")))
        });
        let outdated = outdated.or_else(|| {
            let taken_off = machines.and_then(Machines::taken_off).filter(|_| observed.plane.seen().is_some());
            let (run, message) = taken_off?;
            actions.extend(run.map(Action::Machines));
            Some(pruning(message))
        });
        let outdated = outdated.or_else(|| machines.and_then(Machines::problem).cloned());
        Work { actions, before: None, outdated }
    })
}

/// The first keys, unless they come with a backup.
fn make_keys(observed: &Observed<'_>) -> Work {
    match rotating::problem(observed) {
        Some(problem) => Work::stopped(problem),
        None => {
            let given = own::given(observed.material.own_authorities.as_ref());
            Work::first(Action::MakeKeys { given }, &format!("making Secret {}", pki_secret(observed.object.name())))
        }
    }
}

/// What the stages need: Services, whose names and addresses certificates are for, and then these.
fn prepare(observed: &Observed<'_>, reports: &[StageReport], machines: Option<&Machines<'_>>) -> Option<Work> {
    let object = observed.object;
    if let Some(machines) = machines {
        return prepare_machines(observed, machines);
    }
    let foundation = reports.first().filter(|report| report.stage == Stage::Foundation && !report.writes.is_empty());
    if observed.facts.service.is_none() {
        let actions = foundation.map(|report| report.writes.clone()).unwrap_or_default();
        let waits = reports.first().and_then(StageReport::waits_for).unwrap_or_else(|| Problem {
            reason: Reason::Applying,
            message: format!("applying Service {}", names::api_server_service(object)),
        });
        return Some(Work { actions, before: Some(waits), outdated: None });
    }
    make_secrets(observed)
}

/// What the stages of a plane on machines need: its machines with etcd, and then the same.
fn prepare_machines(observed: &Observed<'_>, machines: &Machines<'_>) -> Option<Work> {
    if machines.are_installed() {
        return make_secrets(observed);
    }
    let message = || "making the plane's machines".to_owned();
    let problem = machines.problem().cloned();
    Some(Work::stopped(problem.unwrap_or_else(|| Problem { reason: Reason::Installing, message: message() })))
}

/// The certificates and the administrator's kubeconfig; none: they are as they are wanted.
fn make_secrets(observed: &Observed<'_>) -> Option<Work> {
    let object = observed.object;
    let server = match endpoint(object, observed.facts) {
        Ok(server) => server,
        Err(message) => return Some(Work::stopped(Problem { reason: Reason::WaitingForEndpoint, message })),
    };
    if observed.material.leaves_due {
        let wanted = leaves(object, observed.facts);
        return Some(Work::first(Action::IssueCertificates(wanted), "issuing certificates"));
    }
    (observed.kubeconfig != Some(server.as_str()))
        .then(|| Work::first(Action::MakeKubeconfig { server }, "making the administrator's kubeconfig"))
}

/// Whether the plane may have been made with keys that are gone.
fn was_made(observed: &Observed<'_>) -> bool {
    let has_run = observed.object.status.as_ref().is_some_and(|status| status.kubeconfig_ref.is_some());
    if observed.machines.machines.iter().any(|machine| is_provisioned(machine)) {
        return true;
    }
    let Contact::Made(host) = observed.host else { return true };
    has_run || host.listed.iter().any(|live| live["kind"] == "Deployment" || live["kind"] == "StatefulSet")
}
