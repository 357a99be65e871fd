//! The message of an outcome: how many hosts are done, which failed, where and why.

use crds::step::{Intent, Role, Step};

use super::host::Host;
use crate::sanitize::cut;

/// Hosts that a message names; the others are counted.
const NAMED: usize = 3;

/// The failure that counts: a host's own, a control plane's or etcd member's before a worker's, then the
/// earliest.
pub(super) fn first<'a>(hosts: impl Iterator<Item = &'a Host>) -> Option<&'a Host> {
    hosts
        .filter(|host| host.result.failure.is_some())
        .min_by_key(|host| (host.failed_at.is_none(), !host.critical, host.failed_at))
}

/// The purpose of a run, as far as its message needs to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purpose {
    pub intent: Intent,
    /// It cleans machines.
    pub resets: bool,
}

impl Purpose {
    pub(super) fn new(intent: Intent, steps: &[Step]) -> Self {
        Self { intent, resets: steps.contains(&Step::Reset) }
    }
}

pub(super) fn succeeded(purpose: Purpose, hosts: &[&Host]) -> String {
    let (one, many, done) = words(purpose, hosts);
    if purpose.intent == Intent::Join {
        return format!("{} {done}", by_role(hosts));
    }
    match hosts.len() {
        1 => format!("1 {one} {done}"),
        number => format!("{number} {many} {done}"),
    }
}

/// Of machines that were compared: `; 2 differ: n1 (prepare), n2 (etcd, control-plane)`.
pub(super) fn differing(hosts: &[&Host]) -> String {
    let differ = hosts.iter().filter(|host| !host.result.differences.is_empty());
    let named: Vec<String> = differ
        .map(|host| {
            let steps = host.result.differences.iter().map(|difference| difference.step.name());
            format!("{} ({})", host.result.name, steps.collect::<Vec<_>>().join(", "))
        })
        .collect();
    let verb = if named.len() == 1 { "differs" } else { "differ" };
    match named.len() {
        0 => String::new(),
        number => {
            let rest = others(number.saturating_sub(NAMED));
            format!("; {number} {verb}: {}{rest}", named.get(..NAMED.min(number)).unwrap_or_default().join(", "))
        }
    }
}

pub(super) fn failed(purpose: Purpose, hosts: &[&Host]) -> String {
    let failed: Vec<&&Host> = hosts.iter().filter(|host| host.result.failure.is_some()).collect();
    if let Some(host) = first(hosts.iter().copied()).filter(|host| host.critical) {
        let own = failed.iter().filter(|host| host.failed_at.is_some()).count();
        return format!("{}{}", one(host, true), others(own.saturating_sub(1)));
    }
    let (_, many, done) = words(purpose, hosts);
    let named: Vec<String> = failed.iter().take(NAMED).map(|host| one(host, false)).collect();
    let rest = others(failed.len().saturating_sub(NAMED));
    format!("{} of {} {many} {done}; {}{rest}", hosts.len() - failed.len(), hosts.len(), named.join("; "))
}

/// After a stop: whether the machines are quiet, and for which that is not confirmed.
pub(super) fn quiet(hosts: &[&Host]) -> String {
    let asked = hosts.iter().filter(|host| host.result.quiet.is_some()).count();
    let loud: Vec<&str> =
        hosts.iter().filter(|host| host.result.quiet == Some(false)).map(|host| host.result.name.as_str()).collect();
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

fn one(host: &Host, with_task: bool) -> String {
    let Some(failure) = &host.result.failure else {
        return host.result.name.clone();
    };
    let message = cut(&failure.message, 256);
    let name = &host.result.name;
    let position = match (failure.step.as_str(), failure.task.as_str()) {
        ("", _) => String::new(),
        (step, "") => format!("{step}: "),
        (step, task) if with_task => format!("{step}, task \"{task}\": "),
        (step, _) => format!("{step}: "),
    };
    format!("{name}: {position}{}: {message}", failure.reason)
}

fn others(number: usize) -> String {
    match number {
        0 => String::new(),
        1 => "; and 1 more host".to_owned(),
        _ => format!("; and {number} more hosts"),
    }
}

/// `2 workers and 1 control plane`.
fn by_role(hosts: &[&Host]) -> String {
    let number = |role: Role| hosts.iter().filter(|host| host.role == role).count();
    let counted: Vec<String> = [Role::Worker, Role::ControlPlane, Role::Etcd]
        .into_iter()
        .filter_map(|role| {
            let (one, many) = title(role);
            match number(role) {
                0 => None,
                1 => Some(format!("1 {one}")),
                number => Some(format!("{number} {many}")),
            }
        })
        .collect();
    match counted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "0 machines".to_owned(),
    }
}

fn title(role: Role) -> (&'static str, &'static str) {
    match role {
        Role::ControlPlane => ("control plane", "control planes"),
        Role::Etcd => ("etcd member", "etcd members"),
        Role::Worker => ("worker", "workers"),
    }
}

fn words(purpose: Purpose, hosts: &[&Host]) -> (&'static str, &'static str, &'static str) {
    let spec = purpose.intent.spec();
    let first = hosts.first().map(|host| host.role);
    let alike = first.filter(|role| hosts.iter().all(|host| host.role == *role));
    let ((one, many), done) = if purpose.intent == Intent::Remove && purpose.resets {
        (("machine", "machines"), "removed")
    } else if purpose.intent == Intent::Join {
        (alike.map_or(spec.things, title), spec.done)
    } else {
        (spec.things, spec.done)
    };
    (one, many, done)
}
