//! The order in which Addons leave a cluster: what came last goes first.

use crds::{Addon, ClusterAddon, ObjectExt};

use super::observed::Observed;
use super::selection::{labels, needs, selects};

/// Which Addon is to be gone from the cluster before this one is removed there, if there is one: it comes after this
/// one, and is going, too. One that stays holds up nothing.
pub(super) fn goes_first<'a>(observed: &Observed<'a>, there: &ClusterAddon) -> Option<&'a str> {
    let cluster = there.spec.cluster_ref.name.as_str();
    let on_cluster = observed.cluster_addons.iter().copied().filter(|other| other.spec.cluster_ref.name == cluster);
    let later = on_cluster.filter_map(|other| {
        let addon = observed.addons.iter().copied().find(|addon| addon.name() == other.spec.addon_ref.name)?;
        let is_later = needs(addon, observed.addon) && !needs(observed.addon, addon);
        (is_later && is_going(observed, addon, other)).then(|| addon.name())
    });
    later.min()
}

fn is_going(observed: &Observed<'_>, addon: &Addon, there: &ClusterAddon) -> bool {
    if addon.is_deleting() || there.is_deleting() {
        return true;
    }
    let name = there.spec.cluster_ref.name.as_str();
    let Some(cluster) = observed.clusters.iter().find(|cluster| cluster.name() == name) else { return true };
    let deployment = observed.deployments.iter().copied().find(|deployment| deployment.name() == name);
    !selects(addon, cluster, &labels(cluster, deployment))
}
