//! Members whose kubeconfig is read on a Host, on API servers in memory.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::PlaybookRun;
use crds::karmada_deployment::KarmadaMemberPhase as Phase;
use crds::names::annotation;
use serde_json::{Value, json};

use super::world::{KEY, MANY, World};

const SECRET: &str = "secrets/fleet/k1-kubeconfig-far";

/// A plane with a member that is reached by Host `h`.
async fn world() -> World {
    let world = World::new().await.with_member("far", "push");
    world.api.remove("secrets/fleet/far");
    world.api.edit(KEY, |object| {
        object["spec"]["members"] = json!([{"name": "far", "syncMode": "push", "hostRef": {"name": "h"}}]);
    });
    world.api.put("hosts", "{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {name: h, namespace: fleet}, spec: {address: 192.0.2.7, unschedulable: true, ssh: {credentialsRef: {name: k}}}}");
    world
}

fn runs(world: &World) -> Vec<PlaybookRun> {
    world.api.list("playbookruns")
}

/// The run that there is ends: its executor has put this into its Secret, or has read nothing.
fn read(world: &World, content: Option<&str>) -> String {
    let runs = runs(world);
    assert_eq!(runs.len(), 1);
    let (name, uid) = (runs[0].metadata.name.clone().unwrap(), runs[0].metadata.uid.clone().unwrap());
    let failure = json!([{"name": "h", "failure": {"step": "read-kubeconfig", "task": "t", "reason": "KubeconfigNotFound", "message": "there is no /etc/kubernetes/admin.conf"}}]);
    if let Some(content) = content {
        let data = json!({"h": STANDARD.encode(content)});
        let owner = json!([{"apiVersion": "clusterwright.dev/v1alpha1", "kind": "PlaybookRun", "name": name, "uid": uid, "controller": true}]);
        world.api.put("secrets", &format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}-kubeconfigs, namespace: fleet, ownerReferences: {owner}}}, data: {data}}}"));
    }
    world.api.edit(&format!("playbookruns/fleet/{name}"), |run| {
        run["status"] = json!({"phase": if content.is_some() { "Succeeded" } else { "Failed" }, "finishedAt": "2026-01-01T00:00:00Z"});
        if content.is_none() {
            run["status"]["hosts"] = failure;
        }
    });
    name
}

#[tokio::test]
async fn a_kubeconfig_that_was_read_is_put_right_kept_and_used_and_the_run_goes_with_what_it_read() {
    let world = world().await;
    world.passes(MANY).await;
    let member = world.member("far");
    assert_eq!((member.phase, member.reason.as_str()), (Phase::Waiting, "ReadingKubeconfig"), "{}", member.message);
    assert!(world.api.get(SECRET).is_none());
    let file = super::world::kubeconfig("https://127.0.0.1:6443");
    let run = read(&world, Some(&file));
    world.passes(MANY).await;
    let member = world.member("far");
    assert_eq!(member.phase, Phase::Joined, "{}", member.message);
    let secret = world.api.get(SECRET).unwrap();
    assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "KarmadaDeployment");
    let kept = STANDARD.decode(secret["data"]["kubeconfig"].as_str().unwrap()).unwrap();
    assert!(String::from_utf8(kept).unwrap().contains("server: https://192.0.2.7:6443"));
    let from: Value =
        serde_json::from_str(secret["metadata"]["annotations"][annotation::READ_FROM].as_str().unwrap()).unwrap();
    assert_eq!((&from["run"], &from["server"]), (&json!(run), &json!("https://127.0.0.1:6443")));
    assert!(runs(&world).is_empty() && world.api.get(&format!("secrets/fleet/{run}-kubeconfigs")).is_none());
    assert_eq!(world.plane.get("clusters//far").unwrap()["spec"]["apiEndpoint"], "https://192.0.2.7:6443");
    let said = serde_json::to_string(&world.object()).unwrap();
    assert!(!said.contains("administrator") && !said.contains(&STANDARD.encode("administrator")), "{said}");
    let writes = world.writes();
    world.passes(2).await;
    assert_eq!(world.writes(), writes, "at rest nothing is written");

    world.api.edit(KEY, |object| object["spec"]["members"] = json!([]));
    world.passes(MANY).await;
    assert!(world.object().status.unwrap().members.is_empty());
    assert!(world.api.get(SECRET).is_none() && runs(&world).is_empty());
}

#[tokio::test]
async fn what_is_no_kubeconfig_or_is_not_there_or_would_run_a_program_is_said_and_not_kept() {
    let exec = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "users": [{"name": "c", "user": {"exec": {"command": "canary"}}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    let exec = exec.to_string();
    for (content, reason, says) in [
        (None, "KubeconfigNotFound", "there is no /etc/kubernetes/admin.conf"),
        (Some("root:canary:0:0"), "KubeconfigRejected", "no kubeconfig in YAML"),
        (Some(exec.as_str()), "KubeconfigRejected", "exec is not allowed"),
    ] {
        let world = world().await;
        world.passes(MANY).await;
        // Its end is just now, so that no other one is due.
        let run = read(&world, content);
        let now = jiff::Timestamp::now().to_string();
        world.api.edit(&format!("playbookruns/fleet/{run}"), |run| run["status"]["finishedAt"] = json!(now));
        world.passes(MANY).await;
        let member = world.member("far");
        assert_eq!((member.phase, member.reason.as_str()), (Phase::Waiting, reason), "{}", member.message);
        assert!(member.message.contains(says) && !member.message.contains("canary"), "{}", member.message);
        assert!(world.api.get(SECRET).is_none());
    }
}

#[tokio::test]
async fn a_secret_of_somebody_else_in_the_place_of_the_kubeconfig_is_named_and_kept() {
    let world = world().await;
    world.api.put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: k1-kubeconfig-far, namespace: fleet, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: other, controller: true}]}, data: {}}");
    world.passes(MANY).await;
    let member = world.member("far");
    assert_eq!(member.reason, "NameTaken", "{}", member.message);
    assert!(member.message.contains("k1-kubeconfig-far"), "{}", member.message);
    assert!(runs(&world).is_empty());
    assert_eq!(world.api.get(SECRET).unwrap()["metadata"]["ownerReferences"][0]["uid"], "other");
}
