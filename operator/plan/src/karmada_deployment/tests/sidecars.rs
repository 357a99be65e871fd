//! What the API server's Pods are given besides, and what of it is refused.

use crds::karmada_deployment::{API_SERVER_CONTAINER, OWN_PATHS, OWN_VOLUMES};
use crds::names::condition;
use serde_json::{Value, json};

use super::super::{Component, Place};
use super::world::{World, plane, settled};

const VOLUMES: &str = "extraVolumes: [{name: socket, emptyDir: {}}, {name: kms, secret: {secretName: kms}}]";

/// The template of the API server's Pods.
fn pods(world: &World) -> Value {
    world.find(Place::Host, "Deployment", "k1-apiserver").unwrap()["spec"]["template"].clone()
}

/// Sets this field of the API server, beside two volumes: nothing is done, and the message has all of these parts.
fn refused(field: &str, parts: &[&str]) {
    let mut world = World::new(plane(&format!("apiServer: {{{VOLUMES}, {field}}}")));
    world.settle();
    let (status, reason, message) = world.condition("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "InvalidPodSpec"), "{field}: {message}");
    assert_eq!(world.condition(condition::UP_TO_DATE).1, "InvalidPodSpec");
    assert!(parts.iter().all(|part| message.contains(part)), "{field}: {parts:?} in {message}");
    assert!(world.log.is_empty(), "{field}: {:?}", world.log);
}

fn volume_refused(volume: &str, parts: &[&str]) {
    let mut world = World::new(plane(&format!("apiServer: {{extraVolumes: [{volume}]}}")));
    world.settle();
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "InvalidPodSpec", "{volume}: {message}");
    assert!(parts.iter().all(|part| message.contains(part)), "{volume}: {parts:?} in {message}");
    assert!(message.starts_with("spec.apiServer.extraVolumes: "), "{message}");
}

#[test]
fn the_names_that_the_schema_refuses_are_those_of_the_plane() {
    let template = pods(&settled(""));
    let names = |list: &Value, key: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&template["spec"]["volumes"], "name"), OWN_VOLUMES);
    assert_eq!(names(&template["spec"]["containers"], "name"), [API_SERVER_CONTAINER]);
    assert_eq!(names(&template["spec"]["containers"][0]["volumeMounts"], "mountPath"), OWN_PATHS);
}

#[test]
fn an_edit_rolls_the_api_servers_pods_and_no_others() {
    let mut world = settled("");
    let before = pods(&world);
    for edit in [
        json!({ "sidecarContainers": [{ "name": "kms", "image": "reg.local/kms:1" }] }),
        json!({ "sidecarContainers": [{ "name": "kms", "image": "reg.local/kms:2" }] }),
        json!({}),
    ] {
        world.log.clear();
        world.object.spec.api_server = serde_json::from_value(edit).unwrap();
        world.settle();
        assert_eq!(world.log, ["apply Deployment k1-apiserver"]);
        assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    }
    assert_eq!(pods(&world), before);
}

#[test]
fn a_pod_whose_other_container_does_not_run_is_not_taken_for_ready_and_says_which() {
    let mut world = World::new(plane("apiServer: {sidecarContainers: [{name: kms, image: 'reg.local/kms:1'}]}"));
    world.stuck.insert("k1-apiserver".to_owned());
    let running =
        json!({ "name": "kube-apiserver", "image": "kube-apiserver", "ready": true, "state": { "running": {} } });
    let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    let ended = json!({ "terminated": { "exitCode": 2 } });
    let failing = json!({ "name": "kms", "image": "reg.local/kms:1", "state": waiting, "lastState": ended });
    world.pods.push(json!({
        "metadata": {
            "name": "k1-apiserver-0",
            "labels": { "app.kubernetes.io/name": "kube-apiserver", "clusterwright.dev/karmada-uid": "uid-1" },
        },
        "status": { "containerStatuses": [running, failing] },
    }));
    world.settle();
    let (status, _, message) = world.condition(condition::API_SERVER_READY);
    assert_eq!(status, "False");
    assert!(message.contains("CrashLoopBackOff of reg.local/kms:1, its program ended with 2"), "{message}");
    assert!(world.find(Place::Host, "Deployment", "k1-kube-controller-manager").is_none());
}

#[test]
fn what_is_no_part_of_a_pod_is_named() {
    volume_refused("{name: kms, emptyDyr: {}}", &["kms: emptyDyr is no field of it"]);
    volume_refused("{name: kms, secret: {secretName: [a]}}", &["kms: invalid type", "expected a string"]);
    refused(
        "extraVolumeMounts: [{name: kms, mountPath: /srv/kms, readonly: true}]",
        &["extraVolumeMounts: /srv/kms", "readonly is no field"],
    );
    refused(
        "sidecarContainers: [{name: kms, image: a, ports: [{containerPort: 80, port: 80}]}]",
        &["spec.apiServer.sidecarContainers: kms: ports[0].port is no field"],
    );
    // What is null is not given, wherever it is.
    let mut world = World::new(plane("apiServer: {extraVolumes: [{name: a, emptyDir: {medium: null}, secret: null}]}"));
    world.settle();
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
}

#[test]
fn volumes_are_of_kinds_that_a_planes_pods_may_have() {
    volume_refused("{name: kms, hostPath: {path: /etc}}", &["kms: it is from hostPath", "configMap, csi"]);
    volume_refused("{name: kms}", &["it is from nothing", "emptyDir"]);
    volume_refused("{name: kms, configMap: {name: a}, emptyDir: {}}", &["from configMap and emptyDir"]);
    volume_refused(
        "{name: kms, projected: {sources: [{configMap: {name: a}}, {serviceAccountToken: {path: token}}]}}",
        &["serviceAccountToken is a token of the host cluster", "leave it out"],
    );
}

#[test]
fn only_what_is_given_besides_is_mounted_besides() {
    refused(
        "extraVolumeMounts: [{name: files, mountPath: /srv}]",
        &["extraVolumeMounts: /srv: it mounts volume files", "allowed is socket or kms"],
    );
    refused(
        "sidecarContainers: [{name: a, image: a, volumeMounts: [{name: socket, mountPath: /srv}, {name: tmp, mountPath: /tmp}]}]",
        &["sidecarContainers: a: it mounts volume tmp", "allowed is socket or kms"],
    );
}

#[test]
fn a_container_that_is_not_as_the_restricted_standard_has_it_is_refused_with_its_field() {
    for (given, part) in [
        ("securityContext: {privileged: true}", "securityContext.privileged is true"),
        ("securityContext: {allowPrivilegeEscalation: true}", "allowed is false, or leave it out"),
        ("securityContext: {runAsNonRoot: false}", "securityContext.runAsNonRoot is false"),
        ("securityContext: {runAsUser: 0}", "securityContext.runAsUser is 0"),
        ("securityContext: {procMount: Unmasked}", "procMount is Unmasked"),
        ("securityContext: {seccompProfile: {type: Unconfined}}", "allowed is RuntimeDefault or Localhost"),
        ("securityContext: {appArmorProfile: {type: Unconfined}}", "appArmorProfile.type is Unconfined"),
        ("securityContext: {seLinuxOptions: {type: spc_t}}", "seLinuxOptions.type is spc_t"),
        ("securityContext: {seLinuxOptions: {user: root}}", "seLinuxOptions.user is root"),
        ("securityContext: {windowsOptions: {hostProcess: true}}", "windowsOptions.hostProcess is true"),
        ("securityContext: {capabilities: {add: [NET_BIND_SERVICE, SYS_ADMIN]}}", "capabilities.add is SYS_ADMIN"),
        ("securityContext: {capabilities: {drop: [KILL]}}", "capabilities.drop is [KILL]"),
        ("ports: [{containerPort: 80, hostPort: 80}]", "ports[].hostPort is 80"),
        ("livenessProbe: {httpGet: {port: 80, host: 10.0.0.1}}", "the host of livenessProbe is 10.0.0.1"),
        ("lifecycle: {preStop: {tcpSocket: {port: 80, host: 10.0.0.1}}}", "the host of lifecycle.preStop is 10.0.0.1"),
    ] {
        let container = format!("sidecarContainers: [{{name: kms, image: a, {given}}}]");
        refused(&container, &["spec.apiServer.sidecarContainers: kms: ", part, "restricted"]);
    }
}

#[test]
fn what_a_container_says_within_the_standard_holds_and_the_rest_is_filled_in() {
    let given = "securityContext: {runAsUser: 1000, readOnlyRootFilesystem: false, seccompProfile: {type: Localhost, localhostProfile: a}, capabilities: {add: [NET_BIND_SERVICE]}}";
    let world = settled(&format!(
        "apiServer: {{sidecarContainers: [{{name: kms, image: a, {given}}}, {{name: b, image: b, imagePullPolicy: Never}}]}}, images: {{pullPolicy: Always}}"
    ));
    assert!(world.is_ready(), "{:?}", world.condition("Ready"));
    let containers = pods(&world)["spec"]["containers"].clone();
    assert_eq!(
        containers[1],
        json!({
            "name": "kms", "image": "a", "imagePullPolicy": "Always",
            "securityContext": {
                "runAsUser": 1000, "readOnlyRootFilesystem": false, "allowPrivilegeEscalation": false,
                "seccompProfile": { "type": "Localhost", "localhostProfile": "a" },
                "capabilities": { "add": ["NET_BIND_SERVICE"], "drop": ["ALL"] },
            },
        })
    );
    assert_eq!(containers[2]["imagePullPolicy"], "Never");
    assert_eq!(containers[2]["securityContext"]["readOnlyRootFilesystem"], true);
    // No other component has any of it.
    for component in Component::ALL.into_iter().filter(|component| *component != Component::ApiServer) {
        let name = format!("k1-{}", component.suffix());
        let live = ["Deployment", "StatefulSet"].iter().find_map(|kind| world.find(Place::Host, kind, &name));
        let Some(live) = live else { continue };
        assert_eq!(live["spec"]["template"]["spec"]["containers"].as_array().map(Vec::len), Some(1), "{name}");
    }
}
