//! What a ClusterDeployment shows: counts, conditions, and the sentence that says what it does or waits for.

use crds::ClusterDeploymentStatus;
use crds::cluster_deployment::{EtcdTopology, ReplicaCounts};
use crds::conditions::{self, Statement};
use crds::names::{self, condition};
use crds::references::LocalRef;
use crds::step::{Intent, Role};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::deletion::Deletion;
use super::install::Install;
use super::lock::Lock;
use super::runs::describe;
use super::scene::{Member, Scene};
use super::{Work, install};
use crate::attempts::{self, Failure};
use crate::sentence::{count, cut};

/// Conditions of ours that are only shown while they say something.
const SCALE_PUT_BACK: &str = "ScalePutBack";

/// Why the cluster is not as wanted.
struct Lack {
    /// Whether it is known.
    known: bool,
    reason: String,
    message: String,
}

fn lack(reason: &str, message: String) -> Option<Lack> {
    Some(Lack {
        known: true,
        reason: reason.into(),
        message,
    })
}

pub(super) fn deleting(scene: &Scene<'_>, lock: &Lock, deletion: &Deletion) -> ClusterDeploymentStatus {
    let mut status = base(scene, lock);
    status.phase = Some("Deleting".into());
    status.message = Some(cut(deletion.message.clone()));
    let message = cut(deletion.message.clone());
    let statements = [
        Statement::new(condition::READY, false, "Deleting", message.clone()),
        Statement::new(condition::DELETING, true, deletion.reason, message),
    ];
    status.conditions = conditions::state(
        &status.conditions,
        &statements,
        scene.deployment.metadata.generation,
        &Time(scene.observed.now),
    );
    status
}

pub(super) fn living(
    scene: &Scene<'_>,
    lock: &Lock,
    work: &Work<'_>,
) -> (ClusterDeploymentStatus, Option<String>) {
    let mut status = base(scene, lock);
    let paused = scene.deployment.spec.paused;
    let control_plane = members(scene, Role::ControlPlane, work);
    let etcd = etcd(scene, work);
    let workers = workers(scene, work);
    let main = problem(work)
        .or_else(|| not_installed(scene, work))
        .or_else(|| control_plane.clone_lack())
        .or_else(|| etcd.clone_lack())
        .or_else(|| workers.clone_lack());
    let mut message = match &main {
        Some(main) => main.message.clone(),
        None => match scene.active.first() {
            Some(run) => format!("running; {}", describe(scene, run)),
            None => "running".into(),
        },
    };
    if paused {
        message = format!("paused (spec.paused): nothing more starts; {message}");
    }
    let failed = matches!(work.install, Install::Halted { .. }) || work.problem.is_some();
    let phase = match (&main, scene.installed.is_some()) {
        (None, _) => "Running",
        (Some(_), _) if failed && scene.installed.is_none() => "Failed",
        (Some(_), true) if control_plane.status == Some(true) && !workers.bad && work.problem.is_none() => {
            "Running"
        }
        (Some(_), true) => "Degraded",
        (Some(_), false) if scene.active.is_empty() && scene.founders().is_none() => "Pending",
        (Some(_), false) => "Provisioning",
    };
    let ready = match &main {
        None => Statement::new(condition::READY, true, "Running", cut(message.clone())),
        Some(main) => {
            let status = main.known.then_some(false);
            Statement::new(
                condition::READY,
                status,
                main.reason.clone(),
                cut(message.clone()),
            )
        }
    };
    let mut statements = vec![
        ready,
        control_plane.statement(condition::CONTROL_PLANE_READY),
        etcd.statement(condition::ETCD_READY),
        workers.statement(condition::WORKERS_READY),
        network(scene, work),
        addons(scene),
        up_to_date(scene),
        progressing(scene, work, &message),
        Statement::new(
            condition::PAUSED,
            paused,
            if paused { "SpecPaused" } else { "NotPaused" },
            if paused {
                "nothing more starts until spec.paused is false"
            } else {
                ""
            },
        ),
    ];
    if let Some((set, theirs, ours)) = work.put_back.first() {
        statements.push(Statement::new(
            SCALE_PUT_BACK,
            true,
            "CountOwnedBySpec",
            format!("MachineSet {set} was scaled to {theirs} and is put back to {ours}: change spec.workers[].replicas, or leave it out to scale the set"),
        ));
    } else {
        let stale = |condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            condition.type_ == SCALE_PUT_BACK
                && condition.observed_generation != scene.deployment.metadata.generation
        };
        status.conditions.retain(|condition| !stale(condition));
    }
    status.conditions = conditions::state(
        &status.conditions,
        &statements,
        scene.deployment.metadata.generation,
        &Time(scene.observed.now),
    );
    status.phase = Some(phase.into());
    status.message = Some(cut(message.clone()));
    let unfinished = main.is_some() || !scene.active.is_empty() || !scene.leaving.is_empty();
    (status, unfinished.then_some(message))
}

/// All but message, phase and conditions.
fn base(scene: &Scene<'_>, lock: &Lock) -> ClusterDeploymentStatus {
    let old = scene.deployment.status.clone().unwrap_or_default();
    let deleting = scene.deployment.metadata.deletion_timestamp.is_some();
    let generation = scene.generation();
    let queued = scene
        .active
        .iter()
        .filter_map(|run| attempts::generation_of(run))
        .any(|made| made < generation);
    let endpoint = scene.endpoint();
    let first = scene.first_control_plane().map(|member| member.name().to_owned());
    ClusterDeploymentStatus {
        observed_generation: scene.deployment.metadata.generation,
        kubernetes_version: version(scene).or(old.kubernetes_version),
        cluster_ref: endpoint
            .as_ref()
            .map(|_| LocalRef::new(&scene.name))
            .or(old.cluster_ref),
        kubeconfig_ref: match &endpoint {
            Some(_) => Some(LocalRef::new(names::kubeconfig_secret(&scene.name))),
            None => old.kubeconfig_ref,
        },
        endpoint: endpoint.or(old.endpoint),
        control_plane: Some(counts(
            scene,
            Role::ControlPlane,
            scene.deployment.spec.control_plane.replicas,
        )),
        workers: Some(counts(scene, Role::Worker, scene.workers_wanted())),
        first_control_plane: first.or(old.first_control_plane),
        installed_at: scene.installed.clone(),
        operations: lock.operations.clone(),
        last_token: lock.last_token,
        pending_generation: (queued && !deleting).then_some(generation),
        ..old
    }
}

fn counts(scene: &Scene<'_>, role: Role, wanted: i32) -> ReplicaCounts {
    let number = |holds: &dyn Fn(&Member<'_>) -> bool| {
        i32::try_from(scene.of_role(role).filter(|member| holds(member)).count()).unwrap_or(i32::MAX)
    };
    let ready = number(&|member| member.is_ready());
    let version = &scene.deployment.spec.kubernetes_version;
    let seen = |member: &Member<'_>| {
        member
            .machine
            .status
            .as_ref()
            .and_then(|status| status.kubernetes_version.clone())
    };
    ReplicaCounts {
        replicas: wanted,
        ready_replicas: ready,
        updated_replicas: number(&|member| seen(member).as_ref() == Some(version)),
        summary: format!("{ready}/{wanted}"),
    }
}

/// The version of every node, when they agree.
fn version(scene: &Scene<'_>) -> Option<String> {
    let mut versions = scene
        .live
        .iter()
        .filter_map(|member| member.machine.status.as_ref())
        .filter_map(|status| status.kubernetes_version.as_ref());
    let first = versions.next()?;
    versions.all(|other| other == first).then(|| first.clone())
}

fn problem(work: &Work<'_>) -> Option<Lack> {
    let problem = work.problem.as_ref()?;
    lack(problem.reason, problem.message.clone())
}

fn not_installed(scene: &Scene<'_>, work: &Work<'_>) -> Option<Lack> {
    match &work.install {
        Install::Done => None,
        Install::WaitsForHosts { has, wanted } => {
            let waits = waits_for_hosts(scene, |_| true);
            let message = waits.unwrap_or_else(|| {
                format!("waits for the Hosts of the control plane: {has} of {wanted} are claimed")
            });
            lack("WaitsForHosts", message)
        }
        Install::Begins(_) => lack("Installing", "the install begins".into()),
        Install::UnderWay { run } => {
            let found = scene
                .active
                .iter()
                .find(|active| active.metadata.name.as_ref() == Some(run));
            lack(
                "Installing",
                found.map_or_else(|| format!("run {run}"), |run| describe(scene, run)),
            )
        }
        Install::Later { at, failures, cause } => lack(
            "InstallFailed",
            format!(
                "the install failed ({}): {}; attempt {} of {} at {}",
                cause.reason,
                cause.message,
                failures + 1,
                crate::provisioning::ATTEMPTS,
                at.strftime("%H:%M:%S UTC")
            ),
        ),
        Install::Halted { failures, cause } => {
            let retry = retry(scene);
            match cause {
                Some(Failure { reason, message, .. }) => lack(
                    "InstallFailed",
                    format!(
                        "the install failed after {} ({reason}): {message}; correct it, then {retry}",
                        count(*failures, "attempt")
                    ),
                ),
                None => lack(
                    "InstallCanceled",
                    format!("the install was canceled; to go on, {retry}"),
                ),
            }
        }
    }
}

/// What a person types to have another attempt.
fn retry(scene: &Scene<'_>) -> String {
    let generation = scene.generation();
    let annotations = scene.deployment.metadata.annotations.as_ref();
    // A value that was used up already must be another one, and still begin with the generation.
    let used = attempts::asked_retry(annotations, generation);
    let value = match used.as_deref().map(|value| value.split_once('.')) {
        None => generation.to_string(),
        Some(None) => format!("{generation}.2"),
        Some(Some((_, number))) => format!("{generation}.{}", number.parse::<u32>().unwrap_or(1) + 1),
    };
    format!(
        "kubectl annotate --overwrite cd {} {}={value}",
        scene.name,
        names::annotation::RETRY
    )
}

/// `waits for Hosts: workers general needs 3, 2 free match`.
fn waits_for_hosts(scene: &Scene<'_>, wanted: impl Fn(Role) -> bool) -> Option<String> {
    let mut needs: Vec<String> = Vec::new();
    let mut whys: Vec<String> = Vec::new();
    for set in scene.sets().filter(|set| wanted(set.spec.role)) {
        let conditions = set
            .status
            .as_ref()
            .map(|status| status.conditions.as_slice())
            .unwrap_or_default();
        let hosts = conditions::find(conditions, condition::HOSTS_AVAILABLE);
        let Some(hosts) = hosts.filter(|hosts| hosts.status == "False") else {
            continue;
        };
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let short = name
            .strip_prefix(&scene.name)
            .and_then(|rest| rest.strip_prefix('-'))
            .unwrap_or(name);
        let set = match set.spec.role {
            Role::Worker => format!("workers {short}"),
            Role::ControlPlane | Role::Etcd => short.to_owned(),
        };
        let (need, why) = hosts.message.split_once("; ").unwrap_or((&hosts.message, ""));
        needs.push(format!("{set} {need}"));
        // Sets that look at the same Hosts say the same of them: once is enough.
        if !why.is_empty() && !whys.iter().any(|told| told == why) {
            whys.push(why.to_owned());
        }
    }
    let parts: Vec<String> = needs.into_iter().chain(whys).collect();
    (!parts.is_empty()).then(|| format!("waits for Hosts: {}", parts.join("; ")))
}

/// How one part of the cluster is.
struct Part {
    status: Option<bool>,
    reason: String,
    message: String,
    /// Something is wrong, and not only on its way.
    bad: bool,
}

impl Part {
    fn well(reason: &str, message: impl Into<String>) -> Self {
        Self {
            status: Some(true),
            reason: reason.into(),
            message: message.into(),
            bad: false,
        }
    }

    fn ill(reason: &str, message: impl Into<String>, bad: bool) -> Self {
        Self {
            status: Some(false),
            reason: reason.into(),
            message: message.into(),
            bad,
        }
    }

    fn statement(&self, type_: &'static str) -> Statement {
        Statement::new(type_, self.status, self.reason.clone(), cut(self.message.clone()))
    }

    fn clone_lack(&self) -> Option<Lack> {
        (self.status != Some(true)).then(|| Lack {
            known: self.status.is_some(),
            reason: self.reason.clone(),
            message: self.message.clone(),
        })
    }
}

fn members(scene: &Scene<'_>, role: Role, work: &Work<'_>) -> Part {
    if let Some(lack) = not_installed(scene, work) {
        return Part::ill("NotInstalled", lack.message, false);
    }
    if let Some(member) = scene
        .leaving
        .iter()
        .find(|member| member.machine.spec.role == role)
    {
        return Part::ill(
            "MachineDeleted",
            format!("{}: {}", member.title(), member.says()),
            true,
        );
    }
    let all: Vec<Member<'_>> = scene.of_role(role).collect();
    let ready = all.iter().filter(|member| member.is_ready()).count();
    match all.iter().find(|member| !member.is_ready()) {
        Some(member) if member.condition(condition::READY) == Some("Unknown") => Part {
            status: None,
            reason: member.ready_reason().into(),
            message: format!("{}: {}", member.title(), member.says()),
            bad: true,
        },
        Some(member) => Part::ill(
            "MachinesNotReady",
            format!("{}: {}", member.title(), member.says()),
            true,
        ),
        None if all.is_empty() => Part::ill(
            "MachinesMissing",
            format!("no {} machine is left", role.name()),
            true,
        ),
        None => Part::well("AllReady", format!("{ready} of {ready} ready")),
    }
}

fn etcd(scene: &Scene<'_>, work: &Work<'_>) -> Part {
    let part = match scene.deployment.spec.etcd.topology {
        EtcdTopology::Dedicated => members(scene, Role::Etcd, work),
        EtcdTopology::Stacked | EtcdTopology::External => members(scene, Role::ControlPlane, work),
    };
    let seen = component(scene, "etcd");
    match seen {
        Some((false, message)) if scene.installed.is_some() => {
            Part::ill("EtcdUnhealthy", format!("etcd: {message}"), true)
        }
        _ => part,
    }
}

fn component(scene: &Scene<'_>, name: &str) -> Option<(bool, String)> {
    let status = scene.observed.cluster?.status.as_ref()?;
    let component = status
        .components
        .iter()
        .find(|component| component.name == name)?;
    Some((component.healthy, component.message.clone().unwrap_or_default()))
}

fn workers(scene: &Scene<'_>, work: &Work<'_>) -> Part {
    let wanted = scene.workers_wanted();
    let ready = counts(scene, Role::Worker, wanted).ready_replicas;
    let summary = format!("{ready} of {wanted} ready");
    if scene.installed.is_none() {
        return match wanted {
            0 => Part::well("NoneWanted", ""),
            _ => Part::ill(
                "NotInstalled",
                "workers join once the control plane is installed",
                false,
            ),
        };
    }
    if let Some((member, failures, cause)) = work.joins.halted.first() {
        let retry = retry(scene);
        let message = match cause {
            Some(cause) => format!(
                "{} could not join after {} ({}): {}; correct it, then {retry}",
                member.title(),
                count(*failures, "attempt"),
                cause.reason,
                cause.message
            ),
            None => format!("the join of {} was canceled; to go on, {retry}", member.title()),
        };
        return Part::ill("JoinFailed", with_join_under_way(scene, message), true);
    }
    if let Some(run) = scene.active.iter().find(|run| run.spec.intent == Intent::Join) {
        return Part::ill("Joining", describe(scene, run), false);
    }
    if let Some((member, at, cause)) = work.joins.later.first() {
        let message = format!(
            "{} failed to join ({}): {}; tried again at {}",
            member.title(),
            cause.reason,
            cause.message,
            at.strftime("%H:%M:%S UTC")
        );
        return Part::ill("JoinFailed", message, true);
    }
    if let Some(waits) = waits_for_hosts(scene, |role| role == Role::Worker) {
        return Part::ill("WaitsForHosts", waits, false);
    }
    if let Some(member) = scene.of_role(Role::Worker).find(|member| !member.is_ready()) {
        let unknown = member.condition(condition::READY) == Some("Unknown");
        return Part {
            status: if unknown { None } else { Some(false) },
            reason: if unknown {
                member.ready_reason()
            } else {
                "MachinesNotReady"
            }
            .into(),
            message: format!("{}: {}", member.title(), member.says()),
            bad: member.condition(condition::PROVISIONED) == Some("True"),
        };
    }
    let have = scene.of_role(Role::Worker).count();
    match i32::try_from(have).unwrap_or(i32::MAX) {
        have if have < wanted => Part::ill(
            "ScalingUp",
            format!("{summary}; makes {} more", wanted - have),
            false,
        ),
        have if have > wanted => Part::ill(
            "ScalingDown",
            format!("has {have}, {wanted} wanted: {} leave", have - wanted),
            false,
        ),
        _ => match scene
            .leaving
            .iter()
            .find(|member| member.machine.spec.role == Role::Worker)
        {
            // All that are wanted are well: that others still leave is told, and is no lack.
            Some(member) => Part::well(
                "AllReady",
                format!("{summary}; {} leaves: {}", member.title(), member.says()),
            ),
            None => Part::well("AllReady", summary),
        },
    }
}

fn with_join_under_way(scene: &Scene<'_>, message: String) -> String {
    match scene.active.iter().find(|run| run.spec.intent == Intent::Join) {
        Some(run) => format!("{message}; {}", describe(scene, run)),
        None => message,
    }
}

fn network(scene: &Scene<'_>, work: &Work<'_>) -> Statement {
    if scene.installed.is_none() {
        return Statement::new(condition::NETWORK_READY, false, "NotInstalled", "");
    }
    let part = members(scene, Role::ControlPlane, work);
    let message = if part.status == Some(true) {
        String::new()
    } else {
        part.message
    };
    Statement::new(
        condition::NETWORK_READY,
        part.status,
        if part.status == Some(true) {
            "NodesReady"
        } else {
            "NodesNotReady"
        },
        cut(message),
    )
}

fn addons(scene: &Scene<'_>) -> Statement {
    let of = |status: Option<bool>, reason: &str, message: String| {
        Statement::new(condition::ADDONS_READY, status, reason, message)
    };
    if scene.installed.is_none() {
        return of(Some(false), "NotInstalled", String::new());
    }
    let bad = ["coredns", "kube-proxy"]
        .into_iter()
        .find_map(|name| match component(scene, name) {
            Some((false, message)) => Some(format!("{name}: {message}")),
            _ => None,
        });
    match bad {
        Some(message) => of(Some(false), "AddonsUnhealthy", cut(message)),
        None => of(Some(true), "RolledOut", String::new()),
    }
}

fn up_to_date(scene: &Scene<'_>) -> Statement {
    let wanted = &scene.deployment.spec.kubernetes_version;
    let of = |status: Option<bool>, reason: &str, message: String| {
        Statement::new(condition::UP_TO_DATE, status, reason, message)
    };
    if scene.installed.is_none() {
        return of(Some(false), "NotInstalled", String::new());
    }
    let mut other = scene.live.iter().filter_map(|member| {
        let seen = member.machine.status.as_ref()?.kubernetes_version.as_ref()?;
        (seen != wanted).then(|| format!("{} has {seen}, {wanted} is wanted", member.title()))
    });
    match other.next() {
        Some(message) => of(Some(false), "OtherVersion", message),
        None => of(Some(true), "UpToDate", String::new()),
    }
}

fn progressing(scene: &Scene<'_>, work: &Work<'_>, message: &str) -> Statement {
    let goes_on = matches!(
        work.install,
        install::Install::Begins(_) | install::Install::Later { .. }
    ) || !work.joins.later.is_empty()
        || !work.joins.steps.is_empty()
        || !work.resets.later.is_empty();
    let of = |status, reason: &str, message: &str| {
        Statement::new(condition::PROGRESSING, status, reason, cut(message.to_owned()))
    };
    match (scene.active.is_empty(), goes_on && work.problem.is_none()) {
        (false, _) => of(true, "RunUnderWay", message),
        (true, true) => of(true, "Waiting", message),
        (true, false) => of(false, "Idle", ""),
    }
}
