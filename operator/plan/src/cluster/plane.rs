//! The Cluster of a Karmada control plane: an API like any other, without machines behind it.

use crds::Cluster;
use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;

use super::observed::Seen;

/// The components that a plane has of those that are looked at: Kubernetes' scheduler and DNS are not among them.
const COMPONENTS: [&str; 3] = ["kube-apiserver", "etcd", "kube-controller-manager"];

/// Whether the Cluster stands for a Karmada control plane that was made here.
pub fn is_plane(cluster: &Cluster) -> bool {
    let mut owners = cluster.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && owner.kind == "KarmadaDeployment")
}

/// What counts of what was seen: a Deployment in a plane is a template for its members, and a Node nobody's machine.
pub(super) fn seen(seen: &Seen) -> Seen {
    let mut seen = Seen { nodes: Some(Vec::new()), dns: None, ..seen.clone() };
    seen.components.retain(|component| COMPONENTS.contains(&component.name.as_str()));
    seen
}

/// `NodesHealthy` of a plane.
pub(super) fn nodes_healthy() -> Statement {
    Statement::new(condition::NODES_HEALTHY, true, Reason::NoneWanted, "a Karmada control plane has no Nodes")
}

#[cfg(test)]
mod tests {
    use crds::Cluster;
    use crds::names::condition;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use crate::cluster::components::{from_readyz, not_read};
    use crate::cluster::{Access, Contact, NodeSeen, Observed, Seen, plan};

    fn cluster(owner: &str) -> Cluster {
        let owner =
            format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: {owner}, name: k1, uid: u, controller: true}}");
        serde_yaml::from_str(&format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Cluster, metadata: {{name: k1, namespace: fleet, ownerReferences: [{owner}]}}, spec: {{kubeconfigRef: {{name: x}}}}}}"
        ))
        .unwrap()
    }

    /// Whether it is Ready, and whether its Nodes are healthy.
    fn look(owner: &str, missing: &str) -> (bool, bool) {
        let mut components = from_readyz(true, "[+]etcd ok");
        components.extend(["kube-scheduler", "coredns", missing].map(|name| not_read(name, "it is not there")));
        let seen = Seen {
            components,
            nodes: Some(vec![NodeSeen { name: "template".into(), ..NodeSeen::default() }]),
            ..Seen::default()
        };
        let access = Access { server: "https://k1:5443".into(), certificates: Vec::new() };
        let planned = plan(&Observed {
            cluster: &cluster(owner),
            contact: Contact::Made { access, seen },
            machines: &[],
            deployment: None,
            hosts: &[],
            planes: &[],
            resumed_at: None,
            now: Time("2026-11-27T09:00:00Z".parse().unwrap()),
            chance: 0.5,
        });
        assert!(planned.actions.is_empty() || owner != "KarmadaDeployment");
        let is_true = |type_: &str| crds::conditions::is_true(&planned.status.conditions, type_);
        (is_true(condition::CONTROL_PLANE_HEALTHY), is_true(condition::NODES_HEALTHY))
    }

    #[test]
    fn a_karmada_control_plane_is_healthy_without_nodes_scheduler_and_dns() {
        assert_eq!(look("KarmadaDeployment", "kube-proxy"), (true, true));
        assert_eq!(look("KarmadaDeployment", "kube-controller-manager"), (false, true));
        assert_eq!(look("ClusterDeployment", "kube-proxy"), (false, false));
    }
}
