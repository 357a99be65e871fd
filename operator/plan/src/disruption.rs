//! Disruption: how many machines of a set may be out of service at once for our own doing, by its `maxUnavailable`.

use crds::ObjectExt;
use crds::placement::default_max_unavailable;
use crds::step::Role;
use crds::{ClusterDeployment, MachineSet};

use crate::int_or_percent::{Rounded, int_or_percent};

/// What `maxUnavailable` of a set comes to: a percentage of its `replicas`, rounded down, at least 1. A set that a
/// platform made has the default; of control planes and etcd machines it is always one.
pub fn most(set: &MachineSet, deployment: Option<&ClusterDeployment>) -> usize {
    if set.spec.role != Role::Worker {
        return 1;
    }
    let described = deployment.and_then(|deployment| deployment.workers_of(set.name()));
    let wanted = described.map_or_else(default_max_unavailable, |workers| workers.max_unavailable.clone());
    let replicas = usize::try_from(set.spec.replicas).unwrap_or_default();
    int_or_percent(&wanted, replicas, Rounded::Down).max(1)
}

#[cfg(test)]
mod tests {
    use super::most;
    use crds::{ClusterDeployment, MachineSet};

    #[test]
    fn it_is_a_count_or_a_percentage_of_the_replicas_and_at_least_one() {
        let check = |role: &str, said: &str, replicas: i32, expected: usize| {
            let deployment: ClusterDeployment = serde_yaml::from_str(&format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}, workers: [{{name: other, maxUnavailable: 7}}, {{name: w {said}}}]}}}}"
            ))
            .unwrap();
            let set: MachineSet = serde_yaml::from_str(&format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, metadata: {{name: a-w}}, spec: {{clusterName: a, role: {role}, replicas: {replicas}, template: {{}}}}}}"
            ))
            .unwrap();
            assert_eq!(most(&set, Some(&deployment)), expected, "{said} of {replicas}");
        };
        check("worker", "", 9, 1);
        check("worker", "", 29, 2);
        check("worker", ", maxUnavailable: 25%", 7, 1);
        check("worker", ", maxUnavailable: 25%", 8, 2);
        check("worker", ", maxUnavailable: 3", 2, 3);
        check("worker", ", maxUnavailable: 50%", 0, 1);
        check("control-plane", ", maxUnavailable: 3", 5, 1);
        check("etcd", ", maxUnavailable: 3", 5, 1);
    }
}
