//! A look at the objects of an Addon on a cluster: as they are, and as applying them would make them.

use crds::ClusterAddon;
use crds::cluster_addon::AppliedObject;
use futures::{StreamExt, TryStreamExt, stream};
use plan::cluster_addon::documents::Document;
use plan::cluster_addon::{Contact, DocumentSeen, Leftover, Seen, State, Trial, Wanted, is_same, leftovers};

use super::objects::{Failure, Found, Objects};

/// Calls that are under way at once.
const AT_ONCE: usize = 8;
/// What objects without a namespace are put into.
const DEFAULT_NAMESPACE: &str = "default";

/// Looks at all objects that are wanted, or are in the inventory.
pub(super) async fn look(objects: &Objects, of: &ClusterAddon, wanted: &Wanted) -> Contact {
    match seen(objects, of, wanted).await {
        Ok(seen) => Contact::Made(seen),
        Err(why) => Contact::Lost(why),
    }
}

async fn seen(objects: &Objects, of: &ClusterAddon, wanted: &Wanted) -> Result<Seen, String> {
    let documents = match wanted {
        Wanted::Documents(prepared) => prepared.documents.as_slice(),
        Wanted::Nothing | Wanted::NoContent(_) | Wanted::Invalid(_) => &[],
    };
    // One after the other asks for each kind once.
    let mut known = Vec::new();
    for document in documents {
        known.push(object_of(objects, document).await?);
    }
    let looks: Vec<_> =
        documents.iter().zip(known).map(|(document, object)| look_at(objects, document, object)).collect();
    let documents: Vec<DocumentSeen> = stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
    let inventory = of.status.as_ref().map(|status| status.inventory.as_slice()).unwrap_or_default();
    let there: Vec<&AppliedObject> = documents.iter().filter_map(|seen| seen.object.as_ref()).collect();
    let old: Vec<_> = leftovers(inventory, &there).into_iter().map(|object| left(objects, object)).collect();
    let leftovers: Vec<Leftover> = stream::iter(old).buffered(AT_ONCE).try_collect().await?;
    Ok(Seen { documents, leftovers })
}

/// The object that a document makes on this cluster; or that its kind is not known, or why that cannot be found out.
async fn object_of(objects: &Objects, document: &Document) -> Result<Result<AppliedObject, State>, String> {
    let known = match objects.kind(&document.group, &document.version, &document.kind).await {
        Ok(Some(known)) => known,
        Ok(None) => return Ok(Err(State::KindUnknown)),
        Err(Failure::Lost(why)) => return Err(why),
        Err(failure) => return Ok(Err(State::Refused(failure.to_string()))),
    };
    let namespace = document.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    Ok(Ok(AppliedObject {
        group: document.group.clone(),
        version: document.version.clone(),
        kind: document.kind.clone(),
        namespace: known.is_namespaced.then_some(namespace),
        name: document.name.clone(),
    }))
}

async fn look_at(
    objects: &Objects,
    document: &Document,
    object: Result<AppliedObject, State>,
) -> Result<DocumentSeen, String> {
    let object = match object {
        Ok(object) => object,
        Err(state) => return Ok(DocumentSeen { object: None, state }),
    };
    let live = match objects.get(&object).await {
        Ok(Found::Object(live)) => live,
        Ok(Found::Nothing) => return Ok(DocumentSeen { object: Some(object), state: State::Missing }),
        Ok(Found::NoKind) => return Ok(DocumentSeen { object: None, state: State::KindUnknown }),
        Err(Failure::Lost(why)) => return Err(why),
        Err(failure) => return Ok(DocumentSeen { object: Some(object), state: State::Refused(failure.to_string()) }),
    };
    let trial = match objects.try_apply(&object, &document.manifest(&object)).await {
        Ok(tried) if is_same(&live, &tried) => Trial::Same,
        Ok(_) => Trial::Differs,
        Err(Failure::Conflicts(conflicts)) => Trial::Conflicts(conflicts),
        Err(Failure::Refused(why)) if why.contains("does not support dry run") => Trial::Unknown,
        Err(Failure::Refused(why)) => Trial::Refused(why),
        Err(Failure::Lost(why)) => return Err(why),
    };
    Ok(DocumentSeen { object: Some(object), state: State::There { live, trial } })
}

/// What is left of an object that is wanted no more. One of a kind that is gone is gone, too.
async fn left(objects: &Objects, object: &AppliedObject) -> Result<Leftover, String> {
    let live = match objects.get(object).await {
        Ok(Found::Object(live)) => Some(live),
        Ok(Found::Nothing | Found::NoKind) => None,
        Err(failure) => return Err(failure.to_string()),
    };
    Ok(Leftover { object: object.clone(), live, refused: None })
}
