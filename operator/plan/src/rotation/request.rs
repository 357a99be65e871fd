//! What a person asks for by the annotation `rotate`, and what the Secret remembers of it.

use std::collections::BTreeMap;

use crds::names::annotation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::Subject;

/// `ca.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be rotated.
    pub subject: Subject,
    /// Greater than that with which it was rotated last.
    pub number: i64,
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.subject.name(), self.number)
    }
}

/// What the annotation asks for; none: there is none.
///
/// # Errors
///
/// The value, where it is no request.
pub fn asked(object: &ObjectMeta) -> Option<Result<Request, &str>> {
    let value = object.annotations.as_ref()?.get(annotation::ROTATE)?.trim();
    Some(parse(value).ok_or(value))
}

/// The numbers with which each was rotated last, as the annotation of the Secret remembers them.
pub fn rotated(secret: &ObjectMeta) -> BTreeMap<Subject, i64> {
    let value = secret.annotations.as_ref().and_then(|all| all.get(annotation::ROTATED));
    let requests = value.into_iter().flat_map(|value| value.split(',')).filter_map(|part| parse(part.trim()));
    requests.map(|request| (request.subject, request.number)).collect()
}

/// The value of that annotation.
pub fn to_write(rotated: &BTreeMap<Subject, i64>) -> String {
    let requests = rotated.iter().map(|(subject, number)| Request { subject: *subject, number: *number }.to_string());
    requests.collect::<Vec<_>>().join(",")
}

fn parse(value: &str) -> Option<Request> {
    let (name, number) = value.rsplit_once('.')?;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    Some(Request { subject: Subject::from_name(name)?, number })
}

#[cfg(test)]
mod tests {
    use crds::names::annotation;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::{Request, asked, rotated, to_write};
    use crate::rotation::Subject;

    fn with(name: &str, value: &str) -> ObjectMeta {
        let annotations = [(name.to_owned(), value.to_owned())].into();
        ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() }
    }

    #[test]
    fn a_request_is_a_name_and_a_number() {
        let request = Request { subject: Subject::FrontProxyCa, number: 12 };
        assert_eq!(asked(&with(annotation::ROTATE, "front-proxy-ca.12")), Some(Ok(request)));
        assert_eq!(asked(&ObjectMeta::default()), None);
        for value in ["", "ca", "ca.", "ca.x", "ca.0", "ca.-1", "kubelet.1", "ca.1,etcd-ca.1"] {
            assert_eq!(asked(&with(annotation::ROTATE, value)), Some(Err(value)), "{value}");
        }
    }

    #[test]
    fn what_was_rotated_is_read_back() {
        let all = [(Subject::Ca, 3), (Subject::ServiceAccountKey, 1)].into();
        assert_eq!(to_write(&all), "ca.3,service-account-key.1");
        assert_eq!(rotated(&with(annotation::ROTATED, &to_write(&all))), all);
        assert!(rotated(&ObjectMeta::default()).is_empty());
    }
}
