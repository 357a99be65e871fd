//! The moves of a rotation, in the Secret with the cluster's authorities and keys.

use crds::names::annotation;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use plan::pki::PkiRow;
use plan::rotation::{Act, Authorities, Move, Subject, request, retired};
use serde_json::{Value, json};

use super::certificate::Certificate;
use super::material::Data;
use super::{Pki, PkiOwner, own};
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::execute;

/// What everybody may know of the cluster's authorities and keys; nothing where they cannot be read: what needs them
/// says why.
pub fn seen(secret: &Secret, table: &'static [PkiRow]) -> Authorities {
    let data = secret.data.clone().unwrap_or_default();
    let pki = Pki::from_data(table, &secret.name_any(), &data).ok();
    known(secret, pki.as_ref())
}

/// The same, of what was read from the Secret.
pub fn known(secret: &Secret, pki: Option<&Pki>) -> Authorities {
    Authorities { rotated: request::rotated(&secret.metadata), ..pki.map(Pki::seen).unwrap_or_default() }
}

/// Does this about a rotation.
pub async fn execute(ctx: &Context, owner: &PkiOwner, act: &Act, now: Timestamp) -> Result<(), Error> {
    match act {
        Act::Move { subject, next } => make(ctx, owner, *subject, *next, now).await,
        Act::Take { subject, fingerprint } => take(ctx, owner, *subject, fingerprint).await,
    }
}

/// Makes a move, where nobody has written the Secret meanwhile.
pub(super) async fn make(
    ctx: &Context,
    owner: &PkiOwner,
    subject: Subject,
    next: Move,
    now: Timestamp,
) -> Result<(), Error> {
    let doing = || doing(owner, subject);
    let Some((secret, pki)) = keys(ctx, owner, subject).await? else { return Ok(()) };
    let before = pki.data();
    let former = pki.authority(subject).ok().and_then(|ring| ring.former()).map(str::to_owned);
    let mut patch = changed(&before, &pki.rotated(subject, next, &owner.encryption, now).doing(doing)?.data());
    if let Move::Begin(number) = next {
        let mut rotated = request::rotated(&secret.metadata);
        rotated.insert(subject, number);
        patch["metadata"] = json!({ "annotations": { annotation::ROTATED: request::to_write(&rotated) } });
    }
    if let Some(former) = former.filter(|_| next == Move::Complete) {
        let former = Certificate::parse("the former authority", &former).doing(doing)?;
        let mut all = retired::read(&secret.metadata);
        all.entry(subject).or_default().insert(own::key_digest(&former).doing(doing)?);
        patch["metadata"] = json!({ "annotations": { annotation::RETIRED: retired::to_write(&all) } });
    }
    execute::patch_if_unchanged(ctx, &secret, patch).await.map(drop)
}

/// Has the owner's authority of this fingerprint follow the one that signs, where none does yet.
pub(super) async fn take(ctx: &Context, owner: &PkiOwner, subject: Subject, fingerprint: &str) -> Result<(), Error> {
    let mut own = own::decided(ctx, owner, &[(subject, fingerprint.to_owned())].into()).await?;
    let Some((secret, pki)) = keys(ctx, owner, subject).await? else { return Ok(()) };
    let Some(next) = own.remove(&subject) else { return Ok(()) };
    let patch = changed(&pki.data(), &pki.followed_by(subject, next).data());
    execute::patch_if_unchanged(ctx, &secret, patch).await.map(drop)
}

fn doing(owner: &PkiOwner, subject: Subject) -> String {
    format!("rotate {} of {}", subject.name(), owner.title())
}

/// The Secret, and what is in it; none: it is not there.
async fn keys(ctx: &Context, owner: &PkiOwner, subject: Subject) -> Result<Option<(Secret, Pki)>, Error> {
    let name = owner.keys_secret();
    let Some(secret) = owner.find(ctx, &name).await? else { return Ok(None) };
    owner.check(&secret).doing(|| doing(owner, subject))?;
    let data = secret.data.clone().unwrap_or_default();
    let pki = Pki::from_data(owner.table, &name, &data).doing(|| doing(owner, subject))?;
    Ok(Some((secret, pki)))
}

/// What a person keeps there beside stays.
fn changed(before: &Data, after: &Data) -> Value {
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let data = after.iter().map(|(key, value)| (key.clone(), json!(value))).chain(gone);
    json!({ "data": data.collect::<serde_json::Map<_, _>>() })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use crds::ClusterDeployment;
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::Secret;
    use plan::cluster_deployment::pki::TABLE;
    use plan::rotation::{Move, Stage, Subject};

    use super::{make, seen};
    use crate::cluster_deployment::pki_owner;
    use crate::fake_api::FakeApi;
    use crate::pki;

    const SECRET: &str = "secrets/fleet/a-pki";

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    fn secret(api: &FakeApi) -> Secret {
        serde_json::from_value(api.get(SECRET).unwrap()).unwrap()
    }

    fn keys(api: &FakeApi) -> BTreeSet<String> {
        secret(api).data.unwrap().into_keys().collect()
    }

    #[tokio::test]
    async fn each_move_is_made_once_and_what_a_person_keeps_beside_stays() {
        let api = FakeApi::default();
        api.put("clusterdeployments", "{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a, namespace: fleet}, spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}, artifacts: {url: 'http://x'}}}");
        let deployment: ClusterDeployment = api.list("clusterdeployments").remove(0);
        let (ctx, deployment) = (api.context(), pki_owner(&deployment));
        pki::make(&ctx, &deployment, &BTreeMap::new(), now()).await.unwrap();
        api.edit(SECRET, |secret| secret["data"]["note"] = "bWluZQ==".into());
        let made = keys(&api);

        let rotate = async |next| make(&ctx, &deployment, Subject::EtcdCa, next, now()).await.unwrap();
        let ring = || seen(&secret(&api), TABLE).rings[&Subject::EtcdCa].clone();
        let old = ring().signer;
        rotate(Move::Begin(3)).await;
        let begun = secret(&api);
        assert_eq!((ring().stage, ring().signer.clone()), (Stage::Trust, old.clone()));
        assert_eq!(seen(&begun, TABLE).rotated, [(Subject::EtcdCa, 3)].into());
        rotate(Move::Begin(3)).await;
        assert_eq!(secret(&api).data, begun.data, "a second one is not made");
        rotate(Move::Complete).await;
        assert_eq!(secret(&api).data, begun.data, "nothing is dropped before it signs");

        rotate(Move::Sign).await;
        assert_eq!(ring().stage, Stage::Sign);
        assert!(ring().signer != old && ring().trusted.contains(&old));
        assert!(!keys(&api).iter().any(|key| key.contains("-next")), "{:?}", keys(&api));
        rotate(Move::Complete).await;
        assert_eq!((ring().stage, keys(&api)), (Stage::Settled, made));
        assert_eq!(seen(&secret(&api), TABLE).rings.len(), Subject::ALL.len(), "the others are as they were");
    }

    #[test]
    fn of_a_secret_that_cannot_be_read_nothing_is_known() {
        assert!(seen(&Secret::default(), TABLE).rings.is_empty());
    }
}
