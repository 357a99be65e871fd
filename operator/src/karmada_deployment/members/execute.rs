//! How what is planned for a member is done. An act that fails ends those of its member, and of no other.

use crds::{KarmadaDeployment, ObjectExt};
use jiff::Timestamp;
use plan::cluster_addon::State;
use plan::karmada_deployment::Contact;
use plan::karmada_deployment::members::{Act, Action, Place};

use super::super::inventory::touched;
use super::agent;
use super::observed::Members;
use crate::context::Context;
use crate::error::{Error, chain};
use crate::objects::{Failure, Objects};

impl Members {
    /// Does it. What went wrong, and how an object is that was applied, is seen in the member.
    pub async fn execute(
        &mut self,
        ctx: &Context,
        object: &KarmadaDeployment,
        in_plane: Option<&Objects>,
        action: &Action,
        now: Timestamp,
    ) {
        let Action { member, act } = action;
        if self.members.get(member).is_none_or(|seen| seen.failure.is_some()) {
            return;
        }
        let place = Places { in_member: self.objects.get(member), in_plane };
        touched(ctx, object, act.place().and_then(|of| place.objects(of).ok()));
        match done(ctx, object, &place, action, now).await {
            Ok(state) => self.see(member, act, state),
            Err(why) => {
                tracing::warn!(namespace = object.namespace(), plane = object.name(), member, error = %why);
                if let Some(seen) = self.members.get_mut(member) {
                    seen.failure = Some(why);
                }
            }
        }
    }

    /// How an object is that was applied.
    fn see(&mut self, member: &str, act: &Act, state: Option<State>) {
        let (Some(member), Some(state), Act::Apply { place, index, .. }) = (self.members.get_mut(member), state, act)
        else {
            return;
        };
        let states = match (place, &mut member.contact) {
            (Place::Plane, _) => &mut member.in_plane,
            (Place::Member, Contact::Made(seen)) => &mut seen.states,
            (Place::Member, Contact::NotMade | Contact::Lost(_) | Contact::Forbidden(_)) => return,
        };
        if let Some(seen) = states.get_mut(*index) {
            *seen = state;
        }
    }
}

/// Where objects are written.
struct Places<'a> {
    in_member: Option<&'a Objects>,
    in_plane: Option<&'a Objects>,
}

impl<'a> Places<'a> {
    fn objects(&self, place: Place) -> Result<&'a Objects, String> {
        let (objects, what) = match place {
            Place::Member => (self.in_member, "the member"),
            Place::Plane => (self.in_plane, "the plane"),
        };
        objects.ok_or_else(|| format!("there is nothing to reach {what} with"))
    }
}

/// Does it; how the object is then, of one that was applied. An error is what went wrong.
async fn done(
    ctx: &Context,
    object: &KarmadaDeployment,
    places: &Places<'_>,
    action: &Action,
    now: Timestamp,
) -> Result<Option<State>, String> {
    let failed = |error: Error| chain(&error);
    let refused = |verb: &str, what: String, failure: Failure| format!("failed to {verb} {what}: {failure}");
    match &action.act {
        Act::IssueCertificate(wanted) => {
            agent::issue(ctx, object, &action.member, wanted, now).await.map_err(failed)?;
        }
        Act::DeleteCertificate => agent::delete(ctx, object, &action.member).await.map_err(failed)?,
        Act::Apply { place, object, manifest, force, .. } => {
            let applied = places.objects(*place)?.apply(object, &manifest.0, *force).await;
            return applied.map(Some).map_err(failed);
        }
        Act::Patch { place, object, patch } => {
            let merged = places.objects(*place)?.merge(object, &patch.0).await;
            merged.map_err(|failure| refused("patch", object.to_string(), failure))?;
        }
        Act::Delete { place, deletion } => {
            let deleted = places.objects(*place)?.delete(deletion).await;
            deleted.map_err(|failure| refused("delete", deletion.object.to_string(), failure))?;
        }
    }
    Ok(None)
}
