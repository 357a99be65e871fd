//! The drain of one node through its cluster's API: its Pods are looked at, and asked to go. Each call has its
//! deadline, and there are only so many of them in one pass.

use std::collections::BTreeMap;
use std::time::Duration;

use crds::names::NODE_DRAIN_FIELD_MANAGER;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::{Selector, SelectorExt};
use kube::{Api, Client, ResourceExt};
use plan::drain::{Drain, PodSeen, Refusal};
use serde_json::{Value, json};

use crate::error::{Error, chain};

/// How long one call may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// Pods of one answer.
const PAGE: u32 = 500;
/// Pods that are looked at in one pass: a kubelet takes far fewer that have not ended.
const MOST_PODS: usize = 20_000;
/// Pods that have ended hold nothing up, and a node may carry any number of them.
const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";
/// PodDisruptionBudgets of one namespace that are looked at.
const MOST_BUDGETS: u32 = 250;
/// Namespaces whose budgets are looked at in one pass.
const MOST_NAMESPACES: usize = 4;
/// Evictions that are under way at once.
const AT_ONCE: usize = 10;

/// Keeps new Pods off a Node; one that is gone takes none.
pub async fn cordon(client: Client, node: &str, uid: &str) -> Result<(), Error> {
    let applied = apply(client, node, uid, json!({ "unschedulable": true })).await;
    gone_is_well(applied, || format!("cordon Node {node}"))
}

/// Gives up that a Node is cordoned: it takes Pods again, unless somebody else has cordoned it.
pub async fn uncordon(client: Client, node: &str, uid: &str) -> Result<(), Error> {
    let applied = apply(client, node, uid, json!({})).await;
    gone_is_well(applied, || format!("uncordon Node {node}"))
}

/// With its UID: the API server makes no Node of it where there is none, and writes no other one of its name.
async fn apply(client: Client, node: &str, uid: &str, spec: Value) -> Result<Node, Failure> {
    let nodes: Api<Node> = Api::all(client);
    let object = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": node, "uid": uid }, "spec": spec });
    let params = PatchParams::apply(NODE_DRAIN_FIELD_MANAGER).force();
    within(nodes.patch(node, &params, &Patch::Apply(object))).await
}

/// Takes a Node out of its cluster; one that is gone is well.
pub async fn delete_node(client: Client, node: &str) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client);
    let params = DeleteParams::default();
    let deleted = within(nodes.delete(node, &params)).await;
    gone_is_well(deleted, || format!("delete Node {node}"))
}

/// The Pods on a Node, as far as they have to go.
pub async fn look(client: Client, node: &str) -> Drain {
    let pods: Api<Pod> = Api::all(client);
    let of_node = ListParams::default().fields(&format!("spec.nodeName={node},{NOT_ENDED}")).limit(PAGE);
    Drain { pods: all(&pods, of_node).await.map_err(|why| why.to_string()), refusals: Vec::new() }
}

/// Every page: a node is not empty because its first Pods need not go.
async fn all(pods: &Api<Pod>, mut params: ListParams) -> Result<Vec<PodSeen>, Failure> {
    let mut seen = Vec::new();
    let mut looked_at = 0;
    loop {
        let listed = within(pods.list(&params)).await?;
        looked_at += listed.items.len();
        seen.extend(listed.items.iter().filter_map(PodSeen::to_evict));
        let more = listed.metadata.continue_.filter(|token| !token.is_empty());
        match more {
            None => return Ok(seen),
            Some(_) if looked_at >= MOST_PODS => return Err(Failure::TooMany),
            Some(token) => params.continue_token = Some(token),
        }
    }
}

/// Asks that Pods go elsewhere; what was refused, and by which PodDisruptionBudgets.
pub async fn evict(client: &Client, pods: &[PodSeen]) -> Vec<Refusal> {
    let asked = stream::iter(pods.to_vec()).map(|pod| {
        let client = client.clone();
        async move {
            let answer = ask(&client, &pod).await;
            (pod, answer)
        }
    });
    let answers: Vec<(PodSeen, Answer)> = asked.buffered(AT_ONCE).collect().await;
    let mut budgets: BTreeMap<String, Vec<Budget>> = BTreeMap::new();
    for (pod, answer) in &answers {
        let is_new = !budgets.contains_key(&pod.namespace) && budgets.len() < MOST_NAMESPACES;
        if matches!(answer, Answer::Refused { by_budget: true, .. }) && is_new {
            let found = budgets_of(client, &pod.namespace).await;
            budgets.insert(pod.namespace.clone(), found);
        }
    }
    let refusal = |(pod, answer): (PodSeen, Answer)| {
        let Answer::Refused { message, by_budget, retry_after_seconds } = answer else {
            return None;
        };
        let of_namespace = budgets.get(&pod.namespace).filter(|_| by_budget);
        let hold = |budget: &&Budget| budget.selector.matches(&pod.labels);
        let names = of_namespace.into_iter().flatten().filter(hold);
        Some(Refusal {
            uid: pod.uid.clone(),
            budgets: names.map(|budget| budget.name.clone()).collect(),
            message,
            retry_after_seconds,
        })
    };
    answers.into_iter().filter_map(refusal).collect()
}

/// What an eviction was answered.
enum Answer {
    /// The Pod goes, or is gone.
    Granted,
    /// Not now.
    Refused {
        /// What was said.
        message: String,
        /// A PodDisruptionBudget holds the Pod.
        by_budget: bool,
        /// When to ask again at the soonest; 0: not said.
        retry_after_seconds: u32,
    },
}

impl Answer {
    fn failed(message: String) -> Self {
        Self::Refused { message, by_budget: false, retry_after_seconds: 0 }
    }
}

/// Asks for one Pod. The library's own request would not carry the UID.
async fn ask(client: &Client, pod: &PodSeen) -> Answer {
    let (namespace, name) = (&pod.namespace, &pod.name);
    let body = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "namespace": namespace, "name": name },
        "deleteOptions": { "preconditions": { "uid": pod.uid } },
    });
    let request = http::Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes());
    let request = match request {
        Ok(request) => request,
        Err(error) => return Answer::failed(error.to_string()),
    };
    match within(client.request::<Value>(request)).await {
        Ok(_) => Answer::Granted,
        // Another Pod of this name is not the one that had to go.
        Err(Failure::Api(kube::Error::Api(status))) if status.is_not_found() || status.is_conflict() => Answer::Granted,
        Err(Failure::Api(kube::Error::Api(status))) if status.code == 429 => {
            let details = status.details.as_ref();
            // An API server that is busy says 429, too.
            let by_budget = details.is_some_and(|details| {
                let mut causes = details.causes.iter();
                causes.any(|cause| cause.reason == "DisruptionBudget")
            });
            Answer::Refused {
                message: status.message.clone(),
                by_budget,
                retry_after_seconds: details.map_or(0, |details| details.retry_after_seconds),
            }
        }
        Err(failure) => Answer::failed(failure.to_string()),
    }
}

/// A PodDisruptionBudget.
struct Budget {
    name: String,
    selector: Selector,
}

/// The budgets of a namespace. Names are all that they are good for: without them the refusal is told as it came.
async fn budgets_of(client: &Client, namespace: &str) -> Vec<Budget> {
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), namespace);
    let some = ListParams::default().limit(MOST_BUDGETS);
    let Ok(listed) = within(budgets.list(&some)).await else {
        return Vec::new();
    };
    let budget = |budget: PodDisruptionBudget| {
        let name = budget.name_any();
        let selector = budget.spec?.selector?.try_into().ok()?;
        Some(Budget { name, selector })
    };
    listed.into_iter().filter_map(budget).collect()
}

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("no answer within {} s", DEADLINE.as_secs())]
    Late,
    #[error("more than {MOST_PODS} Pods that have not ended are on the node")]
    TooMany,
    #[error("{}", chain(.0))]
    Api(kube::Error),
}

async fn within<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Failure> {
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(result) => result.map_err(Failure::Api),
        Err(_) => Err(Failure::Late),
    }
}

fn gone_is_well<T>(result: Result<T, Failure>, action: impl FnOnce() -> String) -> Result<(), Error> {
    match result {
        Ok(_) => Ok(()),
        // Another Node of this name is not the one that was meant.
        Err(Failure::Api(kube::Error::Api(status))) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(Failure::Api(error)) => Err(Error::Api { action: action(), source: Box::new(error) }),
        Err(late) => Err(Error::Failed { action: action(), source: Box::new(late) }),
    }
}

#[cfg(test)]
mod tests;
