//! The reconciles of the controllers: what each of them writes, by what it observes. Caches may be behind; what cannot
//! be taken back is decided once more by what the API says.

use crds::ObjectExt;
use crds::names::worker_set;
use crds::{
    Cluster, ClusterDeployment, ClusterDeploymentStatus, Host, Machine, MachineRequest, MachineRequestStatus,
    MachineSet, PlaybookRun,
};

use super::api::Write;
use super::cluster::SimulatedCluster;
use super::world::World;
use crate::claims::Shares;
use crate::cluster::NodeSeen;
use crate::{cluster_deployment, former, machine, machine_request, machine_set};

/// What a controller observes of the namespace and a cluster.
struct Observed<'a> {
    sets: Vec<&'a MachineSet>,
    machines: Vec<&'a Machine>,
    hosts: Vec<&'a Host>,
    runs: Vec<&'a PlaybookRun>,
    deployment: Option<&'a ClusterDeployment>,
    cluster: Option<&'a Cluster>,
}

impl<'a> Observed<'a> {
    fn new(world: &'a World, name: &str) -> Self {
        let cluster = world.find_cluster(name);
        Self {
            sets: world.sets.iter().collect(),
            machines: world.machines_of(name),
            hosts: world.hosts.iter().collect(),
            runs: world.runs.iter().filter(|run| run.spec.cluster_name.as_deref() == Some(name)).collect(),
            deployment: cluster.filter(|cluster| !cluster.gone).map(|cluster| &cluster.deployment),
            cluster: cluster.and_then(|cluster| cluster.cluster.as_ref()),
        }
    }
}

impl World {
    /// What each controller's reconcile writes, with caches that show this world.
    pub(super) fn reconciles(&self, cache: &World) -> Vec<Vec<Write>> {
        let clusters = self.clusters.iter().filter(|cluster| !cluster.gone);
        let of_clusters = clusters.map(|cluster| self.reconcile_deployment(cache, cluster));
        let of_sets = cache.sets.iter().map(|set| self.reconcile_set(cache, set));
        let of_requests = self.requests.iter().map(|request| self.reconcile_request(cache, request));
        let machines: Vec<&Machine> = cache.machines.iter().collect();
        let shares = Shares::new(&machines, &cache.hosts.iter().collect::<Vec<_>>());
        let of_machines = machines.iter().map(|machine| self.reconcile_machine(cache, machine, &shares));
        of_clusters.chain(of_sets).chain(of_requests).chain(of_machines).collect()
    }

    fn reconcile_deployment(&self, cache: &World, cluster: &SimulatedCluster) -> Vec<Write> {
        use cluster_deployment::{Action, Observed as Input, plan};
        let (name, status) = (cluster.name(), cluster.status());
        let nodes = self.known_nodes(name);
        let here = self.clusters.iter().filter(|cluster| !cluster.gone).map(|cluster| &cluster.deployment);
        let deployments: Vec<&ClusterDeployment> = here.chain(&self.others).collect();
        let policies: Vec<_> = self.policies.iter().collect();
        let restores: Vec<_> = self.restores.iter().collect();
        let schedules: Vec<_> = self.schedules.iter().collect();
        let backups: Vec<_> = self.backups.iter().collect();
        let planes: Vec<_> = self.planes.iter().collect();
        let decide = |seen: &Observed<'_>| {
            plan(&Input {
                now: self.now,
                resumed_at: self.resumed_at,
                deployment: &cluster.deployment,
                sets: &seen.sets,
                machines: &seen.machines,
                hosts: &seen.hosts,
                runs: &seen.runs,
                policies: &policies,
                restores: &restores,
                planes: &planes,
                schedules: &schedules,
                backups: &backups,
                restoring: &self.restoring,
                deployments: &deployments,
                library: self.library.as_ref(),
                cluster: seen.cluster,
                addon: cluster.addon.as_ref(),
                manifests: &self.manifests,
                etcd_client: self.etcd_client.as_ref(),
                forgotten_nodes: nodes.as_deref(),
                pki: cluster.pki,
                authorities: &cluster.authorities,
                own_authorities: self.own_authorities.as_ref(),
                kubeconfig: cluster.kubeconfig.is_some(),
                kubeconfig_authority: cluster.kubeconfig_authority.as_deref(),
            })
        };
        let mut seen = Observed::new(cache, name);
        // Runs that hold the lock are read where a cache does not show them.
        for held in status.iter().flat_map(|status| &status.operations) {
            let is_it = |run: &&PlaybookRun| run.name() == held.run;
            if !seen.runs.iter().any(&is_it) {
                seen.runs.extend(self.runs.iter().find(|run| is_it(run)));
            }
        }
        let mut plan = decide(&seen);
        let has_token = |status: &ClusterDeploymentStatus| status.last_token.is_some();
        let opens = has_token(&plan.status) && !status.is_some_and(has_token);
        if opens || plan.actions.iter().any(Action::is_irrevocable) {
            plan = decide(&Observed { cluster: seen.cluster, ..Observed::new(self, name) });
        }
        let actions = plan.actions.into_iter();
        let mut writes: Vec<Write> = actions.map(|action| Write::Deployment(name.into(), Box::new(action))).collect();
        if status != Some(&plan.status) {
            writes.push(Write::DeploymentStatus(name.into(), Box::new(plan.status)));
        }
        writes
    }

    fn reconcile_set(&self, cache: &World, set: &MachineSet) -> Vec<Write> {
        let name = &set.spec.cluster_name;
        let cached = Observed::new(cache, name);
        let decide = |set: &MachineSet, seen: &Observed<'_>| {
            machine_set::plan(&machine_set::Observed {
                now: self.now,
                set,
                formed: cached.deployment.map(Into::into),
                machines: &seen.machines,
                hosts: &cached.hosts,
                has_pool: true,
                runs: &seen.runs,
            })
        };
        let (mut set, mut plan) = (set, decide(set, &cached));
        if !plan.actions.is_empty() {
            let Some(live) = self.sets.iter().find(|live| live.metadata.uid == set.metadata.uid) else {
                return Vec::new();
            };
            (set, plan) = (live, decide(live, &Observed::new(self, name)));
        }
        let mut writes: Vec<Write> = plan.actions.into_iter().map(Write::Set).collect();
        if set.status.as_ref() != Some(&plan.status) {
            writes.push(Write::SetStatus(set.name().to_owned(), Box::new(plan.status)));
        }
        writes
    }

    fn reconcile_request(&self, cache: &World, request: &MachineRequest) -> Vec<Write> {
        let name = &request.spec.cluster_name;
        let set = worker_set(name, &request.spec.set);
        let decide = |seen: &Observed<'_>| {
            machine_request::plan(&machine_request::Observed {
                now: self.now,
                request,
                deployment: seen.deployment,
                set: seen.sets.iter().copied().find(|there| there.name() == set),
                has_pool: true,
                machines: &seen.machines,
            })
        };
        let mut plan = decide(&Observed::new(cache, name));
        if !plan.actions.is_empty() || plan.status.answered_at.is_some() {
            plan = decide(&Observed::new(self, name));
        }
        let mut writes = Vec::new();
        if request.status.as_ref().unwrap_or(&MachineRequestStatus::default()) != &plan.status {
            writes.push(Write::RequestStatus(request.name().to_owned(), Box::new(plan.status)));
        }
        let actions = plan.actions.into_iter();
        writes.extend(actions.map(|action| Write::Request(request.name().to_owned(), Box::new(action))));
        writes
    }

    fn reconcile_machine(&self, cache: &World, machine: &Machine, shares: &Shares) -> Vec<Write> {
        use machine::{Action, Observed as Input, plan};
        let name = &machine.spec.cluster_name;
        let drain = self.drain_of(machine);
        let nodes = self.known_nodes(name);
        let cached = Observed::new(cache, name);
        let is_former =
            |deployment: &&ClusterDeployment| former::is_former(machine, (*deployment).into(), &cached.sets);
        let deployment = cached.deployment.filter(|deployment| !is_former(deployment));
        let decide = |machine: &Machine, seen: &Observed<'_>, runs: &Observed<'_>| {
            plan(&Input {
                now: self.now,
                resumed_at: self.resumed_at,
                machine,
                formed: deployment.map(Into::into),
                machines: &cached.machines,
                hosts: &seen.hosts,
                share: shares.share(machine),
                runs: &runs.runs,
                nodes: nodes.as_deref(),
                cluster: cached.cluster,
                node_answer: None,
                drain: Some(&drain),
            })
        };
        let (mut machine, mut plan) = (machine, decide(machine, &cached, &cached));
        if plan.actions.iter().any(Action::is_irrevocable) {
            let Some(live) = self.machines.iter().find(|live| live.metadata.uid == machine.metadata.uid) else {
                return Vec::new();
            };
            let seen = Observed::new(self, name);
            (machine, plan) = (live, decide(live, &seen, if live.is_deleting() { &seen } else { &cached }));
        }
        let uid = machine.uid().to_owned();
        let actions = plan.actions.into_iter();
        let mut writes: Vec<Write> = actions.map(|action| Write::Machine(uid.clone(), Box::new(action))).collect();
        if machine.status.as_ref() != Some(&plan.status) {
            writes.push(Write::MachineStatus(uid, Box::new(plan.status)));
        }
        writes
    }

    /// The Nodes of a cluster, if it is the one that its Cluster object has seen.
    fn known_nodes(&self, name: &str) -> Option<Vec<NodeSeen>> {
        let cluster = self.find_cluster(name)?;
        let known = cluster.cluster.as_ref()?.status.as_ref().and_then(|status| status.cluster_uid.as_ref());
        self.nodes_of(cluster).filter(|_| known.is_none_or(|known| *known == cluster.api_uid()))
    }
}
