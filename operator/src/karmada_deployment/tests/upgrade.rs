//! A plane that is brought to another version, and an operator that is cut off in between.

use crds::Conditions;
use serde_json::{Value, json};

use super::world::{MANY, World};

/// More than it takes a plane to be brought to another version.
const MORE: usize = 3 * MANY;

fn version(world: &World, name: &str) -> (String, i64) {
    let live = world.api.get(&format!("deployments/karmada-system/k1-{name}")).unwrap();
    let image = live["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
    (image.rsplit_once(":v").unwrap().1.to_owned(), live["spec"]["replicas"].as_i64().unwrap())
}

/// Carriers are counted; two of them are there.
fn propagates(world: &World) {
    for name in ["one", "two"] {
        let work = format!(
            "{{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {{name: {name}, namespace: karmada-es-push}}, spec: {{}}}}"
        );
        world.plane.put("works", &work);
    }
}

/// The versions that definitions say they are of.
fn definitions(world: &World) -> Vec<Value> {
    let all = world.plane.values("customresourcedefinitions");
    all.iter().map(|one| one["metadata"]["annotations"]["clusterwright.dev/version"].clone()).collect()
}

#[tokio::test]
async fn an_upgrade_arrives_wherever_the_operator_is_cut_off_and_nothing_is_made_anew() {
    let world = World::new().await.in_version("1.17.5").with_member("pull", "pull").with_member("push", "push");
    world.passes(MANY).await;
    propagates(&world);
    let (whole, cut) = (world.copy(), world);
    let names = whole.names();
    whole.want("1.18.2");
    whole.passes(MORE).await;
    assert!(whole.object().is_true("Ready"), "{}", whole.message());
    whole.is_made_once(&names);

    cut.want("1.18.2");
    for _ in 0..MORE {
        let before = cut.writes();
        cut.cut_after_the_next_write();
        cut.pass(&cut.operator()).await;
        cut.mend();
        let definitions = definitions(&cut);
        let (controllers, running) = version(&cut, "controller-manager");
        let are_new = definitions.iter().any(|version| version == "1.18.2");
        assert!(!are_new || running == 0 || controllers == "1.18.2", "{controllers} runs beside new definitions");
        if cut.writes() == before {
            break;
        }
    }
    for name in ["webhook", "aggregated-apiserver", "scheduler", "controller-manager"] {
        assert_eq!(version(&cut, name), ("1.18.2".to_owned(), 1), "{name}");
    }
    let agent = cut.members["pull"].get("deployments/karmada-system/karmada-agent").unwrap();
    let image = &agent["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(*image, json!("docker.io/karmada/karmada-agent:v1.18.2"));
    let status = cut.object().status.unwrap();
    assert_eq!((status.version.as_deref(), status.upgrade), (Some("1.18.2"), None), "{:?}", status.message);
    cut.is_made_once(&names);
}

#[tokio::test]
async fn the_backup_before_an_upgrade_is_made_once_wherever_the_operator_is_cut_off_and_nothing_moves_before() {
    let world = World::new().await.in_version("1.17.5");
    world.passes(MANY).await;
    let schedule = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackupSchedule",
        "metadata": { "name": "nightly", "namespace": "fleet" },
        "spec": {
            "karmadaDeploymentRef": { "name": "k1" }, "schedule": "0 3 * * *",
            "template": { "storageRef": { "name": "s3" }, "encryption": { "recipients": ["age1x"] } }
        }
    });
    world.api.put("etcdbackupschedules", &schedule.to_string());
    world.want("1.18.2");
    for _ in 0..10 {
        world.cut_after_the_next_write();
        world.pass(&world.operator()).await;
        world.mend();
    }
    let backups = world.api.values("etcdbackups");
    assert_eq!(backups.len(), 1, "{}", world.message());
    assert_eq!(backups[0]["spec"]["karmadaDeploymentRef"], json!({ "name": "k1" }));
    assert!(world.message().contains("waits for EtcdBackup nightly-"), "{}", world.message());
    for name in ["webhook", "scheduler", "controller-manager"] {
        assert_eq!(version(&world, name), ("1.17.5".to_owned(), 1), "{name}");
    }
    let now = jiff::Timestamp::now().to_string();
    let content = json!({
        "location": "_karmada/k1/u/x", "revision": 7, "keys": 5, "size": 9, "sha256": "00", "member": "m",
        "etcdVersion": "3.6.6", "startedAt": now, "completedAt": now
    });
    let key = format!("etcdbackups/fleet/{}", backups[0]["metadata"]["name"].as_str().unwrap());
    world.api.edit(&key, |backup| backup["status"] = json!({ "phase": "Succeeded", "backup": content }));
    world.passes(MORE).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
    assert_eq!(version(&world, "controller-manager"), ("1.18.2".to_owned(), 1));
    assert_eq!(world.api.values("etcdbackups").len(), 1);
}
