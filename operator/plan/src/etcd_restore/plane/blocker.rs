//! Why a plane cannot be set back, or not yet.

use crds::{KarmadaDeployment, ObjectExt, Reason};

use super::super::observed::Observed;
use super::super::source;
use super::super::state::State as OfCluster;
use super::super::turn::not_its_turn;
use super::state::State;
use crate::karmada_deployment::backup_source::is_installed;
use crate::karmada_deployment::restore::not_mounted;

/// Why; none: nothing is in its way but the backup.
pub(super) fn blocker<'a>(observed: &Observed<'a>, plane: &KarmadaDeployment) -> Option<State<'a>> {
    never(observed, plane)
        .map(|(reason, message)| State::GivenUp(reason.into(), message))
        .or_else(|| not_yet(observed, plane).map(|(reason, message)| State::Waits(reason, message)))
        .or_else(|| match source::blocker(observed)? {
            OfCluster::GivenUp(reason, message) => Some(State::GivenUp(reason, message)),
            OfCluster::Waits(reason, message) => Some(State::Waits(reason, message)),
            _ => None,
        })
}

fn never(observed: &Observed<'_>, plane: &KarmadaDeployment) -> Option<(Reason, String)> {
    let name = plane.name();
    if plane.spec.etcd.external.is_some() {
        let message = format!(
            "the etcd of KarmadaDeployment {name} is external: whoever runs it restores it, from a backup that docs/backup.md says how to read; \
             the plane is stopped meanwhile"
        );
        return Some((Reason::EtcdExternal, message));
    }
    let message = not_mounted(plane, observed.storage)?;
    Some((Reason::BackupNotSupported, format!("{message}, and name that one in a new EtcdRestore")))
}

fn not_yet(observed: &Observed<'_>, plane: &KarmadaDeployment) -> Option<(Reason, String)> {
    let (name, status) = (plane.name(), plane.status.as_ref());
    if !is_installed(plane) {
        return Some((Reason::NotInstalled, format!("KarmadaDeployment {name} is not installed yet")));
    }
    let begins = status.and_then(|status| status.restored_from.as_ref());
    if begins.is_some_and(|record| record.step.is_some() && record.restore_ref.is_none()) {
        return Some((
            Reason::NotInstalled,
            format!("KarmadaDeployment {name} begins with a backup itself, and is not over with it"),
        ));
    }
    if let Some(message) = not_its_turn(observed) {
        return Some((Reason::WaitingForRestore, message));
    }
    if plane.spec.paused {
        let message = format!("KarmadaDeployment {name} is paused: it begins once its spec.paused is false");
        return Some((Reason::Paused, message));
    }
    let upgrade = status.and_then(|status| status.upgrade.as_ref());
    let is_under_way = upgrade.is_some_and(|upgrade| upgrade.step.is_some());
    is_under_way
        .then(|| (Reason::Upgrading, format!("KarmadaDeployment {name} is being upgraded: it begins afterwards")))
}
