//! The version of etcd that is wanted, beside those that its members run: etcd takes one minor at a time, and never
//! goes back.

use crds::cluster_deployment::EtcdMember;
use crds::{ComponentVersion, Reason};

use super::problem::Problem;
use super::state::ClusterState;
use crate::components::pins::ETCD;

/// Why nothing is begun with it.
pub(super) fn problem(state: &ClusterState<'_>) -> Option<Problem> {
    let status = state.etcd_status()?;
    let version = |member: &EtcdMember| member.version.as_ref()?.parse::<ComponentVersion>().ok();
    let members = || status.members.iter().filter_map(|member| Some((member, version(member)?)));
    let (after, highest) = members().max_by_key(|(_, version)| version.minor())?;
    let (behind, lowest) = members().min_by_key(|(_, version)| version.minor())?;
    let named = ETCD.wanted(state.deployment);
    let wanted = named.cloned().or_else(|| of_table(state))?;
    let field = format!("spec.{}", ETCD.field);
    let (major, minor) = lowest.minor();
    let message = if wanted.minor() < highest.minor() {
        let what = match named {
            Some(version) => format!("{field}: {version}"),
            None => format!("{field} is not given, and etcd {wanted} of the artifact bundle's table"),
        };
        let (major, minor) = highest.minor();
        format!(
            "{what} is of an older minor than {highest}, which the member on {} runs, and etcd never goes back: set {field} to {major}.{minor}.x",
            after.host
        )
    } else if named.is_some() && wanted.minor() > (major, minor + 1) {
        format!(
            "{field}: {wanted} is more than one minor above {lowest}, which the member on {} runs: set it to {major}.{}.x first, and raise it when all members have that",
            behind.host,
            minor + 1
        )
    } else {
        return None;
    };
    Some(Problem { reason: Reason::EtcdVersionNotAllowed, message, ends_unseen: false })
}

/// That of the bundle's table, where it is known.
fn of_table(state: &ClusterState<'_>) -> Option<ComponentVersion> {
    let mut components = state.deployment.status.iter().flat_map(|status| &status.components);
    let etcd = components.find(|component| component.name == ETCD.component)?;
    let own = (!etcd.pinned).then_some(&etcd.version);
    etcd.unpinned.as_ref().map(|file| &file.version).or(own)?.parse().ok()
}
