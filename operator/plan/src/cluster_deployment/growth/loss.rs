//! Loss: etcd without a majority of their members' machines. Nothing is done until a person approves; then one machine that
//! still answers carries on alone, from its own data, and the others are made anew.

mod asking;
mod recovery;

use crds::conditions;
use crds::names::condition;
use jiff::{SignedDuration, Timestamp};

use super::Found;
use crate::approval::{self, What};
use crate::cluster_deployment::deletion::until;
use crate::cluster_deployment::part::component;
use crate::cluster_deployment::scene::{Member, Scene};
use crate::departure::{self, Council};
use crate::moment::after;
use crate::sentence::count;

/// Reason of `EtcdReady` while a person's word is waited for.
pub(in crate::cluster_deployment) const LOST: &str = "QuorumLost";
/// Silence shorter than this is no reason to ask machines.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// What it says means that etcd is lost; steps alone do not.
pub(super) fn of(scene: &Scene<'_>, council: &Council<'_>) -> Found {
    let (Some(role), Some(since)) = (council.etcd_role(), trouble_since(scene)) else {
        return Found::default();
    };
    if let Some(found) = recovery::of(scene, role, since) {
        return found;
    }
    let members: Vec<Member<'_>> = council
        .members()
        .into_iter()
        .filter_map(|machine| scene.member(machine))
        .collect();
    // Those that were forgotten cannot be asked, and count as silent.
    let forgotten = council.forgotten_members();
    let total = members.len() + forgotten.len();
    if total == 0 {
        return Found::default();
    }
    if scene.observed.now < after(since, PATIENCE) {
        return Found::default().later(until(scene, after(since, PATIENCE)));
    }
    let asked = asking::ask(scene, &members, since);
    let (alive, silent): (Vec<Member<'_>>, Vec<Member<'_>>) = members
        .iter()
        .copied()
        .partition(|member| asked.answers.get(member.host_name().unwrap_or_default()) == Some(&true));
    let needed = total / 2 + 1;
    if !asked.complete || alive.len() >= needed {
        // It is not known, or not etcd: others say what is wrong, and the machines are asked again.
        return Found {
            steps: asked.steps,
            next: asked.next,
            says: None,
        };
    }
    let forgotten = forgotten.into_iter().map(departure::title_of_forgotten);
    let silent: Vec<String> = silent.iter().map(Member::title).chain(forgotten).collect();
    let lost = format!(
        "etcd has lost its majority: {} with its members, of which {} answer and {needed} are needed (silent: {})",
        count(total, "machine"),
        alive.len(),
        silent.join(", ")
    );
    let Some(survivor) = survivor(scene, &alive) else {
        let message = format!("{lost}; none is left to go on from: bring one back, or see spec.recovery");
        let mut found = Found::says(role, LOST, message, true);
        (found.steps, found.next) = (asked.steps, asked.next);
        return found;
    };
    let value = approval_of(scene, &survivor, &members, since);
    if approval::is_given(&scene.deployment.metadata, &value) {
        let message = format!("etcd goes on with {} alone, from its own data", survivor.title());
        let run = recovery::recover(scene, survivor, &value, 0, None);
        return Found::says(role, "RecoversEtcd", message, true).and(run);
    }
    let message = format!(
        "{lost}; nothing is done before you decide: bring a machine back, or let etcd go on with {} alone, from its own data (what only the others had is lost; the others are made anew): {}",
        survivor.title(),
        scene.approve(&value)
    );
    let mut found = Found::says(role, LOST, message, true);
    (found.steps, found.next) = (asked.steps, asked.next);
    found
}

/// The approval of this loss: who goes on alone, and which machines' data is given up.
fn approval_of(scene: &Scene<'_>, survivor: &Member<'_>, members: &[Member<'_>], since: Timestamp) -> String {
    let since = since.to_string();
    let mut uids: Vec<&str> = members.iter().map(Member::uid).collect();
    uids.sort_unstable();
    let acts: Vec<&str> = [since.as_str(), survivor.uid()].into_iter().chain(uids).collect();
    approval::value(What::QuorumLoss, &scene.deployment.metadata, &acts)
}

/// Since when the API, or etcd behind it, has not answered.
fn trouble_since(scene: &Scene<'_>) -> Option<Timestamp> {
    let status = scene.observed.cluster?.status.as_ref()?;
    if let Some(since) = &status.unreachable_since {
        return Some(since.0);
    }
    let (false, _) = component(scene, "etcd")? else {
        return None;
    };
    let status = scene.deployment.status.as_ref()?;
    let ready = conditions::find(&status.conditions, condition::ETCD_READY)?;
    (ready.status != "True").then_some(ready.last_transition_time.0)
}
/// Who goes on alone: the first control plane if it answers, or else the first that does.
fn survivor<'a>(scene: &Scene<'_>, alive: &[Member<'a>]) -> Option<Member<'a>> {
    let status = scene.deployment.status.as_ref();
    let first = status.and_then(|status| status.first_control_plane.as_deref());
    let stays = || alive.iter().filter(|member| member.deleted_at().is_none());
    let chosen = stays().find(|member| Some(member.name()) == first);
    chosen.or_else(|| stays().next()).copied()
}
