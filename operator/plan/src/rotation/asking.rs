//! What becomes of the annotation `rotate`, of whatever object has authorities and keys.

use std::collections::BTreeMap;

use crds::names::annotation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::Subject;
use super::request::{self, Request};

/// What the annotation asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// This is to be rotated.
    For(Request),
    /// That was done.
    Done(Request),
    /// It cannot be done; the message says what to do.
    Refused(String),
}

/// Who is asked.
pub struct Asking<'a> {
    /// The object with the annotation.
    pub metadata: &'a ObjectMeta,
    /// What it can have rotated.
    pub subjects: &'a [Subject],
    /// The number with which each was rotated last.
    pub rotated: &'a BTreeMap<Subject, i64>,
    /// Why this one is not rotated by the annotation though others are, and what to do instead.
    pub refusal: &'a dyn Fn(Subject) -> Option<String>,
    /// What a person types to have the annotation written with this value.
    pub command: &'a dyn Fn(&str) -> String,
}

impl Asking<'_> {
    /// What it asks for.
    pub fn asked(&self) -> Asked {
        let refused = |what: String| Asked::Refused(format!("annotation {}: {what}", annotation::ROTATE));
        let request = match request::asked(self.metadata) {
            None => return Asked::Nothing,
            Some(Ok(request)) if self.subjects.contains(&request.subject) => request,
            Some(asked) => {
                let value = asked.map_or_else(str::to_owned, |request| request.to_string());
                let names: Vec<&str> = self.subjects.iter().map(|subject| subject.name()).collect();
                return refused(format!(
                    "{value:?} is none of {} with a dot and a number of 1 or more behind it: write e.g.: {}",
                    names.join(", "),
                    self.next(Subject::Ca)
                ));
            }
        };
        let last = self.last(request.subject);
        if request.number == last {
            return Asked::Done(request);
        }
        if let Some(why) = (self.refusal)(request.subject) {
            return refused(format!("{request}: {why}"));
        }
        if request.number < last {
            let next = self.next(request.subject);
            return refused(format!("{request}: it was rotated with {last} already: {next}"));
        }
        Asked::For(request)
    }

    /// What a person types to have it rotated.
    pub fn next(&self, subject: Subject) -> String {
        (self.command)(&Request { subject, number: self.last(subject) + 1 }.to_string())
    }

    fn last(&self, subject: Subject) -> i64 {
        self.rotated.get(&subject).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crds::names::annotation;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::{Asked, Asking};
    use crate::rotation::Subject;
    use crate::rotation::request::Request;

    #[test]
    fn what_is_asked_is_done_once_and_what_cannot_be_is_said_with_the_way_out() {
        let rotated: BTreeMap<Subject, i64> = [(Subject::Ca, 3)].into();
        let check = |value: Option<&str>| {
            let annotations = value.map(|value| [(annotation::ROTATE.to_owned(), value.to_owned())].into());
            let asking = Asking {
                metadata: &ObjectMeta { annotations, ..ObjectMeta::default() },
                subjects: &[Subject::Ca, Subject::EtcdCa],
                rotated: &rotated,
                refusal: &|subject| (subject == Subject::EtcdCa).then(|| "it is another's".to_owned()),
                command: &|value| format!("write {value}"),
            };
            asking.asked()
        };
        let request = |number| Request { subject: Subject::Ca, number };
        let refused = |message: &str| Asked::Refused(format!("annotation clusterwright.dev/rotate: {message}"));
        assert_eq!(check(None), Asked::Nothing);
        assert_eq!(check(Some("ca.3")), Asked::Done(request(3)));
        assert_eq!(check(Some("ca.7")), Asked::For(request(7)));
        assert_eq!(check(Some("ca.2")), refused("ca.2: it was rotated with 3 already: write ca.4"));
        assert_eq!(check(Some("etcd-ca.1")), refused("etcd-ca.1: it is another's"));
        let allowed = "is none of ca, etcd-ca with a dot and a number of 1 or more behind it: write e.g.: write ca.4";
        assert_eq!(check(Some("nonsense")), refused(&format!("\"nonsense\" {allowed}")));
        assert_eq!(check(Some("encryption-key.1")), refused(&format!("\"encryption-key.1\" {allowed}")));
    }
}
