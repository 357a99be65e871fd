//! The words for actions.

use crds::Reason;
use crds::remediation_policy::RemediationAction as Action;
use crds::step::Role;

/// The action's name, as in the API.
pub fn name(action: Action) -> &'static str {
    match action {
        Action::RestartServices => "RestartServices",
        Action::Reboot => "Reboot",
        Action::Replace => "Replace",
    }
}

pub(super) fn doing(action: Action) -> Reason {
    match action {
        Action::RestartServices => Reason::RestartingServices,
        Action::Reboot => Reason::Rebooting,
        Action::Replace => Reason::Replacing,
    }
}

pub(super) fn verb(action: Action, role: Role) -> &'static str {
    match (action, role) {
        (Action::RestartServices, Role::Etcd) => "etcd is restarted",
        (Action::RestartServices, Role::ControlPlane | Role::Worker) => "kubelet and containerd are restarted",
        (Action::Reboot, Role::ControlPlane | Role::Etcd | Role::Worker) => "it is rebooted",
        (Action::Replace, Role::ControlPlane | Role::Etcd | Role::Worker) => {
            "another machine takes its place, and it is removed"
        }
    }
}

pub(super) fn done(action: Action, role: Role) -> &'static str {
    match (action, role) {
        (Action::RestartServices, Role::Etcd) => "restarted etcd",
        (Action::RestartServices, Role::ControlPlane | Role::Worker) => "restarted kubelet and containerd",
        (Action::Reboot, Role::ControlPlane | Role::Etcd | Role::Worker) => "rebooted it",
        (Action::Replace, Role::ControlPlane | Role::Etcd | Role::Worker) => "replaced it",
    }
}
