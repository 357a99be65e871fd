use std::collections::BTreeMap;

use crds::inputs::{CredentialKind, Group, HostIdentity, RunInputs};
use crds::names::annotation;
use crds::step::{Intent, Role, Step};
use crds::{ClusterDeployment, Host, Machine, PlaybookRun};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{ClusterSeen, InputsObserved, InputsProblem, RegistrySeen, artifacts, build, secrets_needed};

fn object<K: DeserializeOwned>(text: &str) -> K {
    serde_yaml::from_str(text).unwrap()
}

fn host(name: &str, address: &str) -> Host {
    object(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}}}, spec: {{address: {address}, claimEpoch: 2, claimRef: {{kind: Machine, name: m, uid: machine-of-{name}}}, ssh: {{credentialsRef: {{name: fleet}}, hostKeys: [ssh-ed25519 AAAAAAAAAAAAAAAA]}}}}}}"
    ))
}

fn machine(name: &str, role: &str, host: &str, ordinal: u32) -> Machine {
    object(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, namespace: fleet, uid: machine-of-{host}, annotations: {{clusterwright.dev/ordinal: '{ordinal}'}}}}, spec: {{clusterName: a, role: {role}, hostRef: {{name: {host}}}, kubernetesVersion: 1.35.4, labels: {{pool: general}}, taints: [{{key: x, value: y, effect: NoSchedule}}, {{key: z, effect: NoExecute}}]}}, status: {{provisionedAt: '2026-01-01T00:00:00Z'}}}}"
    ))
}

fn deployment(spec: &str, status: &str) -> ClusterDeployment {
    object(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a, uid: 0123456789}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1}}, artifacts: {{url: 'http://x:8080/'}}, {spec}}}, status: {{{status}}}}}"
    ))
}

fn run(intent: &str, steps: &str, hosts: &str, more: &str) -> PlaybookRun {
    let cluster = if intent == "Probe" { "" } else { "clusterName: a, " };
    object(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r, namespace: fleet}}, spec: {{{cluster}intent: {intent}, steps: [{steps}], hosts: [{hosts}]{more}}}}}"
    ))
}

fn build_in(deployment: &ClusterDeployment, run: &PlaybookRun) -> Result<RunInputs, InputsProblem> {
    build_with(deployment, run, |_| {})
}

/// The same, after a change of the Hosts.
fn build_with(
    deployment: &ClusterDeployment,
    run: &PlaybookRun,
    change: impl FnOnce(&mut BTreeMap<String, Host>),
) -> Result<RunInputs, InputsProblem> {
    build_of(deployment, run, |hosts, _| change(hosts))
}

/// The same, after a change of the Hosts and Machines.
fn build_of(
    deployment: &ClusterDeployment,
    run: &PlaybookRun,
    change: impl FnOnce(&mut BTreeMap<String, Host>, &mut Vec<Machine>),
) -> Result<RunInputs, InputsProblem> {
    let hosts = [
        host("c1", "10.0.0.1"),
        host("c2", "10.0.0.2"),
        host("e1", "10.0.0.5"),
        host("w1", "w1.example"),
        host("leaving", "10.0.0.7"),
    ];
    let mut hosts: BTreeMap<String, Host> =
        hosts.into_iter().map(|host| (host.metadata.name.clone().unwrap(), host)).collect();
    hosts.get_mut("w1").unwrap().spec.internal_address = Some("10.0.0.9".into());
    hosts.insert("named".into(), host("named", "named.example"));
    let mut leaving = machine("m-l", "worker", "leaving", 2);
    leaving.metadata.deletion_timestamp = Some(object("2026-01-02T00:00:00Z"));
    let mut machines = vec![
        leaving,
        machine("m-b", "control-plane", "c2", 1),
        machine("m-z", "control-plane", "c1", 0),
        machine("m-e", "etcd", "e1", 0),
        machine("m-w", "worker", "w1", 0),
        machine("m-n", "worker", "named", 1),
    ];
    change(&mut hosts, &mut machines);
    let cluster = ClusterSeen {
        deployment,
        machines,
        ca_cert_hash: Some("sha256:00".into()),
        authorities: crate::rotation::Authorities::default(),
        etcd_client: None,
        artifacts: artifacts::ArtifactsSeen { login: Some(artifacts::Login::Bearer), ..Default::default() },
        registries: deployment
            .spec
            .container_runtime
            .registry_mirrors
            .iter()
            .map(|mirror| (mirror.prefix.clone(), RegistrySeen { ca: None, login: Some("digest".into()) }))
            .collect(),
        network_manifests: [("b".to_owned(), "B".to_owned()), ("a".to_owned(), "A".to_owned())].into(),
        configuration_files: BTreeMap::new(),
    };
    let credentials = [("fleet".to_owned(), Ok(CredentialKind::SshKey))].into();
    let cluster = run.spec.cluster_name.is_some().then_some(&cluster);
    build(&InputsObserved {
        plane: None,
        run,
        cluster,
        hosts: &hosts,
        credentials: &credentials,
        library: None,
        backup: None,
        restore: None,
    })
}

#[test]
fn an_install_knows_its_members_in_the_order_of_their_ordinals() {
    let deployment = deployment("", "firstControlPlane: c1");
    let model = build_in(&deployment, &run("Install", "etcd, control-plane", "c1, c2", "")).unwrap();
    let check = |name: &str, value: Value| assert_eq!(model.vars.get(name), Some(&value), "{name}");
    check("kube_control_plane_first", json!("c1"));
    check("kube_apiserver_endpoint", json!({"host": "10.0.0.1", "port": 6443}));
    check(
        "etcd_members",
        json!([
        {"name": "c1", "host": "c1", "peer_url": "https://10.0.0.1:2380", "client_url": "https://10.0.0.1:2379"},
        {"name": "c2", "host": "c2", "peer_url": "https://10.0.0.2:2380", "client_url": "https://10.0.0.2:2379"}]),
    );
    check("etcd_initial_cluster_state", json!("new"));
    check("etcd_cluster_token", json!("a-01234567"));
    // Not its name, which another may have, nor its authority, which it may share with what it was restored from.
    check("cluster_identity", json!(deployment.metadata.uid));
    check("control_plane_initialized", json!(false));
    check("artifacts_url", json!("http://x:8080"));
    check("addon_images", json!(false));
    check("network_manifests", json!([{"name": "a", "content": "A"}, {"name": "b", "content": "B"}]));
    check("supplementary_addresses_in_ssl_keys", json!(["10.0.0.1", "10.0.0.2"]));
    assert_eq!(model.hosts["c1"].groups, [Group::KubeControlPlane, Group::Etcd]);
    assert_eq!(model.hosts["c1"].claim_epoch, 2);
    let needed = secrets_needed(&model);
    assert!(needed.control_plane);
    assert_eq!(needed.join_hosts, ["c1".to_owned(), "c2".to_owned()].into());
    assert_eq!(needed.etcd_hosts, ["c1".to_owned(), "c2".to_owned()].into());
}

#[test]
fn machines_know_whether_their_cluster_has_kube_proxy_and_its_mode_alone_where_it_has() {
    for (mode, configuration, remove) in [
        ("mode: None", None, Some(json!(true))),
        ("mode: nftables", Some(json!({"mode": "nftables"})), None),
        ("", Some(json!({})), None),
    ] {
        let spec = format!("configuration: {{kubeProxy: {{{mode}}}}}");
        for (intent, steps, host) in [("Install", "control-plane, addons", "c1"), ("Join", "node, post-install", "w1")]
        {
            let deployment = deployment(&spec, "firstControlPlane: m-z");
            let vars = build_in(&deployment, &run(intent, steps, host, "")).unwrap().vars;
            assert_eq!(vars.get("kube_proxy_configuration"), configuration.as_ref(), "{mode}");
            assert_eq!(vars.get("kube_proxy_remove"), remove.as_ref(), "{mode}");
        }
    }
}

#[test]
fn a_join_works_on_its_own_host_and_knows_the_rest_from_status() {
    let deployment = deployment(
        "etcd: {topology: Dedicated, replicas: 1}, networking: {podCIDR: 10.1.0.0/16}",
        "firstControlPlane: m-z, installedAt: 2026-01-01T00:00:00Z",
    );
    let model = build_in(&deployment, &run("Join", "prepare, node", "w1", ", vars: {mine: 7}")).unwrap();
    assert_eq!(model.hosts.keys().collect::<Vec<_>>(), ["w1"]);
    let worker = &model.hosts["w1"];
    assert_eq!(worker.groups, [Group::KubeNode]);
    assert_eq!((worker.address.as_str(), &worker.vars["ip"]), ("w1.example", &json!("10.0.0.9")));
    assert_eq!(worker.vars["node_taints"], json!(["x=y:NoSchedule", "z:NoExecute"]));
    assert_eq!(worker.vars["node_labels"], json!({"pool": "general"}));
    assert_eq!(model.vars["mine"], json!(7));
    assert_eq!(model.vars["kube_control_plane_first"], json!("c1"));
    assert_eq!(model.vars["etcd_client_endpoints"], json!(["https://10.0.0.5:2379"]));
    assert_eq!(model.vars["etcd_initial_cluster_state"], json!("existing"));
    let needed = secrets_needed(&model);
    assert!(!needed.control_plane && needed.etcd_hosts.is_empty());
    assert_eq!(needed.join_hosts, ["w1".to_owned()].into());
}

#[test]
fn a_join_that_is_ahead_of_what_is_known_of_the_control_plane_waits_for_its_endpoint() {
    let deployment = deployment("", "firstControlPlane: m-z, installedAt: 2026-01-01T00:00:00Z");
    let join = run("Join", "prepare, node", "w1", "");
    let unknown = |deployment: &ClusterDeployment, run: &PlaybookRun| {
        build_of(deployment, run, |_, machines| {
            for machine in machines.iter_mut().filter(|machine| machine.spec.role == Role::ControlPlane) {
                machine.status = None;
            }
        })
    };
    let problem = unknown(&deployment, &join).unwrap_err();
    assert!(!problem.permanent && problem.message.contains("status.provisionedAt"), "{problem:?}");
    assert_eq!(problem.reason, crds::Reason::ControlPlaneMissing);
    assert!(build_in(&deployment, &join).unwrap().vars.contains_key("kube_apiserver_endpoint"));
    unknown(&deployment, &run("Remove", "reset", "leaving", "")).unwrap();
    // One that is given needs no machine.
    let mut deployment = deployment;
    deployment.spec.control_plane.endpoint = object("{host: api.example, port: 6443}");
    unknown(&deployment, &join).unwrap();
}

#[test]
fn a_probe_or_a_reset_gets_no_keys_of_a_cluster() {
    let deployment = deployment("", "");
    let check = |intent: &str, steps: &str| {
        let model = build_in(&deployment, &run(intent, steps, "leaving", "")).unwrap();
        assert_eq!(secrets_needed(&model), super::SecretsNeeded::default(), "{intent}");
    };
    check("Probe", "probe-host");
    check("Reset", "reset");
    check("Custom", "prepare");
    // A comparison looks what the bundle has, and no more.
    let model = build_in(&deployment, &run("Compare", "prepare, etcd, control-plane, node", "leaving", "")).unwrap();
    let login = super::SecretsNeeded { artifacts_login: true, ..super::SecretsNeeded::default() };
    assert_eq!(secrets_needed(&model), login);
}

#[test]
fn a_run_that_configures_the_container_runtime_gets_the_logins_of_mirrors_and_no_other_run() {
    let spec = "containerRuntime: {registryMirrors: [{prefix: 'r:5000', endpoints: ['https://m'], credentialsRef: {name: m}}]}";
    let deployment = deployment(spec, "");
    let check = |intent: &str, steps: &str, expected: &[&str]| {
        let model = build_in(&deployment, &run(intent, steps, "w1", "")).unwrap();
        assert_eq!(model.vars["containerd_registries_mirrors"][0]["login"], json!(super::login_key("r:5000")));
        assert_eq!(secrets_needed(&model).registry_logins, expected, "{intent}");
    };
    check("Configure", "container-runtime", &["r:5000"]);
    check("Join", "prepare, container-runtime, node", &["r:5000"]);
    check("Compare", "container-runtime", &["r:5000"]);
    check("Configure", "prepare", &[]);
    check("Compare", "prepare", &[]);
}

#[test]
fn a_run_that_goes_by_the_keys_of_secrets_gets_those_alone_and_a_worker_none() {
    let deployment = deployment("", "");
    let only = super::SecretsNeeded { encryption: true, ..super::SecretsNeeded::default() };
    let model = |host: &str| build_in(&deployment, &run("Configure", "rewrite-secrets", host, "")).unwrap();
    let restores =
        |host: &str| RunInputs { intent: Intent::Restore, steps: vec![Step::ReleaseControlPlane], ..model(host) };
    for (of_it, of_worker) in [(model("c1"), model("w1")), (restores("c1"), restores("w1"))] {
        assert_eq!(secrets_needed(&of_it), only, "{:?}", of_it.steps);
        assert_eq!(secrets_needed(&of_worker), super::SecretsNeeded::default(), "{:?}", of_it.steps);
    }
    let both = run("Configure", "certificate-authorities, rewrite-secrets", "c1", "");
    let needed = secrets_needed(&build_in(&deployment, &both).unwrap());
    assert!(needed.control_plane && !needed.encryption, "they are among all others");
}

#[test]
fn what_cannot_be_built_says_why() {
    let check = |spec: &str, run: PlaybookRun, reason: &str, permanent: bool| {
        let problem = build_in(&deployment(spec, ""), &run).unwrap_err();
        assert_eq!((problem.reason.as_str(), problem.permanent), (reason, permanent), "{}", problem.message);
    };
    check("", run("Custom", "prepare", "c1", ", vars: {ansible_connection: local}"), "ReservedVariable", true);
    check("", run("Custom", "prepare", "c1", ", vars: {hostvars: 1}"), "ReservedVariable", true);
    check("", run("Custom", "prepare", "c1", ", vars: {'a-b': 1}"), "InvalidVariable", true);
    let deep = format!(", vars: {{deep: {}1{}}}", "[".repeat(33), "]".repeat(33));
    check("", run("Custom", "prepare", "c1", &deep), "InvalidVariable", true);
    check("", run("Custom", "prepare", "stranger", ""), "HostNotInCluster", true);
    check("", run("Custom", "prepare", "named", ""), "InternalAddressMissing", false);
    check("", run("Probe", "probe-host", "stranger", ""), "HostNotFound", false);
}

#[test]
fn a_machine_whose_address_is_ipv6_waits_for_another_and_is_cleaned_all_the_same() {
    let deployment = deployment("", "");
    let at_ipv6 = |hosts: &mut BTreeMap<String, Host>| {
        for name in ["w1", "leaving"] {
            hosts.get_mut(name).unwrap().spec.internal_address = Some("2001:db8::1".into());
        }
    };
    let problem = build_with(&deployment, &run("Join", "node", "w1", ""), at_ipv6).unwrap_err();
    assert_eq!((problem.reason.as_str(), problem.permanent), ("AddressNotIPv4", false));
    assert!(problem.message.contains("Host w1") && problem.message.contains("internalAddress"));
    assert!(build_with(&deployment, &run("Reset", "reset", "leaving", ""), at_ipv6).is_ok());
}

#[test]
fn a_run_knows_how_to_log_in_to_the_artifact_source_and_gets_the_secret_for_it() {
    let mut deployment = deployment("", "");
    deployment.spec.artifacts.as_mut().unwrap().index_sha256 = Some("ab".repeat(32));
    let model = build_in(&deployment, &run("Join", "node", "w1", "")).unwrap();
    assert_eq!(model.vars["artifacts_login"], "Bearer");
    assert_eq!(model.vars["artifacts_index_sha256"], "ab".repeat(32));
    assert!(secrets_needed(&model).artifacts_login);
    let reset = build_in(&deployment, &run("Reset", "reset", "leaving", "")).unwrap();
    assert!(!secrets_needed(&reset).artifacts_login);
}

#[test]
fn without_a_bundle_a_run_that_provisions_is_told_where_upstream_has_what_and_what_may_be_taken() {
    let mut deployment = deployment("", "");
    let with_bundle = build_in(&deployment, &run("Join", "node", "w1", "")).unwrap();
    let has = |model: &RunInputs, name: &str| model.vars.contains_key(name);
    assert!(has(&with_bundle, "artifacts_url") && !has(&with_bundle, "artifacts_catalogue"));
    for artifacts in [json!(null), json!({})] {
        deployment.spec.artifacts = serde_json::from_value(artifacts).unwrap();
        let model = build_in(&deployment, &run("Join", "node", "w1", "")).unwrap();
        assert_eq!(model.vars["artifacts_catalogue"]["versions"]["1.35"]["etcd"], "3.6.16");
        assert!(!has(&model, "artifacts_url") && !has(&model, "artifacts_lock"));
        let reset = build_in(&deployment, &run("Reset", "reset", "leaving", "")).unwrap();
        assert!(!has(&reset, "artifacts_catalogue"));
    }
    deployment.spec.kubernetes_version = "1.33.1".parse().unwrap();
    let problem = build_in(&deployment, &run("Join", "node", "w1", "")).unwrap_err();
    assert_eq!((problem.reason.as_str(), problem.permanent), ("ArtifactSourceMissing", false));
}

#[test]
fn a_run_that_the_schema_should_have_refused_is_refused_before_anything_is_begun() {
    let refused = |run: &PlaybookRun, reason: &str, words: &str| {
        let problem = super::refused(run).unwrap();
        let found = (problem.reason.as_str(), problem.permanent, problem.retriable);
        assert_eq!(found, (reason, true, false), "{}", problem.message);
        assert!(problem.message.contains(words), "{}", problem.message);
        assert_eq!(build_in(&deployment("", ""), run), Err(problem));
    };
    let words = "step reset is not allowed in a run of intent Probe; allowed are: probe-host, probe-etcd";
    refused(&run("Probe", "reset", "w1", ""), "StepNotAllowed", words);
    let words = "step recover-etcd is not allowed in a run of intent Custom";
    refused(&run("Custom", "prepare, recover-etcd", "c1", ""), "StepNotAllowed", words);
    let words = "step prepare is not allowed in a run of intent Upgrade";
    refused(&run("Upgrade", "prepare", "c1", ""), "StepNotAllowed", words);
    let mut homeless = run("Custom", "prepare", "w1", "");
    homeless.spec.cluster_name = None;
    refused(&homeless, "ClusterNameMissing", "names the cluster of its Hosts");
}

#[test]
fn only_a_machine_that_leaves_its_cluster_is_reset() {
    let deployment = deployment("", "");
    for intent in ["Reset", "Remove"] {
        assert!(build_in(&deployment, &run(intent, "reset", "leaving", "")).is_ok());
        let problem = build_in(&deployment, &run(intent, "reset", "leaving, w1", "")).unwrap_err();
        let found = (problem.reason.as_str(), problem.permanent, problem.retriable);
        assert_eq!(found, ("MachineStays", true, false), "{}", problem.message);
        let command = "kubectl -n fleet delete machines.clusterwright.dev m-w";
        assert!(problem.message.ends_with(command), "{}", problem.message);
    }
    // Neither is a machine of another cluster, nor a spare one.
    for host in ["of-another", "spare"] {
        let problem = build_in(&deployment, &run("Reset", "reset", host, "")).unwrap_err();
        assert_eq!(problem.reason, "HostNotInCluster", "{host}");
    }
}

#[test]
fn bastions_in_a_ring_end() {
    let mut ring = host("a", "10.0.0.1");
    ring.spec.ssh.bastion_ref = Some(crds::references::LocalRef::new("a"));
    let hosts = [("a".to_owned(), ring.clone())].into();
    let credentials = [("fleet".to_owned(), Ok(CredentialKind::Password))].into();
    let problem = super::host_inputs(&ring, &hosts, &credentials, super::FirstKey::Believed).unwrap_err();
    assert_eq!(problem.reason, "BastionChainTooLong");
}

#[test]
fn a_run_that_outlived_its_machines_is_refused_for_good() {
    let deployment = deployment("", "");
    let marked = |targets: &str| {
        let mut run = run("Join", "node", "w1", "");
        run.metadata.annotations = Some([(annotation::MACHINES.to_owned(), targets.to_owned())].into());
        run
    };
    let refused = |run: &PlaybookRun, change: &dyn Fn(&mut Host), reason: &str| {
        let problem = build_with(&deployment, run, |hosts| change(hosts.get_mut("w1").unwrap())).unwrap_err();
        let found = (problem.reason.as_str(), problem.permanent, problem.retriable);
        assert_eq!(found, (reason, true, false), "{}", problem.message);
    };
    let ours = marked(r#"{"w1": {"uid": "machine-of-w1"}}"#);
    assert!(build_in(&deployment, &ours).is_ok());
    // The Machine was made anew, and holds the same Host.
    let older = marked(r#"{"w1": {"uid": "older"}}"#);
    refused(&older, &|_| {}, "MachineReplaced");
    refused(&marked(r#"{"w2": {"uid": "x"}}"#), &|_| {}, "MachineReplaced");
    // The Host belongs to another cluster's Machine by now, or to nobody; the Machine still names it.
    let anothers = |host: &mut Host| host.spec.claim_ref.as_mut().unwrap().uid = "of-another-cluster".into();
    refused(&ours, &anothers, "HostNotHeld");
    refused(&ours, &|host| host.spec.claim_ref = None, "HostNotHeld");
    // An administrator's run names no Machines.
    let custom = run("Custom", "prepare", "w1", "");
    assert!(build_in(&deployment, &custom).is_ok());
    refused(&custom, &anothers, "HostNotHeld");
}

#[test]
fn no_run_but_a_probe_believes_the_first_key_it_sees() {
    let deployment = deployment("", "");
    let trusting = |pinned: &[&str]| {
        let pinned: Vec<String> = pinned.iter().map(|key| (*key).to_owned()).collect();
        move |hosts: &mut BTreeMap<String, Host>| {
            let host = hosts.get_mut("c1").unwrap();
            host.spec.ssh.host_keys.clear();
            host.spec.ssh.host_key_policy = crds::host::HostKeyPolicy::TrustOnFirstUse;
            host.status = Some(crds::HostStatus { host_keys: pinned, ..crds::HostStatus::default() });
        }
    };
    let (probe, custom) = (run("Probe", "probe-host", "c1", ""), run("Custom", "prepare", "c1", ""));
    let keys = |run: &PlaybookRun, pinned: &[&str]| {
        build_with(&deployment, run, trusting(pinned)).map(|model| model.hosts["c1"].host_keys.clone())
    };
    assert_eq!(keys(&probe, &[]), Ok(vec![]));
    // What is read there is believed, so the machine is one that is known.
    let reads = run("Probe", "read-kubeconfig", "c1", "");
    for run in [&custom, &reads] {
        assert_eq!(keys(run, &[]).unwrap_err().reason, "HostKeyUnknown");
    }
    // Once there is a key, everybody is held to it.
    let pinned = Ok(vec!["ssh-ed25519 AAAA".to_owned()]);
    assert_eq!(keys(&probe, &["ssh-ed25519 AAAA"]), pinned);
    assert_eq!(keys(&custom, &["ssh-ed25519 AAAA"]), pinned);
    assert_eq!(keys(&reads, &["ssh-ed25519 AAAA"]), pinned);
}

#[test]
fn strict_without_keys_is_refused_before_anything_is_sent() {
    let deployment = deployment("", "");
    for (intent, step) in [("Probe", "probe-host"), ("Custom", "prepare")] {
        let problem = build_with(&deployment, &run(intent, step, "c1", ""), |hosts| {
            let host = hosts.get_mut("c1").unwrap();
            host.spec.ssh.host_keys.clear();
            // What was pinned under another policy counts for nothing.
            host.status =
                Some(crds::HostStatus { host_keys: vec!["ssh-ed25519 AAAA".into()], ..crds::HostStatus::default() });
        });
        assert_eq!(problem.unwrap_err().reason, "HostKeyUnknown");
    }
}

#[test]
fn a_bastion_is_passed_only_with_a_key_that_is_pinned() {
    let mut bastion = host("b", "10.0.0.8");
    bastion.spec.ssh.host_keys.clear();
    bastion.spec.ssh.host_key_policy = crds::host::HostKeyPolicy::TrustOnFirstUse;
    let mut behind = host("x", "10.0.0.9");
    behind.spec.ssh.bastion_ref = Some(crds::references::LocalRef::new("b"));
    let credentials = [("fleet".to_owned(), Ok(CredentialKind::SshKey))].into();
    let of = |bastion: &Host| {
        let hosts = [("b".to_owned(), bastion.clone())].into();
        super::host_inputs(&behind, &hosts, &credentials, super::FirstKey::Believed)
    };
    assert_eq!(of(&bastion).unwrap_err().reason, "HostKeyUnknown");
    bastion.status =
        Some(crds::HostStatus { host_keys: vec!["ssh-ed25519 AAAA".into()], ..crds::HostStatus::default() });
    assert_eq!(of(&bastion).unwrap().bastion.unwrap().host_keys, ["ssh-ed25519 AAAA"]);
}

fn identity(hosts: &mut BTreeMap<String, Host>, name: &str) -> HostIdentity {
    let identity =
        HostIdentity { host_keys: vec!["ssh-ed25519 AAAAAAAAAAAAAAAA".into()], machine_id: Some("0123".into()) };
    hosts.get_mut(name).unwrap().spec.identity = Some(identity.clone());
    identity
}

#[test]
fn a_run_is_told_which_machine_a_claimed_host_is() {
    let deployment = deployment("", "");
    let run = run("Join", "prepare, node", "w1", "");
    let mut expected = None;
    let model = build_with(&deployment, &run, |hosts| expected = Some(identity(hosts, "w1"))).unwrap();
    assert_eq!(model.hosts["w1"].identity, expected);
    let text = serde_json::to_value(&model).unwrap();
    assert_eq!(
        text["hosts"]["w1"]["identity"],
        json!({"hostKeys": ["ssh-ed25519 AAAAAAAAAAAAAAAA"], "machineID": "0123"})
    );
    let without = build_in(&deployment, &run).unwrap();
    assert!(serde_json::to_value(&without).unwrap()["hosts"]["w1"].get("identity").is_none());
}

#[test]
fn a_run_brings_the_comparisons_of_its_cluster_to_the_machines_that_it_works_on() {
    let status = "lastToken: 9, comparisons: [{since: '2026-05-01T00:00:00Z', lastToken: 7}]";
    let join = run("Join", "prepare, node", "w1", "");
    let hosts = |status: &str| serde_json::to_value(build_in(&deployment("", status), &join).unwrap()).unwrap();
    let expected = json!([{"since": "2026-05-01T00:00:00Z", "lastToken": 7}]);
    assert_eq!(hosts(status)["hosts"]["w1"]["comparisons"], expected);
    assert!(hosts("lastToken: 9")["hosts"]["w1"].get("comparisons").is_none());
}

#[test]
fn a_fence_works_on_a_host_that_this_cluster_gave_up_and_on_no_other() {
    let cluster = deployment("", "lastToken: 9, comparisons: [{since: '2026-05-01T00:00:00Z', lastToken: 7}]");
    let fence = run("Remove", "fence", "back", ", vars: {fence_claim_epoch: 2}");
    let check = |deployment: &ClusterDeployment, run: &PlaybookRun, change: &dyn Fn(&mut Host)| {
        let mut expected = None;
        let built = build_with(deployment, run, |hosts| {
            let mut host = host("back", "10.0.0.7");
            host.spec.claim_ref = None;
            host.spec.quarantine = Some(object(
                "{reason: ForceRemoved, message: m, machine: m, since: '2026-01-01T00:00:00Z', fence: {claimEpoch: 2, clusterUID: '0123456789'}}",
            ));
            change(&mut host);
            hosts.insert("back".into(), host);
            expected = Some(identity(hosts, "back"));
        });
        let is_told = |model: &RunInputs| !model.hosts["back"].comparisons.is_empty();
        assert!(!built.as_ref().is_ok_and(is_told), "it names the claim that must have left the machine");
        built
            .map(|model| (model.hosts["back"].identity == expected, model.hosts["back"].claim_epoch))
            .map_err(|problem| problem.reason.as_str())
    };
    assert_eq!(check(&cluster, &fence, &|_| {}), Ok((true, 2)));
    let refused = Err("NotToBeFenced");
    let claimed = |host: &mut Host| {
        host.spec.claim_ref = Some(object("{kind: Machine, name: m, uid: u}"));
    };
    assert_eq!(check(&cluster, &fence, &claimed), refused);
    assert_eq!(check(&cluster, &fence, &|host| host.spec.claim_epoch = 3), refused);
    assert_eq!(check(&cluster, &fence, &|host| host.spec.quarantine = None), refused);
    let other = run("Remove", "fence", "back", ", vars: {fence_claim_epoch: 1}");
    assert_eq!(check(&cluster, &other, &|_| {}), refused);
    let beside = run("Remove", "fence, reset", "back", ", vars: {fence_claim_epoch: 2}");
    assert_eq!(check(&cluster, &beside, &|_| {}), refused);
    let custom = run("Custom", "fence", "back", ", vars: {fence_claim_epoch: 2}");
    assert_eq!(check(&cluster, &custom, &|_| {}), Err("StepNotAllowed"));
    let never = deployment("machineRemoval: {fenceReturned: Never}", "");
    assert_eq!(check(&never, &fence, &|_| {}), refused);
    let mut another = deployment("", "");
    another.metadata.uid = Some("another".into());
    assert_eq!(check(&another, &fence, &|_| {}), refused);
}

#[test]
fn machines_get_the_version_whose_rollout_has_begun_and_not_one_that_may_be_taken_back() {
    let edited = deployment("", "installedAt: '2026-01-01T00:00:00Z', startedKubernetesVersion: 1.35.3");
    let model = build_in(&edited, &run("Join", "node", "w1", "")).unwrap();
    assert_eq!(model.vars["kube_version"], "1.35.3");
    let new = deployment("", "");
    let model = build_in(&new, &run("Install", "control-plane", "c1", "")).unwrap();
    assert_eq!(model.vars["kube_version"], "1.35.4");
}

#[test]
fn a_cluster_with_an_external_etcd_has_its_endpoints_and_no_member() {
    let spec = "etcd: {topology: External, endpoints: ['https://e:2379'], secretRef: {name: s}, prefix: /a}";
    let model = build_in(&deployment(spec, ""), &run("Install", "preflight, control-plane", "c1, c2", "")).unwrap();
    let check = |name: &str, value: Value| assert_eq!(model.vars.get(name), Some(&value), "{name}");
    check("etcd_topology", json!("external"));
    check("etcd_members", json!([]));
    check("etcd_client_endpoints", json!(["https://e:2379"]));
    check("etcd_prefix", json!("/a"));
    assert_eq!(model.hosts["c1"].groups, [Group::KubeControlPlane]);
}

#[test]
fn only_control_planes_that_look_for_an_external_etcd_or_use_it_get_its_clients_key() {
    let spec = "etcd: {topology: External, endpoints: ['https://e:2379'], secretRef: {name: s}}";
    let check = |spec: &str, intent: &str, steps: &str, host: &str, expected: bool| {
        let model = build_in(&deployment(spec, ""), &run(intent, steps, host, "")).unwrap();
        let needed = secrets_needed(&model);
        assert_eq!(needed.etcd_client, expected, "{spec} {steps} {host}");
        assert!(needed.etcd_hosts.is_empty() || spec.is_empty());
    };
    check(spec, "Install", "preflight, control-plane", "c1", true);
    check(spec, "Join", "control-plane", "c1", true);
    check(spec, "Custom", "preflight", "c1", true);
    check(spec, "Custom", "prepare", "c1", false);
    check(spec, "Custom", "etcd-endpoints", "c1", true);
    check("", "Custom", "etcd-endpoints", "c1", false);
    check(spec, "Join", "preflight, node", "w1", false);
    check(spec, "Probe", "probe-host", "c1", false);
    check("", "Install", "preflight, control-plane", "c1", false);
}

#[test]
fn what_is_configured_alike_on_all_hosts_of_a_run_is_said_once() {
    let deployment = deployment("configuration: {kubelet: {maxPods: 50}, machine: {kernelModules: [ip_vs]}}", "");
    let built = |hosts: &str, more: &str| build_in(&deployment, &run("Custom", "prepare", hosts, more)).unwrap();
    let (kubelet, machine) = (json!({"maxPods": 50}), json!({"kernelModules": ["ip_vs"]}));
    let model = built("c1, w1", "");
    assert_eq!((&model.vars["kubelet_settings"], &model.vars["machine_settings"]), (&kubelet, &machine));
    assert!(model.hosts.values().all(|host| !host.vars.contains_key("kubelet_settings")));
    let model = built("c1, e1", "");
    assert_eq!((model.vars.get("kubelet_settings"), &model.vars["machine_settings"]), (None, &machine));
    assert_eq!(model.hosts["c1"].vars["kubelet_settings"], kubelet, "a machine of etcd has no kubelet");
    let model = built("c1", ", vars: {kubelet_settings: {}}");
    assert_eq!(model.vars["kubelet_settings"], json!({}), "whoever makes a run of their own says what it does");
}
