//! Lacks: why a cluster is not as wanted, as a reason for programs and a sentence for people.

use crds::names::{self, condition};
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Role};
use crds::{PlaybookRun, conditions};

use super::Work;
use super::install::Install;
use super::runs::describe;
use super::scene::Scene;
use crate::attempts::{self, Failure};
use crate::provisioning::most_attempts;
use crate::sentence::count;

/// Why the cluster is not as wanted.
#[derive(Clone)]
pub(super) struct Lack {
    /// Whether it is known.
    pub known: bool,
    pub reason: String,
    pub message: String,
}

fn lack(reason: &str, message: String) -> Option<Lack> {
    Some(Lack {
        known: true,
        reason: reason.into(),
        message,
    })
}

pub(super) fn problem(work: &Work<'_>) -> Option<Lack> {
    let problem = work.problem.as_ref()?;
    lack(problem.reason, problem.message.clone())
}

pub(super) fn not_installed(scene: &Scene<'_>, work: &Work<'_>) -> Option<Lack> {
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
                "the install {} ({}): {}; {} at {}",
                if cause.interrupted {
                    "was interrupted"
                } else {
                    "failed"
                },
                cause.reason,
                cause.message,
                next_attempt(scene, *failures, cause),
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
                    format!(
                        "the install was canceled{}; to go on, {retry}",
                        where_canceled(scene)
                    ),
                ),
            }
        }
    }
}

/// ` on HOST: what its run says`, of the install that was canceled last.
fn where_canceled(scene: &Scene<'_>) -> String {
    let canceled = |run: &&&PlaybookRun| {
        let phase = run.status.as_ref().and_then(|status| status.phase);
        run.spec.intent == Intent::Install && phase == Some(RunPhase::Canceled)
    };
    let last = scene
        .observed
        .runs
        .iter()
        .filter(canceled)
        .max_by_key(|run| attempts::attempt_of(run));
    last.map_or_else(String::new, |run| {
        let said = run.status.as_ref().and_then(|status| status.message.as_deref());
        format!(" on {}: {}", run.spec.hosts.join(", "), said.unwrap_or_default())
    })
}

/// `attempt 2 of 3`; one that came further, or could not even begin, is not counted against the limit.
pub(super) fn next_attempt(scene: &Scene<'_>, failures: usize, cause: &Failure) -> String {
    let how = if (cause.interrupted && cause.has_begun()) || cause.unreachable {
        "goes on where it stopped"
    } else {
        "tried again"
    };
    if cause.unreachable || !cause.has_begun() || cause.waits_for_others() {
        return how.to_owned();
    }
    let most = most_attempts(scene.deployment);
    format!("{how}, attempt {} of {most},", failures + 1)
}

/// What a person types to have another attempt.
pub(super) fn retry(scene: &Scene<'_>) -> String {
    let value = attempts::next_retry(scene.deployment.metadata.annotations.as_ref(), scene.generation());
    scene.annotate(names::annotation::RETRY, &value)
}

/// `waits for Hosts: workers general needs 3, 2 free match`.
pub(super) fn waits_for_hosts(scene: &Scene<'_>, wanted: impl Fn(Role) -> bool) -> Option<String> {
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
