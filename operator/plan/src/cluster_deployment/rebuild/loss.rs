//! Loss: since when nobody of a cluster has answered, neither its API nor any of its machines, and whether that is long
//! enough.

use std::collections::BTreeSet;

use crds::cluster_deployment::RecoveryStrategy;
use crds::conditions::{self, Statement};
use crds::names::condition;
use jiff::{SignedDuration, Timestamp};

use super::asked::{asked, probe};
use super::{Rebuild, lack, members};
use crate::Next;
use crate::cluster_deployment::deletion::until;
use crate::cluster_deployment::runs::BATCH;
use crate::cluster_deployment::scene::{Member, Scene};
use crate::moment::after;
use crate::sentence::count;

/// How often machines are asked at most, and at least.
const PERIOD_SECONDS: (i64, i64) = (30, 300);

/// Asks the machines of a cluster whose API is silent, and counts how long nobody has answered.
pub(super) fn look(scene: &Scene<'_>, api_since: Timestamp, may_work: bool, lock_is_open: bool) -> Rebuild {
    let recovery = &scene.deployment.spec.recovery;
    let lost_after = SignedDuration::from_secs(recovery.lost_after_seconds.into());
    let held: BTreeSet<&str> = members(scene).filter_map(Member::host_name).collect();
    let asked = asked(scene, api_since, &held);
    let silent = held
        .iter()
        .all(|host| asked.last.get(host).is_some_and(|last| !last.answered));
    let answered = asked.last.values().any(|last| last.answered);
    let old = scene.deployment.status.as_ref();
    let old = old.and_then(|status| conditions::find(&status.conditions, condition::MACHINES_LOST));
    let was_lost = old.is_some_and(|old| old.status == "True");
    let since = old.map_or(scene.observed.now, |old| old.last_transition_time.0);
    // Each machine was silent when it began, and still is at the end.
    let asked_late = asked
        .last
        .values()
        .all(|last| last.at >= after(since, lost_after));
    let is_lost = silent && (was_lost || (asked_late && scene.observed.now >= after(since, lost_after)));

    let mut rebuild = Rebuild::default();
    let period = match was_lost || answered {
        true => PERIOD_SECONDS.1,
        false => (lost_after.as_secs() / 4).clamp(PERIOD_SECONDS.0, PERIOD_SECONDS.1),
    };
    let period = SignedDuration::from_secs(period);
    let due_at = |host: &&str| after(asked.last.get(host).map_or(api_since, |last| last.at), period);
    let due: BTreeSet<&str> = held
        .iter()
        .copied()
        .filter(|host| due_at(host) <= scene.observed.now)
        .collect();
    // While the lock is closed, the machines are asked for what would open it: that is an answer, too.
    if may_work && lock_is_open && !asked.under_way {
        match held.iter().map(due_at).min() {
            _ if !due.is_empty() => {
                let due: Vec<&str> = due.iter().copied().collect();
                let probes = due.chunks(BATCH).enumerate();
                rebuild.steps.extend(
                    probes.map(|(index, batch)| probe(scene, batch, api_since, asked.probes + index)),
                );
            }
            Some(next) => rebuild.next = Some(until(scene, next)),
            None => {}
        }
    }
    let who = format!(
        "neither the API nor any of {} has answered",
        count(held.len(), "machine")
    );
    if is_lost {
        lost(scene, &mut rebuild, &who, may_work);
    } else if silent || (old.is_some() && !answered) {
        let at = after(since, lost_after);
        let message = format!(
            "{who} since {}; at {} they are taken for lost",
            clock(since),
            clock(at)
        );
        let statement = Statement::new(condition::MACHINES_LOST, None, "NobodyAnswers", message);
        rebuild.statements.push(statement);
        rebuild.next = Some(rebuild.next.unwrap_or(Next::OnChange).or_sooner(until(scene, at)));
    }
    rebuild
}

fn lost(scene: &Scene<'_>, rebuild: &mut Rebuild, who: &str, may_work: bool) {
    let state = |message: &str| {
        Statement::new(
            condition::MACHINES_LOST,
            true,
            "AllMachinesLost",
            message.to_owned(),
        )
    };
    match scene.deployment.spec.recovery.strategy {
        RecoveryStrategy::Rebuild if may_work => {
            // Written down first; what is removed is told by it.
            let message =
                format!("all machines are lost: {who}; the cluster is built anew, empty, on others");
            rebuild.statements.push(state(&message));
            rebuild.statements.push(Statement::new(
                condition::REBUILDING,
                true,
                "AllMachinesLost",
                message.clone(),
            ));
            rebuild.lack = lack("Rebuilding", message);
            rebuild.stops = true;
            rebuild.next = Some(Next::after_seconds(1));
        }
        RecoveryStrategy::Rebuild | RecoveryStrategy::None => {
            let message = format!(
                "all machines are lost: {who}; bring one back, or set spec.recovery.strategy to Rebuild to have the cluster installed anew, empty, on spare Hosts, or delete it"
            );
            rebuild.statements.push(state(&message));
            rebuild.lack = lack("AllMachinesLost", message);
        }
    }
}

fn clock(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}
