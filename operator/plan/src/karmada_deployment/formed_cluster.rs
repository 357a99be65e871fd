//! What others decide by of a plane on machines. One in Pods forms no cluster: nobody asks it.

use crds::karmada_deployment::{KarmadaDeletionPolicy, PlaneUpgrade};
use crds::names::condition;
use crds::{ClusterKind, Conditions, KarmadaDeployment, ObjectExt};

use crate::attempts::{self, HasTerms, Terms};
use crate::formed_cluster::FormedCluster;
use crate::naming;

impl<'a> From<&'a KarmadaDeployment> for FormedCluster<'a> {
    fn from(object: &'a KarmadaDeployment) -> Self {
        let (spec, status) = (&object.spec, object.status.as_ref());
        let machines = spec.binary.as_ref();
        let dedicated = machines.and_then(|machines| machines.etcd.as_ref()?.replicas);
        Self {
            kind: ClusterKind::KarmadaDeployment,
            name: object.name(),
            uid: object.uid(),
            created_at: object.created_at().map(|time| time.0),
            is_paused: spec.paused,
            is_deleting: object.is_deleting(),
            detaches: spec.deletion_policy == KarmadaDeletionPolicy::Detach,
            is_installed: status.is_some_and(|status| status.first_installed_at.is_some()),
            compared_since: status.and_then(|status| Some(status.compared_since.as_ref()?.0)),
            is_contradicted: object.condition(condition::STORE_IS_OLDER).is_some(),
            has_nodes: false,
            etcd_role: spec.etcd_topology().role(),
            control_planes: machines.map_or(0, |machines| machines.control_plane.replicas),
            etcd_machines: dedicated.unwrap_or_default(),
            forgotten: status.map(|status| status.forgotten.as_slice()).unwrap_or_default(),
            drain_timeout_seconds: 0,
            force_remove_after_seconds: machines.and_then(|machines| machines.force_remove_after_seconds),
            removals_held: None,
            terms: object,
            deployment: None,
        }
    }
}

impl HasTerms for KarmadaDeployment {
    fn terms(&self) -> Terms {
        let asked = attempts::asked_retry(self.metadata.annotations.as_ref(), self.generation());
        let executor = self.spec.binary.as_ref().and_then(|machines| machines.executor.clone()).unwrap_or_default();
        Terms {
            wanted: wanted(self),
            most: usize::try_from(executor.max_attempts).unwrap_or_default().max(1),
            retry: asked.map(|value| format!("plane {value}")),
        }
    }
}

/// A digest of what is wanted of the plane's machines. Pausing it, other members, or how and how often something is
/// done, want nothing else of them.
fn wanted(object: &KarmadaDeployment) -> String {
    let mut spec = object.spec.clone();
    (spec.paused, spec.deletion_protection) = (false, false);
    spec.deletion_policy = KarmadaDeletionPolicy::default();
    (spec.members, spec.auto_join, spec.unjoin_policy) = (Vec::new(), None, None);
    spec.upgrade = PlaneUpgrade::default();
    if let Some(machines) = &mut spec.binary {
        (machines.executor, machines.force_remove_after_seconds) = (None, None);
    }
    let text = serde_json::to_string(&spec).unwrap_or_default();
    naming::short_hash(&[&text], 12)
}

#[cfg(test)]
mod tests {
    use crds::step::Role;
    use crds::{FormerRef, KarmadaDeployment};

    use crate::attempts::HasTerms;
    use crate::formed_cluster::FormedCluster;

    fn plane(binary: &str, more: &str, status: &str) -> KarmadaDeployment {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: KarmadaDeployment, metadata: {{name: k1, namespace: fleet, uid: k1-uid, generation: 4, annotations: {{clusterwright.dev/retry: '4'}}}}, spec: {{version: 1.18.2, mode: Binary, binary: {{controlPlane: {{replicas: 3}}, artifacts: {{url: 'https://b.example.com'}}{binary}}}, crds: {{bundle: {{url: 'https://b.example.com'}}}}{more}}}, status: {{{status}}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    #[test]
    fn a_plane_on_machines_forms_a_cluster_whose_machines_are_no_nodes() {
        let plain = plane("", "", "");
        let formed = FormedCluster::from(&plain);
        assert_eq!((formed.former(), formed.uid), (FormerRef::plane("k1"), "k1-uid"));
        assert!(![Role::ControlPlane, Role::Etcd].iter().any(|role| formed.is_node(*role)));
        assert_eq!((formed.etcd_role, formed.control_planes, formed.etcd_machines), (Some(Role::ControlPlane), 3, 0));
        assert_eq!((formed.is_installed, formed.detaches, formed.force_remove_after_seconds), (false, false, None));
        let resumed_at = Some("2026-01-01T00:00:00Z".parse().unwrap());
        assert!(formed.is_believed(None) && !formed.is_believed(resumed_at));
        let compared = plane("", "", "comparedSince: '2026-01-01T00:00:00Z'");
        assert!(FormedCluster::from(&compared).is_believed(resumed_at));
        let older = "conditions: [{type: StoreIsOlder, status: 'True', reason: MachineIsNewer, message: m, lastTransitionTime: '2026-01-01T00:00:00Z'}]";
        assert!(!FormedCluster::from(&plane("", "", older)).is_believed(None));
        let other = plane(
            ", etcd: {topology: Dedicated, replicas: 5}, forceRemoveAfterSeconds: 600",
            ", deletionPolicy: Detach, paused: true",
            "firstInstalledAt: '2026-01-01T00:00:00Z'",
        );
        let formed = FormedCluster::from(&other);
        assert_eq!((formed.etcd_role, formed.etcd_machines), (Some(Role::Etcd), 5));
        assert!(formed.is_installed && formed.detaches && formed.is_paused);
        assert_eq!(formed.force_remove_after_seconds, Some(600));
        let external = ", etcd: {external: {endpoints: ['https://10.0.0.5:2379'], secretRef: {name: etcd}}}";
        assert_eq!(FormedCluster::from(&plane("", external, "")).etcd_role, None);
    }

    #[test]
    fn attempts_at_a_plane_count_until_something_else_is_wanted_of_its_machines() {
        let terms = |binary: &str, more: &str| plane(binary, more, "").terms();
        let plain = terms("", "");
        assert_eq!((plain.most, plain.retry.as_deref()), (3, Some("plane 4")));
        assert_eq!(terms(", executor: {maxAttempts: 7}", "").most, 7);
        for (binary, more) in [
            (", executor: {maxAttempts: 7}", ""),
            (", forceRemoveAfterSeconds: 600", ""),
            ("", ", paused: true, deletionProtection: true, deletionPolicy: Detach"),
            ("", ", members: [{name: paris, syncMode: push, clusterRef: {name: paris}}], unjoinPolicy: Preserve"),
        ] {
            assert_eq!(terms(binary, more).wanted, plain.wanted, "{binary} {more}");
        }
        for (binary, more) in [
            (", endpoint: {host: 10.0.0.9}", ""),
            ("", ", scheduler: {extraArgs: {v: '4'}}"),
            ("", ", search: {}"),
            ("", ", featureGates: {Failover: true}"),
        ] {
            assert_ne!(terms(binary, more).wanted, plain.wanted, "{binary} {more}");
        }
    }
}
