//! What holds for objects of several kinds: names, labels and taints, references, and that text stays text.

use anyhow::{Result, ensure};
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{
    Admitted, check, deployment, host, machine, machine_set, many_fields, object, refused, refused_at, run, with,
};

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn names_that_cannot_be_a_job_or_a_node_are_refused_rows_3_and_12() -> Result<()> {
    let server = ApiServer::shared().await?;
    let name = "metadata.name";
    for object in [deployment("demo"), host("m1"), machine_set("s"), machine("m"), run("r")] {
        let names = json!(["a".repeat(64), "Demo", "demo.", "de.mo", "-demo", "demo-", "de_mo", "de mo", ""]);
        check(&server, [(3, "no name of a Job", object, name, names, refused(""))]).await?;
    }
    let patterns = || json!([
        "*", "!x", "n[1:200000]", "a,b", "10.0.0.1:2222", "-oProxyCommand=id", "a b", "a\nb", "a\u{0}b", "😀",
        "a\u{202e}b", "x/../y",
    ]);
    let cluster = || deployment("demo");
    let set = "spec.workers[0].name";
    check(&server, [
        (3, "too long", cluster(), name, json!(["a".repeat(33)]), refused("at most 32 characters")),
        (3, "a digit", cluster(), name, json!(["1a"]), refused("begins with a letter")),
        (3, "taken", cluster(), set, json!(["control-plane", "etcd"]), refused("names of other sets")),
        (12, "taken", host("m1"), name, json!(["localhost", "all", "ungrouped", "etcd"]), refused("Ansible")),
        (12, "a pattern", host("m1"), name, patterns(), refused("")),
        (12, "a pattern", run("r"), "spec.hosts[0]", patterns(), refused("should match")),
        (12, "a pattern", cluster(), "spec.controlPlane.hosts[0]", patterns(), refused("should match")),
        (12, "a pattern", cluster(), "spec.workers[0].hosts[0]", patterns(), refused("should match")),
        (12, "a pattern", cluster(), set, patterns(), refused("should match")),
    ]).await
}

/// Text in the other fields that end in a template, a file or a configuration.
#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn free_text_reaches_no_template_through_other_fields_row_17() -> Result<()> {
    let text = || json!([
        "{{ lookup('pipe','touch canary') }}", "{% for %}", "$(touch canary)", "`touch canary`", "${IFS}",
        "!!python/object/apply:os.system", "!vault x", "&a [*a]", "a\nb", "a\u{0}b", "a\"b", "a'b", "\u{202e}x",
        "../../etc/x",
    ]);
    let cluster = || deployment("demo");
    let mirrors = "spec.containerRuntime.registryMirrors";
    let mirrored = with(cluster(), mirrors, json!([{ "endpoints": ["http://x.example"] }]));
    let taint = json!([{ "key": "a", "effect": "NoSchedule" }]);
    let tainted = with(cluster(), "spec.workers[0].taints", taint);
    check(&ApiServer::shared().await?, [
        (17, "a name", cluster(), "spec.controlPlane.certSANs[0]", text(), refused("")),
        (17, "a check", cluster(), "spec.preflight.ignore[0]", text(), refused("")),
        (17, "a domain", cluster(), "spec.networking.dnsDomain", text(), refused("")),
        (17, "a registry", mirrored, "spec.containerRuntime.registryMirrors[0].prefix", text(), refused("")),
        (17, "a label", cluster(), "spec.workers[0].labels.pool", text(), refused_at("spec.workers[0].labels", "")),
        (17, "a taint", tainted, "spec.workers[0].taints[0].value", text(), refused("")),
        (17, "a label", machine("m"), "spec.labels.pool", text(), refused_at("spec.labels", "")),
        (17, "a key", host("m1"), "spec.ssh.hostKeys[0]", text(), refused("")),
        (17, "a user", host("m1"), "spec.ssh.user", text(), refused("")),
        (17, "a cluster", run("r"), "spec.clusterName", text(), refused("")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn references_stay_in_their_namespace_row_22() -> Result<()> {
    let names = || json!(["../x", "kube-system/x", "", "X", "a b", ".x"]);
    let elsewhere = || json!(["kube-system"]);
    let cluster = || object("Cluster", "demo", json!({ "kubeconfigRef": { "name": "x" } }));
    check(&ApiServer::shared().await?, [
        (22, "no name", host("m1"), "spec.ssh.credentialsRef.name", names(), refused("")),
        (22, "elsewhere", host("m1"), "spec.ssh.credentialsRef.namespace", elsewhere(), refused("unknown field")),
        (22, "no name", cluster(), "spec.kubeconfigRef.name", names(), refused("")),
        (22, "elsewhere", cluster(), "spec.kubeconfigRef.namespace", elsewhere(), refused("unknown field")),
    ]).await
}

/// There is no field for text that a shell or a component's command line would read.
#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn there_is_no_field_for_free_arguments_and_hooks_row_28() -> Result<()> {
    let server = ApiServer::shared().await?;
    for field in [
        "extraArgs", "kubeletExtraArgs", "apiServerExtraArgs", "hooks", "preInstall", "postInstall", "env", "command",
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
            // A cluster's hooks are names of playbooks, and no text.
            let named = field == "hooks" && parent == "spec" && object["kind"] == "ClusterDeployment";
            let why = if named { "must be of type object" } else { "unknown field" };
            let (field, text) = (format!("{parent}.{field}"), json!(["; touch canary"]));
            check(&server, [(28, "a hook", object, &field, text, refused(why))]).await?;
        }
    }
    check(&server, [
        (28, "a command", host("m1"), "spec.ssh.proxyCommand", json!(["sh -c id"]), refused("unknown field")),
        (28, "options", host("m1"), "spec.ssh.extraArgs", json!(["-o ProxyCommand=id"]), refused("unknown field")),
        (28, "elsewhere", host("m1"), "spec.ssh.namespace", json!(["kube-system"]), refused("unknown field")),
    ]).await
}

/// Keys become names of files: the API itself takes none that is a path.
#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn keys_of_manifests_and_secrets_are_no_paths_row_29() -> Result<()> {
    let server = ApiServer::shared().await?;
    for (kind, field) in [("ConfigMap", "data"), ("ConfigMap", "binaryData"), ("Secret", "data")] {
        for key in ["../../etc/x", "/etc/x", "a/b", "..", ".", "a b", "a\n", "{{ x }}", "$(id)", ""] {
            let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "keys"}, field: {key: "eA=="}});
            let request = http::Request::post(format!("/api/v1/namespaces/default/{}s", kind.to_lowercase()))
                .header("content-type", "application/json")
                .body(object.to_string().into_bytes())?;
            let refused = server.client().request_text(request).await;
            ensure!(refused.is_err(), "{kind} with {field} of key {key:?} was taken");
        }
    }
    let cluster = || deployment("demo");
    let (addons, bastion) = ("spec.addons.manifestsRef.name", "spec.ssh.bastionRef.name");
    let network = with(cluster(), "spec.networking.plugin.name", json!("manifests"));
    let plugin = "spec.networking.plugin.manifestsRef.name";
    let names = || json!(["../x", "a/b", "kube-system/x", "{{ x }}", "$(id)"]);
    let elsewhere = || json!([{ "name": "x", "namespace": "kube-system" }]);
    check(&server, [
        (29, "a path", cluster(), addons, names(), refused("should match")),
        (29, "a path", network, plugin, names(), refused("should match")),
        (29, "a path", host("m1"), bastion, names(), refused("should match")),
        (22, "elsewhere", cluster(), "spec.addons.manifestsRef", elsewhere(),
            refused_at("spec.addons.manifestsRef.namespace", "unknown field")),
        (22, "elsewhere", host("m1"), "spec.ssh.bastionRef", elsewhere(),
            refused_at("spec.ssh.bastionRef.namespace", "unknown field")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn labels_and_taints_follow_their_grammar_row_40() -> Result<()> {
    let server = ApiServer::shared().await?;
    let long = "a".repeat(64);
    let reserved = ["kubernetes.io/x", "kubernetes.io/hostname", "cloud.kubernetes.io/x", "k8s.io/x", "a.k8s.io/x"];
    let reserved_taints = ["node-role.kubernetes.io/control-plane", "node.kubernetes.io/x", "k8s.io/x", "a.k8s.io/x"];
    let kubelets = ["kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/arch"];
    let roles = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/worker"];
    let owned = [
        "clusterwright.dev/taints-from-machine", "node.alpha.kubernetes.io/ttl", "csi.volume.kubernetes.io/nodeid",
        "volumes.kubernetes.io/controller-managed-attach-detach",
    ];
    let right_annotation = || json!([{
        "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true", "example.com/text": "{{ any: [text] }}",
    }]);
    let keys = ["", "-a", "a b", "a/b/c", "A/b", "a/", "/a", "ä", &long];
    let values = ["-a", "a b", "ä", "a\n", &long];
    let each = |keys: &[&str]| -> Value { keys.iter().map(|key| json!({ *key: "x" })).collect() };
    let right = || json!([
        { "pool": "general", "example.com/rack": "r1", "empty": "" },
        { "topology.kubernetes.io/zone": "dc1-a", "node-role.kubernetes.io/ingress": "",
          "node.kubernetes.io/exclude-from-external-load-balancers": "" },
    ]);
    let right_taint = || json!([{ "key": "example.com/gpu", "value": "big", "effect": "NoExecute" }]);
    for (object, at) in [
        (deployment("demo"), "spec.workers[0]"), (deployment("demo"), "spec.controlPlane"),
        (machine_set("s"), "spec.template"), (machine("m"), "spec"),
    ] {
        let (labels, taint) = (format!("{at}.labels"), format!("{at}.taints[0]"));
        let annotations = format!("{at}.annotations");
        let labelled = || object.clone();
        let tainted = || with(object.clone(), &taint, json!({ "key": "a", "effect": "NoSchedule" }));
        check(&server, [
            (40, "reserved", labelled(), &labels, each(&reserved), refused("reserved for Kubernetes")),
            (40, "a component's", labelled(), &labels, each(&kubelets), refused("the kubelet sets kubernetes.io/hostname")),
            (40, "a role", labelled(), &labels, each(&roles), refused("follow from the machine's role")),
            (40, "a component's", labelled(), &annotations, each(&owned), refused("leave them out")),
            (40, "no keys", labelled(), &annotations, each(&keys), refused("")),
            (40, "too long", labelled(), &format!("{annotations}.a"), json!(["x".repeat(513)]), refused("512")),
            (40, "too many", labelled(), &annotations, json!([many_fields(33)]), refused("at most 32")),
            (40, "right", labelled(), &annotations, right_annotation(), Admitted),
            (40, "no keys", labelled(), &labels, each(&keys), refused("")),
            (40, "no values", labelled(), &format!("{labels}.pool"), json!(values), refused("")),
            (40, "too many", labelled(), &labels, json!([many_fields(1000)]), refused("at most 64")),
            (40, "right", labelled(), &labels, right(), Admitted),
            (40, "reserved", tainted(), &format!("{taint}.key"), json!(reserved_taints), refused("reserved for Kubernetes")),
            (40, "no keys", tainted(), &format!("{taint}.key"), json!(keys), refused("")),
            (40, "no values", tainted(), &format!("{taint}.value"), json!(values), refused("")),
            (40, "no effect", tainted(), &format!("{taint}.effect"), json!(["Evict"]), refused("Unsupported value")),
            (40, "right", tainted(), &taint, right_taint(), Admitted),
        ]).await?;
    }
    Ok(())
}
