//! Which backups of a cluster are kept.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// CEL: something is kept.
const RETENTION_RULE: &str = "self.keepLast > 0 || self.keepDaily > 0 || self.keepWeekly > 0 || self.keepMonthly > 0";

const RETENTION_MESSAGE: &str =
    "one of keepLast, keepDaily, keepWeekly and keepMonthly must be more than 0; leave retention out for keepLast: 7";

/// Which good backups of a cluster are kept: those that any of these keeps. The newest always is, and so are the
/// newest that is not still to be verified, and one that an EtcdRestore names which has not ended.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(RETENTION_RULE).message(RETENTION_MESSAGE))]
pub struct Retention {
    /// So many, the newest, 0 to 500. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 500))]
    pub keep_last: i32,
    /// The newest of each of the last so many days that have one, 0 to 500. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 500))]
    pub keep_daily: i32,
    /// The newest of each of the last so many weeks, Monday to Sunday, that have one, 0 to 500. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 500))]
    pub keep_weekly: i32,
    /// The newest of each of the last so many months that have one, 0 to 500. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 500))]
    pub keep_monthly: i32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { keep_last: 7, keep_daily: 0, keep_weekly: 0, keep_monthly: 0 }
    }
}
