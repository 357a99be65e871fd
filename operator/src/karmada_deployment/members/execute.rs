//! How what is planned for a member is done. An act that fails ends those of its member, and of no other.

use crds::{KarmadaDeployment, ObjectExt};
use jiff::Timestamp;
use plan::cluster_addon::State;
use plan::karmada_deployment::Contact;
use plan::karmada_deployment::members::{Act, Action, Place};

use super::super::given_estimators;
use super::super::inventory::touched;
use super::observed::Members;
use super::{certificates, host_access};
use crate::context::Context;
use crate::error::{Error, chain};
use crate::execute;
use crate::objects::{Failure, Objects};

impl Members {
    /// Does it. What went wrong, and how an object is that was applied, is seen in the member.
    pub async fn execute(
        &mut self,
        ctx: &Context,
        object: &KarmadaDeployment,
        places: &Places<'_>,
        action: &Action,
        now: Timestamp,
    ) {
        let Action { member, act } = action;
        if self.members.get(member).is_none_or(|seen| seen.failure.is_some()) {
            return;
        }
        let places = (self.objects.get(member), places);
        touched(ctx, object, act.place().and_then(|of| objects(places, of).ok()));
        match done(ctx, object, places, action, now).await {
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
            (Place::Host, _) => member.on_host.get_or_insert_default(),
            (Place::Member, Contact::Made(seen)) => &mut seen.states,
            (Place::Member, Contact::NotMade | Contact::Lost(_) | Contact::Forbidden(_)) => return,
        };
        if let Some(seen) = states.get_mut(*index) {
            *seen = state;
        }
    }
}

/// Where objects are written, beside the member.
pub(in crate::karmada_deployment) struct Places<'a> {
    pub in_plane: Option<&'a Objects>,
    pub on_host: Option<&'a Objects>,
}

/// The objects of the member, and of the other places.
type Reached<'a> = (Option<&'a Objects>, &'a Places<'a>);

fn objects<'a>((in_member, places): Reached<'a>, place: Place) -> Result<&'a Objects, String> {
    let (objects, what) = match place {
        Place::Member => (in_member, "the member"),
        Place::Plane => (places.in_plane, "the plane"),
        Place::Host => (places.on_host, "the host"),
    };
    objects.ok_or_else(|| format!("there is nothing to reach {what} with"))
}

/// Does it; how the object is then, of one that was applied. An error is what went wrong.
async fn done(
    ctx: &Context,
    object: &KarmadaDeployment,
    places: Reached<'_>,
    action: &Action,
    now: Timestamp,
) -> Result<Option<State>, String> {
    let failed = |error: Error| chain(&error);
    let refused = |verb: &str, what: String, failure: Failure| format!("failed to {verb} {what}: {failure}");
    match &action.act {
        Act::IssueCertificate(leaf, wanted) => {
            certificates::issue(ctx, object, &action.member, (*leaf, wanted), now).await.map_err(failed)?;
        }
        Act::DeleteCertificate(leaf) => {
            certificates::delete(ctx, object, &action.member, *leaf).await.map_err(failed)?;
        }
        Act::ReadKubeconfig(run) => execute::create_ours(ctx, &**run).await.map_err(failed)?,
        Act::KeepKubeconfig { run, host } => {
            let read = host_access::Read { run, host, at: now };
            host_access::keep(ctx, object, &action.member, &read).await.map_err(failed)?;
        }
        Act::ForgetRun(run) => host_access::forget(ctx, run).await.map_err(failed)?,
        Act::DeleteKubeconfig => host_access::delete(ctx, object, &action.member).await.map_err(failed)?,
        Act::GiveEstimator(given) => {
            given_estimators::give(ctx, object, &action.member, given).await.map_err(failed)?
        }
        Act::TakeEstimator => given_estimators::take(ctx, object, &action.member).await.map_err(failed)?,
        Act::Apply { place, object, manifest, force, .. } => {
            let applied = objects(places, *place)?.apply(object, &manifest.0, *force).await;
            return applied.map(Some).map_err(failed);
        }
        Act::Patch { place, object, patch } => {
            let merged = objects(places, *place)?.merge(object, &patch.0).await;
            merged.map_err(|failure| refused("patch", object.to_string(), failure))?;
        }
        Act::Delete { place, deletion } => {
            let deleted = objects(places, *place)?.delete(deletion).await;
            deleted.map_err(|failure| refused("delete", deletion.object.to_string(), failure))?;
        }
    }
    Ok(None)
}
