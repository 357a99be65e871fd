//! Taints: one list without owners, which is written as a whole. Which of them are the Machine's, an annotation of the
//! Node remembers, written with the list; a Node that has none has those that its kubelet registered it with.

use std::collections::BTreeSet;

use crds::Machine;
use k8s_openapi::api::core::v1::Taint;

use crate::cluster::NodeSeen;
use crate::cluster::kept::MOST_ENTRIES;
use crate::lifecycle::is_provisioned;

/// How the taints of a Node differ from what is wanted.
#[derive(Default)]
pub(super) struct Taints {
    /// The whole list, with those of others.
    pub list: Vec<Taint>,
    /// The Machine's, from now on; none: nothing has to be remembered.
    pub remember: Option<BTreeSet<String>>,
    /// Whether the list, or what is remembered, has to be written.
    pub is_changed: bool,
    pub differs: Vec<String>,
}

impl Taints {
    pub fn compare(wanted: &[Taint], node: &NodeSeen, registered: &[String]) -> Self {
        let ours: BTreeSet<String> = match &node.own_taints {
            Some(remembered) => remembered.clone(),
            None => registered.iter().cloned().collect(),
        };
        let names: BTreeSet<String> = wanted.iter().map(name).collect();
        let missing: Vec<&Taint> = wanted.iter().filter(|taint| !node.taints.iter().any(|t| same(t, taint))).collect();
        let is_stale = |taint: &&Taint| ours.contains(&name(taint)) && !names.contains(&name(taint));
        let stale: Vec<&Taint> = node.taints.iter().filter(is_stale).collect();
        let replaced = |taint: &&Taint| missing.iter().any(|wanted| name(wanted) == name(taint));
        let kept = node.taints.iter().filter(|taint| !is_stale(taint) && !replaced(taint));
        let list = kept.chain(missing.iter().copied()).cloned().collect();
        // Without it those that the kubelet registered would be taken for the Machine's again.
        let remember = (!names.is_empty() || !registered.is_empty()).then_some(names);
        let differs = missing.iter().map(|taint| format!("taint {}", name(taint)));
        let removed = stale.iter().map(|taint| format!("taint {}, which is not wanted any more", name(taint)));
        let is_changed = !missing.is_empty() || !stale.is_empty() || remember != node.own_taints;
        // Of a list that is longer, not all is known.
        let is_known = node.taints.len() < MOST_ENTRIES;
        Self { list, remember, is_changed: is_changed && is_known, differs: differs.chain(removed).collect() }
    }
}

/// `key:Effect`: no Node has two taints with one.
fn name(taint: &Taint) -> String {
    format!("{}:{}", taint.key, taint.effect)
}

fn same(a: &Taint, b: &Taint) -> bool {
    let value = |taint: &Taint| taint.value.clone().unwrap_or_default();
    name(a) == name(b) && value(a) == value(b)
}

/// As the annotation has it.
pub(super) fn remembered(taints: &Option<BTreeSet<String>>) -> Option<String> {
    let taints = taints.as_ref()?;
    Some(taints.iter().map(String::as_str).collect::<Vec<_>>().join(","))
}

/// Taints that the Machine's kubelet registers its Node with: all that its spec had until it was provisioned.
pub fn registered(machine: &Machine) -> Vec<String> {
    let known = machine.status.iter().flat_map(|status| status.registered_taints.iter().cloned());
    let joining = machine.spec.taints.iter().filter(|_| !is_provisioned(machine));
    let wanted = joining.map(|taint| format!("{}:{:?}", taint.key, taint.effect));
    let all: BTreeSet<String> = known.chain(wanted).collect();
    all.into_iter().take(64).collect()
}
