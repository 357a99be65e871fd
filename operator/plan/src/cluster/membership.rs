//! A Cluster that was imported and is a member of Karmada control planes stays until it has left them: without it
//! nobody reaches the member. One that was built here goes with its ClusterDeployment, which waits itself.

use crds::conditions::{Statement, state};
use crds::karmada_deployment::KarmadaMemberStatus;
use crds::names::{condition, finalizer};
use crds::{ClusterStatus, KarmadaDeployment, ObjectExt, Reason};

use super::action::Action;
use super::observed::Observed;
use crate::karmada_membership;
use crate::message::cut;
use crate::{Next, Plan};

/// How often it is looked whether it has left, in seconds.
const LOOK_AGAIN_SECONDS: u64 = 10;

fn membership<'a>(observed: &'a Observed<'_>) -> Option<(&'a KarmadaDeployment, &'a KarmadaMemberStatus)> {
    let cluster = observed.cluster;
    let planes = observed.planes.iter().map(|plane| &**plane);
    karmada_membership::membership(planes, cluster.namespace(), cluster.name())
        .filter(|_| observed.deployment.is_none())
}

/// What is done about its finalizer.
pub(super) fn finalizer(observed: &Observed<'_>) -> Option<Action> {
    match (membership(observed).is_some(), observed.cluster.has_finalizer(finalizer::CLUSTER)) {
        (true, false) => Some(Action::AddFinalizer),
        (false, true) => Some(Action::RemoveFinalizer),
        (true, true) | (false, false) => None,
    }
}

/// One that is being deleted: nothing else is done about it any more.
pub(super) fn leave(observed: &Observed<'_>) -> Plan<Action, ClusterStatus> {
    let waits_for = membership(observed).map(karmada_membership::waits_for);
    let message = waits_for.clone().unwrap_or_else(|| "it is a member of no Karmada control plane".to_owned());
    let mut status = observed.cluster.status.clone().unwrap_or_default();
    let generation = observed.cluster.metadata.generation;
    let statements = [
        Statement::new(condition::READY, false, Reason::Deleting, cut(message.clone())),
        Statement::new(condition::DELETING, true, Reason::WaitingForUnjoin, cut(message.clone())),
    ];
    status.conditions = state(&status.conditions, &statements, generation, &observed.now);
    (status.message, status.observed_generation) = (Some(cut(message)), generation);
    let actions = if waits_for.is_none() { vec![Action::RemoveFinalizer] } else { Vec::new() };
    Plan { actions, status, next: Next::after_seconds(LOOK_AGAIN_SECONDS), waits_for }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crds::names::{condition, finalizer};
    use crds::{Cluster, KarmadaDeployment};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::{Value, json};

    use super::super::{Action, Contact, Observed, plan};
    use crate::Plan;

    const NOON: &str = "2026-11-27T12:00:00Z";

    fn decide(metadata: Value, members: Value) -> Plan<Action, crds::ClusterStatus> {
        let mut cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Cluster",
            "metadata": { "name": "prod-a", "namespace": "fleet" }, "spec": { "kubeconfigRef": { "name": "x" } },
        }))
        .unwrap();
        cluster.metadata.finalizers = serde_json::from_value(metadata["finalizers"].clone()).unwrap();
        cluster.metadata.deletion_timestamp = serde_json::from_value(metadata["deletionTimestamp"].clone()).unwrap();
        let plane: KarmadaDeployment = serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment",
            "metadata": { "name": "k1", "namespace": "fleet" },
            "spec": { "version": "1.18.2", "crds": { "bundle": { "url": "https://bundle.example" } } },
            "status": { "members": members },
        }))
        .unwrap();
        let contact = Contact::Refused { reason: crds::Reason::SecretNotFound, message: "it is not there".into() };
        plan(&Observed {
            cluster: &cluster,
            contact,
            machines: &[],
            deployment: None,
            hosts: &[],
            planes: &[Arc::new(plane)],
            resumed_at: None,
            now: Time(NOON.parse().unwrap()),
            chance: 0.5,
        })
    }

    fn member(uid: Value) -> Value {
        json!([{
            "name": "m1", "syncMode": "push", "clusterRef": { "name": "prod-a" }, "clusterUID": uid, "reason": "AllReady",
            "message": "Karmada reaches it", "since": NOON,
        }])
    }

    #[test]
    fn an_imported_cluster_is_held_while_it_is_a_member() {
        let held = || json!({ "finalizers": [finalizer::CLUSTER] });
        assert_eq!(decide(json!({}), json!([])).actions, []);
        assert_eq!(decide(json!({}), member(Value::Null)).actions, [], "it has not begun to join");
        assert_eq!(decide(json!({}), member(json!("uid"))).actions, [Action::AddFinalizer]);
        assert_eq!(decide(held(), member(json!("uid"))).actions, []);
        assert_eq!(decide(held(), json!([])).actions, [Action::RemoveFinalizer]);
    }

    #[test]
    fn an_imported_cluster_that_is_deleted_leaves_first_and_says_so() {
        let going = || json!({ "finalizers": [finalizer::CLUSTER], "deletionTimestamp": NOON });
        let waiting = decide(going(), member(json!("uid")));
        assert!(waiting.actions.is_empty());
        let deleting = crds::conditions::find(&waiting.status.conditions, condition::DELETING).unwrap();
        assert_eq!((deleting.status.as_str(), deleting.reason.as_str()), ("True", "WaitingForUnjoin"));
        let command = "kubectl -n fleet annotate --overwrite karmadadeployments.clusterwright.dev k1 clusterwright.dev/force-remove=member.m1";
        let parts = ["member m1 of KarmadaDeployment k1 to leave: Karmada reaches it", command];
        assert!(parts.iter().all(|part| deleting.message.contains(part)), "{}", deleting.message);
        assert_eq!(decide(going(), json!([])).actions, [Action::RemoveFinalizer]);
    }
}
