//! What a cluster shows while it waits for an object that cannot be decoded, and afterwards.

use crds::Reason;
use crds::conditions::{self, Statement};
use crds::names::condition;
use crds::{ClusterDeployment, ClusterDeploymentStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::message::cut;

/// The status of a cluster that is on hold: as it was, with the reason in its message and its condition `OnHold`.
pub fn status_on_hold(deployment: &ClusterDeployment, message: &str, now: Timestamp) -> ClusterDeploymentStatus {
    let old = deployment.status.clone().unwrap_or_default();
    let message = cut(message.to_owned());
    let held = Statement::new(condition::ON_HOLD, true, Reason::ObjectUndecodable, message.clone());
    let generation = deployment.metadata.generation;
    let mut held = conditions::state(&old.conditions, &[held], generation, &Time(now));
    held.retain(|condition| condition.type_ == condition::ON_HOLD);
    let mut conditions = ended(&old.conditions);
    conditions.append(&mut held);
    ClusterDeploymentStatus { message: Some(message), conditions, ..old }
}

/// The conditions of a cluster that is on hold no more.
pub fn ended(conditions: &[Condition]) -> Vec<Condition> {
    let others = conditions.iter().filter(|condition| condition.type_ != condition::ON_HOLD);
    others.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::{ended, status_on_hold};
    use crds::ClusterDeployment;
    use jiff::{SignedDuration, Timestamp};

    #[test]
    fn a_cluster_on_hold_says_why_and_keeps_all_else_of_its_status() {
        let mut deployment: ClusterDeployment = serde_yaml::from_str("{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a, generation: 3}, spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}}, status: {lastToken: 7, message: running, conditions: [{type: Ready, status: 'True', reason: Running, message: running, lastTransitionTime: '2026-01-01T00:00:00Z'}]}}").unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let held = status_on_hold(&deployment, "on hold: Host fleet/h1", now);
        assert_eq!(held.message.as_deref(), Some("on hold: Host fleet/h1"));
        assert_eq!(held.last_token, Some(7));
        let types: Vec<&str> = held.conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["Ready", "OnHold"]);
        let before = deployment.status.replace(held.clone()).unwrap();
        let later = status_on_hold(&deployment, "on hold: Host fleet/h1", now + SignedDuration::from_secs(60));
        assert_eq!(later, held, "at rest nothing is written");
        assert_eq!(ended(&held.conditions), before.conditions);
    }
}
