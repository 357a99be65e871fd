//! The kinds that clusters know: asked once, and again when one is not there any more.

use std::collections::HashMap;
use std::sync::Arc;

use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::error::DiscoveryError;
use kube::{Client, Error};
use parking_lot::Mutex;

use super::Server;

/// A kind of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Where its objects are.
    pub resource: ApiResource,
    /// Whether they are in namespaces.
    pub is_namespaced: bool,
}

/// What is known of the kinds of all clusters; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Kinds(Arc<Mutex<HashMap<(Server, GroupVersionKind), Known>>>);

impl Kinds {
    /// The kind, as the cluster has it; `None`: it knows no such kind.
    pub async fn get(&self, server: &Server, client: &Client, kind: &GroupVersionKind) -> Result<Option<Known>, Error> {
        let key = (server.clone(), kind.clone());
        if let Some(known) = self.0.lock().get(&key) {
            return Ok(Some(known.clone()));
        }
        let known = match pinned_kind(client, kind).await {
            Ok((resource, capabilities)) => Known { resource, is_namespaced: capabilities.scope == Scope::Namespaced },
            Err(Error::Discovery(DiscoveryError::MissingKind(_))) => return Ok(None),
            Err(Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(error) => return Err(error),
        };
        self.0.lock().insert(key, known.clone());
        Ok(Some(known))
    }

    /// The cluster has said that it knows no such kind.
    pub fn forget(&self, server: &Server, kind: &GroupVersionKind) {
        self.0.lock().remove(&(server.clone(), kind.clone()));
    }
}
