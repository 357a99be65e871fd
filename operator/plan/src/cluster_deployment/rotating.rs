//! Which machines have what a rotation is at, and what the others lack.

use crds::cluster_deployment::EtcdTopology;
use crds::machine::AppliedSettings;
use crds::step::{Role, Step};

use super::state::{ClusterMachine, ClusterState};
use crate::rotation::{MEMBER, PLUGIN, PODS, Ring, STORED, Stage, Subject, doing};
use crate::settings::authorities::{of_role, step_of};
use crate::settings::{self, Difference};

/// What a machine has of an authority or key: its name in statuses, what it is, and the step that brings it.
struct Part {
    name: &'static str,
    subject: Subject,
    step: Step,
}

/// What the machine is to have.
fn parts(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> impl Iterator<Item = Part> {
    let (role, topology) = (machine.machine.spec.role, state.deployment.spec.etcd.topology);
    let has_member = role == Role::ControlPlane && topology == EtcdTopology::Stacked;
    let member = has_member.then_some(Part { name: MEMBER, subject: Subject::EtcdCa, step: Step::Etcd });
    let is_ours = move |subject: &&Subject| **subject != Subject::EtcdCa || topology != EtcdTopology::External;
    let brought = of_role(role).iter().filter(is_ours);
    member.into_iter().chain(brought.map(move |subject| Part {
        name: subject.name(),
        subject: *subject,
        step: step_of(role),
    }))
}

/// How what was applied to a machine differs from the cluster's authorities and keys. What was replaced without a
/// rotation is brought to nobody, and neither is anything to a machine of which nothing is known while nothing is
/// rotated.
pub(super) fn of_machine(
    state: &ClusterState<'_>,
    machine: &ClusterMachine<'_>,
    applied: Option<&AppliedSettings>,
) -> Vec<Difference> {
    let rings = &state.observed.authorities.rings;
    let has = |name| applied.and_then(|applied| applied.authorities.get(name)).map(String::as_str);
    let lacks = parts(state, machine).filter_map(|part| {
        let ring = rings.get(&part.subject).filter(|ring| is_lacking(ring, has(part.name)))?;
        let waits = part.subject == Subject::EncryptionKey && ring.stage == Stage::Trust && !state.plugin_answers;
        if waits {
            return None;
        }
        let of = if part.name == MEMBER { " of etcd's member" } else { "" };
        let field = format!("{}{of} ({})", title(state, part.subject), doing(part.subject, ring.stage));
        Some(Difference { is_disruptive: true, ..Difference::new(&field, part.step, true, &ring.digest()) })
    });
    let beside = [pods, plugin, secrets].into_iter().filter_map(|beside| beside(state, machine, applied));
    lacks.chain(beside).collect()
}

/// Whether the KMS plug-in that is to encrypt has not answered on this control plane. No API server is touched before
/// it has on all of them.
fn plugin(
    state: &ClusterState<'_>,
    machine: &ClusterMachine<'_>,
    applied: Option<&AppliedSettings>,
) -> Option<Difference> {
    let authorities = state.observed.authorities;
    let ring = authorities.rings.get(&Subject::EncryptionKey).filter(|ring| ring.stage == Stage::Trust)?;
    let wanted = authorities.plugin().filter(|_| is_lacking(ring, recorded_of(machine, Subject::EncryptionKey)))?;
    let has = applied.and_then(|applied| applied.authorities.get(PLUGIN));
    let is_due = machine.machine.spec.role == Role::ControlPlane && has != Some(&wanted);
    let field = format!("{} (the KMS plug-in answers)", title(state, Subject::EncryptionKey));
    is_due.then(|| Difference::new(&field, Step::KmsPlugin, true, &wanted))
}

fn recorded_of<'a>(machine: &ClusterMachine<'a>, subject: Subject) -> Option<&'a str> {
    recorded(machine)?.authorities.get(subject.name()).map(String::as_str)
}

/// Whether Pods of the machine may still trust the former authority alone, while all machines trust the next one by
/// now.
fn pods(
    state: &ClusterState<'_>,
    machine: &ClusterMachine<'_>,
    applied: Option<&AppliedSettings>,
) -> Option<Difference> {
    let ring = state.observed.authorities.rings.get(&Subject::Ca)?;
    let has = applied.and_then(|applied| applied.authorities.get(PODS));
    let role = machine.machine.spec.role;
    let is_due = state.is_trusted && role != Role::Etcd && has != Some(&ring.trust());
    let field = format!("{} (Pods read it)", title(state, Subject::Ca));
    let difference = || Difference::new(&field, Step::RestartPods, true, &ring.trust());
    is_due.then(|| Difference { drains: role == Role::Worker, ..difference() })
}

/// Whether objects in etcd may be encrypted as before still, while all API servers encrypt with what follows. Each
/// control plane looks for itself, after it has the next one: whoever is the last proves it of all.
fn secrets(
    state: &ClusterState<'_>,
    machine: &ClusterMachine<'_>,
    applied: Option<&AppliedSettings>,
) -> Option<Difference> {
    let ring = state.observed.authorities.rings.get(&Subject::EncryptionKey)?;
    let has = applied.and_then(|applied| applied.authorities.get(STORED));
    let is_due =
        state.encrypts_anew && machine.machine.spec.role == Role::ControlPlane && has != Some(&ring.fingerprint());
    let field = format!("{} ({} are rewritten)", title(state, Subject::EncryptionKey), rewritten(state));
    is_due.then(|| Difference::new(&field, Step::RewriteSecrets, true, &ring.fingerprint()))
}

/// Whether Pods of the machine trust the former authority alone, and are started anew once all machines trust the next
/// one.
pub(super) fn restarts_pods_later(state: &ClusterState<'_>, machine: &ClusterMachine<'_>) -> bool {
    let ring = state.observed.authorities.rings.get(&Subject::Ca).filter(|ring| ring.stage == Stage::Trust);
    ring.is_some_and(|ring| recorded(machine).and_then(|applied| applied.authorities.get(PODS)) != Some(&ring.trust()))
}

/// Whether all machines trust the next authority of Kubernetes, which does not sign yet.
pub(super) fn is_trusted(state: &ClusterState<'_>) -> bool {
    is_everywhere(state, Subject::Ca, Stage::Trust)
}

/// Whether all control planes encrypt with the next key, and decrypt with the former one still.
pub(super) fn encrypts_anew(state: &ClusterState<'_>) -> bool {
    is_everywhere(state, Subject::EncryptionKey, Stage::Sign)
}

/// Whether the KMS plug-in that is to encrypt, if there is one, has answered on all control planes that do not have it.
pub(super) fn plugin_answers(state: &ClusterState<'_>) -> bool {
    unanswered(state).is_empty()
}

/// The control planes on which it has not, for all that their statuses tell.
pub(super) fn unanswered<'a>(state: &ClusterState<'a>) -> Vec<ClusterMachine<'a>> {
    concerned(state, Subject::EncryptionKey)
        .into_iter()
        .filter(|machine| plugin(state, machine, recorded(machine)).is_some())
        .collect()
}

/// Whether all machines have what this stage is about.
fn is_everywhere(state: &ClusterState<'_>, subject: Subject, stage: Stage) -> bool {
    let ring = state.observed.authorities.rings.get(&subject);
    ring.is_some_and(|ring| ring.stage == stage) && lacking(state, subject).is_empty()
}

fn is_lacking(ring: &Ring, has: Option<&str>) -> bool {
    match (has, ring.stage) {
        (None, Stage::Settled) => false,
        (Some(has), Stage::Settled) if !ring.signs_for(has) => false,
        (has, _) => has != Some(ring.digest().as_str()),
    }
}

/// Whether what was made with this state of the authority of Kubernetes is to be made anew.
pub(super) fn is_outdated(state: &ClusterState<'_>, made_with: Option<&str>) -> bool {
    let ring = state.observed.authorities.rings.get(&Subject::Ca);
    ring.is_some_and(|ring| is_lacking(ring, made_with))
}

/// The machines that lack what the subject's rotation is at, for all that their statuses tell.
pub(super) fn lacking<'a>(state: &ClusterState<'a>, subject: Subject) -> Vec<ClusterMachine<'a>> {
    let Some(ring) = state.observed.authorities.rings.get(&subject) else { return Vec::new() };
    let lacks = |machine: &ClusterMachine<'_>| {
        let has = |name| recorded(machine)?.authorities.get(name).map(String::as_str);
        parts(state, machine).any(|part| part.subject == subject && is_lacking(ring, has(part.name)))
    };
    concerned(state, subject).into_iter().filter(lacks).collect()
}

/// The machines whose Pods are to be started anew, for all that their statuses tell.
pub(super) fn unread<'a>(state: &ClusterState<'a>) -> Vec<ClusterMachine<'a>> {
    concerned(state, Subject::Ca)
        .into_iter()
        .filter(|machine| pods(state, machine, recorded(machine)).is_some())
        .collect()
}

/// The control planes that have not seen all Secrets encrypted with the next key since etcd has what it has: what their
/// statuses tell, and runs since then do not take back.
pub(super) fn unproved<'a>(state: &ClusterState<'a>) -> Vec<ClusterMachine<'a>> {
    let lacks = |machine: &ClusterMachine<'_>| {
        let applied = settings::applied(machine.machine, machine.host_name().unwrap_or_default(), state.observed.runs);
        [recorded(machine), applied.as_ref()].into_iter().any(|applied| secrets(state, machine, applied).is_some())
    };
    concerned(state, Subject::EncryptionKey).into_iter().filter(lacks).collect()
}

/// The machines that have any of it.
pub(super) fn concerned<'a>(state: &ClusterState<'a>, subject: Subject) -> Vec<ClusterMachine<'a>> {
    let has_any = |machine: &ClusterMachine<'_>| {
        machine.is_provisioned() && parts(state, machine).any(|part| part.subject == subject)
    };
    state.live.iter().copied().filter(has_any).collect()
}

/// A machine that has something of another signer, though nothing is rotated: the Secret was edited.
pub(super) fn replaced<'a>(state: &ClusterState<'a>) -> Option<(Subject, ClusterMachine<'a>)> {
    let settled = state.observed.authorities.rings.iter().filter(|(_, ring)| ring.stage == Stage::Settled);
    settled.into_iter().find_map(|(subject, ring)| {
        let is_other = |machine: &ClusterMachine<'_>| {
            let has = |name| recorded(machine).and_then(|applied| applied.authorities.get(name));
            let mut of_it = parts(state, machine).filter(|part| part.subject == *subject);
            of_it.any(|part| has(part.name).is_some_and(|has| !ring.signs_for(has)))
        };
        Some((*subject, concerned(state, *subject).into_iter().find(is_other)?))
    })
}

/// The one whose rotation is under way: it has begun, or some machine has yet to be without the former one.
pub(super) fn under_way<'a>(state: &ClusterState<'a>) -> Option<(Subject, &'a Ring)> {
    let rings = &state.observed.authorities.rings;
    state.observed.authorities.under_way().or_else(|| {
        let (subject, ring) = rings.iter().find(|(subject, _)| !lacking(state, **subject).is_empty())?;
        Some((*subject, ring))
    })
}

fn recorded<'a>(machine: &ClusterMachine<'a>) -> Option<&'a AppliedSettings> {
    machine.machine.status.as_ref()?.applied.as_ref()
}

/// `rotation of ca`; of what encrypts where another one takes its place: `change of encryption`.
pub(super) fn title(state: &ClusterState<'_>, subject: Subject) -> String {
    let encryption = &state.observed.authorities.encryption;
    match subject == Subject::EncryptionKey && encryption.from != encryption.to {
        true => "change of encryption".to_owned(),
        false => format!("rotation of {}", subject.name()),
    }
}

/// What is written anew.
pub(super) fn rewritten(state: &ClusterState<'_>) -> &'static str {
    if state.observed.authorities.encryption.is_of_secrets() { "Secrets" } else { "objects of encrypted resources" }
}
