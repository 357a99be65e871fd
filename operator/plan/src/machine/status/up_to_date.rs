//! Whether a Machine is as its cluster's spec wants it: its version, and the settings that runs have brought to it.

use crds::Reason;
use crds::conditions::Statement;
use crds::machine::AppliedSettings;
use crds::names::condition;
use crds::step::Role;

use crate::machine::observed::Observed;
use crate::message::cut;
use crate::settings::{self, Difference};

pub(super) fn statement(
    observed: &Observed<'_>,
    version: Option<&str>,
    done: bool,
    applied: Option<&AppliedSettings>,
) -> Statement {
    let wanted = observed.machine.spec.kubernetes_version;
    let stated = |status: Option<bool>, reason: Reason, message: String| {
        Statement::new(condition::UP_TO_DATE, status, reason, cut(message))
    };
    let well = match (observed.machine.spec.role, version) {
        (Role::Etcd, _) if done => "has no kubelet".to_owned(),
        (Role::ControlPlane | Role::Etcd | Role::Worker, Some(version)) if version.parse() == Ok(wanted) => {
            format!("has {wanted}")
        }
        (Role::ControlPlane | Role::Etcd | Role::Worker, Some(version)) => {
            return stated(Some(false), Reason::OtherVersion, format!("has {version}, {wanted} is wanted"));
        }
        (Role::ControlPlane | Role::Etcd | Role::Worker, None) => {
            let message = "the version of its kubelet is not known yet";
            return stated(None, Reason::NotSeenYet, message.into());
        }
    };
    let differences = match observed.deployment.filter(|_| done) {
        Some(deployment) => settings::differences(deployment, observed.machine, applied),
        None => Vec::new(),
    };
    let (mut differ, mut unknown) = (Vec::new(), Vec::new());
    for difference in differences {
        match difference {
            Difference::Differs(field) => differ.push(field),
            Difference::Unknown(field) => unknown.push(field),
        }
    }
    if !differ.is_empty() {
        let message = format!("not rolled out to this machine: {}", differ.join(", "));
        return stated(Some(false), Reason::SettingsNotRolledOut, message);
    }
    if !unknown.is_empty() {
        let message = format!("not known whether this machine has what is wanted: {}", unknown.join(", "));
        return stated(None, Reason::SettingsNotKnown, message);
    }
    stated(Some(true), Reason::UpToDate, well)
}
