//! Why a cluster cannot be a member under its name. Nothing that others have is taken over.

use crds::karmada_deployment::{ServiceType, SyncMode};
use crds::{KarmadaDeployment, ObjectExt, Reason};
use serde_json::Value;

use super::super::names::is_taken_over;
use super::context::Context;
use super::target::{Wish, has_begun, known};
use crate::addon::Problem;

/// The first reason.
pub(super) fn problem(context: &Context<'_>) -> Option<Problem> {
    let (reason, message) = exposed(context)
        .or_else(|| own_cluster(context))
        .or_else(|| replaced(context))
        .or_else(|| in_this_plane(context))
        .or_else(|| in_another_plane(context))?;
    Some(Problem { reason, message })
}

type Found = Option<(Reason, String)>;

fn exposed(context: &Context<'_>) -> Found {
    let spec = &context.observed.object.spec;
    // A plane on machines is reached at its endpoint.
    let is_hidden = spec.binary.is_none() && spec.api_server.service_type == ServiceType::ClusterIP;
    let message = "its agent cannot reach the plane: set spec.apiServer.serviceType to NodePort or LoadBalancer, or its syncMode to push";
    (is_hidden && context.target.sync_mode == SyncMode::Pull).then(|| (Reason::PlaneNotExposed, message.to_owned()))
}

fn own_cluster(context: &Context<'_>) -> Found {
    let uid = &context.seen?.facts.uid;
    let own = context.observed.seen.own;
    // A plane on machines is carried by no cluster.
    if context.observed.object.spec.binary.is_none() && own.host.is_none() && !context.has_begun() {
        let message = "this cluster may be the one that carries the plane, which does not say who it is: it joins once the operator may get namespace kube-system there, which karmada.hostNamespaces of the chart grants on the metadata cluster";
        return Some((Reason::ClusterUnreachable, message.to_owned()));
    }
    let what = match () {
        () if own.host.as_ref() == Some(uid) => "it carries the plane",
        () if own.plane.as_ref() == Some(uid) => "it is the plane itself",
        () => return None,
    };
    Some((Reason::MemberIsHost, format!("{what}: what is propagated could overwrite what the plane runs on")))
}

fn replaced(context: &Context<'_>) -> Found {
    let (joined, now) = (context.known?.cluster_uid.as_ref()?, &context.seen?.facts.uid);
    (joined != now).then(|| {
        let message = format!(
            "another cluster answers than the one that has joined (UID {now}, and not {joined}): take it out of spec.members, and put it back once it has left"
        );
        (Reason::MemberReplaced, message)
    })
}

/// The name, or the cluster, stands for something else in this plane.
fn in_this_plane(context: &Context<'_>) -> Found {
    let (object, target) = (context.observed.object, context.target);
    let twin = context.roster.iter().find(|other| {
        other.reached_by == target.reached_by
            && other.name != target.name
            && other.wish != Wish::Leave
            && order(context, &other.name) < order(context, &target.name)
    });
    if let Some(twin) = twin {
        let message = format!("{} is member {} already: take one of them out", target.reached_by.text(), twin.name);
        return Some((Reason::MemberTaken, message));
    }
    let plane = context.plane?;
    if plane.cluster(&target.name).is_some_and(|cluster| !is_taken_over(cluster, object)) {
        let message = format!(
            "Cluster {} is in the plane and was not made here: delete it there, or give the member another name",
            target.name
        );
        return Some((Reason::MemberTaken, message));
    }
    let uid = context.seen.map(|seen| seen.facts.uid.as_str())?;
    let is_same =
        |cluster: &&Value| cluster["spec"]["id"] == uid && cluster["metadata"]["name"] != target.name.as_str();
    let other = plane.clusters.iter().find(is_same)?;
    let name = other["metadata"]["name"].as_str().unwrap_or_default();
    Some((Reason::MemberTaken, format!("the same cluster is in the plane as {name}: take one of them out")))
}

/// Those that have begun are before others, and then by name.
fn order<'a>(context: &Context<'a>, name: &'a str) -> (bool, &'a str) {
    let known = known(context.observed.object);
    (!known.get(name).is_some_and(|status| has_begun(status)), name)
}

/// The cluster is a member of another plane that is known here.
fn in_another_plane(context: &Context<'_>) -> Found {
    let object = context.observed.object;
    let uid = context.seen.map(|seen| seen.facts.uid.as_str())?;
    let claims = |plane: &KarmadaDeployment| {
        let members = plane.status.as_ref().map(|status| status.members.as_slice()).unwrap_or_default();
        let has_it = members.iter().find(|member| member.cluster_uid.as_deref() == Some(uid));
        has_it.map(|member| member.joined_at.is_some())
    };
    let ours = claims(object) == Some(true);
    let age = |plane: &KarmadaDeployment| (plane.created_at().map(|time| time.0), plane.uid().to_owned());
    let has_it = |plane: &&&KarmadaDeployment| {
        let other = claims(plane);
        other == Some(true) && !ours || other.is_some() && age(plane) < age(object)
    };
    let plane = context.observed.others.iter().find(has_it)?;
    let message = format!(
        "the cluster is a member of KarmadaDeployment {}/{}: it joins here once it has left there",
        plane.namespace(),
        plane.name()
    );
    Some((Reason::MemberTaken, message))
}
