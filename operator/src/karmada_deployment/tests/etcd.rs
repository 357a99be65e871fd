//! An etcd in Pods that grows and shrinks, by an operator that is cut off: what answers is etcd's gateway, as far as it
//! is asked.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::Conditions;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::world::{MANY, UID, World};
use crate::context::Context;

const WORKLOAD: &str = "statefulsets/karmada-system/k1-etcd";

/// The members, and what was asked besides reading.
#[derive(Clone, Default)]
struct Etcd(Arc<Mutex<(Vec<Value>, Vec<String>)>>);

impl Etcd {
    /// One that has begun with a member.
    fn of_one() -> Self {
        let etcd = Self::default();
        etcd.0.lock().0.push(member(0));
        etcd
    }

    fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }

    /// Members, how many of them have no vote, and what was done.
    fn seen(&self) -> (usize, usize, Vec<String>) {
        let (members, done) = &*self.0.lock();
        (members.len(), members.iter().filter(|member| member["isLearner"] == true).count(), done.clone())
    }

    fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().clone())))
    }

    /// Pods start, and their members say their names.
    fn starts(&self, replicas: i64) {
        for at in 0..replicas {
            let url = peer_url(at);
            self.0
                .lock()
                .0
                .iter_mut()
                .filter(|one| one["peerURLs"][0] == *url)
                .for_each(|one| one["name"] = json!(name(at)));
        }
    }
}

fn name(at: i64) -> String {
    format!("k1-etcd-{at}")
}

fn peer_url(at: i64) -> String {
    format!("https://{}.k1-etcd-peers.karmada-system.svc.cluster.local:2380", name(at))
}

fn member(at: i64) -> Value {
    json!({ "ID": (at + 100).to_string(), "name": name(at), "peerURLs": [peer_url(at)] })
}

async fn answer(State(etcd): State<Etcd>, uri: Uri, body: Bytes) -> (StatusCode, String) {
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let (members, done) = &mut *etcd.0.lock();
    let id = asked["ID"].clone();
    let at = members.iter().position(|member| member["ID"] == id);
    let said = match uri.path() {
        "/v3/cluster/member/list" => json!({ "members": members }),
        // The last one that has a vote leads.
        "/v3/maintenance/status" => {
            let moved = done.iter().any(|line| line.starts_with("lead"));
            let last = members.iter().rfind(|member| member["isLearner"] != true);
            json!({ "leader": if moved { members[0]["ID"].clone() } else { last.unwrap()["ID"].clone() } })
        }
        "/v3/cluster/member/add" => {
            let url = asked["peerURLs"][0].clone();
            assert!(members.iter().all(|member| member["peerURLs"][0] != url), "{url} is added twice");
            done.push(format!("add {}", url.as_str().unwrap().split('.').next().unwrap()));
            let id = (members.len() + 200 + done.len()).to_string();
            members.push(json!({ "ID": id, "peerURLs": [url], "isLearner": asked["isLearner"] }));
            json!({})
        }
        "/v3/cluster/member/promote" => {
            let member = &mut members[at.unwrap()];
            done.push(format!("promote {}", member["name"].as_str().unwrap()));
            let seen = done.iter().filter(|line| line.starts_with("promote")).count();
            if seen % 2 == 1 {
                let message =
                    json!({ "code": 9, "message": "can only promote a learner which is in sync with leader" });
                return (StatusCode::PRECONDITION_FAILED, message.to_string());
            }
            member["isLearner"] = json!(false);
            json!({})
        }
        "/v3/maintenance/transfer-leadership" => {
            done.push(format!("lead {}", asked["targetID"]));
            json!({})
        }
        "/v3/cluster/member/remove" => {
            let gone = members.remove(at.unwrap());
            done.push(format!("remove {}", gone["name"].as_str().unwrap_or_default()));
            json!({})
        }
        path => panic!("{path} is not asked"),
    };
    (StatusCode::OK, said.to_string())
}

fn operator(world: &World, etcd: &Etcd) -> Arc<Context> {
    let ctx = world.operator();
    ctx.planes.put_etcd(UID, etcd.router());
    ctx
}

/// A pass, and what the StatefulSet's controller and kubelets do.
async fn pass(world: &World, etcd: &Etcd, ctx: &Arc<Context>) {
    world.pass(ctx).await;
    let Some(live) = world.api.get(WORKLOAD) else { return };
    let replicas = live["spec"]["replicas"].as_i64().unwrap();
    etcd.starts(replicas);
    for at in 0..6 {
        let (pod, claim) = (name(at), format!("data-{}", name(at)));
        let labels = json!({ "clusterwright.dev/karmada-uid": UID, "app.kubernetes.io/name": "etcd" });
        let metadata = |name: &str| json!({ "name": name, "namespace": "karmada-system", "labels": labels });
        match at < replicas {
            true => {
                let status = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
                let object = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata(&pod), "status": status });
                if world.api.get(&format!("pods/karmada-system/{pod}")).is_none() {
                    world.api.put("pods", &object.to_string());
                }
                if world.api.get(&format!("persistentvolumeclaims/karmada-system/{claim}")).is_none() {
                    let object =
                        json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata(&claim) });
                    world.api.put("persistentvolumeclaims", &object.to_string());
                }
            }
            false => world.api.remove(&format!("pods/karmada-system/{pod}")),
        }
    }
}

fn want(world: &World, replicas: i32) {
    world.api.edit(super::world::KEY, |object| object["spec"]["etcd"] = json!({ "local": { "replicas": replicas } }));
}

fn claims(world: &World) -> usize {
    world.api.values("persistentvolumeclaims").len()
}

fn told(world: &World) -> (usize, String) {
    let secret = world.api.get("secrets/karmada-system/k1-etcd").unwrap();
    let read = |key: &str| String::from_utf8(STANDARD.decode(secret["data"][key].as_str().unwrap()).unwrap()).unwrap();
    (read("initial-cluster").split(',').count(), read("initial-cluster-state"))
}

#[tokio::test]
async fn an_etcd_grows_and_shrinks_wherever_the_operator_is_cut_off_and_each_member_is_added_once() {
    let (world, etcd) = (World::new().await, Etcd::of_one());
    let ctx = operator(&world, &etcd);
    for _ in 0..MANY {
        pass(&world, &etcd, &ctx).await;
    }
    assert!(world.object().is_true("Ready"), "{}", world.message());
    let template = world.api.get(WORKLOAD).unwrap()["spec"]["template"].clone();
    let expected: [(i32, &[&str]); 2] = [
        (
            3,
            &[
                "add https://k1-etcd-1",
                "promote k1-etcd-1",
                "promote k1-etcd-1",
                "add https://k1-etcd-2",
                "promote k1-etcd-2",
                "promote k1-etcd-2",
            ],
        ),
        (1, &["lead \"100\"", "remove k1-etcd-2", "remove k1-etcd-1"]),
    ];
    let mut before = 0;
    for (replicas, acts) in expected {
        want(&world, replicas);
        // What it writes and what its Pods do of it are seen by the pass after.
        let (mut passes, mut quiet) = (0, 0);
        while quiet < 3 {
            let writes = world.writes();
            world.cut_after_the_next_write();
            pass(&world, &etcd, &operator(&world, &etcd)).await;
            world.mend();
            let (members, learners, _) = etcd.seen();
            let is_quiet = members == replicas as usize && learners == 0 && writes == world.writes();
            quiet = if is_quiet { quiet + 1 } else { 0 };
            passes += 1;
            assert!(passes < 10 * MANY, "{}", world.message());
        }
        let (members, learners, done) = etcd.seen();
        assert_eq!((members, learners, claims(&world)), (replicas as usize, 0, replicas as usize), "{done:?}");
        assert_eq!(done[before..], *acts);
        before = done.len();
        assert_eq!(told(&world), (replicas as usize, "existing".to_owned()));
        let live = world.api.get(WORKLOAD).unwrap();
        assert_eq!(live["metadata"]["annotations"]["clusterwright.dev/etcd-members"], json!(replicas.to_string()));
        assert_eq!(live["spec"]["template"], template, "no Pod is rolled");
        assert!(world.object().is_true("Ready"), "{}", world.message());
    }
    let copy = etcd.copy();
    let writes = world.writes();
    pass(&world, &etcd, &operator(&world, &etcd)).await;
    assert_eq!((world.writes(), copy.seen()), (writes, etcd.seen()), "at rest nothing is written");
}
