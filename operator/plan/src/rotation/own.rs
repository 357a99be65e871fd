//! Authorities that the owner of a cluster, or of a Karmada plane, brings, as far as everybody may know of them:
//! whether it can have them, and which of them it is to be rotated to. Those that it has already are asked nothing
//! more.

use std::collections::BTreeMap;

use crds::Reason;
use jiff::{SignedDuration, Timestamp};

use super::{Authorities, Subject};
use crate::inputs::InputsProblem;
use crate::moment::after;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAuthority {
    /// Of its certificate, as rings have it.
    pub fingerprint: String,
    /// When its certificate begins.
    pub begins: Timestamp,
    /// When it ends.
    pub ends: Timestamp,
    /// Whether no other authority stands above it.
    pub is_self_signed: bool,
    /// Whether its key was had before, and another one is now.
    pub is_retired: bool,
}

/// Each, by what it is; there is one at least.
pub type OwnAuthorities = BTreeMap<Subject, OwnAuthority>;

/// What the Secret of `certificates.caRef` comes to where there are authorities already.
#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    /// There is no such Secret in the spec.
    None,
    /// All that it holds is there.
    Met,
    /// This one of it is to be rotated to, of this fingerprint.
    Rotate(Subject, String),
    /// Nothing of it is taken.
    Refused(Reason, String),
}

/// What an authority must be like.
pub struct Standard<'a> {
    /// The time.
    pub now: Timestamp,
    /// How many days a leaf lasts that is made now.
    pub validity_days: i32,
    /// Name of the Secret of `spec.certificates.caRef`.
    pub secret: &'a str,
    /// The field with the Secret of an external etcd, whose authority is its owner's; none: etcd is not external.
    pub external_etcd: Option<&'a str>,
    /// What HAProxy runs for, where `ca` has to be self-signed for it: `controlPlane.endpoint.provider Keepalived`.
    pub haproxy: Option<&'a str>,
}

impl Standard<'_> {
    /// Why this one cannot be had.
    pub fn refusal(&self, subject: Subject, authority: &OwnAuthority) -> Option<String> {
        let (now, days, entry) = (self.now, self.validity_days, format!("{}.crt", subject.name()));
        let lasts = SignedDuration::from_hours(24 * i64::from(days));
        let day = |at: Timestamp| at.strftime("%Y-%m-%d");
        let why = if self.is_foreign(subject) {
            format!("etcd is external, and so is its authority: remove {entry} and {}.key", subject.name())
        } else if authority.begins > now {
            format!("{entry} begins on {}: give one that is valid by now", day(authority.begins))
        } else if authority.ends <= now {
            format!(
                "{entry} ended on {}: give one that lasts {days} days or longer (certificates.validityDays)",
                day(authority.ends)
            )
        } else if authority.ends < after(now, lasts) {
            format!(
                "{entry} ends on {}, before a certificate would that is made now ({days} days, certificates.validityDays): give one that lasts longer, or lower validityDays",
                day(authority.ends)
            )
        } else if authority.is_retired {
            format!(
                "{entry} has a key that was there before, and whatever that signed would be believed again: give one with another key"
            )
        } else if let Some(haproxy) = self.haproxy.filter(|_| subject == Subject::Ca && !authority.is_self_signed) {
            format!(
                "{entry} was issued by another authority, and HAProxy, which the control planes run ({haproxy}), believes self-signed ones only: give a self-signed one"
            )
        } else {
            return None;
        };
        Some(format!("{}: {why}", self.title()))
    }

    /// Why nothing is begun with those of the Secret; none: it can be, or the spec refers to no Secret.
    pub fn problem(&self, own: Option<&Result<OwnAuthorities, InputsProblem>>) -> Option<(Reason, String)> {
        match own? {
            Err(problem) => Some((problem.reason, problem.message.clone())),
            Ok(own) => {
                let message = own.iter().find_map(|(subject, authority)| self.refusal(*subject, authority))?;
                Some((Reason::InvalidAuthority, message))
            }
        }
    }

    /// Why this one is not rotated by the annotation, and what to do instead.
    pub fn not_asked(&self, own: Option<&Result<OwnAuthorities, InputsProblem>>, subject: Subject) -> Option<String> {
        if let Some(field) = self.external_etcd.filter(|_| self.is_foreign(subject)) {
            return Some(format!(
                "etcd is external, and so is its authority: put the new one into the Secret of {field}, and remove the annotation"
            ));
        }
        brings(own, subject).then(|| {
            let advice = self.advice(subject);
            format!("it is yours, and none is made in its place: {advice}, and remove the annotation")
        })
    }

    /// What is to be done next about those of the Secret.
    pub fn wish(&self, own: Option<&Result<OwnAuthorities, InputsProblem>>, there: &Authorities) -> Wish {
        let own = match own {
            None => return Wish::None,
            Some(Err(problem)) => return Wish::Refused(problem.reason, problem.message.clone()),
            // Of keys that cannot be read nothing is known.
            Some(Ok(_)) if there.rings.is_empty() => return Wish::None,
            Some(Ok(own)) => own,
        };
        let mut differ = own.iter().filter(|(subject, authority)| self.differs(there, **subject, authority)).peekable();
        let Some((subject, authority)) = differ.peek().copied() else { return Wish::Met };
        match differ.find_map(|(subject, authority)| self.refusal(*subject, authority)) {
            Some(message) => Wish::Refused(Reason::InvalidAuthority, message),
            None => Wish::Rotate(*subject, authority.fingerprint.clone()),
        }
    }

    /// Whether the owner's one is neither the one that signs nor one that is trusted beside it while that is rotated.
    fn differs(&self, there: &Authorities, subject: Subject, authority: &OwnAuthority) -> bool {
        // Nobody has that one here, and it is refused.
        if self.is_foreign(subject) {
            return true;
        }
        let ring = there.rings.get(&subject);
        ring.is_some_and(|ring| !ring.trusted.contains(&authority.fingerprint))
    }

    /// `Secret corp of spec.certificates.caRef`.
    pub fn title(&self) -> String {
        format!("Secret {} of spec.certificates.caRef", self.secret)
    }

    /// What a person does to have an authority rotated that is the owner's.
    pub fn advice(&self, subject: Subject) -> String {
        let name = subject.name();
        format!("put the one that follows it into {} ({name}.crt and {name}.key, in one edit)", self.title())
    }

    /// `ca, etcd-ca are those of Secret corp of spec.certificates.caRef`.
    pub fn met(&self, own: &OwnAuthorities) -> String {
        let names: Vec<&str> = own.keys().map(|subject| subject.name()).collect();
        let verb = if names.len() == 1 { "is that" } else { "are those" };
        format!("{} {verb} of {}", names.join(", "), self.title())
    }

    fn is_foreign(&self, subject: Subject) -> bool {
        subject == Subject::EtcdCa && self.external_etcd.is_some()
    }
}

/// Whether this one is the owner's, as far as that is known: of a Secret that cannot be read each authority may be.
pub fn brings(own: Option<&Result<OwnAuthorities, InputsProblem>>, subject: Subject) -> bool {
    own.is_some_and(|own| own.as_ref().map_or_else(|_| subject.is_authority(), |own| own.contains_key(&subject)))
}

/// The fingerprints of those that are begun with.
pub fn given(own: Option<&Result<OwnAuthorities, InputsProblem>>) -> BTreeMap<Subject, String> {
    let own = own.and_then(|own| own.as_ref().ok()).into_iter().flatten();
    own.map(|(subject, authority)| (*subject, authority.fingerprint.clone())).collect()
}
