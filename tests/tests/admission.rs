//! What the API server itself refuses, and what it admits: the definitions, on a real API server.
//! The numbers of the rows are those of the list of bad inputs.

use anyhow::{Result, ensure};
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

fn host(name: &str) -> Value {
    object(
        "Host",
        name,
        json!({
            "address": "172.30.0.10",
            "ssh": { "credentialsRef": { "name": "fleet-ssh" }, "hostKeys": [KEY] },
        }),
    )
}

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

fn deployment(name: &str) -> Value {
    object(
        "ClusterDeployment",
        name,
        json!({
            "kubernetesVersion": "1.35.4",
            "controlPlane": { "replicas": 1 },
            "workers": [{ "name": "general", "replicas": 2 }],
            "artifacts": { "url": "http://172.30.0.1:8080" },
        }),
    )
}

fn machine_set(name: &str) -> Value {
    object(
        "MachineSet",
        name,
        json!({ "clusterName": "demo", "role": "worker", "replicas": 2 }),
    )
}

fn machine(name: &str) -> Value {
    object(
        "Machine",
        name,
        json!({ "clusterName": "demo", "role": "worker", "kubernetesVersion": "1.35.4" }),
    )
}

fn run(name: &str) -> Value {
    object(
        "PlaybookRun",
        name,
        json!({
            "clusterName": "demo", "intent": "Custom", "steps": ["prepare"], "hosts": ["m1"],
        }),
    )
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": kind,
        "metadata": { "name": name, "namespace": "default" }, "spec": spec,
    })
}

fn plural(object: &Value) -> String {
    format!("{}s", object["kind"].as_str().unwrap_or_default().to_lowercase())
}

/// The object with a value put at a path: `/spec/workers/0/name`. `Null` takes the field away; `-` as the last part of a
/// path appends to a list.
fn with(mut object: Value, path: &str, value: Value) -> Value {
    let Some((parent, key)) = path.rsplit_once('/') else {
        panic!("{path} is no path");
    };
    match object.pointer_mut(parent) {
        Some(Value::Array(list)) if key == "-" => list.push(value),
        Some(Value::Array(list)) => {
            let Some(place) = key.parse().ok().and_then(|index: usize| list.get_mut(index)) else {
                panic!("{path} is not there");
            };
            *place = value;
        }
        Some(Value::Object(fields)) if value.is_null() => {
            fields.remove(key);
        }
        Some(Value::Object(fields)) => {
            fields.insert(key.to_owned(), value);
        }
        _ => panic!("{parent} is not there"),
    }
    object
}

/// Refused as a whole, with this field and this gist in the message.
async fn refused(server: &ApiServer, object: Value, field: &str, gist: &str) -> Result<()> {
    let answer = server.try_create(&plural(&object), &object).await?;
    judge(&answer, field, gist, &object)
}

/// The object is created, and the change refused.
async fn change_refused(
    server: &ApiServer,
    object: &Value,
    patch: Value,
    field: &str,
    gist: &str,
) -> Result<()> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let answer = server.try_patch(&plural(object), name, &patch).await?;
    judge(&answer, field, gist, &patch)
}

async fn change_admitted(server: &ApiServer, object: &Value, patch: Value) -> Result<()> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let answer = server.try_patch(&plural(object), name, &patch).await?;
    ensure!(answer.code == 200, "{patch} was refused: {}", answer.message());
    Ok(())
}

async fn admitted(server: &ApiServer, object: Value) -> Result<Value> {
    let answer = server.try_create(&plural(&object), &object).await?;
    ensure!(
        answer.code == 200,
        "{} was refused: {}",
        cut(&object),
        answer.message()
    );
    Ok(answer.body)
}

async fn created(server: &ApiServer, object: Value) -> Result<Value> {
    let answer = server.create(&plural(&object), &object).await?;
    ensure!(
        answer.code == 200,
        "{} was refused: {}",
        cut(&object),
        answer.message()
    );
    Ok(object)
}

fn judge(answer: &e2e::api_server::Answer, field: &str, gist: &str, given: &Value) -> Result<()> {
    let message = answer.message();
    ensure!(
        matches!(answer.code, 400 | 413 | 422),
        "was not refused ({}): {}",
        answer.code,
        cut(given)
    );
    ensure!(
        message.contains(field),
        "the message does not name `{field}`: {}\n{}",
        message,
        cut(given)
    );
    ensure!(
        message.contains(gist),
        "the message does not say `{gist}`: {}\n{}",
        message,
        cut(given)
    );
    Ok(())
}

fn cut(value: &Value) -> String {
    value.to_string().chars().take(600).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_or_unknown_is_named_row_2() -> Result<()> {
    let server = ApiServer::shared().await?;
    let demo = || deployment("demo");
    for (path, value, field, gist) in [
        ("/spec", json!({}), "spec.kubernetesVersion", "Required value"),
        ("/spec", json!({}), "spec.controlPlane", "Required value"),
        ("/spec", Value::Null, "spec", "Required value"),
        (
            "/spec/controlPlane",
            Value::Null,
            "spec.controlPlane",
            "Required value",
        ),
        (
            "/spec/controlPlane",
            json!({}),
            "spec.controlPlane.replicas",
            "Required value",
        ),
        (
            "/spec/contolPlane",
            json!({}),
            "spec.contolPlane",
            "unknown field",
        ),
        (
            "/spec/workers/0/name",
            Value::Null,
            "spec.workers[0].name",
            "Required value",
        ),
    ] {
        refused(&server, with(demo(), path, value), field, gist).await?;
    }
    let mut null = demo();
    null["spec"]["controlPlane"] = Value::Null;
    refused(&server, null, "spec.controlPlane", "").await?;
    refused(
        &server,
        with(host("m1"), "/spec/ssh", Value::Null),
        "spec.ssh",
        "Required value",
    )
    .await?;
    refused(
        &server,
        with(run("r"), "/spec/hosts", Value::Null),
        "spec.hosts",
        "Required value",
    )
    .await?;
    refused(
        &server,
        with(run("r"), "/spec/hosts", json!([])),
        "spec.hosts",
        "at least 1 item",
    )
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_cannot_be_a_job_or_a_node_are_refused_rows_3_and_12() -> Result<()> {
    let server = ApiServer::shared().await?;
    let long = "a".repeat(64);
    for name in [
        long.as_str(),
        "Demo",
        "demo.",
        "de.mo",
        "-demo",
        "demo-",
        "de_mo",
        "de mo",
        "",
    ] {
        for object in [
            deployment(name),
            host(name),
            machine_set(name),
            machine(name),
            run(name),
        ] {
            refused(&server, object, "metadata.name", "").await?;
        }
    }
    refused(
        &server,
        deployment(&"a".repeat(33)),
        "metadata.name",
        "at most 32 characters",
    )
    .await?;
    refused(&server, deployment("1a"), "metadata.name", "begins with a letter").await?;
    for name in ["localhost", "all", "ungrouped", "etcd"] {
        refused(&server, host(name), "metadata.name", "Ansible").await?;
    }
    for name in [
        "*",
        "!x",
        "n[1:200000]",
        "a,b",
        "10.0.0.1:2222",
        "-oProxyCommand=id",
        "a b",
        "a\nb",
        "a\u{0}b",
        "😀",
        "a\u{202e}b",
        "x/../y",
    ] {
        refused(&server, host(name), "metadata.name", "").await?;
        refused(
            &server,
            with(run("r"), "/spec/hosts/0", json!(name)),
            "spec.hosts[0]",
            "should match",
        )
        .await?;
        refused(
            &server,
            with(deployment("d"), "/spec/controlPlane/hosts", json!([name])),
            "spec.controlPlane.hosts[0]",
            "should match",
        )
        .await?;
        refused(
            &server,
            with(deployment("d"), "/spec/workers/0/hosts", json!([name])),
            "spec.workers[0].hosts[0]",
            "should match",
        )
        .await?;
        refused(
            &server,
            with(deployment("d"), "/spec/workers/0/name", json!(name)),
            "spec.workers[0].name",
            "should match",
        )
        .await?;
    }
    for name in ["control-plane", "etcd"] {
        refused(
            &server,
            with(deployment("d"), "/spec/workers/0/name", json!(name)),
            "spec.workers[0].name",
            "names of other sets",
        )
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_known_ones_and_go_up_one_minor_at_a_time_rows_4_and_5() -> Result<()> {
    let server = ApiServer::shared().await?;
    let field = "spec.kubernetesVersion";
    for version in [
        "v1.35.4",
        "v1.99.0",
        "1.99.0",
        "1.33.1",
        "1.37.0",
        "latest",
        "1.35.",
        "1.35.04",
        "1.35.4-rc.1",
    ] {
        let object = with(deployment("demo"), "/spec/kubernetesVersion", json!(version));
        refused(&server, object, field, "UnsupportedVersion").await?;
    }
    for (version, gist) in [
        (json!("1.30"), "at least 5"),
        (json!(1.3), "must be of type string"),
        (json!(""), "at least 5"),
    ] {
        refused(
            &server,
            with(deployment("demo"), "/spec/kubernetesVersion", version),
            field,
            gist,
        )
        .await?;
    }
    let at = |version: &str| json!({ "spec": { "kubernetesVersion": version } });
    let demo = created(
        &server,
        with(deployment("versions"), "/spec/kubernetesVersion", json!("1.34.4")),
    )
    .await?;
    change_refused(
        &server,
        &demo,
        at("1.36.0"),
        field,
        "VersionSkewNotAllowed: from 1.34.4 to 1.36.0",
    )
    .await?;
    change_refused(&server, &demo, at("1.34.3"), field, "VersionSkewNotAllowed").await?;
    for version in ["1.34.4", "1.34.5", "1.34.10", "1.35.0", "1.35.4"] {
        change_admitted(&server, &demo, at(version)).await?;
    }
    let newer = created(&server, deployment("newer")).await?;
    change_refused(&server, &newer, at("1.34.9"), field, "VersionSkewNotAllowed").await
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_of_members_are_odd_and_in_range_row_6() -> Result<()> {
    let server = ApiServer::shared().await?;
    let field = "spec.controlPlane.replicas";
    let endpoint = || {
        with(
            deployment("demo"),
            "/spec/controlPlane/endpoint",
            json!({ "host": "10.0.0.100" }),
        )
    };
    for (replicas, gist) in [
        (json!(0), "greater than or equal to 1"),
        (json!(2), "must be odd"),
        (json!(4), "must be odd"),
        (json!(-1), "greater than or equal to 1"),
        (json!(9), "less than or equal to 7"),
        (json!(2147483648_i64), ""),
        (json!("3"), "must be of type integer"),
        (json!(1.5), "must be of type integer"),
    ] {
        refused(
            &server,
            with(endpoint(), "/spec/controlPlane/replicas", replicas),
            field,
            gist,
        )
        .await?;
    }
    for replicas in [1, 3, 5, 7] {
        admitted(
            &server,
            with(endpoint(), "/spec/controlPlane/replicas", json!(replicas)),
        )
        .await?;
    }
    let three = with(deployment("demo"), "/spec/controlPlane/replicas", json!(3));
    refused(
        &server,
        three,
        "controlPlane.endpoint",
        "is required with more than one control plane",
    )
    .await?;

    let etcd = |value: Value| with(deployment("demo"), "/spec/etcd", value);
    let dedicated = |replicas: Value| etcd(json!({ "topology": "Dedicated", "replicas": replicas }));
    refused(&server, dedicated(json!(2)), "spec.etcd.replicas", "must be odd").await?;
    refused(
        &server,
        dedicated(json!(9)),
        "spec.etcd.replicas",
        "less than or equal to 7",
    )
    .await?;
    refused(
        &server,
        etcd(json!({ "topology": "Dedicated" })),
        "spec.etcd",
        "goes with topology Dedicated",
    )
    .await?;
    refused(
        &server,
        etcd(json!({ "replicas": 3 })),
        "spec.etcd",
        "goes with topology Dedicated",
    )
    .await?;
    refused(
        &server,
        etcd(json!({ "topology": "Elsewhere" })),
        "spec.etcd.topology",
        "Unsupported value",
    )
    .await?;
    refused(
        &server,
        etcd(json!({ "hosts": ["m1"] })),
        "spec.etcd",
        "go with topology Dedicated",
    )
    .await?;
    admitted(&server, dedicated(json!(3))).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_named_twice_row_9() -> Result<()> {
    let server = ApiServer::shared().await?;
    let demo = || deployment("demo");
    let twice = json!(["m1", "m1"]);
    for (object, field) in [
        (
            with(demo(), "/spec/controlPlane/hosts", twice.clone()),
            "spec.controlPlane.hosts[1]",
        ),
        (
            with(demo(), "/spec/workers/0/hosts", twice.clone()),
            "spec.workers[0].hosts[1]",
        ),
        (
            with(demo(), "/spec/workers/-", json!({ "name": "general" })),
            "spec.workers[1]",
        ),
        (with(run("r"), "/spec/hosts", twice.clone()), "spec.hosts[1]"),
        (
            with(run("r"), "/spec/steps", json!(["prepare", "prepare"])),
            "spec.steps[1]",
        ),
        (
            with(machine_set("s"), "/spec/template", json!({ "hosts": twice })),
            "spec.template.hosts[1]",
        ),
    ] {
        refused(&server, object, field, "Duplicate value").await?;
    }
    let taint = json!({ "key": "gpu", "effect": "NoSchedule" });
    let taints = with(demo(), "/spec/workers/0/taints", json!([taint, taint]));
    refused(&server, taints, "spec.workers[0].taints[1]", "Duplicate value").await?;
    let both = with(demo(), "/spec/controlPlane/hosts", json!(["m1", "m2"]));
    let both = with(both, "/spec/workers/0/hosts", json!(["m3", "m2"]));
    refused(&server, both, "spec", "one role only").await?;
    let etcd = json!({ "topology": "Dedicated", "replicas": 1, "hosts": ["m1"] });
    let both = with(
        with(demo(), "/spec/etcd", etcd),
        "/spec/controlPlane/hosts",
        json!(["m1"]),
    );
    refused(&server, both, "spec", "one role only").await?;
    let either = json!({ "replicas": 1, "hosts": ["m1"], "hostSelector": { "matchLabels": {} } });
    refused(
        &server,
        with(demo(), "/spec/controlPlane", either),
        "spec.controlPlane",
        "exclude each other",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_machines_addresses_rows_11_and_12() -> Result<()> {
    let server = ApiServer::shared().await?;
    for address in [
        "999.1.1.1",
        "0.0.0.0",
        "127.0.0.1",
        "127.1.2.3",
        "224.0.0.1",
        "239.1.1.1",
        "255.255.255.255",
        "169.254.1.1",
        "010.0.0.1",
        "10.0.0",
        "1",
        "10.0.0.1.1",
        "::",
        "::1",
        "fe80::1",
        "ff02::1",
        "ff05::1",
        "FD00::1",
        "fd00:0::1",
        "::ffff:10.0.0.1",
        "localhost",
        "all",
        "*",
        "!x",
        "n[1:200000]",
        "a,b",
        "10.0.0.1:2222",
        "10.0.0.1/24",
        "[fd00::1]",
        "-oProxyCommand=id",
        "a b",
        "a\nb",
        "a\u{0}b",
        "😀",
        "a\u{202e}b",
        "Host",
        "a..b",
        ".a",
        "a.",
        "user@host",
        "{{ x }}",
        "$(id)",
    ] {
        let given = json!(address);
        if address != "all" {
            let object = with(host("m1"), "/spec/address", given.clone());
            refused(&server, object, "spec.address", "must be").await?;
            let endpoint = json!({ "host": address });
            let object = with(deployment("demo"), "/spec/controlPlane/endpoint", endpoint);
            refused(&server, object, "spec.controlPlane.endpoint.host", "must be").await?;
        }
        let object = with(host("m1"), "/spec/internalAddress", given);
        refused(&server, object, "spec.internalAddress", "").await?;
    }
    refused(
        &server,
        with(host("m1"), "/spec/address", json!("")),
        "spec.address",
        "at least 1",
    )
    .await?;
    for address in [
        "172.30.0.10",
        "10.0.0.1",
        "192.168.255.255",
        "fd00::1",
        "2001:db8::7",
        "node-1.example",
        "n1",
    ] {
        admitted(&server, with(host("m1"), "/spec/address", json!(address))).await?;
    }
    for san in ["", "a b", "*", "a,b", "-x", "http://x"] {
        let object = with(deployment("demo"), "/spec/controlPlane/certSANs", json!([san]));
        refused(&server, object, "spec.controlPlane.certSANs[0]", "").await?;
    }
    for user in ["", "Root", "-oProxyCommand=id", "a b", "root;id", "1a"] {
        refused(
            &server,
            with(host("m1"), "/spec/ssh/user", json!(user)),
            "spec.ssh.user",
            "",
        )
        .await?;
    }
    for key in [
        "AAAA",
        "ssh-ed25519",
        "ssh-dss AAAAB3NzaC1kc3MAAACBAA",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\nall ssh-rsa AAAA",
        "@cert-authority * ssh-ed25519 AAAA",
    ] {
        refused(
            &server,
            with(host("m1"), "/spec/ssh/hostKeys", json!([key])),
            "spec.ssh.hostKeys[0]",
            "",
        )
        .await?;
    }
    let strict = with(host("m1"), "/spec/ssh/hostKeys", Value::Null);
    refused(&server, strict.clone(), "spec.ssh", "ssh-keyscan").await?;
    admitted(
        &server,
        with(strict, "/spec/ssh/hostKeyPolicy", json!("TrustOnFirstUse")),
    )
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_numbers_in_range_row_13() -> Result<()> {
    let server = ApiServer::shared().await?;
    let endpoint = || {
        with(
            deployment("demo"),
            "/spec/controlPlane/endpoint",
            json!({ "host": "10.0.0.100" }),
        )
    };
    for (port, gist) in [
        (json!(0), "greater than or equal to 1"),
        (json!(65536), "less than or equal to 65535"),
        (json!(-22), "greater than or equal to 1"),
        (json!("22"), "must be of type integer"),
    ] {
        refused(
            &server,
            with(host("m1"), "/spec/ssh/port", port.clone()),
            "spec.ssh.port",
            gist,
        )
        .await?;
        let object = with(endpoint(), "/spec/controlPlane/endpoint/port", port);
        refused(&server, object, "spec.controlPlane.endpoint.port", gist).await?;
    }
    admitted(&server, with(host("m1"), "/spec/ssh/port", json!(65535))).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_are_whole_apart_and_large_enough_row_14() -> Result<()> {
    let server = ApiServer::shared().await?;
    let networking = |pods: &str, services: &str| {
        with(
            deployment("demo"),
            "/spec/networking",
            json!({ "podCIDR": pods, "serviceCIDR": services }),
        )
    };
    for (pods, services) in [
        ("10.0.0.0/8", "10.96.0.0/16"),
        ("10.96.0.0/20", "10.96.0.0/16"),
        ("10.96.0.0/16", "10.96.0.0/16"),
        ("10.244.0.0/16", "10.244.3.0/24"),
    ] {
        refused(
            &server,
            networking(pods, services),
            "spec.networking",
            &format!("CIDROverlap: podCIDR {pods}"),
        )
        .await?;
    }
    for pods in [
        "10.244.0.0/31",
        "10.244.0.0/23",
        "10.0.0.0/7",
        "10.244.1.0/16",
        "10.244.0.0",
        "999.0.0.0/16",
        "fd00::/48",
        "010.0.0.0/16",
    ] {
        refused(
            &server,
            networking(pods, "10.96.0.0/16"),
            "spec.networking.podCIDR",
            "IPv4 network from /8 to /22",
        )
        .await?;
    }
    for services in [
        "10.96.0.0/31",
        "10.96.0.0/25",
        "10.0.0.0/11",
        "10.96.1.0/16",
        "10.96.0.1/32",
        "services",
    ] {
        refused(
            &server,
            networking("10.244.0.0/16", services),
            "spec.networking.serviceCIDR",
            "",
        )
        .await?;
    }
    let small = with(
        networking("10.244.0.0/22", "10.96.0.0/16"),
        "/spec/workers/0/replicas",
        json!(4),
    );
    refused(&server, small, "spec.networking.podCIDR", "CIDRTooSmall").await?;
    let enough = with(
        networking("10.244.0.0/22", "10.96.0.0/16"),
        "/spec/workers/0/replicas",
        json!(3),
    );
    admitted(&server, enough).await?;
    for host in ["10.244.7.7", "10.96.0.10"] {
        let object = with(
            deployment("demo"),
            "/spec/controlPlane/endpoint",
            json!({ "host": host }),
        );
        refused(
            &server,
            object,
            "spec.controlPlane.endpoint.host",
            "lies in podCIDR or serviceCIDR",
        )
        .await?;
    }
    for domain in ["", "Cluster.Local", "a..b", "-a", "a b", &"a".repeat(200)] {
        let object = with(
            deployment("demo"),
            "/spec/networking",
            json!({ "dnsDomain": domain }),
        );
        refused(&server, object, "spec.networking.dnsDomain", "").await?;
    }
    let plugin = |value: Value| with(deployment("demo"), "/spec/networking", json!({ "plugin": value }));
    refused(
        &server,
        plugin(json!({ "name": "manifests" })),
        "spec.networking.plugin",
        "manifestsRef",
    )
    .await?;
    refused(
        &server,
        plugin(json!({ "manifestsRef": { "name": "cni" } })),
        "spec.networking.plugin",
        "manifestsRef",
    )
    .await?;
    refused(
        &server,
        plugin(json!({ "name": "calico" })),
        "spec.networking.plugin.name",
        "Unsupported value",
    )
    .await?;
    admitted(
        &server,
        plugin(json!({ "name": "manifests", "manifestsRef": { "name": "cni" } })),
    )
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cluster_is_made_of_cannot_be_changed_row_15() -> Result<()> {
    let server = ApiServer::shared().await?;
    let demo = with(
        deployment("fixed"),
        "/spec/controlPlane/endpoint",
        json!({ "host": "10.0.0.100" }),
    );
    let demo = created(&server, demo).await?;
    let forbidden = "Forbidden";
    for (patch, field) in [
        (
            json!({ "networking": { "podCIDR": "10.245.0.0/16" } }),
            "spec.networking",
        ),
        (
            json!({ "networking": { "serviceCIDR": "10.97.0.0/16" } }),
            "spec.networking",
        ),
        (
            json!({ "networking": { "dnsDomain": "other.local" } }),
            "spec.networking",
        ),
        (
            json!({ "networking": { "plugin": { "name": "manifests", "manifestsRef": { "name": "cni" } } } }),
            "spec.networking",
        ),
        (
            json!({ "etcd": { "topology": "Dedicated", "replicas": 3 } }),
            "spec.etcd.topology",
        ),
        (
            json!({ "controlPlane": { "endpoint": { "host": "10.0.0.101" } } }),
            "spec.controlPlane",
        ),
        (
            json!({ "controlPlane": { "endpoint": { "port": 7443 } } }),
            "spec.controlPlane",
        ),
        (
            json!({ "controlPlane": { "endpoint": null } }),
            "spec.controlPlane",
        ),
    ] {
        change_refused(&server, &demo, json!({ "spec": patch }), field, forbidden).await?;
    }
    // There is one container runtime only: another name is no value of the field.
    let runtime = json!({ "spec": { "containerRuntime": { "name": "crio" } } });
    change_refused(
        &server,
        &demo,
        runtime,
        "spec.containerRuntime.name",
        "Unsupported value",
    )
    .await?;
    // Sending the defaults, or nothing, changes nothing.
    change_admitted(
        &server,
        &demo,
        json!({ "spec": { "networking": null, "etcd": null } }),
    )
    .await?;
    change_admitted(
        &server,
        &demo,
        json!({ "spec": { "workers": [{ "name": "general", "replicas": 5 }], "paused": true } }),
    )
    .await?;

    let without = created(&server, deployment("no-endpoint")).await?;
    let added = json!({ "spec": { "controlPlane": { "endpoint": { "host": "10.0.0.100" } } } });
    change_refused(&server, &without, added, "spec.controlPlane", forbidden).await?;

    let set = created(&server, machine_set("fixed-general")).await?;
    change_refused(
        &server,
        &set,
        json!({ "spec": { "role": "etcd" } }),
        "spec",
        forbidden,
    )
    .await?;
    change_admitted(&server, &set, json!({ "spec": { "replicas": 5 } })).await?;
    let machine = created(&server, machine("fixed-1")).await?;
    change_admitted(
        &server,
        &machine,
        json!({ "spec": { "hostRef": { "name": "m1" } } }),
    )
    .await?;
    let bound = created(
        &server,
        with(self::machine("fixed-2"), "/spec/hostRef", json!({ "name": "m1" })),
    )
    .await?;
    change_refused(
        &server,
        &bound,
        json!({ "spec": { "hostRef": { "name": "m2" } } }),
        "spec.hostRef",
        forbidden,
    )
    .await?;
    change_refused(
        &server,
        &bound,
        json!({ "spec": { "hostRef": null } }),
        "spec.hostRef",
        forbidden,
    )
    .await?;
    change_refused(
        &server,
        &bound,
        json!({ "spec": { "clusterName": "other" } }),
        "spec",
        forbidden,
    )
    .await?;

    let run = created(&server, run("fixed")).await?;
    for patch in [
        json!({ "hosts": ["m2"] }),
        json!({ "steps": ["node"] }),
        json!({ "intent": "Reset" }),
        json!({ "clusterName": "other" }),
        json!({ "vars": { "a": 1 } }),
        json!({ "timeoutSeconds": 600 }),
    ] {
        change_refused(&server, &run, json!({ "spec": patch }), "spec", forbidden).await?;
    }
    change_admitted(&server, &run, json!({ "spec": { "cancel": true } })).await?;
    let canceled = created(&server, with(self::run("canceled"), "/spec/cancel", json!(true))).await?;
    change_refused(
        &server,
        &canceled,
        json!({ "spec": { "cancel": false } }),
        "spec",
        "cannot be taken up again",
    )
    .await?;

    let claimed = created(&server, with(host("claimed"), "/spec/claimEpoch", json!(3))).await?;
    change_refused(
        &server,
        &claimed,
        json!({ "spec": { "claimEpoch": 2 } }),
        "spec.claimEpoch",
        forbidden,
    )
    .await?;
    change_admitted(&server, &claimed, json!({ "spec": { "claimEpoch": 4 } })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_row_20() -> Result<()> {
    let server = ApiServer::shared().await?;
    let many = |count: usize| Value::from((0..count).map(|n| format!("m{n}")).collect::<Vec<_>>());
    let object = with(deployment("demo"), "/spec/workers/0/hosts", many(10_000));
    refused(&server, object, "spec.workers[0].hosts", "at most 500 items").await?;
    let object = with(deployment("demo"), "/spec/controlPlane/hosts", many(17));
    refused(&server, object, "spec.controlPlane.hosts", "at most 16 items").await?;
    refused(
        &server,
        with(run("r"), "/spec/hosts", many(501)),
        "spec.hosts",
        "at most 500 items",
    )
    .await?;
    let sets: Vec<Value> = (0..33).map(|n| json!({ "name": format!("s{n}") })).collect();
    refused(
        &server,
        with(deployment("demo"), "/spec/workers", json!(sets)),
        "spec.workers",
        "at most 32 items",
    )
    .await?;
    let annotation = json!({ "note": "x".repeat(256 * 1024) });
    refused(
        &server,
        with(host("m1"), "/metadata/annotations", annotation),
        "metadata.annotations",
        "Too long",
    )
    .await?;
    let large = json!({ "blob": "x".repeat(3_200_000) });
    refused(&server, with(run("r"), "/spec/vars", large), "", "too large").await?;
    let vars: Value = (0..200)
        .map(|n| (format!("v{n}"), json!(n)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    refused(
        &server,
        with(run("r"), "/spec/vars", vars),
        "spec.vars",
        "at most 128",
    )
    .await?;
    refused(
        &server,
        with(host("m1"), "/spec/address", json!("a".repeat(254))),
        "spec.address",
        "253",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn references_stay_in_their_namespace_row_22() -> Result<()> {
    let server = ApiServer::shared().await?;
    let credentials = "/spec/ssh/credentialsRef";
    let other = json!({ "name": "fleet-ssh", "namespace": "kube-system" });
    refused(
        &server,
        with(host("m1"), credentials, other),
        "spec.ssh.credentialsRef.namespace",
        "unknown field",
    )
    .await?;
    for name in ["../x", "kube-system/x", "", "X", "a b", ".x"] {
        let object = with(host("m1"), credentials, json!({ "name": name }));
        refused(&server, object, "spec.ssh.credentialsRef.name", "").await?;
        let cluster = object_of_cluster(json!({ "name": name }));
        refused(&server, cluster, "spec.kubeconfigRef.name", "").await?;
    }
    let other = object_of_cluster(json!({ "name": "x", "namespace": "kube-system" }));
    refused(&server, other, "spec.kubeconfigRef.namespace", "unknown field").await
}

fn object_of_cluster(kubeconfig: Value) -> Value {
    object("Cluster", "demo", json!({ "kubeconfigRef": kubeconfig }))
}

#[tokio::test(flavor = "multi_thread")]
async fn artifact_sources_and_mirrors_are_plain_urls() -> Result<()> {
    let server = ApiServer::shared().await?;
    for url in [
        "",
        "file:///etc",
        "ftp://x/bundle",
        "172.30.0.1:8080",
        "http://user:password@x/",
        "http://",
        "http://x/?a=b",
        "http://x y",
        "http://x/{{ y }}",
    ] {
        let object = with(deployment("demo"), "/spec/artifacts", json!({ "url": url }));
        refused(&server, object, "spec.artifacts.url", "").await?;
        let mirrors = json!({ "registryMirrors": [{ "prefix": "registry.k8s.io", "endpoints": [url] }] });
        let object = with(deployment("demo"), "/spec/containerRuntime", mirrors);
        refused(
            &server,
            object,
            "spec.containerRuntime.registryMirrors[0].endpoints[0]",
            "",
        )
        .await?;
    }
    for image in ["", "x; rm -rf /", "-x", "a b", "$(id)"] {
        let object = with(deployment("demo"), "/spec/executor", json!({ "image": image }));
        refused(&server, object, "spec.executor.image", "").await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn max_unavailable_is_a_count_or_a_percentage_row_39() -> Result<()> {
    let server = ApiServer::shared().await?;
    let at = |value: Value| with(deployment("demo"), "/spec/workers/0/maxUnavailable", value);
    let field = "spec.workers[0].maxUnavailable";
    for (value, gist) in [
        (json!(0), "greater than or equal to 1"),
        (json!(-1), "greater than or equal to 1"),
        (json!("100%"), "should match"),
        (json!("0%"), "should match"),
        (json!("abc"), "should match"),
        (json!("10"), "should match"),
        (json!("-1%"), "should match"),
        (json!(3), "more than there are replicas"),
        (json!(1.5), ""),
        (json!(true), ""),
    ] {
        refused(&server, at(value), field, gist).await?;
    }
    for value in [json!(1), json!(2), json!("1%"), json!("99%")] {
        admitted(&server, at(value)).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_and_taints_follow_their_grammar_row_40() -> Result<()> {
    let server = ApiServer::shared().await?;
    let set = || with(machine_set("s"), "/spec/template", json!({}));
    for (object, path, field) in [
        (deployment("demo"), "/spec/workers/0", "spec.workers[0]"),
        (set(), "/spec/template", "spec.template"),
        (machine("m"), "/spec", "spec"),
    ] {
        let labels = |value: Value| with(object.clone(), &format!("{path}/labels"), value);
        let taint = |value: Value| with(object.clone(), &format!("{path}/taints"), json!([value]));
        let labels_field = format!("{field}.labels");
        for key in [
            "kubernetes.io/hostname",
            "node-role.kubernetes.io/control-plane",
            "node.kubernetes.io/x",
            "k8s.io/x",
            "a.k8s.io/x",
        ] {
            refused(
                &server,
                labels(json!({ key: "x" })),
                &labels_field,
                "reserved for Kubernetes",
            )
            .await?;
            let value = json!({ "key": key, "effect": "NoSchedule" });
            refused(
                &server,
                taint(value),
                &format!("{field}.taints[0].key"),
                "reserved for Kubernetes",
            )
            .await?;
        }
        let long = "a".repeat(64);
        for key in ["", "-a", "a b", "a/b/c", "A/b", "a/", "/a", "ä", long.as_str()] {
            refused(&server, labels(json!({ key: "x" })), &labels_field, "").await?;
            let value = json!({ "key": key, "effect": "NoSchedule" });
            refused(&server, taint(value), &format!("{field}.taints[0].key"), "").await?;
        }
        for value in ["-a", "a b", "ä", "a\n", long.as_str()] {
            refused(
                &server,
                labels(json!({ "pool": value })),
                &format!("{labels_field}.pool"),
                "",
            )
            .await?;
            let value = json!({ "key": "a", "value": value, "effect": "NoSchedule" });
            refused(&server, taint(value), &format!("{field}.taints[0].value"), "").await?;
        }
        let many: Value = (0..1000)
            .map(|n| (format!("l{n}"), json!("x")))
            .collect::<serde_json::Map<_, _>>()
            .into();
        refused(&server, labels(many), &labels_field, "at most 64").await?;
        let value = json!({ "key": "a", "effect": "Evict" });
        refused(
            &server,
            taint(value),
            &format!("{field}.taints[0].effect"),
            "Unsupported value",
        )
        .await?;
        admitted(
            &server,
            labels(json!({ "pool": "general", "example.com/rack": "r1", "empty": "" })),
        )
        .await?;
        admitted(
            &server,
            taint(json!({ "key": "example.com/gpu", "value": "big", "effect": "NoExecute" })),
        )
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_asked_for_within_limits() -> Result<()> {
    let server = ApiServer::shared().await?;
    let spec = |path: &str, value: Value| with(run("r"), &format!("/spec/{path}"), value);
    for (object, field, gist) in [
        (
            spec("steps", json!(["dance"])),
            "spec.steps[0]",
            "Unsupported value",
        ),
        (spec("steps", json!([])), "spec.steps", "at least 1"),
        (spec("intent", json!("Dance")), "spec.intent", "Unsupported value"),
        (
            spec("clusterName", Value::Null),
            "spec",
            "clusterName is required",
        ),
        (spec("timeoutSeconds", json!(179)), "spec.timeoutSeconds", "180"),
        (
            spec("timeoutSeconds", json!(86401)),
            "spec.timeoutSeconds",
            "86400",
        ),
        (spec("vars", json!("x")), "spec.vars", "must be of type object"),
    ] {
        refused(&server, object, field, gist).await?;
    }
    let probe = with(spec("clusterName", Value::Null), "/spec/intent", json!("Probe"));
    admitted(&server, probe).await?;
    let vars = json!({ "a": "{{ lookup('pipe', 'id') }}", "b": { "c": [1, true, null] } });
    let kept = admitted(&server, spec("vars", vars.clone())).await?;
    ensure!(
        kept["spec"]["vars"] == vars,
        "variables are kept as they are: {}",
        kept["spec"]["vars"]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_are_filled_in() -> Result<()> {
    let server = ApiServer::shared().await?;
    let spec = admitted(&server, deployment("demo")).await?["spec"].take();
    for (path, value) in [
        ("/etcd/topology", json!("Stacked")),
        ("/networking/podCIDR", json!("10.244.0.0/16")),
        ("/networking/serviceCIDR", json!("10.96.0.0/16")),
        ("/networking/dnsDomain", json!("cluster.local")),
        ("/networking/plugin/name", json!("bridge")),
        ("/containerRuntime/name", json!("containerd")),
        ("/workers/0/maxUnavailable", json!("10%")),
        ("/paused", json!(false)),
        ("/deletionPolicy", json!("Reset")),
    ] {
        ensure!(
            spec.pointer(path) == Some(&value),
            "{path}: {:?}",
            spec.pointer(path)
        );
    }
    let spec = admitted(&server, host("m1")).await?["spec"].take();
    for (path, value) in [
        ("/ssh/port", json!(22)),
        ("/ssh/user", json!("root")),
        ("/ssh/become", json!(false)),
        ("/ssh/hostKeyPolicy", json!("Strict")),
        ("/unschedulable", json!(false)),
        ("/claimEpoch", json!(0)),
    ] {
        ensure!(
            spec.pointer(path) == Some(&value),
            "{path}: {:?}",
            spec.pointer(path)
        );
    }
    let spec = admitted(&server, run("r")).await?["spec"].take();
    ensure!(
        spec["timeoutSeconds"] == json!(3600) && spec["cancel"] == json!(false),
        "{spec}"
    );
    let spec = admitted(&server, machine_set("s")).await?["spec"].take();
    ensure!(
        spec["mode"] == json!("Automatic") && spec["deletion"]["order"] == json!("Newest"),
        "{spec}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_are_scaled_through_the_subresource_and_names_are_short() -> Result<()> {
    let server = ApiServer::shared().await?;
    created(&server, machine_set("scaled")).await?;
    let scale = server.get("machinesets", "scaled/scale").await?;
    ensure!(
        scale.body["kind"] == "Scale" && scale.body["spec"]["replicas"] == 2,
        "{}",
        scale.body
    );
    let request = http::Request::get("/apis/clusterwright.dev/v1alpha1").body(Vec::new())?;
    let listed: Value = server.client().request(request).await?;
    let kinds = listed["resources"].as_array().cloned().unwrap_or_default();
    for (plural, short) in [
        ("clusterdeployments", Some("cd")),
        ("clusters", Some("cl")),
        ("hosts", None),
        ("machines", Some("ma")),
        ("machinesets", Some("ms")),
        ("playbookruns", Some("pr")),
    ] {
        let kind = kinds.iter().find(|kind| kind["name"] == plural);
        let kind = kind.cloned().unwrap_or_default();
        ensure!(kind["categories"] == json!(["clusterwright"]), "{plural}: {kind}");
        ensure!(
            short.is_none_or(|short| kind["shortNames"] == json!([short])),
            "{plural}: {kind}"
        );
    }
    Ok(())
}

/// Every object among the samples, as an administrator would apply it.
#[tokio::test(flavor = "multi_thread")]
async fn the_samples_are_admitted() -> Result<()> {
    let server = ApiServer::shared().await?;
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/samples");
    let mut seen = 0;
    for file in std::fs::read_dir(directory)? {
        let text = std::fs::read_to_string(file?.path())?;
        for document in text.split("\n---") {
            let mut object: Value = serde_yaml::from_str(document)?;
            if object["apiVersion"] != "clusterwright.dev/v1alpha1" {
                continue;
            }
            object["metadata"]["namespace"] = json!("default");
            admitted(&server, object).await?;
            seen += 1;
        }
    }
    ensure!(seen >= 5, "{seen} samples seen");
    Ok(())
}

/// Pod Security speaks up about a Deployment whose Pods it would refuse: kubectl would pass that on as a complaint.
#[tokio::test(flavor = "multi_thread")]
async fn everything_is_installed_with_one_command_and_no_right_is_a_wildcard() -> Result<()> {
    let server = ApiServer::shared().await?;
    let manifests = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests");
    let apply = ["apply", "--server-side", "--force-conflicts", "-k", manifests];
    server.kubectl(&apply)?;
    let again = server.kubectl(&apply)?;
    ensure!(
        again.contains("deployment.apps/clusterwright-operator"),
        "{again}"
    );
    let roles: Value = serde_json::from_str(&server.kubectl(&["get", "clusterroles", "-o", "json"])?)?;
    let roles = roles["items"].as_array().cloned().unwrap_or_default();
    let ours = |role: &&Value| {
        role["metadata"]["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("clusterwright-"))
    };
    let ours: Vec<&Value> = roles.iter().filter(ours).collect();
    ensure!(ours.len() == 3, "{} roles", ours.len());
    for role in ours {
        ensure!(!role["rules"].to_string().contains('*'), "{role}");
    }
    // Without the operator, its objects stay.
    created(&server, host("stays")).await?;
    server.kubectl(&[
        "delete",
        "deployment",
        "clusterwright-operator",
        "-n",
        "clusterwright-system",
    ])?;
    ensure!(
        server.get("hosts", "stays").await?.code == 200,
        "the Host is gone"
    );
    Ok(())
}

/// What is nested so deep that readers of JSON give up would blind everyone who lists runs; it is refused when it is read.
#[tokio::test(flavor = "multi_thread")]
async fn deep_values_blind_nobody_row_19() -> Result<()> {
    let server = ApiServer::shared().await?;
    let runs: kube::Api<crds::PlaybookRun> = kube::Api::namespaced(server.client(), "default");
    for (name, open, close) in [("deep-list", "[", "]"), ("deep-map", "{\"a\":", "}")] {
        let object = with(run(name), "/spec/vars", json!({ "deep": "HERE", "flat": 1 })).to_string();
        let text = object.replace(
            "\"HERE\"",
            &format!("{}1{}", open.repeat(1000), close.repeat(1000)),
        );
        let request = http::Request::post("/apis/clusterwright.dev/v1alpha1/namespaces/default/playbookruns")
            .header("content-type", "application/json")
            .body(text.into_bytes())?;
        server.client().request_text(request).await?;
        let listed = runs.list(&Default::default()).await?;
        let found = listed
            .iter()
            .find(|run| run.metadata.name.as_deref() == Some(name));
        let vars = found.map(|run| run.spec.vars.clone()).unwrap_or_default();
        ensure!(vars.get("flat") == Some(&json!(1)), "{vars:?}");
        let depth = vars.get("deep").map(crds::inputs::depth).unwrap_or_default();
        ensure!(
            depth > crds::inputs::VARIABLE_DEPTH_LIMIT,
            "it is seen to be too deep: {depth}"
        );
    }
    Ok(())
}

/// There is no field for text that a shell or a component's command line would read.
#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_field_for_free_arguments_and_hooks_row_28() -> Result<()> {
    let server = ApiServer::shared().await?;
    for field in [
        "extraArgs",
        "kubeletExtraArgs",
        "apiServerExtraArgs",
        "hooks",
        "preInstall",
        "postInstall",
        "env",
        "command",
    ] {
        for (object, parent) in [
            (deployment("demo"), "spec"),
            (deployment("demo"), "spec.controlPlane"),
            (deployment("demo"), "spec.workers[0]"),
            (deployment("demo"), "spec.artifacts"),
            (host("m1"), "spec"),
            (host("m1"), "spec.ssh"),
            (machine("m"), "spec"),
            (machine_set("s"), "spec"),
            (run("r"), "spec"),
        ] {
            let path = format!("/{parent}/{field}")
                .replace(['.', '['], "/")
                .replace(']', "");
            let object = with(object, &path, json!("; touch canary"));
            refused(&server, object, &format!("{parent}.{field}"), "unknown field").await?;
        }
    }
    for (field, value) in [
        ("proxyCommand", "sh -c id"),
        ("extraArgs", "-o ProxyCommand=id"),
        ("namespace", "kube-system"),
    ] {
        let object = with(host("m1"), &format!("/spec/ssh/{field}"), json!(value));
        refused(&server, object, &format!("spec.ssh.{field}"), "unknown field").await?;
    }
    Ok(())
}

/// Keys become names of files: the API itself takes none that is a path.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_manifests_and_secrets_are_no_paths_row_29() -> Result<()> {
    let server = ApiServer::shared().await?;
    for kind in ["ConfigMap", "Secret"] {
        for key in [
            "../../etc/x",
            "/etc/x",
            "a/b",
            "..",
            ".",
            "a b",
            "a\n",
            "{{ x }}",
            "$(id)",
            "",
        ] {
            for field in ["data", "binaryData"] {
                let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "keys"}, field: {key: "eA=="}});
                let request =
                    http::Request::post(format!("/api/v1/namespaces/default/{}s", kind.to_lowercase()))
                        .header("content-type", "application/json")
                        .body(object.to_string().into_bytes())?;
                if kind == "Secret" && field == "binaryData" {
                    continue;
                }
                let refused = server.client().request_text(request).await;
                ensure!(refused.is_err(), "{kind} with {field} of key {key:?} was taken");
            }
        }
    }
    for name in ["../x", "a/b", "kube-system/x", "{{ x }}", "$(id)"] {
        let addons = with(
            deployment("demo"),
            "/spec/addons",
            json!({"manifestsRef": {"name": name}}),
        );
        refused(&server, addons, "spec.addons.manifestsRef.name", "should match").await?;
        let plugin = json!({"plugin": {"name": "manifests", "manifestsRef": {"name": name}}});
        let network = with(deployment("demo"), "/spec/networking", plugin);
        refused(
            &server,
            network,
            "spec.networking.plugin.manifestsRef.name",
            "should match",
        )
        .await?;
        let bastion = with(host("m1"), "/spec/ssh/bastionRef", json!({"name": name}));
        refused(&server, bastion, "spec.ssh.bastionRef.name", "should match").await?;
    }
    let elsewhere = json!({"name": "x", "namespace": "kube-system"});
    let addons = with(
        deployment("demo"),
        "/spec/addons",
        json!({"manifestsRef": elsewhere}),
    );
    refused(
        &server,
        addons,
        "spec.addons.manifestsRef.namespace",
        "unknown field",
    )
    .await?;
    let bastion = with(host("m1"), "/spec/ssh/bastionRef", elsewhere);
    refused(&server, bastion, "spec.ssh.bastionRef.namespace", "unknown field").await
}

/// Text in the other fields that end in a template, a file or a configuration.
#[tokio::test(flavor = "multi_thread")]
async fn free_text_reaches_no_template_through_other_fields_row_17() -> Result<()> {
    let server = ApiServer::shared().await?;
    for text in [
        "{{ lookup('pipe','touch canary') }}",
        "{% for %}",
        "$(touch canary)",
        "`touch canary`",
        "${IFS}",
        "!!python/object/apply:os.system",
        "!vault x",
        "&a [*a]",
        "a\nb",
        "a\u{0}b",
        "a\"b",
        "a'b",
        "\u{202e}x",
        "../../etc/x",
    ] {
        for (object, path, field) in [
            (
                deployment("demo"),
                "/spec/controlPlane/certSANs",
                "spec.controlPlane.certSANs[0]",
            ),
            (deployment("demo"), "/spec/preflight", "spec.preflight.ignore[0]"),
            (
                deployment("demo"),
                "/spec/networking",
                "spec.networking.dnsDomain",
            ),
            (
                deployment("demo"),
                "/spec/containerRuntime",
                "spec.containerRuntime.registryMirrors[0].prefix",
            ),
            (
                deployment("demo"),
                "/spec/workers/0/labels",
                "spec.workers[0].labels",
            ),
            (
                deployment("demo"),
                "/spec/workers/0/taints",
                "spec.workers[0].taints[0].value",
            ),
            (machine("m"), "/spec/labels", "spec.labels"),
            (host("m1"), "/spec/ssh/hostKeys", "spec.ssh.hostKeys[0]"),
            (host("m1"), "/spec/ssh/user", "spec.ssh.user"),
            (run("r"), "/spec/clusterName", "spec.clusterName"),
        ] {
            let value = match path.rsplit('/').next().unwrap_or_default() {
                "preflight" => json!({"ignore": [text]}),
                "networking" => json!({"dnsDomain": text}),
                "containerRuntime" => {
                    json!({"registryMirrors": [{"prefix": text, "endpoints": ["http://x.example"]}]})
                }
                "labels" => json!({"pool": text}),
                "taints" => json!([{"key": "a", "value": text, "effect": "NoSchedule"}]),
                "certSANs" | "hostKeys" => json!([text]),
                _ => json!(text),
            };
            refused(&server, with(object, path, value), field, "").await?;
        }
    }
    Ok(())
}
