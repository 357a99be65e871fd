//! The passes of the controllers: what each of them writes, by what it sees. Caches may be behind; what cannot be taken
//! back is decided once more by what the API says.

use crds::ObjectExt;
use crds::{Cluster, Host, Machine, MachineSet, PlaybookRun};

use super::{World, Write};
use crate::claims::Shares;
use crate::cluster::NodeSeen;
use crate::{cluster_deployment, machine, machine_set};

/// What a controller sees of the namespace.
struct Seen<'a> {
    sets: Vec<&'a MachineSet>,
    machines: Vec<&'a Machine>,
    hosts: Vec<&'a Host>,
    runs: Vec<&'a PlaybookRun>,
    cluster: Option<&'a Cluster>,
}

impl<'a> Seen<'a> {
    fn new(world: &'a World) -> Self {
        Self {
            sets: world.sets.iter().collect(),
            machines: world.machines.iter().collect(),
            hosts: world.hosts.iter().collect(),
            runs: world.runs.iter().collect(),
            cluster: world.cluster.as_ref(),
        }
    }
}

impl World {
    /// What each controller's pass writes, with caches that show this world.
    pub(super) fn passes(&self, cache: &World) -> Vec<Vec<Write>> {
        let mut passes = Vec::new();
        if !self.gone {
            passes.push(self.pass_of_deployment(cache));
        }
        passes.extend(cache.sets.iter().map(|set| self.pass_of_set(cache, set)));
        let machines = cache.machines.iter();
        passes.extend(machines.map(|machine| self.pass_of_machine(cache, machine)));
        passes
    }

    fn pass_of_deployment(&self, cache: &World) -> Vec<Write> {
        use cluster_deployment::{Action, Observed, plan};
        let decide = |seen: &Seen<'_>| {
            plan(&Observed {
                now: self.now,
                deployment: &self.deployment,
                sets: &seen.sets,
                machines: &seen.machines,
                hosts: &seen.hosts,
                runs: &seen.runs,
                policies: &self.policies.iter().collect::<Vec<_>>(),
                deployments: &self.others.iter().collect::<Vec<_>>(),
                library: self.library.as_ref(),
                cluster: seen.cluster,
                manifests: &self.manifests,
                forgotten_nodes: None,
                pki: self.pki,
                kubeconfig: self.kubeconfig,
            })
        };
        let mut seen = Seen::new(cache);
        // Runs that hold the lock are read where a cache does not show them.
        let held = self.deployment.status.iter().flat_map(|status| &status.operations);
        for held in held {
            let is_it = |run: &&PlaybookRun| run.metadata.name.as_ref() == Some(&held.run);
            if !seen.runs.iter().any(&is_it) {
                seen.runs.extend(self.runs.iter().find(|run| is_it(run)));
            }
        }
        let mut plan = decide(&seen);
        let token = |status: &crds::ClusterDeploymentStatus| status.last_token.is_some();
        let opens = token(&plan.status) && !self.deployment.status.as_ref().is_some_and(token);
        if opens || plan.actions.iter().any(Action::is_irrevocable) {
            plan = decide(&Seen { cluster: seen.cluster, ..Seen::new(self) });
        }
        let mut writes: Vec<Write> = plan.actions.into_iter().map(Write::Deployment).collect();
        if self.deployment.status.as_ref() != Some(&plan.status) {
            writes.push(Write::DeploymentStatus(Box::new(plan.status)));
        }
        writes
    }

    fn pass_of_set(&self, cache: &World, set: &MachineSet) -> Vec<Write> {
        let hosts: Vec<&Host> = cache.hosts.iter().collect();
        let deployment = (!cache.gone).then_some(&cache.deployment);
        let decide = |set: &MachineSet, world: &World| {
            machine_set::plan(&machine_set::Observed {
                now: self.now,
                set,
                deployment,
                machines: &world.machines.iter().collect::<Vec<_>>(),
                hosts: &hosts,
                runs: &world.runs.iter().collect::<Vec<_>>(),
            })
        };
        let (mut set, mut plan) = (set, decide(set, cache));
        if !plan.actions.is_empty() {
            let is_it = |live: &&MachineSet| live.metadata.uid == set.metadata.uid;
            let Some(live) = self.sets.iter().find(is_it) else {
                return Vec::new();
            };
            (set, plan) = (live, decide(live, self));
        }
        let mut writes: Vec<Write> = plan.actions.into_iter().map(Write::Set).collect();
        if set.status.as_ref() != Some(&plan.status) {
            let name = set.metadata.name.clone().unwrap();
            writes.push(Write::SetStatus(name, Box::new(plan.status)));
        }
        writes
    }

    fn pass_of_machine(&self, cache: &World, machine: &Machine) -> Vec<Write> {
        use machine::{Action, Observed, plan};
        let drain = self.drain_of(machine);
        let nodes = self.nodes_seen();
        let machines: Vec<&Machine> = cache.machines.iter().collect();
        let sets: Vec<&MachineSet> = cache.sets.iter().collect();
        let former = cluster_deployment::former::is_former(machine, &cache.deployment, &sets);
        let shares = Shares::new(&machines, &cache.hosts.iter().collect::<Vec<_>>());
        let decide = |machine: &Machine, hosts: &World, runs: &World| {
            plan(&Observed {
                now: self.now,
                machine,
                deployment: (!cache.gone && !former).then_some(&cache.deployment),
                machines: &machines,
                hosts: &hosts.hosts.iter().collect::<Vec<_>>(),
                share: shares.share(machine),
                runs: &runs.runs.iter().collect::<Vec<_>>(),
                nodes: nodes.as_deref(),
                cluster: cache.cluster.as_ref(),
                drain: Some(&drain),
            })
        };
        let (mut machine, mut plan) = (machine, decide(machine, cache, cache));
        if plan.actions.iter().any(Action::is_irrevocable) {
            let is_it = |live: &&Machine| live.metadata.uid == machine.metadata.uid;
            let Some(live) = self.machines.iter().find(is_it) else {
                return Vec::new();
            };
            let leaves = live.is_deleting();
            (machine, plan) = (live, decide(live, self, if leaves { self } else { cache }));
        }
        let uid = machine.metadata.uid.clone().unwrap();
        let actions = plan.actions.into_iter();
        let mut writes: Vec<Write> = actions.map(|action| Write::Machine(uid.clone(), Box::new(action))).collect();
        if machine.status.as_ref() != Some(&plan.status) {
            writes.push(Write::MachineStatus(uid, Box::new(plan.status)));
        }
        writes
    }

    /// The Nodes, where the cluster of the kubeconfig answers.
    fn nodes_seen(&self) -> Option<Vec<NodeSeen>> {
        let known = self.cluster.as_ref()?.status.as_ref();
        let known = known.and_then(|status| status.cluster_uid.as_ref());
        let is_it = known.is_none_or(|known| *known == self.api_uid());
        (is_it && self.api_answers()).then(|| self.nodes.iter().map(|name| self.node(name)).collect())
    }
}
