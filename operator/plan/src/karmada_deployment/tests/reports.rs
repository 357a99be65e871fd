//! What is said of a plane.

use crds::names::condition;
use serde_json::{Value, json};

use super::super::{Component, Forbidden, Place, is_cluster_of};
use super::world::{World, plane, settled};
use crate::Next;

fn stuck(more: &str, name: &str, pod: Option<Value>) -> World {
    let mut world = World::new(plane(more));
    world.stuck.insert(name.to_owned());
    world.pods.extend(pod);
    world.settle();
    world
}

fn pod(component: Component, status: Value) -> Value {
    let labels = json!({ "app.kubernetes.io/name": component.name(), "clusterwright.dev/karmada-uid": "uid-1" });
    json!({ "metadata": { "name": format!("k1-{}-0", component.suffix()), "labels": labels }, "status": status })
}

#[test]
fn an_image_that_is_not_there_is_named() {
    let image = "registry.k8s.io/etcd:3.6.6-0";
    let waiting = json!({ "reason": "ErrImagePull", "message": "not found" });
    let status = json!({ "containerStatuses": [{ "image": image, "state": { "waiting": waiting } }] });
    let world = stuck("", "k1-etcd", Some(pod(Component::Etcd, status)));
    let (status, reason, message) = world.condition(condition::ETCD_READY);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ComponentUnhealthy"));
    let expected = "waiting for etcd: StatefulSet karmada-system/k1-etcd: 0 of 1 replicas are made: Pod k1-etcd-0: ErrImagePull of registry.k8s.io/etcd:3.6.6-0: not found";
    assert_eq!(message, expected);
    assert_eq!(world.object.status.as_ref().unwrap().message.as_deref(), Some(expected));
    let (_, reason, message) = world.condition(condition::API_SERVER_READY);
    assert_eq!(reason, "ComponentStarting");
    assert!(message.starts_with("waiting for what starts before kube-apiserver: waiting for etcd"), "{message}");
}

#[test]
fn a_program_that_ends_and_a_pod_without_a_node_say_so() {
    let crash = json!({ "reason": "CrashLoopBackOff", "message": "back-off 10s" });
    let status = json!({ "containerStatuses": [{ "image": "i", "state": { "waiting": crash }, "lastState": { "terminated": { "exitCode": 255 } } }] });
    let world = stuck("", "k1-webhook", Some(pod(Component::Webhook, status)));
    let (_, reason, message) = world.condition(condition::COMPONENTS_READY);
    assert_eq!(reason, "ComponentUnhealthy");
    assert!(message.ends_with("CrashLoopBackOff of i, its program ended with 255: back-off 10s"), "{message}");
    assert_eq!(world.condition(condition::API_SERVER_READY).0, "True");
    let unscheduled = json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available" }] });
    let world = stuck("", "k1-webhook", Some(pod(Component::Webhook, unscheduled)));
    assert!(world.condition("Ready").2.ends_with("Pod k1-webhook-0: Unschedulable: 0/3 nodes are available"));
    let starting = json!({ "containerStatuses": [{ "state": { "waiting": { "reason": "ContainerCreating" } } }] });
    let world = stuck("", "k1-webhook", Some(pod(Component::Webhook, starting)));
    assert_eq!(world.condition(condition::COMPONENTS_READY).1, "ComponentStarting");
}

#[test]
fn a_host_that_does_not_answer_makes_nothing_known_and_nothing_false() {
    let mut world = settled("");
    world.host_lost = true;
    let log = world.log.len();
    world.settle();
    assert_eq!(world.log.len(), log);
    let (status, reason, message) = world.condition("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "ClusterUnreachable"));
    assert!(message.contains("the metadata cluster") && message.contains("connection refused"), "{message}");
    assert_eq!(world.object.status.as_ref().unwrap().version.as_deref(), Some("1.18.2"), "what was last is kept");
}

#[test]
fn a_host_that_forbids_makes_nothing_known_and_the_message_has_what_is_to_be_bound() {
    let check = |more: &str, user: Option<&str>, expected: &str| {
        let mut world = World::new(plane(more));
        world.host_forbids = Some(Forbidden { user: user.map(str::to_owned), message: "services is forbidden".into() });
        world.settle();
        assert!(world.log.is_empty(), "{more}: {:?}", world.log);
        let (status, reason, message) = world.condition("Ready");
        assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "HostForbidden"), "{more}");
        assert!(message.contains(expected) && message.ends_with("(services is forbidden)"), "{more}: {message}");
        for of_part in [condition::ETCD_READY, condition::API_SERVER_READY, condition::COMPONENTS_READY] {
            assert_eq!(world.condition(of_part).1, "HostForbidden", "{of_part}");
        }
    };
    let role = "clusterwright-karmada-host";
    let command =
        format!("kubectl -n planes create rolebinding {role} --clusterrole={role} --serviceaccount=ours:operator");
    check("hostNamespace: planes", Some("system:serviceaccount:ours:operator"), &command);
    check(
        "hostNamespace: planes",
        None,
        &format!("karmada.hostNamespaces of the chart, or bind ClusterRole {role} there"),
    );
}

#[test]
fn a_remote_host_that_forbids_later_makes_nothing_known_and_the_message_says_whose_rights_are_missing() {
    let address = "apiServer: {serviceType: LoadBalancer, loadBalancerApiserverIp: 10.0.0.9}";
    let mut world = settled(&format!("hostClusterRef: {{name: host-a}}, {address}"));
    assert!(world.is_ready());
    let log = world.log.len();
    world.host_forbids = Some(Forbidden { user: None, message: "services is forbidden".into() });
    world.settle();
    assert_eq!(world.log.len(), log);
    let (status, reason, message) = world.condition("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "HostForbidden"));
    assert!(message.contains("of Cluster host-a") && message.contains("user of the Cluster's kubeconfig"), "{message}");
}

#[test]
fn a_plane_whose_webhook_refuses_a_policy_is_not_ready() {
    let mut world = settled("");
    world.policy_refused = Some("failed calling webhook".into());
    world.settle();
    let (_, reason, message) = world.condition(condition::COMPONENTS_READY);
    assert_eq!(reason, "ComponentUnhealthy");
    assert!(message.contains("failed calling webhook"), "{message}");
    assert!(!world.is_ready());
}

#[test]
fn a_drift_is_put_back_without_the_plane_being_called_broken() {
    let mut world = settled("");
    let key = ("Service".to_owned(), "karmada-system".to_owned(), "k1-webhook".to_owned());
    world.applied.insert((Place::Host, key), json!("edited"));
    let planned = world.plan();
    assert_eq!(planned.actions.len(), 1);
    world.object.status = Some(planned.status);
    assert!(world.is_ready());
    assert_eq!(world.condition(condition::UP_TO_DATE).1, "Applying");
}

#[test]
fn members_that_wait_are_counted_and_named_and_the_plane_is_looked_at_no_more_often_for_them() {
    let members = "members: [{name: m1, syncMode: push, clusterRef: {name: a}}, {name: m2, syncMode: push, clusterRef: {name: b}}]";
    let world = settled(members);
    let status = world.object.status.as_ref().unwrap();
    assert_eq!(status.member_counts.as_ref().unwrap().summary, "0/2");
    let (_, reason, message) = world.condition(condition::MEMBERS_READY);
    assert_eq!(reason, "WaitingForMembers");
    assert!(message.starts_with("0 of 2 members are reached: m1: "), "{message}");
    assert_eq!(status.message.as_deref(), Some(message.as_str()));
    assert!(!world.is_ready());
    let without = settled("");
    assert_eq!((without.plan().next, without.is_ready()), (Next::after_seconds(300), true));
    assert_eq!(world.plan().next, Next::after_seconds(60));
}

#[test]
fn a_plane_stands_among_the_clusters_once_it_answers() {
    let world = settled("");
    let cluster = world.cluster.clone().unwrap();
    assert!(is_cluster_of(&world.object, &cluster));
    assert_eq!(cluster.spec.kubeconfig_ref.name, "k1-kubeconfig");
    let mut other = plane("");
    other.metadata.uid = Some("another".into());
    assert!(!is_cluster_of(&other, &cluster), "it is that of a former plane of the name");
    let mut changed = world.clone();
    changed.cluster.as_mut().unwrap().metadata.labels = None;
    changed.settle();
    assert_eq!(changed.cluster, Some(cluster));
}
