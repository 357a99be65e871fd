//! A plane on machines: its sets, its runs and its lock, on API servers in memory.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::names::finalizer::{HOST, MACHINE};
use crds::step::Step;
use crds::{Conditions, FormerRef, KarmadaDeployment, Machine, ObjectExt, PlaybookRun};
use serde_json::{Value, json};

use super::world::{KEY, World, key_of};
use crate::karmada_deployment::part_files;

/// More than a plane on machines takes to be made.
pub(super) const MANY: usize = 140;

impl World {
    /// On machines, of which so many are free: `h1` at 10.0.0.1 and so on.
    pub async fn on_machines(replicas: usize, hosts: usize) -> Self {
        let world = Self::new().await;
        world.api.edit(KEY, |object| {
            let binary = json!({
                "controlPlane": {"replicas": replicas}, "endpoint": {"host": "10.0.0.100", "port": 5443},
                "artifacts": {"url": "https://bundle.example.com"},
            });
            object["spec"]["mode"] = json!("Binary");
            object["spec"]["binary"] = binary;
            object["spec"].as_object_mut().unwrap().remove("apiServer");
        });
        for number in 1..=hosts {
            let host = format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h{number}, namespace: fleet}}, spec: {{address: 10.0.0.{number}, ssh: {{credentialsRef: {{name: key}}}}}}}}"
            );
            world.api.put("hosts", &host);
        }
        world
    }

    fn runs(&self) -> Vec<PlaybookRun> {
        self.api.list("playbookruns")
    }
}

/// What the controllers of sets, Machines and runs, and their executors, do meanwhile.
pub fn work(world: &World) {
    make_machines(world);
    play_runs(world);
    for machine in world.api.list::<Machine>("machines") {
        let uid = machine.uid().to_owned();
        let is_about = |run: &&PlaybookRun| {
            let about = run.annotation("clusterwright.dev/machines").unwrap_or_default();
            about.contains(&uid) && run.spec.intent.spec().slug == "install" && phase(run) == Some("Succeeded".into())
        };
        let joined = world.runs().iter().find(is_about).and_then(|run| run.status.clone()?.finished_at);
        let value = serde_json::to_value(&machine).unwrap();
        if let Some(at) = joined.filter(|_| value["status"]["provisionedAt"].is_null()) {
            let condition = |type_| json!({"type": type_, "status": "True", "reason": "Seen", "message": "", "lastTransitionTime": at});
            world.api.edit(&key_of("machines", &value), |object| {
                object["status"] =
                    json!({"provisionedAt": at, "conditions": [condition("Ready"), condition("Healthy")]});
            });
        }
    }
}

fn phase(run: &PlaybookRun) -> Option<String> {
    let phase = run.status.as_ref()?.phase?;
    serde_json::to_value(phase).ok()?.as_str().map(str::to_owned)
}

fn make_machines(world: &World) {
    for set in world.api.values("machinesets") {
        let (name, uid) = (set["metadata"]["name"].as_str().unwrap(), set["metadata"]["uid"].as_str().unwrap());
        for ordinal in 1..=set["spec"]["replicas"].as_u64().unwrap() {
            let machine = format!("{name}-{ordinal}");
            if world.api.get(&format!("machines/fleet/{machine}")).is_some() {
                continue;
            }
            let spec = json!({
                "clusterName": "k1", "clusterKind": "KarmadaDeployment", "role": set["spec"]["role"],
                "hostRef": {"name": format!("h{ordinal}")},
            });
            let owner = json!({"apiVersion": "clusterwright.dev/v1alpha1", "kind": "MachineSet", "name": name, "uid": uid, "controller": true});
            world.api.put(
                "machines",
                &format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {machine}, namespace: fleet, finalizers: [{MACHINE}], ownerReferences: [{owner}]}}, spec: {spec}}}"),
            );
            let made = world.api.get(&format!("machines/fleet/{machine}")).unwrap();
            world.api.edit(&format!("hosts/fleet/h{ordinal}"), |host| {
                host["metadata"]["finalizers"] = json!([HOST]);
                host["spec"]["claimRef"] = json!({"kind": "Machine", "name": machine, "uid": made["metadata"]["uid"]});
                host["spec"]["claimEpoch"] = json!(1);
            });
        }
    }
}

/// Runs that hold the lock go well, and so do those that only look.
fn play_runs(world: &World) {
    let objects = world.api.list::<KarmadaDeployment>("karmadadeployments");
    let held = objects.into_iter().filter_map(|object| object.status).flat_map(|status| status.operations);
    let held: Vec<_> = held.collect();
    // What is read on a Host is each test's to say.
    let is_played = |run: &PlaybookRun| phase(run).is_none() && run.spec.steps != [Step::ReadKubeconfig];
    for run in world.runs().into_iter().filter(is_played) {
        let token = held.iter().find(|held| held.run == run.name()).map(|held| held.token);
        if token.is_none() && !run.spec.intent.changes_nothing() {
            continue;
        }
        let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).unwrap();
        let value = serde_json::to_value(&run).unwrap();
        let hosts: Vec<Value> = run.spec.hosts.iter().map(|host| json!({"name": host})).collect();
        let steps: Vec<Value> =
            run.spec.steps.iter().map(|step| json!({"name": step, "phase": "Succeeded", "startedAt": now})).collect();
        world.api.edit(&key_of("playbookruns", &value), |object| {
            object["status"] = json!({
                "phase": "Succeeded", "token": token.unwrap_or_default(), "startedAt": now, "finishedAt": now,
                "hosts": hosts, "steps": steps,
            });
        });
    }
}

/// The parts that a run brings.
pub(super) fn parts(run: &PlaybookRun) -> String {
    run.spec.parts().map(|part| part.part.as_str()).collect::<Vec<_>>().join(" ")
}

/// The runs that change something.
pub(super) fn changes(world: &World) -> Vec<PlaybookRun> {
    world.runs().into_iter().filter(|run| !run.spec.intent.changes_nothing()).collect()
}

#[tokio::test]
async fn a_plane_on_machines_is_made_by_runs_that_hold_its_lock_one_after_the_other() {
    let world = World::on_machines(3, 3).await;
    world.passes(MANY).await;
    let object: KarmadaDeployment = world.object();
    assert!(object.is_true("Ready"), "{}", world.message());
    let made = changes(&world);
    let mut brought: Vec<String> = made.iter().map(parts).collect();
    brought.sort();
    let expected = [
        "balancer apiserver kube-controller-manager aggregated-apiserver",
        "etcd",
        "scheduler controller-manager",
        "webhook",
    ];
    assert_eq!(brought, expected);
    assert!(made.iter().all(|run| run.spec.former() == Some(FormerRef::plane("k1")) && run.spec.hosts.len() == 3));
    let mut tokens: Vec<i64> = made.iter().map(|run| run.status.as_ref().unwrap().token).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, (1..=4).collect::<Vec<i64>>(), "each has a token of its own");
    let status = object.status.unwrap();
    assert_eq!((status.last_token, status.operations.len()), (Some(4), 0));
    assert_eq!(status.machines.unwrap().summary, "3/3");
    assert_eq!(status.endpoint.as_deref(), Some("https://10.0.0.100:5443"));
    // Nothing of it is on a host cluster, and each machine's API server has a certificate of its own.
    assert!(world.api.values("deployments").is_empty() && world.api.values("statefulsets").is_empty());
    let certificates = world.api.get("secrets/fleet/k1-certificates").unwrap();
    for host in ["h1", "h2", "h3"] {
        assert!(certificates["data"][format!("apiserver-{host}.crt")].is_string(), "{host}");
    }
    let writes = world.writes();
    world.passes(2).await;
    assert_eq!(world.writes(), writes, "at rest nothing is written");
}

#[tokio::test]
async fn a_plane_on_machines_is_made_once_though_the_operator_is_cut_off_at_each_write() {
    let world = World::on_machines(1, 1).await;
    let (whole, cut) = (world.copy(), world);
    whole.passes(MANY).await;
    // Their certificates are others, and so are the digests that the runs are named by.
    let parts = |world: &World| {
        let mut parts: Vec<String> = changes(world).iter().map(parts).collect();
        parts.sort();
        parts
    };
    assert!(whole.object().is_true("Ready"), "{}", whole.message());
    for _ in 0..whole.writes() * 2 {
        let before = cut.writes();
        cut.cut_after_the_next_write();
        cut.pass(&cut.operator()).await;
        cut.mend();
        if cut.writes() == before {
            break;
        }
    }
    cut.passes(MANY).await;
    assert!(cut.object().is_true("Ready"), "{}", cut.message());
    assert_eq!(parts(&whole), parts(&cut), "each is brought once");
    assert_eq!(parts(&cut).len(), 4);
}

#[tokio::test]
async fn a_plane_on_machines_waits_for_its_hosts_and_makes_nothing_else() {
    let world = World::on_machines(3, 3).await;
    let ctx = world.operator();
    world.pass(&ctx).await;
    let names = world.api.names();
    assert!(names.iter().all(|name| !name.starts_with("playbookruns")), "{names:?}");
    // Its keys are made before any run needs them.
    world.passes(3).await;
    assert!(world.api.get("secrets/fleet/k1-pki").is_some());
    assert!(world.api.get("machinesets/fleet/k1-karmada-control-plane").is_some());
}

#[tokio::test]
async fn what_the_estimators_of_members_are_given_is_kept_beside_the_plane_and_brought_to_its_machines() {
    let world = World::on_machines(1, 1).await.with_estimators().with_member("push", "push");
    world.passes(MANY).await;
    let kept = world.api.get("secrets/fleet/k1-estimator-push").unwrap_or_else(|| panic!("{}", world.message()));
    assert_eq!(kept["metadata"]["ownerReferences"][0]["kind"], "KarmadaDeployment");
    for file in ["kubeconfig", "member-token", "member-ca.crt", "ca.crt", "estimator.crt", "estimator.key"] {
        assert!(kept["data"][file].is_string(), "{file}");
    }
    let port = STANDARD.decode(kept["data"]["port"].as_str().unwrap()).unwrap();
    let service = world.plane.get("services/karmada-system/k1-estimators-push").unwrap();
    assert_eq!(service["spec"]["ports"][0]["targetPort"].to_string().into_bytes(), port);
    assert!(world.object().is_true("Ready"), "{}", world.message());
    let of_estimators = |world: &World| -> Vec<PlaybookRun> {
        changes(world).into_iter().filter(|run| parts(run).ends_with("estimators")).collect()
    };
    let brought = of_estimators(&world);
    assert_eq!(brought.len(), 1);
    let files = part_files(&world.operator(), &world.object(), &brought[0]).await.unwrap();
    assert!(files.contains_key("karmada-estimator.push.member-token"), "{:?}", files.keys());

    world.api.edit(KEY, |object| drop(object["spec"].as_object_mut().unwrap().remove("estimator")));
    world.passes(MANY).await;
    assert!(world.api.get("secrets/fleet/k1-estimator-push").is_none());
    assert!(world.plane.get("services/karmada-system/k1-estimators-push").is_none());
    let is_absence =
        |run: &&PlaybookRun| run.spec.parts().any(|part| part.digests.values().any(|one| one.0 == "absent"));
    assert_eq!(of_estimators(&world).iter().filter(is_absence).count(), 1, "they are taken off the machine");
    assert!(world.object().is_true("Ready"), "{}", world.message());
}
