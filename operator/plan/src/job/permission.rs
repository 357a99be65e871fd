//! What the executor's Pod of one purpose may do at the API: patch one object, and nothing else.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A ServiceAccount, and what binds it to its one right. All are named as the object that it may patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Permission {
    /// Whom the Pod runs as.
    pub service_account: ServiceAccount,
    /// The right.
    pub role: Role,
    /// Who has it.
    pub role_binding: RoleBinding,
}

/// Of a Pod that may patch the object of this group (empty: the core group) and resource that has the name in the
/// metadata, which is theirs, too.
pub(crate) fn permission(metadata: &ObjectMeta, group: &str, resource: &str) -> Permission {
    let name = metadata.name.clone().unwrap_or_default();
    Permission {
        service_account: ServiceAccount {
            metadata: metadata.clone(),
            // The executor's Pod asks for its token itself, and for one that does not live long.
            automount_service_account_token: Some(false),
            ..ServiceAccount::default()
        },
        role: Role {
            metadata: metadata.clone(),
            rules: Some(vec![PolicyRule {
                api_groups: Some(vec![group.to_owned()]),
                resources: Some(vec![resource.to_owned()]),
                resource_names: Some(vec![name.clone()]),
                verbs: vec!["patch".to_owned()],
                non_resource_urls: None,
            }]),
        },
        role_binding: RoleBinding {
            metadata: metadata.clone(),
            role_ref: RoleRef {
                api_group: "rbac.authorization.k8s.io".to_owned(),
                kind: "Role".to_owned(),
                name: name.clone(),
            },
            subjects: Some(vec![Subject {
                kind: "ServiceAccount".to_owned(),
                name,
                namespace: metadata.namespace.clone(),
                api_group: None,
            }]),
        },
    }
}
