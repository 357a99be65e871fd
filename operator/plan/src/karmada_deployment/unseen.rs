//! What is said of a place that cannot be looked at: it does not answer, or does not let the operator look.

use crds::Reason;
use crds::commands::bind_role;
use crds::names::KARMADA_HOST_ROLE;

use super::contact::{Forbidden, Unseen};
use super::observed::Observed;
use super::place::Place;
use crate::addon::Problem;
use crate::message::quote;

/// A place that cannot be looked at.
pub(super) fn unseen(observed: &Observed<'_>, place: Place, why: Unseen<'_>) -> Problem {
    match (place, why) {
        (Place::Host, Unseen::Forbidden(forbidden)) => host_forbidden(observed, forbidden),
        (Place::Host, why) => {
            let (host, why) = (host(observed), said(why));
            let message = format!("the host of the plane, {host}, does not answer{why}; it goes on when it does");
            Problem { reason: Reason::ClusterUnreachable, message }
        }
        (Place::Plane, why) => {
            let (endpoint, why) = (observed.kubeconfig.unwrap_or("its endpoint"), said(why));
            let message = format!("the plane's API server does not answer at {endpoint}{why}");
            Problem { reason: Reason::PlaneUnreachable, message }
        }
    }
}

fn host(observed: &Observed<'_>) -> String {
    let host = &observed.object.spec.host_cluster_ref;
    host.as_ref().map_or("the metadata cluster".to_owned(), |host| format!("Cluster {}", host.name))
}

fn said(why: Unseen<'_>) -> String {
    match why {
        Unseen::NotMade => String::new(),
        Unseen::Lost(why) => format!(": {}", quote(why.to_owned())),
        Unseen::Forbidden(forbidden) => format!(": {}", quote(forbidden.message.clone())),
    }
}

/// The API server says the same of a namespace that is not there.
fn host_forbidden(observed: &Observed<'_>, forbidden: &Forbidden) -> Problem {
    let (namespace, host) = (&observed.object.spec.host_namespace, host(observed));
    let grant = match (&observed.object.spec.host_cluster_ref, &forbidden.user) {
        (Some(_), _) => {
            format!("give the user of the Cluster's kubeconfig the rights of ClusterRole {KARMADA_HOST_ROLE} there")
        }
        (None, Some(user)) => {
            let command = bind_role(namespace, KARMADA_HOST_ROLE, user);
            format!("name it in karmada.hostNamespaces of the chart, or, once it is there, run: {command}")
        }
        (None, None) => {
            format!("name it in karmada.hostNamespaces of the chart, or bind ClusterRole {KARMADA_HOST_ROLE} there")
        }
    };
    let why = quote(forbidden.message.clone());
    let message =
        format!("the operator may not use namespace {namespace} of {host}, or it is not there: {grant} ({why})");
    Problem { reason: Reason::HostForbidden, message }
}
