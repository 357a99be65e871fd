//! One ClusterDeployment becomes a real cluster, and its machines come back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::conditions;
use crds::host::HostPhase;
use crds::names::condition;
use crds::playbook_run::StepPhase;
use crds::{ClusterDeployment, Conditions, Host, PlaybookRun};
use e2e::bundle::{self, Bundle};
use e2e::eventually::{Look, eventually};
use e2e::objects;
use e2e::scenario::{Scenario, scenario};
use e2e::workload;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use lab::machines::Machine;
use serde_json::json;

const POD_CIDR: &str = "10.244.0.0/16";
const INSTALL: Duration = Duration::from_secs(900);
/// Pods end within their grace period, and are made elsewhere.
const DRAINED: Duration = Duration::from_secs(120);
/// From an edit of the spec until Nodes have it.
const APPLIED: Duration = Duration::from_secs(30);
const RUN: Duration = Duration::from_secs(600);
/// A machine asks every 20 s and believes three silences; it may take a minute to learn whom to ask.
const NOTICED: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn one_deployment_becomes_a_cluster_runs_its_steps_again_and_gives_its_machines_back() {
    scenario("one", async |scenario: &Scenario| {
        let machines = scenario.machines(&["cp", "w1", "w2"]).await?;
        let (cp, w1, w2) = ("one-cp", "one-w1", "one-w2");
        scenario.apply(&objects::cluster("one", "first", POD_CIDR, &[cp], &[w1, w2])).await?;
        scenario.ready("first", INSTALL).await?;

        let client = scenario.cluster_client("first").await?;
        let nodes = workload::nodes_ready(&client, 3, Duration::from_secs(30)).await?;
        ensure!(workload::node_names(&nodes) == [cp, w1, w2], "nodes carry their Hosts' names");
        workload::service_answers(&client, w1, w2, Duration::from_secs(60)).await?;
        scenario.say("a Service answers across nodes");
        let labelled = machines.iter().find(|machine| machine.name() == w2);
        an_edit_of_labels_reaches_the_node_without_ssh(scenario, &client, labelled.context("no w2")?).await?;
        a_machine_that_somebody_works_on_is_drained(scenario, &client, w1).await?;
        let cut_off = machines.iter().find(|machine| machine.name() == w1);
        a_node_whose_pods_are_cut_off_is_named(scenario, cut_off.context("no w1")?).await?;

        let newer = Bundle::serve(7081, bundle::make_newer)?;
        what_the_cluster_is_made_of_stays(scenario, &newer).await?;
        every_step_again_changes_nothing(scenario, &[cp], &[w1, w2]).await?;
        settings_are_rolled_out_and_taken_back(scenario, &machines).await?;
        the_machines_come_back_and_serve_again(scenario, cp, w1, w2).await
    })
    .await;
}

/// Labels, annotations and taints of the set come and go; those of others stay, and the machine is not logged in to.
async fn an_edit_of_labels_reaches_the_node_without_ssh(
    scenario: &Scenario,
    client: &Client,
    machine: &Machine,
) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let theirs = json!({
        "metadata": {"labels": {"theirs": "x"}, "annotations": {"theirs": "x"}},
        "spec": {"taints": [{"key": "theirs", "effect": "PreferNoSchedule"}]},
    });
    nodes.patch(machine.name(), &PatchParams::default(), &Patch::Merge(&theirs)).await?;
    // Each command of a run passes through the guard.
    let log = machine.root().join(guard::DIRECTORY.trim_start_matches('/')).join("log");
    let commands = || Ok::<_, anyhow::Error>(std::fs::read_to_string(&log)?.lines().count());
    let before = commands()?;
    ensure!(before > 0, "the guard of {} has logged nothing", machine.name());
    let api = scenario.api::<ClusterDeployment>();
    let edit = async |set: serde_json::Value| {
        let mut workers = json!(api.get("first").await?.spec.workers);
        for (field, value) in set.as_object().into_iter().flatten() {
            workers[0][field] = value.clone();
        }
        let patch = json!({"spec": {"workers": workers}});
        api.patch("first", &PatchParams::default(), &Patch::Merge(&patch)).await?;
        anyhow::Ok(())
    };
    let given = async |what: &str, holds: &dyn Fn(&Given) -> bool| {
        eventually(what, APPLIED, async || {
            let given = Given::new(&nodes.get(machine.name()).await?);
            let is_kept = given.labels.contains("theirs=x")
                && given.annotations.contains("theirs=x")
                && given.taints.contains("theirs:PreferNoSchedule");
            ensure!(is_kept, "what others put on the Node is gone: {given:?}");
            Ok(if holds(&given) { Look::Done(()) } else { Look::Waiting(format!("{given:?}")) })
        })
        .await
    };
    edit(json!({
        "labels": {"pool": "fast", "topology.kubernetes.io/zone": "a"},
        "annotations": {"example.com/owner": "me"},
        "taints": [{"key": "busy", "value": "yes", "effect": "PreferNoSchedule"}],
    }))
    .await?;
    given("the Node has the labels, the annotation and the taint", &|given| {
        given.labels.contains("pool=fast")
            && given.labels.contains("topology.kubernetes.io/zone=a")
            && given.annotations.contains("example.com/owner=me")
            && given.taints.contains("busy:PreferNoSchedule")
    })
    .await?;
    let changed = json!({"metadata": {"labels": {"pool": "other"}}});
    nodes.patch(machine.name(), &PatchParams::default(), &Patch::Merge(&changed)).await?;
    given("what was changed by hand is put back", &|given| given.labels.contains("pool=fast")).await?;
    edit(json!({"labels": {}, "annotations": {}, "taints": []})).await?;
    given("the Node has none of them any more", &|given| {
        !given.labels.iter().any(|label| label.starts_with("pool=") || label.starts_with("topology."))
            && !given.annotations.contains("example.com/owner=me")
            && !given.taints.contains("busy:PreferNoSchedule")
    })
    .await?;
    let after = commands()?;
    ensure!(before == after, "the guard's log had {before} lines and has {after}: a run was on the machine");
    scenario.say("labels, annotations and taints of a running Node follow the spec");
    Ok(())
}

/// By the Machine alone: no run is made for it. A Node that a person has cordoned as well stays so.
async fn a_machine_that_somebody_works_on_is_drained(scenario: &Scenario, client: &Client, host: &str) -> Result<()> {
    let (api, nodes) = (scenario.api::<crds::Machine>(), Api::<Node>::all(client.clone()));
    let machines = api.list(&ListParams::default()).await?;
    let is_on = |machine: &crds::Machine| machine.spec.host_ref.as_ref().is_some_and(|on| on.name == host);
    let name = machines.items.into_iter().find(is_on).context("no Machine on the host")?.name_any();
    let drain_for = async |reasons: serde_json::Value| {
        let patch = json!({"spec": {"drainFor": reasons}});
        api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await
    };
    let pods: Api<Pod> = Api::all(client.clone());
    let on_node = ListParams::default().fields(&format!("spec.nodeName={host}"));
    let stays = |pod: &Pod| {
        let is_daemon = pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet");
        is_daemon || pod.annotations().contains_key("kubernetes.io/config.mirror")
    };
    let is_cordoned = async || {
        let node = nodes.get(host).await?;
        anyhow::Ok(node.spec.and_then(|spec| spec.unschedulable).unwrap_or_default())
    };
    let before = pods.list(&on_node).await?.items.iter().filter(|pod| !stays(pod)).count();
    ensure!(before > 0, "no Pod on {host} has to move: there is nothing to see");
    drain_for(json!(["Maintenance"])).await?;
    eventually("the Node is drained", DRAINED, async || {
        let machine = api.get(&name).await?;
        let left = pods.list(&on_node).await?.items.iter().filter(|pod| !stays(pod)).count();
        let drained = machine.is_true("Drained") && is_cordoned().await?;
        Ok(match (drained, left) {
            (true, 0) => Look::Done(()),
            (_, left) => Look::Waiting(format!("{left} Pods are left; {:?}", machine.condition("Drained"))),
        })
    })
    .await?;
    drain_for(json!([])).await?;
    eventually("the Node takes Pods again", APPLIED, async || {
        let says = api.get(&name).await?.condition("Drained").is_some();
        Ok(match is_cordoned().await? || says {
            false => Look::Done(()),
            true => Look::Waiting("it does not".into()),
        })
    })
    .await?;
    let by_hand = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    nodes.patch(host, &PatchParams::default(), &by_hand).await?;
    drain_for(json!(["Maintenance"])).await?;
    eventually("the Node is drained once more", DRAINED, async || {
        let machine = api.get(&name).await?;
        Ok(match machine.is_true("Drained") {
            true => Look::Done(()),
            false => Look::Waiting(format!("{:?}", machine.condition("Drained"))),
        })
    })
    .await?;
    drain_for(json!([])).await?;
    eventually("the Machine says nothing of a drain", APPLIED, async || {
        let says = api.get(&name).await?.condition("Drained").is_some();
        Ok(if says { Look::Waiting("it does".into()) } else { Look::Done(()) })
    })
    .await?;
    ensure!(is_cordoned().await?, "what a person cordoned takes Pods again");
    nodes.patch(host, &PatchParams::default(), &Patch::Merge(json!({"spec": {"unschedulable": null}}))).await?;
    scenario.say("a machine that somebody works on is drained, and takes Pods again");
    Ok(())
}

/// What a Node has, as text.
#[derive(Debug)]
struct Given {
    labels: BTreeSet<String>,
    annotations: BTreeSet<String>,
    taints: BTreeSet<String>,
}

impl Given {
    fn new(node: &Node) -> Self {
        let pairs = |map: &Option<BTreeMap<String, String>>| {
            map.iter().flatten().map(|(key, value)| format!("{key}={value}")).collect()
        };
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        Self {
            labels: pairs(&node.metadata.labels),
            annotations: pairs(&node.metadata.annotations),
            taints: taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect(),
        }
    }
}

/// Its kubelet goes on, so that the Node stays Ready.
async fn a_node_whose_pods_are_cut_off_is_named(scenario: &Scenario, machine: &Machine) -> Result<()> {
    let api = scenario.api::<ClusterDeployment>();
    let network = async |what: &str, holds: &dyn Fn(&Condition) -> bool| {
        eventually(what, NOTICED, async || {
            let status = api.get("first").await?.status.unwrap_or_default();
            let ready = conditions::find(&status.conditions, condition::NETWORK_READY).cloned();
            Ok(match ready {
                Some(ready) if holds(&ready) => Look::Done(()),
                ready => Look::Waiting(format!("{ready:?}")),
            })
        })
        .await
    };
    let probe = "systemctl is-active clusterwright-network-probe && systemctl show -p NRestarts --value clusterwright-network-probe";
    let state = scenario.ssh(machine, probe).await?;
    ensure!(state.split_whitespace().eq(["active", "0"]), "its probe is {state}");
    scenario
        .ssh(
            machine,
            &format!(
                "nft add table ip cut && nft 'add chain ip cut out {{ type filter hook output priority 0; }}' && \
                 nft 'add rule ip cut out oifname host0 ip daddr {POD_CIDR} drop'"
            ),
        )
        .await?;
    network("the node that is cut off is named", &|ready| {
        ready.status == "False" && ready.reason == "NodesCutOff" && ready.message.contains(machine.name())
    })
    .await?;
    scenario.say("a node whose Pods are cut off is named");
    scenario.ssh(machine, "nft delete table ip cut").await?;
    network("the network is Ready again", &|ready| ready.status == "True").await?;
    scenario.say("its Pods are connected again");
    Ok(())
}

/// The status names each component, and each run from now on installs these, of a bundle that has newer ones.
async fn what_the_cluster_is_made_of_stays(scenario: &Scenario, newer: &Bundle) -> Result<()> {
    let api = scenario.api::<ClusterDeployment>();
    let status = api.get("first").await?.status.unwrap_or_default();
    let index = bundle::index()?;
    let artifacts = index["artifacts"].as_array().context("the index has artifacts")?;
    for name in ["etcd", "containerd", "runc", "kubelet", "registry.k8s.io/pause"] {
        let artifact = artifacts.iter().find(|artifact| artifact["name"] == name);
        let artifact = artifact.with_context(|| format!("the bundle has no {name}"))?;
        let known = status.components.iter().find(|component| component.name == name);
        let known = known.with_context(|| format!("status.components has no {name}: {:?}", status.components))?;
        let digest = artifact["arch"].as_str().and_then(|arch| known.digests.get(arch));
        ensure!(
            artifact["version"] == known.version && digest.is_some_and(|digest| artifact["sha256"] == *digest),
            "{name} is another one: {known:?} and {artifact}"
        );
    }
    let patch = json!({"spec": {"artifacts": {"url": newer.url}}});
    api.patch("first", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    scenario.say("the bundle has newer components now");
    Ok(())
}

async fn every_step_again_changes_nothing(scenario: &Scenario, control_plane: &[&str], workers: &[&str]) -> Result<()> {
    let on_control_planes = [
        "bootstrap-os",
        "preflight",
        "prepare",
        "container-runtime",
        "etcd",
        "control-plane",
        "network",
        "addons",
        "post-install",
    ];
    let on_workers = ["bootstrap-os", "preflight", "prepare", "container-runtime", "node", "network"];
    for (name, steps, hosts) in [
        ("again-control-plane", on_control_planes.as_slice(), control_plane),
        ("again-workers", on_workers.as_slice(), workers),
        ("one-step-alone", &["container-runtime"], control_plane),
    ] {
        scenario.apply(&objects::custom_run("one", name, "first", steps, hosts)).await?;
        let run = scenario.succeeded(name, RUN).await?;
        changed_nothing(&run, steps)?;
        scenario.say(&format!("{name}: {} steps, nothing changed", steps.len()));
    }
    Ok(())
}

fn changed_nothing(run: &PlaybookRun, steps: &[&str]) -> Result<()> {
    let status = run.status.clone().unwrap_or_default();
    ensure!(status.steps.len() == steps.len(), "each step is in the status: {:?}", status.steps);
    for step in &status.steps {
        ensure!(step.phase == StepPhase::Succeeded, "step {} is {:?}", step.name, step.phase);
        ensure!(step.changed == 0, "a second run of step {} changed {} things", step.name, step.changed);
    }
    ensure!(status.hosts.iter().all(|host| host.ok > 0), "each host did something: {:?}", status.hosts);
    Ok(())
}

/// A name of the API server and a mirror: on the machines that they are for, and gone from them when they are taken
/// back.
async fn settings_are_rolled_out_and_taken_back(scenario: &Scenario, machines: &[Machine]) -> Result<()> {
    const NAME: &str = "api.first.example";
    const MIRROR: &str = "/etc/containerd/certs.d/registry.example:5000/hosts.toml";
    let api = scenario.api::<ClusterDeployment>();
    let has = async |machine: &Machine, what: &str| -> Result<bool> {
        Ok(scenario.ssh(machine, &format!("{{ {what}; }} > /dev/null 2>&1 && echo yes || echo no")).await?.trim()
            == "yes")
    };
    let named =
        format!("openssl s_client -connect 127.0.0.1:6443 < /dev/null | openssl x509 -noout -text | grep {NAME}");
    // A mirror, a field of the kubelet, a sysctl, and services of the machine.
    let settings = [
        ("https://mirror.example", MIRROR),
        ("Authorization = .Basic bWU6cGFzcw==", MIRROR),
        ("containerLogMaxFiles: 7", "/var/lib/kubelet/config.yaml"),
        ("^2048$", "/proc/sys/net/core/somaxconn"),
        ("^NTP=ntp.first.example$", "/etc/systemd/timesyncd.conf.d/90-clusterwright.conf"),
        ("^search first.example$", "/etc/resolv.conf"),
        ("^SystemMaxUse=100M$", "/etc/systemd/journald.conf.d/90-clusterwright.conf"),
        ("first.example administrator$", "$HOME/.ssh/authorized_keys"),
    ];
    // kube-proxy has taken back the rules of the other mode.
    let has_rules = "grep -qE 'KUBE-SVC|ip kube-proxy'";
    let rules = |mode: &str, other: &str| format!("{mode} | {has_rules} && ! {other} | {has_rules}");
    let (of_iptables, of_nftables) = ("iptables-save -t nat", "nft list tables ip");
    let on_all = settings.map(|(what, file)| format!("grep '{what}' {file}")).join(" && ");
    let on_all = format!("{on_all} && {}", rules(of_nftables, of_iptables));
    let on_none = settings.map(|(what, file)| format!("! grep '{what}' {file}")).join(" && ");
    let on_none = format!("{on_none} && {}", rules(of_iptables, of_nftables));
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEnJoYh36jxBUJPQ9VfzBckR8tgoRgzNK8jmE7F9TFYO \
               first.example administrator";
    let configuration = json!({
        "kubelet": {"containerLogMaxFiles": 7}, "kubeProxy": {"mode": "nftables"},
        "machine": {
            "sysctls": {"net.core.somaxconn": "2048"}, "timeServers": ["ntp.first.example"], "authorizedKeys": [key],
            "searchDomains": ["first.example"], "journal": {"maxUseMegabytes": 100},
        },
    });
    let mirrors = json!([{
        "prefix": "registry.example:5000", "endpoints": ["https://mirror.example"], "credentialsRef": {"name": "mirror"},
    }]);
    let login = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mirror", "namespace": scenario.name},
        "stringData": {"username": "me", "password": "pass"},
    });
    scenario.apply(&login).await?;
    for (names, mirrors, configuration, wanted) in
        [(json!([NAME]), mirrors, configuration, true), (json!([]), json!([]), json!(null), false)]
    {
        let spec = json!({
            "controlPlane": {"certSANs": names}, "containerRuntime": {"registryMirrors": mirrors},
            "configuration": configuration,
        });
        let generation = api.patch("first", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await?;
        let generation = generation.metadata.generation;
        eventually("the settings are rolled out", RUN, async || {
            let status = api.get("first").await?.status.unwrap_or_default();
            ensure!(conditions::is_true(&status.conditions, condition::READY), "it is not Ready: {:?}", status.message);
            let told = conditions::find(&status.conditions, condition::UP_TO_DATE).cloned();
            Ok(match told {
                Some(told) if told.status == "True" && told.observed_generation == generation => Look::Done(()),
                told => Look::Waiting(told.map(|told| told.message).unwrap_or_default()),
            })
        })
        .await?;
        for machine in machines {
            let is_control_plane = machine.name().ends_with("-cp");
            let is_so = has(machine, if wanted { &on_all } else { &on_none }).await?;
            ensure!(is_so, "{}: mirror, kubelet, kube-proxy, sysctl or services are {}so", machine.name(), not(wanted));
            let is_named = is_control_plane && has(machine, &named).await?;
            ensure!(is_named == (is_control_plane && wanted), "{}: the name is {}served", machine.name(), not(!wanted));
        }
        let what = "a name, a mirror, a field of the kubelet, a mode of kube-proxy, a sysctl and settings of services";
        scenario.say(&format!("{what} are {}on the machines", not(wanted)));
    }
    Ok(())
}

/// What stands before a word that does not hold.
fn not(holds: bool) -> &'static str {
    if holds { "" } else { "not " }
}

async fn the_machines_come_back_and_serve_again(scenario: &Scenario, cp: &str, w1: &str, w2: &str) -> Result<()> {
    scenario.delete_cluster("first", Duration::from_secs(180)).await?;
    scenario.say("the cluster is gone");
    let hosts = scenario.api::<Host>();
    for name in [cp, w1, w2] {
        eventually(&format!("Host {name} Available"), Duration::from_secs(90), async || {
            let host = hosts.get(name).await?;
            let status = host.status.unwrap_or_default();
            Ok(if status.phase == Some(HostPhase::Available) && host.spec.claim_ref.is_none() {
                Look::Done(())
            } else {
                Look::Waiting(format!("{:?}: {:?}", status.phase, status.message))
            })
        })
        .await?;
    }
    scenario.say("every machine is clean and back in the pool");
    scenario.apply(&objects::cluster("one", "second", POD_CIDR, &[w1], &[cp])).await?;
    scenario.ready("second", INSTALL).await?;
    let client = scenario.cluster_client("second").await?;
    let nodes = workload::nodes_ready(&client, 2, Duration::from_secs(30)).await?;
    ensure!(workload::node_names(&nodes) == [cp, w1], "only the second cluster's nodes are there");
    Ok(())
}
