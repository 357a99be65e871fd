//! Quarantine: what keeps a Host out of the pool, and what ends it. And claims whose Machine is gone, which end in one.

use crds::ObjectExt;
use crds::commands::{self, Target};
use crds::conditions;
use crds::host::{Quarantine, QuarantineReason};
use crds::names::{annotation, condition, finalizer};
use crds::{ClusterKind, Host, HostStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::action::Action;
use super::observed::HostObserved;
use crate::attempts::{names_generation, next_value};

/// The release that a person asks for, when it is meant for the Host as it is.
pub(super) fn asked_release(host: &Host) -> Option<String> {
    let value = host.metadata.annotations.as_ref()?.get(annotation::RELEASE)?;
    names_generation(&host.metadata, annotation::RELEASE).then(|| value.clone())
}

/// What a person types to release the Host.
fn release(host: &Host) -> String {
    let annotations = host.metadata.annotations.as_ref();
    let generation = host.generation();
    let value = next_value(annotations, annotation::RELEASE, generation);
    commands::annotate(Target::Host, &host.metadata, annotation::RELEASE, value)
}

/// Whether a release is asked for that no probe has looked for yet.
pub(super) fn wants_probe(host: &Host, status: Option<&HostStatus>) -> bool {
    let probed_for = status.and_then(|status| status.probed_for_release.as_ref());
    let asked = asked_release(host);
    host.spec.quarantine.is_some() && asked.is_some() && asked.as_ref() != probed_for
}

/// Ends a quarantine whose time has come, or a claim that nobody else will end.
pub(super) fn actions(observed: &HostObserved<'_>, status: &HostStatus) -> Vec<Action> {
    let host = observed.host;
    if let Some(claim) = host.spec.claim_ref.as_ref() {
        let stuck = observed.holder_is_gone && asked_release(host).is_some();
        let finalizers = host.metadata.finalizers.iter().flatten();
        let release = || Action::ReleaseClaim {
            host: Box::new(host.clone()),
            finalizers: finalizers.filter(|there| *there != finalizer::HOST).cloned().collect(),
            quarantine: Quarantine {
                reason: QuarantineReason::ForceRemoved,
                message: "its Machine was gone without giving it back".into(),
                machine: claim.name.clone(),
                machine_set: None,
                machine_uid: Some(claim.uid.clone()),
                cluster_name: None,
                cluster_kind: ClusterKind::default(),
                role: None,
                // Whether its cluster was detached is not known.
                fence: None,
                since: Time(observed.now),
            },
        };
        return stuck.then(release).into_iter().collect();
    }
    let ends = host.spec.quarantine.as_ref().is_some_and(|quarantine| ends(host, status, quarantine));
    let end = || Action::EndQuarantine(Box::new(host.clone()));
    ends.then(end).into_iter().collect()
}

/// Whether the last probe, made since the quarantine began, found the machine clean, and that is enough or was asked
/// for.
fn ends(host: &Host, status: &HostStatus, quarantine: &Quarantine) -> bool {
    let find = |type_: &str| conditions::find(&status.conditions, type_);
    let of_now = find(condition::REACHABLE).is_some_and(|reachable| {
        reachable.status == "True" && reachable.observed_generation == host.metadata.generation
    });
    let clean = find(condition::CLEAN).is_some_and(|clean| clean.status == "True");
    let asked = asked_release(host);
    let by_itself = [QuarantineReason::ForceRemoved, QuarantineReason::StoreIsOlder].contains(&quarantine.reason);
    let enough = by_itself || asked.is_some() && asked == status.probed_for_release;
    of_now && clean && status.cleaned_epoch == Some(host.spec.claim_epoch) && enough
}

/// One sentence: why it is kept, and what ends that.
pub(super) fn message(host: &Host, status: &HostStatus, quarantine: &Quarantine) -> String {
    let found = found(host, status);
    let ending = match (quarantine.reason, asked_release(host)) {
        (_, Some(_)) => format!("released once a probe finds it clean{found}"),
        (QuarantineReason::ForceRemoved | QuarantineReason::StoreIsOlder, None) => {
            format!("ends by itself once a probe finds the machine clean{found}")
        }
        (QuarantineReason::JoinFailed | QuarantineReason::CleaningFailed, None) => {
            format!("correct it, then {}{found}", release(host))
        }
    };
    let Quarantine { message, machine, .. } = quarantine;
    let fenced = match quarantine.fence.as_ref().is_some_and(|fence| fence.fenced) {
        true => "; it is back, and what served its cluster there is stopped",
        false => "",
    };
    format!("quarantined since it was Machine {machine}: {message}{fenced}; {ending}")
}

/// What the last probe found against it, when it has looked at the Host as it is.
fn found(host: &Host, status: &HostStatus) -> String {
    let against = |type_: &str| {
        let found = conditions::find(&status.conditions, type_)?;
        let counts = found.status != "True" && found.observed_generation == host.metadata.generation;
        counts.then(|| format!(" (the last one: {}, {})", found.reason, found.message))
    };
    against(condition::REACHABLE).or_else(|| against(condition::CLEAN)).unwrap_or_default()
}

/// What is said of a claim whose Machine is gone.
pub(super) fn stuck(host: &Host, machine: &str) -> String {
    match asked_release(host) {
        Some(_) => {
            format!("claimed by Machine {machine}, which is not there any more: its claim is taken off")
        }
        None => format!(
            "claimed by Machine {machine}, which is not there any more and will not give it back: to take it back, {}",
            release(host)
        ),
    }
}
