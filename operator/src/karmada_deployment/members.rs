//! Members of a plane: what is seen of them, in the plane and in each of them, and how what is planned for one is done.
//! What goes wrong with one is its own affair.

mod asked;
mod certificates;
mod execute;
mod facts;
mod host_access;
mod identity;
mod in_plane;
mod look;
mod neighbours;
pub(super) mod news;
mod observed;
mod reach;
mod refusal;
mod serve;
pub(super) mod silences;

use crds::{KarmadaDeployment, ObjectExt};
use futures::{StreamExt, TryStreamExt, stream};
use plan::karmada_deployment::members::{OwnClusters, PlaneSeen, Target, roster};
use plan::karmada_deployment::{Contact, members_are_seen};

use super::inventory::Inventory;
use crate::context::Context;
use crate::error::Error;
use crate::objects::{Objects, Server};
pub(super) use asked::Asked;
pub(super) use execute::Places;
use identity::cluster_uid;
use look::{Looked, look_at};
use neighbours::Neighbours;
pub(super) use observed::Members;

/// Members that are looked at, or served, at once.
const AT_ONCE: usize = 16;

/// Looks at the members in the plane and in themselves, first at those that answered last.
///
/// # Errors
/// The metadata cluster does not answer.
pub(super) async fn look(ctx: &Context, asked: &Asked<'_>) -> Result<Members, Error> {
    let mut all = Members::unseen(Neighbours::read(ctx, asked.object), asked.estimators.clone());
    if !members_are_seen(asked.object) {
        return Ok(all);
    }
    let beside = all.neighbours.refs();
    let mut plane = match asked.in_plane {
        Some(inventory) => in_plane::look(inventory, asked.object, &beside).await,
        None => Contact::NotMade,
    };
    let targets = roster(asked.object, &beside, plane.seen());
    forget_others(ctx, asked.object, &targets);
    if targets.is_empty() {
        all.plane = plane;
        return Ok(all);
    }
    let in_plane = asked.in_plane.map(|inventory| inventory.objects());
    all.own = OwnClusters { host: uid(asked.on_host.map(Inventory::objects)).await, plane: uid(in_plane).await };
    for Looked { member, objects, plane_lost } in look_at_all(ctx, asked, plane.seen(), targets).await? {
        // What was seen there before may not be so any more.
        plane = plane_lost.map_or(plane, Contact::Lost);
        let name = member.target.name.clone();
        all.objects.extend(objects.map(|objects| (name.clone(), objects)));
        all.members.insert(name, member);
    }
    all.plane = plane;
    Ok(all)
}

async fn look_at_all(
    ctx: &Context,
    asked: &Asked<'_>,
    plane: Option<&PlaneSeen>,
    mut targets: Vec<Target>,
) -> Result<Vec<Looked>, Error> {
    let (uid, silences) = (asked.object.uid(), &ctx.planes.silences);
    let resting = silences.resting(uid, asked.now);
    targets.sort_by_key(|target| silences.is_silent(uid, &target.name));
    let looks: Vec<_> = targets
        .into_iter()
        .map(|target| {
            let silent = resting.get(&target.name).cloned();
            look_at(ctx, asked, plane, target, silent)
        })
        .collect();
    stream::iter(looks).buffer_unordered(AT_ONCE).try_collect().await
}

/// Those that have left need no client any more, and nothing in them is watched.
fn forget_others(ctx: &Context, object: &KarmadaDeployment, targets: &[Target]) {
    let stays = |name: &str| targets.iter().any(|target| target.name == name);
    let server_stays = |server: &Server| match server {
        Server::Member { name, .. } => stays(name),
        Server::Metadata | Server::Cluster(_) | Server::Plane(_) => true,
    };
    ctx.planes.clients.retain(object.uid(), server_stays);
    ctx.planes.inventories.retain(object.uid(), server_stays);
    ctx.following.retain(object.uid(), server_stays);
    ctx.planes.silences.retain(object.uid(), stays);
}

async fn uid(objects: Option<&Objects>) -> Option<String> {
    cluster_uid(objects?).await.ok()
}
