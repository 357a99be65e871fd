//! The Cluster that stands for a plane among the clusters of its namespace: by it Addons, and whoever looks at
//! clusters, find the plane. It has the plane's name, and goes with the KarmadaDeployment.

use std::collections::BTreeMap;

use crds::cluster::ClusterSpec;
use crds::names::{kubeconfig_secret, label};
use crds::references::{LocalRef, controller_ref};
use crds::{Cluster, KarmadaDeployment, ObjectExt};

use super::action::Action;
use super::contact::Contact;
use super::observed::Observed;

/// Whether this Cluster was made for this very KarmadaDeployment.
pub fn is_cluster_of(object: &KarmadaDeployment, cluster: &Cluster) -> bool {
    cluster
        .metadata
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.controller == Some(true) && owner.uid == object.uid())
}

/// Applies it, once the plane has answered, if it is not there or is another one.
pub(super) fn apply(observed: &Observed<'_>) -> Option<Action> {
    let Contact::Made(_) = observed.plane else { return None };
    let wanted = wanted(observed.object);
    let labels = |cluster: &Cluster| cluster.metadata.labels.clone().unwrap_or_default();
    let is_there = |there: &Cluster| {
        let has_labels = labels(&wanted).iter().all(|(key, value)| labels(there).get(key) == Some(value));
        there.spec == wanted.spec && has_labels
    };
    (!observed.cluster.is_some_and(is_there)).then(|| Action::ApplyCluster(Box::new(wanted)))
}

fn wanted(object: &KarmadaDeployment) -> Cluster {
    let spec = ClusterSpec { kubeconfig_ref: LocalRef::new(kubeconfig_secret(object.name())) };
    let mut cluster = Cluster::new(object.name(), spec);
    cluster.metadata.namespace = object.metadata.namespace.clone();
    cluster.metadata.owner_references = controller_ref(object).map(|owner| vec![owner]);
    let labels = [(label::KARMADA, object.name()), (label::KARMADA_UID, object.uid())];
    cluster.metadata.labels = Some(BTreeMap::from(labels.map(|(key, value)| (key.to_owned(), value.to_owned()))));
    cluster
}
