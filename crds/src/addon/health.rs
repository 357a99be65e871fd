//! When an object of an Addon counts as healthy: what a user says beside the object's own status.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Name of the field, as messages have it.
pub const HEALTH_CHECKS: &str = "spec.healthChecks";

/// Objects of the Addon are healthy when an expression says so.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// `apiVersion` of the objects: `apps/v1`.
    #[schemars(length(min = 1, max = 317), regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$"))]
    pub api_version: String,
    /// Kind of the objects.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]*$"))]
    pub kind: String,
    /// Name of the one object; absent: all objects of the kind that the Addon has. One at least must be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// An expression in CEL over `object`, the object as the cluster has it, 1 to 1024 characters:
    /// `has(object.status.phase) && object.status.phase == 'Bound'`. It is healthy when this is true; an expression
    /// that cannot be evaluated counts as false.
    #[schemars(length(min = 1, max = 1024))]
    pub expression: String,
    /// What is said of an object that is not healthy, 1 to 256 characters. Default: the expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub message: Option<String>,
}
