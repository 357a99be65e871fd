//! Where a user's own playbooks and controllers come in: hooks and readiness gates.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Custom playbooks before and after what is done to machines, each list in its order; at most 8 each. Their steps are
/// steps like any other: `custom-<name>`. One run plays a playbook once.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.beforeInstall) || !has(self.afterInstall) || !self.beforeInstall.exists(a, self.afterInstall.exists(b, a.name == b.name))")
    .message("beforeInstall and afterInstall name the same playbook, which one run plays once: give the ConfigMap a second one of another name")
    .field_path(".afterInstall"))]
#[x_kube(validation = Rule::new("!has(self.beforeJoin) || !has(self.afterJoin) || !self.beforeJoin.exists(a, self.afterJoin.exists(b, a.name == b.name))")
    .message("beforeJoin and afterJoin name the same playbook, which one run plays once: give the ConfigMap a second one of another name")
    .field_path(".afterJoin"))]
#[x_kube(validation = Rule::new("!has(self.beforeUpgrade) || !has(self.afterUpgrade) || !self.beforeUpgrade.exists(a, self.afterUpgrade.exists(b, a.name == b.name))")
    .message("beforeUpgrade and afterUpgrade name the same playbook, which one run plays once: give the ConfigMap a second one of another name")
    .field_path(".afterUpgrade"))]
#[x_kube(validation = Rule::new("!has(self.afterDrain) || !has(self.beforeRemove) || !self.afterDrain.exists(a, self.beforeRemove.exists(b, a.name == b.name))")
    .message("afterDrain and beforeRemove name the same playbook, which one run plays once: give the ConfigMap a second one of another name")
    .field_path(".beforeRemove"))]
#[x_kube(validation = Rule::new("!has(self.afterRemove) || ((!has(self.afterDrain) || !self.afterDrain.exists(a, self.afterRemove.exists(b, a.name == b.name))) && (!has(self.beforeRemove) || !self.beforeRemove.exists(a, self.afterRemove.exists(b, a.name == b.name))))")
    .message("afterRemove names a playbook of afterDrain or beforeRemove, which one run plays once: give the ConfigMap a second one of another name")
    .field_path(".afterRemove"))]
pub struct Hooks {
    /// On the founders, before the first step of the install.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub before_install: Vec<Hook>,
    /// On the founders, after the last step of the install.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub after_install: Vec<Hook>,
    /// On machines that join, before their first step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub before_join: Vec<Hook>,
    /// On machines that joined, after their last step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub after_join: Vec<Hook>,
    /// On each machine that gets another Kubernetes version, once its Pods have been moved away where they are, and
    /// before its first step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub before_upgrade: Vec<Hook>,
    /// On each machine that got another Kubernetes version, after its last step and before it takes Pods again. The
    /// next machine waits for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub after_upgrade: Vec<Hook>,
    /// On a machine that leaves, before its Pods are moved away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub before_drain: Vec<Hook>,
    /// On a machine that leaves, after its Pods have been moved away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub after_drain: Vec<Hook>,
    /// On a machine that leaves, before it is cleaned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub before_remove: Vec<Hook>,
    /// On a machine that left, after it was cleaned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub after_remove: Vec<Hook>,
}

/// One custom playbook, with its variables.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// Name of a playbook of `executor.customPlaybooksRef`: an RFC 1123 label of at most 40 characters.
    #[schemars(length(min = 1, max = 40), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Its variables: data, never templates; checked against the playbook's JSON Schema, where it has one.
    #[serde(
        default,
        deserialize_with = "crate::playbook_run::vars::deserialize",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    #[schemars(schema_with = "crate::playbook_run::vars_schema")]
    pub vars: BTreeMap<String, serde_json::Value>,
}

/// A condition that another controller sets on this object, and that `Ready` waits for.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessGate {
    /// The condition's type, e.g. `example.com/DNSRecordReady`.
    #[schemars(
        length(min = 1, max = 316),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    pub condition_type: String,
}
