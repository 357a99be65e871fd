//! Backups that are verified.

use crds::Reason;
use crds::backup::VerificationInputs;
use crds::etcd_backup::VerifyMethod;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::inputs::artifacts::Login;

impl World {
    /// Taken, and to be verified so.
    fn stored(verify: Value) -> Self {
        let mut world = Self::new();
        world.backup.spec.verify = serde_json::from_value(verify).unwrap();
        world.take();
        world
    }

    /// Taken, and to be verified by `Restore`; all that it takes is there.
    fn restorable() -> Self {
        let mut world = Self::stored(json!({ "how": "Restore", "identityRef": { "name": "i" } }));
        let data = [("identity".to_owned(), ByteString(b"AGE-SECRET-KEY-1".to_vec()))];
        world.identity = Some(Secret { data: Some(data.into()), ..Secret::default() });
        let deployment = world.deployment.as_mut().unwrap();
        let artifacts = json!({ "url": "https://bundle/x/", "credentialsRef": { "name": "login" } });
        deployment.spec.artifacts = serde_json::from_value(artifacts).unwrap();
        let components = json!([{ "name": "etcd", "version": "3.6.16", "digests": { "amd64": "ab" } }]);
        deployment.status.as_mut().unwrap().components = serde_json::from_value(components).unwrap();
        world.artifacts = Ok(ArtifactsSeen { ca: Some("PEM".into()), login: Some(Login::Bearer), lock: None });
        world
    }

    fn take(&mut self) {
        self.step();
        self.end_run(RunPhase::Succeeded, false).status.as_mut().unwrap().backup = Some(content());
        assert_eq!(self.step().0, BackupPhase::Succeeded);
    }

    fn verified(&self) -> (String, String) {
        let verified = self.backup.condition("Verified").unwrap();
        (format!("{} {}", verified.status, verified.reason), verified.message.clone())
    }

    fn arguments(&self) -> Vec<String> {
        let pod = self.jobs[0].spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        pod.containers[0].args.clone().unwrap()
    }
}

#[test]
fn a_backup_that_was_stored_is_verified_by_a_job_and_is_good_meanwhile() {
    let mut world = World::stored(json!({ "how": "Hash" }));
    assert_eq!(world.verified().0, "False VerificationPending");
    assert_eq!(world.plan().next, Next::after_seconds(5));
    world.step();
    let arguments = world.arguments();
    assert_eq!((arguments[0].as_str(), arguments[5].as_str()), ("verify-backup", "--backup"));
    let wanted: VerificationInputs = serde_json::from_str(&arguments[6]).unwrap();
    assert_eq!((wanted.how, wanted.revision, wanted.keys, wanted.size), (VerifyMethod::Hash, 77, 5, 3_250_000));
    assert_eq!((wanted.backup.as_str(), wanted.cluster.as_str(), wanted.programs), ("nightly", "paris", None));
    assert_eq!(&arguments[7..], ["--deadline-seconds", "841"]);
    let job = serde_json::to_value(&world.jobs[0]).unwrap();
    assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "EtcdBackup");
    assert!(job["metadata"]["name"].as_str().unwrap().starts_with("verify-nightly-"));
    let (_, message) = world.step();
    assert!(message.ends_with("; being verified"), "{message}");
    assert!(world.backup.good().is_some() && world.backup.condition("Reconciling").is_none());

    world.job_ends(&json!({ "isGood": true, "message": "9 bytes were read" }));
    let (_, message) = world.step();
    assert_eq!(world.verified(), ("True Verified".into(), "9 bytes were read".into()));
    assert!(message.contains("revision 77") && message.ends_with("; verified"), "{message}");
    let verified = world.backup.status.as_ref().unwrap().verified.clone().unwrap();
    assert_eq!((verified.at.0, verified.how), (world.now, VerifyMethod::Hash));
    world.jobs.clear();
    let before = world.backup.status.clone();
    world.now += SignedDuration::from_hours(1);
    world.step();
    assert_eq!((world.jobs.len(), &world.backup.status), (0, &before), "at rest nothing is written");
    assert!(!crate::etcd_backup::is_verified_now(&world.backup, world.now));
}

#[test]
fn a_restore_gets_the_identity_the_bundle_of_the_cluster_and_room_for_the_snapshot() {
    let mut world = World::restorable();
    world.step();
    let arguments = world.arguments();
    let wanted: VerificationInputs = serde_json::from_str(&arguments[6]).unwrap();
    let programs = wanted.programs.unwrap();
    assert_eq!((programs.url.as_str(), programs.version.as_str()), ("https://bundle/x", "3.6.16"));
    assert_eq!((programs.authorities.as_deref(), programs.digests["amd64"].as_str()), (Some("PEM"), "ab"));
    assert_eq!(&arguments[9..], ["--identity", "/identity", "--artifacts-login", "/artifacts"]);
    let pod = serde_json::to_value(world.jobs[0].spec.as_ref().unwrap().template.spec.as_ref().unwrap()).unwrap();
    let volumes = pod["volumes"].as_array().unwrap();
    let volume = |name: &str| volumes.iter().find(|volume| volume["name"] == name).unwrap();
    assert_eq!(volume("identity")["secret"]["secretName"], "i");
    assert_eq!(volume("artifacts")["secret"]["items"], json!([{ "key": "token", "path": "token" }]));
    assert_eq!(volume("scratch")["emptyDir"]["sizeLimit"], "776Mi", "twice 4 MiB, and what it takes beside");
    assert_eq!(pod["containers"][0]["resources"]["limits"]["memory"], "772Mi");
    assert_eq!(pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"], true);
}

#[test]
fn one_that_is_not_what_was_stored_is_no_good_backup_any_more_and_stays_so() {
    let mut world = World::stored(json!({ "how": "Hash" }));
    world.step();
    let said = "snapshot.db.age has 9 bytes with the SHA-256 aa, and its manifest says 9 and bb";
    world.job_ends(&json!({ "isGood": false, "message": said }));
    let (phase, message) = world.step();
    assert_eq!((phase, world.verified().0.as_str()), (BackupPhase::Succeeded, "False VerificationFailed"));
    assert!(message.starts_with("damaged, take another backup: snapshot.db.age has 9 bytes"), "{message}");
    let status = world.backup.status.clone().unwrap();
    assert!(status.verified.is_none() && status.damaged.is_some() && world.backup.good().is_none());
    assert_eq!(world.backup.condition("Stalled").unwrap().reason, Reason::VerificationFailed.to_string());
    assert_eq!(world.backup.condition("Complete").unwrap().status, "True");
    world.jobs.clear();
    world.now += SignedDuration::from_hours(1);
    world.step();
    assert_eq!((world.jobs.len(), world.backup.status), (0, Some(status)));
}

#[test]
fn a_verification_that_cannot_be_made_says_nothing_of_the_backup_and_is_tried_again_ever_later() {
    let mut world = World::stored(json!({ "how": "Hash" }));
    let mut names = Vec::new();
    for (failures, seconds) in [(1, 15), (2, 30), (3, 60), (4, 120)] {
        world.step();
        assert_eq!(world.jobs.len(), 1);
        names.push(world.jobs[0].name().to_owned());
        world.job_ends(&json!({ "message": "the storage does not answer" }));
        let (_, message) = world.step();
        assert_eq!(world.verified().0, "False VerificationNotMade");
        assert!(message.contains("not verified: the storage does not answer; tried again at 12:"), "{message}");
        let status = world.backup.status.clone().unwrap();
        assert_eq!(status.verification_failures, Some(failures));
        assert!(world.backup.good().is_some() && world.backup.condition("Stalled").is_none());
        world.jobs.clear();
        world.pods.clear();
        world.now += SignedDuration::from_secs(seconds - 1);
        world.step();
        assert_eq!((world.jobs.len(), world.plan().next), (0, Next::after_seconds(1)), "not before its time");
        assert_eq!(world.backup.status, Some(status), "at rest nothing is written");
        world.now += SignedDuration::from_secs(1);
    }
    names.dedup();
    assert_eq!(names.len(), 4, "each attempt has a Job of its own");
    world.step();
    world.job_ends(&json!({ "isGood": true, "message": "well" }));
    world.step();
    assert_eq!(world.verified().0, "True Verified");
}

#[test]
fn what_a_verification_lacks_is_named_and_waited_for() {
    let check = |change: fn(&mut World), words: &str| {
        let mut world = World::restorable();
        change(&mut world);
        world.step();
        let (reason, message) = world.verified();
        assert_eq!((reason.as_str(), world.jobs.len()), ("False VerificationNotMade", 0), "{message}");
        assert!(message.contains(words) && message.contains("tried again at 12:00:15 UTC"), "{message}");
        assert!(world.backup.good().is_some());
    };
    check(|world| world.storage = None, "BackupStorage s3 is not there");
    check(|world| world.storage = Some(storage("False")), "no such bucket");
    check(|world| world.storage.as_mut().unwrap().status = None, "is being probed");
    check(|world| world.identity = None, "Secret i of identityRef is not there");
    check(|world| world.identity = Some(Secret::default()), "lacks identity");
    check(|world| world.deployment = None, "ClusterDeployment paris is not there");
    let unknown = |world: &mut World| {
        let deployment = world.deployment.as_mut().unwrap();
        deployment.spec.artifacts = None;
        deployment.status.as_mut().unwrap().components.clear();
    };
    check(unknown, "no digest of etcd 3.6.16 is known");
    let problem = |world: &mut World| {
        world.artifacts = Err(InputsProblem::waits(Reason::SecretNotFound, "Secret login is not there".to_owned()));
    };
    check(problem, "Secret login is not there");
}

#[test]
fn without_a_bundle_etcd_comes_from_upstream_by_the_digest_that_is_known_of_it() {
    let programs = |artifacts: Value, lock: Option<&str>| {
        let mut world = World::restorable();
        world.deployment.as_mut().unwrap().spec.artifacts = serde_json::from_value(artifacts).unwrap();
        let lock = lock.map(|text| {
            let data = [("bundle.lock".to_owned(), text.to_owned())].into();
            crate::inputs::lock_of("l", Some(&ConfigMap { data: Some(data), ..ConfigMap::default() })).unwrap()
        });
        world.artifacts = Ok(ArtifactsSeen { lock, ..ArtifactsSeen::default() });
        world.step();
        let wanted: VerificationInputs = serde_json::from_str(&world.arguments()[6]).unwrap();
        let programs = wanted.programs.unwrap();
        assert_eq!((programs.url.as_str(), &programs.index_sha256), ("", &None));
        let digest = |(arch, url): (&String, &String)| format!("{arch} {} {url}", programs.digests[arch]);
        programs.archives.iter().map(digest).collect::<Vec<_>>()
    };
    let url = |arch: &str| {
        format!("https://github.com/etcd-io/etcd/releases/download/v3.6.16/etcd-v3.6.16-linux-{arch}.tar.gz")
    };
    assert_eq!(programs(json!(null), None), [format!("amd64 ab {}", url("amd64"))]);
    let digest = "cd".repeat(32);
    let lock = json!({"lockVersion": 1, "files": {url("arm64"): {"sha256": digest}}}).to_string();
    assert_eq!(programs(json!({"lockRef": {"name": "l"}}), Some(&lock)), [format!("arm64 {digest} {}", url("arm64"))]);
}

#[test]
fn a_pod_that_was_killed_says_nothing_of_the_backup() {
    let mut world = World::stored(json!({ "how": "Hash" }));
    world.step();
    world.job_ends(&json!("out of memory"));
    world.step();
    assert_eq!(world.verified().0, "False VerificationNotMade");
    assert!(world.verified().1.contains("ended with code 0"), "{}", world.verified().1);
}

#[test]
fn even_a_backup_with_a_short_life_is_verified_first_and_one_that_is_deleted_is_not() {
    let mut world = World::new();
    world.backup.spec.verify = serde_json::from_value(json!({ "how": "Hash" })).unwrap();
    world.backup.spec.ttl_seconds = Some(0);
    world.take();
    world.step();
    world.step();
    assert_eq!((world.jobs.len(), world.is_gone), (1, false));
    world.job_ends(&json!({ "isGood": true, "message": "well" }));
    world.step();
    assert!(!world.is_gone || world.backup.status.as_ref().unwrap().verified.is_some());
    world.step();
    assert!(world.is_gone);

    let mut world = World::new();
    world.backup.spec.verify = serde_json::from_value(json!({ "how": "Hash" })).unwrap();
    world.backup.spec.deletion_policy = crds::etcd_backup::BackupDeletionPolicy::Delete;
    world.take();
    world.step();
    assert!(world.jobs[0].name().starts_with("verify-"));
    world.delete();
    let begun = world.plan();
    assert!(
        begun.actions.iter().any(|action| matches!(action, Action::Forget(job) if job.name().starts_with("verify-")))
    );
    assert!(begun.actions.iter().any(|action| matches!(action, Action::Remove(_))));
}

#[test]
fn a_backup_without_it_is_not_verified() {
    let mut world = World::new();
    world.take();
    world.step();
    assert!(world.jobs.is_empty() && world.backup.condition("Verified").is_none());
}
