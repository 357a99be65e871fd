//! What control planes and members of etcd are given.

use std::collections::BTreeMap;

use crds::Role;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::given;
use crate::configuration::{files, variables};
use crate::testing::World;

/// The flags that a component is given, as a command line has them.
fn flags(configuration: Value, component: &str) -> Vec<String> {
    let vars = given(Role::ControlPlane, configuration, json!({}));
    let flags = vars["control_plane_settings"][component].as_array().unwrap();
    let text = |flag: &Value| format!("{}={}", flag["name"].as_str().unwrap(), flag["value"].as_str().unwrap());
    flags.iter().map(text).collect()
}

#[test]
fn typed_fields_become_flags_in_the_order_of_their_names_and_further_flags_stand_among_them() {
    let api_server = json!({
        "requestTimeoutSeconds": 90, "eventTTLSeconds": 7200, "maxRequestsInflight": 800,
        "maxMutatingRequestsInflight": 400, "goawayChance": "0.001", "shutdownDelaySeconds": 10,
        "featureGates": {"B1": false, "A1": true}, "extraArgs": {"max-connection-bytes-per-sec": "0"},
        "admissionPlugins": {"enable": ["NodeRestriction", "AlwaysPullImages"], "disable": ["DefaultStorageClass"]},
    });
    let wanted = [
        "disable-admission-plugins=DefaultStorageClass",
        "enable-admission-plugins=NodeRestriction,AlwaysPullImages",
        "event-ttl=7200s",
        "feature-gates=A1=true,B1=false",
        "goaway-chance=0.001",
        "max-connection-bytes-per-sec=0",
        "max-mutating-requests-inflight=400",
        "max-requests-inflight=800",
        "request-timeout=90s",
        "shutdown-delay-duration=10s",
    ];
    assert_eq!(flags(json!({ "apiServer": api_server }), "apiserver"), wanted);
    let manager =
        json!({"nodeMonitorGracePeriodSeconds": 60, "terminatedPodGCThreshold": 100, "extraArgs": {"v": "4"}});
    let wanted = ["node-monitor-grace-period=60s", "terminated-pod-gc-threshold=100", "v=4"];
    assert_eq!(flags(json!({ "controllerManager": manager }), "controller_manager"), wanted);
    assert_eq!(flags(json!({ "scheduler": {"extraArgs": {"v": "4"}} }), "scheduler"), ["v=4"]);
}

#[test]
fn plugins_that_are_turned_off_alone_leave_kubeadms_own_flag_alone() {
    let plugins = json!({"apiServer": {"admissionPlugins": {"disable": ["DefaultStorageClass"]}}});
    assert_eq!(flags(plugins, "apiserver"), ["disable-admission-plugins=DefaultStorageClass"]);
}

#[test]
fn an_audit_log_has_limits_of_its_own() {
    let audit = json!({"apiServer": {"audit": {"policyRef": {"name": "policy"}, "maxBackups": 3}}});
    let wanted = [
        "audit-log-maxage=30",
        "audit-log-maxbackup=3",
        "audit-log-maxsize=100",
        "audit-log-path=/var/log/kubernetes/audit/audit.log",
        "audit-policy-file=/etc/kubernetes/clusterwright/kube-apiserver/audit-policy.yaml",
    ];
    assert_eq!(flags(audit, "apiserver"), wanted);
}

#[test]
fn what_is_referred_to_is_a_file_of_its_component() {
    let configuration = json!({
        "apiServer": {"authenticationRef": {"name": "a"}}, "scheduler": {"configurationRef": {"name": "a"}},
    });
    let of_api_server = flags(configuration.clone(), "apiserver");
    assert_eq!(
        of_api_server,
        ["authentication-config=/etc/kubernetes/clusterwright/kube-apiserver/authentication.yaml"]
    );
    let of_scheduler = flags(configuration, "scheduler");
    assert_eq!(of_scheduler, ["config=/etc/kubernetes/clusterwright/kube-scheduler/scheduler.yaml"]);
    let contents = [("authentication.yaml", "a: {{ b }}\n"), ("scheduler.yaml", "s")];
    let contents = contents.map(|(key, content)| (key.to_owned(), content.to_owned()));
    let vars = files::variables(&contents.into());
    let file = |name: &str, content: &str| json!([{"name": name, "content": content, "mode": "0600"}]);
    assert_eq!(vars["kube_apiserver_files"], file("authentication.yaml", "a: {{ b }}\n"));
    assert_eq!(vars["kube_scheduler_files"], file("scheduler.yaml", "s"));
    assert_eq!(files::variables(&BTreeMap::new())["kube_apiserver_files"], json!([]));
}

#[test]
fn a_config_map_that_is_not_there_or_has_not_the_key_is_named_with_the_field() {
    let [policy, _, _] = &files::FILES;
    let said = |map: Option<Value>| {
        let map: Option<ConfigMap> = map.map(|map| serde_json::from_value(map).unwrap());
        policy.content("policy", map).map_err(|problem| problem.message)
    };
    assert_eq!(said(Some(json!({"data": {"audit-policy.yaml": "p"}}))), Ok("p".into()));
    let begins = "ConfigMap policy of configuration.apiServer.audit.policyRef ";
    for (map, rest) in [
        (None, "is not there: make it, with the key audit-policy.yaml"),
        (Some(json!({"data": {"other": ""}})), "has no key audit-policy.yaml in its data: add it"),
    ] {
        assert_eq!(said(map), Err(format!("{begins}{rest}")));
    }
}

#[test]
fn members_of_etcd_are_given_its_environment_wherever_they_are() {
    let etcd = json!({"etcd": {
        "quotaBackendBytes": 4_294_967_296_i64, "heartbeatMillis": 200, "electionMillis": 2000,
        "autoCompactionHours": 2, "snapshotCount": 5000,
    }});
    let environment = json!({
        "ETCD_QUOTA_BACKEND_BYTES": "4294967296", "ETCD_HEARTBEAT_INTERVAL": "200", "ETCD_ELECTION_TIMEOUT": "2000",
        "ETCD_AUTO_COMPACTION_MODE": "periodic", "ETCD_AUTO_COMPACTION_RETENTION": "2h", "ETCD_SNAPSHOT_COUNT": "5000",
    });
    for (spec, member) in [
        ("controlPlane: {replicas: 1}", Role::ControlPlane),
        ("controlPlane: {replicas: 1}, etcd: {topology: Dedicated, replicas: 1}", Role::Etcd),
    ] {
        let mut world = World::new(spec, 2);
        world.settle();
        world.deployment.spec.configuration = serde_json::from_value(etcd.clone()).unwrap();
        for machine in &world.machines {
            let found = variables(&world.deployment, machine).remove("etcd_extra_environment");
            assert_eq!(found, (machine.spec.role == member).then(|| environment.clone()), "{spec}");
        }
    }
}
