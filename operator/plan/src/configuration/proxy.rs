//! Proxies, of whatever part.

use crds::ClusterDeployment;
use serde_json::{Value, json};

/// With what is never asked for through a proxy: the machine itself, and all that is of the cluster.
pub(super) fn lower(deployment: &ClusterDeployment, mut wanted: Value) -> Value {
    let (networking, endpoint) = (&deployment.spec.networking, &deployment.spec.control_plane.endpoint);
    let domain = format!(".{}", networking.dns_domain);
    let mut direct = vec!["localhost", "127.0.0.1", &networking.pod_cidr, &networking.service_cidr, ".svc", &domain];
    direct.extend(endpoint.as_ref().map(|endpoint| endpoint.host.as_str()));
    if let Some(proxy) = wanted.get_mut("proxy") {
        let given = proxy.get("noProxy").and_then(Value::as_array).cloned().unwrap_or_default();
        let direct = direct.into_iter().map(|name| json!(name)).filter(|name| !given.contains(name));
        let all: Vec<Value> = direct.chain(given.iter().cloned()).collect();
        proxy["noProxy"] = json!(all);
    }
    wanted
}
