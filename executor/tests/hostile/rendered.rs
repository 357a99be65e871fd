//! The results of the roles for hostile variables: every template, file and argument in which text of a user ends.

use serde_json::{Value, json};

/// Renders them all on the controller and writes them down.
pub fn playbook(roles: &str) -> String {
    let roles_loaded = [
        "containerd",
        "kubelet",
        "control_plane_configuration",
        "secrets_encryption",
        "control_plane",
        "etcd",
        "preflight",
        "prepare",
    ];
    let load: String = roles_loaded
        .iter()
        .map(|role| format!("  - ansible.builtin.include_vars: {{file: {roles}/{role}/vars/main.yml}}\n"))
        .collect();
    let names = [
        "containerd_mirror_files",
        "containerd_programs",
        "containerd_images",
        "containerd_unit",
        "kubelet_label_text",
        "kubelet_taints",
        "kubelet_join_configuration",
        "control_plane_cluster_configuration",
        "control_plane_init",
        "etcd_environment",
        "preflight_artifacts",
        "prepare_cluster",
        "network_manifests",
        "preflight_ignore",
        "artifacts_url",
    ];
    let all: Vec<String> = names.iter().map(|name| format!("'{name}': {name}")).collect();
    format!(
        "
- hosts: all
  gather_facts: false
  roles: [clusterwright.cluster.variables]
  tasks:
  - clusterwright.cluster.host_info: {{report: facts}}
{load}  - name: Render for {{{{ cluster_name }}}}
    clusterwright.cluster.write:
      files:
      - path: '{{{{ out }}}}'
        content: \"{{{{ {{'hosts_line': access_ip ~ ' ' ~ kube_override_hostname, {}}} | to_json }}}}\"
",
        all.join(", ")
    )
}

/// Every variable of the model that a user's text may be in, each with it.
pub fn variables(text: &str) -> (Value, Value) {
    let manifests = json!([{"name": text, "content": text}]);
    let run = json!({
        "cluster_name": text, "dns_domain": text, "kube_pods_subnet": text, "kube_service_addresses": text, "kube_version": text,
        "kube_apiserver_endpoint": {"host": text, "port": 6443}, "supplementary_addresses_in_ssl_keys": [text],
        "kube_ca_cert_hash": text, "kube_control_plane_first": text, "control_plane_initialized": false, "etcd_topology": "dedicated",
        "etcd_members": [{"name": "m", "host": text, "peer_url": text, "client_url": text}], "etcd_client_endpoints": [text],
        "etcd_cluster_token": text, "containerd_registries_mirrors": [{"prefix": text, "mirrors": [{"host": text, "capabilities": [text]}]}],
        "artifacts_url": text, "network_manifests": manifests, "preflight_ignore": [text],
        "containerd_version": text, "etcd_version": text, "bin_dir": text, "kube_image_repo": text, "smoke_test_image": text,
        "kube_apiserver_extra_args": [{"name": "v", "value": text}],
        "kubelet_installed": {"versions": {(format!("{text}/coredns/coredns")): text}},
    });
    let host = json!({"ip": text, "access_ip": text, "kube_override_hostname": text, "etcd_member_name": "m",
        "node_labels": {text: text}, "node_taints": [format!("{text}={text}:NoSchedule")]});
    (run, host)
}

/// Compares what was rendered: the text stands in it as it is.
pub fn assert_literal(rendered: &Value, text: &str) {
    let check = |pointer: &str, expected: Value| {
        assert_eq!(rendered.pointer(pointer), Some(&expected), "{pointer}");
    };
    check("/hosts_line", json!(format!("{text} {text}")));
    check("/containerd_mirror_files/0/path", json!(format!("/etc/containerd/certs.d/{text}/hosts.toml")));
    let mirror = format!(
        "# Written by clusterwright.\n[host.{0}]\n  capabilities = [{0}]\n  skip_verify = false\n",
        Value::from(text)
    );
    check("/containerd_mirror_files/0/content", json!(mirror));
    check("/containerd_programs/0/version", json!(text));
    check("/containerd_programs/0/directory", json!(text));
    check("/containerd_images/2/name", json!(format!("{text}/kube-proxy")));
    contains(rendered, "/containerd_unit", &format!("ExecStart={text}/containerd\n"));
    check("/kubelet_label_text", json!(format!("{text}={text}")));
    check("/kubelet_taints/0", json!({"key": text, "value": text, "effect": "NoSchedule"}));
    check("/kubelet_join_configuration/nodeRegistration/name", json!(text));
    check("/kubelet_join_configuration/discovery/bootstrapToken/apiServerEndpoint", json!(format!("{text}:6443")));
    let cluster = "/control_plane_cluster_configuration";
    check(&format!("{cluster}/clusterName"), json!(text));
    check(&format!("{cluster}/kubernetesVersion"), json!(format!("v{text}")));
    check(&format!("{cluster}/networking"), json!({"podSubnet": text, "serviceSubnet": text, "dnsDomain": text}));
    check(&format!("{cluster}/etcd/external/endpoints"), json!([text]));
    check(&format!("{cluster}/apiServer/certSANs"), json!([text]));
    check(&format!("{cluster}/dns/imageTag"), json!(text));
    let arguments = rendered.pointer(&format!("{cluster}/apiServer/extraArgs")).and_then(Value::as_array).unwrap();
    assert_eq!(arguments.last(), Some(&json!({"name": "v", "value": text})));
    let init = rendered["control_plane_init"].as_str().unwrap();
    let documents: Vec<Value> = init.split("\n---\n").map(|part| serde_json::from_str(part).unwrap()).collect();
    assert_eq!(documents[0]["localAPIEndpoint"]["advertiseAddress"], text);
    assert_eq!(documents[1], rendered["control_plane_cluster_configuration"]);
    contains(rendered, "/etcd_environment", &format!("\nETCD_ADVERTISE_CLIENT_URLS={text}\n"));
    contains(rendered, "/etcd_environment", &format!(",https://{text}:2379\n"));
    check("/prepare_cluster", json!({"identity": text, "name": text, "pod_cidr": text}));
    check("/network_manifests", json!([{"name": text, "content": text}]));
    check("/preflight_ignore", json!([text]));
    check("/artifacts_url", json!(text));
}

fn contains(rendered: &Value, pointer: &str, part: &str) {
    let whole = rendered.pointer(pointer).and_then(Value::as_str).unwrap();
    assert!(whole.contains(part), "{part:?} is not in {whole}");
}
