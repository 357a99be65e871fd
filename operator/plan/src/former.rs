//! Machines of a former cluster of the same name: what formed it was let go without its Machines, by taking finalizers
//! off. They name this cluster and are no part of it.

use crds::names::annotation;
use crds::{Machine, MachineSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::formed_cluster::FormedCluster;

/// Whether the Machine was made for another object than the one that forms the cluster now. One that a set made is
/// never older than the cluster, and its set is the cluster's. One that no set made is a platform's, which may have
/// made it first: it was part of another cluster if it joined before there was this one.
pub fn is_former(machine: &Machine, cluster: FormedCluster<'_>, sets: &[&MachineSet]) -> bool {
    let metadata = &machine.metadata;
    let owner = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let ordinal = metadata.annotations.as_ref().is_some_and(|all| all.contains_key(annotation::ORDINAL));
    let is_before = |time: Option<&Time>| time.zip(cluster.created_at).is_some_and(|(time, since)| time.0 < since);
    if owner.is_none() && !ordinal {
        let status = machine.status.as_ref();
        return is_before(status.and_then(|status| status.provisioned_at.as_ref()));
    }
    let set = owner.and_then(|owner| {
        let mut sets = sets.iter();
        sets.find(|set| set.metadata.uid.as_ref() == Some(&owner.uid))
    });
    let of_another = set.is_some_and(|set| {
        let mut owners = set.metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true));
        owner.is_some_and(|owner| owner.uid != cluster.uid)
    });
    of_another || is_before(metadata.creation_timestamp.as_ref())
}

#[cfg(test)]
mod tests {
    use crds::{Machine, MachineSet};

    use super::is_former;
    use crate::formed_cluster::FormedCluster;
    use crate::formed_cluster::fixtures::PLANE;

    const OWNED: &str = "ownerReferences: [{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, name: s, uid: s-uid, controller: true}], ";

    fn machine(owners: &str, made: &str, joined: &str) -> Machine {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m, {owners}creationTimestamp: '2026-01-0{made}T00:00:00Z'}}, spec: {{clusterName: plane, role: control-plane}}, status: {{provisionedAt: '2026-01-0{joined}T00:00:00Z'}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    fn set(owner: &str) -> MachineSet {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, metadata: {{name: s, uid: s-uid, ownerReferences: [{{apiVersion: x/v1, kind: Plane, name: plane, uid: {owner}, controller: true}}]}}, spec: {{clusterName: plane, role: control-plane, replicas: 1}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    #[test]
    fn what_was_made_or_joined_before_there_was_this_cluster_is_another_ones_whatever_forms_them() {
        let made = "2026-01-02T00:00:00Z".parse().unwrap();
        let cluster = FormedCluster { created_at: Some(made), ..PLANE };
        let check = |machine: &Machine, set: &MachineSet, expected: bool| {
            assert_eq!(is_former(machine, cluster, &[set]), expected, "{:?}", machine.metadata);
        };
        let (ours, theirs) = (set("plane-uid"), set("plane-before-uid"));
        check(&machine(OWNED, "3", "3"), &ours, false);
        check(&machine(OWNED, "3", "3"), &theirs, true);
        check(&machine(OWNED, "1", "3"), &ours, true);
        // A platform's, which may make a machine before there is a cluster.
        check(&machine("", "1", "3"), &ours, false);
        check(&machine("", "1", "1"), &ours, true);
    }
}
