//! Lists from the API itself, for what cannot be taken back. An object that cannot be decoded is left out where nothing
//! is decided by it, and an error where something is.

use kube::Api;
use kube::api::ListParams;
use plan::undecodable::Undecodable;

use crate::cache::Kind;
use crate::context::Context;
use crate::decoding::Decoded;
use crate::error::{Doing, Error};

/// The objects of a kind in a namespace. `action` completes the sentence "failed to ...".
pub async fn list<K: Kind>(
    ctx: &Context,
    namespace: &str,
    params: &ListParams,
    action: &str,
    matters: impl Fn(&Undecodable) -> bool,
) -> Result<Vec<K>, Error> {
    let api: Api<Decoded<K>> = Api::namespaced(ctx.client.clone(), namespace);
    let listed = api.list(params).await.doing(|| action.to_owned())?;
    let mut objects = Vec::with_capacity(listed.items.len());
    for decoded in listed {
        match decoded {
            Decoded::Object(object) => objects.push(object),
            Decoded::Undecodable { why, .. } if matters(&why) => {
                return Err(Error::Failed {
                    action: action.to_owned(),
                    source: why.message().into(),
                });
            }
            Decoded::Undecodable { .. } => {}
        }
    }
    Ok(objects)
}

/// The same for what is decided for one cluster.
pub async fn list_for_cluster<K: Kind>(
    ctx: &Context,
    namespace: &str,
    cluster: &str,
    params: &ListParams,
    action: &str,
) -> Result<Vec<K>, Error> {
    let matters = |object: &Undecodable| ctx.cache.concerns(object, namespace, cluster);
    list(ctx, namespace, params, action, matters).await
}
