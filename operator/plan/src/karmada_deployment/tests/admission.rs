//! What the schema admits and what it refuses: the schema as JSON Schema, and its rules as CEL. The API server has
//! functions that the interpreter here lacks; rules with them are left to it.

use std::sync::LazyLock;

use cel::{Context, Program, Value as Cel};
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::cluster_addon::checks::cel_of;

/// That of the kind, and what checks an object by it. Made once: each takes longer than a test.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut definitions = crds::manifests::all().into_iter();
    let definition = definitions.find(|definition| definition.spec.names.kind == "KarmadaDeployment").unwrap();
    let definition = serde_json::to_value(definition).unwrap();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
});
static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| jsonschema::validator_for(&SCHEMA).unwrap());

/// Puts the defaults in, as the API server does.
fn complete(schema: &Value, value: &mut Value) {
    let (Some(fields), Some(object)) = (schema["properties"].as_object(), value.as_object_mut()) else {
        if let Some(items) = value.as_array_mut() {
            items.iter_mut().for_each(|item| complete(&schema["items"], item));
        }
        return;
    };
    for (name, field) in fields {
        if let Some(default) = field.get("default").filter(|_| !object.contains_key(name)) {
            object.insert(name.clone(), default.clone());
        }
        if let Some(value) = object.get_mut(name) {
            complete(field, value);
        }
    }
}

/// The rules that the value breaks, by their messages; `old`: what it was before.
fn broken(schema: &Value, value: &Value, old: Option<&Value>, found: &mut Vec<String>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let text = rule["rule"].as_str().unwrap();
        let is_transition = text.contains("oldSelf");
        let is_lacking = ["lastIndexOf", "isIP("].iter().any(|function| text.contains(function));
        if is_lacking || (is_transition && old.is_none()) {
            continue;
        }
        let mut context = Context::default();
        context.add_variable_from_value("self", cel_of(value));
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", cel_of(old));
        }
        let holds = Program::compile(text).unwrap_or_else(|why| panic!("{text}: {why}")).execute(&context);
        match holds.unwrap_or_else(|why| panic!("{text}: {why} for {value}")) {
            Cel::Bool(true) => {}
            _ => found.push(rule["message"].as_str().unwrap_or(text).to_owned()),
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            broken(field, value, old.and_then(|old| old.get(name)), found);
        }
    }
    for item in value.as_array().into_iter().flatten() {
        broken(&schema["items"], item, None, found);
    }
}

fn object(spec: &str) -> Value {
    let least = "version: 1.18.2, crds: {bundle: {url: 'https://bundle.example.com'}}";
    let least: Map<String, Value> = serde_yaml::from_str(&format!("{{{least}}}")).unwrap();
    let more: Map<String, Value> = serde_yaml::from_str(&format!("{{{spec}}}")).unwrap();
    let spec: Map<String, Value> = least.into_iter().chain(more).collect();
    let mut object = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment", "metadata": { "name": "k1" },
        "spec": spec,
    });
    complete(&SCHEMA, &mut object);
    object
}

/// All that is wrong with an object.
fn wrong(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found: Vec<String> =
        VALIDATOR.iter_errors(object).map(|error| format!("{}: {error}", error.instance_path())).collect();
    broken(&SCHEMA, object, old, &mut found);
    found
}

fn refused(spec: &str, part: &str) {
    let found = wrong(&object(spec), None);
    assert!(found.iter().any(|message| message.contains(part)), "{spec}: no {part} in {found:?}");
}

fn edit_refused(before: &str, after: &str, part: &str) {
    let (before, after) = (object(before), object(after));
    assert_eq!(wrong(&before, None), Vec::<String>::new());
    assert_eq!(wrong(&after, None), Vec::<String>::new());
    let found = wrong(&after, Some(&before));
    assert!(found.iter().any(|message| message.contains(part)), "no {part} in {found:?}");
}

const EXTERNAL: &str = "etcd: {external: {endpoints: ['https://10.0.0.5:2379'], secretRef: {name: e}}}";

#[test]
fn what_is_sensible_is_admitted() {
    for spec in [
        "",
        EXTERNAL,
        "version: 1.17.5, hostClusterRef: {name: a}, apiServer: {serviceType: NodePort, loadBalancerApiserverIp: 10.0.0.1}",
        "scheduler: {version: 1.18.0, featureGates: {Failover: true}, extraArgs: {v: '4'}, replicas: 3}, search: {}",
        "members: [{name: m1, syncMode: push, clusterRef: {name: a}}, {name: m2, syncMode: pull, kubeConfigSecretName: b, taints: [{key: a, effect: NoSchedule}]}, {name: m3, syncMode: pull, hostRef: {name: h}}]",
        "autoJoin: {selector: {}, rules: [{whenLabels: {network: private}, syncMode: pull}, {syncMode: push}]}, unjoinPolicy: Preserve",
        "etcd: {local: {replicas: 5, storage: {size: 20Gi}, resources: {limits: {memory: 1.5Gi}}}}, certificates: {validityDays: 90}",
        "upgrade: {approval: Manual, ignore: [Health, Members]}",
        "estimator: {replicas: 2, version: 1.18.0, featureGates: {ResourceQuotaEstimate: true}, extraArgs: {parallelism: '8'}}, members: [{name: m1, syncMode: push, clusterRef: {name: a}, estimator: {enabled: true}}]",
        "members: [{name: m1, syncMode: push, clusterRef: {name: a}, estimator: {enabled: false}}]",
        "webhook: {affinity: {nodeAffinity: {}}, tolerations: [{operator: Exists}], labels: {a: b}, annotations: {c: d}}",
    ] {
        assert_eq!(wrong(&object(spec), None), Vec::<String>::new(), "{spec}");
    }
}

#[test]
fn what_one_object_can_tell_is_refused_with_a_message_that_names_it() {
    refused("version: 1.16.8", "1.17 and 1.18 are known");
    refused("version: v1.18.2", "/spec/version");
    refused("mode: Processes", "/spec/mode");
    refused("hostNamespace: kube-system", "hostNamespace: the namespaces of Kubernetes");
    refused("hostClusterRef: {name: a}", "apiServer.serviceType: with hostClusterRef");
    refused("etcd: {local: {replicas: 2}}", "must be 1, 3 or 5");
    refused("etcd: {local: {replicas: 7}}", "/spec/etcd/local/replicas");
    refused(&EXTERNAL.replace("etcd: {", "etcd: {local: {}, "), "etcd.local and etcd.external exclude");
    refused("apiServer: {serviceType: NodePort}", "loadBalancerApiserverIp is required");
    refused("apiServer: {loadBalancerApiserverIp: 10.0.0.1}", "goes with serviceType NodePort or LoadBalancer");
    refused("apiServer: {loadBalancerClass: a}", "loadBalancerClass goes with");
    refused("apiServer: {nodePort: 30000}", "nodePort goes with");
    refused("apiServer: {extraArgs: {etcd-servers: x}}", "extraArgs may not have a flag");
    refused("etcd: {local: {extraArgs: {initial-cluster: x}}}", "extraArgs may not have a flag");
    refused("scheduler: {extraArgs: {kubeconfig: x}}", "extraArgs may not have a flag");
    refused("scheduler: {extraArgs: {'--v': '4'}}", "a flag's name is");
    refused("scheduler: {version: 1.17.5}", "scheduler.version: it must be of the minor version");
    refused("estimator: {version: 1.17.5}", "estimator.version: it must be of the minor version");
    refused("estimator: {extraArgs: {cluster-name: x}}", "extraArgs may not have a flag");
    refused("estimator: {extraArgs: {grpc-client-ca-file: x}}", "extraArgs may not have a flag");
    refused("scheduler: {extraArgs: {insecure-skip-estimator-verify: 'true'}}", "extraArgs may not have a flag");
    refused(
        "members: [{name: m1, syncMode: push, clusterRef: {name: a}, estimator: {}}]",
        "members[].estimator.enabled: true needs spec.estimator",
    );
    refused("webhook: {version: 1.18.1}", "webhook.version: it follows");
    refused("search: {featureGates: {Failover: true}}", "search.featureGates: this program has none");
    refused("featureGates: {failover: true}", "a feature gate's name is");
    refused("webhook: {labels: {clusterwright.dev/x: a}}", "are the operator's");
    refused("webhook: {resources: {limits: {gpu: 1}}}", "allowed are cpu, memory");
    refused("webhook: {resources: {limits: {cpu: much}}}", "/spec/webhook/resources/limits/cpu");
    refused("upgrade: {ignore: [All]}", "/spec/upgrade/ignore/0");
    refused("webhook: {replicas: 0}", "/spec/webhook/replicas");
    refused("members: [{name: m1, syncMode: push}]", "exactly one of clusterRef, kubeConfigSecretName and hostRef");
    for both in ["clusterRef: {name: a}", "kubeConfigSecretName: b", "clusterRef: {name: a}, kubeConfigSecretName: b"] {
        let members = format!("members: [{{name: m1, syncMode: push, hostRef: {{name: h}}, {both}}}]");
        refused(&members, "exactly one of clusterRef, kubeConfigSecretName and hostRef");
    }
    refused("members: [{name: m1, syncMode: Push, clusterRef: {name: a}}]", "/spec/members/0/syncMode");
    refused("autoJoin: {selector: {}, rules: []}", "/spec/autoJoin/rules");
    refused("certificates: {validityDays: 30, renewBeforeDays: 30}", "renewBeforeDays must be less");
    refused("crds: {bundle: {url: 'http://b.example.com'}}", "indexSHA256 or signedBy is required");
    let plain = "crds: {caRef: {name: a}, bundle: {url: 'http://b.example.com', indexSHA256: 0000000000000000000000000000000000000000000000000000000000000000}}";
    refused(
        &plain.replace("0000000000000000000000000000000000000000000000000000000000000000", &"a".repeat(64)),
        "crds: caRef and credentialsRef",
    );
}

/// A plane on one machine; and what else it says, there and beside.
fn on_machines(binary: &str, more: &str) -> String {
    let least = "controlPlane: {replicas: 1}, artifacts: {url: 'https://b.example.com'}";
    format!("mode: Binary, binary: {{{least}{binary}}}{more}")
}

#[test]
fn a_plane_on_machines_is_refused_what_only_a_host_cluster_has() {
    let check = |more: &str, part: &str| refused(&on_machines("", more), part);
    refused("mode: Binary", "binary is required with mode Binary");
    refused(&on_machines("", "").replace("mode: Binary", "mode: Containers"), "goes with no other mode");
    check(", hostClusterRef: {name: a}", "which a plane with mode Binary has not");
    check(", hostNamespace: karmada-2", "which a plane with mode Binary has not");
    check(", hostDNSDomain: example.org", "which a plane with mode Binary has not");
    check(", images: {kubernetes: registry.example.com/k8s}", "images.kubernetes: with mode Binary");
    check(", etcd: {local: {storage: {size: 9Gi}}}", "etcd.local (its storage");
    check(", apiServer: {serviceType: LoadBalancer}", "give binary.endpoint");
    check(", apiServer: {serviceAnnotations: {a: b}}", "give binary.endpoint");
    for field in [
        "apiServer",
        "kubeControllerManager",
        "aggregatedApiServer",
        "controllerManager",
        "scheduler",
        "webhook",
        "descheduler",
        "estimator",
        "search",
        "metricsAdapter",
    ] {
        check(&format!(", {field}: {{replicas: 2}}"), &format!("{field}.replicas: with mode Binary"));
        for pod in [
            "affinity: {nodeAffinity: {}}",
            "annotations: {a: b}",
            "labels: {a: b}",
            "priorityClassName: high",
            "resources: {requests: {cpu: '1'}}",
            "resources: {limits: {cpu: '1'}}",
            "tolerations: [{operator: Exists}]",
        ] {
            check(&format!(", {field}: {{{pod}}}"), &format!("{field}: affinity, annotations, labels"));
        }
    }
    for more in [
        "",
        ", images: {karmada: registry.example.com/karmada, pullSecretRefs: [{name: a}]}",
        ", search: {}, descheduler: {extraArgs: {v: '4'}}, apiServer: {certSANs: [karmada.example.com], version: 1.35.2}",
        ", members: [{name: m1, syncMode: push, clusterRef: {name: a}}], deletionProtection: true",
        &format!(", {EXTERNAL}"),
    ] {
        assert_eq!(wrong(&object(&on_machines("", more)), None), Vec::<String>::new(), "{more}");
    }
}

#[test]
fn the_machines_of_a_plane_have_a_majority_an_endpoint_and_a_bundle() {
    let check = |binary: &str, part: &str| refused(&on_machines(binary, ""), part);
    let replicas = |count: u8, more: &str| on_machines(more, "").replace("replicas: 1", &format!("replicas: {count}"));
    let endpoint = ", endpoint: {host: plane.example.com}";
    refused(&replicas(2, endpoint), "must be 1, 3 or 5");
    refused(&replicas(7, endpoint), "/spec/binary/controlPlane/replicas");
    refused(&replicas(3, ""), "binary.endpoint is required with more than one machine");
    check(", etcd: {topology: External}", "is given in etcd.external");
    check(", etcd: {topology: Dedicated}", "binary.etcd.replicas goes with topology Dedicated");
    check(", etcd: {replicas: 3}", "binary.etcd.replicas goes with topology Dedicated");
    check(", etcd: {hosts: [a]}", "go with topology Dedicated");
    check(", etcd: {topology: Dedicated, replicas: 2}", "must be 1, 3 or 5");
    check(", executor: {customPlaybooksRef: {name: a}}", "which a plane has none of");
    check(", forceRemoveAfterSeconds: 59", "/spec/binary/forceRemoveAfterSeconds");
    let named = |etcd: &str| {
        let etcd = format!(", etcd: {{topology: Dedicated, replicas: 1, hosts: [{etcd}]}}");
        on_machines(&etcd, "").replace("replicas: 1}", "replicas: 1, hosts: [a]}")
    };
    refused(&named("a"), "a Host can have one role only");
    let two = "replicas: 1, hosts: [a], hostSelector: {}}";
    refused(&on_machines("", "").replace("replicas: 1}", two), "hosts and hostSelector exclude each other");
    refused(&on_machines(", etcd: {}", &format!(", {EXTERNAL}")), "the plane has one etcd");
    refused(&on_machines("", "").replace("url: 'https://b.example.com'", ""), "binary.artifacts.url is required");
    for spec in [replicas(3, endpoint), replicas(5, endpoint), named("b")] {
        assert_eq!(wrong(&object(&spec), None), Vec::<String>::new(), "{spec}");
    }
    let plain = replicas(1, endpoint);
    edit_refused(&plain, &replicas(1, ", endpoint: {host: other.example.com}"), "binary.endpoint is immutable");
    edit_refused(&plain, &replicas(1, ""), "binary.endpoint is immutable");
    let dedicated = format!("{endpoint}, etcd: {{topology: Dedicated, replicas: 1}}");
    edit_refused(&plain, &replicas(1, &dedicated), "binary.etcd.topology is immutable");
    edit_refused("", &plain, "mode cannot be changed");
    let said = format!("{endpoint}, etcd: {{topology: Stacked}}");
    for after in [replicas(3, endpoint), replicas(1, &said)] {
        assert_eq!(wrong(&object(&after), Some(&object(&plain))), Vec::<String>::new(), "{after}");
    }
}

#[test]
fn what_cannot_be_changed_is_not() {
    edit_refused("", "hostNamespace: other", "hostClusterRef, hostNamespace");
    edit_refused("", "hostDNSDomain: example.org", "hostClusterRef, hostNamespace");
    let remote = "apiServer: {serviceType: LoadBalancer}";
    edit_refused(remote, &format!("{remote}, hostClusterRef: {{name: a}}"), "hostClusterRef, hostNamespace");
    edit_refused("", EXTERNAL, "etcd.external cannot be added");
    edit_refused(EXTERNAL, "", "etcd.external cannot be added");
    edit_refused(EXTERNAL, &EXTERNAL.replace("10.0.0.5", "10.0.0.6"), "etcd.external cannot be added");
    edit_refused("", "etcd: {local: {storage: {size: 9Gi}}}", "etcd.local.storage cannot be changed");
    edit_refused("", "apiServer: {serviceSubnet: 10.32.0.0/16}", "serviceSubnet cannot be changed");
    let minor = ("version: 1.17.5", "");
    for (before, after) in [
        minor,
        ("", "version: 1.17.5"),
        ("", "version: 1.18.3"),
        ("", "etcd: {local: {replicas: 1}}"),
        ("", "etcd: {local: {replicas: 5}}"),
        ("etcd: {local: {replicas: 3}}", ""),
        ("search: {}", ""),
    ] {
        assert_eq!(wrong(&object(after), Some(&object(before))), Vec::<String>::new(), "{after}");
    }
}

#[test]
fn a_backup_to_begin_with_is_named_when_a_plane_is_made_and_never_after() {
    let from = "restoreFrom: {source: {backupRef: {name: b}}, identityRef: {name: age}}";
    assert_eq!(wrong(&object(from), None), Vec::<String>::new());
    edit_refused("", from, "restoreFrom is immutable");
    edit_refused(from, "", "restoreFrom is immutable");
    edit_refused(from, &from.replace("age", "other"), "restoreFrom is immutable");
    refused(&format!("{from}, {EXTERNAL}"), "whoever runs the external etcd restores it");
    refused("restoreFrom: {source: {}, identityRef: {name: age}}", "exactly one of backupRef and stored");
}

#[test]
fn every_flag_of_ours_is_refused_in_extra_args() {
    use super::super::Component;
    use super::super::programs::UNLESS_GIVEN;
    let world = super::world::settled("estimator: {}, descheduler: {}, search: {}, metricsAdapter: {}");
    for component in Component::ALL {
        let kind = if component == Component::Etcd { "StatefulSet" } else { "Deployment" };
        let live = world.find(super::super::Place::Host, kind, &format!("k1-{}", component.suffix())).unwrap();
        let command = live["spec"]["template"]["spec"]["containers"][0]["command"].as_array().unwrap().clone();
        let settings = component.field().split('.').fold(&SCHEMA["properties"]["spec"], |schema, field| {
            let inner = &schema["properties"][field];
            assert!(inner.is_object(), "{field}");
            inner
        });
        for flag in command.iter().filter_map(|flag| flag.as_str()?.strip_prefix("--")) {
            let name = flag.split_once('=').map_or(flag, |(name, _)| name);
            if UNLESS_GIVEN.0 == name {
                continue;
            }
            let (mut value, mut found) = (json!({ "extraArgs": { name: "x" } }), Vec::new());
            complete(settings, &mut value);
            broken(settings, &value, None, &mut found);
            let is_refused = found.iter().any(|message| message.starts_with("extraArgs may not have a flag"));
            assert!(is_refused, "{component:?} --{name}: {found:?}");
        }
    }
}
