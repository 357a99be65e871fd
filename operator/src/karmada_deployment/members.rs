//! Members of a plane: what is seen of them, in the plane and in each of them, and how what is planned for one is done.
//! What goes wrong with one is its own affair.

mod agent;
mod asked;
mod execute;
mod facts;
mod in_plane;
mod look;
mod neighbours;
pub(super) mod news;
mod reach;
pub(super) mod silences;

use std::collections::BTreeMap;

use crds::cluster_addon::AppliedObject;
use crds::{KarmadaDeployment, ObjectExt};
use futures::{StreamExt, TryStreamExt, stream};
use plan::karmada_deployment::members::{
    Member, Neighbours as Beside, OwnClusters, PlaneSeen, Seen, Target, roster,
};
use plan::karmada_deployment::{Contact, members_are_seen};

use crate::context::Context;
use crate::error::Error;
use crate::objects::{Found, Objects, Server};
pub(super) use asked::Asked;
use look::{Looked, look_at};
pub(super) use neighbours::Neighbours;

/// Members that are looked at at once.
const AT_ONCE: usize = 8;

/// What was seen of them.
pub(super) struct Members {
    /// What else is in the namespace.
    pub neighbours: Neighbours,
    own: OwnClusters,
    plane: Contact<PlaneSeen>,
    members: BTreeMap<String, Member>,
    /// How objects are written in each.
    objects: BTreeMap<String, Objects>,
}

impl Members {
    /// Nothing is seen yet.
    fn unseen(neighbours: Neighbours) -> Self {
        let (members, objects) = (BTreeMap::new(), BTreeMap::new());
        Self { neighbours, own: OwnClusters::default(), plane: Contact::NotMade, members, objects }
    }

    /// What the planner looks at.
    pub fn seen<'a>(&'a self, neighbours: &'a Beside<'a>) -> Seen<'a> {
        Seen { neighbours, own: &self.own, plane: &self.plane, members: &self.members }
    }
}

/// Looks at the members in the plane and in themselves, at those that answer first.
///
/// # Errors
/// The metadata cluster does not answer.
pub(super) async fn look(ctx: &Context, asked: &Asked<'_>) -> Result<Members, Error> {
    let mut all = Members::unseen(Neighbours::read(ctx, asked.object));
    if !members_are_seen(asked.object) {
        return Ok(all);
    }
    let beside = all.neighbours.refs();
    let mut plane = match asked.in_plane {
        Some(objects) => in_plane::look(objects, asked.object, &beside).await,
        None => Contact::NotMade,
    };
    let targets = roster(asked.object, &beside, made(&plane));
    forget_others(ctx, asked.object, &targets);
    if targets.is_empty() {
        all.plane = plane;
        return Ok(all);
    }
    all.own = OwnClusters { host: uid(asked.on_host).await, plane: uid(asked.in_plane).await };
    let looked = look_at_all(ctx, asked, made(&plane), targets).await?;
    let mut lost = None;
    for Looked { member, objects, plane_lost } in looked {
        lost = lost.or(plane_lost);
        let name = member.target.name.clone();
        all.objects.extend(objects.map(|objects| (name.clone(), objects)));
        all.members.insert(name, member);
    }
    if let Some(why) = lost {
        plane = Contact::Lost(why);
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
    let uid = asked.object.uid();
    let resting = ctx.planes.silences.resting(uid, asked.now);
    targets.sort_by_key(|target| ctx.planes.silences.is_silent(uid, &target.name));
    let looks: Vec<_> = targets
        .into_iter()
        .map(|target| {
            let silent = resting.get(&target.name).cloned();
            look_at(ctx, asked, plane, target, silent)
        })
        .collect();
    stream::iter(looks).buffer_unordered(AT_ONCE).try_collect().await
}

/// Those that have left need no client any more.
fn forget_others(ctx: &Context, object: &KarmadaDeployment, targets: &[Target]) {
    let stays = |name: &str| targets.iter().any(|target| target.name == name);
    ctx.planes.clients.retain(object.uid(), |server| match server {
        Server::Member { name, .. } => stays(name),
        Server::Metadata | Server::Cluster(_) | Server::Plane(_) => true,
    });
    ctx.planes.silences.retain(object.uid(), stays);
}

/// The UID of a cluster: that of its namespace `kube-system`.
async fn uid(objects: Option<&Objects>) -> Option<String> {
    match objects?.get(&kube_system()).await {
        Ok(Found::Object(namespace)) => namespace["metadata"]["uid"].as_str().map(str::to_owned),
        Ok(Found::Nothing | Found::NoKind) | Err(_) => None,
    }
}

/// The namespace by whose UID a cluster is known.
fn kube_system() -> AppliedObject {
    AppliedObject {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: None,
        name: "kube-system".to_owned(),
    }
}

/// What was seen, if there was contact.
fn made<S>(contact: &Contact<S>) -> Option<&S> {
    match contact {
        Contact::Made(seen) => Some(seen),
        Contact::NotMade | Contact::Lost(_) => None,
    }
}
