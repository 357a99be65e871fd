//! The sentence of an outcome: what came out, where it failed, why.

use crds::step::Intent;

use super::host::Host;
use crate::foreign_text::cut;

/// Hosts that a sentence names; the others are counted.
const NAMED: usize = 3;

/// The failure that counts: a host's own, a control plane's or etcd member's before a worker's, then the
/// earliest.
pub(super) fn first<'a>(hosts: impl Iterator<Item = &'a Host>) -> Option<&'a Host> {
    hosts
        .filter(|host| host.result.failure.is_some())
        .min_by_key(|host| (host.failed_at.is_none(), !host.critical, host.failed_at))
}

pub(super) fn succeeded(intent: Intent, hosts: usize) -> String {
    let (one, many, done) = words(intent);
    match hosts {
        1 => format!("1 {one} {done}"),
        _ => format!("{hosts} {many} {done}"),
    }
}

pub(super) fn failed(intent: Intent, hosts: &[&Host]) -> String {
    let failed: Vec<&&Host> = hosts
        .iter()
        .filter(|host| host.result.failure.is_some())
        .collect();
    if let Some(host) = first(hosts.iter().copied()).filter(|host| host.critical) {
        let own = failed.iter().filter(|host| host.failed_at.is_some()).count();
        return format!("{}{}", one(host, true), others(own.saturating_sub(1)));
    }
    let (_, many, done) = words(intent);
    let named: Vec<String> = failed.iter().take(NAMED).map(|host| one(host, false)).collect();
    let rest = others(failed.len().saturating_sub(NAMED));
    format!(
        "{} of {} {many} {done}; {}{rest}",
        hosts.len() - failed.len(),
        hosts.len(),
        named.join("; ")
    )
}

/// After a stop: whether the machines are quiet, and which did not say so.
pub(super) fn quiet(hosts: &[&Host]) -> String {
    let asked = hosts.iter().filter(|host| host.result.quiet.is_some()).count();
    let loud: Vec<&str> = hosts
        .iter()
        .filter(|host| host.result.quiet == Some(false))
        .map(|host| host.result.name.as_str())
        .collect();
    match (asked, loud.len()) {
        (0, _) => String::new(),
        (1, 0) => "; the host is quiet".to_owned(),
        (all, 0) => format!("; all {all} hosts are quiet"),
        (all, number) => {
            let named = loud.get(..NAMED.min(number)).unwrap_or_default().join(", ");
            format!(
                "; {} of {all} hosts are quiet, not confirmed: {named}{}",
                all - number,
                others(number.saturating_sub(NAMED))
            )
        }
    }
}

fn one(host: &Host, place: bool) -> String {
    let Some(failure) = &host.result.failure else {
        return host.result.name.clone();
    };
    let message = cut(&failure.message, 256);
    let name = &host.result.name;
    let place = match (failure.step.as_str(), failure.task.as_str()) {
        ("", _) => String::new(),
        (step, "") => format!("{step}: "),
        (step, task) if place => format!("{step}, task \"{task}\": "),
        (step, _) => format!("{step}: "),
    };
    format!("{name}: {place}{}: {message}", failure.reason)
}

fn others(number: usize) -> String {
    match number {
        0 => String::new(),
        1 => "; and 1 more host".to_owned(),
        _ => format!("; and {number} more hosts"),
    }
}

fn words(intent: Intent) -> (&'static str, &'static str, &'static str) {
    match intent {
        Intent::Join => ("worker", "workers", "joined"),
        Intent::Install => ("machine", "machines", "installed"),
        Intent::Reset => ("machine", "machines", "clean"),
        Intent::Remove => ("machine", "machines", "removed"),
        Intent::Probe => ("host", "hosts", "answered"),
        Intent::Upgrade => ("machine", "machines", "upgraded"),
        Intent::Repair => ("machine", "machines", "repaired"),
        Intent::Renew | Intent::Backup | Intent::Restore | Intent::Custom => ("host", "hosts", "done"),
    }
}
