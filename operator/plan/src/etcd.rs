//! etcd: what the machines of a cluster have told of its members, in the runs that asked them.

pub(crate) mod defragmentation;
mod finding;
mod probe;
mod status;

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::playbook_run::EtcdSeen;
use crds::{Machine, PlaybookRun};
use jiff::{SignedDuration, Timestamp};

use crate::attempts;
use crate::message::quote;
pub(crate) use finding::{Finding, finding};
pub use probe::is_probe;
pub(crate) use probe::looks;
pub(crate) use status::{Seen, defragments, status, stepped};

/// What was told longer ago says nothing of now.
const STALE: SignedDuration = SignedDuration::from_mins(30);

/// How a member of a dedicated etcd is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answers, and has a leader.
    Well,
    /// It does not, while another member does. What is wrong, as a clause.
    Sick(String),
    /// Nobody has told, or nobody whose word counts.
    Unknown,
}

/// The last word on a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// How it is.
    pub health: Health,
    /// When that was seen.
    pub at: Option<Timestamp>,
}

/// The last word on the member of a machine: its own, or, where SSH does not reach it, that of other members. An etcd
/// none of whose other members is well is no trouble of this one.
pub fn look(machine: &Machine, runs: &[&PlaybookRun], now: Timestamp) -> Look {
    let host = machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
    let status = machine.status.as_ref();
    let since = status.and_then(|status| status.provisioned_at.as_ref());
    let is_fresh = |(at, run): &(Timestamp, &PlaybookRun)| {
        since.is_some() && run.created_at() >= since && now.duration_since(*at) < STALE
    };
    let looks = looks(runs).into_iter().filter(is_fresh);
    let mut words = looks.filter_map(|(at, run)| Some((at, word(run, host?)?)));
    match words.next() {
        Some((at, health)) => Look { health, at: Some(at) },
        None => Look { health: Health::Unknown, at: None },
    }
}

/// What one look says of the member on a Host; none: nothing.
fn word(run: &PlaybookRun, host: &str) -> Option<Health> {
    let results = &run.status.as_ref()?.hosts;
    let said: BTreeMap<&str, &EtcdSeen> =
        results.iter().filter_map(|result| Some((result.name.as_str(), result.etcd.as_ref()?))).collect();
    let others = || said.iter().filter(|(name, _)| **name != host);
    let well = || others().filter(|(_, seen)| seen.well == Some(true));
    let named = |hosts: &[String]| hosts.iter().any(|name| name == host);
    if let Some(own) = said.get(host).filter(|own| own.well.is_some()) {
        return match own.well {
            Some(true) => Some(Health::Well),
            _ => well().next().map(|(other, _)| {
                let message = own.message.clone().unwrap_or_else(|| "it does not answer".into());
                Health::Sick(quote(format!("its member of etcd is not well, and that of {other} is: {message}")))
            }),
        };
    }
    if well().any(|(_, seen)| named(&seen.well_peers)) {
        return Some(Health::Well);
    }
    let silent = results.iter().any(|result| result.name == host && result.unreachable);
    let (other, _) = well().find(|(_, seen)| named(&seen.sick_peers))?;
    let ssh = if silent { ", and SSH does not reach it" } else { "" };
    Some(Health::Sick(format!("its member of etcd does not answer to that of {other}{ssh}")))
}

/// The ID of a machine's member, as it was told last, and when.
pub fn member_id(machine: &Machine, host: &str, runs: &[&PlaybookRun]) -> Option<(Timestamp, String)> {
    let uid = machine.uid();
    let status = machine.status.as_ref();
    let since = status.and_then(|status| status.provisioned_at.as_ref());
    let about = |run: &PlaybookRun| match attempts::targets(run).get(host) {
        Some(target) => target.uid == uid,
        None => is_probe(run) && since.is_some() && run.created_at() >= since,
    };
    let told = runs.iter().filter(|run| attempts::is_over(run) && about(run));
    let told = told.filter_map(|run| {
        let mut results = run.status.as_ref()?.hosts.iter();
        let result = results.find(|result| result.name == host)?;
        let id = result.etcd.as_ref()?.member_id.clone()?;
        Some((attempts::ended_at(run)?, id))
    });
    told.max()
}

#[cfg(test)]
mod tests;
