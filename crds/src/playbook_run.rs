//! PlaybookRun: one execution on some Hosts. It owns the Job.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;
use crate::step::{Intent, Step};
use crate::{ClusterKind, FormerRef};

mod ending;
mod etcd_seen;
mod fence;
mod frozen;
mod karmada_part;
mod part_seen;
mod status;
mod steps;
mod steps_of_kind;
pub(crate) mod vars;

pub use ending::end;
pub use vars::read_object;

pub use etcd_seen::{EtcdHashSeen, EtcdMemberHash, EtcdSeen};
pub use fence::{Fence, FenceOwner};
pub use frozen::{FrozenInputs, FrozenSettings};
pub use karmada_part::{Digest, KarmadaPart};
pub use part_seen::PartSeen;
pub use status::{HostFailure, HostResult, PlaybookRunStatus, Progress, RunOutcome, RunPhase, StepPhase, StepStatus};
pub use steps::{StepNotAllowed, check_steps};
pub use steps_of_kind::{StepNotForKind, check_steps_of_kind};

/// What is asked: steps, Hosts, variables.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "PlaybookRun",
    plural = "playbookruns",
    shortname = "pr",
    category = "clusterwright",
    namespaced,
    status = "PlaybookRunStatus",
    derive = "PartialEq",
    doc = "One execution of steps on Hosts: written by the operator, or by an administrator for a one-off.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(name = "Intent", type_ = "string", json_path = ".spec.intent"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Step", type_ = "string", json_path = ".status.progress.step"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63")
        .message("metadata.name: a PlaybookRun's name is an RFC 1123 label of at most 63 characters: its Job has the same name"),
    selectable = ".spec.clusterName",
    selectable = ".spec.clusterKind"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.intent == 'Probe' || has(self.clusterName) || (self.intent == 'Backup' && size(self.hosts) == 0)")
    .message("clusterName is required for every intent but Probe, and Backup without hosts"))]
#[x_kube(validation = Rule::new("self.intent == 'Backup' || size(self.hosts) > 0")
    .message("hosts is required for every intent but Backup: name at least one Host").field_path(".hosts"))]
#[x_kube(validation = Rule::new("self.intent == oldSelf.intent && self.steps == oldSelf.steps && self.hosts == oldSelf.hosts && has(self.vars) == has(oldSelf.vars) && (!has(self.vars) || self.vars == oldSelf.vars) && has(self.playbooksRef) == has(oldSelf.playbooksRef) && (!has(self.playbooksRef) || self.playbooksRef == oldSelf.playbooksRef) && has(self.playbookVars) == has(oldSelf.playbookVars) && (!has(self.playbookVars) || self.playbookVars == oldSelf.playbookVars) && has(self.backupRef) == has(oldSelf.backupRef) && (!has(self.backupRef) || self.backupRef == oldSelf.backupRef) && has(self.restoreRef) == has(oldSelf.restoreRef) && (!has(self.restoreRef) || self.restoreRef == oldSelf.restoreRef) && self.timeoutSeconds == oldSelf.timeoutSeconds && self.resume == oldSelf.resume && has(self.clusterName) == has(oldSelf.clusterName) && (!has(self.clusterName) || self.clusterName == oldSelf.clusterName) && self.clusterKind == oldSelf.clusterKind && has(self.karmada) == has(oldSelf.karmada) && (!has(self.karmada) || self.karmada == oldSelf.karmada) && has(self.karmadaParts) == has(oldSelf.karmadaParts) && (!has(self.karmadaParts) || self.karmadaParts == oldSelf.karmadaParts)")
    .message("Forbidden: a PlaybookRun is immutable but for cancel and paused; make a new one"))]
#[x_kube(validation = steps::rule())]
#[x_kube(validation = steps_of_kind::rule())]
#[x_kube(validation = Rule::new("has(self.playbooksRef) || !self.steps.exists(s, s.startsWith('custom-'))")
    .message("playbooksRef is required with a step custom-<name>: name the ConfigMap that holds <name>.yml"))]
#[x_kube(validation = Rule::new("(self.intent == 'Backup') == has(self.backupRef)")
    .message("backupRef is required with the intent Backup, and goes with no other: make an EtcdBackup, which makes the run"))]
#[x_kube(validation = Rule::new("(self.intent in ['Stage', 'Restore']) == has(self.restoreRef)")
    .message("restoreRef is required with the intents Stage and Restore, and goes with no other: make an EtcdRestore, which makes the run"))]
#[x_kube(validation = Rule::new("self.clusterKind != 'KarmadaDeployment' || has(self.clusterName)")
    .message("clusterName is required with clusterKind KarmadaDeployment: name the plane whose machines these are"))]
#[x_kube(validation = Rule::new("!has(self.karmada) && !has(self.karmadaParts) || self.clusterKind == 'KarmadaDeployment'")
    .message("karmada and karmadaParts go with clusterKind KarmadaDeployment: leave them out"))]
#[x_kube(validation = Rule::new("has(self.karmada) || has(self.karmadaParts) || !self.steps.exists(s, s in ['karmada-service', 'karmada-balancer'])")
    .message("karmada or karmadaParts is required with the steps karmada-service and karmada-balancer: it says what is brought"))]
#[x_kube(validation = Rule::new("!has(self.karmada) || !has(self.karmadaParts)")
    .message("karmada is one part, karmadaParts are several: give one of them"))]
#[x_kube(validation = Rule::new("!has(self.karmada) || self.karmada.digests.all(h, h in self.hosts)")
    .message("karmada.digests has names of Hosts that are in hosts"))]
#[x_kube(validation = Rule::new("!has(self.karmadaParts) || self.karmadaParts.all(part, part.digests.all(h, h in self.hosts))")
    .message("karmadaParts[].digests has names of Hosts that are in hosts"))]
#[x_kube(validation = Rule::new("!oldSelf.cancel || self.cancel").message("Forbidden: a canceled run cannot be taken up again; make a new one"))]
pub struct PlaybookRunSpec {
    /// Whose machines these are: those of the ClusterDeployment of this name, or of what `clusterKind` says; absent
    /// only for `Probe`, and for the `Backup` of an etcd without a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub cluster_name: Option<String>,
    /// The kind of the object that `clusterName` names. Immutable. Default `ClusterDeployment`.
    #[serde(default, skip_serializing_if = "ClusterKind::is_default")]
    #[schemars(extend("default" = "ClusterDeployment"))]
    pub cluster_kind: ClusterKind,
    /// What it is for. An administrator writes `Custom`, or `Probe`.
    pub intent: Intent,
    /// The steps, in this order; at most 32. Which ones a run may have follows from its intent, and from whose machines
    /// these are; a `Probe` has only steps that change nothing.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub steps: Vec<Step>,
    /// The Hosts to work on, by name; at most 500. None only for the `Backup` of an etcd that is on none of them.
    #[schemars(
        length(max = 500),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Vec<String>,
    /// More variables; reserved names (`ansible_*` and Ansible's magic ones) are refused with `ReservedVariable`.
    /// Values are data: templates in them are not run.
    #[serde(default, deserialize_with = "vars::deserialize", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "vars_schema")]
    pub vars: BTreeMap<String, serde_json::Value>,
    /// Of a run on machines of a Karmada control plane: the part that it brings to them. The operator writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada: Option<KarmadaPart>,
    /// In place of `karmada`, where it brings several parts: each of them, in the order in which they are brought. On a
    /// machine none is begun before those ahead of it work; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    pub karmada_parts: Vec<KarmadaPart>,
    /// The ConfigMap with the playbooks of the steps `custom-<name>`: `<name>.yml`, and where there are
    /// `<name>.probe.yml` and `<name>.schema.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub playbooks_ref: Option<LocalRef>,
    /// Variables of custom playbooks, by the playbook's name: only its step sees them. Data, never templates; checked
    /// against the playbook's JSON Schema.
    #[serde(default, deserialize_with = "vars::deserialize", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "playbook_vars_schema")]
    pub playbook_vars: BTreeMap<String, serde_json::Value>,
    /// The EtcdBackup that a run of the intent `Backup` makes; the operator writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_ref: Option<LocalRef>,
    /// The EtcdRestore that a run of the intents `Stage` and `Restore` is part of; the operator writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_ref: Option<LocalRef>,
    /// Deadline of one attempt in seconds, 180 to 86400. Default 3600. The executor stops 120 s earlier.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 180, max = 86400))]
    pub timeout_seconds: i32,
    /// True: begin at the first step whose probe says that it is not done, instead of the first. Default false. It is
    /// how an attempt goes on after one that was interrupted.
    #[serde(default)]
    pub resume: bool,
    /// True: the current step ends, and then the run. Default false. The operator sets it while the cluster is paused;
    /// another run goes on from there.
    #[serde(default)]
    pub paused: bool,
    /// True: stop. Default false.
    #[serde(default)]
    pub cancel: bool,
}

impl PlaybookRunSpec {
    /// Whose machines these are; none: of no cluster.
    pub fn former(&self) -> Option<FormerRef<'_>> {
        Some(FormerRef { kind: self.cluster_kind, name: self.cluster_name.as_deref()? })
    }

    /// These steps on these Hosts, of no cluster yet, with the default of everything else.
    pub fn new(intent: Intent, steps: Vec<Step>, hosts: Vec<String>) -> Self {
        Self {
            cluster_name: None,
            cluster_kind: ClusterKind::default(),
            intent,
            steps,
            hosts,
            vars: BTreeMap::new(),
            karmada: None,
            karmada_parts: Vec::new(),
            playbooks_ref: None,
            playbook_vars: BTreeMap::new(),
            backup_ref: None,
            restore_ref: None,
            timeout_seconds: default_timeout(),
            resume: false,
            paused: false,
            cancel: false,
        }
    }
}

fn default_timeout() -> i32 {
    3600
}

fn playbook_vars_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "description": "Variables of custom playbooks, by the playbook's name: only its step sees them. Data, never templates; checked against the playbook's JSON Schema.",
        "additionalProperties": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "x-kubernetes-map-type": "atomic",
        "maxProperties": 32
    })
}

pub(crate) fn vars_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "description": "More variables; reserved names (`ansible_*` and Ansible's magic ones) are refused with `ReservedVariable`. Values are data: templates in them are not run.",
        "x-kubernetes-preserve-unknown-fields": true,
        // One owner for all: the names of nested fields would make the record of owners as deep as they are.
        "x-kubernetes-map-type": "atomic",
        "maxProperties": 128
    })
}
