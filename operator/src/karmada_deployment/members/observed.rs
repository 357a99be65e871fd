//! What was seen of a plane's members.

use std::collections::BTreeMap;

use plan::karmada_deployment::Contact;
use plan::karmada_deployment::members::{
    EstimatorDue, Member, Neighbours as Beside, OwnClusters, PlaneSeen, Seen, Wish,
};

use super::neighbours::Neighbours;
use crate::objects::Objects;

/// What was seen of them.
pub(in crate::karmada_deployment) struct Members {
    /// What else is in the namespace.
    pub neighbours: Neighbours,
    pub(super) own: OwnClusters,
    pub(super) plane: Contact<PlaneSeen>,
    pub(super) members: BTreeMap<String, Member>,
    pub(super) estimators: EstimatorDue,
    /// How objects are written in each.
    pub(super) objects: BTreeMap<String, Objects>,
}

impl Members {
    /// Nothing is seen of them yet.
    pub(super) fn unseen(neighbours: Neighbours, estimators: EstimatorDue) -> Self {
        let (members, objects) = (BTreeMap::new(), BTreeMap::new());
        Self { neighbours, own: OwnClusters::default(), plane: Contact::NotMade, members, estimators, objects }
    }

    /// Those that the spec names and that are to be members, by name: how they are reached, or why they are not.
    pub fn reached(&self) -> impl Iterator<Item = (String, Result<&Objects, String>)> {
        let wanted = self.members.iter().filter(|(_, member)| member.target.wish != Wish::Leave);
        wanted.map(|(name, member)| {
            let why = match (&member.contact, &member.kubeconfig) {
                (Contact::Lost(why), _) => why.clone(),
                (_, Some(problem)) => problem.message.clone(),
                _ => "it was not looked at".to_owned(),
            };
            let objects = self.objects.get(name).filter(|_| member.contact.seen().is_some());
            (name.clone(), objects.ok_or(why))
        })
    }

    /// What the planner looks at.
    pub fn seen<'a>(&'a self, neighbours: &'a Beside<'a>) -> Seen<'a> {
        let Self { own, plane, members, estimators, .. } = self;
        Seen { neighbours, own, plane, members, estimators }
    }
}
