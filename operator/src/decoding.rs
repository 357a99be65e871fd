//! Decoding an object at a time: one that our types cannot decode stops neither the list nor the watch that it comes
//! in.

use std::borrow::Cow;

use crds::playbook_run::read_object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use plan::undecodable::Undecodable;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object, or what can be read of one that cannot be decoded.
#[derive(Clone, Debug)]
pub enum Decoded<K> {
    /// The object.
    Object(K),
    /// What can be read of it.
    Undecodable {
        /// Its metadata, as far as it can be decoded; its name, namespace, UID and version in any case.
        metadata: Box<ObjectMeta>,
        /// What is wrong with it.
        why: Box<Undecodable>,
    },
}

impl<'de, K: Resource<DynamicType = ()> + DeserializeOwned> Deserialize<'de> for Decoded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = read_object(deserializer)?;
        match serde_path_to_error::deserialize::<_, K>(&object) {
            Ok(object) => Ok(Self::Object(object)),
            Err(error) => {
                let field = error.path().to_string();
                Ok(undecodable::<K>(object, field, error.into_inner().to_string()))
            }
        }
    }
}

fn undecodable<K: Resource<DynamicType = ()>>(mut object: Value, field: String, error: String) -> Decoded<K> {
    let metadata = ObjectMeta::deserialize(&object["metadata"]);
    let metadata = metadata.unwrap_or_else(|_| identity(&object["metadata"]));
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    let why = Undecodable {
        kind: K::kind(&()).into_owned(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        field,
        error,
        object,
    };
    Decoded::Undecodable { metadata: Box::new(metadata), why: Box::new(why) }
}

fn identity(metadata: &Value) -> ObjectMeta {
    let text = |field: &str| metadata[field].as_str().map(str::to_owned);
    ObjectMeta {
        name: text("name"),
        namespace: text("namespace"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        ..ObjectMeta::default()
    }
}

impl<K: Resource> Resource for Decoded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Object(object) => object.meta(),
            Self::Undecodable { metadata, .. } => metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Object(object) => object.meta_mut(),
            Self::Undecodable { metadata, .. } => metadata,
        }
    }
}

#[cfg(test)]
mod admitted;

#[cfg(test)]
mod tests {
    use super::Decoded;
    use crds::{Host, PlaybookRun};
    use kube::ResourceExt;
    use serde_json::json;

    #[test]
    fn an_object_that_cannot_be_decoded_is_named_with_its_field() {
        let host = |since: &str, created: &str| {
            let object = json!({
                "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Host",
                "metadata": { "name": "h1", "namespace": "fleet", "uid": "u", "resourceVersion": "7", "creationTimestamp": created },
                "spec": {
                    "address": "10.0.0.1", "ssh": { "credentialsRef": { "name": "k" } },
                    "quarantine": { "reason": "JoinFailed", "message": "", "machine": "m", "since": since },
                },
            });
            serde_json::from_value::<Decoded<Host>>(object).unwrap()
        };
        let (good, bad) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00+99:99");
        assert!(matches!(host(good, good), Decoded::Object(_)));
        for (since, created, expected) in
            [(bad, good, "spec.quarantine.since"), (good, bad, "metadata.creationTimestamp")]
        {
            let host = host(since, created);
            assert_eq!((host.name_any().as_str(), host.resource_version().as_deref()), ("h1", Some("7")));
            let Decoded::Undecodable { why, .. } = host else {
                panic!("{since} {created} was decoded");
            };
            assert_eq!((why.kind.as_str(), why.namespace.as_str()), ("Host", "fleet"));
            assert_eq!(why.field, expected);
        }
    }

    #[test]
    fn variables_that_are_nested_without_end_do_not_keep_a_list_from_being_read() {
        let deep = format!("{}1{}", "[".repeat(9_000), "]".repeat(9_000));
        let run = |vars: &str| {
            format!(
                r#"{{"metadata": {{"name": "r"}}, "spec": {{"intent": "Probe", "steps": ["probe-host"], "hosts": ["m"], "vars": {vars}}}}}"#
            )
        };
        let list = format!("[{}, {}]", run("{}"), run(&format!(r#"{{"a": {deep}}}"#)));
        let list: Vec<Decoded<PlaybookRun>> = serde_json::from_str(&list).unwrap();
        assert!(list.iter().all(|run| matches!(run, Decoded::Object(_))), "{list:?}");
    }
}
