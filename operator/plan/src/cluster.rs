//! Cluster: says what is seen of a cluster through its API, and puts what Machines want onto their Nodes.
//! Lost contact makes everything behind it unknown, never unhealthy.

pub mod components;
pub mod nodes;

use std::sync::Arc;

use crds::cluster::{CertificateExpiry, ComponentHealth, NodeCounts};
use crds::conditions::{Statement, state};
use crds::names::condition;
use crds::{Cluster, ClusterStatus, Machine};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{Next, Plan};
pub use nodes::NodeSeen;

/// A certificate with less left than this is spoken of.
const CERTIFICATE_WARNING: SignedDuration = SignedDuration::from_hours(30 * 24);
const PERIOD_SECONDS: f64 = 30.0;
const HURRY_SECONDS: f64 = 10.0;
const SOON_SECONDS: f64 = 5.0;
const IN_THE_MAKING_SECONDS: f64 = 1800.0;
const LONGEST_BACKOFF_SECONDS: f64 = 120.0;
/// Names in one sentence.
const NAMES: usize = 5;

/// Everything that the decision looks at.
pub struct Observed<'a> {
    /// The Cluster.
    pub cluster: &'a Cluster,
    /// What came of the kubeconfig and of the probe.
    pub contact: Contact,
    /// The Machines of the cluster of this name.
    pub machines: &'a [Arc<Machine>],
    /// Now.
    pub now: Time,
    /// 0 to 1: spreads the probes of many clusters.
    pub chance: f64,
}

/// What came of the kubeconfig and of the probe.
pub enum Contact {
    /// The kubeconfig is missing or not to be used: `SecretNotFound`, `KubeconfigRejected`.
    Refused {
        /// CamelCase.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
    /// The API does not answer, or lets nobody in.
    Lost {
        /// What the kubeconfig says.
        access: Access,
        /// CamelCase.
        reason: &'static str,
        /// Half a sentence, the same each time: `connection refused`.
        message: String,
    },
    /// The API answers.
    Made {
        /// What the kubeconfig says.
        access: Access,
        /// What was seen.
        seen: Seen,
    },
}

/// What an accepted kubeconfig says.
pub struct Access {
    /// Where the API is.
    pub server: String,
    /// When its certificates end, by name.
    pub certificates: Vec<(&'static str, Time)>,
}

/// What was seen through the API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Version without `v`; `None`: could not be read.
    pub version: Option<String>,
    /// UID of kube-system; `None`: could not be read.
    pub cluster_uid: Option<String>,
    /// Health by component.
    pub components: Vec<ComponentHealth>,
    /// The Nodes; `None`: not read yet.
    pub nodes: Option<Vec<NodeSeen>>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Merge this patch into a Node of the cluster.
    PatchNode {
        /// The Node.
        name: String,
        /// A JSON merge patch.
        patch: serde_json::Value,
    },
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Step, ClusterStatus> {
    let old = observed.cluster.status.clone().unwrap_or_default();
    let (mut status, statements, steps) = match &observed.contact {
        Contact::Refused { reason, message } => (forget(&old), refused(reason, message), Vec::new()),
        Contact::Lost {
            access,
            reason,
            message,
        } => lost(observed, &old, access, reason, message),
        Contact::Made { access, seen } => match (&old.cluster_uid, &seen.cluster_uid) {
            (Some(known), Some(found)) if known != found => {
                let message = format!(
                    "the kubeconfig reaches another cluster: UID of kube-system {found}, known as {known}; make a new Cluster object for another cluster"
                );
                (
                    forget(&old),
                    refused("ClusterIdentityChanged", &message),
                    Vec::new(),
                )
            }
            _ => made(observed, &old, access, seen),
        },
    };
    let generation = observed.cluster.metadata.generation;
    let ready = summary(&statements);
    let waits_for = (ready.status != Some(true)).then(|| ready.message.clone());
    status.message = Some(ready.message.clone());
    status.observed_generation = generation;
    let statements: Vec<Statement> = std::iter::once(ready).chain(statements).collect();
    status.conditions = state(&old.conditions, &statements, generation, &observed.now);
    Plan {
        steps,
        next: next(observed, &status),
        status,
        waits_for,
    }
}

/// Nothing of what was seen before is known now; who the cluster is stays.
fn forget(old: &ClusterStatus) -> ClusterStatus {
    let nodes = old.nodes.as_ref().map(|nodes| NodeCounts {
        summary: format!("?/{}", nodes.total),
        ..nodes.clone()
    });
    ClusterStatus {
        nodes,
        components: Vec::new(),
        unreachable_since: None,
        ..old.clone()
    }
}

fn refused(reason: &str, message: &str) -> Vec<Statement> {
    unknown_behind(Statement::new(condition::REACHABLE, None, reason, message), None)
}

fn lost(
    observed: &Observed<'_>,
    old: &ClusterStatus,
    access: &Access,
    reason: &str,
    message: &str,
) -> (ClusterStatus, Vec<Statement>, Vec<Step>) {
    let since = old
        .unreachable_since
        .clone()
        .unwrap_or_else(|| whole_seconds(&observed.now));
    let sentence = format!(
        "the API at {} has not answered since {}: {message}",
        access.server,
        since.0.strftime("%Y-%m-%d %H:%M:%S UTC")
    );
    let status = ClusterStatus {
        endpoint: Some(access.server.clone()),
        certificates: expiries(access),
        unreachable_since: Some(since),
        ..forget(old)
    };
    let reachable = Statement::new(condition::REACHABLE, false, reason, sentence);
    let statements = unknown_behind(reachable, Some(certificates_valid(access, &observed.now)));
    (status, statements, Vec::new())
}

fn made(
    observed: &Observed<'_>,
    old: &ClusterStatus,
    access: &Access,
    seen: &Seen,
) -> (ClusterStatus, Vec<Statement>, Vec<Step>) {
    let (counts, nodes_healthy) = nodes::health(seen.nodes.as_deref());
    let status = ClusterStatus {
        endpoint: Some(access.server.clone()),
        version: seen.version.clone().or_else(|| old.version.clone()),
        cluster_uid: seen.cluster_uid.clone().or_else(|| old.cluster_uid.clone()),
        nodes: counts.or_else(|| forget(old).nodes),
        components: seen.components.clone(),
        certificates: expiries(access),
        unreachable_since: None,
        ..ClusterStatus::default()
    };
    let reachable = Statement::new(
        condition::REACHABLE,
        true,
        "ApiAnswers",
        format!("the API at {} answers", access.server),
    );
    let statements = vec![
        reachable,
        components::control_plane_healthy(&seen.components),
        nodes_healthy,
        certificates_valid(access, &observed.now),
    ];
    let machines = nodes::by_node(observed.machines);
    let steps = seen.nodes.iter().flatten().filter_map(|node| {
        let patch = nodes::patch(node, machines.get(node.name.as_str())?)?;
        Some(Step::PatchNode {
            name: node.name.clone(),
            patch,
        })
    });
    (status, statements, steps.collect())
}

fn unknown_behind(reachable: Statement, certificates: Option<Statement>) -> Vec<Statement> {
    let unknown = |type_| {
        Statement::new(
            type_,
            None,
            reachable.reason.clone(),
            "not known: the API is not reached",
        )
    };
    let certificates = certificates.unwrap_or_else(|| unknown(condition::CERTIFICATES_VALID));
    let (control_plane, nodes) = (
        unknown(condition::CONTROL_PLANE_HEALTHY),
        unknown(condition::NODES_HEALTHY),
    );
    vec![reachable, control_plane, nodes, certificates]
}

/// Ready: as the first thing that is not well, or well.
fn summary(statements: &[Statement]) -> Statement {
    // Reachable that is unknown means that there is no kubeconfig to try: that is an answer, and it is no.
    let refused = statements.first().filter(|reachable| reachable.status.is_none());
    if let Some(reachable) = refused {
        return Statement::new(
            condition::READY,
            false,
            reachable.reason.clone(),
            reachable.message.clone(),
        );
    }
    let not_well = statements
        .iter()
        .find(|statement| statement.status == Some(false));
    let not_well = not_well.or_else(|| statements.iter().find(|statement| statement.status.is_none()));
    match not_well {
        Some(statement) => Statement {
            type_: condition::READY,
            ..statement.clone()
        },
        None => Statement::new(condition::READY, true, "AllWell", "all is well"),
    }
}

fn expiries(access: &Access) -> Vec<CertificateExpiry> {
    let expiry = |(name, end): &(&str, Time)| CertificateExpiry {
        name: (*name).to_owned(),
        expires_at: end.clone(),
    };
    access.certificates.iter().map(expiry).collect()
}

fn certificates_valid(access: &Access, now: &Time) -> Statement {
    let first = access.certificates.iter().min_by_key(|(_, end)| end.0);
    let type_ = condition::CERTIFICATES_VALID;
    let Some((name, end)) = first else {
        return Statement::new(type_, true, "NoneSeen", "the kubeconfig holds no certificates");
    };
    let date = end.0.strftime("%Y-%m-%d");
    let left = end.0.duration_since(now.0);
    if left <= SignedDuration::ZERO {
        Statement::new(
            type_,
            false,
            "Expired",
            format!("the certificate {name} ended on {date}"),
        )
    } else if left < CERTIFICATE_WARNING {
        Statement::new(
            type_,
            false,
            "ExpiresSoon",
            format!("the certificate {name} ends on {date}"),
        )
    } else {
        Statement::new(
            type_,
            true,
            "Valid",
            format!("the first to end is {name}, on {date}"),
        )
    }
}

fn next(observed: &Observed<'_>, status: &ClusterStatus) -> Next {
    let spread = 0.8 + 0.4 * observed.chance.clamp(0.0, 1.0);
    let seconds = match (&observed.contact, &status.unreachable_since) {
        // Somebody is about to write it.
        (
            Contact::Refused {
                reason: "SecretNotFound",
                ..
            },
            _,
        ) => SOON_SECONDS,
        // The longer it has been away, the less often it is looked for; one that was never there may be in the making.
        (Contact::Lost { .. }, Some(since)) => {
            let away = observed.now.0.duration_since(since.0).as_secs_f64();
            let in_the_making = status.cluster_uid.is_none() && away < IN_THE_MAKING_SECONDS;
            let longest = if in_the_making {
                SOON_SECONDS
            } else {
                LONGEST_BACKOFF_SECONDS
            };
            (away / 4.0).clamp(SOON_SECONDS, longest)
        }
        (Contact::Made { .. }, _) if !crds::conditions::is_true(&status.conditions, condition::READY) => {
            HURRY_SECONDS
        }
        _ => PERIOD_SECONDS,
    };
    Next::After(std::time::Duration::from_millis(
        (seconds * spread * 1000.0) as u64,
    ))
}

fn whole_seconds(time: &Time) -> Time {
    let seconds = jiff::Timestamp::from_second(time.0.as_second());
    Time(seconds.unwrap_or(time.0))
}

/// `a, b and 7 more`.
fn names(mut names: Vec<String>) -> String {
    names.sort();
    let more = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    let named = names.join(", ");
    if more == 0 {
        named
    } else {
        format!("{named} and {more} more")
    }
}

#[cfg(test)]
mod tests;
