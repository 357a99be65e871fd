//! `AddonsReady`: what kubeadm brings to every cluster, and the Addon of `spec.addons`.

use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;

use super::state::ClusterState;
use super::up_to_date::NOT_INSTALLED;
use crate::message::cut;
use crate::naming;

pub(super) fn addons(state: &ClusterState<'_>) -> Statement {
    let stated = |status: Option<bool>, reason: Reason, message: String| {
        Statement::new(condition::ADDONS_READY, status, reason, message)
    };
    if state.installed.is_none() {
        return stated(Some(false), Reason::NotInstalled, NOT_INSTALLED.into());
    }
    // Another DaemonSet of that name is its owner's.
    let (names, all): (&[&str], &str) = match state.deployment.spec.has_kube_proxy() {
        true => (&["coredns", "kube-proxy"], "coredns and kube-proxy are rolled out"),
        false => (&["coredns"], "coredns is rolled out; the network plugin serves Services"),
    };
    let bad = names.iter().find_map(|name| match state.component(name) {
        Some((false, message)) => Some(format!("{name}: {message}")),
        _ => None,
    });
    let own = own_addon(state);
    match (bad, own) {
        (Some(message), _) => stated(Some(false), Reason::AddonsUnhealthy, cut(message)),
        (None, Some((true, _, message))) => stated(Some(true), Reason::RolledOut, cut(format!("{all}; {message}"))),
        (None, Some((false, reason, message))) => stated(Some(false), reason, cut(message)),
        (None, None) => stated(Some(true), Reason::RolledOut, all.into()),
    }
}

/// How the Addon of `spec.addons` is: whether it is as it is wanted, and what it says; nothing where none is wanted.
fn own_addon(state: &ClusterState<'_>) -> Option<(bool, Reason, String)> {
    state.deployment.spec.addon_manifests()?;
    let name = naming::own_addon(&state.name);
    let Some(there) = state.observed.addon else {
        return Some((false, Reason::AddonsUnhealthy, format!("Addon {name} is being made")));
    };
    if !there.is_owned_by(state.deployment.uid()) {
        let message = format!("Addon {name} is not that of spec.addons: delete it, or make it anew under another name");
        return Some((false, Reason::AddonTaken, message));
    }
    let said = there.status.as_ref().and_then(|status| status.message.clone());
    let said = said.unwrap_or_else(|| "its controller has not looked at it yet".to_owned());
    Some((there.is_true(condition::READY), Reason::AddonsUnhealthy, format!("Addon {name}: {said}")))
}
