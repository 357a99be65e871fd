//! Keys, the administrator's kubeconfig and the Cluster object, each once it can be had.

use std::collections::BTreeMap;

use crds::Cluster;
use crds::cluster::ClusterSpec;
use crds::names::{self, label};
use crds::references::{LocalRef, controller_ref};

use crate::certificates::RenewalPolicy;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::observed::Observed;
use crate::cluster_deployment::own_authorities;
use crate::cluster_deployment::pki;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::restoring;
use crate::cluster_deployment::rotating;
use crate::cluster_deployment::state::ClusterState;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let observed = state.observed;
    let mut actions = Vec::new();
    // Those of a backup that it begins with are not made, but fetched.
    let may_be_made = !pki::is_missing(state) && own_authorities::problem(state).is_none();
    if !observed.pki && may_be_made && restoring::source(state).is_none() {
        actions.push(Action::MakePki { given: own_authorities::given(state) });
    }
    let Some(endpoint) = state.endpoint() else {
        return Proposal::actions(actions);
    };
    let status = state.deployment.status.as_ref();
    let known = status.and_then(|status| status.endpoint.as_ref());
    if !observed.kubeconfig
        || known != Some(&endpoint)
        || leads_elsewhere(observed, &endpoint)
        || is_about_to_end(observed, RenewalPolicy::from(&state.deployment.spec.certificates))
        || rotating::is_outdated(state, observed.kubeconfig_authority)
    {
        actions.push(Action::MakeKubeconfig { endpoint });
    }
    let spec = ClusterSpec { kubeconfig_ref: LocalRef::new(names::kubeconfig_secret(&state.name)) };
    if observed.cluster.is_none_or(|cluster| cluster.spec != spec) {
        let mut cluster = Cluster::new(&state.name, spec);
        cluster.metadata.namespace = state.deployment.metadata.namespace.clone();
        cluster.metadata.owner_references = controller_ref(state.deployment).map(|owner| vec![owner]);
        cluster.metadata.labels = Some(BTreeMap::from([(label::CLUSTER.into(), state.name.clone())]));
        actions.push(Action::ApplyCluster(Box::new(cluster)));
    }
    Proposal::actions(actions)
}

/// Whether the kubeconfig, as the Cluster shows it, is for another endpoint: when the endpoint changed, it may not have
/// been the time to write one.
fn leads_elsewhere(observed: &Observed<'_>, endpoint: &str) -> bool {
    let status = observed.cluster.and_then(|cluster| cluster.status.as_ref());
    let shown = status.and_then(|status| status.endpoint.as_deref());
    shown.is_some_and(|shown| shown.trim_end_matches('/') != endpoint)
}

/// Whether the administrator's certificate, as the Cluster shows it, ends soon.
fn is_about_to_end(observed: &Observed<'_>, policy: RenewalPolicy) -> bool {
    let status = observed.cluster.and_then(|cluster| cluster.status.as_ref());
    let certificates = status.map(|status| status.certificates.as_slice()).unwrap_or_default();
    certificates.iter().any(|certificate| {
        certificate.name == "admin-kubeconfig" && policy.is_due(certificate.expires_at.0, observed.now)
    })
}
