//! What the executor of one run may do at the API: say where this run stands, and nothing else.

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::names::GROUP;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};

use crate::job::metadata;

/// A ServiceAccount of the run's own, and what binds it to its one right. All are named as the run, and go with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Permission {
    /// Whom the Pod runs as.
    pub service_account: ServiceAccount,
    /// The right.
    pub role: Role,
    /// Who has it.
    pub role_binding: RoleBinding,
}

pub(super) fn permission(run: &PlaybookRun) -> Permission {
    let name = run.name().to_owned();
    Permission {
        service_account: ServiceAccount {
            metadata: metadata(run, &name),
            // The executor's Pod asks for its token itself, and for one that does not live long.
            automount_service_account_token: Some(false),
            ..ServiceAccount::default()
        },
        role: Role {
            metadata: metadata(run, &name),
            rules: Some(vec![PolicyRule {
                api_groups: Some(vec![GROUP.to_owned()]),
                resources: Some(vec!["playbookruns/status".to_owned()]),
                resource_names: Some(vec![name.clone()]),
                verbs: vec!["patch".to_owned()],
                non_resource_urls: None,
            }]),
        },
        role_binding: RoleBinding {
            metadata: metadata(run, &name),
            role_ref: RoleRef {
                api_group: "rbac.authorization.k8s.io".to_owned(),
                kind: "Role".to_owned(),
                name: name.clone(),
            },
            subjects: Some(vec![Subject {
                kind: "ServiceAccount".to_owned(),
                name,
                namespace: run.metadata.namespace.clone(),
                api_group: None,
            }]),
        },
    }
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
