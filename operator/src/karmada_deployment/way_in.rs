//! The way into a plane: through its API server, with its administrator's kubeconfig.

use crds::{KarmadaDeployment, ObjectExt};
use plan::karmada_deployment::{HostFacts, is_left_without_probe, members_are_seen};

use super::material::Secrets;
use super::plane;
use crate::context::Context;
use crate::error::Error;
use crate::objects::Objects;

/// The objects of the plane; none: there is no kubeconfig, or no machine with an API server, or, of one that is being
/// deleted, nobody there is asked any more.
pub(super) fn in_plane(
    ctx: &Context,
    object: &KarmadaDeployment,
    facts: &HostFacts,
    secrets: &Secrets,
) -> Result<Option<Objects>, Error> {
    let is_served = object.spec.binary.is_none() || facts.seats.is_served;
    let is_asked = is_served && members_are_seen(object);
    let Some(kept) = secrets.kubeconfig.as_ref().filter(|_| is_asked) else { return Ok(None) };
    match plane::objects(ctx, object, &kept.checked) {
        // A kubeconfig that makes no client holds no deletion up.
        Err(_) if object.is_deleting() => Ok(None),
        objects => objects.map(Some),
    }
}

/// The objects of a plane that goes on without this object, where something of the operator's is to be removed from it.
/// One that is not reached keeps it.
pub(super) fn left_in_plane(ctx: &Context, object: &KarmadaDeployment, secrets: &Secrets) -> Option<Objects> {
    let kept = secrets.kubeconfig.as_ref().filter(|_| is_left_without_probe(object))?;
    plane::objects(ctx, object, &kept.checked).ok()
}
