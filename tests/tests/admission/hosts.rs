//! Hosts.

use anyhow::Result;
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{Admitted, NO_ADDRESSES, check, check_changes, host, refused, refused_at, with};

fn m1() -> Value {
    host("m1")
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn what_is_missing_or_unknown_is_named_row_2() -> Result<()> {
    check(&ApiServer::shared().await?, [
        (2, "no SSH", m1(), "spec.ssh", json!([null]), refused("Required value")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn addresses_are_machines_addresses_rows_11_and_12() -> Result<()> {
    let right = json!([
        "172.30.0.10", "10.0.0.1", "192.168.255.255", "fd00::1", "2001:db8::7", "node-1.example", "n1",
    ]);
    check(&ApiServer::shared().await?, [
        (11, "no address", m1(), "spec.address", json!(NO_ADDRESSES), refused("must be")),
        (11, "no address", m1(), "spec.internalAddress", json!(NO_ADDRESSES), refused("")),
        (11, "a name", m1(), "spec.internalAddress", json!(["all"]), refused("")),
        (11, "empty", m1(), "spec.address", json!([""]), refused("at least 1")),
        (11, "right", m1(), "spec.address", right, Admitted),
        (12, "no user", m1(), "spec.ssh.user", json!(["", "Root", "-oProxyCommand=id", "a b", "root;id", "1a"]),
            refused("")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn host_keys_are_keys_and_the_strict_have_one_row_25() -> Result<()> {
    let keys = json!([
        "AAAA", "ssh-ed25519", "ssh-dss AAAAB3NzaC1kc3MAAACBAA",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\nall ssh-rsa AAAA", "@cert-authority * ssh-ed25519 AAAA",
    ]);
    let trusting = with(m1(), "spec.ssh.hostKeyPolicy", json!("TrustOnFirstUse"));
    check(&ApiServer::shared().await?, [
        (25, "no key", m1(), "spec.ssh.hostKeys[0]", keys, refused("")),
        (25, "strict without a key", m1(), "spec.ssh.hostKeys", json!([null]), refused_at("spec.ssh", "ssh-keyscan")),
        (25, "trusting without a key", trusting, "spec.ssh.hostKeys", json!([null]), Admitted),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn ports_are_numbers_in_range_row_13() -> Result<()> {
    let field = "spec.ssh.port";
    check(&ApiServer::shared().await?, [
        (13, "too low", m1(), field, json!([0, -22]), refused("greater than or equal to 1")),
        (13, "too high", m1(), field, json!([65536]), refused("less than or equal to 65535")),
        (13, "a text", m1(), field, json!(["22"]), refused("must be of type integer")),
        (13, "the last one", m1(), field, json!([65535]), Admitted),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn claims_are_not_taken_back_row_15() -> Result<()> {
    check_changes(&ApiServer::shared().await?, with(host("claimed"), "spec.claimEpoch", json!(3)), [
        (15, "back", json!({ "claimEpoch": 2 }), refused_at("spec.claimEpoch", "Forbidden")),
        (15, "onward", json!({ "claimEpoch": 4 }), Admitted),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn the_address_that_a_cluster_uses_stays_while_its_host_is_claimed() -> Result<()> {
    let server = ApiServer::shared().await?;
    let forbidden = refused_at("spec.internalAddress", "give internalAddress the value that the cluster uses");
    let claim = json!({ "kind": "Machine", "name": "m", "uid": "u" });
    let plain = with(with(host("used-by-address"), "spec.address", json!("172.30.0.10")), "spec.claimRef", claim.clone());
    check_changes(&server, plain, [
        (0, "another machine", json!({ "address": "172.30.0.11" }), forbidden),
        (0, "another machine, let go in the same breath", json!({ "address": "172.30.0.11", "claimRef": null }), forbidden),
        (0, "another one inside", json!({ "internalAddress": "10.0.0.9" }), forbidden),
        (0, "another way to the same one", json!({ "address": "203.0.113.7", "internalAddress": "172.30.0.10" }), Admitted),
        (0, "another port and a bastion", json!({ "ssh": { "port": 2222, "bastionRef": { "name": "b" } } }), Admitted),
        (0, "let go", json!({ "claimRef": null }), Admitted),
    ]).await?;
    let inside = with(host("used-inside"), "spec.internalAddress", json!("10.0.0.9"));
    check_changes(&server, with(inside.clone(), "spec.claimRef", claim), [
        (0, "another one inside", json!({ "internalAddress": "10.0.0.8" }), forbidden),
        (0, "none inside", json!({ "internalAddress": null }), forbidden),
        (0, "another way", json!({ "address": "node-1.example" }), Admitted),
    ]).await?;
    check_changes(&server, with(inside, "metadata.name", json!("free")), [
        (0, "free", json!({ "internalAddress": "10.0.0.8", "address": "172.30.0.11" }), Admitted),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_quarantine_says_why_whose_and_since_when() -> Result<()> {
    let since = json!({ "reason": "JoinFailed", "message": "no", "machine": "m", "machineSet": "s", "since": "2026-01-01T00:00:00Z" });
    let kept = with(m1(), "spec.quarantine", since);
    check(&ApiServer::shared().await?, [
        (0, "right", kept.clone(), "spec.quarantine.reason", json!(["JoinFailed", "CleaningFailed", "ForceRemoved"]), Admitted),
        (0, "another reason", kept.clone(), "spec.quarantine.reason", json!(["Broken", ""]), refused("supported values")),
        (0, "no Machine", kept.clone(), "spec.quarantine.machine", json!([null]), refused("Required value")),
        (0, "no time", kept.clone(), "spec.quarantine.since", json!([null]), refused("Required value")),
        (0, "no set", kept, "spec.quarantine.machineSet", json!([null]), Admitted),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn what_is_too_large_is_refused_row_20() -> Result<()> {
    let note = json!([{ "note": "x".repeat(256 * 1024) }]);
    check(&ApiServer::shared().await?, [
        (20, "a note", m1(), "metadata.annotations", note, refused("Too long")),
        (20, "an address", m1(), "spec.address", json!(["a".repeat(254)]), refused("253")),
    ]).await
}
