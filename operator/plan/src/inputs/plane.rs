//! The variables of a run on machines of a Karmada control plane: who the plane is, where its API and its etcd are, and
//! what its planner has asked for on each Host.

use std::collections::BTreeMap;

use crds::cluster_deployment::EtcdTopology;
use crds::inputs::{Group, HostInputs};
use crds::networking::PLANE_API_SERVER_PORT;
use crds::step::{Role, Step};
use crds::{ClusterKind, Host, Machine, ObjectExt, PlaybookRun, Reason};
use serde_json::{Map, Value, json};

use super::artifacts;
use super::endpoint::{backends_at, of_endpoint};
use super::host::own_address;
use super::observed::PlaneMachines;
use super::problem::InputsProblem;
use super::variables::{Seat, etcd_variables, machines_in_order, only_ipv4, stands};
use crate::certificates::RenewalPolicy;
use crate::karmada_deployment::{Component, Release, machines};
use crate::store::comparisons;

/// The variable by which playbooks tell planes from clusters.
const CLUSTER_KIND: &str = "cluster_kind";
/// The variable of the programs that machines are to have, and the steps that read it.
const PROGRAMS: (&str, [Step; 2]) = ("karmada_programs", [Step::Preflight, Step::KarmadaPrograms]);
/// The variable of a machine's services, and the steps that read it.
const SERVICES: (&str, [Step; 3]) = ("karmada_parts", [Step::ProbeKarmada, Step::RestartServices, Step::Reboot]);
/// The variable of a run that has variables of its Hosts, by their names.
const OF_HOSTS: &str = "karmada_hosts";

/// Variables of all hosts of a run.
pub(super) fn variables(
    plane: &PlaneMachines<'_>,
    hosts: &BTreeMap<String, Host>,
    run: &PlaybookRun,
) -> Result<BTreeMap<String, Value>, InputsProblem> {
    if run.spec.intent.spec().effect.needs_wanted() {
        only_ipv4(hosts, run)?;
    }
    let (object, binary) = (plane.object, plane.binary);
    let counted = |machine: &Machine| {
        let host = machine.spec.host_ref.as_ref();
        !plane.is_installed() || stands(machine) || host.is_some_and(|host| run.spec.hosts.contains(&host.name))
    };
    let control_planes = machines_in_order(&plane.machines, Role::ControlPlane, hosts, counted);
    let addresses: Vec<&str> = control_planes.iter().map(|seat| seat.address).collect();
    let mut vars = identity(plane);
    vars.extend(etcd(plane, &control_planes, &machines_in_order(&plane.machines, Role::Etcd, hosts, counted)));
    vars.extend(artifacts::variables(Some(&binary.artifacts), &plane.artifacts));
    let url = binary.artifacts.url.as_deref().unwrap_or_default().trim_end_matches('/');
    vars.insert("artifacts_url".to_owned(), json!(url));
    let packages = artifacts::packages(Some(&binary.artifacts), &plane.artifacts)?;
    vars.insert("artifacts_packages_key".to_owned(), packages);
    vars.extend(of_endpoint(binary.endpoint.as_ref(), &addresses, hosts));
    if let Some(backends) = vars.get_mut("kube_apiserver_backends") {
        *backends = backends_at(&addresses, PLANE_API_SERVER_PORT);
    }
    let endpoint = match &binary.endpoint {
        Some(endpoint) => Some((endpoint.host.as_str(), endpoint.port)),
        None => addresses.first().map(|address| (*address, PLANE_API_SERVER_PORT)),
    };
    let endpoint = endpoint.map(|(host, port)| json!({ "host": host, "port": port }));
    vars.extend(endpoint.map(|endpoint| ("kube_apiserver_endpoint".to_owned(), endpoint)));
    if let Some(release) = Release::wanted(&object.spec) {
        let version = Component::ApiServer.version(&object.spec, release);
        vars.insert("kube_version".to_owned(), json!(version));
        if has_any(run, &PROGRAMS.1) {
            vars.insert(PROGRAMS.0.to_owned(), machines::programs(object, release));
        }
    }
    Ok(vars)
}

fn has_any(run: &PlaybookRun, steps: &[Step]) -> bool {
    steps.iter().any(|step| run.spec.steps.contains(step))
}

fn identity(plane: &PlaneMachines<'_>) -> BTreeMap<String, Value> {
    let object = plane.object;
    let renewal = RenewalPolicy::from(&object.spec.certificates);
    let kind = ClusterKind::KarmadaDeployment.as_str();
    [
        (CLUSTER_KIND, json!(kind)),
        ("cluster_name", json!(object.name())),
        ("cluster_identity", json!(object.uid())),
        // Its own machines hold the endpoint's address by now.
        ("control_plane_initialized", json!(plane.is_installed())),
        ("certificate_validity_seconds", json!(renewal.validity.as_secs())),
        ("certificate_renew_before_seconds", json!(renewal.refresh_before().as_secs())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn etcd(plane: &PlaneMachines<'_>, control_planes: &[Seat<'_>], dedicated: &[Seat<'_>]) -> BTreeMap<String, Value> {
    let object = plane.object;
    let (name, uid, topology) = (object.name(), object.uid(), object.spec.etcd_topology());
    let state = if plane.is_installed() { "existing" } else { "new" };
    let mut vars = BTreeMap::from([
        ("etcd_topology".to_owned(), json!(format!("{topology:?}").to_lowercase())),
        ("etcd_cluster_token".to_owned(), json!(format!("{name}-{}", uid.get(..8).unwrap_or(uid)))),
        ("etcd_initial_cluster_state".to_owned(), json!(state)),
    ]);
    vars.extend(match topology {
        EtcdTopology::Stacked => etcd_variables(control_planes),
        EtcdTopology::Dedicated => etcd_variables(dedicated),
        EtcdTopology::External => {
            let external = object.spec.etcd.external.as_ref();
            let endpoints = external.map(|etcd| etcd.endpoints.as_slice()).unwrap_or_default();
            [("etcd_members", json!([])), ("etcd_client_endpoints", json!(endpoints))]
                .map(|(name, value)| (name.to_owned(), value))
                .into()
        }
    });
    vars
}

/// Puts the host where its machine stands in the plane.
pub(super) fn place(
    inputs: &mut HostInputs,
    run: &PlaybookRun,
    (host, machine): (&Host, &Machine),
    plane: &PlaneMachines<'_>,
) -> Result<(), InputsProblem> {
    let address = own_address(host)?;
    let status = plane.object.status.as_ref();
    inputs.comparisons = status.map(|status| comparisons::of_host(host, status)).unwrap_or_default();
    inputs.groups = match (machine.spec.role, plane.object.spec.etcd_topology()) {
        (Role::ControlPlane, EtcdTopology::Stacked) => vec![Group::KarmadaControlPlane, Group::Etcd],
        (Role::ControlPlane, EtcdTopology::Dedicated | EtcdTopology::External) => vec![Group::KarmadaControlPlane],
        (Role::Etcd, _) => vec![Group::Etcd],
        // The schema refuses it.
        (Role::Worker, _) => Vec::new(),
    };
    let member = inputs.groups.contains(&Group::Etcd).then(|| ("etcd_member_name", json!(host.name())));
    let vars = [("ip", json!(address)), ("access_ip", json!(address))].into_iter().chain(member);
    inputs.vars.extend(vars.map(|(name, value)| (name.to_owned(), value)));
    // What the run has for the host of its own goes before.
    let release = Release::wanted(&plane.object.spec);
    if let Some(release) = release.filter(|_| machine.spec.role == Role::ControlPlane && has_any(run, &SERVICES.1)) {
        inputs.vars.insert(SERVICES.0.to_owned(), machines::services(plane.object, release, address));
    }
    Ok(())
}

/// Gives the Hosts what the run has for each of them, and returns the run's variables without that.
pub(super) fn give(
    run: &PlaybookRun,
    hosts: &mut BTreeMap<String, HostInputs>,
) -> Result<BTreeMap<String, Value>, InputsProblem> {
    let mut vars = run.spec.vars.clone();
    let refused = |message: String| InputsProblem::refused(Reason::InputsRefused, message);
    let Some(own) = vars.remove(OF_HOSTS) else { return Ok(vars) };
    let Value::Object(own) = own else {
        return Err(refused(format!("vars.{OF_HOSTS}: it is variables by Host, an object: make a new run")));
    };
    for (name, own) in own {
        let Some(host) = hosts.get_mut(&name) else {
            return Err(refused(format!("vars.{OF_HOSTS}: Host {name} is none of the run's: make a new run")));
        };
        let Value::Object(own) = own else {
            return Err(refused(format!("vars.{OF_HOSTS}.{name}: it is an object of variables: make a new run")));
        };
        host.vars.extend(Map::into_iter(own));
    }
    Ok(vars)
}

/// Whether a model is of a run on machines of a plane.
pub(super) fn is_of_plane(vars: &BTreeMap<String, Value>) -> bool {
    vars.get(CLUSTER_KIND).is_some_and(|kind| kind == ClusterKind::KarmadaDeployment.as_str())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crds::inputs::{CredentialKind, Group, RunInputs};
    use crds::{Host, KarmadaDeployment, Machine, PlaybookRun};
    use serde_json::{Value, json};

    use super::super::artifacts::ArtifactsSeen;
    use super::super::{InputsObserved, InputsProblem, PlaneMachines, build, secrets_needed};

    fn host(name: &str, address: &str) -> (String, Host) {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}}}, spec: {{address: {address}, claimEpoch: 2, claimRef: {{kind: Machine, name: m, uid: machine-of-{name}}}, ssh: {{credentialsRef: {{name: fleet}}, hostKeys: [ssh-ed25519 AAAAAAAAAAAAAAAA]}}}}}}"
        );
        (name.to_owned(), serde_yaml::from_str(&yaml).unwrap())
    }

    fn machine(host: &str, role: &str, ordinal: u32) -> Machine {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m-{host}, namespace: fleet, uid: machine-of-{host}, annotations: {{clusterwright.dev/ordinal: '{ordinal}'}}}}, spec: {{clusterName: k1, clusterKind: KarmadaDeployment, role: {role}, hostRef: {{name: {host}}}}}, status: {{provisionedAt: '2026-01-01T00:00:00Z'}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    fn plane(binary: &str, status: &str) -> KarmadaDeployment {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: KarmadaDeployment, metadata: {{name: k1, namespace: fleet, uid: 0123456789}}, spec: {{version: 1.18.2, mode: Binary, binary: {{controlPlane: {{replicas: 3}}, artifacts: {{url: 'https://b.example.com/'}}{binary}}}, crds: {{bundle: {{url: 'https://b.example.com'}}}}}}, status: {{{status}}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    fn run(intent: &str, steps: &str, hosts: &str, vars: Value) -> PlaybookRun {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r, namespace: fleet}}, spec: {{clusterName: k1, clusterKind: KarmadaDeployment, intent: {intent}, steps: [{steps}], hosts: [{hosts}]}}}}"
        );
        let mut run: PlaybookRun = serde_yaml::from_str(&yaml).unwrap();
        run.spec.vars = serde_json::from_value(vars).unwrap();
        run
    }

    fn built(object: &KarmadaDeployment, run: &PlaybookRun) -> Result<RunInputs, InputsProblem> {
        let roles = [("h1", "control-plane", 0), ("h2", "control-plane", 1), ("e1", "etcd", 0)];
        let machines: Vec<Machine> =
            roles.into_iter().map(|(host, role, ordinal)| machine(host, role, ordinal)).collect();
        let hosts = BTreeMap::from([host("h1", "10.0.0.1"), host("h2", "10.0.0.2"), host("e1", "10.0.0.9")]);
        let artifacts = ArtifactsSeen::default();
        let binary = object.spec.binary.as_ref().unwrap();
        let plane = PlaneMachines { object, binary, machines, artifacts };
        build(&InputsObserved {
            run,
            cluster: None,
            plane: Some(&plane),
            hosts: &hosts,
            credentials: &[("fleet".to_owned(), Ok(CredentialKind::SshKey))].into(),
            library: None,
            backup: None,
            restore: None,
        })
    }

    #[test]
    fn a_run_of_a_plane_is_told_of_the_plane_and_nothing_of_a_cluster() {
        let model = built(&plane("", ""), &run("Install", "prepare, etcd", "h1, h2", json!({}))).unwrap();
        let var = |name: &str| model.vars.get(name).cloned().unwrap_or_default();
        assert_eq!((var("cluster_kind"), var("cluster_name")), (json!("KarmadaDeployment"), json!("k1")));
        assert_eq!((var("cluster_identity"), var("kube_version")), (json!("0123456789"), json!("1.35.2")));
        assert_eq!(var("artifacts_url"), json!("https://b.example.com"));
        assert_eq!((var("etcd_topology"), var("etcd_initial_cluster_state")), (json!("stacked"), json!("new")));
        assert_eq!(var("etcd_client_endpoints"), json!(["https://10.0.0.1:2379", "https://10.0.0.2:2379"]));
        assert_eq!(var("kube_apiserver_endpoint"), json!({ "host": "10.0.0.1", "port": 5443 }));
        let foreign = ["kube_pods_subnet", "kube_ca_cert_hash", "node_labels", "kubelet_settings"];
        assert!(foreign.iter().all(|name| !model.vars.contains_key(*name)), "{:?}", model.vars);
        let h1 = &model.hosts["h1"];
        assert_eq!(h1.groups, [Group::KarmadaControlPlane, Group::Etcd]);
        let names: Vec<&str> = h1.vars.keys().map(String::as_str).collect();
        assert_eq!(names, ["access_ip", "etcd_member_name", "ip"]);
        let needs = secrets_needed(&model);
        assert_eq!(needs.etcd_hosts, ["h1".to_owned(), "h2".to_owned()].into());
        assert_eq!(needs.etcd_members.len(), 2);
        assert!(!needs.control_plane && !needs.apiserver_client && needs.join_hosts.is_empty() && !needs.authority);
    }

    #[test]
    fn a_run_brings_the_comparisons_of_its_plane_to_the_machines() {
        let status = "lastToken: 9, comparisons: [{since: '2026-05-01T00:00:00Z', lastToken: 7}]";
        for (status, expected) in [(status, vec![7]), ("lastToken: 9", Vec::new())] {
            let model = built(&plane("", status), &run("Configure", "karmada-service", "h1", json!({}))).unwrap();
            let told: Vec<i64> = model.hosts["h1"].comparisons.iter().map(|one| one.last_token).collect();
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn a_dedicated_etcd_and_an_endpoint_of_the_plane_s_own_are_as_they_are_wanted() {
        let binary = ", etcd: {topology: Dedicated, replicas: 1}, endpoint: {host: 10.0.0.50, provider: Keepalived}";
        let object = plane(binary, "firstInstalledAt: '2026-01-01T00:00:00Z'");
        let model = built(&object, &run("Configure", "load-balancer", "h1, h2", json!({}))).unwrap();
        let var = |name: &str| model.vars.get(name).cloned().unwrap_or_default();
        assert_eq!((var("etcd_topology"), var("etcd_initial_cluster_state")), (json!("dedicated"), json!("existing")));
        assert_eq!(var("etcd_client_endpoints"), json!(["https://10.0.0.9:2379"]));
        assert_eq!(var("kube_apiserver_endpoint"), json!({ "host": "10.0.0.50", "port": 6443 }));
        assert_eq!(var("keepalived_virtual_ip"), json!("10.0.0.50"));
        assert_eq!(var("control_plane_initialized"), json!(true), "its own machines hold that address by now");
        assert_eq!(var("kube_apiserver_backends"), json!(["10.0.0.1:5443", "10.0.0.2:5443"]));
        assert_eq!(model.hosts["h1"].groups, [Group::KarmadaControlPlane]);
        let needs = secrets_needed(&model);
        assert!(needs.authority && needs.etcd_hosts.is_empty() && !needs.karmada_part);
        let model = built(&object, &run("Join", "etcd", "e1", json!({}))).unwrap();
        assert_eq!(model.hosts["e1"].groups, [Group::Etcd]);
    }

    #[test]
    fn each_host_is_given_what_its_run_has_for_it() {
        let own = json!({ "h1": { "karmada_services": [{ "digest": "a" }] }, "h2": { "karmada_services": [{ "digest": "b" }] } });
        let vars = json!({ "karmada_hosts": own, "karmada_programs": [] });
        let model = built(&plane("", ""), &run("Configure", "karmada-service", "h1, h2", vars)).unwrap();
        assert!(!model.vars.contains_key("karmada_hosts") && model.vars.contains_key("karmada_programs"));
        assert_eq!(model.hosts["h2"].vars["karmada_services"], json!([{ "digest": "b" }]));
        assert!(secrets_needed(&model).karmada_part);
        let refused = |own: Value| {
            let vars = json!({ "karmada_hosts": own });
            built(&plane("", ""), &run("Configure", "karmada-service", "h1", vars)).unwrap_err().message
        };
        assert!(refused(json!({ "h2": {} })).contains("Host h2 is none of the run's"));
        assert!(refused(json!({ "h1": 7 })).contains("vars.karmada_hosts.h1"));
        assert!(refused(json!([])).contains("vars.karmada_hosts: it is variables by Host"));
    }

    #[test]
    fn what_an_administrator_asks_for_knows_the_programs_and_services_of_the_plane() {
        let object = plane(", etcd: {topology: Dedicated, replicas: 1}", "firstInstalledAt: '2026-01-01T00:00:00Z'");
        for steps in ["restart-services", "reboot", "probe-karmada"] {
            let model = built(&object, &run("Custom", steps, "h1, e1", json!({}))).unwrap();
            let services = model.hosts["h1"].vars["karmada_parts"].as_array().unwrap();
            let named = |name: &str| services.iter().find(|one| one["name"] == name).unwrap();
            assert_eq!(
                named("balancer"),
                &json!({ "name": "balancer", "unit": "clusterwright-karmada-balancer.service" })
            );
            assert_eq!(named("apiserver")["health"]["url"], json!("https://10.0.0.1:5443/readyz"));
            assert_eq!(named("scheduler")["unit"], json!("clusterwright-karmada-scheduler.service"));
            assert!(!model.hosts["e1"].vars.contains_key("karmada_parts"), "it has a member of etcd alone");
        }
        let model = built(&object, &run("Custom", "preflight, karmada-programs", "h1", json!({}))).unwrap();
        let programs = model.vars["karmada_programs"].as_array().unwrap();
        assert!(programs.contains(&json!({ "name": "karmada-scheduler", "version": "1.18.2" })), "{programs:?}");
        let own = json!({ "h1": { "karmada_parts": [] } });
        let asked = run("Probe", "probe-karmada", "h1", json!({ "karmada_hosts": own }));
        assert_eq!(
            built(&object, &asked).unwrap().hosts["h1"].vars["karmada_parts"],
            json!([]),
            "a planner knows better"
        );
        let model = built(&object, &run("Custom", "prepare", "h1", json!({}))).unwrap();
        assert!(!model.hosts["h1"].vars.contains_key("karmada_parts") && !model.vars.contains_key("karmada_programs"));
    }

    #[test]
    fn a_step_that_has_nothing_to_do_on_a_plane_s_machines_is_refused() {
        let refused = |intent: &str, step: &str| {
            let problem = built(&plane("", ""), &run(intent, step, "h1", json!({}))).unwrap_err();
            assert_eq!(problem.reason, crds::Reason::StepNotAllowed);
            problem.message
        };
        let said = refused("Custom", "container-runtime");
        assert!(said.contains("step container-runtime has nothing to do on machines of a KarmadaDeployment"), "{said}");
        assert!(refused("Renew", "renew-certificates").contains("renew-certificates has nothing to do"));
        assert!(refused("Custom", "karmada-service").contains("is not allowed in a run of intent Custom"));
    }

    #[test]
    fn a_run_works_on_no_host_of_another_and_on_no_plane_that_is_not_there() {
        let run = run("Custom", "prepare", "h7", json!({}));
        let problem = built(&plane("", ""), &run).unwrap_err();
        assert!(
            problem.message.contains("Host h7 belongs to no Machine of KarmadaDeployment k1"),
            "{}",
            problem.message
        );
        let hosts = BTreeMap::new();
        let observed = InputsObserved {
            run: &run,
            cluster: None,
            plane: None,
            hosts: &hosts,
            credentials: &BTreeMap::new(),
            library: None,
            backup: None,
            restore: None,
        };
        assert!(build(&observed).unwrap_err().message.contains("KarmadaDeployment k1 is not there"));
    }
}
