//! Changes of schedules that their clusters show: a schedule is written for each backup of each of its clusters, and
//! wakes those alone of which it says something new.

use std::collections::{BTreeMap, HashMap};

use crds::etcd_backup_schedule::ScheduledCluster;
use crds::{ClusterDeployment, EtcdBackupSchedule, ObjectExt};
use kube::runtime::reflector::ObjectRef;
use parking_lot::Mutex;

use super::Watched;

/// What was seen of each schedule last, by namespace and name.
#[derive(Default)]
pub(crate) struct BackupNews(Mutex<HashMap<(String, String), Seen>>);

/// What a schedule said of each cluster, and for which it was.
#[derive(Clone, Default, PartialEq)]
struct Seen {
    spec: Option<serde_json::Value>,
    clusters: BTreeMap<String, ScheduledCluster>,
}

impl BackupNews {
    /// The clusters of which this schedule says something new; of one that is gone, or is for others now, all.
    pub fn clusters(
        &self,
        cache: &Watched<EtcdBackupSchedule>,
        schedule: &EtcdBackupSchedule,
    ) -> Vec<ObjectRef<ClusterDeployment>> {
        let key = (schedule.namespace().to_owned(), schedule.name().to_owned());
        let is_there = cache.get(&key.0, &key.1).is_some();
        let new = if is_there { seen(schedule) } else { Seen::default() };
        let mut all = self.0.lock();
        let old = if is_there { all.insert(key.clone(), new.clone()) } else { all.remove(&key) }.unwrap_or_default();
        let is_news = |name: &&String| old.spec != new.spec || old.clusters.get(*name) != new.clusters.get(*name);
        let mut names: Vec<&String> = old.clusters.keys().chain(new.clusters.keys()).filter(is_news).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| ObjectRef::new(name).within(&key.0)).collect()
    }
}

/// Without what no cluster shows.
fn seen(schedule: &EtcdBackupSchedule) -> Seen {
    let clusters = schedule.status.iter().flat_map(|status| &status.clusters);
    let shown = |cluster: &ScheduledCluster| ScheduledCluster {
        last_schedule_time: None,
        last_attempt: None,
        last_verified: None,
        backups: 0,
        next_schedule_time: None,
        ..cluster.clone()
    };
    let selection = (&schedule.spec.cluster_name, &schedule.spec.cluster_selector);
    Seen {
        spec: serde_json::to_value(selection).ok(),
        clusters: clusters.map(|cluster| (cluster.name.clone(), shown(cluster))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crds::EtcdBackupSchedule;
    use serde_json::{Value, json};

    use super::{BackupNews, Watched};

    fn schedule(selector: &Value, clusters: &Value) -> EtcdBackupSchedule {
        serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackupSchedule",
            "metadata": { "name": "nightly", "namespace": "fleet", "uid": "u" },
            "spec": {
                "clusterSelector": selector, "schedule": "0 3 * * *",
                "template": { "storageRef": { "name": "s3" }, "encryption": { "recipients": [] } }
            },
            "status": { "clusters": clusters }
        }))
        .unwrap()
    }

    #[test]
    fn a_schedule_wakes_the_clusters_of_which_it_says_something_new() {
        let (cache, news) = (Watched::new(&Arc::default()), BackupNews::default());
        let names = |schedule: &EtcdBackupSchedule| -> Vec<String> {
            news.clusters(&cache, schedule).into_iter().map(|cluster| cluster.name).collect()
        };
        let good = |name: &str, backup: &str| {
            let good = json!({ "name": backup, "completedAt": "2026-01-01T00:00:00Z" });
            json!({ "name": name, "lastGood": good, "backups": 7 })
        };
        let first = schedule(&json!({}), &json!([good("a", "one"), good("b", "one")]));
        cache.fill(vec![first.clone()]);
        assert_eq!(names(&first), ["a", "b"]);
        assert!(names(&first).is_empty());
        assert_eq!(names(&schedule(&json!({}), &json!([good("a", "one"), good("b", "two")]))), ["b"]);
        let mut attempt = good("a", "one");
        attempt["lastAttempt"] = json!({ "name": "x", "phase": "Running" });
        assert!(names(&schedule(&json!({}), &json!([attempt, good("b", "two")]))).is_empty());
        assert_eq!(names(&schedule(&json!({}), &json!([good("b", "two")]))), ["a"], "it is selected no more");
        let other = json!({ "matchLabels": { "stage": "prod" } });
        assert_eq!(names(&schedule(&other, &json!([good("b", "two")]))), ["b"]);
        cache.fill(Vec::new());
        assert_eq!(names(&first), ["b"], "it is gone");
        assert!(names(&first).is_empty());
    }
}
