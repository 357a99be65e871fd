//! What was made for another object: whether it belongs to it, and its end.

use kube::ResourceExt;

use crate::context::Context;
use crate::error::Error;
use crate::execute::{self, Writable};
use crate::live;

/// True when the object's controller has this UID.
pub(crate) fn owned_by<K: ResourceExt>(object: &K, uid: Option<&str>) -> bool {
    let owner = object.owner_references().iter().find(|owner| owner.controller == Some(true));
    owner.is_some_and(|owner| Some(owner.uid.as_str()) == uid)
}

/// Deletes the object of this name, if its controller has this UID.
pub(crate) async fn drop_owned<K: Writable>(
    ctx: &Context,
    namespace: &str,
    name: &str,
    uid: Option<&str>,
) -> Result<(), Error> {
    let named = live::get::<K>(ctx, namespace, name).await?;
    match named.filter(|object| owned_by(object, uid)) {
        Some(object) => execute::delete(ctx, &object, None).await,
        None => Ok(()),
    }
}
