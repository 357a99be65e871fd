use crds::{BackupStorage, BackupStorageStatus, Conditions};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use serde_json::{Value, json};

use super::{Action, Observed, plan};
use crate::inputs::StorageSeen;
use crate::{Next, Plan};

struct World {
    now: Timestamp,
    storage: BackupStorage,
    seen: StorageSeen,
    jobs: Vec<Job>,
    pods: Vec<Pod>,
}

impl World {
    fn new(spec: &Value) -> Self {
        let storage = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage",
            "metadata": { "name": "s", "namespace": "fleet", "uid": "u", "generation": 1 }, "spec": spec
        });
        let keys = [("accessKeyID", "a"), ("secretAccessKey", "canary")];
        let data = keys.map(|(key, value)| (key.to_owned(), ByteString(value.into())));
        Self {
            now: "2026-11-23T12:00:00Z".parse().unwrap(),
            storage: serde_json::from_value(storage).unwrap(),
            seen: StorageSeen {
                credentials: Some(Secret { data: Some(data.into()), ..Secret::default() }),
                authorities: None,
            },
            jobs: Vec::new(),
            pods: Vec::new(),
        }
    }

    fn plan(&self) -> Plan<Action, BackupStorageStatus> {
        plan(&Observed {
            now: self.now,
            storage: &self.storage,
            seen: &self.seen,
            image: "executor:1",
            jobs: &self.jobs,
            pods: &self.pods,
        })
    }

    fn step(&mut self) -> Next {
        let plan = self.plan();
        self.storage.status = Some(plan.status);
        for action in plan.actions {
            match action {
                Action::Look(job) => {
                    let mut job = *job;
                    job.metadata.uid = Some(format!("uid-{}", job.metadata.name.clone().unwrap()));
                    self.jobs.push(job);
                }
                Action::Forget(job) => self.jobs.retain(|there| there.metadata.name != job.metadata.name),
            }
        }
        plan.next
    }

    /// The Pod of the newest Job, in this state.
    fn pod(&mut self, status: &Value) {
        let uid = self.jobs.last().unwrap().metadata.uid.clone();
        let pod = json!({
            "metadata": {
                "name": "p", "labels": { "clusterwright.dev/storage": "s" },
                "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid }]
            },
            "status": status
        });
        self.pods = vec![serde_json::from_value(pod).unwrap()];
    }

    fn says(&mut self, message: &Value) {
        let ended = json!({ "exitCode": 0, "message": message.to_string() });
        let status = json!({ "containerStatuses": [{
            "name": "executor", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "terminated": ended }
        }]});
        self.pod(&status);
    }

    fn reachable(&self) -> (String, String, String) {
        let found = self.storage.condition("Reachable").unwrap();
        (found.status.clone(), found.reason.clone(), found.message.clone())
    }
}

fn bucket() -> Value {
    json!({ "s3": { "endpoint": "https://s3:9000", "bucket": "etcd", "credentialsRef": { "name": "login" } } })
}

#[test]
fn a_storage_is_looked_at_by_a_job_and_again_after_a_while_or_a_change() {
    let mut world = World::new(&bucket());
    assert_eq!(world.step(), Next::after_seconds(2));
    assert_eq!((world.jobs.len(), world.reachable().1.as_str()), (1, "StorageNotProbed"));
    let before = world.storage.status.clone();
    world.step();
    assert_eq!((world.jobs.len(), &world.storage.status), (1, &before), "while it goes on nothing changes");

    world.says(&json!({ "reachable": true, "backups": 2, "size": 3_250_000, "free": null }));
    assert_eq!(world.step(), Next::after_seconds(600));
    assert_eq!(world.reachable(), ("True".into(), "StorageAnswers".into(), "2 backups, 3.1 MiB".into()));
    assert_eq!((world.jobs.len(), world.storage.status.as_ref().unwrap().backups), (0, Some(2)));

    world.now += SignedDuration::from_secs(599);
    assert_eq!((world.step(), world.jobs.len()), (Next::after_seconds(1), 0));
    world.now += SignedDuration::from_secs(1);
    world.step();
    assert_eq!(world.jobs.len(), 1);
    let second = world.jobs[0].metadata.name.clone();
    assert_eq!(world.reachable().0, "True", "what was found holds until somebody has looked again");

    world.storage.metadata.generation = Some(2);
    world.step();
    assert_eq!(world.jobs.len(), 1);
    assert_ne!(world.jobs[0].metadata.name, second, "a look at the former spec says nothing of this one");
}

#[test]
fn a_storage_that_cannot_be_used_says_why_and_is_asked_again_soon() {
    let mut world = World::new(&bucket());
    world.step();
    world.says(&json!({ "reachable": false, "reason": "BucketNotFound", "message": "no bucket etcd: make it" }));
    assert_eq!(world.step(), Next::after_seconds(60));
    assert_eq!(world.reachable(), ("False".into(), "BucketNotFound".into(), "no bucket etcd: make it".into()));
    assert_eq!(world.storage.condition("Stalled").unwrap().reason, "BucketNotFound");

    let mut world = World::new(&bucket());
    world.seen.credentials = None;
    world.step();
    assert_eq!((world.jobs.len(), world.reachable().1.as_str()), (0, "SecretNotFound"));
}

#[test]
fn a_pod_that_does_not_come_up_is_told_of() {
    let mut world = World::new(&json!({ "volume": { "claimName": "nfs" } }));
    world.step();
    let why = "persistentvolumeclaim \"nfs\" not found";
    world.pod(&json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "message": why }] }));
    world.step();
    assert!(world.reachable().2.contains(why), "{}", world.reachable().2);
    let failed = json!({ "conditions": [{ "type": "Failed", "status": "True", "message": "deadline" }] });
    world.jobs[0].status = serde_json::from_value(failed).unwrap();
    world.step();
    let (status, reason, message) = world.reachable();
    assert_eq!((status.as_str(), reason.as_str(), world.jobs.len()), ("False", "PodNotStarted", 0));
    assert!(message.contains(why), "{message}");
}

#[test]
fn the_pod_gets_the_volume_and_the_credentials_and_no_secret_stands_in_it() {
    let mut world = World::new(&bucket());
    world.step();
    let text = serde_json::to_string(&world.jobs[0]).unwrap();
    assert!(!text.contains("canary") && text.contains("storage.secretAccessKey") && !text.contains("sessionToken"));
    let mut world = World::new(&json!({ "volume": { "claimName": "nfs", "path": "etcd" } }));
    world.step();
    let pod = serde_json::to_value(&world.jobs[0]).unwrap();
    let claim = pod.pointer("/spec/template/spec/volumes/0/persistentVolumeClaim/claimName");
    assert_eq!(claim, Some(&"nfs".into()));
    assert!(pod.to_string().contains("/backups/etcd"));
}
