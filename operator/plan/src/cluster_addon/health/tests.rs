//! What the kinds of Kubernetes say of themselves.

use serde_json::Value;

use super::{Health, health};

/// `ok`, `...` and `!` before the reason.
fn said(kind: &str, rest: &str) -> String {
    let text = format!("{{{kind}, {rest}}}");
    let object: Value = serde_yaml::from_str(&text).unwrap();
    match health(&object) {
        Health::Healthy => "ok".into(),
        Health::Progressing(why) => format!("... {why}"),
        Health::Failed(why) => format!("! {why}"),
    }
}

fn check(kind: &str, cases: &[(&str, &str)]) {
    for (rest, expected) in cases {
        assert_eq!(said(kind, rest), *expected, "{kind} {rest}");
    }
}

#[test]
fn a_deployment_is_healthy_when_all_its_replicas_are_new_and_available() {
    check(
        "apiVersion: apps/v1, kind: Deployment",
        &[
            (
                "spec: {replicas: 2}, status: {replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2}",
                "ok",
            ),
            ("spec: {replicas: 0}, status: {}", "ok"),
            ("spec: {}, status: {}", "... 0 of 1 replicas are made"),
            ("spec: {replicas: 2}, status: {replicas: 2, updatedReplicas: 1}", "... 1 of 2 replicas are updated"),
            (
                "spec: {replicas: 2}, status: {replicas: 3, updatedReplicas: 2, availableReplicas: 3, readyReplicas: 3}",
                "... 1 old replicas are still to end",
            ),
            (
                "spec: {replicas: 2}, status: {replicas: 2, updatedReplicas: 2, availableReplicas: 1, readyReplicas: 2}",
                "... 1 of 2 replicas are available",
            ),
            (
                "metadata: {generation: 3}, spec: {replicas: 0}, status: {observedGeneration: 2}",
                "... its controller has seen generation 2 of 3",
            ),
            ("metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {replicas: 0}", "... it is being deleted"),
            (
                "spec: {replicas: 1}, status: {conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: too long}]}",
                "! ProgressDeadlineExceeded: too long",
            ),
        ],
    );
}

#[test]
fn sets_of_pods_are_healthy_when_their_pods_are() {
    check(
        "apiVersion: apps/v1, kind: StatefulSet",
        &[
            (
                "spec: {replicas: 2}, status: {replicas: 2, readyReplicas: 2, currentRevision: a, updateRevision: a}",
                "ok",
            ),
            ("spec: {replicas: 2}, status: {replicas: 2, readyReplicas: 1}", "... 1 of 2 replicas are ready"),
            ("spec: {replicas: 2}, status: {replicas: 3, readyReplicas: 3}", "... 1 replicas are still to end"),
            (
                "spec: {replicas: 2}, status: {replicas: 2, readyReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}",
                "... 1 of 2 replicas are updated",
            ),
            (
                "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}, status: {replicas: 3, readyReplicas: 3, updatedReplicas: 1, currentRevision: a, updateRevision: b}",
                "ok",
            ),
            (
                "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}, status: {replicas: 3, readyReplicas: 3}",
                "... 0 of 1 replicas are updated",
            ),
            ("spec: {replicas: 3, updateStrategy: {type: OnDelete}}", "ok"),
        ],
    );
    check(
        "apiVersion: apps/v1, kind: DaemonSet",
        &[
            ("status: {}", "... its controller has not seen it yet"),
            ("status: {observedGeneration: 1, desiredNumberScheduled: 0}", "ok"),
            (
                "status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1, numberReady: 2}",
                "... 1 of 2 Pods are available",
            ),
            (
                "status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2, numberReady: 2}",
                "ok",
            ),
        ],
    );
    check(
        "apiVersion: apps/v1, kind: ReplicaSet",
        &[
            ("spec: {replicas: 1}, status: {fullyLabeledReplicas: 1, availableReplicas: 1, readyReplicas: 1}", "ok"),
            (
                "spec: {replicas: 1}, status: {conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: quota}]}",
                "... FailedCreate: quota",
            ),
            ("spec: {replicas: 1}, status: {fullyLabeledReplicas: 1}", "... 0 of 1 replicas are available"),
        ],
    );
}

#[test]
fn jobs_and_pods_are_healthy_when_they_run_or_have_ended_well() {
    check(
        "apiVersion: batch/v1, kind: Job",
        &[
            ("status: {active: 1}", "... 1 Pods are active, it is not complete"),
            ("status: {conditions: [{type: Complete, status: 'True'}]}", "ok"),
            (
                "status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: no}]}",
                "! BackoffLimitExceeded: no",
            ),
            ("spec: {suspend: true}, status: {}", "ok"),
        ],
    );
    check(
        "apiVersion: v1, kind: Pod",
        &[
            ("status: {phase: Succeeded}", "ok"),
            ("status: {phase: Failed}", "! its phase is Failed"),
            ("status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", "ok"),
            (
                "status: {phase: Running, conditions: [{type: Ready, status: 'False', reason: ContainersNotReady}]}",
                "... Ready is False: ContainersNotReady",
            ),
            (
                "status: {phase: Running, containerStatuses: [{state: {waiting: {reason: CrashLoopBackOff}}}]}",
                "! a container of it crashes again and again (CrashLoopBackOff)",
            ),
            (
                "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: no node}]}",
                "... Unschedulable: no node",
            ),
            ("status: {}", "... its phase is Pending"),
        ],
    );
}

#[test]
fn other_kinds_say_it_by_their_status_or_by_their_conditions() {
    let condition = |type_: &str, status: &str| {
        format!("status: {{conditions: [{{type: {type_}, status: '{status}', message: so}}]}}")
    };
    for (kind, cases) in [
        (
            "apiVersion: v1, kind: PersistentVolumeClaim",
            vec![
                ("status: {phase: Bound}".to_owned(), "ok"),
                ("status: {phase: Lost}".into(), "... its phase is Lost, not Bound"),
            ],
        ),
        (
            "apiVersion: v1, kind: Service",
            vec![
                ("spec: {type: ClusterIP}".into(), "ok"),
                ("spec: {type: LoadBalancer}".into(), "... its load balancer has no address yet"),
                ("spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}".into(), "ok"),
            ],
        ),
        (
            "apiVersion: policy/v1, kind: PodDisruptionBudget",
            vec![
                ("status: {currentHealthy: 1, desiredHealthy: 2}".into(), "... 1 of 2 Pods are healthy"),
                ("status: {currentHealthy: 2, desiredHealthy: 2}".into(), "ok"),
            ],
        ),
        (
            "apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition",
            vec![
                ("status: {}".into(), "... it has no condition Established yet"),
                (condition("Established", "True"), "ok"),
                (condition("NamesAccepted", "False"), "! so"),
            ],
        ),
        (
            "apiVersion: apiregistration.k8s.io/v1, kind: APIService",
            vec![(condition("Available", "False"), "... so"), (condition("Available", "True"), "ok")],
        ),
        (
            "apiVersion: example.com/v1, kind: Widget",
            vec![
                ("spec: {}".into(), "ok"),
                (condition("Ready", "True"), "ok"),
                (condition("Ready", "False"), "... so"),
                (condition("Ready", "Unknown"), "... so"),
                (condition("Reconciling", "True"), "... so"),
                (condition("Stalled", "True"), "! so"),
                (
                    "metadata: {generation: 2}, status: {observedGeneration: 1}".into(),
                    "... its controller has seen generation 1 of 2",
                ),
            ],
        ),
    ] {
        for (rest, expected) in cases {
            assert_eq!(said(kind, &rest), expected, "{kind} {rest}");
        }
    }
}
