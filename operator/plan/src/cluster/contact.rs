//! What becomes of the status with contact, and without: what was seen before is not known any more then.

use crds::ClusterStatus;
use crds::Reason;
use crds::cluster::NodeCounts;
use crds::conditions::Statement;
use crds::names::condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::action::Action;
use super::certificates::{certificates_valid, expiries};
use super::observed::{Access, Observed, Seen};
use super::{components, network_probe, nodes, orphan_nodes, plane, spread_dns};
use crate::etcd::stepped;
use crate::moment::day_and_clock;

/// Nothing of what was seen before is known now; who the cluster is stays, and how large its data was.
pub(super) fn forget(old: &ClusterStatus) -> ClusterStatus {
    let nodes = old.nodes.as_ref().map(|nodes| NodeCounts { summary: format!("?/{}", nodes.total), ..nodes.clone() });
    ClusterStatus { nodes, components: Vec::new(), unreachable_since: None, ..old.clone() }
}

pub(super) fn refused(reason: Reason, message: &str) -> Vec<Statement> {
    unknown_behind(Statement::new(condition::REACHABLE, None, reason, message), None)
}

pub(super) fn lost(
    observed: &Observed<'_>,
    old: &ClusterStatus,
    access: &Access,
    reason: Reason,
    message: &str,
) -> (ClusterStatus, Vec<Statement>, Vec<Action>) {
    let since = old.unreachable_since.clone().unwrap_or_else(|| whole_seconds(&observed.now));
    let sentence = format!("the API at {} has not answered since {}: {message}", access.server, day_and_clock(since.0));
    let status = ClusterStatus {
        endpoint: Some(access.server.clone()),
        certificates: expiries(access, observed.machines),
        unreachable_since: Some(since),
        ..forget(old)
    };
    let reachable = Statement::new(condition::REACHABLE, false, reason, sentence);
    let statements = unknown_behind(reachable, Some(certificates_valid(access, &observed.now)));
    (status, statements, Vec::new())
}

pub(super) fn made(
    observed: &Observed<'_>,
    old: &ClusterStatus,
    access: &Access,
    seen: &Seen,
) -> (ClusterStatus, Vec<Statement>, Vec<Action>) {
    let of_plane = plane::is_plane(observed.cluster).then(|| plane::seen(seen));
    let seen = of_plane.as_ref().unwrap_or(seen);
    let (counts, nodes_healthy) = match of_plane {
        Some(_) => (None, plane::nodes_healthy()),
        None => nodes::health(seen.nodes.as_deref()),
    };
    let status = ClusterStatus {
        endpoint: Some(access.server.clone()),
        version: seen.version.clone().or_else(|| old.version.clone()),
        cluster_uid: seen.cluster_uid.clone().or_else(|| old.cluster_uid.clone()),
        nodes: counts.or_else(|| forget(old).nodes),
        components: seen.components.clone(),
        certificates: expiries(access, observed.machines),
        etcd_size_bytes: stepped(old.etcd_size_bytes, seen.etcd_size),
        unreachable_since: None,
        ..ClusterStatus::default()
    };
    let reachable =
        Statement::new(condition::REACHABLE, true, Reason::ApiAnswers, format!("the API at {} answers", access.server));
    let statements = vec![
        reachable,
        components::control_plane_healthy(&seen.components),
        nodes_healthy,
        certificates_valid(access, &observed.now),
    ];
    let known = seen.nodes.as_deref().unwrap_or_default();
    let dns = spread_dns::spread(observed, seen.dns.as_ref(), known);
    let orphan_nodes = orphan_nodes::clean_up(observed, known);
    let probes = network_probe::annotate(observed, known);
    (status, statements, probes.into_iter().chain(dns).chain(orphan_nodes).collect())
}

fn unknown_behind(reachable: Statement, certificates: Option<Statement>) -> Vec<Statement> {
    let unknown = |type_| Statement::new(type_, None, reachable.reason.clone(), "not known: the API is not reached");
    let certificates = certificates.unwrap_or_else(|| unknown(condition::CERTIFICATES_VALID));
    let (control_plane, nodes) = (unknown(condition::CONTROL_PLANE_HEALTHY), unknown(condition::NODES_HEALTHY));
    vec![reachable, control_plane, nodes, certificates]
}

/// Ready: as the first thing that is not well, or well.
pub(super) fn summary(statements: &[Statement]) -> Statement {
    // Reachable that is unknown means that there is no kubeconfig to try: that is an answer, and it is no.
    let refused = statements.first().filter(|reachable| reachable.status.is_none());
    if let Some(reachable) = refused {
        return Statement::new(condition::READY, false, reachable.reason.clone(), reachable.message.clone());
    }
    let not_well = statements.iter().find(|statement| statement.status == Some(false));
    let not_well = not_well.or_else(|| statements.iter().find(|statement| statement.status.is_none()));
    match not_well {
        Some(statement) => Statement { type_: condition::READY, ..statement.clone() },
        None => Statement::new(condition::READY, true, Reason::ClusterHealthy, "all is well"),
    }
}

fn whole_seconds(time: &Time) -> Time {
    let seconds = jiff::Timestamp::from_second(time.0.as_second());
    Time(seconds.unwrap_or(time.0))
}
