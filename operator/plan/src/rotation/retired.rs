//! What the Secret of a cluster's keys remembers of the authorities that it had before.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::annotation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::Subject;

/// Characters of a digest.
const DIGITS: usize = 16;

/// Digests of their keys.
pub type Retired = BTreeMap<Subject, BTreeSet<String>>;

/// As the annotation of the Secret remembers them; what cannot be read is passed over.
pub fn read(secret: &ObjectMeta) -> Retired {
    let value = secret.annotations.as_ref().and_then(|all| all.get(annotation::RETIRED));
    let mut retired = Retired::new();
    for (name, digest) in value.into_iter().flat_map(|value| value.split(',')).filter_map(|one| one.split_once('.')) {
        if let Some(subject) = Subject::from_name(name.trim()) {
            retired.entry(subject).or_default().insert(digest.trim().to_owned());
        }
    }
    retired
}

/// The value of that annotation.
pub fn to_write(retired: &Retired) -> String {
    let all = retired.iter().flat_map(|(subject, digests)| digests.iter().map(move |digest| (subject, digest)));
    all.map(|(subject, digest)| format!("{}.{digest}", subject.name())).collect::<Vec<_>>().join(",")
}

/// As much of a digest as is remembered.
pub fn shortened(digest: &str) -> String {
    digest.chars().take(DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use crds::names::annotation;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::{Retired, read, to_write};
    use crate::rotation::Subject;

    #[test]
    fn what_is_remembered_is_read_back() {
        let with = |value: &str| ObjectMeta {
            annotations: Some([(annotation::RETIRED.to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        };
        let two = ["0123".to_owned(), "4567".to_owned()].into();
        let all: Retired = [(Subject::Ca, two), (Subject::EtcdCa, ["89ab".to_owned()].into())].into();
        assert_eq!(to_write(&all), "ca.0123,ca.4567,etcd-ca.89ab");
        assert_eq!(read(&with(&to_write(&all))), all);
        assert!(read(&with("kubelet.1,ca")).is_empty() && read(&ObjectMeta::default()).is_empty());
    }
}
