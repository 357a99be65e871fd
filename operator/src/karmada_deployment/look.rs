//! A look at the objects of one place: how each is, and what there is.

use std::collections::BTreeSet;

use crds::cluster_addon::AppliedObject;
use crds::names::KARMADA_FIELD_MANAGER;
use futures::{StreamExt, TryStreamExt, stream};
use plan::cluster_addon::State;
use plan::karmada_deployment::removal::Kind;
use plan::karmada_deployment::{Manifest, Place, Wanted};
use serde_json::Value;

use crate::objects::look::{AT_ONCE, state};
use crate::objects::{Failure, Objects};

/// How each of these objects is, as this manifest would have it, in their order. An error says why it does not answer.
pub(super) async fn states(objects: &Objects, wanted: &[(&AppliedObject, &Manifest)]) -> Result<Vec<State>, String> {
    // One after the other asks for each kind once.
    let kinds: BTreeSet<_> = wanted.iter().map(|(object, _)| (&object.group, &object.version, &object.kind)).collect();
    for (group, version, kind) in kinds {
        if let Err(Failure::Lost(why)) = objects.kind(group, version, kind).await {
            return Err(why);
        }
    }
    let looks: Vec<_> =
        wanted.iter().map(|(object, manifest)| state(objects, object, &manifest.0, KARMADA_FIELD_MANAGER)).collect();
    stream::iter(looks).buffered(AT_ONCE).try_collect().await
}

/// What is wanted of a plane in this place.
pub(super) fn there(wanted: &[Wanted], place: Place) -> Vec<(&AppliedObject, &Manifest)> {
    wanted.iter().filter(|one| one.place == place).map(|one| (&one.object, &one.manifest)).collect()
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
