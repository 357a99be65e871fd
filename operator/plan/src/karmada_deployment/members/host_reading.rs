//! When the kubeconfig of a member is read on its Host, and what keeps it from that. It is read by a run, into a Secret
//! that is there for that run alone; what is used is a copy of it, which goes with the member. It is read again once
//! the member's API refuses it.

use crds::commands;
use crds::names::{annotation, condition, label};
use crds::playbook_run::{PlaybookRunSpec, RunPhase};
use crds::references::controller_ref;
use crds::step::{Intent, Step};
use crds::{Host, KarmadaDeployment, ObjectExt, PlaybookRun, Reason, conditions};
use jiff::Timestamp;

use super::action::Act;
use super::context::Context;
use super::host_access::{Brought, HostAccess};
use super::target::{ReachedBy, Wish, has_begun};
use crate::addon::Problem;
use crate::attempts::{backoff, ended_at, generation_of, is_over, next_number};
use crate::message::quote;
use crate::moment::after;
use crate::owned_run::owned_run;

/// How long a run may take, in seconds.
const TIMEOUT_SECONDS: i32 = 300;
/// What is refused is not read again sooner than this after it was read, in seconds: it may be the same for long.
const AGAIN_SECONDS: i64 = 600;

/// What is done about a kubeconfig, and what is said of it.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Why there is none, or no other one, yet.
    pub problem: Option<Problem>,
    pub acts: Vec<Act>,
}

impl Reading {
    fn says(reason: Reason, message: String) -> Self {
        Self { problem: Some(Problem { reason, message }), acts: Vec::new() }
    }
}

/// What is to be done now. Nothing for a member that is reached by something else, or that has left.
pub(super) fn reading(context: &Context<'_>) -> Reading {
    let ReachedBy::Host(name) = &context.target.reached_by else { return Reading::default() };
    let Some(access) = context.member.and_then(|member| member.host_access.as_ref()).filter(|_| !has_left(context))
    else {
        return Reading::default();
    };
    if let Some(why) = &access.foreign {
        return Reading::says(Reason::NameTaken, why.clone());
    }
    let (now, tried) = (context.observed.now, access.runs.last());
    match tried {
        Some(run) if !is_over(run) => under_way(name, run),
        Some(run) if access.kept.as_ref().is_some_and(|kept| kept.run == run.name()) => {
            Reading { problem: None, acts: forgotten(access) }
        }
        Some(run) if access.brought == Brought::Usable => {
            let keep = Act::KeepKubeconfig { run: run.name().to_owned(), host: name.clone() };
            let message = format!("keeping its kubeconfig, which was read on Host {name}");
            Reading { acts: vec![keep], ..Reading::says(Reason::ReadingKubeconfig, message) }
        }
        Some(_) if !is_due(access, now) => Reading { problem: None, acts: forgotten(access) },
        None if !is_due(access, now) => Reading::default(),
        Some(run) => match obstacle(access, name) {
            None if !may_try_again(access, run, now) => {
                let Problem { reason, message } = failure(access, name, run);
                Reading::says(reason, message)
            }
            obstacle => begin(context, access, name, obstacle),
        },
        None => begin(context, access, name, obstacle(access, name)),
    }
}

fn begin(context: &Context<'_>, access: &HostAccess, name: &str, obstacle: Option<Problem>) -> Reading {
    let host = match (obstacle, &access.host) {
        (Some(problem), _) => return Reading { problem: Some(problem), acts: Vec::new() },
        (None, None) => return Reading::default(),
        (None, Some(host)) => host,
    };
    let run = run(context, access, host);
    let message = format!("reading its kubeconfig on Host {name}, by PlaybookRun {}", run.name());
    // The one before it goes last: its number is that of the next one.
    let acts = [Act::ReadKubeconfig(Box::new(run))].into_iter().chain(forgotten(access)).collect();
    Reading { acts, ..Reading::says(Reason::ReadingKubeconfig, message) }
}

/// Whether there is one that is to be used. Without a Host it is kept as it is.
fn is_due(access: &HostAccess, now: Timestamp) -> bool {
    let Some(kept) = &access.kept else { return true };
    let is_another = access.host.as_ref().is_some_and(|host| host.uid() != kept.host);
    let is_old = kept.at.as_ref().is_none_or(|at| now.duration_since(at.0).as_secs() >= AGAIN_SECONDS);
    is_another || access.is_refused && is_old
}

/// A Host that was changed since is worth a new attempt at once.
fn may_try_again(access: &HostAccess, run: &PlaybookRun, now: Timestamp) -> bool {
    let generation = access.host.as_ref().and_then(|host| host.metadata.generation);
    let failures = next_number(&[run]);
    generation_of(run) != generation || ended_at(run).is_none_or(|ended| after(ended, backoff(failures)) <= now)
}

/// What keeps the Host from being logged in to.
fn obstacle(access: &HostAccess, name: &str) -> Option<Problem> {
    let problem = |reason, message| Some(Problem { reason, message });
    let Some(host) = access.host.as_ref().filter(|host| !host.is_deleting()) else {
        let message = format!("hostRef: Host {name} is not there, or is being deleted: make it, or name another one");
        return problem(Reason::HostNotFound, message);
    };
    if let Some(claim) = &host.spec.claim_ref {
        let message = format!(
            "hostRef: Host {name} is claimed by Machine {}: name its cluster in clusterRef, or a Host that nobody has claimed",
            claim.name
        );
        return problem(Reason::HostClaimed, message);
    }
    schedulable(host)
}

/// Why a cluster could take the Host of a member.
pub(super) fn may_be_taken(context: &Context<'_>) -> Option<Problem> {
    let is_by_host = matches!(context.target.reached_by, ReachedBy::Host(_));
    schedulable(context.member.filter(|_| is_by_host)?.host_access.as_ref()?.host.as_ref()?)
}

fn schedulable(host: &Host) -> Option<Problem> {
    let keep = || commands::set_field(commands::Target::Host, &host.metadata, "unschedulable", true);
    (!host.spec.unschedulable).then(|| Problem {
        reason: Reason::HostSchedulable,
        message: format!(
            "hostRef: Host {} may be claimed for a cluster, which makes its machine anew: run: {}",
            host.name(),
            keep()
        ),
    })
}

fn under_way(name: &str, run: &PlaybookRun) -> Reading {
    let status = run.status.as_ref();
    let complete = status.and_then(|status| conditions::find(&status.conditions, condition::COMPLETE));
    let warning = complete.and_then(|complete| Reason::from_name(&complete.reason)).filter(|why| why.is_warning());
    let said = status.and_then(|status| status.message.as_ref()).filter(|_| warning.is_some());
    let said = said.map(|said| format!(": {}", quote(said.clone()))).unwrap_or_default();
    let message = format!("reading its kubeconfig on Host {name}, by PlaybookRun {}{said}", run.name());
    Reading::says(warning.unwrap_or(Reason::ReadingKubeconfig), message)
}

/// Why the last run has brought nothing.
fn failure(access: &HostAccess, name: &str, run: &PlaybookRun) -> Problem {
    if let Brought::Rejected(why) = &access.brought {
        let message = format!("the kubeconfig on Host {name} is refused: {}", quote(why.clone()));
        return Problem { reason: Reason::KubeconfigRejected, message };
    }
    let status = run.status.as_ref();
    let failure = status.and_then(|status| status.hosts.iter().find_map(|host| host.failure.as_ref()));
    let (reason, why) = match (failure, status.and_then(|status| status.message.as_ref())) {
        (Some(failure), _) => (Reason::from_name(&failure.reason), failure.message.clone()),
        (None, Some(message)) => (None, message.clone()),
        (None, None) => (None, format!("PlaybookRun {} has brought none", run.name())),
    };
    let message = format!("its kubeconfig was not read on Host {name}: {}; it is tried again", quote(why));
    Problem { reason: reason.unwrap_or(Reason::KubeconfigNotRead), message }
}

/// The next run.
fn run(context: &Context<'_>, access: &HostAccess, host: &Host) -> PlaybookRun {
    let (object, member): (&KarmadaDeployment, &str) = (context.observed.object, &context.target.name);
    let spec = PlaybookRunSpec {
        timeout_seconds: TIMEOUT_SECONDS,
        ..PlaybookRunSpec::new(Intent::Probe, vec![Step::ReadKubeconfig], vec![host.name().to_owned()])
    };
    let tried: Vec<&PlaybookRun> = access.runs.iter().collect();
    // Its name is not that of the run which brought what is kept: that one has to be forgotten, and this one heard.
    let kept = access.kept.as_ref().map(|kept| kept.run.as_str()).unwrap_or_default();
    let purpose = format!("member.{member}.{}.{kept}", host.uid());
    let mut run = owned_run((object, controller_ref(object)), None, &purpose, next_number(&tried), spec);
    run.metadata.labels.get_or_insert_default().insert(label::KARMADA_MEMBER.to_owned(), member.to_owned());
    let generation = host.metadata.generation.unwrap_or_default().to_string();
    run.metadata.annotations.get_or_insert_default().insert(annotation::GENERATION.to_owned(), generation);
    run
}

/// All that is done about it, of a member that stays or joins, or that leaves and has not left yet.
pub(super) fn acts(context: &Context<'_>) -> Vec<Act> {
    let is_by_host = matches!(context.target.reached_by, ReachedBy::Host(_));
    let stays = context.target.wish != Wish::Leave;
    if stays && !is_by_host { leftovers(context) } else { reading(context).acts }
}

fn forgotten(access: &HostAccess) -> Vec<Act> {
    access.runs.iter().map(|run| Act::ForgetRun(Box::new(run.clone()))).collect()
}

/// What was read for it and is to go: it leaves, or is reached by something else.
pub(super) fn leftovers(context: &Context<'_>) -> Vec<Act> {
    let Some(access) = context.member.and_then(|member| member.host_access.as_ref()) else { return Vec::new() };
    let kept = access.kept.as_ref().map(|_| Act::DeleteKubeconfig);
    forgotten(access).into_iter().chain(kept).collect()
}

/// Whether something was read for it that is there yet.
pub(super) fn is_there(context: &Context<'_>) -> bool {
    context.member.and_then(|member| member.host_access.as_ref()).is_some_and(HostAccess::has_left)
}

/// Whether nothing is left of it but what was read: it never began to join, or has left.
pub(super) fn has_left(context: &Context<'_>) -> bool {
    let only_read = context.known.is_some_and(|known| !has_begun(known) && known.host_ref.is_some());
    only_read && context.target.wish == Wish::Leave
}

/// What is to be done where the API does not answer at the Host's address, which the file does not name.
pub(super) fn advice(context: &Context<'_>) -> Option<String> {
    let ReachedBy::Host(name) = &context.target.reached_by else { return None };
    let access = context.member?.host_access.as_ref()?;
    let (server, address) = (access.kept.as_ref()?.server.as_ref()?, &access.host.as_ref()?.spec.address);
    Some(format!(
        "the kubeconfig on Host {name} names {server}, so {address} was asked: the operator must reach it, and the API's certificate must be for it (apiServer.certSANs of kubeadm, tls-san of k3s and RKE2); or give a kubeconfig in kubeConfigSecretName"
    ))
}

/// Whether the run has done what it was for.
pub fn has_read(run: &PlaybookRun) -> bool {
    run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Succeeded)
}
