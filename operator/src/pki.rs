//! The certificate authorities and keys of a cluster, or of whatever else has a table of them: made once, kept in the
//! Secret `<name>-pki`, read ever after. What exists is never made anew: a missing key is an error that names it, since
//! a second certificate authority would cut off every node of a running cluster. Whether they may be made is the plan's
//! decision.

pub mod authority;
pub mod certificate;
pub mod encryption;
mod entry;
mod error;
pub mod etcd;
mod issuer;
pub mod kubelet;
pub mod leaves;
pub mod material;
pub mod own;
mod owner;
mod private_key;
pub mod ring;
pub mod rotation;
mod service_account;
mod suitable;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use plan::rotation::Subject;

pub use authority::{Authority, Certified};
pub use error::PkiError;
pub use material::Pki;
pub use owner::PkiOwner;

use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::execute;
use material::Own;

impl<T> ResultExt<T> for Result<T, PkiError> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Failed { action: action(), source: Box::new(source) })
    }
}

/// Makes the authorities and keys of its owner's table, unless they are there; those that people bring take the place
/// of such as were made. A Secret without an owner is taken as it is: that is how they are restored from a backup.
pub async fn make(ctx: &Context, owner: &PkiOwner, own: &Own, now: Timestamp) -> Result<(), Error> {
    if read(ctx, owner).await?.is_some() {
        return Ok(());
    }
    let doing = || format!("make the keys of {}", owner.title());
    let made = Pki::generate(owner.table, &owner.encryption, now).doing(doing)?.with(own);
    // Someone else may have been faster: what is written counts, not what was made.
    let secret = owner.secret(&owner.keys_secret(), made.data());
    execute::create_once(ctx, &secret).await.map(drop)
}

/// The same, with those of these fingerprints from the Secret of `certificates.caRef`, which hold or nothing is made.
pub async fn make_with(
    ctx: &Context,
    owner: &PkiOwner,
    given: &BTreeMap<Subject, String>,
    now: Timestamp,
) -> Result<(), Error> {
    let own = own::decided(ctx, owner, given).await?;
    make(ctx, owner, &own, now).await
}

/// The authorities and keys of its owner; none: their Secret is not there.
pub async fn read(ctx: &Context, owner: &PkiOwner) -> Result<Option<Pki>, Error> {
    parse(owner, owner.find(ctx, &owner.keys_secret()).await?.as_ref())
}

/// Those in their Secret, if it is there.
pub fn parse(owner: &PkiOwner, found: Option<&Secret>) -> Result<Option<Pki>, Error> {
    let read = |secret: &Secret| {
        owner.check(secret)?;
        Pki::from_data(owner.table, &owner.keys_secret(), secret.data.as_ref().unwrap_or(&material::Data::new()))
    };
    found.map(read).transpose().doing(|| format!("read the keys of {}", owner.title()))
}

/// The same, for what was decided on when they were there.
pub async fn get(ctx: &Context, owner: &PkiOwner) -> Result<Pki, Error> {
    let missing = || Error::Failed {
        action: format!("read the keys of {}", owner.title()),
        source: owner.missing.clone().into(),
    };
    read(ctx, owner).await?.ok_or_else(missing)
}

#[cfg(test)]
pub(crate) mod fixtures;

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::Secret;
    use plan::rotation::{Move, Stage, Subject};

    use super::{fixtures, get, make, read, rotation};
    use crate::fake_api::FakeApi;

    const KEYS: &str = "secrets/fleet/plane-pki";

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    fn secret(api: &FakeApi) -> Secret {
        serde_json::from_value(api.get(KEYS).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn whatever_object_has_a_table_gets_its_keys_once_has_them_rotated_and_keeps_others_away_from_them() {
        let api = FakeApi::default();
        let (ctx, owner) = (api.context(), fixtures::plane("uid-plane"));
        let gone = get(&ctx, &owner).await.unwrap_err();
        assert!(crate::error::chain(&gone).contains("read the keys of plane plane"), "{}", crate::error::chain(&gone));
        make(&ctx, &owner, &Default::default(), now()).await.unwrap();
        let made = secret(&api);
        make(&ctx, &owner, &Default::default(), now()).await.unwrap();
        assert_eq!(secret(&api), made, "and never again");
        let reference = &made.metadata.owner_references.clone().unwrap()[0];
        assert_eq!((reference.kind.as_str(), reference.uid.as_str()), ("ConfigMap", "uid-plane"));
        assert_eq!(made.data.unwrap().len(), 4);

        rotation::make(&ctx, &owner, Subject::EtcdCa, Move::Begin(1), now()).await.unwrap();
        let seen = rotation::seen(&secret(&api), owner.table);
        assert_eq!(seen.rings[&Subject::EtcdCa].stage, Stage::Trust);
        assert_eq!(seen.rings.len(), 2);
        rotation::make(&ctx, &owner, Subject::FrontProxyCa, Move::Begin(1), now()).await.unwrap_err();

        let namesake = fixtures::plane("uid-other");
        let refused = crate::error::chain(&read(&ctx, &namesake).await.unwrap_err());
        assert!(refused.contains("belongs to another object (ConfigMap plane, UID uid-plane)"), "{refused}");
    }
}
