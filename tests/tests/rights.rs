//! The operator's rights equal what it calls, and an executor does nothing but say how its run goes: read from the
//! audit log of the lab after every other test has passed there.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::{Addon, ClusterAddon, ClusterDeployment, MachineSet, PlaybookRun};
use e2e::audit::{self, Request};
use e2e::client::{apply, client_of};
use e2e::report;
use e2e::rights::{Right, beyond_own_run, granted, refused, unused};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use lab::Lab;
use serde_json::json;
use tokio::task::block_in_place;
use tokio::time::sleep;

const NAMESPACE: &str = "clusterwright-system";
const ACCOUNT: &str = "clusterwright-operator";
/// The namespace of what this test does itself.
const ERRANDS: &str = "rights";

/// Rights that no request asks for, or only a rare fault needs: verb, resource, and why it is granted nevertheless.
const EXCEPTIONS: [(&str, &str, &str); 13] = [
    ("delete", "clusters", REBUILD),
    ("delete", "etcdbackups", SCHEDULES),
    ("patch", "etcdbackups", REMOVALS),
    ("get", "etcdbackupschedules", SCHEDULES),
    ("get", "clusteraddons", ADDONS),
    ("update", "addons/finalizers", OWNERS),
    ("update", "backupstorages/finalizers", OWNERS),
    ("update", "clusterdeployments/finalizers", OWNERS),
    ("update", "etcdbackups/finalizers", OWNERS),
    ("update", "etcdrestores/finalizers", OWNERS),
    ("update", "karmadadeployments/finalizers", OWNERS),
    ("update", "machinesets/finalizers", OWNERS),
    ("update", "playbookruns/finalizers", OWNERS),
];
/// The same of those that depend on which of two comes first: some runs ask for them.
const RACES: [(&str, &str, &str); 1] = [("get", "hostpools", POOLS)];
const REBUILD: &str = "asked for when a cluster all of whose machines are lost is built anew, which `make lifecycle` plays and this \
                       run does not";
const POOLS: &str = "asked for when a HostPool is there already that a cache does not show yet";
const SCHEDULES: &str = "asked for when a schedule keeps a backup no longer, and when it makes one: no cluster of the lab is \
                         backed up by a schedule";
const REMOVALS: &str = "asked for when an EtcdBackup with `deletionPolicy: Delete` begins, and when it is deleted: those of \
                        the lab have `Retain`";
const ADDONS: &str = "asked for before anything is applied to a cluster, and that of the errand does not answer";
const OWNERS: &str = "asked for by the admission plugin OwnerReferencesPermissionEnforcement, which is on in the lab: without \
                      it, making what these own is refused, and this test fails by that";

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_has_the_rights_that_it_uses_and_executors_report_and_nothing_else() -> Result<()> {
    let lab = block_in_place(Lab::open)?;
    let client = client_of(&std::fs::read_to_string(lab.kubeconfig())?).await?;
    let judged = match errands(&client).await.context("failed to run the errands") {
        Ok(()) => judge_until_right(&lab, &client).await,
        Err(error) => Err(error),
    };
    if judged.is_err() {
        report::print(&client, ERRANDS).await;
    }
    let deployments: Api<ClusterDeployment> = Api::namespaced(client.clone(), ERRANDS);
    deployments.delete("errand", &DeleteParams::default()).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.delete(ERRANDS, &DeleteParams::default()).await?;
    judged
}

/// The last of what the errands lead to takes a moment.
async fn judge_until_right(lab: &Lab, client: &Client) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let judged = judge(lab, client).await;
        if judged.is_ok() || Instant::now() >= until {
            return judged;
        }
        sleep(Duration::from_secs(2)).await;
    }
}

/// What needs no machine, and happens in other tests by chance only: a Pod that a quota forbids, a Job that goes before
/// it had one, a worker set that is taken away, a history that is too long, a Host whose Machine is gone, a
/// RemediationPolicy, an Addon, a Karmada plane whose host does not answer.
async fn errands(client: &Client) -> Result<()> {
    let run = |name: &str| {
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "PlaybookRun",
            "metadata": {"name": name, "namespace": ERRANDS},
            "spec": {"clusterName": "errand", "intent": "Custom", "steps": ["prepare"], "hosts": ["nobody"], "cancel": true},
        })
    };
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ERRANDS}}),
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-pods", "namespace": ERRANDS},
            "spec": {"hard": {"pods": "0"}},
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fleet-ssh", "namespace": ERRANDS},
            "stringData": {"password": "of nobody"},
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Host", "metadata": {"name": "nowhere", "namespace": ERRANDS},
            "spec": {"address": "192.0.2.1", "unschedulable": true, "ssh": {
                "credentialsRef": {"name": "fleet-ssh"}, "hostKeyPolicy": "TrustOnFirstUse",
            }},
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment",
            "metadata": {"name": "errand", "namespace": ERRANDS},
            "spec": {
                "kubernetesVersion": "1.35.4", "controlPlane": {"replicas": 1}, "executor": {"historyLimit": 1},
                "workers": [{"name": "stays", "replicas": 1}, {"name": "goes", "replicas": 1}],
                "artifacts": {"url": "http://192.0.2.1:8080"}, "addons": {"manifestsRef": {"name": "errand"}},
            },
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "RemediationPolicy",
            "metadata": {"name": "errand", "namespace": ERRANDS}, "spec": {"clusterName": "errand"},
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Host", "metadata": {"name": "left-behind", "namespace": ERRANDS},
            "spec": {
                "address": "192.0.2.2",
                "ssh": {"credentialsRef": {"name": "fleet-ssh"}, "hostKeyPolicy": "TrustOnFirstUse"},
                "claimEpoch": 1, "claimRef": {"kind": "Machine", "name": "gone", "uid": "gone"},
            },
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "RemediationPolicy",
            "metadata": {"name": "errand", "namespace": ERRANDS}, "spec": {"clusterName": "errand"},
        }),
        // The pool of its selector is made, and goes once it is answered.
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "MachineRequest",
            "metadata": {"name": "errand", "namespace": ERRANDS},
            "spec": {
                "clusterName": "errand", "set": "stays", "count": 1, "deadlineSeconds": 10,
                "hostSelector": {"matchLabels": {"nobody": "has-it"}},
            },
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage",
            "metadata": {"name": "errand", "namespace": ERRANDS}, "spec": {"volume": {"claimName": "errand"}},
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackup",
            "metadata": {"name": "errand", "namespace": ERRANDS},
            "spec": {
                "clusterName": "errand", "storageRef": {"name": "errand"},
                "encryption": {"recipients": ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]},
            },
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackupSchedule",
            "metadata": {"name": "errand", "namespace": ERRANDS},
            "spec": {
                "clusterName": "errand", "schedule": "0 3 * * *",
                "template": {
                    "storageRef": {"name": "errand"},
                    "encryption": {"recipients": ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]},
                },
            },
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "elsewhere", "namespace": ERRANDS}, "spec": {"kubeconfigRef": {"name": "nowhere"}},
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "errand", "namespace": ERRANDS},
            "data": {"all.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: errand}}"},
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon",
            "metadata": {"name": "errand", "namespace": ERRANDS},
            "spec": {
                "clusterRef": {"name": "elsewhere"},
                "source": {"manifests": {"from": [{"configMapRef": {"name": "errand"}}]}},
            },
        }),
        json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment",
            "metadata": {"name": "errand-plane", "namespace": ERRANDS},
            "spec": {
                "version": "1.18.2", "hostClusterRef": {"name": "elsewhere"},
                "crds": {"bundle": {"url": "https://192.0.2.1"}},
                "apiServer": {"serviceType": "NodePort", "loadBalancerApiserverIp": "192.0.2.1"},
            },
        }),
        run("first"),
        run("second"),
        run("third"),
    ];
    for object in &objects {
        apply(client, object).await?;
    }
    let sets: Api<MachineSet> = Api::namespaced(client.clone(), ERRANDS);
    until("its MachineSets", async || Ok(sets.list_metadata(&ListParams::default()).await?.items.len() == 3)).await?;
    let addons: Api<Addon> = Api::namespaced(client.clone(), ERRANDS);
    until("the Addon of its spec.addons", async || Ok(addons.get_opt("errand-addons").await?.is_some())).await?;
    let fewer = json!({"spec": {"workers": [{"name": "stays", "replicas": 1}], "addons": null}});
    let deployments: Api<ClusterDeployment> = Api::namespaced(client.clone(), ERRANDS);
    deployments.patch("errand", &PatchParams::default(), &Patch::Merge(fewer)).await?;
    until("the end of the MachineSet that is not wanted any more", async || {
        Ok(sets.list_metadata(&ListParams::default()).await?.items.len() == 2)
    })
    .await?;
    let objects: Api<ClusterAddon> = Api::namespaced(client.clone(), ERRANDS);
    until("the ClusterAddon", async || Ok(objects.get_opt("errand-elsewhere").await?.is_some())).await?;
    addons.delete("errand", &DeleteParams::default()).await?;
    until("the end of both Addons", async || Ok(addons.list_metadata(&ListParams::default()).await?.items.is_empty()))
        .await?;
    let jobs: Api<Job> = Api::namespaced(client.clone(), ERRANDS);
    until("the Job of a probe", async || Ok(!jobs.list_metadata(&ListParams::default()).await?.items.is_empty()))
        .await?;
    let runs: Api<PlaybookRun> = Api::namespaced(client.clone(), ERRANDS);
    let says_why = |run: &PlaybookRun| {
        let text = serde_json::to_string(&run.status).unwrap_or_default();
        (run.spec.cluster_name.is_none() && text.contains("quota")).then(|| run.name_any())
    };
    let held_up = async || Ok(runs.list(&ListParams::default()).await?.iter().any(|run| says_why(run).is_some()));
    until("a probe that says that a quota forbids its Pod", held_up).await?;
    for run in runs.list(&ListParams::default()).await? {
        if let Some(name) = says_why(&run) {
            let cancel = Patch::Merge(json!({"spec": {"cancel": true}}));
            runs.patch(&name, &PatchParams::default(), &cancel).await?;
        }
    }
    Ok(())
}

async fn until(what: &str, holds: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds().await? {
        ensure!(Instant::now() < end, "waited for {what}");
        sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

async fn judge(lab: &Lab, client: &Client) -> Result<()> {
    let requests = block_in_place(|| audit::read(&lab.metadata().audit()))?;
    let operator = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let (operators, executors): (Vec<Request>, Vec<Request>) =
        requests.into_iter().partition(|request| request.user == operator);
    let rights = rights(client).await?;
    let (asked, reported) = (operators.len(), executors.len());
    println!("{} rights, {asked} requests of the operator, {reported} of executors", rights.len());

    let beyond = lines(beyond_own_run(&executors));
    ensure!(beyond.is_empty(), "executors asked for more than to report on their run:\n{beyond}");
    let refusals = lines(refused(&operators));
    ensure!(refusals.is_empty(), "the operator lacks rights:\n{refusals}");
    let is =
        |right: &Right, (verb, resource, _): &(&str, &str, &str)| right.verb == *verb && right.resource == *resource;
    let of_races = |right: &Right| RACES.iter().any(|race| is(right, race));
    let excepted = |right: &&Right| EXCEPTIONS.iter().any(|exception| is(right, exception));
    let unused = unused(&rights, &operators).into_iter().filter(|right| !of_races(right));
    let (known, unused): (Vec<&Right>, Vec<&Right>) = unused.partition(excepted);
    let text: Vec<String> = unused.iter().map(|right| format!("  {right}")).collect();
    ensure!(
        unused.is_empty(),
        "the operator never used these rights, in {asked} requests (did all tests run before this one?):\n{}",
        text.join("\n")
    );
    let stale: Vec<&(&str, &str, &str)> =
        EXCEPTIONS.iter().filter(|exception| !known.iter().any(|right| is(right, exception))).collect();
    ensure!(stale.is_empty(), "these exceptions are used, or not granted: take them off the list: {stale:?}");
    ensure!(RACES.iter().all(|race| rights.iter().any(|right| is(right, race))), "one of {RACES:?} is not granted");
    ensure!(reported > 0, "no executor has reported anything: did the tests run before this one?");
    Ok(())
}

/// Each different request once, without the names of objects.
fn lines(requests: Vec<&Request>) -> String {
    let line = |request: &&Request| {
        let Request { user, verb, group, resource, code, message, .. } = *request;
        format!("  {user}: {verb} {group}/{resource}: {code} {message}")
    };
    let lines: BTreeSet<String> = requests.iter().map(line).collect();
    lines.into_iter().take(30).collect::<Vec<_>>().join("\n")
}

/// What the roles bound to the operator's ServiceAccount grant it, as the API server has them.
async fn rights(client: &Client) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    let everywhere: Api<ClusterRoleBinding> = Api::all(client.clone());
    for binding in everywhere.list(&ListParams::default()).await? {
        if ours(binding.subjects.as_deref()) {
            rights.extend(rights_of(client, &binding.role_ref, None).await?);
        }
    }
    let somewhere: Api<RoleBinding> = Api::all(client.clone());
    for binding in somewhere.list(&ListParams::default()).await? {
        if ours(binding.subjects.as_deref()) {
            let namespace = binding.namespace();
            rights.extend(rights_of(client, &binding.role_ref, namespace.as_deref()).await?);
        }
    }
    ensure!(rights.len() > 20, "the operator is not installed: {} rights", rights.len());
    Ok(rights)
}

fn ours(subjects: Option<&[Subject]>) -> bool {
    let ours = |subject: &Subject| {
        subject.kind == "ServiceAccount" && subject.name == ACCOUNT && subject.namespace.as_deref() == Some(NAMESPACE)
    };
    subjects.is_some_and(|subjects| subjects.iter().any(ours))
}

async fn rights_of(client: &Client, role: &RoleRef, namespace: Option<&str>) -> Result<BTreeSet<Right>> {
    let rules = match (role.kind.as_str(), namespace) {
        ("Role", Some(namespace)) => Api::<Role>::namespaced(client.clone(), namespace).get(&role.name).await?.rules,
        _ => Api::<ClusterRole>::all(client.clone()).get(&role.name).await?.rules,
    };
    Ok(granted(&rules.unwrap_or_default(), namespace))
}
