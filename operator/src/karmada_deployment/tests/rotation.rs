//! The authority of a plane is rotated, with real certificates: whoever is asked is believed, whoever asks as well, and
//! each move is made once wherever the operator is cut off.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::Conditions;
use crds::names::{annotation, condition};
use serde_json::{Value, json};

use super::world::{KEY, MANY, World};
use crate::fake_api::FakeApi;
use crate::pki::certificate::Certificate;

const PKI: &str = "secrets/fleet/k1-pki";
const CERTIFICATES: &str = "secrets/fleet/k1-certificates";
const AGENT: &str = "secrets/karmada-system/karmada-kubeconfig";

fn text(api: &FakeApi, secret: &str, key: &str) -> String {
    let secret = api.get(secret).unwrap();
    decoded(&secret["data"][key])
}

fn decoded(value: &Value) -> String {
    String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap()
}

/// The certificates in a text, the first one first.
fn certificates(pem: &str) -> Vec<Certificate> {
    let ends = pem.split_inclusive("-----END CERTIFICATE-----").filter(|one| one.contains("BEGIN"));
    ends.map(|one| Certificate::parse("one of them", &format!("{}\n", one.trim())).unwrap()).collect()
}

/// The authority that signs.
fn authority(world: &World) -> Certificate {
    certificates(&text(&world.api, PKI, "ca.crt")).remove(0)
}

/// Reason and message of the rotation.
fn says(world: &World) -> (String, String) {
    let said = world.object().condition(condition::AUTHORITIES_ROTATED).cloned().unwrap();
    (said.reason, said.message)
}

fn annotate(world: &World, key: &str, value: &str) {
    world.api.edit(KEY, |object| object["metadata"]["annotations"][key] = json!(value));
}

/// Writes what the message says.
fn approve(world: &World) {
    let (reason, message) = says(world);
    assert_eq!(reason, "WaitingForApproval", "{message}");
    let (_, value) = message.rsplit_once("clusterwright.dev/approve=").unwrap();
    annotate(world, annotation::APPROVE, value);
}

/// The API server and the agent of the Pull member: each has a certificate of this one, and trusts these.
fn believe(world: &World, signer: &Certificate, trusted: usize) {
    let server = &certificates(&text(&world.api, CERTIFICATES, "apiserver.crt"))[0];
    assert!(server.is_signed_by(signer));
    let kubeconfig = text(&world.members["pull"], AGENT, "karmada-kubeconfig");
    let kubeconfig: Value = serde_json::from_str(&kubeconfig).unwrap();
    let agent = &certificates(&decoded(&kubeconfig["users"][0]["user"]["client-certificate-data"]))[0];
    assert!(agent.is_signed_by(signer));
    let authorities = decoded(&kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]);
    assert_eq!(certificates(&authorities).len(), trusted);
    let webhooks = world.plane.values("validatingwebhookconfigurations");
    let bundle = certificates(&decoded(&webhooks[0]["webhooks"][0]["clientConfig"]["caBundle"]));
    assert!(bundle.len() == trusted && bundle[0].is_same_as(signer), "what the API server believes of webhooks");
}

#[tokio::test]
async fn an_authority_is_rotated_with_the_agent_of_a_member_and_each_move_is_made_once() {
    let world = World::new().await.with_member("pull", "pull");
    world.passes(MANY).await;
    let names = world.names();
    let former = authority(&world);
    believe(&world, &former, 1);
    annotate(&world, annotation::ROTATE, "ca.1");
    for _ in 0..400 {
        let before = world.writes();
        world.cut_after_the_next_write();
        world.pass(&world.operator()).await;
        world.mend();
        if world.writes() == before {
            break;
        }
    }
    let next = authority(&world);
    assert!(!next.is_same_as(&former), "{:?}", says(&world));
    believe(&world, &next, 2);
    assert!(world.object().is_true("Ready"), "{}", world.message());

    approve(&world);
    world.passes(MANY).await;
    assert_eq!(says(&world).0, "Rotated", "{:?}", says(&world));
    assert!(authority(&world).is_same_as(&next));
    believe(&world, &next, 1);
    world.is_made_once(&names);
    let writes = world.writes();
    world.passes(3).await;
    assert_eq!(world.writes(), writes, "at rest nothing is written");
}

#[tokio::test]
async fn an_owners_secret_that_is_not_there_keeps_keys_from_being_made() {
    let world = World::new().await;
    world.api.edit(KEY, |object| object["spec"]["certificates"] = json!({"caRef": {"name": "corp"}}));
    world.passes(MANY).await;
    assert!(world.api.get(PKI).is_none());
    assert!(world.message().contains("Secret corp of spec.certificates.caRef is not there"), "{}", world.message());
}
