//! Around: what else is known of a cluster, from the caches or from the API.

use std::sync::Arc;

use crds::{ClusterDeployment, Host, Machine};
use kube::Api;
use kube::api::ListParams;

use crate::context::Context;
use crate::error::{Doing, Error};
use crate::live;
use crate::remote::Key;

/// What else is known of a cluster.
pub(super) struct Around {
    /// Its Machines.
    pub machines: Vec<Arc<Machine>>,
    /// The ClusterDeployment of its name.
    pub deployment: Option<Arc<ClusterDeployment>>,
    /// Hosts of the namespace that are quarantined.
    pub hosts: Vec<Arc<Host>>,
}

/// As the caches show it.
pub(super) fn cached(ctx: &Context, key: &Key) -> Around {
    let cache = &ctx.cache;
    Around {
        machines: cache
            .machines
            .list(&key.namespace, |machine| machine.spec.cluster_name == key.name),
        deployment: cache.cluster_deployments.get(&key.namespace, &key.name),
        hosts: cache
            .hosts
            .list(&key.namespace, |host| host.spec.quarantine.is_some()),
    }
}

/// The same from the API, where something is done that cannot be taken back.
pub(super) async fn live(ctx: &Context, key: &Key) -> Result<Around, Error> {
    let (client, namespace) = (&ctx.client, key.namespace.as_str());
    let of_cluster = ListParams::default().fields(&format!("spec.clusterName={}", key.name));
    let action = format!("list the Machines of cluster {}", key.name);
    let machines: Vec<Machine> =
        live::list_for_cluster(ctx, namespace, &key.name, &of_cluster, &action).await?;
    let deployments: Api<ClusterDeployment> = Api::namespaced(client.clone(), namespace);
    let deployment = deployments.get_opt(&key.name).await;
    let all = ListParams::default();
    let hosts: Vec<Host> = live::list_for_cluster(ctx, namespace, &key.name, &all, "list the Hosts").await?;
    Ok(Around {
        machines: machines.into_iter().map(Arc::new).collect(),
        deployment: deployment
            .doing(|| format!("read ClusterDeployment {}", key.name))?
            .map(Arc::new),
        hosts: hosts
            .into_iter()
            .filter(|host| host.spec.quarantine.is_some())
            .map(Arc::new)
            .collect(),
    })
}
