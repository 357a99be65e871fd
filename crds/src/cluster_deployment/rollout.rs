//! How what was changed reaches machines that serve: unasked or approved, in which hours, and how carefully.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether what is changed waits for a person before it disrupts a machine.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum Approval {
    /// Nothing that restarts what serves, and no drain for it, begins before it is approved: the `status.plan` of a
    /// cluster by the annotation `clusterwright.dev/approve: plan.<digest>`, the `status.upgrade` of a Karmada control
    /// plane by `upgrade.<digest>`; the status has the whole command. Repairs, joins, removals, renewals of
    /// certificates, labels of Nodes, and settings that are taken up without a restart are not asked.
    Manual,
    /// It does not.
    #[default]
    Automatic,
}

/// How a change reaches the machines.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// How many workers are changed before all others, 1 to 100: the first of them alone, then the rest of them, as
    /// many at once as `maxUnavailable` allows. Default 1.
    #[serde(default = "default_canaries")]
    #[schemars(range(min = 1, max = 100))]
    pub canaries: i32,
    /// How long the canaries must have been well with the change before other workers follow, in seconds, 0 to 604800.
    /// Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 604_800))]
    pub pause_seconds: i32,
    /// When machines may be disrupted for a change; at most 16. Absent: at any time. What has begun on a machine when a
    /// window ends is finished there, and nothing more begins. Repairs, joins, removals and renewals of certificates
    /// wait for no window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub windows: Vec<MaintenanceWindow>,
}

impl Default for Rollout {
    fn default() -> Self {
        Self { canaries: default_canaries(), pause_seconds: 0, windows: Vec::new() }
    }
}

/// Hours in which machines may be disrupted.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    /// When it opens, as in crontab: minute, hour, day of month, month, day of week. `0 2 * * SAT,SUN` is every
    /// Saturday and Sunday at 2:00. It must open within a year.
    #[schemars(length(min = 9, max = 128), regex(pattern = r"^[0-9A-Za-z*,/-]+( +[0-9A-Za-z*,/-]+){4}$"))]
    pub schedule: String,
    /// The time zone that `schedule` is read in: a name of the IANA database, `Europe/Paris`. Default `Etc/UTC`. An
    /// opening that a change of the clocks leaves out is when the clocks have changed, and one that comes twice is the
    /// first time.
    #[serde(default = "crate::schedule::default_time_zone")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"))]
    pub time_zone: String,
    /// How long it is open, in minutes that pass, whatever the clocks show: 10 to 10080.
    #[schemars(range(min = 10, max = 10_080))]
    pub duration_minutes: i32,
}

fn default_canaries() -> i32 {
    1
}
