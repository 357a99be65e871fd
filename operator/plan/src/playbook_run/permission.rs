//! What the executor of one run may do at the API: say where this run stands, and, where the run reads what is secret,
//! put that into the Secret that is there for it; nothing else.

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::names::GROUP;
use k8s_openapi::api::rbac::v1::PolicyRule;

use super::receiver::receiver;
use crate::job;
use crate::job::permission::Permission;

/// All are named as the run, and go with it.
pub(super) fn permission(run: &PlaybookRun) -> Permission {
    let mut permission = job::permission::permission(&job::metadata(run, run.name()), GROUP, "playbookruns/status");
    let fills = receiver(run).map(|secret| PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["secrets".to_owned()]),
        resource_names: Some(secret.metadata.name.into_iter().collect()),
        verbs: vec!["patch".to_owned()],
        non_resource_urls: None,
    });
    permission.role.rules.get_or_insert_default().extend(fills);
    permission
}

#[cfg(test)]
mod tests {
    use super::{permission, receiver};
    use crds::PlaybookRun;
    use serde_json::json;

    fn run(step: &str) -> PlaybookRun {
        serde_yaml::from_str(&format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r, namespace: fleet, uid: u}}, spec: {{intent: Probe, steps: [{step}], hosts: [x]}}}}"
        ))
        .unwrap()
    }

    #[test]
    fn one_that_reads_kubeconfigs_may_fill_one_secret_that_goes_with_the_run_too() {
        assert_eq!(receiver(&run("probe-host")), None);
        let reads = run("read-kubeconfig");
        let secret = receiver(&reads).unwrap();
        assert_eq!((secret.metadata.name.as_deref(), &secret.data), (Some("r-kubeconfigs"), &None));
        assert_eq!(secret.metadata.owner_references.unwrap()[0].uid, "u");
        let rules = serde_json::to_value(&permission(&reads).role.rules).unwrap();
        let fills = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["r-kubeconfigs"], "verbs": ["patch"]});
        assert_eq!((rules.as_array().unwrap().len(), &rules[1]), (2, &fills));
        assert_eq!(rules[0]["resources"], json!(["playbookruns/status"]));
    }

    #[test]
    fn an_executor_may_patch_the_status_of_its_own_run_and_nothing_else() {
        let permission = permission(&run("probe-host"));
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
