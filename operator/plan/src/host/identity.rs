//! Whether a claimed Host is still the machine that was claimed: the identity that is written where it is missing, and
//! what the last run on it found.

use crds::ObjectExt;
use crds::Reason;
use crds::commands::{self, Target};
use crds::conditions::{self, Statement};
use crds::host::HostKeyPolicy;
use crds::inputs::HostIdentity;
use crds::names::condition;
use crds::{Host, HostStatus, PlaybookRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};

use super::observed::HostObserved;
use crate::attempts::{ended_at, is_over, targets};
use crate::claims;

/// The identity to write: of a Host that was claimed before there was one, or whose identity a person took off.
pub(super) fn to_write(host: &Host, status: &HostStatus) -> Option<HostIdentity> {
    let misses = host.spec.claim_ref.is_some() && host.spec.identity.is_none();
    let mut seen = host.clone();
    seen.status = Some(status.clone());
    misses.then(|| claims::identity::found(&seen)).flatten()
}

/// Whether a claimed Host is to be probed for it: nothing is known of the machine, and its key is.
pub(super) fn wants_probe(host: &Host, status: Option<&HostStatus>) -> bool {
    let pinned = status.is_some_and(|status| !status.host_keys.is_empty());
    let ssh = &host.spec.ssh;
    let known = !ssh.host_keys.is_empty() || (ssh.host_key_policy == HostKeyPolicy::TrustOnFirstUse && pinned);
    let misses = host.spec.claim_ref.is_some() && host.spec.identity.is_none();
    misses && known && !host.is_deleting()
}

/// States what the newest run on the Host, as it is now, found; it holds until the Host is changed.
pub(super) fn state(observed: &HostObserved<'_>, status: &mut HostStatus) {
    let host = observed.host;
    let generation = host.metadata.generation;
    let decision = newest(observed).and_then(|run| decision(run, host.name()));
    let stays = |there: &Condition| {
        there.type_ != condition::IDENTITY_VERIFIED
            || (host.spec.claim_ref.is_some() && there.observed_generation == generation)
    };
    status.conditions.retain(stays);
    let Some(decision) = decision else { return };
    let statement = match decision {
        None => Statement::new(condition::IDENTITY_VERIFIED, true, Reason::Same, "it is the machine that was claimed"),
        Some(message) => Statement::new(condition::IDENTITY_VERIFIED, false, Reason::MachineIdentityMismatch, message),
    };
    status.conditions = conditions::state(&status.conditions, &[statement], generation, &Time(observed.now));
}

/// The newest run that has ended, was made for the Machine that has claimed the Host, and for the Host as it is.
fn newest<'a>(observed: &HostObserved<'a>) -> Option<&'a PlaybookRun> {
    let host = observed.host;
    let claim = host.spec.claim_ref.as_ref()?;
    host.spec.identity.as_ref()?;
    let ours = |run: &&PlaybookRun| {
        let target = targets(run).remove(host.name());
        is_over(run)
            && target
                .is_some_and(|target| target.uid == claim.uid && target.host_generation == host.metadata.generation)
    };
    let runs = observed.runs.iter().map(|run| &**run).filter(ours);
    runs.max_by_key(|run| ended_at(run))
}

/// What the run found: nothing, the right machine, or why it is another.
fn decision(run: &PlaybookRun, host: &str) -> Option<Option<String>> {
    let results = run.status.as_ref()?.hosts.iter();
    let result = results.into_iter().find(|result| result.name == host)?;
    match &result.failure {
        Some(failure) if failure.reason == Reason::MachineIdentityMismatch => Some(Some(failure.message.clone())),
        _ if result.unreachable => None,
        Some(failure) if failure.reason == Reason::NotReached => None,
        _ => Some(None),
    }
}

/// What was found instead of the machine that was claimed, and what to do; none: nothing speaks for another machine.
pub fn another(host: &Host) -> Option<String> {
    let status = host.status.as_ref()?;
    another_in(host, status)
}

pub(super) fn another_in(host: &Host, status: &HostStatus) -> Option<String> {
    let claim = host.spec.claim_ref.as_ref()?;
    let found = conditions::find(&status.conditions, condition::IDENTITY_VERIFIED)?;
    let counts = found.status == "False" && found.observed_generation == host.metadata.generation;
    let (name, machine) = (host.name(), &claim.name);
    let claimed =
        ObjectMeta { namespace: host.metadata.namespace.clone(), name: Some(machine.clone()), ..ObjectMeta::default() };
    counts.then(|| {
        format!(
            "the machine at {}, port {}, is not the one that was claimed ({}): nothing is changed there. If address, port or bastionRef of Host {name} were changed, set them back; if the machine is gone, {}; if it is the right one with new keys, {}",
            host.spec.address,
            host.spec.ssh.port,
            found.message,
            commands::delete(Target::Machine, &claimed),
            commands::remove_field(Target::Host, &host.metadata, "identity")
        )
    })
}
