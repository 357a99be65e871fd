//! Evictions, which Pods' budgets may refuse.

use http::StatusCode;
use serde_json::{Value, json};

use super::kept::Kept;
use super::state::State;
use super::target::status;

impl State {
    /// As the API does it: not another Pod, and not against a budget. A Pod that is on its way may be asked again.
    pub(super) fn evict(
        &mut self,
        key: &str,
        pod: Option<Value>,
        namespace: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let Some(pod) = pod else {
            return status(404, "NotFound");
        };
        let wanted = &body["deleteOptions"]["preconditions"]["uid"];
        if wanted.is_string() && *wanted != pod["metadata"]["uid"] {
            return status(409, "Conflict");
        }
        let prefix = format!("poddisruptionbudgets/{namespace}/");
        let holds = |budget: &Value| {
            let labels = budget["spec"]["selector"]["matchLabels"].as_object();
            labels.is_some_and(|labels| labels.iter().all(|(name, value)| pod["metadata"]["labels"][name] == *value))
        };
        let of_pod = |(key, budget): &(&String, &mut Kept)| key.starts_with(&prefix) && holds(budget);
        let mut budgets: Vec<(&String, &mut Kept)> = self.objects.iter_mut().filter(of_pod).collect();
        match budgets.as_mut_slice() {
            [] => {}
            [(_, budget)] => match budget["status"]["disruptionsAllowed"].as_i64() {
                Some(allowed @ 1..) => {
                    let mut granted = budget.to_value();
                    granted["status"]["disruptionsAllowed"] = json!(allowed - 1);
                    **budget = granted.into();
                }
                _ => {
                    let name = &budget["metadata"]["name"];
                    let cause = json!({ "reason": "DisruptionBudget", "message": format!("The disruption budget {name} needs 1 healthy pods and has 1 currently") });
                    let (code, mut answer) = status(429, "TooManyRequests");
                    answer["message"] = json!("Cannot evict pod as it would violate the pod's disruption budget.");
                    answer["details"] = json!({ "causes": [cause] });
                    return (code, answer);
                }
            },
            [..] => {
                let (code, mut answer) = status(500, "InternalError");
                answer["message"] = json!(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
                );
                return (code, answer);
            }
        }
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        self.evicted.push(uid);
        (StatusCode::CREATED, self.delete(key, pod))
    }
}
