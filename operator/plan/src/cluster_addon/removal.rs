//! Objects that go: the last applied first, Namespaces and CustomResourceDefinitions after all that may be in them.

use crds::cluster_addon::AppliedObject;
use crds::names::annotation;
use crds::{ClusterAddon, ObjectExt};

use super::documents::{Stage, stage};
use super::observed::{Leftover, is_ours};

/// Namespaces that no cluster lets go.
const OF_KUBERNETES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// An object that is deleted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The object.
    pub object: AppliedObject,
    /// Its UID: another one of its name stays.
    pub uid: String,
}

/// What becomes of objects that go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// Deleted now.
    pub delete: Vec<Deletion>,
    /// Still there, in the order in which they were applied.
    pub left: Vec<AppliedObject>,
    /// The first that is already being deleted, and what holds it.
    pub held: Option<String>,
}

/// What is done about objects that go; `others`: the other ClusterAddons of the cluster.
pub fn removal(leftovers: &[Leftover], others: &[&ClusterAddon]) -> Removal {
    let going: Vec<&Leftover> = leftovers.iter().filter(|leftover| goes(leftover, others)).collect();
    let of = |leftover: &Leftover| stage(&leftover.object.group, &leftover.object.kind);
    let last = going.iter().map(|leftover| of(leftover)).max();
    let mut removal = Removal { left: going.iter().map(|one| one.object.clone()).collect(), ..Removal::default() };
    for leftover in going.into_iter().rev().filter(|leftover| Some(of(leftover)) == last) {
        let Some(live) = &leftover.live else { continue };
        if let Some(why) = &leftover.refused {
            removal.held = Some(format!("{} cannot be deleted: {why}", leftover.object));
            continue;
        }
        let metadata = &live["metadata"];
        match metadata["deletionTimestamp"].is_string() {
            true => removal.held = Some(held(&leftover.object, &metadata["finalizers"])),
            false => {
                let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
                removal.delete.push(Deletion { object: leftover.object.clone(), uid });
            }
        }
    }
    removal
}

/// Whether it is there, is ours, and is to be deleted.
fn goes(leftover: &Leftover, others: &[&ClusterAddon]) -> bool {
    let Some(live) = &leftover.live else { return false };
    let object = &leftover.object;
    let is_kept = live["metadata"]["annotations"][annotation::DELETION_POLICY] == "Orphan";
    let is_of_kubernetes =
        stage(&object.group, &object.kind) == Stage::Namespaces && OF_KUBERNETES.contains(&object.name.as_str());
    let has_it = |other: &&ClusterAddon| {
        let inventory = other.status.as_ref().map(|status| status.inventory.as_slice()).unwrap_or_default();
        !other.is_deleting() && inventory.iter().any(|there| there.is_same(object))
    };
    is_ours(live) && !is_kept && !is_of_kubernetes && !others.iter().any(has_it)
}

fn held(object: &AppliedObject, finalizers: &serde_json::Value) -> String {
    let finalizers: Vec<&str> = finalizers.as_array().into_iter().flatten().filter_map(|name| name.as_str()).collect();
    match finalizers.is_empty() {
        true => format!("{object} is being deleted"),
        false => format!("{object} is being deleted, its finalizers are {}", finalizers.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use crds::ClusterAddon;
    use crds::cluster_addon::AppliedObject;
    use serde_json::{Value, json};

    use super::{Leftover, removal};

    fn object(group: &str, kind: &str, name: &str) -> AppliedObject {
        AppliedObject {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: None,
            name: name.into(),
        }
    }

    fn leftover(object: AppliedObject, more: Value) -> Leftover {
        let mut metadata =
            json!({"uid": object.name, "managedFields": [{"manager": "clusterwright-addon", "operation": "Apply"}]});
        metadata.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        Leftover { object, live: Some(Box::new(json!({ "metadata": metadata }))), refused: None }
    }

    fn check(leftovers: &[Leftover], others: &[&ClusterAddon], deleted: &[&str], left: &[&str]) {
        let removal = removal(leftovers, others);
        let names: Vec<&str> = removal.delete.iter().map(|one| one.uid.as_str()).collect();
        assert_eq!(names, deleted);
        let names: Vec<&str> = removal.left.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, left);
    }

    #[test]
    fn the_last_applied_goes_first_and_what_holds_others_when_they_are_gone() {
        let definition = leftover(object("apiextensions.k8s.io", "CustomResourceDefinition", "d"), json!({}));
        let namespace = leftover(object("", "Namespace", "n"), json!({}));
        let (a, b) = (leftover(object("", "Secret", "a"), json!({})), leftover(object("", "Secret", "b"), json!({})));
        let all = [definition.clone(), namespace.clone(), a, b.clone()];
        check(&all, &[], &["b", "a"], &["d", "n", "a", "b"]);
        let gone = Leftover { live: None, ..b.clone() };
        check(&[definition.clone(), namespace.clone(), gone.clone()], &[], &["n"], &["d", "n"]);
        check(&[definition, gone.clone()], &[], &["d"], &["d"]);
        check(&[gone], &[], &[], &[]);
        let held = leftover(b.object, json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]}));
        check(&[namespace.clone(), held.clone()], &[], &[], &["n", "b"]);
        let message = removal(&[namespace, held.clone()], &[]).held.unwrap();
        assert_eq!(message, "Secret b is being deleted, its finalizers are a.b/c");
        let refused = Leftover { refused: Some("forbidden".into()), ..held };
        check(std::slice::from_ref(&refused), &[], &[], &["b"]);
        assert_eq!(removal(&[refused], &[]).held.unwrap(), "Secret b cannot be deleted: forbidden");
    }

    #[test]
    fn what_is_not_ours_or_is_to_stay_is_left_alone() {
        let kept = json!({"annotations": {"clusterwright.dev/deletion-policy": "Orphan"}});
        let foreign = json!({"managedFields": [{"manager": "helm", "operation": "Update"}]});
        for (one, more) in [
            (object("", "Secret", "a"), kept),
            (object("", "Secret", "a"), foreign),
            (object("", "Namespace", "kube-system"), json!({})),
        ] {
            check(&[leftover(one, more)], &[], &[], &[]);
        }
        let other: ClusterAddon = serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterAddon", "metadata": {"name": "b-c"},
            "spec": {"addonRef": {"name": "b"}, "clusterRef": {"name": "c"}},
            "status": {"inventory": [{"version": "v1beta1", "kind": "Secret", "name": "a"}]},
        }))
        .unwrap();
        check(&[leftover(object("", "Secret", "a"), json!({}))], &[&other], &[], &[]);
        check(&[leftover(object("", "Secret", "b"), json!({}))], &[&other], &["b"], &["b"]);
    }
}
