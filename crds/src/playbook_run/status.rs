//! Where a run is and what came out, for each step and each host.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::etcd_seen::EtcdSeen;
use super::fence::{Fence, FenceOwner};
use super::frozen::{FrozenInputs, FrozenSettings};
use super::karmada_part::Digest;
use super::part_seen::PartSeen;
use crate::certificates::CertificateSeen;
use crate::component::Component;
use crate::drift::StepDifference;
use crate::etcd_backup::BackupContent;
use crate::etcd_restore::StagedBackup;
use crate::inputs::PreflightFinding;
use crate::references::LocalRef;
use crate::step::Step;

/// Where a run is.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema)]
pub enum RunPhase {
    /// No Pod works yet.
    Pending,
    /// The executor works.
    Running,
    /// Every step is done on every host.
    Succeeded,
    /// A step failed.
    Failed,
    /// Stopped because it was asked to.
    Canceled,
    /// Stopped by its deadline.
    DeadlineExceeded,
    /// Contact was lost: it is not known where things stand.
    Unknown,
}

impl RunPhase {
    /// True once nothing more comes of the run.
    pub fn is_final(self) -> bool {
        match self {
            RunPhase::Pending | RunPhase::Running => false,
            RunPhase::Succeeded
            | RunPhase::Failed
            | RunPhase::Canceled
            | RunPhase::DeadlineExceeded
            | RunPhase::Unknown => true,
        }
    }
}

/// Where the executor is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The step.
    #[schemars(length(max = 63))]
    pub step: String,
    /// The task's name.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub task: String,
    /// Tasks begun in this step.
    #[serde(default)]
    pub done: i32,
    /// Tasks of this step, as far as known; 0: not known.
    #[serde(default)]
    pub total: i32,
    /// Bytes of a backup that have been stored, or brought to the machines; absent in other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<i64>,
}

/// Where one step is.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStatus {
    /// The step.
    pub name: Step,
    /// `Pending`, `Running`, `Succeeded`, `Failed`, `Skipped`.
    pub phase: StepPhase,
    /// When its first task began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When its probe ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Results that changed something, over all hosts; the probe counts nothing.
    #[serde(default)]
    pub changed: i32,
}

/// Where a step is.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum StepPhase {
    /// Not begun.
    Pending,
    /// Its playbook or its probe runs.
    Running,
    /// It ended well, and its probe says so too (on every host that is still in).
    Succeeded,
    /// It failed, or its probe says that it is not done.
    Failed,
    /// Not reached.
    Skipped,
}

/// What went wrong on a host.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostFailure {
    /// The step.
    #[schemars(length(max = 63))]
    pub step: String,
    /// The task's name.
    #[schemars(length(max = 256))]
    pub task: String,
    /// CamelCase, e.g. `DigestMismatch`, `Unreachable`, `AuthenticationFailed`, `HostKeyChanged`, `TaskFailed`.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// What the task said; control characters stripped, cut to 1024 characters.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// What came out for one host.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostResult {
    /// The Host.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Results that were well.
    #[serde(default)]
    pub ok: i32,
    /// Results that changed something.
    #[serde(default)]
    pub changed: i32,
    /// Results that failed.
    #[serde(default)]
    pub failed: i32,
    /// True: SSH did not answer, or let nobody in.
    #[serde(default)]
    pub unreachable: bool,
    /// What went wrong first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<HostFailure>,
    /// What preflight found, and what later steps warn of; errors first, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub findings: Vec<PreflightFinding>,
    /// What the machine says of itself, when a step gathered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<crate::host::HostFacts>,
    /// Whether the machine is clean of any cluster, when a step looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<bool>,
    /// What is left on a machine that is not clean; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 256)))]
    pub leftovers: Vec<String>,
    /// What the machine says of its cluster's etcd, when a step looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdSeen>,
    /// What the machine says of the services of its Karmada control plane, when a step looked; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub parts: Vec<PartSeen>,
    /// Parts of a Karmada control plane that a step of the run has brought to the machine and seen to work, by their
    /// names: the digest of each. They are there as well where the step failed at one after them; at most 16.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub brought: BTreeMap<String, Digest>,
    /// When the machine's certificates end, when a step looked; at most 24.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 24))]
    pub certificates: Vec<CertificateSeen>,
    /// Where the machine differs from what is wanted, when it was compared; at most 12.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 12))]
    pub differences: Vec<StepDifference>,
    /// The highest fence that the machine's guard knows, when it was asked, or has refused the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// Whose that fence is; absent where the guard knows of no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence_owner: Option<FenceOwner>,
    /// After a stop: whether the machine's guard says that nothing of this run is at work there any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<bool>,
    /// The host key seen, when the policy is to trust the first one: `TYPE BASE64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1400))]
    pub host_key: Option<String>,
}

/// Where a run is and what came out. `progress`, `steps`, `hosts`, `components`, `backup`,
/// `staged` and `outcome` are the executor's; all else is the operator's.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaybookRunStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RunPhase>,
    /// For `Failed`: whether another attempt may help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriable: Option<bool>,
    /// One sentence: what it is doing, waits for, or what went wrong, where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// 0 for the first.
    #[serde(default)]
    pub attempt: i32,
    /// The second half of the fence.
    #[serde(default)]
    pub token: i64,
    /// The frozen inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<FrozenInputs>,
    /// The settings in them that can be edited later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<FrozenSettings>,
    /// The Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_ref: Option<LocalRef>,
    /// When its Job was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When its outcome was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// ConfigMaps that keep the Pod's log, compressed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub log_refs: Vec<LocalRef>,
    /// Where the executor is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Where each step is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub steps: Vec<StepStatus>,
    /// What came out for each host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub hosts: Vec<HostResult>,
    /// What the machines found in the artifact bundle, or have of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub components: Vec<Component>,
    /// The backup that it made; it is there only once it is whole in its storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupContent>,
    /// The backup that it brought to the machines; it is there only once it is whole on all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<StagedBackup>,
    /// The executor's last word; its presence says that `steps` and `hosts` are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RunOutcome>,
    /// As a Job has them: `Complete` is True once the run has succeeded, `Failed` once it has ended otherwise (failed,
    /// was canceled, met its deadline, or was lost); the reason says why. Of an ended run that had a Job also
    /// `LogKept`. `Reconciling` until it has ended, `Stalled` once it has without success: a new run is another object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The executor's last word on a run; the termination message holds the same.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunOutcome {
    /// `Succeeded`, `Failed`, `Canceled` or `DeadlineExceeded`.
    pub phase: RunPhase,
    /// Whether another attempt may help.
    #[serde(default)]
    pub retriable: bool,
    /// CamelCase: the first failure's, or `Complete`.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// One sentence.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// The step that it ended in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// Hosts on which every step is done.
    #[serde(default)]
    pub hosts_ok: i32,
    /// Hosts on which something failed, or that could not be reached.
    #[serde(default)]
    pub hosts_failed: i32,
    /// Digest of the inputs that it worked from.
    #[schemars(length(max = 80))]
    pub digest: String,
}
