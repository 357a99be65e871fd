//! By what a cluster is known: the UID of its namespace `kube-system`.

use crds::cluster_addon::AppliedObject;

use crate::objects::{Found, Objects};

/// The UID of a cluster. An error says why it does not say.
pub(super) async fn cluster_uid(objects: &Objects) -> Result<String, String> {
    let namespace = AppliedObject {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: None,
        name: "kube-system".to_owned(),
    };
    let nothing = || "it has no namespace kube-system".to_owned();
    match objects.get(&namespace).await.map_err(|failure| failure.to_string())? {
        Found::Object(found) => found["metadata"]["uid"].as_str().map(str::to_owned).ok_or_else(nothing),
        Found::Nothing | Found::NoKind => Err(nothing()),
    }
}
