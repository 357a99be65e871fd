//! The words for actions.

use crds::remediation_policy::RemediationAction as Action;
use crds::step::Role;
use jiff::Timestamp;

/// The action's name, as in the API.
pub fn name(action: Action) -> &'static str {
    match action {
        Action::RestartServices => "RestartServices",
        Action::Reboot => "Reboot",
        Action::Replace => "Replace",
    }
}

pub(super) fn doing(action: Action) -> &'static str {
    match action {
        Action::RestartServices => "RestartingServices",
        Action::Reboot => "Rebooting",
        Action::Replace => "Replacing",
    }
}

pub(super) fn verb(action: Action, role: Role) -> &'static str {
    match (action, role) {
        (Action::RestartServices, Role::Etcd) => "etcd is restarted",
        (Action::RestartServices, _) => "kubelet and containerd are restarted",
        (Action::Reboot, _) => "it is rebooted",
        (Action::Replace, _) => "another machine takes its place, and it is removed",
    }
}

pub(super) fn done(action: Action, role: Role) -> &'static str {
    match (action, role) {
        (Action::RestartServices, Role::Etcd) => "restarted etcd",
        (Action::RestartServices, _) => "restarted kubelet and containerd",
        (Action::Reboot, _) => "rebooted it",
        (Action::Replace, _) => "replaced it",
    }
}

/// `12:05:09 UTC`.
pub(super) fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%S UTC").to_string()
}
