//! Runs while a cluster's authorities or keys are replaced: what they bring is remembered.

use crds::cluster_deployment::KmsPlugin;
use jiff::Timestamp;
use plan::cluster_deployment::pki::TABLE;
use plan::encryption::Scheme;
use plan::rotation::{Move, PLUGIN, STORED, Subject};
use serde_json::json;

use super::{RUN, until_rest, world};
use crate::pki::Pki;

#[tokio::test]
async fn a_run_remembers_which_plugin_it_asks_while_one_takes_over_from_a_key() {
    let api = world();
    api.edit("machines/fleet/m", |machine| machine["spec"]["role"] = json!("control-plane"));
    api.edit(RUN, |run| {
        run["spec"]["intent"] = json!("Configure");
        run["spec"]["steps"] = json!(["kms-plugin"]);
    });
    let plugin = KmsPlugin { name: "vault".into(), endpoint: "unix:///run/kms/a.sock".into(), timeout_seconds: 3 };
    let wanted = Scheme { kms: Some(plugin), ..Scheme::default() };
    let now = Timestamp::now();
    let made = Pki::generate(TABLE, &Scheme::default(), now)
        .unwrap()
        .rotated(Subject::EncryptionKey, Move::Adopt, &wanted, now)
        .unwrap();
    api.edit("secrets/fleet/a-pki", |secret| secret["data"] = json!(made.data()));
    until_rest(&api, 1).await;
    let settings = &api.get(RUN).unwrap()["status"]["settings"];
    let authorities = &settings["authorities"];
    assert!(authorities[PLUGIN].is_string() && authorities[STORED].is_string(), "{settings}");
    assert_eq!(authorities[PLUGIN], json!(made.seen().plugin().unwrap()));
}
