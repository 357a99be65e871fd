//! The pools shared out, kept until a Host or a Machine changes: whoever looks for a Host meanwhile is answered by the
//! same.

use std::sync::Arc;

use plan::claims::Shares;

use super::{Cache, refs};

impl Cache {
    /// What each Machine of a namespace that looks for a Host may take, by what was last seen.
    pub fn shares(&self, namespace: &str) -> Arc<Shares> {
        // Read before the objects: what changes in between is looked at once more.
        let versions = (self.hosts.version(), self.machines.version());
        self.kept.get(namespace, versions, || {
            let (machines, hosts) = (self.machines.list(namespace, |_| true), self.hosts.list(namespace, |_| true));
            Shares::new(&refs(&machines), &refs(&hosts))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crds::{Host, Machine};
    use plan::claims::Share;

    use super::Cache;

    fn host(name: &str) -> Host {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}, namespace: n}}, spec: {{address: {name}.example, ssh: {{credentialsRef: {{name: key}}}}}}, status: {{cleanedEpoch: 0, conditions: [{{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    #[test]
    fn the_pool_is_shared_out_anew_when_it_has_changed_and_not_before() {
        let machine = "{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {name: m, namespace: n, uid: m}, spec: {clusterName: a, role: worker, kubernetesVersion: 1.35.4}}";
        let machine: Machine = serde_yaml::from_str(machine).unwrap();
        let cache = Cache::new();
        cache.machines.fill(vec![machine.clone()]);
        let nothing = cache.shares("n");
        assert!(matches!(nothing.share(&machine), Some(Share::Nothing(offer)) if offer.free == 0));
        assert!(Arc::ptr_eq(&nothing, &cache.shares("n")));
        cache.hosts.fill(vec![host("h1")]);
        let shares = cache.shares("n");
        assert_eq!(shares.share(&machine), Some(Share::Host("h1")));
        cache.machines.fill(Vec::new());
        assert_eq!(cache.shares("n").share(&machine), None);
    }
}
