//! One look at a cluster through its API: does it answer, which one is it, do its components work. Reads only.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::time::Duration;

use crds::Reason;
use crds::cluster::ComponentHealth;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::ListParams;
use kube::{Api, Client};
use plan::cluster::Seen;
use plan::cluster::components::{LeaseSeen, from_lease, from_readyz, from_rollout, not_read};
use plan::cluster::dns::{self, DnsSeen};

use crate::error::chain;

const DEADLINE: Duration = Duration::from_secs(10);
const NAMESPACE: &str = "kube-system";
const MOST_DNS_PODS: u32 = 100;

/// The API does not answer, or lets nobody in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// CamelCase.
    pub reason: Reason,
    /// Half a sentence; the same for the same cause.
    pub message: String,
}

/// Looks. `leases` is what the last look saw of them.
pub async fn probe(
    client: &Client,
    leases: &HashMap<&'static str, LeaseSeen>,
    now: Timestamp,
) -> Result<(Seen, HashMap<&'static str, LeaseSeen>), Lost> {
    let silent = || Lost { reason: Reason::Timeout, message: format!("no answer within {} s", DEADLINE.as_secs()) };
    let readyz = tokio::time::timeout(DEADLINE, readyz(client)).await;
    let mut components = readyz.map_err(|_| silent())??;

    let identity: Api<Namespace> = Api::all(client.clone());
    // One after the other, over one connection: hundreds of clusters are looked at.
    let rest = async {
        (
            client.apiserver_version().await,
            identity.get(NAMESPACE).await,
            lease(client, "kube-controller-manager", leases, now).await,
            lease(client, "kube-scheduler", leases, now).await,
            deployments(client).await,
            daemon_sets(client).await,
        )
    };
    // It answered, so there is contact: what takes longer is not known this time.
    let Ok((version, identity, manager, scheduler, dns, proxy)) = tokio::time::timeout(DEADLINE, rest).await else {
        components.retain(|component| component.name != "kube-apiserver");
        components.push(not_read("kube-apiserver", &silent().message));
        let seen = Seen { components, ..Seen::default() };
        return Ok((seen, leases.clone()));
    };
    if let Err(error) = &identity
        && let Some(lost) = refused(error)
    {
        return Err(lost);
    }
    let mut leases = HashMap::new();
    for (component, health, lease) in [manager, scheduler].into_iter().flatten() {
        components.push(health);
        leases.extend(lease.map(|lease| (component, lease)));
    }
    let (dns_health, dns) = dns;
    components.extend(dns_health);
    components.extend(proxy);
    let seen = Seen {
        version: version.ok().map(|info| info.git_version.trim_start_matches('v').chars().take(64).collect()),
        cluster_uid: identity.ok().and_then(|namespace| namespace.metadata.uid),
        components,
        nodes: None,
        etcd_size: None,
        dns,
    };
    Ok((seen, leases))
}

async fn readyz(client: &Client) -> Result<Vec<ComponentHealth>, Lost> {
    let request = http::Request::get("/readyz?verbose").body(Vec::new());
    let request = request.map_err(|error| Lost { reason: Reason::Unreachable, message: error.to_string() })?;
    match client.request_text(request).await {
        Ok(text) => Ok(from_readyz(true, &text)),
        Err(error) => match refused(&error) {
            Some(lost) => Err(lost),
            None => match error {
                kube::Error::Api(status) => Ok(from_readyz(false, &status.message)),
                error => Err(unreachable(&error)),
            },
        },
    }
}

fn refused(error: &kube::Error) -> Option<Lost> {
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            Some(Lost { reason: Reason::Unauthorized, message: "it refuses the kubeconfig's credentials (401)".into() })
        }
        kube::Error::Api(status) if status.code == 403 => {
            Some(Lost { reason: Reason::Forbidden, message: "it does not let the kubeconfig's user in (403)".into() })
        }
        _ => None,
    }
}

/// Sorts what the network said into few causes, so that the same cause reads the same each time.
fn unreachable(error: &kube::Error) -> Lost {
    let lost = |reason, message: &str| Lost { reason, message: message.into() };
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            match error.kind() {
                std::io::ErrorKind::ConnectionRefused => {
                    return lost(Reason::ConnectionRefused, "connection refused");
                }
                std::io::ErrorKind::TimedOut => return lost(Reason::Timeout, "no answer to the connection"),
                std::io::ErrorKind::ConnectionReset => {
                    return lost(Reason::ConnectionReset, "connection reset");
                }
                std::io::ErrorKind::HostUnreachable | std::io::ErrorKind::NetworkUnreachable => {
                    return lost(Reason::Unreachable, "no route to it");
                }
                _ => {}
            }
        }
        cause = error.source();
    }
    let text = chain(error);
    let has = |word: &str| text.to_lowercase().contains(word);
    if has("certificate") {
        lost(
            Reason::CertificateRejected,
            "its certificate is not signed by the kubeconfig's authority for this address, or has ended",
        )
    } else if has("timed out") || has("timeout") || has("deadline") {
        lost(Reason::Timeout, "no answer to the connection")
    } else if has("dns") || has("resolve") || has("lookup") {
        lost(Reason::NameNotResolved, "its name is not resolved")
    } else {
        lost(Reason::Unreachable, &text.chars().filter(|c| !c.is_control()).take(300).collect::<String>())
    }
}

type LeaseHealth = (&'static str, ComponentHealth, Option<LeaseSeen>);

/// `None`: nobody has ever held this lease, as where somebody else runs the control plane.
async fn lease(
    client: &Client,
    component: &'static str,
    before: &HashMap<&'static str, LeaseSeen>,
    now: Timestamp,
) -> Option<LeaseHealth> {
    let api: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    match api.get_opt(component).await {
        Ok(Some(lease)) => {
            let renewed = lease.spec.and_then(|spec| spec.renew_time).map(|time| time.0);
            let (health, seen) = from_lease(component, renewed, before.get(component).copied(), now);
            Some((component, health, seen))
        }
        Ok(None) => None,
        Err(error) => Some((component, not_read(component, &why(&error)), before.get(component).copied())),
    }
}

/// CoreDNS, or what stands in its place; a cluster without is not judged.
async fn deployments(client: &Client) -> (Option<ComponentHealth>, Option<DnsSeen>) {
    let api: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let (key, value) = dns::LABEL;
    let ours = ListParams::default().labels(&format!("{key}={value}"));
    let deployment = match api.list(&ours.clone().limit(5)).await {
        Ok(list) => list.items.into_iter().next(),
        Err(error) => return (Some(not_read("coredns", &why(&error))), None),
    };
    let Some(deployment) = deployment else {
        return (None, None);
    };
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let status = deployment.status.as_ref();
    let available = status.and_then(|status| status.available_replicas).unwrap_or(0);
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    // Where they are is looked at again in the next probe.
    let pods = pods.list(&ours.limit(MOST_DNS_PODS)).await.map(|list| list.items);
    let health = from_rollout("coredns", wanted, available);
    (Some(health), DnsSeen::from_deployment(deployment, pods.unwrap_or_default()))
}

/// kube-proxy; a cluster without (its network plugin does the work) is not judged.
async fn daemon_sets(client: &Client) -> Option<ComponentHealth> {
    let api: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    match api.get_opt("kube-proxy").await {
        Ok(daemon_set) => {
            let status = daemon_set?.status.unwrap_or_default();
            let wanted = status.desired_number_scheduled;
            Some(from_rollout("kube-proxy", wanted, status.number_available.unwrap_or(0)))
        }
        Err(error) => Some(not_read("kube-proxy", &why(&error))),
    }
}

fn why(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("the API server says {} {}", status.code, status.reason),
        error => unreachable(error).message,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::convert::Infallible;

    use super::{Lost, probe};
    use http::{Request, Response};
    use jiff::Timestamp;
    use kube::Client;
    use kube::client::Body;
    use plan::cluster::Seen;
    use serde_json::json;

    const NOW: &str = "2026-11-21T12:00:00Z";

    /// What an API server answers: by path, else 404.
    async fn look(answers: &'static [(&'static str, u16, &'static str)]) -> Result<Seen, Lost> {
        let service = tower::service_fn(move |request: Request<Body>| async move {
            let found = answers.iter().find(|(path, ..)| *path == request.uri().path());
            let (code, text) = found.map_or((404, json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "",
            }).to_string()), |(_, code, text)| (*code, (*text).to_owned()));
            let response = Response::builder().status(code).body(Body::from(text.into_bytes()));
            Ok::<_, Infallible>(response.unwrap())
        });
        let now: Timestamp = NOW.parse().unwrap();
        probe(&Client::new(service, "default"), &HashMap::new(), now).await.map(|(seen, _)| seen)
    }

    fn components(seen: &Seen) -> Vec<String> {
        let components = seen.components.iter();
        components.map(|c| format!("{} {} {}", c.name, c.healthy, c.message.as_deref().unwrap_or("-"))).collect()
    }

    const VERSION: (&str, u16, &str) = (
        "/version",
        200,
        r#"{"major":"1","minor":"35","gitVersion":"v1.35.4","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#,
    );
    const IDENTITY: (&str, u16, &str) =
        ("/api/v1/namespaces/kube-system", 200, r#"{"metadata":{"name":"kube-system","uid":"uid-1"}}"#);

    #[tokio::test]
    async fn a_control_plane_is_seen_through_its_api() {
        let seen = look(&[
            ("/readyz", 200, "[+]ping ok\n[+]etcd ok\nreadyz check passed"),
            VERSION,
            IDENTITY,
            ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler", 200, r#"{"metadata":{"name":"kube-scheduler"},"spec":{"renewTime":"2026-11-21T11:59:58.000000Z"}}"#),
            ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager", 200, r#"{"metadata":{"name":"kube-controller-manager"},"spec":{"renewTime":"2026-11-21T10:00:00.000000Z"}}"#),
            ("/apis/apps/v1/namespaces/kube-system/deployments", 200, r#"{"metadata":{},"items":[{"metadata":{"name":"coredns"},"spec":{"replicas":2,"selector":{},"template":{}},"status":{"availableReplicas":1}}]}"#),
            ("/api/v1/namespaces/kube-system/pods", 200, r#"{"metadata":{},"items":[{"metadata":{"name":"coredns-1","uid":"u"},"spec":{"nodeName":"m1","containers":[]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}"#),
            ("/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy", 200, r#"{"metadata":{"name":"kube-proxy"},"status":{"currentNumberScheduled":3,"desiredNumberScheduled":3,"numberAvailable":3,"numberMisscheduled":0,"numberReady":3}}"#),
        ])
        .await
        .unwrap();
        assert_eq!((seen.version.as_deref(), seen.cluster_uid.as_deref()), (Some("1.35.4"), Some("uid-1")));
        assert_eq!(
            components(&seen),
            [
                "kube-apiserver true -",
                "etcd true -",
                "kube-controller-manager false its leader has not renewed the lease since 2026-11-21 10:00:00 UTC",
                "kube-scheduler true -",
                "coredns false 1 of 2 Pods are available",
                "kube-proxy true 3 of 3 Pods are available",
            ]
        );
        let dns = seen.dns.unwrap();
        let pods = dns.pods.iter().map(|pod| (pod.pod.name.as_str(), pod.node.as_str(), pod.ready));
        assert_eq!((dns.replicas, pods.collect::<Vec<_>>()), (2, vec![("coredns-1", "m1", true)]));
    }

    #[tokio::test]
    async fn an_api_server_without_etcd_is_reached_and_unhealthy() {
        let seen = look(&[
            ("/readyz", 500, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed"),
            VERSION,
            ("/api/v1/namespaces/kube-system", 500, "etcdserver: request timed out"),
            ("/apis/apps/v1/namespaces/kube-system/deployments", 200, r#"{"metadata":{},"items":[]}"#),
        ])
        .await
        .unwrap();
        assert_eq!(components(&seen), ["kube-apiserver true -", "etcd false the API server does not reach it"]);
        assert_eq!(seen.cluster_uid, None);
    }

    #[tokio::test]
    async fn credentials_that_are_refused_are_lost_contact() {
        let lost =
            look(&[("/readyz", 401, r#"{"kind":"Status","status":"Failure","code":401,"reason":"Unauthorized"}"#)])
                .await;
        assert_eq!(lost.unwrap_err().reason, "Unauthorized");
        let lost = look(&[
            ("/readyz", 200, "ok"),
            (
                "/api/v1/namespaces/kube-system",
                403,
                r#"{"kind":"Status","status":"Failure","code":403,"reason":"Forbidden"}"#,
            ),
        ]);
        assert_eq!(lost.await.unwrap_err().reason, "Forbidden");
    }
}
