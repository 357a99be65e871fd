//! References to other objects. All are to the object's own namespace: a namespace is no field of ours.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of an object of a kind that the field implies, in the same namespace.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalRef {
    /// Name of the object: an RFC 1123 subdomain, at most 253 characters.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub name: String,
}

impl LocalRef {
    /// A reference to `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// Who holds a Host: written by the operator, with the Host's resourceVersion as precondition.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRef {
    /// Always `Machine`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The Machine's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The Machine's UID: a Machine made anew under the same name does not hold this claim.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
}

/// The owner reference of a controlling parent; the child is deleted with it.
pub fn controller_ref<K>(owner: &K) -> Option<OwnerReference>
where
    K: kube::Resource<DynamicType = ()>,
{
    owner.controller_owner_ref(&())
}
