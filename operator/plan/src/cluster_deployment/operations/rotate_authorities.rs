//! Rotates an authority of the cluster, or one of its keys, when a person asks for it. What machines are to have
//! in each stage is brought to them as any other setting; here it is decided when the next stage begins.

use crds::conditions::Statement;
use crds::names::{annotation, condition};
use crds::step::Effect;
use crds::{ObjectExt, PlaybookRun, Reason};

use crate::approval::{self, What};
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::lane::{Lane, Needs};
use crate::cluster_deployment::own_authorities;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::rotating::{
    concerned, lacking, replaced, rewritten, title, unanswered, under_way, unproved, unread,
};
use crate::cluster_deployment::state::ClusterState;
use crate::cluster_deployment::{backup_before, turn};
use crate::encryption::Scheme;
use crate::etcd_restore::is_over;
use crate::message::cut;
use crate::rotation::asking::{Asked, Asking};
use crate::rotation::own::Wish;
use crate::rotation::request::Request;
use crate::rotation::{Act, Move, Ring, Stage, Subject, doing, refused_afterwards};

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if state.installed.is_none() {
        return Proposal::default().condition(condition::AUTHORITIES_ROTATED, None);
    }
    if let Some((subject, machine)) = replaced(state) {
        let message = format!(
            "the Secret has another {} than {} has: put the former one back; to have it rotated: {}",
            subject.name(),
            machine.title(),
            how(state, subject)
        );
        // Whatever runs would get what their machines must not have.
        let blocks = &[Lane::ControlPlane, Lane::Workers, Lane::Remediation];
        return Proposal { blocks, ..stated(false, Reason::AuthorityReplaced, message) };
    }
    match under_way(state) {
        Some((subject, ring)) => with_next(state, subject, go_on(state, subject, ring)),
        None => settled(state, round),
    }
}

/// What is said of a rotation that is under way, with what follows it.
fn with_next(state: &ClusterState<'_>, subject: Subject, mut proposal: Proposal) -> Proposal {
    let next = match own_authorities::wish(state) {
        Wish::Rotate(next, _) if next == subject => {
            format!("; then to another one: {}", own_authorities::towards(state))
        }
        Wish::Rotate(next, _) => format!("; then {} {}", title(state, next), own_authorities::towards(state)),
        Wish::Refused(_, message) => format!("; {message}"),
        Wish::None | Wish::Met => return proposal,
    };
    for statement in &mut proposal.conditions {
        // The command of an approval stays last, so that it can be copied.
        if statement.reason != Reason::WaitingForApproval {
            statement.message = cut(format!("{}{next}", statement.message));
        }
    }
    proposal
}

/// What a rotation that is under way comes to next.
fn go_on(state: &ClusterState<'_>, subject: Subject, ring: &Ring) -> Proposal {
    let title = title(state, subject);
    if subject == Subject::EncryptionKey && is_taken_back(state, ring) {
        let why = "what was prepared is taken back: the spec says something else by now";
        // No machine is brought it meanwhile.
        return Proposal { blocks: &[Lane::ControlPlane], ..make(state, subject, Move::Withdraw, why) };
    }
    let (lacks, all) = (lacking(state, subject).len(), concerned(state, subject).len());
    let (unread, unproved) = (unread(state).len(), unproved(state).len());
    let silent = if subject == Subject::EncryptionKey { unanswered(state).len() } else { 0 };
    if silent > 0 {
        let what = format!("the KMS plug-in answers: on {} of {all} control planes it has", all - silent);
        return stated(false, Reason::RotatingAuthorities, format!("{title}: {what}"));
    }
    let what = match (lacks, unread, unproved) {
        (0, 0, 0) => return advance(state, subject, ring),
        (0, 0, unproved) => {
            let what = rewritten(state);
            format!("all {what} are rewritten: {} of {all} control planes have seen that they are", all - unproved)
        }
        (0, unread, _) => {
            format!("Pods read that the next one is trusted: on {} of {all} machines they have", all - unread)
        }
        (lacks, ..) => format!("{}: {} of {all} machines have it", doing(subject, ring.stage), all - lacks),
    };
    stated(false, Reason::RotatingAuthorities, format!("{title}: {what}"))
}

/// All machines have what the stage is about.
fn advance(state: &ClusterState<'_>, subject: Subject, ring: &Ring) -> Proposal {
    let next = match ring.stage {
        Stage::Trust => Move::Sign,
        Stage::Sign => Move::Complete,
        // Nobody lacks anything: it is over.
        Stage::Settled => return Proposal::default(),
    };
    if next == Move::Complete && subject.is_held_by_people() {
        let acts = [subject.name(), &ring.digest()];
        let value = approval::lasting_value(What::Rotate, &state.deployment.metadata, &acts);
        if !approval::is_given(&state.deployment.metadata, &value) {
            return prepared(state, subject, &value);
        }
    }
    let stage = if next == Move::Sign { Stage::Sign } else { Stage::Settled };
    make(state, subject, next, doing(subject, stage))
}

/// Makes a move of a rotation that is under way, unless something has to end before.
fn make(state: &ClusterState<'_>, subject: Subject, next: Move, what: &str) -> Proposal {
    let title = title(state, subject);
    if let Some(why) = why_not_now(state, subject) {
        return stated(false, Reason::RotatingAuthorities, format!("{title}: {why}"));
    }
    stated(false, Reason::RotatingAuthorities, format!("{title}: {what}"))
        .and(Action::Rotate(Act::Move { subject, next }))
}

/// Whether an edit of `spec.encryption` was prepared that is not wanted any more. Nothing is encrypted so yet.
fn is_taken_back(state: &ClusterState<'_>, ring: &Ring) -> bool {
    let encryption = &state.observed.authorities.encryption;
    ring.stage == Stage::Trust
        && encryption.is_edit
        && encryption.differs(&Scheme::wanted(state.deployment.spec.encryption.as_ref()))
}

/// A person must say that what they hold is replaced.
fn prepared(state: &ClusterState<'_>, subject: Subject, value: &str) -> Proposal {
    let held = refused_afterwards(subject);
    let message = format!("{} is prepared; {held}; then: {}", title(state, subject), state.approve(value));
    stated(false, Reason::WaitingForApproval, message)
}

/// Nothing is under way. What the owner brings comes before what is asked for by annotation; what is wrong with it
/// keeps no key from being rotated.
fn settled(state: &ClusterState<'_>, round: &Round) -> Proposal {
    if let Some(proposal) = edited(state, round) {
        return proposal;
    }
    let wish = own_authorities::wish(state);
    if let Wish::Rotate(subject, fingerprint) = wish {
        let title = format!("{} {}", title(state, subject), own_authorities::towards(state));
        return begin(state, round, subject, &title, Action::Rotate(Act::Take { subject, fingerprint }));
    }
    match (asked(state), wish) {
        (Asked::For(request), _) => {
            let Request { subject, number } = request;
            let action = Action::Rotate(Act::Move { subject, next: Move::Begin(number) });
            begin(state, round, subject, &title(state, subject), action)
        }
        (Asked::Refused(message), _) => stated(false, Reason::RotationRefused, message),
        (Asked::Nothing | Asked::Done(_), Wish::Refused(reason, message)) => stated(false, reason, message),
        (Asked::Done(request), wish) => {
            let met = if wish == Wish::Met { format!("; {}", own_authorities::met(state)) } else { String::new() };
            stated(true, Reason::Rotated, format!("{request}: all machines have the new one alone{met}"))
        }
        (Asked::Nothing, Wish::Met) => stated(true, Reason::Rotated, own_authorities::met(state)),
        (Asked::Nothing, _) => Proposal::default().condition(condition::AUTHORITIES_ROTATED, None),
    }
}

/// What the annotation asks for.
fn asked(state: &ClusterState<'_>) -> Asked {
    let asking = Asking {
        metadata: &state.deployment.metadata,
        subjects: &Subject::ALL,
        rotated: &state.observed.authorities.rotated,
        refusal: &|subject| own_authorities::not_asked(state, subject),
        command: &|value| state.annotate(annotation::ROTATE, value),
    };
    asking.asked()
}

/// The spec wants something else encrypted, or by something else, than the cluster has.
fn edited(state: &ClusterState<'_>, round: &Round) -> Option<Proposal> {
    let authorities = state.observed.authorities;
    let wanted = Scheme::wanted(state.deployment.spec.encryption.as_ref());
    let is_known = authorities.rings.contains_key(&Subject::EncryptionKey);
    if !is_known || !authorities.encryption.differs(&wanted) {
        return None;
    }
    if let Some(known) = authorities.encryption.same_name(&wanted) {
        let message = format!(
            "encryption.kms: the name {} is that of the plug-in behind {}, which has encrypted what is in etcd or in backups: give the other one another name",
            known.name, known.endpoint
        );
        return Some(stated(false, Reason::RotationRefused, message));
    }
    let title = format!("change of encryption to {wanted}");
    let action = Action::Rotate(Act::Move { subject: Subject::EncryptionKey, next: Move::Adopt });
    Some(begin(state, round, Subject::EncryptionKey, &title, action))
}

/// Makes the first move, once all is well.
fn begin(state: &ClusterState<'_>, round: &Round, subject: Subject, title: &str, action: Action) -> Proposal {
    let waits = |why: String| stated(false, Reason::RotatingAuthorities, format!("{title} is to begin: {why}"));
    if !round.allows(Lane::ControlPlane, Needs::Spec) || !state.observed.authorities.rings.contains_key(&subject) {
        return waits("the cluster is paused, or cannot be changed for now".to_owned());
    }
    if let Some(upgrade) = &state.upgrade {
        return waits(format!("waits for the upgrade to {} to be over", upgrade.to));
    }
    if let Some(outdated) = state.outdated.first() {
        return waits(format!("waits for changed settings to be rolled out ({})", outdated.fields()));
    }
    if let Some(why) = why_not_now(state, subject) {
        return waits(why);
    }
    if let Some(mut before) = backup_before::propose(state, Reason::RotatingAuthorities, title) {
        let said = before.report.take().map(|report| stated(false, report.reason, report.message)).unwrap_or_default();
        return Proposal { actions: before.actions, requeue: before.requeue, ..said };
    }
    let proposal = stated(false, Reason::RotatingAuthorities, format!("{title} begins"));
    proposal.and(action)
}

/// Why no move is made now. What a run under way brings is what there was when it began. What etcd has while it is
/// backed up, and what it is set back to, is encrypted with keys that must not change meanwhile.
fn why_not_now(state: &ClusterState<'_>, subject: Subject) -> Option<String> {
    let is_of_data = subject == Subject::EncryptionKey;
    let matters = |run: &&PlaybookRun| {
        let effect = run.spec.intent.spec().effect;
        effect == Effect::Provisions || effect == Effect::Copies && is_of_data
    };
    let run = state.active.iter().copied().find(matters);
    let mut restores = state.observed.restores.iter().filter(|restore| is_of_data && !is_over(restore));
    turn::why_not_now(state, None)
        .or_else(|| run.map(|run| format!("waits for run {} to end", run.name())))
        .or_else(|| restores.next().map(|restore| format!("waits for EtcdRestore {} to be over", restore.name())))
}

/// What a person does to have it rotated.
pub(in crate::cluster_deployment) fn how(state: &ClusterState<'_>, subject: Subject) -> String {
    match own_authorities::brings(state, subject) {
        true => own_authorities::advice(state, subject),
        false => command(state, subject),
    }
}

/// What a person types to have it rotated.
fn command(state: &ClusterState<'_>, subject: Subject) -> String {
    let last = state.observed.authorities.rotated.get(&subject).copied().unwrap_or_default();
    state.annotate(annotation::ROTATE, &Request { subject, number: last + 1 }.to_string())
}

fn stated(status: bool, reason: Reason, message: String) -> Proposal {
    let statement = Statement::new(condition::AUTHORITIES_ROTATED, Some(status), reason, cut(message));
    Proposal::default().condition(condition::AUTHORITIES_ROTATED, Some(statement))
}
