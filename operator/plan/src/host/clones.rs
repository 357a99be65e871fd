//! Hosts that say the same machine-id: machines made from one image. It is reported and refused nowhere; what tells
//! machines from each other is their host keys.

use std::collections::BTreeSet;

use super::observed::HostObserved;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::names::condition;
use crds::{Host, HostStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Others that are named.
const NAMED: usize = 3;

/// States it while it is so.
pub(super) fn state(observed: &HostObserved<'_>, status: &mut HostStatus) {
    let name = observed.host.name();
    let id = machine_id(Some(status)).map(str::to_owned);
    let same = |host: &&Host| id.is_some() && machine_id(host.status.as_ref()) == id.as_deref() && host.name() != name;
    let hosts = observed.hosts.iter().map(|host| &**host);
    let others: BTreeSet<&str> = hosts.filter(same).map(|host| host.name()).collect();
    if others.is_empty() {
        status.conditions.retain(|there| there.type_ != condition::MACHINE_ID_UNIQUE);
        return;
    }
    let named: Vec<&str> = others.iter().copied().take(NAMED).collect();
    let more = match others.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "Host {}{more} has the same /etc/machine-id (a cloned image?): on all but one of the machines, rm /etc/machine-id && systemd-machine-id-setup, and reboot",
        named.join(", ")
    );
    let statement = Statement::new(condition::MACHINE_ID_UNIQUE, false, Reason::SameMachineID, message);
    let generation = observed.host.metadata.generation;
    status.conditions = conditions::state(&status.conditions, &[statement], generation, &Time(observed.now));
}

fn machine_id(status: Option<&HostStatus>) -> Option<&str> {
    let id = status?.facts.as_ref()?.machine_id.as_str();
    (!id.is_empty()).then_some(id)
}
