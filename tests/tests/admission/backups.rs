//! BackupStorages, EtcdBackups, EtcdBackupSchedules and EtcdRestores.

use anyhow::{Result, ensure};
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{
    Admitted, RECIPIENT, admitted, backup, check, check_changes, object, refused, refused_at, restore, run, with,
};

fn bucket() -> Value {
    let s3 = json!({ "endpoint": "https://s3.example:9000", "bucket": "etcd", "credentialsRef": { "name": "login" } });
    object("BackupStorage", "bucket", json!({ "s3": s3 }))
}

fn volume() -> Value {
    object("BackupStorage", "nfs", json!({ "volume": { "claimName": "backups" } }))
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_storage_is_one_place_that_requests_can_be_made_to() -> Result<()> {
    let s3 = |field: &str| format!("spec.s3.{field}");
    let outside = || json!(["/etc", "../x", "a/../b", "a//b", "a/", ".", "a b", "", "x\ny"]);
    check(&ApiServer::shared().await?, [
        (0, "both", bucket(), "spec.volume", json!([{ "claimName": "x" }]), refused_at("spec", "exactly one of s3 and volume")),
        (0, "neither", volume(), "spec.volume", json!([null]), refused_at("spec", "exactly one of s3 and volume")),
        (26, "no URL of a server", bucket(), &s3("endpoint"),
            json!(["s3.example", "file:///etc", "https://user:word@s3.example", "https://s3.example/bucket", "https://a b", "ftp://x.example"]),
            refused("")),
        (0, "a server", bucket(), &s3("endpoint"), json!(["http://172.30.0.1:7070", "https://[fd00::1]:9000"]), Admitted),
        (0, "no bucket", bucket(), &s3("bucket"), json!(["", "ab", "Etcd", "a/b", "-x-", "a".repeat(64)]), refused("")),
        (22, "out of its prefix", bucket(), &s3("prefix"), outside(), refused("")),
        (0, "a prefix", bucket(), &s3("prefix"), json!(["etcd", "clusters/paris_1"]), Admitted),
        (22, "no name", bucket(), &s3("credentialsRef.name"), json!(["../x", "", "X"]), refused("")),
        (0, "a key of another's", bucket(), &s3("serverSideEncryption"),
            json!([{ "algorithm": "AES256", "kmsKeyID": "x" }, { "algorithm": "ROT13" }]), refused("")),
        (0, "a key", bucket(), &s3("serverSideEncryption"), json!([{ "algorithm": "AES256" }, { "algorithm": "KMS", "kmsKeyID": "x" }]), Admitted),
        (22, "out of its volume", volume(), "spec.volume.path", outside(), refused("")),
        (3, "too long for a Job's", volume(), "metadata.name", json!(["a".repeat(41), "a.b"]), refused("at most 40")),
    ]).await
}

/// An etcd by its endpoints.
fn endpoints() -> Value {
    json!({ "endpoints": ["https://10.0.0.5:2379", "https://etcd-1.example:2379"], "secretRef": { "name": "etcd" } })
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_backup_is_of_a_cluster_or_of_an_etcd_by_its_endpoints() -> Result<()> {
    let bare = || with(with(backup("bare"), "spec.clusterName", json!(null)), "spec.etcd", endpoints());
    let plane = || with(with(backup("plane"), "spec.clusterName", json!(null)), "spec.karmadaDeploymentRef", json!({ "name": "k1" }));
    let exactly = "exactly one of clusterName, karmadaDeploymentRef and etcd";
    check(&ApiServer::shared().await?, [
        (0, "an etcd", bare(), "spec.etcd.prefix", json!([null, "/registry", "/lab/kept"]), Admitted),
        (0, "both", backup("nightly"), "spec.etcd", json!([endpoints()]), refused_at("spec", exactly)),
        (0, "neither", backup("nightly"), "spec.clusterName", json!([null]), refused_at("spec", exactly)),
        (0, "no endpoints", bare(), "spec.etcd.endpoints",
            json!([null, [], ["http://10.0.0.5:2379"], ["https://10.0.0.5"], ["https://10.0.0.5:70000"], ["https://a:1/b"]]), refused("")),
        (0, "one twice", bare(), "spec.etcd.endpoints", json!([["https://10.0.0.5:2379", "https://10.0.0.5:2379"]]), refused("Duplicate")),
        (0, "no Secret", bare(), "spec.etcd.secretRef", json!([null]), refused("Required value")),
        (0, "no prefix", bare(), "spec.etcd.prefix", json!(["", "/", "registry", "/a/"]), refused("")),
        (0, "nowhere to spool", bare(), "spec.spool", json!([true]), refused_at("spec", "spool goes with clusterName")),
        (0, "a plane", plane(), "spec.verify", json!([null, { "how": "Hash" }]), Admitted),
        (0, "a plane and a cluster", backup("nightly"), "spec.karmadaDeploymentRef", json!([{ "name": "k1" }]), refused_at("spec", exactly)),
        (0, "a plane and an etcd", plane(), "spec.etcd", json!([endpoints()]), refused_at("spec", exactly)),
        (0, "a plane that may be on machines", plane(), "spec.spool", json!([true, false]), Admitted),
        (0, "a plane without programs", plane(), "spec.verify", json!([verify("Restore")]), refused_at("spec.verify", "with etcd or karmadaDeploymentRef use how: Hash")),
        (0, "to a machine", backup("nightly"), "spec.spool", json!([true, false]), Admitted),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_backup_is_encrypted_and_stays_as_it_was_asked_for() -> Result<()> {
    let server = ApiServer::shared().await?;
    let recipients = "spec.encryption.recipients";
    check(&server, [
        (2, "not encrypted", backup("nightly"), "spec.encryption", json!([null]), refused("Required value")),
        (2, "for nobody", backup("nightly"), recipients, json!([[], null]), refused("")),
        (0, "for no recipient", backup("nightly"), recipients,
            json!([["age1short"], ["AGE-SECRET-KEY-1QQQQ"], [RECIPIENT.to_uppercase()], [RECIPIENT, RECIPIENT]]), refused("")),
        (0, "too slow or too fast", backup("nightly"), "spec.bytesPerSecond", json!([0, 65535, -1, 10_737_418_241_i64]), refused("")),
        (0, "too short or too long", backup("nightly"), "spec.timeoutSeconds", json!([299, 86401]), refused("")),
        (0, "gone too late", backup("nightly"), "spec.ttlSeconds", json!([-1, 1_576_800_001]), refused("")),
        (0, "another policy", backup("nightly"), "spec.deletionPolicy", json!(["Reset", ""]), refused("")),
        (0, "a policy", backup("nightly"), "spec.deletionPolicy", json!(["Retain", "Delete"]), Admitted),
        (0, "verified", backup("nightly"), "spec.verify", json!([{ "how": "Hash" }, verify("Hash"), verify("Restore")]), Admitted),
        (0, "verified without an identity", backup("nightly"), "spec.verify", json!([{ "how": "Restore" }]), refused("identityRef is required")),
        (0, "verified in another way", backup("nightly"), "spec.verify", json!([{}, { "how": "Guess" }, { "how": "Hash", "everySeconds": 1 }]), refused("")),
        (2, "nowhere", backup("nightly"), "spec.storageRef", json!([null]), refused("Required value")),
        (3, "too long for a run's", backup("nightly"), "metadata.name", json!(["a".repeat(51), "a.b"]), refused("at most 50")),
    ]).await?;
    check_changes(&server, with(backup("nightly"), "metadata.name", json!("kept")), [
        (15, "cluster", json!({ "clusterName": "other" }), refused_at("spec", "Forbidden")),
        (15, "its end", json!({ "deletionPolicy": "Delete" }), refused_at("spec", "Forbidden")),
        (15, "its end", json!({ "ttlSeconds": 60 }), refused_at("spec", "Forbidden")),
        (15, "verified later", json!({ "verify": { "how": "Hash" } }), refused_at("spec", "Forbidden")),
        (15, "recipients", json!({ "encryption": { "recipients": [RECIPIENT.replace("ql3z", "qqqq")] } }), refused_at("spec", "Forbidden")),
    ]).await
}

fn verify(how: &str) -> Value {
    json!({ "how": how, "identityRef": { "name": "identity" } })
}

fn schedule() -> Value {
    let template = json!({ "storageRef": { "name": "bucket" }, "encryption": { "recipients": [RECIPIENT] } });
    let spec = json!({ "clusterName": "demo", "schedule": "0 3 * * *", "template": template });
    object("EtcdBackupSchedule", "nightly", spec)
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_schedule_is_for_one_cluster_or_for_those_with_some_labels_and_keeps_something() -> Result<()> {
    let server = ApiServer::shared().await?;
    let labelled = with(with(schedule(), "spec.clusterName", json!(null)), "spec.clusterSelector", json!({}));
    let spec = admitted(&server, schedule()).await?["spec"].take();
    for (path, value) in [
        ("/timeZone", json!("Etc/UTC")),
        ("/maxConcurrent", json!(4)),
        ("/suspend", json!(false)),
        ("/retention", json!({ "keepLast": 7, "keepDaily": 0, "keepWeekly": 0, "keepMonthly": 0 })),
        ("/template/timeoutSeconds", json!(3600)),
        ("/template/deletionPolicy", json!("Delete")),
    ] {
        ensure!(spec.pointer(path) == Some(&value), "{path}: {:?}", spec.pointer(path));
    }
    let exactly = "exactly one of clusterName, clusterSelector, karmadaDeploymentRef and etcd";
    let plane = || with(with(schedule(), "spec.clusterName", json!(null)), "spec.karmadaDeploymentRef", json!({ "name": "k1" }));
    let bare = || with(with(schedule(), "spec.clusterName", json!(null)), "spec.etcd", endpoints());
    check(&server, [
        (0, "every cluster", labelled.clone(), "spec.clusterSelector", json!([{}, { "matchLabels": { "stage": "prod" } }]), Admitted),
        (0, "both", schedule(), "spec.clusterSelector", json!([{}]), refused_at("spec", exactly)),
        (0, "neither", schedule(), "spec.clusterName", json!([null]), refused_at("spec", exactly)),
        (0, "an etcd and a cluster", schedule(), "spec.etcd", json!([endpoints()]), refused_at("spec", exactly)),
        (0, "an etcd and clusters", bare(), "spec.clusterSelector", json!([{}]), refused_at("spec", exactly)),
        (0, "an etcd", bare(), "spec.template.spool", json!([null, false]), Admitted),
        (0, "a plane", plane(), "spec.template.spool", json!([null, false, true]), Admitted),
        (0, "a plane and an etcd", plane(), "spec.etcd", json!([endpoints()]), refused_at("spec", exactly)),
        (0, "a plane and clusters", plane(), "spec.clusterSelector", json!([{}]), refused_at("spec", exactly)),
        (0, "a plane without programs", plane(), "spec.verify", json!([verify("Restore")]), refused_at("spec.verify", "use how: Hash")),
        (0, "nowhere to spool", bare(), "spec.template.spool", json!([true]), refused_at("spec", "template.spool goes with")),
        (0, "no schedule", schedule(), "spec.schedule",
            json!([null, "", "@daily", "0 3 * *", "0 3 * * * *", "0 3 * * ?", "0 3 * * FRI#2", "0 3 * * *\n"]), refused("")),
        (0, "a schedule", schedule(), "spec.schedule", json!(["*/15 * * * *", "0 3 1,15 * MON-FRI", "30  1 * JAN sun"]), Admitted),
        (0, "no time zone", schedule(), "spec.timeZone", json!(["", "Europe/", "/etc/passwd", "../x", "a b", "{{ x }}"]), refused("")),
        (0, "a time zone", schedule(), "spec.timeZone", json!(["Europe/Paris", "Etc/GMT+3", "America/Argentina/Ushuaia"]), Admitted),
        (0, "nothing kept", schedule(), "spec.retention", json!([{}, { "keepLast": 0 }]), refused_at("spec.retention", "must be more than 0")),
        (0, "something kept", schedule(), "spec.retention", json!([{ "keepDaily": 7, "keepMonthly": 12 }]), Admitted),
        (0, "too many or too few", schedule(), "spec.retention.keepDaily", json!([-1, 501]), refused("")),
        (0, "too many or too few", schedule(), "spec.maxConcurrent", json!([0, 101]), refused("")),
        (0, "too soon", schedule(), "spec.startingDeadlineSeconds", json!([0, 9]), refused("")),
        (0, "too long", schedule(), "spec.spreadSeconds", json!([-1, 86401]), refused("")),
        (0, "verified", schedule(), "spec.verify", json!([{ "how": "Hash" }, with(verify("Restore"), "everySeconds", json!(0))]), Admitted),
        (0, "verified without an identity", schedule(), "spec.verify", json!([{ "how": "Restore" }]), refused("identityRef is required")),
        (0, "verified too seldom", schedule(), "spec.verify", json!([{ "how": "Hash", "everySeconds": -1 }, { "how": "Hash", "everySeconds": 31_536_001 }]), refused("")),
        (0, "each verified", schedule(), "spec.template.verify", json!([{ "how": "Hash" }]), refused("unknown field")),
        (2, "not encrypted", schedule(), "spec.template.encryption", json!([null]), refused("Required value")),
        (0, "a life of its own", schedule(), "spec.template.ttlSeconds", json!([60]), refused("unknown field")),
        (0, "another cluster", schedule(), "spec.template.clusterName", json!(["demo"]), refused("unknown field")),
        (3, "too long for its backups'", schedule(), "metadata.name", json!(["a".repeat(31), "a.b"]), refused("at most 30")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_run_takes_a_backup_for_an_etcd_backup_only() -> Result<()> {
    let takes = with(with(run("r"), "spec.intent", json!("Backup")), "spec.steps", json!(["backup-etcd"]));
    check(&ApiServer::shared().await?, [
        (0, "for none", takes.clone(), "spec.backupRef", json!([null]), refused_at("spec", "backupRef is required")),
        (0, "for one", takes, "spec.backupRef", json!([{ "name": "nightly" }]), Admitted),
        (0, "another run", run("r"), "spec.backupRef", json!([{ "name": "nightly" }]), refused_at("spec", "backupRef is required")),
        (0, "another run", run("r"), "spec.steps", json!([["backup-etcd"]]), refused_at("spec", "backup-etcd")),
    ]).await?;
    let takes = with(with(run("r"), "spec.intent", json!("Backup")), "spec.steps", json!(["backup-etcd"]));
    let takes = with(takes, "spec.backupRef", json!({ "name": "nightly" }));
    let without = with(takes.clone(), "spec.hosts", json!([]));
    check(&ApiServer::shared().await?, [
        (0, "of no machine", without, "spec.clusterName", json!([null, "demo"]), Admitted),
        (0, "of machines of nobody", takes, "spec.clusterName", json!([null]), refused_at("spec", "clusterName is required")),
        (0, "without machines", run("r"), "spec.hosts", json!([[]]), refused_at("spec", "hosts is required")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_restore_is_of_one_backup_and_stays_as_it_is() -> Result<()> {
    let server = ApiServer::shared().await?;
    let stored = |location: &str| json!({ "stored": { "storageRef": { "name": "bucket" }, "location": location } });
    let both = json!({ "backupRef": { "name": "nightly" }, "stored": { "storageRef": { "name": "bucket" }, "location": "a" } });
    check(&server, [
        (0, "a place in a storage", restore("r"), "spec.source", json!([stored("demo/4f0c/20261124T030000Z-9b1d")]), Admitted),
        (0, "both or neither", restore("r"), "spec.source", json!([both, {}]), refused_at("spec.source", "exactly one of backupRef and stored")),
        (22, "out of its prefix", restore("r"), "spec.source", json!([stored("../x"), stored("a/../b"), stored("/a"), stored("a//b"), stored("")]), refused("")),
        (0, "of a cluster and a plane", restore("r"), "spec.karmadaDeploymentRef", json!([{"name": "k1"}]), refused_at("spec", "exactly one of clusterName and karmadaDeploymentRef")),
        (0, "of nothing", restore("r"), "spec.clusterName", json!([null]), refused_at("spec", "exactly one of clusterName and karmadaDeploymentRef")),
        (0, "of a plane", restore("r"), "spec", json!([{
            "karmadaDeploymentRef": {"name": "k1"}, "source": {"backupRef": {"name": "nightly"}}, "identityRef": {"name": "identity"}
        }]), Admitted),
        (21, "without an identity", restore("r"), "spec.identityRef", json!([null]), refused("Required value")),
        (0, "a backup before", restore("r"), "spec.safetyBackup", json!([
            { "skip": true }, { "storageRef": { "name": "bucket" }, "encryption": { "recipients": [RECIPIENT] } },
        ]), Admitted),
        (0, "half of one", restore("r"), "spec.safetyBackup", json!([
            {}, { "skip": false }, { "storageRef": { "name": "bucket" } }, { "encryption": { "recipients": [RECIPIENT] } },
            { "skip": true, "storageRef": { "name": "bucket" }, "encryption": { "recipients": [RECIPIENT] } },
        ]), refused_at("spec.safetyBackup", "give storageRef and encryption, or skip: true")),
        (30, "kept for too long", restore("r"), "spec.keepOldDataSeconds", json!([-1, 31_536_001]), refused("")),
        (0, "too short or too long", restore("r"), "spec.timeoutSeconds", json!([599, 86401]), refused("")),
        (3, "too long a name", restore("r"), "metadata.name", json!(["a".repeat(51), "a.b"]), refused("at most 50")),
    ]).await?;
    check_changes(&server, restore("kept"), [
        (15, "cluster", json!({ "clusterName": "other" }), refused_at("spec", "Forbidden")),
        (15, "source", json!({ "source": { "backupRef": { "name": "another" } } }), refused_at("spec", "Forbidden")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_run_replaces_data_for_an_etcd_restore_only() -> Result<()> {
    let steps = |intent: &str, step: &str| with(with(run("r"), "spec.intent", json!(intent)), "spec.steps", json!([step]));
    let server = ApiServer::shared().await?;
    for (intent, step) in [("Stage", "stage-backup"), ("Restore", "restore-etcd")] {
        check(&server, [
            (0, "for none", steps(intent, step), "spec.restoreRef", json!([null]), refused_at("spec", "restoreRef is required")),
            (0, "for one", steps(intent, step), "spec.restoreRef", json!([{ "name": "back" }]), Admitted),
            (0, "another run", run("r"), "spec.steps", json!([[step]]), refused_at("spec", step)),
        ]).await?;
    }
    check(&server, [
        (0, "another run", run("r"), "spec.restoreRef", json!([{ "name": "back" }]), refused_at("spec", "restoreRef is required")),
    ]).await
}
