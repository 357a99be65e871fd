//! Push: the plane writes to the member's API, with the token of a ServiceAccount that the join makes there.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::KarmadaDeployment;
use serde_json::{Value, json};

use super::super::names::MEMBERS_NAMESPACE;
use super::action::Place;
use super::cluster::{cluster as member_cluster, impersonator_secret};
use super::credentials::keep_change;
use super::manifest::{Stage, Wanted, account, all_rights, metadata, namespace, role};
use super::observed::{Facts, PlaneSeen};
use super::target::Target;

/// The ServiceAccount that Karmada acts as for users of the plane, and the Secret with its token. The name is
/// Karmada's: two planes cannot share a member.
pub const IMPERSONATOR: &str = "karmada-impersonator";
/// What stands in the place of a token that Karmada is to use no more: every API refuses it.
const VOID: &str = "void";

/// Name of the ServiceAccount that Karmada acts as, and of the Secret with its token, in the member.
pub fn token_secret(member: &str) -> String {
    format!("karmada-{member}")
}

pub(super) fn wanted(object: &KarmadaDeployment, target: &Target, facts: &Facts, plane: &PlaneSeen) -> Vec<Wanted> {
    let own = token_secret(&target.name);
    let mut access = vec![namespace(object, target, MEMBERS_NAMESPACE)];
    access.extend(account(object, target, (IMPERSONATOR, MEMBERS_NAMESPACE)));
    access.extend(account(object, target, (&own, MEMBERS_NAMESPACE)));
    let name = format!("karmada-controller-manager:{own}");
    let subject = json!({ "kind": "ServiceAccount", "name": own, "namespace": MEMBERS_NAMESPACE });
    access.extend(role(object, target, (&name, None), all_rights(), subject));
    let mut wanted: Vec<Wanted> =
        access.into_iter().map(|manifest| Wanted::new(Stage::Access, Place::Member, manifest)).collect();
    let file = |name: &str| facts.files.get(name).map(|content| STANDARD.encode(content));
    if let (Some(ca), Some(token), Some(impersonator)) = (file("ca"), file("token"), file("impersonator")) {
        let impersonator_name = impersonator_secret(&target.name);
        let cluster = plane.own_cluster(object, &target.name);
        let mut secrets = [
            secret(object, target, &target.name, json!({ "caBundle": ca, "token": token }), cluster),
            secret(object, target, &impersonator_name, json!({ "token": impersonator }), cluster),
        ];
        keep_change(&mut secrets[0], plane.secret(object, target));
        wanted.extend(secrets.map(|manifest| Wanted::new(Stage::Credentials, Place::Plane, manifest)));
        wanted.push(Wanted::new(Stage::Cluster, Place::Plane, member_cluster(object, target, facts)));
    }
    wanted
}

/// A Secret in the plane, which goes with its Cluster.
fn secret(object: &KarmadaDeployment, target: &Target, name: &str, data: Value, cluster: Option<&Value>) -> Value {
    let mut metadata = metadata(object, target, name, Some(MEMBERS_NAMESPACE));
    if let Some(uid) = cluster.and_then(|cluster| cluster["metadata"]["uid"].as_str()) {
        metadata["ownerReferences"] = json!([{
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "name": target.name, "uid": uid,
        }]);
    }
    json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data })
}

/// The change that makes Karmada's token one that nobody accepts; `None`: it is so already.
pub(super) fn voided(secret: &Value) -> Option<Value> {
    let void = STANDARD.encode(VOID);
    (secret["data"]["token"] != void.as_str()).then(|| json!({ "data": { "token": void } }))
}
