//! A look at one member: in itself, as long as that does not take too long, and at its objects in the plane.

use std::time::Duration;

use crds::cluster_addon::AppliedObject;
use crds::karmada_deployment::{KarmadaMemberStatus, SyncMode};
use crds::{KarmadaDeployment, ObjectExt};
use plan::karmada_deployment::members::{
    Certificates, IMPERSONATOR, KINDS_OF_MEMBER, Member, MemberSeen, Place, PlaneSeen, ReachedBy, Target, Wanted, Wish,
    facts as known_facts, wanted,
};
use plan::karmada_deployment::{Contact, Manifest};
use serde_json::Value;
use tokio::time::timeout;

use super::super::inventory::{Inventory, NAMESPACE};
use super::asked::Asked;
use super::certificates;
use super::facts::facts;
use super::host_access;
use super::identity::cluster_uid;
use super::reach::{Reached, reach};
use super::refusal::refuses;
use crate::context::Context;
use crate::error::Error;
use crate::objects::{Failure, Found, Objects};

/// How long a member has to answer at all.
const FIRST_ANSWER: Duration = Duration::from_secs(5);
/// How long it has to answer all that is asked.
const ALL_ANSWERS: Duration = Duration::from_secs(20);

/// What was seen of a member.
pub(super) struct Looked {
    pub member: Member,
    /// How its objects are written; none: there is nothing to reach it with.
    pub objects: Option<Objects>,
    /// Why the plane does not answer any more.
    pub plane_lost: Option<String>,
}

/// A look at a member that can be asked.
struct Look<'a> {
    ctx: &'a Context,
    asked: &'a Asked<'a>,
    plane: Option<&'a PlaneSeen>,
    reached: &'a Reached,
    target: &'a Target,
    certificates: &'a Certificates,
}

/// Looks at it. `silent`: it is not asked, and this is what it said last.
pub(super) async fn look_at(
    ctx: &Context,
    asked: &Asked<'_>,
    plane: Option<&PlaneSeen>,
    target: Target,
    silent: Option<String>,
) -> Result<Looked, Error> {
    let certificates = certificates::read(ctx, asked, &target).await?;
    let mut looked = Looked {
        member: Member {
            target,
            contact: Contact::NotMade,
            kubeconfig: None,
            host_access: None,
            in_plane: Vec::new(),
            on_host: None,
            certificates,
            failure: None,
        },
        objects: None,
        plane_lost: None,
    };
    let member = &mut looked.member;
    // Before there is a plane, nothing was made in those that have not begun.
    if plane.is_some() || has_begun(asked.object, &member.target.name) {
        let mut is_refused = false;
        match reach(ctx, asked, &member.target).await? {
            Err(problem) => member.kubeconfig = Some(problem),
            Ok(reached) => {
                let (reached_by, target, certificates) = (&reached, &member.target, &member.certificates);
                let look = Look { ctx, asked, plane, reached: reached_by, target, certificates };
                member.contact = match &silent {
                    Some(why) => Contact::Lost(why.clone()),
                    None => look.contact().await,
                };
                is_refused = silent.is_none() && look.is_refused(&member.contact).await;
                looked.objects = Some(reached.objects);
            }
        }
        member.host_access = host_access::read(ctx, asked, &member.target, is_refused).await?;
    }
    if let (Some(plane), Some(inventory)) = (plane, asked.in_plane)
        && let Some(facts) = known_facts(&asked.basis(), &member.target, &member.contact, plane)
    {
        let wanted = wanted(&asked.basis(), &member.target, &facts, &member.certificates, plane);
        match inventory.states(&there(&wanted, Place::Plane)).await {
            Ok(states) => member.in_plane = states,
            Err(why) => looked.plane_lost = Some(why),
        }
        // A host that answers no more has been looked at before: nothing is known to differ there.
        if let Some(host) = asked.on_host.filter(|_| asked.host.is_some()) {
            member.on_host = host.states(&there(&wanted, Place::Host)).await.ok();
        }
    }
    Ok(looked)
}

fn has_begun(object: &KarmadaDeployment, name: &str) -> bool {
    let is_it = |member: &KarmadaMemberStatus| member.name == name && member.cluster_uid.is_some();
    object.status.as_ref().is_some_and(|status| status.members.iter().any(is_it))
}

impl Look<'_> {
    async fn contact(&self) -> Contact<MemberSeen> {
        let seen = timeout(ALL_ANSWERS, self.seen()).await;
        let late = format!("it has not answered all questions within {} s", ALL_ANSWERS.as_secs());
        let seen = seen.unwrap_or(Err(late));
        let (uid, answer) = (self.asked.object.uid(), seen.as_ref().map(drop));
        self.ctx.planes.silences.asked(uid, &self.target.name, answer, self.asked.now);
        match seen {
            Ok(seen) => Contact::Made(seen),
            Err(why) => Contact::Lost(why),
        }
    }

    /// Whether a member that did not answer refuses the kubeconfig that was read on its Host.
    async fn is_refused(&self, contact: &Contact<MemberSeen>) -> bool {
        let is_by_host = matches!(self.target.reached_by, ReachedBy::Host(_));
        is_by_host && matches!(contact, Contact::Lost(_)) && refuses(&self.reached.objects.client()).await
    }

    async fn seen(&self) -> Result<MemberSeen, String> {
        let Self { ctx, asked, reached, target, .. } = *self;
        let objects = &reached.objects;
        let late = format!("no answer within {} s", FIRST_ANSWER.as_secs());
        let uid = timeout(FIRST_ANSWER, cluster_uid(objects)).await.unwrap_or(Err(late))?;
        // Another cluster behind the same name is not what was listed.
        let is_same = ctx.planes.inventories.is_of(&(asked.object.uid().to_owned(), reached.server.clone()), &uid);
        if !is_same {
            ctx.following.retain(asked.object.uid(), |server| *server != reached.server);
        }
        let inventory = Inventory::open(ctx, asked.object, objects, None, asked.now);
        let listed = inventory.listed(&KINDS_OF_MEMBER).await?;
        inventory.listed(&[NAMESPACE]).await?;
        let facts = facts(ctx, reached, target, uid, &listed).await;
        let unknown = PlaneSeen::default();
        let plane = self.plane.unwrap_or(&unknown);
        let wanted = wanted(&asked.basis(), target, &facts, self.certificates, plane);
        let states = inventory.states(&there(&wanted, Place::Member)).await?;
        let leaves = target.wish == Wish::Leave && target.sync_mode == SyncMode::Push;
        let impersonation = if leaves { impersonation(objects).await? } else { Vec::new() };
        inventory.follow(&[&KINDS_OF_MEMBER, &[NAMESPACE]]).await;
        Ok(MemberSeen { facts, states, listed, impersonation })
    }
}

/// What Karmada has made there for the account that it acts as for others.
async fn impersonation(objects: &Objects) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        let object = AppliedObject {
            group: "rbac.authorization.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: IMPERSONATOR.to_owned(),
        };
        match objects.get(&object).await.map_err(|failure: Failure| failure.to_string())? {
            Found::Object(live) => found.push(*live),
            Found::Nothing | Found::NoKind => {}
        }
    }
    Ok(found)
}

fn there(wanted: &[Wanted], place: Place) -> Vec<(&AppliedObject, &Manifest)> {
    wanted.iter().filter(|one| one.place == place).map(|one| (&one.object, &one.manifest)).collect()
}
