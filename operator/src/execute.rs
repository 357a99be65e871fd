//! How steps are carried out: each write may be repeated after a crash at any point, and makes no choice.

use std::fmt::Debug;

use crds::PlaybookRun;
use crds::names::FIELD_MANAGER;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::error::{Error, ResultExt};

/// A kind that can be written.
pub trait Writable:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}
impl<K> Writable for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

/// What became of a creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// It was made now.
    Made,
    /// It was there already, with the same controlling owner (or none was asked for).
    Ours,
    /// One of that name is there, and belongs to another.
    Foreign,
}

/// The API of the object's kind in its namespace.
pub fn api_of<K: Writable>(ctx: &Context, object: &K) -> Api<K> {
    Api::namespaced(ctx.client.clone(), object.meta().namespace.as_deref().unwrap_or_default())
}

fn named<K: Writable>(verb: &str, object: &K) -> String {
    format!("{verb} {} {}", K::kind(&()), object.name_any())
}

/// Server-side apply: for children whose whole content is the operator's.
pub async fn apply<K: Writable>(ctx: &Context, object: &K) -> Result<K, Error> {
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api_of(ctx, object).patch(&object.name_any(), &params, &Patch::Apply(object)).await.doing(|| named("apply", object))
}

/// Creates an object under a name that follows from what it is for: creating it twice is impossible.
pub async fn create_once<K: Writable>(ctx: &Context, object: &K) -> Result<Creation, Error> {
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    let api = api_of(ctx, object);
    match api.create(&params, object).await {
        Ok(_) => Ok(Creation::Made),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let there = api.get(&object.name_any()).await.doing(|| named("read", object))?;
            let wanted = controller_uid(object);
            Ok(if wanted.is_none() || controller_uid(&there) == wanted { Creation::Ours } else { Creation::Foreign })
        }
        Err(error) => Err(error).doing(|| named("create", object)),
    }
}

/// The same for what must be ours: one of that name that belongs to another is an error.
pub async fn create_ours<K: Writable>(ctx: &Context, object: &K) -> Result<(), Error> {
    match create_once(ctx, object).await? {
        Creation::Made | Creation::Ours => Ok(()),
        Creation::Foreign => Err(Error::Failed {
            action: named("create", object),
            source: "one of that name is there and belongs to another: delete it".into(),
        }),
    }
}

fn controller_uid<K: Resource>(object: &K) -> Option<String> {
    let owners = object.meta().owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone())
}

/// Deletes this very object (by its UID), dependents in the background; gone already is well.
pub async fn delete<K: Writable>(ctx: &Context, object: &K, grace_seconds: Option<u32>) -> Result<(), Error> {
    let params = DeleteParams {
        grace_period_seconds: grace_seconds,
        preconditions: Some(Preconditions { uid: object.uid(), resource_version: None }),
        ..DeleteParams::background()
    };
    match api_of(ctx, object).delete(&object.name_any(), &params).await {
        Ok(_) => Ok(()),
        // Another object under the same name is a conflict: this one is gone, too.
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(error).doing(|| named("delete", object)),
    }
}

/// Writes what differs between the status observed and the one wanted; true when there was anything to write. Fields
/// that are equal are not touched, so another's fields of the same status survive.
pub async fn patch_status<K: Writable, S: Serialize>(
    ctx: &Context,
    object: &K,
    observed: Option<&S>,
    wanted: &S,
) -> Result<bool, Error> {
    patch_status_of(ctx, object, None, observed, wanted).await
}

/// The same if nobody has written the object since it was observed, and a conflict otherwise: for a status by which
/// others decide, and that a cache that is behind must not take back.
pub async fn patch_status_if_unchanged<K: Writable, S: Serialize>(
    ctx: &Context,
    object: &K,
    observed: Option<&S>,
    wanted: &S,
) -> Result<bool, Error> {
    patch_status_of(ctx, object, object.resource_version(), observed, wanted).await
}

async fn patch_status_of<K: Writable, S: Serialize>(
    ctx: &Context,
    object: &K,
    version: Option<String>,
    observed: Option<&S>,
    wanted: &S,
) -> Result<bool, Error> {
    let observed = observed.map(serde_json::to_value).transpose().doing(|| named("read the status of", object))?;
    let wanted = serde_json::to_value(wanted).doing(|| named("write the status of", object))?;
    let Some(difference) = merge_difference(&observed.unwrap_or_else(|| json!({})), &wanted) else {
        return Ok(false);
    };
    let mut patch = json!({ "metadata": { "uid": object.uid() }, "status": difference });
    if let Some(version) = version {
        patch["metadata"]["resourceVersion"] = json!(version);
    }
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    api_of(ctx, object)
        .patch_status(&object.name_any(), &params, &Patch::Merge(patch))
        .await
        .doing(|| named("patch the status of", object))?;
    Ok(true)
}

/// Replaces the whole status if nobody has written the object since it was read; a conflict otherwise.
pub async fn replace_status<K: Writable>(ctx: &Context, object: &K) -> Result<K, Error> {
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    api_of(ctx, object)
        .replace_status(&object.name_any(), &params, object)
        .await
        .doing(|| named("replace the status of", object))
}

/// Merges a patch into the object if nobody has written it since it was read; a conflict otherwise.
pub async fn patch_if_unchanged<K: Writable>(ctx: &Context, object: &K, mut patch: Value) -> Result<K, Error> {
    patch["metadata"]["uid"] = json!(object.uid());
    patch["metadata"]["resourceVersion"] = json!(object.resource_version());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    api_of(ctx, object).patch(&object.name_any(), &params, &Patch::Merge(patch)).await.doing(|| named("patch", object))
}

/// Asks something of this very run; one that is gone does it already.
pub async fn ask_run(ctx: &Context, run: &PlaybookRun, verb: &str, spec: Value) -> Result<(), Error> {
    let patch = json!({ "metadata": { "uid": run.uid() }, "spec": spec });
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    let patched = api_of(ctx, run).patch(&run.name_any(), &params, &Patch::Merge(patch)).await;
    match patched.map(drop).doing(|| named(verb, run)) {
        Err(error) if error.is_not_found() => Ok(()),
        result => result,
    }
}

/// Puts a finalizer on the object; nothing is written when it is there.
pub async fn add_finalizer<K: Writable>(ctx: &Context, object: &K, finalizer: &str) -> Result<(), Error> {
    if object.finalizers().iter().any(|there| there == finalizer) {
        return Ok(());
    }
    let mut finalizers = object.finalizers().to_vec();
    finalizers.push(finalizer.into());
    patch_if_unchanged(ctx, object, json!({ "metadata": { "finalizers": finalizers } })).await?;
    Ok(())
}

/// Takes a finalizer off the object; nothing is written when it is not there, and an object that is gone is well.
pub async fn remove_finalizer<K: Writable>(ctx: &Context, object: &K, finalizer: &str) -> Result<(), Error> {
    if !object.finalizers().iter().any(|there| there == finalizer) {
        return Ok(());
    }
    let finalizers: Vec<&String> = object.finalizers().iter().filter(|there| *there != finalizer).collect();
    match patch_if_unchanged(ctx, object, json!({ "metadata": { "finalizers": finalizers } })).await {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

/// The JSON merge patch that makes `observed` into `wanted`; none when they are equal.
fn merge_difference(observed: &Value, wanted: &Value) -> Option<Value> {
    if observed == wanted {
        return None;
    }
    let (Value::Object(observed), Value::Object(wanted)) = (observed, wanted) else {
        return Some(wanted.clone());
    };
    let mut difference = Map::new();
    for (key, value) in wanted {
        let old = observed.get(key).unwrap_or(&Value::Null);
        let old = if old.is_null() && value.is_object() { &json!({}) } else { old };
        if let Some(change) = merge_difference(old, value) {
            difference.insert(key.clone(), change);
        } else if !observed.contains_key(key) {
            difference.insert(key.clone(), value.clone());
        }
    }
    for key in observed.keys().filter(|key| !wanted.contains_key(*key)) {
        difference.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(difference))
}

#[cfg(test)]
mod tests {
    use super::merge_difference;
    use serde_json::{Value, json};

    #[test]
    fn only_what_differs_is_written() {
        let check = |observed: Value, wanted: Value, expected: Option<Value>| {
            assert_eq!(merge_difference(&observed, &wanted), expected, "{observed} -> {wanted}");
        };
        check(json!({"a": 1}), json!({"a": 1}), None);
        check(json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), Some(json!({"b": 3})));
        check(json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null})));
        check(json!({"a": {"x": 1, "y": 1}}), json!({"a": {"x": 2}}), Some(json!({"a": {"x": 2, "y": null}})));
        check(json!({}), json!({"a": {"x": 2}}), Some(json!({"a": {"x": 2}})));
        check(json!({}), json!({"a": {}}), Some(json!({"a": {}})));
        check(json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]})));
    }
}
