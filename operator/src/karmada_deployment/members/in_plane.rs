//! A look at what a plane has of its members: their Clusters, what was made for them, the Works of those that leave,
//! and the Leases of those whose agents are awaited.

use std::collections::BTreeMap;

use crds::KarmadaDeployment;
use plan::karmada_deployment::Contact;
use plan::karmada_deployment::members::{
    KINDS_OF_PLANE, Neighbours, PlaneSeen, Wish, agents_are_awaited, roster, works_namespace,
};
use plan::karmada_deployment::names::MEMBERS_NAMESPACE;

use super::super::inventory::Inventory;
use crate::objects::{Failure, Kind};

const CLUSTER: Kind<'static> = ("cluster.karmada.io", "v1alpha1", "Cluster");
const LEASE: Kind<'static> = ("coordination.k8s.io", "v1", "Lease");
const WORK: Kind<'static> = ("work.karmada.io", "v1alpha1", "Work");

/// Looks at it. Until the API of Clusters is served, nothing is known of members.
pub(super) async fn look(
    inventory: &Inventory<'_>,
    object: &KarmadaDeployment,
    neighbours: &Neighbours<'_>,
) -> Contact<PlaneSeen> {
    match seen(inventory, object, neighbours).await {
        Ok(seen) => Contact::Made(seen),
        Err(why) => Contact::Lost(why),
    }
}

async fn seen(
    inventory: &Inventory<'_>,
    object: &KarmadaDeployment,
    neighbours: &Neighbours<'_>,
) -> Result<PlaneSeen, String> {
    let lost = |failure: Failure| failure.to_string();
    let unknown = |kind: Kind<'_>| format!("it does not serve {}s of {}", kind.2, kind.0);
    // No Clusters, and no API of Clusters, are not the same: members would be taken for gone.
    let clusters = inventory.objects().list_known(CLUSTER, None, "").await.map_err(lost)?;
    let clusters = clusters.ok_or_else(|| unknown(CLUSTER))?;
    inventory.put(CLUSTER, &clusters);
    let listed = inventory.listed(&KINDS_OF_PLANE).await?;
    let mut seen = PlaneSeen { clusters, listed, works: BTreeMap::new(), leases: Vec::new() };
    let targets = roster(object, neighbours, Some(&seen));
    if agents_are_awaited(object, &targets) {
        seen.leases = inventory.objects().list(LEASE, Some(MEMBERS_NAMESPACE), "").await.map_err(lost)?;
    }
    for target in targets.into_iter().filter(|target| target.wish == Wish::Leave) {
        let count = inventory.objects().count(WORK, &works_namespace(&target.name)).await.map_err(lost)?;
        seen.works.insert(target.name, count.ok_or_else(|| unknown(WORK))?);
    }
    Ok(seen)
}
