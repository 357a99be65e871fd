//! A look at the objects of one place: how each is, and what there is.

use std::collections::BTreeSet;

use crds::names::KARMADA_FIELD_MANAGER;
use futures::{StreamExt, TryStreamExt, stream};
use plan::cluster_addon::State;
use plan::karmada_deployment::removal::Kind;
use plan::karmada_deployment::{Place, Wanted};
use serde_json::Value;

use crate::objects::look::{AT_ONCE, state};
use crate::objects::{Failure, Objects};

/// How each object is that is wanted there, in their order. An error says why it does not answer.
pub(super) async fn states(objects: &Objects, wanted: &[Wanted], place: Place) -> Result<Vec<State>, String> {
    let there: Vec<&Wanted> = wanted.iter().filter(|one| one.place == place).collect();
    // One after the other asks for each kind once.
    let kinds: BTreeSet<_> =
        there.iter().map(|one| (&one.object.group, &one.object.version, &one.object.kind)).collect();
    for (group, version, kind) in kinds {
        if let Err(Failure::Lost(why)) = objects.kind(group, version, kind).await {
            return Err(why);
        }
    }
    let looks: Vec<_> =
        there.iter().map(|one| state(objects, &one.object, &one.manifest.0, KARMADA_FIELD_MANAGER)).collect();
    stream::iter(looks).buffered(AT_ONCE).try_collect().await
}

/// All objects of these kinds with these labels, in a namespace or in all of them.
pub(super) async fn listed(
    objects: &Objects,
    kinds: &[Kind],
    namespace: Option<&str>,
    labels: &str,
) -> Result<Vec<Value>, String> {
    let mut listed = Vec::new();
    for kind in kinds {
        listed.extend(objects.list(*kind, namespace, labels).await.map_err(|failure| failure.to_string())?);
    }
    Ok(listed)
}
