//! Health of a control plane's components, from what the API shows of them.

use crds::Reason;
use crds::cluster::ComponentHealth;
use crds::conditions::Statement;
use crds::names::condition;
use jiff::{SignedDuration, Timestamp};

use crate::moment::day_and_clock;

/// Without these there is no control plane; the others are add-ons.
const CONTROL_PLANE: [&str; 4] = ["kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler"];
/// A leader that has not renewed its lease for this long does not work.
const LEASE_SILENCE: SignedDuration = SignedDuration::from_secs(40);
/// How far two machines' clocks may be apart before a lease seen for the first time is doubted.
const CLOCKS_APART: SignedDuration = SignedDuration::from_mins(5);
const LONGEST_MESSAGE: usize = 500;

/// The API server and etcd, from the text of `/readyz?verbose` (`[+]etcd ok`, `[-]etcd failed: ...`).
pub fn from_readyz(answered_well: bool, text: &str) -> Vec<ComponentHealth> {
    let checks: Vec<(&str, bool)> = text
        .lines()
        .filter_map(|line| {
            let (well, rest) = match line.trim_start() {
                line if line.starts_with("[+]") => (true, line.get(3..)?),
                line if line.starts_with("[-]") => (false, line.get(3..)?),
                _ => return None,
            };
            Some((rest.split_whitespace().next()?, well))
        })
        .collect();
    let is_etcd = |name: &str| name == "etcd" || name.starts_with("etcd-");
    let failed = |of_etcd: bool| {
        let failed = checks.iter().filter(|(name, well)| !well && is_etcd(name) == of_etcd);
        failed.map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()
    };
    let mut components = Vec::new();
    let failures = failed(false);
    components.push(if !failures.is_empty() {
        sick("kube-apiserver", format!("these checks of /readyz fail: {}", super::names(failures)))
    } else if answered_well || !checks.is_empty() {
        well("kube-apiserver", None)
    } else {
        sick("kube-apiserver", "/readyz does not say that it is ready".into())
    });
    if checks.iter().any(|(name, _)| is_etcd(name)) {
        let failures = failed(true);
        components.push(if failures.is_empty() {
            well("etcd", None)
        } else {
            sick("etcd", "the API server does not reach it".into())
        });
    }
    components
}

/// A lease, as it was seen before: when it said that it was renewed, and when that was first seen here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseSeen {
    /// By the leader's clock.
    pub renewed_at: Timestamp,
    /// By ours.
    pub first_seen_at: Timestamp,
}

/// A component that holds a lease. Silence is measured by our own clock: two clocks need not agree.
pub fn from_lease(
    component: &str,
    renewed_at: Option<Timestamp>,
    before: Option<LeaseSeen>,
    now: Timestamp,
) -> (ComponentHealth, Option<LeaseSeen>) {
    let Some(renewed_at) = renewed_at else {
        return (sick(component, "nobody has taken its lease".into()), None);
    };
    let silent = |since: Timestamp| {
        sick(component, format!("its leader has not renewed the lease since {}", day_and_clock(since)))
    };
    match before.filter(|before| before.renewed_at == renewed_at) {
        Some(before) if now.duration_since(before.first_seen_at) > LEASE_SILENCE => (silent(renewed_at), Some(before)),
        Some(before) => (well(component, None), Some(before)),
        None => {
            let seen = LeaseSeen { renewed_at, first_seen_at: now };
            let health =
                if now.duration_since(renewed_at) > CLOCKS_APART { silent(renewed_at) } else { well(component, None) };
            (health, Some(seen))
        }
    }
}

/// A component that runs as Pods: `wanted` of them, `available` are there.
pub fn from_rollout(component: &str, wanted: i32, available: i32) -> ComponentHealth {
    let message = format!("{available} of {wanted} Pods are available");
    if available >= wanted { well(component, Some(message)) } else { sick(component, message) }
}

/// A component that could not be looked at.
pub fn not_read(component: &str, why: &str) -> ComponentHealth {
    sick(component, format!("could not be read: {why}"))
}

/// The condition over all of them; what is no part of the control plane counts as well, behind it.
pub(super) fn control_plane_healthy(components: &[ComponentHealth]) -> Statement {
    let type_ = condition::CONTROL_PLANE_HEALTHY;
    let mut sick: Vec<&ComponentHealth> = components.iter().filter(|component| !component.healthy).collect();
    sick.sort_by_key(|component| CONTROL_PLANE.iter().position(|name| *name == component.name).unwrap_or(usize::MAX));
    match sick.first() {
        None => Statement::new(type_, true, Reason::ComponentsWork, "every component works"),
        Some(component) => {
            let message = component.message.as_deref().unwrap_or("it does not work");
            Statement::new(type_, false, Reason::ComponentUnhealthy, format!("{}: {message}", component.name))
        }
    }
}

fn well(name: &str, message: Option<String>) -> ComponentHealth {
    ComponentHealth { name: name.into(), healthy: true, message }
}

fn sick(name: &str, message: String) -> ComponentHealth {
    ComponentHealth {
        name: name.into(),
        healthy: false,
        message: Some(message.chars().filter(|c| !c.is_control()).take(LONGEST_MESSAGE).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::{LeaseSeen, from_lease, from_readyz};
    use jiff::Timestamp;

    #[test]
    fn readyz_tells_the_api_server_from_etcd() {
        let check = |well: bool, text: &str, expected: &[(&str, bool)]| {
            let found = from_readyz(well, text);
            let found: Vec<(&str, bool)> = found.iter().map(|c| (c.name.as_str(), c.healthy)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check(
            true,
            "[+]ping ok\n[+]etcd ok\n[+]etcd-readiness ok\nreadyz check passed",
            &[("kube-apiserver", true), ("etcd", true)],
        );
        check(
            false,
            "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed",
            &[("kube-apiserver", true), ("etcd", false)],
        );
        check(false, "[-]shutdown failed: x\n[+]etcd ok", &[("kube-apiserver", false), ("etcd", true)]);
        check(true, "ok", &[("kube-apiserver", true)]);
        check(false, "<html>bad gateway</html>", &[("kube-apiserver", false)]);
    }

    #[test]
    fn a_leader_is_silent_by_our_clock_not_by_its_own() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let seen = |renewed: i64, first: i64| LeaseSeen { renewed_at: at(renewed), first_seen_at: at(first) };
        let healthy = |renewed: i64, before: Option<LeaseSeen>, now: i64| {
            from_lease("x", Some(at(renewed)), before, at(now)).0.healthy
        };
        assert!(healthy(0, None, 60), "first look: clocks may differ");
        assert!(!healthy(0, None, 600), "first look: far too old");
        assert!(healthy(100, Some(seen(70, 0)), 30), "it moved, though its clock is ahead");
        assert!(healthy(0, Some(seen(0, 0)), 40));
        assert!(!healthy(0, Some(seen(0, 0)), 41));
        assert!(!from_lease("x", None, None, at(0)).0.healthy);
    }
}
