//! What must hold before an upgrade begins. Once it has, it goes on whatever becomes of it.

use crds::Reason;
use crds::cluster_deployment::Approval;
use crds::karmada_deployment::{KarmadaMemberPhase as Phase, KarmadaMemberStatus, UpgradeCheck};
use jiff::SignedDuration;

use super::super::contact::Contact;
use super::super::observed::Observed;
use super::super::place::{Hold, Place, Stage, Wanted};
use super::super::progress::StageReport;
use super::approval;
use super::state::Upgrade;
use crate::addon::Problem;
use crate::cluster_addon::{State, Trial};
use crate::message::{count, quote};
use crate::moment::{after, day_and_clock};

/// How long certificates must last, in days.
const CERTIFICATE_DAYS: i32 = 30;

/// What an upgrade begins with.
pub(in super::super) struct Scene<'a> {
    pub observed: &'a Observed<'a>,
    pub wanted: &'a [Wanted],
    pub reports: &'a [StageReport],
    /// The members from now on.
    pub members: &'a [KarmadaMemberStatus],
    /// Why the plane does not work, deeper than its Pods say.
    pub silent: Option<&'a Problem>,
}

/// Why it does not begin; none: it does.
pub(super) fn find(scene: &Scene<'_>, upgrade: &Upgrade) -> Option<Problem> {
    let object = scene.observed.object;
    let heeds = |check: UpgradeCheck| !object.spec.upgrade.ignore.contains(&check);
    let blocked = |check: Option<&str>, message: String| {
        let or = check.map(|check| format!("; or name {check} in spec.upgrade.ignore")).unwrap_or_default();
        Problem { reason: Reason::UpgradeBlocked, message: format!("{message}{or}") }
    };
    let is_bound = !upgrade.record.interrupts && !upgrade.was_never_whole();
    definitions(scene)
        .map(|message| blocked(None, message))
        .or_else(|| unwell(scene).filter(|_| is_bound && heeds(UpgradeCheck::Health)))
        .or_else(|| {
            Some(blocked(
                Some("Members"),
                first_off(scene.members).filter(|_| is_bound && heeds(UpgradeCheck::Members))?,
            ))
        })
        .or_else(|| {
            let message = terminating(scene).filter(|_| is_bound && heeds(UpgradeCheck::Terminating))?;
            Some(blocked(Some("Terminating"), message))
        })
        .or_else(|| {
            let message = certificates(scene).filter(|_| heeds(UpgradeCheck::Certificates))?;
            Some(blocked(Some("Certificates"), message))
        })
        .or_else(|| unapproved(scene, upgrade))
}

/// The bundle's definitions are tried before anything is touched that needs them.
fn definitions(scene: &Scene<'_>) -> Option<String> {
    let stage = scene.reports.iter().find(|report| report.stage == Stage::Definitions);
    if let Some(problem) = stage.and_then(|report| report.problem.as_ref()) {
        return Some(problem.message.clone());
    }
    let Contact::Made(plane) = scene.observed.plane else { return None };
    let mut in_plane = scene.wanted.iter().filter(|one| one.place == Place::Plane).zip(&plane.states);
    in_plane.find_map(|(one, state)| {
        let is_held = one.stage == Stage::Definitions && one.hold == Hold::Untouched;
        match state {
            State::There { trial: Trial::Refused(why), .. } | State::Refused(why) if is_held => {
                let version = scene.observed.object.spec.version.as_str();
                Some(format!("spec.crds: {} of {version} would be refused: {}", one.object, quote(why.clone())))
            }
            _ => None,
        }
    })
}

/// What is not as it should be is not known to be the upgrade's fault later.
fn unwell(scene: &Scene<'_>) -> Option<Problem> {
    let open = scene.reports.iter().find_map(|report| report.waits_for().or_else(|| report.broken()));
    let problem = open.or_else(|| scene.silent.cloned())?;
    let reason = if problem.reason.is_warning() { Reason::UpgradeBlocked } else { Reason::Upgrading };
    let hint = if problem.reason.is_warning() { ": repair it; or name Health in spec.upgrade.ignore" } else { "" };
    Some(Problem { reason, message: format!("waiting for a plane that works: {}{hint}", problem.message) })
}

/// The first member that is not a member like any other.
fn first_off(members: &[KarmadaMemberStatus]) -> Option<String> {
    let how = |member: &KarmadaMemberStatus| match member.phase {
        Phase::Leaving => Some("is leaving"),
        Phase::Joining => Some("is joining"),
        Phase::Lost => Some("is not reached"),
        Phase::Waiting | Phase::Joined | Phase::Blocked => None,
    };
    let off: Vec<_> = members.iter().filter_map(|member| Some((member, how(member)?))).collect();
    let (first, is) = off.first()?;
    let more = if off.len() > 1 { format!(" (and {} more)", off.len() - 1) } else { String::new() };
    Some(format!("member {} {is}{more}: {}: wait for it, or repair it", first.name, first.message))
}

fn terminating(scene: &Scene<'_>) -> Option<String> {
    let propagated = scene.observed.plane.seen()?.propagated.as_ref()?;
    let first = propagated.first_terminating.as_ref()?;
    let objects = count(propagated.terminating, "object");
    Some(format!(
        "{objects} that carry workloads to members are being deleted, the first is {first}: wait until they are gone, or find out what holds them"
    ))
}

fn certificates(scene: &Scene<'_>) -> Option<String> {
    let spec = &scene.observed.object.spec.certificates;
    let days = CERTIFICATE_DAYS.min(spec.validity_days / 3);
    let end = scene.observed.material.first_end?;
    let latest = after(scene.observed.now, SignedDuration::from_hours(i64::from(days) * 24));
    (end < latest).then(|| {
        format!(
            "a certificate of the plane ends at {}, in less than {}: set spec.certificates.renewBeforeDays to {} and it is renewed",
            day_and_clock(end),
            count(usize::try_from(days).unwrap_or_default(), "day"),
            days + 1
        )
    })
}

fn unapproved(scene: &Scene<'_>, upgrade: &Upgrade) -> Option<Problem> {
    let object = scene.observed.object;
    let digest = &upgrade.record.digest;
    let is_asked = object.spec.upgrade.approval == Approval::Manual && !approval::is_given(object, digest);
    is_asked.then(|| Problem {
        reason: Reason::WaitingForApproval,
        message: format!("waits for approval of status.upgrade: {}", approval::command(object, digest)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::first_off;

    #[test]
    fn an_upgrade_waits_for_members_that_are_not_reached_or_on_their_way() {
        let check = |phases: &[&str], expected: Option<&str>| {
            let member = |(at, phase): (usize, &&str)| {
                serde_json::from_value(json!({
                    "name": format!("m{at}"), "syncMode": "push", "phase": phase, "reason": "Said", "message": "why",
                    "since": "2026-11-27T09:00:00Z",
                }))
                .unwrap()
            };
            let members: Vec<_> = phases.iter().enumerate().map(member).collect();
            let found = first_off(&members);
            assert_eq!(
                found.as_deref().map(|text| text.starts_with(expected.unwrap_or("none"))),
                expected.map(|_| true)
            );
        };
        check(&["Joined", "Waiting", "Blocked"], None);
        check(&["Joined", "Lost", "Leaving"], Some("member m1 is not reached (and 1 more): why: "));
        check(&["Leaving"], Some("member m0 is leaving: why: "));
        check(&["Joining"], Some("member m0 is joining: why: "));
    }
}
