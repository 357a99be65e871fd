//! A look at the objects of an Addon on a cluster: as they are, and as applying them would make them.

use crds::ClusterAddon;
use crds::cluster_addon::AppliedObject;
use crds::names::ADDON_FIELD_MANAGER;
use futures::{StreamExt, TryStreamExt, stream};
use plan::cluster_addon::chart::HELM_FIELD_MANAGER;
use plan::cluster_addon::documents::Document;
use plan::cluster_addon::{Contact, DocumentSeen, Leftover, Seen, State, Wanted, leftovers};

use super::release;
use crate::objects::look::{AT_ONCE, state};
use crate::objects::{Failure, Found, Objects};

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
    let place = place(of, wanted);
    let release = match &place {
        Some((namespace, name)) => release::read(objects, namespace, name).await?,
        None => None,
    };
    let (documents, manager) = match (wanted, &release) {
        (_, Some(release)) => (release.documents.as_slice(), HELM_FIELD_MANAGER),
        (Wanted::Documents(prepared), None) => (prepared.documents.as_slice(), ADDON_FIELD_MANAGER),
        (Wanted::Nothing | Wanted::NoContent(_) | Wanted::Invalid(_) | Wanted::Chart(_), None) => {
            (Default::default(), ADDON_FIELD_MANAGER)
        }
    };
    // One after the other asks for each kind once.
    let mut known = Vec::new();
    for document in documents {
        known.push(object_of(objects, document).await?);
    }
    let looks: Vec<_> =
        documents.iter().zip(known).map(|(document, object)| look_at(objects, document, object, manager)).collect();
    let documents: Vec<DocumentSeen> = stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
    let inventory = of.status.as_ref().map(|status| status.inventory.as_slice()).unwrap_or_default();
    let there: Vec<&AppliedObject> = documents.iter().filter_map(|seen| seen.object.as_ref()).collect();
    // What was Helm's is Helm's to remove.
    let old = if place.is_some() { Vec::new() } else { leftovers(inventory, &there) };
    let old: Vec<_> = old.into_iter().map(|object| left(objects, object)).collect();
    let leftovers: Vec<Leftover> = stream::iter(old).buffered(AT_ONCE).try_collect().await?;
    Ok(Seen { documents, leftovers, release })
}

/// Namespace and name of the release that is looked at.
fn place(of: &ClusterAddon, wanted: &Wanted) -> Option<(String, String)> {
    match wanted {
        Wanted::Chart(prepared) => Some((prepared.namespace.clone(), prepared.release.clone())),
        Wanted::Nothing | Wanted::NoContent(_) | Wanted::Invalid(_) | Wanted::Documents(_) => {
            let known = of.status.as_ref()?.release.as_ref()?;
            Some((known.namespace.clone(), known.name.clone()))
        }
    }
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

/// How the object of a document is now.
pub(super) async fn again(objects: &Objects, document: &Document, object: &AppliedObject) -> Result<State, String> {
    let seen = look_at(objects, document, Ok(object.clone()), ADDON_FIELD_MANAGER).await?;
    Ok(seen.state)
}

async fn look_at(
    objects: &Objects,
    document: &Document,
    object: Result<AppliedObject, State>,
    manager: &str,
) -> Result<DocumentSeen, String> {
    let object = match object {
        Ok(object) => object,
        Err(state) => return Ok(DocumentSeen { object: None, state }),
    };
    let state = state(objects, &object, &document.manifest(&object), manager).await?;
    let object = Some(object).filter(|_| state != State::KindUnknown);
    Ok(DocumentSeen { object, state })
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
