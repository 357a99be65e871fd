//! What was seen of a plane's members.

use std::collections::BTreeMap;

use plan::karmada_deployment::Contact;
use plan::karmada_deployment::members::{EstimatorDue, Member, Neighbours as Beside, OwnClusters, PlaneSeen, Seen};

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

    /// What the planner looks at.
    pub fn seen<'a>(&'a self, neighbours: &'a Beside<'a>) -> Seen<'a> {
        let Self { own, plane, members, estimators, .. } = self;
        Seen { neighbours, own, plane, members, estimators }
    }
}
