//! What is wrong with what etcd's members hold, by what was seen of them last.

use std::collections::BTreeMap;

use crds::Reason;
use crds::cluster_deployment::{EtcdHashCheck, EtcdMember, EtcdStatus};

use crate::moment::day_and_clock;
use crate::size::size;

/// A database above so much of its quota is large, in percent.
const LARGE_PERCENT: i64 = 80;
const CORRUPT: &str = "CORRUPT";
const NO_SPACE: &str = "NOSPACE";

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// `EtcdCorrupt`, `EtcdNoSpace` or `EtcdDatabaseLarge`.
    pub reason: Reason,
    /// What was seen, as a clause.
    pub message: String,
}

impl Finding {
    /// Whether etcd does not serve as it should; else it will not, unless something is done.
    pub fn is_grave(&self) -> bool {
        self.reason != Reason::EtcdDatabaseLarge
    }

    /// What is wrong, and what is done about it or what to do; `command` has the members defragmented.
    pub fn advise(&self, is_unasked: bool, command: &str) -> String {
        let message = &self.message;
        match self.reason {
            Reason::EtcdCorrupt => {
                format!(
                    "{message}; make a backup, then delete the Machine whose member differs, so that it is made anew"
                )
            }
            Reason::EtcdNoSpace if is_unasked => {
                format!(
                    "{message}; it is compacted and defragmented; if that does not help, delete objects and {command}"
                )
            }
            Reason::EtcdNoSpace => format!("{message}; to compact and defragment it now: {command}"),
            _ => {
                format!("{message}; give back what is free: {command}; if little is, delete objects that nobody needs")
            }
        }
    }
}

/// The worst that is wrong; none: nothing that is known.
pub(crate) fn finding(status: &EtcdStatus) -> Option<Finding> {
    let found = |reason, message| Some(Finding { reason, message });
    if let Some(check) = status.hash_check.as_ref().filter(|check| check.differs()) {
        return found(Reason::EtcdCorrupt, describe(check));
    }
    if let Some(names) = with_alarm(status, CORRUPT) {
        return found(Reason::EtcdCorrupt, format!("etcd has the alarm CORRUPT for {names}: its data differs"));
    }
    if let Some(names) = with_alarm(status, NO_SPACE) {
        let what = amount(status).map(|amount| format!(" ({amount})")).unwrap_or_default();
        let message = format!("etcd accepts no writes, its quota is used up{what}: alarm NOSPACE of {names}");
        return found(Reason::EtcdNoSpace, message);
    }
    let (Some(size), Some(quota)) = (status.size_bytes, status.quota_bytes.filter(|quota| *quota > 0)) else {
        return None;
    };
    if size < quota.saturating_mul(LARGE_PERCENT) / 100 {
        return None;
    }
    let amount = amount(status).unwrap_or_default();
    let message = format!("etcd's database is large ({amount}), and at its quota etcd accepts no more writes");
    found(Reason::EtcdDatabaseLarge, message)
}

/// `1.6 GiB of 2 GiB, 1.1 GiB of it free`.
fn amount(status: &EtcdStatus) -> Option<String> {
    let free = |member: &EtcdMember| Some(member.size_bytes?.saturating_sub(member.in_use_bytes?));
    let free = status.members.iter().filter_map(free).max().filter(|free| *free > 0);
    let free = free.map(|free| format!(", {} of it free", size(free))).unwrap_or_default();
    Some(format!("{} of {}{free}", size(status.size_bytes?), size(status.quota_bytes?)))
}

/// The Hosts of the members with this alarm, if there are any.
fn with_alarm(status: &EtcdStatus, alarm: &str) -> Option<String> {
    let has = |member: &&EtcdMember| member.alarms.iter().any(|there| there == alarm);
    let names: Vec<&str> = status.members.iter().filter(has).map(|member| member.host.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// `members of etcd hold different data at revision 4711, by their hashes: 7 (h1, h2), 9 (h3), compared at ...`.
fn describe(check: &EtcdHashCheck) -> String {
    let mut by_hash: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for member in &check.members {
        by_hash.entry(member.hash).or_default().push(&member.host);
    }
    let mut groups: Vec<(i64, Vec<&str>)> = by_hash.into_iter().collect();
    groups.sort_by_key(|(hash, hosts)| (std::cmp::Reverse(hosts.len()), *hash));
    let groups: Vec<String> = groups.iter().map(|(hash, hosts)| format!("{hash} ({})", hosts.join(", "))).collect();
    let at = day_and_clock(check.checked_at.0);
    let revision = check.revision;
    format!(
        "members of etcd hold different data at revision {revision}, by their hashes: {}; compared at {at}",
        groups.join(", ")
    )
}
