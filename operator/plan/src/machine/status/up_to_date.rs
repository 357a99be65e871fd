//! Whether a Machine is as its cluster's spec wants it: its version, the settings that runs have brought to it, and
//! what its Node was given.

use crds::Host;
use crds::Reason;
use crds::conditions::Statement;
use crds::machine::AppliedSettings;
use crds::names::condition;

use super::node_metadata;
use crate::machine::observed::Observed;
use crate::machine_set;
use crate::message::cut;
use crate::settings::{self, Wanted};

pub(super) fn statement(
    observed: &Observed<'_>,
    version: Option<&str>,
    done: bool,
    applied: Option<&AppliedSettings>,
    host: Option<&Host>,
) -> Statement {
    let of_cluster = observed.deployment().map(|deployment| deployment.spec.kubernetes_version);
    let wanted = observed.machine.spec.kubernetes_version.or(of_cluster);
    let stated = |status: Option<bool>, reason: Reason, message: String| {
        Statement::new(condition::UP_TO_DATE, status, reason, cut(message))
    };
    let well = match (observed.has_node(), version.zip(wanted)) {
        (false, _) if done => "has no kubelet".to_owned(),
        (_, Some((version, wanted))) if version.parse() == Ok(wanted) => {
            format!("has {wanted}")
        }
        (_, Some((version, wanted))) => {
            return stated(Some(false), Reason::OtherVersion, format!("has {version}, {wanted} is wanted"));
        }
        (_, None) => {
            let message = "the version of its kubelet is not known yet";
            return stated(None, Reason::NotSeenYet, message.into());
        }
    };
    let differences = match observed.deployment().filter(|_| done) {
        Some(deployment) => settings::differences(&Wanted::new(deployment), observed.machine, applied),
        None => Vec::new(),
    };
    let named = |is_known: bool| -> Vec<&str> {
        let named = differences.iter().filter(|difference| difference.is_known == is_known);
        named.map(|difference| difference.field.as_str()).collect()
    };
    let (differ, unknown) = (named(true), named(false));
    if !differ.is_empty() {
        let message = format!("not rolled out to this machine: {}", differ.join(", "));
        return stated(Some(false), Reason::SettingsNotRolledOut, message);
    }
    let deployment = observed.deployment().filter(|_| done);
    let on_its_way = deployment.and_then(|deployment| machine_set::template_difference(deployment, observed.machine));
    if let Some(fields) = on_its_way {
        return stated(Some(false), Reason::UpdatingNode, format!("its set has others than it: {}", fields.join(", ")));
    }
    let has_node = observed.has_node() && done;
    let on_node = host.filter(|_| has_node).and_then(|host| node_metadata::statement(observed, host));
    if let Some(statement) = on_node {
        return statement;
    }
    if !unknown.is_empty() {
        let message = format!("not known whether this machine has what is wanted: {}", unknown.join(", "));
        return stated(None, Reason::SettingsNotKnown, message);
    }
    stated(Some(true), Reason::UpToDate, well)
}
