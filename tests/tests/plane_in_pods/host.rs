//! The cluster that carries the plane: one machine, which runs Pods of users, too.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::names::label;
use e2e::client::apply;
use e2e::eventually::{Look, eventually};
use e2e::karmada::in_pods::InPods;
use e2e::objects;
use e2e::scenario::Scenario;
use k8s_openapi::api::core::v1::{ContainerStatus, Node, PersistentVolumeClaim, Pod};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use lab::machines::Machine;
use serde_json::json;
use tokio::task::block_in_place;

use crate::{INSTALL, NAME, NAMESPACE};

/// The StorageClass of etcd's volume.
pub const STORAGE_CLASS: &str = "local";
/// How many volumes there are on the machine: one for each member of etcd that there ever is, of which one loses its
/// own, and for each of three that are restored twice.
const VOLUMES: usize = 10;
/// The user of all programs of a plane.
const USER: u32 = 65532;
/// An image is pulled.
const PULL: Duration = Duration::from_secs(120);
const GONE: Duration = Duration::from_secs(60);
/// Kinds of what a plane has on its host and in members, and of what these make: group and kind.
const KINDS: [(&str, &str); 14] = [
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "Job"),
    ("policy", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("", "ConfigMap"),
    ("", "Pod"),
    ("", "Secret"),
    ("", "Service"),
    ("", "ServiceAccount"),
];

/// Wishes a cluster of one machine, whose container runtime pulls from the registry.
pub async fn wish(scenario: &Scenario, programs: &InPods, name: &str, machine: &Machine, pod_cidr: &str) -> Result<()> {
    let mut cluster = objects::cluster(&scenario.name, name, pod_cidr, &[machine.name()], &[]);
    programs.wish(&mut cluster);
    scenario.apply(&cluster).await.map(drop)
}

/// A client of such a cluster, once it is Ready. It has no other machine: so its control plane runs all Pods.
pub async fn open(scenario: &Scenario, name: &str) -> Result<Client> {
    scenario.ready(name, INSTALL).await?;
    let client = scenario.cluster_client(name).await?;
    let nodes: Api<Node> = Api::all(client.clone());
    for node in nodes.list(&ListParams::default()).await? {
        let free = Patch::Merge(json!({"spec": {"taints": null}}));
        nodes.patch(&node.name_any(), &PatchParams::default(), &free).await?;
    }
    Ok(client)
}

/// The cluster, as its administrator has it.
pub struct HostCluster<'a> {
    pub client: Client,
    pub machine: &'a Machine,
}

impl<'a> HostCluster<'a> {
    /// With volumes for etcd, and a namespace in which Pods may do as little as can be.
    pub async fn open(scenario: &Scenario, machine: &'a Machine) -> Result<Self> {
        let client = open(scenario, "host").await?;
        let on_machine = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [machine.name()]});
        for object in [
            json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
            }),
            json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": STORAGE_CLASS},
                "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
            }),
        ] {
            apply(&client, &object).await?;
        }
        for name in (0..VOLUMES).map(|number| format!("etcd-{number}")) {
            scenario.ssh(machine, &format!("mkdir -m 0755 /srv/{name}")).await?;
            let volume = json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                "spec": {
                    "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain", "storageClassName": STORAGE_CLASS,
                    "local": {"path": format!("/srv/{name}")},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_machine]}]}},
                },
            });
            apply(&client, &volume).await?;
        }
        Ok(Self { client, machine })
    }

    /// Pulls images as a kubelet has them pulled.
    pub async fn pull(&self, images: &[String]) -> Result<()> {
        for image in images {
            let pull = format!("ctr -n k8s.io images pull --hosts-dir /etc/containerd/certs.d {image}");
            block_in_place(|| self.machine.ssh_target().succeed(&pull, PULL))?;
        }
        Ok(())
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// The Pods of a component that are not ending, by name.
    pub async fn pods_of(&self, component: &str) -> Result<Vec<String>> {
        let labels = ListParams::default().labels(&format!("app.kubernetes.io/name={component}"));
        let pods = self.pods().list(&labels).await?;
        let mut names: Vec<String> =
            pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).map(ResourceExt::name_any).collect();
        names.sort();
        Ok(names)
    }

    pub async fn delete_pod(&self, name: &str) -> Result<()> {
        self.pods().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// How many Pods of a component are ready.
    pub async fn ready_pods_of(&self, component: &str) -> Result<usize> {
        let labels = ListParams::default().labels(&format!("app.kubernetes.io/name={component}"));
        let is_ready = |pod: &Pod| {
            let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
        };
        Ok(self.pods().list(&labels).await?.iter().filter(|pod| is_ready(pod)).count())
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// The UID of the claim of a member of etcd; none: there is none.
    pub async fn volume_of_member(&self, ordinal: usize) -> Result<Option<String>> {
        let claim = self.claims().get_opt(&format!("data-{NAME}-etcd-{ordinal}")).await?;
        Ok(claim.and_then(|claim| claim.metadata.uid))
    }

    /// Deletes the claim of a member of etcd, and the Pod that holds it: another one has another volume.
    pub async fn lose_volume_of_member(&self, ordinal: usize) -> Result<()> {
        self.claims().delete(&format!("data-{NAME}-etcd-{ordinal}"), &DeleteParams::default()).await?;
        self.delete_pod(&format!("{NAME}-etcd-{ordinal}")).await
    }

    /// Ends a program of the plane with a signal that it does not see.
    pub async fn kill(&self, program: &str) -> Result<()> {
        // Of a name the system keeps no more than 15 characters.
        let kill = format!("kill -9 $(pgrep -u {USER} {})", program.get(..15).unwrap_or(program));
        block_in_place(|| self.machine.ssh_target().succeed(&kill, PULL))?;
        Ok(())
    }

    /// How often containers of a component were started anew.
    pub async fn restarts_of(&self, component: &str) -> Result<i32> {
        let all = self.restarts().await?;
        Ok(all.get(component).copied().unwrap_or_default())
    }

    /// The same of each component.
    async fn restarts(&self) -> Result<BTreeMap<String, i32>> {
        let mut restarts = BTreeMap::new();
        for pod in self.pods().list(&ListParams::default()).await? {
            let statuses: Vec<ContainerStatus> =
                pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
            for status in statuses {
                *restarts.entry(status.name).or_default() += status.restart_count;
            }
        }
        Ok(restarts)
    }

    /// Each component waits for what it needs: none ends, and is started again.
    pub async fn started_everything_once(&self) -> Result<()> {
        let restarts = self.restarts().await?;
        ensure!(restarts.len() == 10, "{restarts:?}");
        ensure!(restarts.values().all(|count| *count == 0), "started more than once: {restarts:?}");
        Ok(())
    }
}

/// Waits until nothing of a plane is in a cluster but namespaces and volumes: what belongs to something goes a moment
/// after it.
pub async fn has_nothing_left(client: &Client) -> Result<()> {
    eventually("nothing of a plane is left", GONE, async || {
        let mut left = Vec::new();
        for (group, kind) in KINDS {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            let of_planes = ListParams::default().labels(label::KARMADA_UID);
            let found = api.list(&of_planes).await.with_context(|| format!("failed to list {kind}s"))?;
            left.extend(found.iter().map(|object| format!("{kind} {}", object.name_any())));
        }
        Ok(if left.is_empty() { Look::Done(()) } else { Look::Waiting(left.join(", ")) })
    })
    .await
}
