//! The frozen inputs of a run: what the operator writes into an immutable ConfigMap, and the executor reads.
//! Secrets are not in here: they are files beside it, named by [`secret_key`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backup::{BackupInputs, StagingInputs};
use crate::host::HostKeyPolicy;
use crate::step::{Intent, Step};
use crate::store_comparison::StoreComparison;

/// Key of the ConfigMap, and name of the file below `model/`.
pub const MODEL_FILE: &str = "inputs.json";

/// Environment variable of the executor: the UID of its PlaybookRun.
pub const RUN_UID_VARIABLE: &str = "CLUSTERWRIGHT_RUN_UID";

/// Variable of the step `fence`: the claim epoch that the machine's guard must know.
pub const FENCE_CLAIM_EPOCH: &str = "fence_claim_epoch";

/// The model of one run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunInputs {
    /// Namespace of the PlaybookRun.
    pub namespace: String,
    /// Name of the PlaybookRun.
    pub run: String,
    /// The cluster; none for a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// What it is for.
    pub intent: Intent,
    /// The steps, in this order.
    pub steps: Vec<Step>,
    /// Begin at the first step that is not done, as the probes say.
    #[serde(default)]
    pub resume: bool,
    /// The hosts, by name.
    pub hosts: BTreeMap<String, HostInputs>,
    /// Variables of the group `all`: data, never templates.
    #[serde(default)]
    pub vars: BTreeMap<String, serde_json::Value>,
    /// The playbooks of the steps `custom-<name>`, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub playbooks: BTreeMap<String, PlaybookInputs>,
    /// The backup that is asked for; only in a run of the intent `Backup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupInputs>,
    /// The backup that is brought to the machines; only in a run of the intent `Stage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staging: Option<StagingInputs>,
}

/// A playbook of the user's.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlaybookInputs {
    /// Its text: YAML, with templates if it has any.
    pub content: String,
    /// The text of its read-only probe. None: whether it is done cannot be seen, and it is played again on resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// Variables that only this playbook and its probe see: data, never templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, serde_json::Value>,
}

/// The groups of the inventory.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Control planes.
    KubeControlPlane,
    /// Workers.
    KubeNode,
    /// etcd members.
    Etcd,
    /// Machines with the components of a Karmada control plane.
    KarmadaControlPlane,
}

impl Group {
    /// All groups. A run's inventory has each, so that a play may name it.
    pub const ALL: [Group; 4] = [Group::KubeControlPlane, Group::KubeNode, Group::Etcd, Group::KarmadaControlPlane];

    /// Whether the other machines of a run cannot go on without one of the group.
    pub fn is_critical(self) -> bool {
        self != Group::KubeNode
    }

    /// Whether its machines are nodes of Kubernetes.
    pub fn has_nodes(self) -> bool {
        matches!(self, Group::KubeControlPlane | Group::KubeNode)
    }

    /// The group's name in the inventory.
    pub fn name(self) -> &'static str {
        match self {
            Group::KubeControlPlane => "kube_control_plane",
            Group::KubeNode => "kube_node",
            Group::Etcd => "etcd",
            Group::KarmadaControlPlane => "karmada_control_plane",
        }
    }
}

/// One host of a run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostInputs {
    /// Where SSH answers.
    pub address: String,
    /// Its port.
    pub port: u16,
    /// User to log in as.
    pub user: String,
    /// Commands run through sudo.
    pub use_sudo: bool,
    /// Name of the credential: the suffix of its files' names.
    pub credential: String,
    /// Kind of the credential.
    pub credential_kind: CredentialKind,
    /// `TYPE BASE64`, as pinned.
    #[serde(default)]
    pub host_keys: Vec<String>,
    /// Which host keys are believed.
    pub host_key_policy: HostKeyPolicy,
    /// The machine to go through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bastion: Option<Box<HostInputs>>,
    /// Groups that it is in.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// The Host's claim epoch: the first half of the fence.
    #[serde(default)]
    pub claim_epoch: i64,
    /// UID of the Machine that has claimed the Host; absent where nobody has. An epoch belongs to one claim.
    #[serde(default, rename = "claimUID", skip_serializing_if = "Option::is_none")]
    pub claim_uid: Option<String>,
    /// The comparisons of its cluster with the metadata cluster, oldest first: by them its guard tells a run of the
    /// same claim that the metadata cluster does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<StoreComparison>,
    /// Which machine it must be; another one is not touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<HostIdentity>,
    /// Its variables: data, never templates.
    #[serde(default)]
    pub vars: BTreeMap<String, serde_json::Value>,
}

/// What tells a machine from others, whatever its address is.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostIdentity {
    /// Its host keys, `TYPE BASE64`: all that were pinned when it was claimed, or the one that was seen first.
    #[schemars(length(min = 1, max = 8), inner(length(min = 1, max = 1400)))]
    pub host_keys: Vec<String>,
    /// `/etc/machine-id`, when it has been seen. Machines made from one image may share it.
    #[serde(default, rename = "machineID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub machine_id: Option<String>,
}

/// Kinds of SSH credential.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// File `ssh-privatekey.<credential>`.
    SshKey,
    /// File `password.<credential>`.
    Password,
}

/// Name of the file, and key of the Secret, of a credential.
pub fn secret_key(kind: CredentialKind, credential: &str) -> String {
    match kind {
        CredentialKind::SshKey => format!("ssh-privatekey.{credential}"),
        CredentialKind::Password => format!("password.{credential}"),
    }
}

/// Variables that Ansible, or the executor, sets or reads, beside all that begin with `ansible_` or `clusterwright_`.
pub const RESERVED_VARIABLES: [&str; 34] = [
    "become",
    "become_user",
    "become_method",
    "connection",
    "delegate_to",
    "environment",
    "group_names",
    "groups",
    "hostvars",
    "inventory_dir",
    "inventory_file",
    "inventory_hostname",
    "inventory_hostname_short",
    "item",
    "lookup",
    "loop",
    "no_log",
    "now",
    "omit",
    "play_hosts",
    "playbook_dir",
    "q",
    "query",
    "role_name",
    "role_names",
    "role_path",
    "secrets_dir",
    "tags",
    "tasks",
    "undef",
    "vars",
    "vars_files",
    "when",
    "with_items",
];

/// True for a name that a run's variables may not have.
pub fn is_reserved_variable(name: &str) -> bool {
    name.starts_with("ansible_") || name.starts_with("clusterwright_") || RESERVED_VARIABLES.contains(&name)
}

/// True for what a variable may be called: letters, digits and `_`, at most 128, no digit first.
pub fn is_variable_name(name: &str) -> bool {
    name.len() <= 128
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// How deep a variable's value may be nested: readers further on recurse, and a deep value would stop them.
pub const VARIABLE_DEPTH_LIMIT: usize = 32;

/// How deep a value is nested.
pub fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// How much a finding of preflight weighs.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It blocks.
    Error,
    /// It does not.
    Warning,
}

/// One finding of preflight.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreflightFinding {
    /// Lower case with hyphens, e.g. `memory-low`; docs/playbooks.md lists all.
    #[schemars(length(max = 64))]
    pub name: String,
    /// Whether it blocks.
    pub severity: Severity,
    /// What was found, what is needed, what to do.
    #[schemars(length(max = 512))]
    pub message: String,
}
