//! What a KarmadaDeployment shows.

use crds::cluster::ComponentHealth;
use crds::conditions::{Statement, state};
use crds::karmada_deployment::{KarmadaComponentStatus, KarmadaMemberStatus};
use crds::names::{condition, kubeconfig_secret};
use crds::references::LocalRef;
use crds::{KarmadaDeploymentStatus, ObjectExt, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::Value;

use super::component::Component;
use super::contact::Contact;
use super::estimators;
use super::etcd;
use super::machines::Machines;
use super::members::{NO_MEMBERS, counts, departure, members_ready, without_estimator};
use super::observed::Observed;
use super::place::{Place, Stage, Wanted};
use super::probe::hidden_by;
use super::progress::StageReport;
use super::restore;
use super::upgrade::{Outcome, Upgrade, image_version};
use crate::addon::Problem;
use crate::backed_up::backed_up;
use crate::cluster_addon::State;
use crate::message::cut;

/// What the planner found, from which the conditions follow.
pub(super) struct Found<'a> {
    pub wanted: &'a [Wanted],
    pub reports: &'a [StageReport],
    /// What comes before all stages.
    pub before: Option<Problem>,
    /// What is to be changed, beside the stages; and what a pause keeps from being done.
    pub outdated: Option<Problem>,
    /// Why it does not work, deeper than what Pods say of themselves.
    pub silent: Option<Problem>,
    /// The upgrade that is wanted, and what becomes of it.
    pub upgrade: Option<(&'a Outcome, &'a Upgrade)>,
    /// What becomes of the backup that it begins with; none: it begins empty, or stands.
    pub restore: Option<&'a restore::Outcome>,
    /// The members from now on.
    pub members: &'a [KarmadaMemberStatus],
    /// What becomes of the rotation of an authority.
    pub rotating: Option<&'a Statement>,
    /// When programs were restarted last for members' tokens.
    pub restarted_at: Option<Time>,
    /// The machines, where it is on machines.
    pub machines: Option<&'a Machines<'a>>,
}

/// The status of one that is not being deleted.
pub(super) fn status(observed: &Observed<'_>, found: &Found<'_>) -> KarmadaDeploymentStatus {
    let parts = [
        etcd_ready(observed, found),
        api_server_ready(found),
        components_ready(observed, found),
        members_ready(found.members),
        up_to_date(found),
    ];
    let ready = ready(&parts, found);
    let mut shown = base(observed, found.members);
    shown.restored_from = match found.restore {
        Some(restore) => restore.record.clone(),
        None => shown.restored_from,
    };
    shown.upgrade = found.upgrade.and_then(|(outcome, _)| outcome.record.clone());
    shown.message = Some(cut(ready.message.clone()));
    shown.components = match found.machines {
        Some(machines) => machines.components(),
        None => components(observed, found.wanted),
    };
    if let Some(machines) = found.machines {
        machines.record(&mut shown);
    }
    shown.restarted_for_tokens_at = found.restarted_at.clone();
    let has_version =
        parts.iter().filter(|part| part.type_ != condition::MEMBERS_READY).all(|part| part.status == Some(true));
    let is_over = found.upgrade.is_some_and(|(outcome, _)| outcome.record.is_none());
    if has_version || is_over {
        shown.version = Some(observed.object.spec.version.as_str().to_owned());
    }
    let closed = found.machines.and_then(|machines| machines.round.tokens.lost()).map(|lost| lost.statement());
    let store = found.machines.and_then(Machines::store).map(|verdict| verdict.statement());
    let rotated = found.rotating.cloned();
    let of_machines = found.machines.map(|machines| machines.round.statements.clone()).unwrap_or_default();
    let statements: Vec<Statement> = [ready]
        .into_iter()
        .chain(parts)
        .chain(backups(observed))
        .chain(rotated)
        .chain(closed)
        .chain(store)
        .chain(of_machines)
        .collect();
    let ends = [
        condition::BACKED_UP,
        condition::LOCK_AVAILABLE,
        condition::AUTHORITIES_ROTATED,
        condition::ETCD_DEFRAGMENTED,
        condition::STORE_IS_OLDER,
    ];
    shown
        .conditions
        .retain(|old| !ends.contains(&old.type_.as_str()) || statements.iter().any(|new| new.type_ == old.type_));
    shown.conditions = state(&shown.conditions, &statements, Some(observed.object.generation()), &Time(observed.now));
    shown
}

/// Whether it was backed up of late, where a schedule is for it.
fn backups(observed: &Observed<'_>) -> Option<Statement> {
    let name = observed.object.name();
    let schedules = observed.schedules.iter().copied().filter(|schedule| schedule.spec.is_for_plane(name));
    backed_up(schedules, name, observed.now).map(|said| said.statement)
}

/// The status of one that is being deleted.
pub(super) fn deleting(
    observed: &Observed<'_>,
    told: &Problem,
    members: &[KarmadaMemberStatus],
    machines: Option<&Machines<'_>>,
) -> KarmadaDeploymentStatus {
    let Problem { reason, message } = told;
    let mut shown = base(observed, members);
    shown.message = Some(cut(message.clone()));
    let statements = [
        Statement::new(condition::READY, false, Reason::Deleting, cut(message.clone())),
        Statement::new(condition::DELETING, true, *reason, cut(message.clone())),
    ];
    if let Some(machines) = machines {
        machines.record(&mut shown);
    }
    let store = machines.and_then(Machines::store).map(|verdict| verdict.statement());
    let is_over = |there: &Condition| there.type_ == condition::STORE_IS_OLDER && store.is_none();
    shown.conditions.retain(|there| !is_over(there));
    let statements: Vec<Statement> = statements.into_iter().chain(store).collect();
    shown.conditions = state(&shown.conditions, &statements, Some(observed.object.generation()), &Time(observed.now));
    shown
}

/// What is shown in any case.
fn base(observed: &Observed<'_>, members: &[KarmadaMemberStatus]) -> KarmadaDeploymentStatus {
    let object = observed.object;
    let old = object.status.clone().unwrap_or_default();
    KarmadaDeploymentStatus {
        observed_generation: Some(object.generation()),
        endpoint: observed.kubeconfig.map(str::to_owned).or(old.endpoint),
        kubeconfig_ref: observed
            .kubeconfig
            .map(|_| LocalRef::new(kubeconfig_secret(object.name())))
            .or(old.kubeconfig_ref),
        certificates_expire_at: observed.material.first_end.map(Time).or(old.certificates_expire_at),
        members: members.to_vec(),
        member_counts: Some(counts(members)),
        ..old
    }
}

/// The first part that does not work, or all do, and what is changed meanwhile. Where an upgrade waits for it, its step
/// is said as well, and how to go back.
fn ready(parts: &[Statement; 5], found: &Found<'_>) -> Statement {
    match parts.iter().find(|part| is_bad(part.type_, part.status, &part.reason)) {
        Some(part) => {
            let step = step_under_way(found).filter(|_| part.type_ != condition::MEMBERS_READY);
            let message = step.map_or(part.message.clone(), |step| cut(step.message.clone()));
            Statement::new(condition::READY, part.status, part.reason.clone(), message)
        }
        None => {
            let upgrade = found.upgrade.and_then(|(outcome, _)| outcome.problem.as_ref());
            let change = parts.iter().find(|part| part.type_ == condition::UP_TO_DATE && part.status != Some(true));
            let rotation = found.rotating.filter(|rotation| rotation.status != Some(true));
            let doing = upgrade.map(|problem| &problem.message).or(rotation.map(|rotation| &rotation.message));
            let doing = doing.or(change.map(|part| &part.message));
            let doing = doing.map(|doing| format!("; {doing}")).unwrap_or_default();
            let (estimators, departure) = (without_estimator(found.members), departure(found.members));
            let members = if counts(found.members).total == 0 { NO_MEMBERS } else { "all members are reached" };
            let message = format!("the plane works and {members}{estimators}{departure}{doing}");
            Statement::new(condition::READY, true, Reason::AllReady, cut(message))
        }
    }
}

/// What an upgrade that has begun waits for.
fn step_under_way<'a>(found: &Found<'a>) -> Option<&'a Problem> {
    let (outcome, _) = found.upgrade?;
    outcome.record.as_ref()?.step?;
    outcome.problem.as_ref()
}

/// Whether a part does not work. That something is being changed is no part of it; that it cannot be until somebody
/// acts is.
fn is_bad(type_: &str, status: Option<bool>, reason: &str) -> bool {
    status != Some(true) && (type_ != condition::UP_TO_DATE || Reason::is_warning_in(reason))
}

/// Whether the plane itself works, whatever its members do.
pub(super) fn plane_works(status: &KarmadaDeploymentStatus) -> bool {
    let of_plane =
        [condition::ETCD_READY, condition::API_SERVER_READY, condition::COMPONENTS_READY, condition::UP_TO_DATE];
    let mut parts = status.conditions.iter().filter(|part| of_plane.contains(&part.type_.as_str()));
    !parts.any(|part| is_bad(&part.type_, Some(part.status == "True"), &part.reason))
}

/// Whether one of the stages of the components does not work.
pub(super) fn is_broken(reports: &[StageReport]) -> bool {
    reports.iter().any(|report| is_of_components(report.stage) && report.broken().is_some())
}

fn is_of_components(stage: Stage) -> bool {
    stage > Stage::ApiServer
}

/// Why the stages of a part do not work.
fn broken(found: &Found<'_>, is_part: impl Fn(Stage) -> bool) -> Option<Problem> {
    let open = found.reports.iter().find(|report| !report.is_done());
    let mut own = found.reports.iter().filter(|report| is_part(report.stage)).peekable();
    if own.peek().is_none() {
        let message = "it is not there yet".to_owned();
        let restoring = || found.restore.and_then(|restore| restore.problem.clone());
        return Some(
            found.before.clone().or_else(restoring).unwrap_or(Problem { reason: Reason::ComponentStarting, message }),
        );
    }
    let (report, problem) = own.find_map(|report| Some((report, report.broken()?)))?;
    let first = open.filter(|open| open.stage < report.stage && report.is_missing).and_then(StageReport::waits_for);
    let cause = found.before.clone().filter(|_| report.is_missing);
    Some(cause.or_else(|| Some(waits(report.stage, &first?))).unwrap_or(problem))
}

/// What is not there yet waits for those that start before it.
fn waits(stage: Stage, first: &Problem) -> Problem {
    let message = format!("waiting for what starts before {}: {}", stage.title(), first.message);
    Problem { reason: Reason::ComponentStarting, message }
}

fn stated(type_: &'static str, problem: Option<Problem>, well: impl Into<String>) -> Statement {
    match problem {
        None => Statement::new(type_, true, Reason::AllReady, well),
        Some(Problem { reason, message }) => Statement::new(type_, known(reason), reason, cut(message)),
    }
}

/// What cannot be looked at is not known to be bad.
fn known(reason: Reason) -> Option<bool> {
    let is_unseen = matches!(reason, Reason::ClusterUnreachable | Reason::ClusterNotFound | Reason::HostForbidden);
    if is_unseen { None } else { Some(false) }
}

fn etcd_ready(observed: &Observed<'_>, found: &Found<'_>) -> Statement {
    if let Some(machines) = found.machines {
        let is_external = observed.object.spec.etcd.external.is_some();
        return match machines.etcd() {
            Ok(well) => {
                let problem = broken(found, |stage| stage == Stage::ApiServer).filter(|_| is_external);
                stated(condition::ETCD_READY, problem, well)
            }
            Err(problem) => stated(condition::ETCD_READY, Some(found.before.clone().unwrap_or(problem)), ""),
        };
    }
    match observed.object.spec.etcd.local() {
        Some(_) => {
            let size = etcd::size(observed.object, observed.facts);
            let well = format!("{0} of {0} members are ready", size.members.unwrap_or(size.replicas));
            stated(condition::ETCD_READY, broken(found, |stage| stage == Stage::Etcd), well)
        }
        // Nobody here looks after it: it is as well as the API server says.
        None => {
            let problem = broken(found, |stage| stage == Stage::ApiServer);
            stated(condition::ETCD_READY, problem, "the API server works with the etcd of spec.etcd.external")
        }
    }
}

fn api_server_ready(found: &Found<'_>) -> Statement {
    let is_part = |stage| matches!(stage, Stage::ApiServer | Stage::Namespaces);
    // The balancers of machines, through which what runs there reaches the API servers.
    let way = || found.reports.iter().find(|report| report.stage == Stage::Foundation)?.unhealthy.clone();
    let problem = broken(found, is_part).or_else(way);
    stated(condition::API_SERVER_READY, problem, "the API server answers at its endpoint")
}

fn components_ready(observed: &Observed<'_>, found: &Found<'_>) -> Statement {
    let restoring = found.before.clone().or_else(|| found.restore?.problem.clone()).filter(|_| found.restore.is_some());
    let open = restoring.or_else(|| broken(found, is_of_components));
    let problem = open.or_else(|| stopped(observed, found)).or_else(|| found.silent.clone());
    let spec = &observed.object.spec;
    let well = match hidden_by(observed.object) {
        None => "every component works, and its APIs and webhooks answer".to_owned(),
        Some(flag) => format!(
            "every component works, and its APIs and webhooks answer; that it propagates is not probed, since spec.controllerManager.extraArgs.{flag} leaves out what it is probed by"
        ),
    };
    if problem.is_none() && spec.descheduler.is_some() && spec.estimator.is_none() {
        let message = format!(
            "{well}; karmada-descheduler moves nothing, since no estimator tells it which replicas cannot run: set spec.estimator: {{}}, or take spec.descheduler out"
        );
        return Statement::new(condition::COMPONENTS_READY, true, Reason::EstimatorsNotWanted, message);
    }
    stated(condition::COMPONENTS_READY, problem, well)
}

/// What an upgrade has stopped.
fn stopped(observed: &Observed<'_>, found: &Found<'_>) -> Option<Problem> {
    let (_, upgrade) = found.upgrade?;
    let stopped = upgrade.stopped(observed.object);
    let names: Vec<&str> = stopped.iter().map(|component| component.name()).collect();
    let message = format!(
        "{} stopped while the plane is brought to {}: nothing is scheduled or propagated, members go on running what they have",
        names.join(", "),
        upgrade.record.to
    );
    (!names.is_empty()).then_some(Problem { reason: Reason::Upgrading, message })
}

/// Deeper than what Pods say of themselves: whether leaders work, and whether a policy would be admitted.
pub(super) fn silent(observed: &Observed<'_>, upgrade: Option<&Upgrade>) -> Option<Problem> {
    let Contact::Made(seen) = observed.plane else { return None };
    let problem = |message: String| Problem { reason: Reason::ComponentUnhealthy, message };
    let stopped = upgrade.map(|upgrade| upgrade.stopped(observed.object)).unwrap_or_default();
    let is_stopped = |leader: &ComponentHealth| stopped.iter().any(|component| component.name() == leader.name);
    if let Some(leader) = seen.leaders.iter().find(|leader| !leader.healthy && !is_stopped(leader)) {
        let why = leader.message.as_deref().unwrap_or("its leader is silent");
        return Some(problem(format!("{}: {why}", leader.name)));
    }
    let refused = seen.policy_refused.as_ref()?;
    Some(problem(format!("a PropagationPolicy would be refused (nothing was written): {refused}")))
}

fn up_to_date(found: &Found<'_>) -> Statement {
    let difference = |report: &StageReport| report.unseen.clone().or_else(|| report.difference());
    let pending = || found.reports.iter().find_map(difference);
    let upgrade = || found.upgrade.and_then(|(outcome, _)| outcome.problem.clone());
    let restoring = || found.restore.and_then(|restore| restore.problem.clone());
    let problem =
        found.before.clone().or_else(restoring).or_else(upgrade).or_else(|| found.outdated.clone()).or_else(pending);
    match problem {
        Some(Problem { reason, message }) => Statement::new(condition::UP_TO_DATE, known(reason), reason, cut(message)),
        None => {
            let message = "all that is wanted is applied, and nothing besides";
            Statement::new(condition::UP_TO_DATE, true, Reason::UpToDate, message)
        }
    }
}

/// The components as their Pods are made; of one that cannot be looked at what was seen last.
fn components(observed: &Observed<'_>, wanted: &[Wanted]) -> Vec<KarmadaComponentStatus> {
    let object = observed.object;
    let old = object.status.as_ref().map(|status| status.components.as_slice()).unwrap_or_default();
    let Contact::Made(host) = observed.host else { return old.to_vec() };
    let on_host = wanted.iter().filter(|one| one.place == Place::Host).zip(&host.states);
    let live = |component: Component| {
        let mut found = on_host.clone().filter(|(one, _)| one.stage == component.stage());
        found.find_map(|(_, state)| match state {
            State::There { live, .. } => Some(live.as_ref()),
            _ => None,
        })
    };
    let shown = |component: Component| {
        let replicas = component.replicas(&object.spec)?;
        let live = live(component);
        let ready = live.and_then(|live| live["status"]["readyReplicas"].as_i64()).unwrap_or_default();
        Some(KarmadaComponentStatus {
            name: component.name().to_owned(),
            version: live.and_then(image_version),
            replicas,
            ready_replicas: i32::try_from(ready).unwrap_or(i32::MAX),
        })
    };
    Component::ALL.into_iter().filter_map(shown).chain(shown_estimators(observed, &host.listed)).collect()
}

/// The estimators of all members in one row; none: there are none.
fn shown_estimators(observed: &Observed<'_>, listed: &[Value]) -> Option<KarmadaComponentStatus> {
    let all: Vec<&Value> = estimators::deployments(observed.object, listed).collect();
    let sum = |pointer: &str| {
        let number = |live: &&Value| live.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
        i32::try_from(all.iter().map(number).sum::<i64>()).unwrap_or(i32::MAX)
    };
    let component = Component::Estimator;
    (!all.is_empty()).then(|| KarmadaComponentStatus {
        name: component.name().to_owned(),
        version: observed.facts.versions.get(&component).cloned(),
        replicas: sum("/spec/replicas"),
        ready_replicas: sum("/status/readyReplicas"),
    })
}
