//! The cluster's certificate authorities and keys: made once, before any machine can have got them, and never again.
//! A second authority would cut off every machine that trusts the first one.

use crds::ClusterDeployment;
use crds::names::{condition, pki_secret};
use crds::{Machine, conditions};

use super::state::{ClusterState, past};
use crate::lifecycle::is_installed;
use crate::pki::{Halves, PkiRow, entries};
use crate::rotation::Subject;

/// The authorities and keys of a cluster. etcd's private key goes to no machine: its certificates are made here.
pub const TABLE: &[PkiRow] = &[
    PkiRow { subject: Subject::Ca, common_name: Some("kubernetes"), control_planes: Halves::Both, etcd: Halves::None },
    PkiRow {
        subject: Subject::FrontProxyCa,
        common_name: Some("front-proxy-ca"),
        control_planes: Halves::Both,
        etcd: Halves::None,
    },
    PkiRow {
        subject: Subject::EtcdCa,
        common_name: Some("etcd-ca"),
        control_planes: Halves::Public,
        etcd: Halves::Public,
    },
    PkiRow { subject: Subject::ServiceAccountKey, common_name: None, control_planes: Halves::Both, etcd: Halves::None },
    PkiRow { subject: Subject::EncryptionKey, common_name: None, control_planes: Halves::Both, etcd: Halves::None },
];

/// Whether they are gone and may not be made anew.
pub(super) fn is_missing(state: &ClusterState<'_>) -> bool {
    !state.observed.pki && may_be_trusted(state)
}

/// Whether they are still to be made, or fetched: no run gets the lock before, which stands for its having had them.
pub(super) fn are_to_come(state: &ClusterState<'_>) -> bool {
    !state.observed.pki && !may_be_trusted(state)
}

/// Whether some machine may trust them already, for all that the objects say: one of them is enough, since a status may
/// have been lost.
fn may_be_trusted(state: &ClusterState<'_>) -> bool {
    let status = state.deployment.status.as_ref();
    // The lock, whose last token is read back from the machines themselves where it was lost, is given to every run.
    let had_runs = status.is_some_and(|status| status.last_token > Some(status.initial_token.unwrap_or_default()));
    let mut members = state.live.iter().chain(&state.leaving);
    state.installed.is_some()
        || had_runs
        || past::anew_since(state.observed).is_some()
        || members.any(|member| member.host.is_some() && may_be_provisioned(member.machine))
}

/// Whether the Machine became part of the cluster; one without a status may have lost it.
fn may_be_provisioned(machine: &Machine) -> bool {
    machine.status.as_ref().is_none_or(|status| {
        status.provisioned_at.is_some() || conditions::is_true(&status.conditions, condition::PROVISIONED)
    })
}

/// What is missing, and how it is brought back.
pub fn missing(deployment: &ClusterDeployment) -> String {
    let metadata = &deployment.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let secret = pki_secret(name);
    let installed = is_installed(deployment);
    let otherwise = match installed {
        true => "without a backup the cluster goes on running, but nothing can be changed in it: move to a new one",
        false => "if it was never installed and there is no backup, delete the ClusterDeployment and make it again",
    };
    format!(
        "Secret {secret} with the cluster's certificate authorities and keys is gone. It is never made anew once machines may trust it: restore it from a backup (keys {}): {}; {otherwise}",
        entries(TABLE).join(", "),
        crds::commands::create_secret(namespace, &secret)
    )
}

#[cfg(test)]
mod tests {
    use super::TABLE;
    use crate::pki::{authorities, entries};
    use crate::rotation::Subject;

    #[test]
    fn authorities_have_a_common_name_and_keys_have_none() {
        for row in TABLE {
            assert_eq!(row.subject.is_authority(), row.common_name.is_some(), "{row:?}");
        }
        assert_eq!(authorities(TABLE), [Subject::Ca, Subject::EtcdCa, Subject::FrontProxyCa]);
    }

    #[test]
    fn a_message_names_all_that_a_backup_has() {
        let names = "ca.crt, ca.key, front-proxy-ca.crt, front-proxy-ca.key, etcd-ca.crt, etcd-ca.key, sa.key, sa.pub, encryption.key";
        assert_eq!(entries(TABLE).join(", "), names);
    }
}
