//! A pool follows the Hosts, is written only when a number changes, and goes when nobody asks for its selector.

use std::sync::Arc;

use crds::{Host, HostPool, MachineRequest, MachineSet};
use serde_json::Value;

use super::Observation;
use super::news::{Concerns, HostNews};
use crate::fake_api::FakeApi;
use crate::reconcile::reconcile;

const GROUP: &str = "apiVersion: clusterwright.dev/v1alpha1";

fn host(name: &str, more: &str, probed: &str) -> String {
    format!(
        "{{{GROUP}, kind: Host, metadata: {{name: {name}, namespace: fleet}}, spec: {{address: {name}.example, ssh: {{credentialsRef: {{name: k}}}}{more}}}, status: {{cleanedEpoch: 0, lastProbeAt: '{probed}', conditions: [{{type: Ready, status: 'True', reason: X, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"
    )
}

async fn turn(api: &FakeApi) {
    let ctx = api.context();
    ctx.cache.hosts.fill(api.list::<Host>("hosts"));
    ctx.cache.machine_sets.fill(api.list::<MachineSet>("machinesets"));
    ctx.cache.machine_requests.fill(api.list::<MachineRequest>("machinerequests"));
    for pool in api.list::<HostPool>("hostpools") {
        reconcile::<Observation>(ctx.clone(), Arc::new(pool)).await.unwrap();
    }
}

#[tokio::test]
async fn a_pool_follows_its_hosts_and_at_rest_nothing_is_written() {
    let api = FakeApi::default();
    api.put("hosts", &host("h1", "", "2026-01-01T00:00:00Z"));
    api.put("hosts", &host("h2", "", "2026-01-01T00:00:00Z"));
    api.put(
        "hostpools",
        &format!("{{{GROUP}, kind: HostPool, metadata: {{name: all, namespace: fleet}}, spec: {{}}}}"),
    );
    turn(&api).await;
    let numbers = |api: &FakeApi| -> Value {
        let pool = api.get("hostpools/fleet/all").unwrap();
        serde_json::json!([pool["status"]["hosts"], pool["status"]["available"], pool["status"]["claimed"]])
    };
    assert_eq!(numbers(&api), serde_json::json!([2, 2, 0]));
    let writes = api.writes();
    api.put("hosts", &host("h2", "", "2026-01-01T00:10:00Z"));
    turn(&api).await;
    assert_eq!(api.writes(), writes, "a probe changes no number: {:?}", api.requests());
    api.put("hosts", &host("h2", ", claimRef: {kind: Machine, name: m, uid: m}", "2026-01-01T00:10:00Z"));
    turn(&api).await;
    assert_eq!(numbers(&api), serde_json::json!([2, 1, 1]));
}

#[tokio::test]
async fn a_pool_of_the_operators_goes_when_nobody_asks_for_its_selector() {
    let api = FakeApi::default();
    let pool = plan::host_pool::automatic_pool("fleet", Default::default());
    let key = format!("hostpools/fleet/{}", pool.metadata.name.clone().unwrap());
    api.put("hostpools", &serde_yaml::to_string(&pool).unwrap());
    api.put("machinesets", &format!("{{{GROUP}, kind: MachineSet, metadata: {{name: a-w, namespace: fleet}}, spec: {{clusterName: a, role: worker}}}}"));
    turn(&api).await;
    assert!(api.get(&key).is_some());
    api.put("machinesets", &format!("{{{GROUP}, kind: MachineSet, metadata: {{name: a-w, namespace: fleet}}, spec: {{clusterName: a, role: worker, template: {{hosts: [h1]}}}}}}"));
    turn(&api).await;
    assert!(api.get(&key).is_none(), "{:?}", api.requests());
}

#[test]
fn a_probe_that_changes_no_number_wakes_no_pool() {
    let host = |more: &str, probed: &str| -> Host { serde_yaml::from_str(&host("h1", more, probed)).unwrap() };
    let news = HostNews::default();
    assert_eq!(news.concerns(&host("", "2026-01-01T00:00:00Z"), true), Concerns::Selecting, "it is new");
    assert_eq!(news.concerns(&host("", "2026-01-01T00:10:00Z"), true), Concerns::None);
    let mut changed = host(", unschedulable: true", "2026-01-01T00:10:00Z");
    assert_eq!(news.concerns(&changed, true), Concerns::Selecting);
    changed.metadata.labels = Some([("zone".to_owned(), "b".to_owned())].into());
    assert_eq!(news.concerns(&changed, true), Concerns::All, "pools that selected it count one less");
    assert_eq!(news.concerns(&changed, false), Concerns::All, "it is gone");
}
