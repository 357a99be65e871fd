//! Objects as people and probes make them.

use crds::drift::{Drift, DriftRepair};
use crds::{ClusterDeployment, Host, HostStatus};

use super::profile::Observers;

/// A ClusterDeployment of this version, by the rest of its spec.
pub(super) fn deployment(name: &str, spec: &str) -> ClusterDeployment {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: {name}, namespace: fleet}}, \
         spec: {{kubernetesVersion: 1.35.4, artifacts: {{url: 'http://bundle'}}, {spec}}}}}"
    );
    let mut deployment: ClusterDeployment = serde_yaml::from_str(&yaml).unwrap();
    // What is no promise about drift counts runs.
    deployment.spec.drift.get_or_insert(Drift { check_every_seconds: 0, repair: DriftRepair::Never });
    deployment
}

pub(super) fn host(number: usize, observers: Observers) -> Host {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h{number}, namespace: fleet, uid: host-{number}, \
         generation: 1, resourceVersion: '0', creationTimestamp: '2026-01-01T00:00:00Z'}}, spec: {{address: 10.0.0.{number}, \
         ssh: {{credentialsRef: {{name: key}}, hostKeys: ['ssh-ed25519 AAAA{number}']}}}}}}"
    );
    let mut host: Host = serde_yaml::from_str(&yaml).unwrap();
    host.status = match observers {
        Observers::Instant => Some(HostStatus { cleaned_epoch: Some(0), ..found_ready() }),
        Observers::Planned => None,
    };
    host
}

/// What a probe makes of a spare Host that is well, but for how clean it is.
pub(super) fn found_ready() -> HostStatus {
    let text = "{conditions: [{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}";
    serde_yaml::from_str(text).unwrap()
}
