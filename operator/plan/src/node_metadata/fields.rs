//! Labels and annotations: they are applied on the server's side, so that each key has its owners. What is applied no
//! more goes, unless others own it too.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::{FIELD_MANAGER, NODE_FIELD_MANAGER};

use crate::cluster::field_owners::{FieldOwner, Owners};

type Map = BTreeMap<String, String>;

/// What is compared.
pub(super) struct Kind {
    /// As a sentence calls one of them.
    name: &'static str,
    /// Managers whose keys are ours as well: what they own was given to them by us.
    ours: &'static [&'static str],
}

/// A kubelet owns those that it registered the Node with, which are the Machine's; the operator those that it once
/// merged.
pub(super) const LABELS: Kind = Kind { name: "label", ours: &["kubelet", FIELD_MANAGER] };
pub(super) const ANNOTATIONS: Kind = Kind { name: "annotation", ours: &[] };

/// How the labels, or the annotations, of a Node differ from what is wanted.
#[derive(Default)]
pub(super) struct Fields {
    /// All that is to be applied.
    pub apply: Map,
    /// Whether anything differs from what was applied last.
    pub is_changed: bool,
    /// Keys that stay unless they are removed.
    pub remove: Vec<String>,
    pub differs: Vec<String>,
    pub conflicts: Vec<String>,
}

impl Fields {
    pub fn compare(kind: &Kind, wanted: &Map, seen: &Map, owners: &Owners) -> Self {
        let mut fields = Self::default();
        for (key, value) in wanted {
            let differs = seen.get(key) != Some(value);
            let other = other_applier(owners.get(key)).filter(|_| differs && seen.contains_key(key));
            if let Some(manager) = other {
                fields.conflicts.push(format!("{} {key} (field manager {manager})", kind.name));
                continue;
            }
            if differs {
                fields.differs.push(format!("{} {key}", kind.name));
            }
            fields.is_changed |= differs;
            fields.apply.insert(key.clone(), value.clone());
        }
        let applied = owners.iter().filter(|(_, owners)| owners.iter().any(is_applied_by_us));
        let applied: BTreeSet<&String> = applied.map(|(key, _)| key).collect();
        fields.is_changed |= !applied.iter().copied().eq(fields.apply.keys());
        for key in seen.keys().filter(|key| !wanted.contains_key(*key)) {
            let Some(owners) = owners.get(key).filter(|owners| is_ours(kind, key, owners)) else {
                continue;
            };
            fields.differs.push(format!("{} {key}, which is not wanted any more", kind.name));
            if owners.iter().any(|owner| !is_applied_by_us(owner)) {
                fields.remove.push(key.clone());
            }
        }
        fields
    }
}

fn is_applied_by_us(owner: &FieldOwner) -> bool {
    owner.applies && owner.manager == NODE_FIELD_MANAGER
}

/// Who else applies it.
fn other_applier(owners: Option<&BTreeSet<FieldOwner>>) -> Option<&str> {
    let mut owners = owners.into_iter().flatten();
    let other = owners.find(|owner| owner.applies && owner.manager != NODE_FIELD_MANAGER)?;
    Some(&other.manager)
}

/// Whether nobody but us put it there.
fn is_ours(kind: &Kind, key: &str, owners: &BTreeSet<FieldOwner>) -> bool {
    // The kubelet has labels of its own, all of them Kubernetes'.
    let was_given = !is_kubernetes(key);
    owners.iter().all(|owner| {
        let given = was_given && !owner.applies && kind.ours.contains(&owner.manager.as_str());
        is_applied_by_us(owner) || given
    })
}

fn is_kubernetes(key: &str) -> bool {
    let domain = key.split_once('/').map(|(domain, _)| domain).unwrap_or_default();
    ["kubernetes.io", "k8s.io"].iter().any(|own| domain == *own || domain.ends_with(&format!(".{own}")))
}
