//! Rotates an authority of a plane, or the key that signs the tokens of its service accounts. In each stage other keys
//! are wanted in programs, kubeconfigs, webhooks, APIs and members, and the plane's own order brings them; here it is
//! decided when the next stage begins: once all that is wanted now is there and works.

use crds::commands::{self, Target};
use crds::conditions::Statement;
use crds::karmada_deployment::KarmadaMemberStatus;
use crds::names::{annotation, condition};
use crds::networking::EndpointProvider;
use crds::{Conditions, KarmadaDeployment, Reason};

use super::action::Action;
use super::observed::Observed;
use super::progress::StageReport;
use crate::addon::Problem;
use crate::approval::{self, What};
use crate::message::cut;
use crate::rotation::asking::{Asked, Asking};
use crate::rotation::own::{Standard, Wish};
use crate::rotation::request::Request;
use crate::rotation::{Act, Move, Ring, Stage, Subject, doing, refused_afterwards};

/// What is rotated. The key that encrypts is not: what is in etcd would have to be written anew.
const SUBJECTS: [Subject; 4] = [Subject::Ca, Subject::EtcdCa, Subject::FrontProxyCa, Subject::ServiceAccountKey];

/// What becomes of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rotating {
    /// The next move.
    pub action: Option<Action>,
    /// How far it is; none: nothing was asked for.
    pub statement: Option<Statement>,
}

/// What else goes on in the plane.
pub(super) struct Scene<'a> {
    pub reports: &'a [StageReport],
    /// What comes before all stages, a backup that the plane begins with among it, what is changed beside them, and
    /// what does not work though all Pods do.
    pub problems: &'a [Option<&'a Problem>],
    /// Whether something is about to be done for members.
    pub serves_members: bool,
    pub members: &'a [KarmadaMemberStatus],
    /// The version that an upgrade brings the plane to, or is to.
    pub upgrades_to: Option<&'a str>,
}

impl Scene<'_> {
    /// Why no move is made now; none: the plane has all that is wanted, and works.
    fn busy(&self, object: &KarmadaDeployment) -> Option<String> {
        if object.spec.paused {
            return Some("paused: it goes on once spec.paused is false".to_owned());
        }
        let of_stages = || self.reports.iter().find_map(|report| report.waits_for().or_else(|| report.aside.clone()));
        let estimators = || {
            let is_brought = |row: &&KarmadaMemberStatus| row.reason == Reason::EstimatorProgressing.as_str();
            self.members.iter().find(is_brought).map(|row| row.name.clone())
        };
        let upgrade = self.upgrades_to.map(|version| format!("waits for the upgrade to {version}"));
        upgrade
            .or_else(|| self.problems.iter().flatten().next().map(|problem| problem.message.clone()))
            .or_else(|| of_stages().map(|problem| problem.message))
            .or_else(|| self.serves_members.then(|| "members are brought what follows from it".to_owned()))
            .or_else(|| {
                estimators().map(|member| format!("the estimator of member {member} is brought what follows from it"))
            })
    }
}

/// Decides, of a plane that stays.
pub(super) fn rotating(observed: &Observed<'_>, scene: &Scene<'_>) -> Rotating {
    let authorities = &observed.material.authorities;
    if authorities.rings.is_empty() {
        return Rotating::default();
    }
    let busy = scene.busy(observed.object);
    let mut under_way = SUBJECTS.iter().filter_map(|subject| Some((*subject, authorities.rings.get(subject)?)));
    match under_way.find(|(_, ring)| ring.stage != Stage::Settled) {
        Some((subject, ring)) => go_on(observed.object, subject, ring, busy),
        None => settled(observed, busy),
    }
}

/// Why no keys are made: what the owner brings cannot be had.
pub(super) fn problem(observed: &Observed<'_>) -> Option<Problem> {
    let (reason, message) = standard(observed).problem(observed.material.own_authorities.as_ref())?;
    Some(Problem { reason, message })
}

/// What an authority of the owner must be like.
fn standard<'a>(observed: &Observed<'a>) -> Standard<'a> {
    let spec = &observed.object.spec;
    let endpoint = spec.binary.as_ref().and_then(|binary| binary.endpoint.as_ref());
    let is_held = endpoint.is_some_and(|endpoint| endpoint.provider == EndpointProvider::Keepalived);
    Standard {
        now: observed.now,
        validity_days: spec.certificates.validity_days,
        secret: spec.certificates.ca_ref.as_ref().map(|one| one.name.as_str()).unwrap_or_default(),
        external_etcd: spec.etcd.external.as_ref().map(|_| "etcd.external.secretRef"),
        haproxy: is_held.then_some("binary.endpoint.provider Keepalived"),
    }
}

/// What a rotation that is under way comes to next.
fn go_on(object: &KarmadaDeployment, subject: Subject, ring: &Ring, busy: Option<String>) -> Rotating {
    let title = format!("rotation of {}", subject.name());
    if let Some(busy) = busy {
        let doing = doing(subject, ring.stage);
        return stated(false, Reason::RotatingAuthorities, format!("{title}: {doing}: {busy}"));
    }
    let (next, stage) = match ring.stage {
        Stage::Settled | Stage::Trust => (Move::Sign, Stage::Sign),
        Stage::Sign => (Move::Complete, Stage::Settled),
    };
    if next == Move::Complete && subject.is_held_by_people() {
        let value = approval::lasting_value(What::Rotate, &object.metadata, &[subject.name(), &ring.digest()]);
        if !approval::is_given(&object.metadata, &value) {
            let value = approval::to_write(&object.metadata, &value);
            let command = commands::annotate(Target::KarmadaDeployment, &object.metadata, annotation::APPROVE, value);
            let held = refused_afterwards(subject);
            return stated(false, Reason::WaitingForApproval, format!("{title} is prepared; {held}; then: {command}"));
        }
    }
    let said = stated(false, Reason::RotatingAuthorities, format!("{title}: {}", doing(subject, stage)));
    Rotating { action: Some(Action::Rotate(Act::Move { subject, next })), ..said }
}

/// Nothing is under way. What the owner brings comes before what is asked for by annotation.
fn settled(observed: &Observed<'_>, busy: Option<String>) -> Rotating {
    let (object, material, standard) = (observed.object, observed.material, standard(observed));
    let wish = standard.wish(material.own_authorities.as_ref(), &material.authorities);
    let asked = asked(observed, &standard);
    let begin = |title: String, action: Action| match &busy {
        Some(busy) => stated(false, Reason::RotatingAuthorities, format!("{title} is to begin: {busy}")),
        None => {
            let said = stated(false, Reason::RotatingAuthorities, format!("{title} begins"));
            Rotating { action: Some(action), ..said }
        }
    };
    let over = |said: String| match busy.as_ref().filter(|_| !was_over(object)) {
        Some(busy) => stated(false, Reason::RotatingAuthorities, format!("the former one goes: {busy}")),
        None => stated(true, Reason::Rotated, said),
    };
    let met = || material.own_authorities.as_ref().and_then(|own| own.as_ref().ok()).map(|own| standard.met(own));
    match (asked, wish) {
        (_, Wish::Rotate(subject, fingerprint)) => {
            let title = format!("rotation of {} to that of {}", subject.name(), standard.title());
            begin(title, Action::Rotate(Act::Take { subject, fingerprint }))
        }
        (Asked::For(Request { subject, number }), _) => {
            let action = Action::Rotate(Act::Move { subject, next: Move::Begin(number) });
            begin(format!("rotation of {}", subject.name()), action)
        }
        (Asked::Refused(message), _) => stated(false, Reason::RotationRefused, message),
        (Asked::Nothing | Asked::Done(_), Wish::Refused(reason, message)) => stated(false, reason, message),
        (Asked::Done(request), _) => {
            let met = met().map(|met| format!("; {met}")).unwrap_or_default();
            over(format!("{request}: the plane has the new one alone{met}"))
        }
        (Asked::Nothing, Wish::Met) => over(met().unwrap_or_default()),
        (Asked::Nothing, Wish::None) => Rotating::default(),
    }
}

/// What the annotation asks for.
fn asked(observed: &Observed<'_>, standard: &Standard<'_>) -> Asked {
    let (metadata, material) = (&observed.object.metadata, observed.material);
    let asking = Asking {
        metadata,
        subjects: &SUBJECTS,
        rotated: &material.authorities.rotated,
        refusal: &|subject| standard.not_asked(material.own_authorities.as_ref(), subject),
        command: &|value| commands::annotate(Target::KarmadaDeployment, metadata, annotation::ROTATE, value),
    };
    asking.asked()
}

/// Whether it was said already that all is rotated that was asked for.
fn was_over(object: &KarmadaDeployment) -> bool {
    object.condition(condition::AUTHORITIES_ROTATED).is_some_and(|said| said.status == "True")
}

fn stated(status: bool, reason: Reason, message: String) -> Rotating {
    let statement = Statement::new(condition::AUTHORITIES_ROTATED, status, reason, cut(message));
    Rotating { statement: Some(statement), action: None }
}
