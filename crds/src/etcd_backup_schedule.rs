//! EtcdBackupSchedule: clusters are backed up again and again, and old backups are deleted.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::cluster_selector::ClusterSelector;
use crate::etcd_backup::{
    BackupDeletionPolicy, BackupEncryption, EtcdEndpoints, IDENTITY_MESSAGE, IDENTITY_RULE, RESTORABLE_MESSAGE,
    RESTORABLE_RULE, Verify, VerifyMethod,
};
use crate::references::LocalRef;

mod retention;
mod status;

pub use retention::Retention;
pub use status::{EtcdBackupScheduleStatus, LastAttempt, LastGood, LastVerified, ScheduledCluster};

/// CEL: one cluster, those with some labels, a plane, or an etcd without any of them.
const CLUSTERS_RULE: &str = "[has(self.clusterName), has(self.clusterSelector), has(self.karmadaDeploymentRef), has(self.etcd)].filter(given, given).size() == 1";
const CLUSTERS_MESSAGE: &str = "exactly one of clusterName, clusterSelector, karmadaDeploymentRef and etcd is required; clusterSelector: {} selects every cluster";

/// When which clusters are backed up, and which backups are kept.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "EtcdBackupSchedule",
    plural = "etcdbackupschedules",
    shortname = "ebs",
    category = "clusterwright",
    namespaced,
    status = "EtcdBackupScheduleStatus",
    derive = "PartialEq",
    doc = "When clusters are backed up, and which of their backups are kept. It makes EtcdBackups, which stay when it is deleted.",
    printcolumn(name = "Schedule", type_ = "string", json_path = ".spec.schedule"),
    printcolumn(name = "Suspend", type_ = "boolean", json_path = ".spec.suspend"),
    printcolumn(name = "Clusters", type_ = "integer", json_path = ".status.clusterCount"),
    printcolumn(name = "Last-Good", type_ = "date", json_path = ".status.lastSuccessfulTime"),
    printcolumn(name = "Next", type_ = "string", json_path = ".status.nextScheduleTime"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 30")
        .message("metadata.name: an RFC 1123 label of at most 30 characters: its EtcdBackups are named after it")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(CLUSTERS_RULE).message(CLUSTERS_MESSAGE))]
#[x_kube(validation = Rule::new(RESTORABLE_RULE).message(RESTORABLE_MESSAGE).field_path(".verify"))]
#[x_kube(validation = Rule::new("!(has(self.etcd) && self.template.spool)")
    .message("template.spool goes with clusterName, clusterSelector, and karmadaDeploymentRef of a plane with mode Binary: an etcd that is read over its endpoints has no machine to write to; leave it out"))]
pub struct EtcdBackupScheduleSpec {
    /// The ClusterDeployment that is backed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub cluster_name: Option<String>,
    /// Labels of the ClusterDeployments that are backed up. `{}`: every one of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
    /// The KarmadaDeployment that is backed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_deployment_ref: Option<LocalRef>,
    /// An etcd without a cluster that is backed up. All backups of the schedule count as backups of one etcd, also when
    /// its endpoints are edited: another etcd has a schedule of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdEndpoints>,
    /// When, as in crontab: minute, hour, day of month, month, day of week.
    /// `0 3 * * *` is every day at 3:00, `0 */6 * * *` every six hours, `30 1 * * SUN` every Sunday at 1:30.
    /// If neither of the two days begins with `*`, either of them counts.
    #[schemars(length(min = 9, max = 128), regex(pattern = r"^[0-9A-Za-z*,/-]+( +[0-9A-Za-z*,/-]+){4}$"))]
    pub schedule: String,
    /// The time zone that `schedule` and the days of `retention` are read in: a name of the IANA database,
    /// `Europe/Paris`. Default `Etc/UTC`. A time of day that a change of the clocks leaves out is due when the clocks
    /// have changed, and one that comes twice is due the first time; an hour that begins with `*` is due whenever the
    /// clocks show it.
    #[serde(default = "crate::schedule::default_time_zone")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"))]
    pub time_zone: String,
    /// How late a backup may begin, in seconds, 10 to 31536000. After that it is left out until it is due again.
    /// Default: however late. Of several that were missed, one is made up for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 31_536_000))]
    pub starting_deadline_seconds: Option<i32>,
    /// How many clusters are backed up at once, 1 to 100. Default 4. Of one cluster, one backup of the schedule is
    /// taken at a time: the next begins when the one before has ended.
    #[serde(default = "default_max_concurrent")]
    #[schemars(range(min = 1, max = 100))]
    pub max_concurrent: i32,
    /// True: no backup begins, and none is deleted. Those that have begun go on. Default false. Once it is false again,
    /// what was missed meanwhile is made up for by one backup, within `startingDeadlineSeconds`.
    #[serde(default)]
    pub suspend: bool,
    /// Clusters begin within so many seconds after they are due, each always at the same distance, 0 to 86400. Default
    /// 900 with `clusterSelector`, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub spread_seconds: Option<i32>,
    /// Which backups of each cluster are kept. Default `keepLast: 7`.
    #[serde(default)]
    pub retention: Retention,
    /// Which of the backups are verified, and how. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<ScheduledVerify>,
    /// What the EtcdBackups are made from.
    pub template: EtcdBackupTemplate,
}

/// How backups are verified, and how often.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(IDENTITY_RULE).message(IDENTITY_MESSAGE).field_path(".identityRef"))]
pub struct ScheduledVerify {
    /// What is done.
    pub how: VerifyMethod,
    /// The Secret with an age identity that decrypts the backups, as `EtcdBackup.spec.verify.identityRef` has it.
    /// Required with `Restore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<LocalRef>,
    /// A backup of a cluster is verified if none of the schedule was so within so many seconds before, 0 to 31536000;
    /// 0: each one. Default 604800 with `Restore`, 86400 with `Hash`. After one that was found damaged, the next is
    /// verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub every_seconds: Option<i32>,
}

impl ScheduledVerify {
    /// Seconds from one verification of a cluster's backups to the next.
    pub fn every(&self) -> i32 {
        let unsaid = match self.how {
            VerifyMethod::Hash => 86_400,
            VerifyMethod::Restore => 604_800,
        };
        self.every_seconds.unwrap_or(unsaid)
    }

    /// What an EtcdBackup gets that is verified.
    pub fn of_backup(&self) -> Verify {
        Verify { how: self.how, identity_ref: self.identity_ref.clone() }
    }
}

impl EtcdBackupScheduleSpec {
    /// Seconds over which its clusters are spread.
    pub fn spread(&self) -> i32 {
        let unsaid = if self.cluster_selector.is_some() { 900 } else { 0 };
        self.spread_seconds.unwrap_or(unsaid)
    }

    /// Whether it is for the ClusterDeployment of this name, with these labels.
    pub fn selects(&self, name: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
        match (&self.cluster_name, &self.cluster_selector) {
            (Some(wanted), _) => wanted == name,
            (None, Some(selector)) => selector.selects(labels),
            (None, None) => false,
        }
    }

    /// Whether it is for the KarmadaDeployment of this name.
    pub fn is_for_plane(&self, name: &str) -> bool {
        self.karmada_deployment_ref.as_ref().is_some_and(|reference| reference.name == name)
    }
}

/// The spec of an EtcdBackup, but for its cluster and its life, which `retention` is for.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupTemplate {
    /// The BackupStorage that they go to.
    pub storage_ref: LocalRef,
    /// Whom they are encrypted for.
    pub encryption: BackupEncryption,
    /// The most that is read from a member in a second, in bytes, 65536 to 10737418240. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65536, max = 10_737_418_240_i64))]
    pub bytes_per_second: Option<i64>,
    /// Deadline of one attempt in seconds, 300 to 86400. Default 3600.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 300, max = 86400))]
    pub timeout_seconds: i32,
    /// True: the member's machine first writes the snapshot to its disk, below `/var/lib/clusterwright/spool`, where
    /// 1.2 times the size of the database must be free, and sends it from there; it is removed in every case. So a slow
    /// storage does not hold the member up, whose database would grow meanwhile. Not for an etcd that others run, nor
    /// for a plane in Pods. Default false.
    #[serde(default)]
    pub spool: bool,
    /// What becomes of what an EtcdBackup has stored when it is kept no longer. Default `Delete`. With `Retain` the
    /// storage only grows.
    #[serde(default = "default_deletion_policy")]
    pub deletion_policy: BackupDeletionPolicy,
}

fn default_max_concurrent() -> i32 {
    4
}

fn default_timeout() -> i32 {
    3600
}

fn default_deletion_policy() -> BackupDeletionPolicy {
    BackupDeletionPolicy::Delete
}

#[cfg(test)]
mod tests {
    use super::EtcdBackupScheduleSpec;

    fn spec(clusters: &str) -> EtcdBackupScheduleSpec {
        let template = "{storageRef: {name: s3}, encryption: {recipients: []}}";
        let text = format!("{{{clusters}, schedule: 0 3 * * *, template: {template}}}");
        serde_yaml::from_str(&text).unwrap()
    }

    #[test]
    fn clusters_are_selected_by_name_or_by_labels_as_kubernetes_selects() {
        let check = |clusters: &str, labels: &str, expected: bool| {
            let labels: std::collections::BTreeMap<String, String> = serde_yaml::from_str(labels).unwrap();
            assert_eq!(spec(clusters).selects("paris", Some(&labels)), expected, "{clusters} {labels:?}");
        };
        check("clusterName: paris", "{}", true);
        check("clusterName: lyon", "{}", false);
        check("clusterSelector: {}", "{}", true);
        check("clusterSelector: {matchLabels: {stage: prod}}", "{stage: prod, x: y}", true);
        check("clusterSelector: {matchLabels: {stage: prod}}", "{stage: test}", false);
        check("clusterSelector: {matchExpressions: [{key: stage, operator: NotIn, values: [test]}]}", "{}", true);
        check("clusterSelector: {matchExpressions: [{key: stage, operator: Exists}]}", "{}", false);
        assert!(!spec("clusterSelector: {matchLabels: {stage: prod}}").selects("paris", None));
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let one = spec("clusterName: paris");
        assert_eq!((one.spread(), spec("clusterSelector: {}").spread()), (0, 900));
        let etcd = spec("etcd: {endpoints: [\"https://10.0.0.5:2379\"], secretRef: {name: etcd}}");
        assert_eq!((etcd.spread(), etcd.selects("etcd", None)), (0, false));
        assert_eq!((one.time_zone.as_str(), one.max_concurrent, one.suspend), ("Etc/UTC", 4, false));
        assert_eq!((one.retention.keep_last, one.template.timeout_seconds), (7, 3600));
        assert_eq!(one.template.deletion_policy, super::BackupDeletionPolicy::Delete);
        let verify = |text: &str| serde_yaml::from_str::<super::ScheduledVerify>(text).unwrap();
        assert_eq!((verify("{how: Hash}").every(), verify("{how: Restore}").every()), (86_400, 604_800));
        assert_eq!(verify("{how: Restore, everySeconds: 0}").every(), 0);
        let given: super::Retention = serde_yaml::from_str("{keepDaily: 7}").unwrap();
        assert_eq!((given.keep_last, given.keep_daily), (0, 7));
    }
}
