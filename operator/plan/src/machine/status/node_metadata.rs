//! Whether the labels, annotations and taints of the Node are those that the Machine wants.

use crds::Host;
use crds::Reason;
use crds::conditions;
use crds::conditions::Statement;
use crds::names::condition;

use super::node;
use crate::machine::hindrance::hindrance;
use crate::machine::observed::{NodeAnswer, Observed};
use crate::message::cut;
use crate::node_metadata::{Comparison, compare};

/// What keeps the Node from being as its Machine wants it, or from being known; none: it is so.
pub(super) fn statement(observed: &Observed<'_>, host: &Host) -> Option<Statement> {
    let stated = |status: Option<bool>, reason: Reason, message: String| {
        Some(Statement::new(condition::UP_TO_DATE, status, reason, cut(message)))
    };
    let Some(node) = node::find(observed, host) else {
        return match observed.nodes {
            _ if was_so(observed) => None,
            Some(_) => {
                let message = "not known whether its Node has the labels, annotations and taints wanted: there is none";
                stated(None, Reason::NodeNotFound, message.into())
            }
            None => {
                let message = format!(
                    "not known whether its Node has the labels, annotations and taints wanted: the API of cluster {} does not answer",
                    observed.machine.spec.cluster_name
                );
                stated(None, Reason::ClusterUnreachable, message)
            }
        };
    };
    let Comparison { differs, conflicts, .. } = compare(observed.machine, node);
    if !conflicts.is_empty() {
        let more = if differs.is_empty() { String::new() } else { format!("; also differ: {}", differs.join(", ")) };
        let message = format!("its Node has another value, which is left there, of {}{more}", conflicts.join(", "));
        return stated(Some(false), Reason::NodeFieldConflict, message);
    }
    if differs.is_empty() {
        return None;
    }
    let differs = differs.join(", ");
    match (observed.node_answer, hindrance(observed)) {
        (Some(NodeAnswer::Refused(answer)), _) => {
            stated(Some(false), Reason::NodeRefused, format!("writing to its Node failed ({differs}): {answer}"))
        }
        (_, Some(why)) => {
            let is_paused = observed.formed.is_some_and(|cluster| cluster.is_paused);
            let reason = if is_paused { Reason::Paused } else { Reason::UpdatingNode };
            stated(Some(false), reason, format!("not written to its Node: {differs}; {why}"))
        }
        (_, None) => stated(Some(false), Reason::UpdatingNode, format!("being written to its Node: {differs}")),
    }
}

/// Whether it was as wanted when it was seen last, and nothing else is wanted since.
fn was_so(observed: &Observed<'_>) -> bool {
    let status = observed.machine.status.as_ref();
    let stated = status.and_then(|status| conditions::find(&status.conditions, condition::UP_TO_DATE));
    let generation = observed.machine.metadata.generation;
    stated.is_some_and(|stated| stated.status == "True" && stated.observed_generation == generation)
}
