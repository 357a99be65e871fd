//! Who says how Hosts and clusters are: at once as they are, or by the planners of Host and Cluster.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crds::cluster::ComponentHealth;
use crds::conditions::{self, Statement};
use crds::names::condition;
use crds::{Host, Machine, PlaybookRun, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::api::written;
use super::cluster::SimulatedCluster;
use super::objects::found_ready;
use super::profile::Observers;
use super::world::World;
use crate::cluster::{self, Access, Contact, NodeSeen, Seen};
use crate::host;

impl World {
    /// Clusters and Hosts are looked at; returns whether anything was done in a cluster.
    pub(super) fn observe(&mut self) -> bool {
        match self.profile.observers {
            Observers::Instant => {
                (0..self.clusters.len()).for_each(|index| self.look_at_api(index));
                self.look_at_hosts();
                false
            }
            Observers::Planned => {
                let acted = self.reconcile_clusters();
                self.approve_asked();
                self.reconcile_hosts();
                acted
            }
        }
    }

    /// What the Cluster object says of the API: it knows again which cluster it has seen.
    fn look_at_api(&mut self, index: usize) {
        let (answers, now) = (self.answers(&self.clusters[index]), self.time());
        let cluster = &mut self.clusters[index];
        let uid = cluster.api_uid();
        let Some(object) = cluster.cluster.as_mut().filter(|_| cluster.kubeconfig.is_some()) else {
            return;
        };
        let status = object.status.get_or_insert_default();
        let is_another = status.cluster_uid.as_ref().is_some_and(|known| *known != uid);
        let (reached, reason) = match answers {
            false => (Some(false), Reason::ConnectionRefused),
            true if is_another => (None, Reason::ClusterIdentityChanged),
            true => (Some(true), Reason::ApiAnswers),
        };
        if reached == Some(true) {
            status.cluster_uid = Some(uid);
        }
        status.unreachable_since = match answers {
            true => None,
            false => status.unreachable_since.clone().or(Some(now.clone())),
        };
        let reachable = Statement::new(condition::REACHABLE, reached, reason, reason.as_str());
        status.conditions = conditions::state(&status.conditions, &[reachable], None, &now);
    }

    /// Spare Hosts are found clean once they are.
    fn look_at_hosts(&mut self) {
        for host in &mut self.hosts {
            let is_new = host.status.is_none();
            let is_dirty = host.metadata.name.as_ref().is_some_and(|name| self.dirty.contains(name));
            let status = host.status.get_or_insert_with(found_ready);
            let epoch = Some(host.spec.claim_epoch);
            let is_cleaned = host.spec.claim_ref.is_none() && !is_dirty && status.cleaned_epoch != epoch;
            if is_cleaned {
                status.cleaned_epoch = epoch;
            }
            if is_new || is_cleaned {
                written(&mut host.metadata);
            }
        }
    }

    fn reconcile_clusters(&mut self) -> bool {
        let now = self.time();
        let machines: Vec<Arc<Machine>> = self.machines.iter().cloned().map(Arc::new).collect();
        let quarantined = self.hosts.iter().filter(|host| host.spec.quarantine.is_some());
        let quarantined: Vec<Arc<Host>> = quarantined.cloned().map(Arc::new).collect();
        let mut acted = false;
        for index in 0..self.clusters.len() {
            let cluster = &self.clusters[index];
            let name = cluster.name().to_owned();
            let Some(object) = &cluster.cluster else {
                continue;
            };
            let is_its = |machine: &&Arc<Machine>| machine.spec.cluster_name == name;
            let plan = cluster::plan(&cluster::Observed {
                cluster: object,
                contact: self.contact(cluster),
                machines: &machines.iter().filter(is_its).cloned().collect::<Vec<_>>(),
                deployment: Some(&cluster.deployment),
                hosts: &quarantined,
                planes: &[],
                resumed_at: self.resumed_at,
                now: now.clone(),
                chance: 0.5,
            });
            if let Some(object) = &mut self.clusters[index].cluster {
                object.status = Some(plan.status);
            }
            for action in plan.actions {
                self.log(Rc::new(action.clone()));
                acted |= self.apply_to_nodes(&name, action);
            }
        }
        acted
    }

    fn contact(&self, cluster: &SimulatedCluster) -> Contact {
        let access = Access {
            server: cluster.kubeconfig.clone().unwrap_or_default(),
            certificates: vec![("admin-kubeconfig", Time("2036-01-01T00:00:00Z".parse().unwrap()))],
        };
        let endpoint = cluster.deployment.status.as_ref().and_then(|status| status.endpoint.as_ref());
        let leads_there = endpoint.is_none_or(|endpoint| *endpoint == access.server);
        let Some(nodes) = self.nodes_of(cluster).filter(|_| leads_there) else {
            let message = "connection refused".into();
            return Contact::Lost { access, reason: Reason::ConnectionRefused, message };
        };
        let component = |name: &str| ComponentHealth { name: name.into(), healthy: true, message: None };
        let components = ["kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler"];
        Contact::Made {
            access,
            seen: Seen {
                version: Some("1.35.4".into()),
                cluster_uid: Some(cluster.api_uid()),
                components: components.map(component).to_vec(),
                nodes: Some(nodes),
                etcd_size: Some(cluster.data.size),
                dns: None,
            },
        }
    }

    /// The Nodes of a cluster, as they are watched; `None`: its API does not answer.
    pub(super) fn nodes_of(&self, cluster: &SimulatedCluster) -> Option<Vec<NodeSeen>> {
        self.answers(cluster).then(|| cluster.nodes.iter().map(|name| self.node(cluster, name)).collect())
    }

    /// Nodes that are Ready.
    pub fn ready_nodes(&self, name: &str) -> usize {
        let nodes = self.find_cluster(name).and_then(|cluster| self.nodes_of(cluster)).unwrap_or_default();
        nodes.iter().filter(|node| node.ready == Some(true)).count()
    }

    fn reconcile_hosts(&mut self) {
        let hosts: Vec<Arc<Host>> = self.hosts.iter().cloned().map(Arc::new).collect();
        let mut runs = shared(&self.runs);
        for index in 0..self.hosts.len() {
            let probes: Vec<Arc<PlaybookRun>> = runs.iter().filter(|run| host::is_probe(run)).cloned().collect();
            let plan = host::host(&host::HostObserved {
                host: &self.hosts[index],
                now: self.now,
                schedule: host::ProbeSchedule { interval_seconds: 600, resumed_at: self.resumed_at },
                hosts: &hosts,
                probes: &probes,
                runs: &runs,
                problems: &BTreeMap::new(),
                holder_is_gone: false,
            });
            self.hosts[index].status = Some(plan.status);
            // The next one is to see what was made for this one.
            if !plan.actions.is_empty() {
                plan.actions.into_iter().for_each(|action| self.apply_to_host(action));
                runs = shared(&self.runs);
            }
        }
    }
}

fn shared(runs: &[PlaybookRun]) -> Vec<Arc<PlaybookRun>> {
    runs.iter().cloned().map(Arc::new).collect()
}
