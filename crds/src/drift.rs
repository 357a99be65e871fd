//! Drift: where a machine is not any more as its cluster wants it, and what is done about that.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::step::Step;

/// Differences that are reported of one machine.
pub const MOST_DIFFERENCES: usize = 12;
/// Characters of the message of one difference.
pub const DIFFERENCE_LIMIT: usize = 512;

/// Whether steps that differ are played again.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum DriftRepair {
    /// Condition `Drifted` tells what differs, and what to type to have the steps played again.
    #[default]
    Never,
    /// They are played again by themselves, one machine after the other. Where that may restart something that serves,
    /// it waits for an approval and a maintenance window, as an edit of the spec does. A machine that still differs
    /// after `executor.maxAttempts` attempts is left to a person.
    Automatic,
}

/// How often machines are compared with what is wanted of them, and what is done about those that differ.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.checkEverySeconds == 0 || self.checkEverySeconds >= 600")
    .message("drift.checkEverySeconds must be 600 or more; 0 switches comparisons off")
    .field_path(".checkEverySeconds"))]
pub struct Drift {
    /// How often each machine is compared, in seconds: 600 to 2592000, each at a moment of its own. 0: never. Default
    /// 86400, a day.
    #[serde(default = "default_check_every_seconds")]
    #[schemars(range(min = 0, max = 2_592_000))]
    pub check_every_seconds: i32,
    /// Whether steps that differ are played again. Default `Never`.
    #[serde(default)]
    pub repair: DriftRepair,
}

fn default_check_every_seconds() -> i32 {
    24 * 3600
}

impl Default for Drift {
    fn default() -> Self {
        Self { check_every_seconds: default_check_every_seconds(), repair: DriftRepair::default() }
    }
}

/// A step whose probe does not find a machine as it is wanted.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepDifference {
    /// The step that brings a machine to what is wanted.
    pub step: Step,
    /// True: the probe could not tell, since something that it asked did not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// CamelCase.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// The probe's task.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub task: String,
    /// What differs, by name: files, units, versions, kernel parameters. No contents; cut to 512 characters.
    #[schemars(length(max = 512))]
    pub message: String,
}

/// What was found when a machine was compared with what its cluster wants.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftSeen {
    /// When the run that compared it ended.
    pub checked_at: Time,
    /// Since when each comparison has found that it differs. Absent: it does not, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs_since: Option<Time>,
    /// The steps that differ, or could not be compared; at most 12.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 12), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["step"]))]
    pub differences: Vec<StepDifference>,
    /// Why the machine could not be compared; absent: it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub failure: Option<String>,
}

impl DriftSeen {
    /// The steps that differ for sure.
    pub fn steps(&self) -> Vec<Step> {
        let known = self.differences.iter().filter(|difference| !difference.unknown);
        known.map(|difference| difference.step).collect()
    }
}
