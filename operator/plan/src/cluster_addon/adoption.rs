//! Objects that a cluster's runs have applied before an Addon did: their fields become the Addon's, so that what the
//! manifests do not have any more can be taken away.

use crds::Addon;
use crds::names::{ADDON_FIELD_MANAGER, RUN_FIELD_MANAGER};
use serde_json::{Value, json};

/// Whether the Addon goes on with what runs have applied: it is that of a ClusterDeployment's `spec.addons`.
pub(super) fn adopts(addon: &Addon) -> bool {
    let owners = addon.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    controllers.any(|owner| owner.kind == "ClusterDeployment")
}

/// The change that makes what a run has applied of the object the Addon's; nothing where no run has applied it. Nothing
/// but the owner of fields is changed: no Pod is made anew.
pub(super) fn patch(live: &Value) -> Option<Value> {
    let entries = live["metadata"]["managedFields"].as_array()?;
    let is_of = |entry: &Value, manager: &str| entry["manager"] == manager && entry["operation"] == "Apply";
    if !entries.iter().any(|entry| is_of(entry, RUN_FIELD_MANAGER)) {
        return None;
    }
    let is_ours = entries.iter().any(|entry| is_of(entry, ADDON_FIELD_MANAGER));
    let mut managed = entries.clone();
    match is_ours {
        // It is applied by both: an entry of its own has what is wanted now.
        true => managed.retain(|entry| !is_of(entry, RUN_FIELD_MANAGER)),
        false => {
            for entry in managed.iter_mut().filter(|entry| is_of(entry, RUN_FIELD_MANAGER)) {
                entry["manager"] = json!(ADDON_FIELD_MANAGER);
            }
        }
    }
    let version = &live["metadata"]["resourceVersion"];
    Some(json!({"metadata": {"resourceVersion": version, "managedFields": managed}}))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::patch;

    fn managers(patch: &Value) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let entries = patch["metadata"]["managedFields"].as_array().unwrap();
        entries.iter().map(|entry| (text(&entry["manager"]), text(&entry["operation"]))).collect()
    }

    #[test]
    fn what_a_run_has_applied_becomes_the_addons_and_what_others_have_set_stays_theirs() {
        let live = |entries: Value| json!({"metadata": {"resourceVersion": "7", "managedFields": entries}});
        let entry = |manager: &str, operation: &str| json!({"manager": manager, "operation": operation});
        let run = entry("clusterwright", "Apply");
        let of_others = [entry("clusterwright", "Update"), entry("kube-controller-manager", "Update")];
        assert_eq!(patch(&live(json!(of_others))), None);
        assert_eq!(patch(&json!({"metadata": {}})), None);
        let [update, controller] = of_others;
        let made = patch(&live(json!([run, update, controller]))).unwrap();
        assert_eq!(made["metadata"]["resourceVersion"], "7");
        let owned = |manager: &str, operation: &str| (manager.to_owned(), operation.to_owned());
        let theirs = [owned("clusterwright", "Update"), owned("kube-controller-manager", "Update")];
        let expected = [&[owned("clusterwright-addon", "Apply")][..], &theirs].concat();
        assert_eq!(managers(&made), expected);
        // Applied by both, it is applied by one then.
        let both = patch(&live(json!([run, entry("clusterwright-addon", "Apply")]))).unwrap();
        assert_eq!(managers(&both), [owned("clusterwright-addon", "Apply")]);
    }
}
