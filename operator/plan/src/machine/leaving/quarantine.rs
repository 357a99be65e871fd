//! Quarantine: why a Host that is given back is not to be claimed again.

use crds::Host;
use crds::host::{Quarantine, QuarantineFence, QuarantineReason};
use crds::names::annotation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;

use crate::claims;
use crate::machine::observed::Observed;
use crate::message::cut;

/// What a set writes on a Machine before it deletes it.
#[derive(Deserialize)]
struct Word {
    reason: QuarantineReason,
    #[serde(default)]
    message: String,
}

/// The quarantine that the Machine's set asks for.
pub(super) fn by_set(observed: &Observed<'_>) -> Option<Quarantine> {
    let annotations = observed.machine.metadata.annotations.as_ref()?;
    let text = annotations.get(annotation::QUARANTINE)?;
    // What cannot be read was meant all the same.
    let word = serde_json::from_str(text)
        .unwrap_or_else(|_| Word { reason: QuarantineReason::JoinFailed, message: text.clone() });
    Some(quarantine(observed, word.reason, word.message))
}

pub(super) fn quarantine(observed: &Observed<'_>, reason: QuarantineReason, message: String) -> Quarantine {
    let metadata = &observed.machine.metadata;
    let annotations = metadata.annotations.as_ref();
    let is_lost = annotations.is_some_and(|all| all.contains_key(annotation::LOST_SINCE));
    Quarantine {
        reason,
        message: cut(message),
        machine: metadata.name.clone().unwrap_or_default(),
        machine_set: claims::set_of(observed.machine).map(str::to_owned),
        // In the cluster that is built anew it is no member of etcd.
        machine_uid: metadata.uid.clone().filter(|_| !is_lost),
        cluster_name: Some(observed.machine.spec.cluster_name.clone()),
        cluster_kind: observed.machine.spec.cluster_kind,
        role: Some(observed.machine.spec.role),
        fence: None,
        since: Time(observed.now),
    }
}

/// The same, of a machine that was given up without being cleaned: it is fenced when it comes back.
pub(super) fn given_up(observed: &Observed<'_>, host: &Host, quarantine: Quarantine) -> Quarantine {
    let cluster = observed.formed.map(|cluster| cluster.uid.to_owned()).filter(|uid| !uid.is_empty());
    Quarantine {
        fence: cluster.map(|cluster_uid| QuarantineFence {
            claim_epoch: host.spec.claim_epoch,
            cluster_uid,
            fenced: false,
        }),
        ..quarantine
    }
}
