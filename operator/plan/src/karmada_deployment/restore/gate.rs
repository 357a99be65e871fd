//! Whether a step of a restore is done.

use crds::Reason;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use serde_json::Value;

use super::super::action::Action;
use super::super::component::Component;
use super::super::contact::Contact;
use super::super::place::{Place, Stage, object_of};
use super::super::pod::first_trouble;
use super::super::removal::delete;
use super::super::restore_seen::FormerPlane;
use super::approval;
use super::data::NAME;
use super::scene::Scene;
use crate::addon::Problem;
use crate::cluster_addon::State;
use crate::cluster_addon::health::{Health, health};
use crate::message::quote;

/// Why the data is not there yet, and what is done about it; none: every member has its.
pub(super) fn data(scene: &Scene<'_>) -> Option<(Problem, Vec<Action>)> {
    let observed = scene.observed;
    let Contact::Made(host) = observed.host else { return Some((restoring("looking at the host".into()), Vec::new())) };
    let on_host = scene.wanted.iter().filter(|one| one.place == Place::Host).zip(&host.states);
    let jobs: Vec<&State> = on_host.filter(|(one, _)| one.stage == Stage::EtcdData).map(|(_, state)| state).collect();
    let live = |state: &&State| match state {
        State::There { live, .. } => Some(live.as_ref().clone()),
        _ => None,
    };
    let done = jobs.iter().filter_map(live).filter(|job| health(job) == Health::Healthy).count();
    if !jobs.is_empty() && done == jobs.len() {
        return None;
    }
    // One that has given up begins anew.
    let failed = jobs.iter().filter_map(live).filter(|job| matches!(health(job), Health::Failed(_)));
    let again: Vec<Action> = failed.filter_map(|job| delete(Place::Host, &job)).collect();
    let open = scene.reports.iter().find(|report| report.stage < Stage::EtcdData).and_then(|report| report.waits_for());
    let trouble = open.map(|open| open.message).or_else(|| trouble(&host.pods));
    let trouble = trouble.map(|why| format!(": {}", quote(why))).unwrap_or_default();
    Some((restoring(format!("{done} of {} members of etcd have their data{trouble}", jobs.len())), again))
}

/// Why a Pod that restores does not end well: what its programs said, or what it waits for.
fn trouble(pods: &[Value]) -> Option<String> {
    let of_restore = || pods.iter().filter(|pod| pod["metadata"]["labels"]["app.kubernetes.io/name"] == NAME);
    let said = |pod: &Value| {
        let of = |field: &str| pod["status"][field].as_array().cloned().unwrap_or_default();
        let mut all = of("initContainerStatuses").into_iter().chain(of("containerStatuses"));
        let ended = all.find_map(|one| {
            let ended = one["state"]["terminated"].clone();
            ended["exitCode"].as_i64().filter(|code| *code != 0).map(|code| (code, ended))
        });
        let (code, ended) = ended?;
        let name = object_of(pod).name;
        Some(format!("Pod {name} ended with {code}: {}", ended["message"].as_str().unwrap_or("it did not say why")))
    };
    of_restore().find_map(said).or_else(|| first_trouble(of_restore()))
}

/// Why what serves does not serve yet.
pub(super) fn serve(scene: &Scene<'_>) -> Option<Problem> {
    scene.reports.iter().find_map(|report| report.waits_for()).or_else(|| {
        let refused = scene.observed.plane.seen()?.policy_refused.as_ref()?;
        Some(restoring(format!("a PropagationPolicy would be refused: {refused}")))
    })
}

/// Why two planes would act: the one that was backed up is still there.
pub(super) fn fence(scene: &Scene<'_>, record: &KarmadaRestoredFrom) -> Option<Problem> {
    let problem = |message: String| Some(Problem { reason: Reason::FormerPlaneRuns, message });
    if let Some(other) = approval::is_managed(scene.observed.others, record) {
        let (namespace, name) = (crds::ObjectExt::namespace(other), crds::ObjectExt::name(other));
        return problem(format!(
            "KarmadaDeployment {namespace}/{name} is the plane that was backed up: set its spec.deletionPolicy to Detach, delete it, and \
             stop its programs, so that its members are left to this one"
        ));
    }
    match (&scene.observed.restore.former, &record.endpoint) {
        (FormerPlane::Answers, Some(endpoint)) => problem(format!(
            "the plane that was backed up still answers at {endpoint}: stop its programs, or two planes undo each other's work"
        )),
        (FormerPlane::NotAsked, Some(endpoint)) => Some(restoring(format!("asking whether {endpoint} still answers"))),
        _ => None,
    }
}

/// Why what was started by this step does not work yet.
pub(super) fn started(scene: &Scene<'_>, step: Step) -> Option<Problem> {
    let open = || scene.reports.iter().find_map(|report| report.waits_for());
    let starting = |problem: Problem| restoring(problem.message);
    match step {
        Step::Release => open().or_else(|| {
            let plane = scene.observed.plane.seen()?;
            let is_due = |name: &str| name != Component::KubeControllerManager.name();
            let leader = plane.leaders.iter().find(|leader| !leader.healthy && is_due(&leader.name))?;
            let why = leader.message.as_deref().unwrap_or("its leader is silent");
            Some(restoring(format!("{}: {why}", leader.name)))
        }),
        _ => open().or_else(|| scene.silent.cloned().map(starting)),
    }
}

pub(super) fn restoring(message: String) -> Problem {
    Problem { reason: Reason::Restoring, message }
}
