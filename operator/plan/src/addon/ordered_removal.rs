//! The order in which Addons leave a cluster: what came last goes first.

use std::collections::BTreeMap;

use crds::{Addon, Cluster, ClusterAddon, ClusterDeployment, ObjectExt};

use super::observed::Observed;
use super::selection::{labels, needs, selects};

/// The Addons that come after one, on each cluster.
#[derive(Default)]
pub(super) struct Order<'a> {
    later: BTreeMap<&'a str, Vec<(&'a Addon, &'a ClusterAddon)>>,
    clusters: BTreeMap<&'a str, &'a Cluster>,
    deployments: BTreeMap<&'a str, &'a ClusterDeployment>,
}

impl<'a> Order<'a> {
    /// Of the Addon that is looked at.
    pub fn new(observed: &Observed<'a>) -> Self {
        // Of two that wait for each other neither comes first.
        let is_later = |addon: &&&Addon| needs(addon, observed.addon) && !needs(observed.addon, addon);
        let addons: BTreeMap<&str, &Addon> =
            observed.addons.iter().filter(is_later).map(|addon| (addon.name(), *addon)).collect();
        if addons.is_empty() {
            return Self::default();
        }
        let mut later: BTreeMap<&str, Vec<(&Addon, &ClusterAddon)>> = BTreeMap::new();
        for there in observed.cluster_addons.iter().copied() {
            if let Some(addon) = addons.get(there.spec.addon_ref.name.as_str()) {
                later.entry(&there.spec.cluster_ref.name).or_default().push((addon, there));
            }
        }
        Self {
            later,
            clusters: observed.clusters.iter().map(|cluster| (cluster.name(), *cluster)).collect(),
            deployments: observed.deployments.iter().map(|deployment| (deployment.name(), *deployment)).collect(),
        }
    }

    /// Which Addon is to be gone from the cluster before this one is removed there, if there is one: it is going, too.
    /// One that stays holds up nothing.
    pub fn goes_first(&self, there: &ClusterAddon) -> Option<&'a str> {
        let later = self.later.get(there.spec.cluster_ref.name.as_str())?.iter();
        later.filter(|(addon, other)| self.is_going(addon, other)).map(|(addon, _)| addon.name()).min()
    }

    fn is_going(&self, addon: &Addon, there: &ClusterAddon) -> bool {
        if addon.is_deleting() || there.is_deleting() {
            return true;
        }
        let name = there.spec.cluster_ref.name.as_str();
        let Some(cluster) = self.clusters.get(name) else { return true };
        !selects(addon, cluster, &labels(cluster, self.deployments.get(name).copied()))
    }
}
