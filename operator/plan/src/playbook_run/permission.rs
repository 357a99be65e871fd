//! What the executor of one run may do at the API: say where this run stands, and nothing else.

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::names::GROUP;

use crate::job;
use crate::job::permission::Permission;

/// All are named as the run, and go with it.
pub(super) fn permission(run: &PlaybookRun) -> Permission {
    job::permission::permission(&job::metadata(run, run.name()), GROUP, "playbookruns/status")
}

#[cfg(test)]
mod tests {
    use super::permission;
    use serde_json::json;

    #[test]
    fn an_executor_may_patch_the_status_of_its_own_run_and_nothing_else() {
        let run = serde_yaml::from_str(
            "{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {name: r, namespace: fleet, uid: u}, spec: {intent: Probe, steps: [probe-host], hosts: [x]}}",
        )
        .unwrap();
        let permission = permission(&run);
        let rules = serde_json::to_value(&permission.role.rules).unwrap();
        let only = json!([{"apiGroups": ["clusterwright.dev"], "resources": ["playbookruns/status"], "resourceNames": ["r"], "verbs": ["patch"]}]);
        assert_eq!(rules, only);
        let binding = serde_json::to_value(&permission.role_binding).unwrap();
        assert_eq!(binding["roleRef"], json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}));
        assert_eq!(binding["subjects"], json!([{"kind": "ServiceAccount", "name": "r", "namespace": "fleet"}]));
        for metadata in
            [permission.service_account.metadata, permission.role.metadata, permission.role_binding.metadata]
        {
            let owner = &metadata.owner_references.unwrap()[0];
            assert_eq!((owner.uid.as_str(), metadata.name.as_deref()), ("u", Some("r")));
        }
    }
}
