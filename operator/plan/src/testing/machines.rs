//! The machines: they lose their power, get it back, register their Nodes, and are cleaned.

use super::world::World;

impl World {
    /// The machine loses its power: it answers to nobody, and its node falls silent.
    pub fn kill(&mut self, host: &str) {
        self.silent.insert(host.into());
        self.silent_nodes.insert(host.into());
    }

    /// It is back as it was.
    pub fn revive(&mut self, host: &str) {
        self.silent.remove(host);
        self.silent_nodes.remove(host);
    }

    /// It has power again, and everything on it starts.
    pub fn boot(&mut self, host: &str) {
        if self.is_dead(host) {
            self.booting.insert(host.into());
        }
        self.revive(host);
    }

    pub(super) fn is_dead(&self, host: &str) -> bool {
        self.silent.contains(host) && self.silent_nodes.contains(host)
    }

    /// The cluster that the machine's kubelet is of.
    pub fn kubelet_of(&self, host: &str) -> Option<&str> {
        self.kubelets.get(host).map(String::as_str)
    }

    /// Nothing of a cluster is left on it.
    pub fn wipe(&mut self, host: &str) {
        for of_clusters in
            [&mut self.dirty, &mut self.etcd_data, &mut self.begun_on, &mut self.booting, &mut self.returned]
        {
            of_clusters.remove(host);
        }
        self.kubelets.remove(host);
        self.kubelet_versions.remove(host);
        self.api_versions.remove(host);
        self.registrations.remove(host);
        self.wipe_authorities(host);
    }

    /// The kubelet of a machine registers its Node again, whatever is being done to the machine.
    pub fn return_node(&mut self, host: &str) {
        if self.nodes.insert(host.into()) {
            self.returned.insert(host.into());
        }
    }

    /// Machines that have got their power back register their Nodes again, whoever has forgotten them.
    pub fn register_nodes(&mut self) {
        for host in self.booting.clone() {
            let Some(cluster) = self.kubelets.get(&host).filter(|_| !self.is_dead(&host)).cloned() else {
                continue;
            };
            if self.find_cluster(&cluster).is_some_and(|cluster| self.serves(cluster)) {
                self.booting.remove(&host);
                if self.register_node(&cluster, &host) {
                    self.returned.insert(host);
                }
            }
        }
    }
}
