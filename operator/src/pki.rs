//! A cluster's certificate authorities and keys: made once, kept in the Secret `<cluster>-pki`, read ever after.
//! What exists is never made anew: a missing key is an error that names it, since a second certificate authority would
//! cut off every node of a running cluster. Whether they may be made is the plan's decision.

pub mod authority;
pub mod certificate;
pub mod encryption;
mod error;
pub mod etcd;
mod issuer;
pub mod kubelet;
pub mod material;
pub mod own;
mod private_key;
pub mod ring;
pub mod rotation;
mod service_account;
mod suitable;

use crds::ClusterDeployment;
use crds::names::{label, pki_secret};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt};
use plan::encryption::Scheme;

pub use authority::{Authority, Certified};
pub use error::PkiError;
pub use material::Pki;

use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::{execute, live};
use material::Own;

impl<T> ResultExt<T> for Result<T, PkiError> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Failed { action: action(), source: Box::new(source) })
    }
}

/// Makes the cluster's authorities and keys, unless they are there; those of its owner take the place of such as were
/// made. A Secret without an owner is taken as it is: that is how they are restored from a backup.
pub async fn make(ctx: &Context, cd: &ClusterDeployment, own: &Own, now: Timestamp) -> Result<(), Error> {
    if read(ctx, cd).await?.is_some() {
        return Ok(());
    }
    let wanted = Scheme::wanted(cd);
    let doing = || format!("make the keys of cluster {}", cd.name_any());
    let made = Pki::generate_for(&wanted, now).doing(doing)?.with(own);
    // Someone else may have been faster: what is written counts, not what was made.
    let secret = secret(cd, &pki_secret(&cd.name_any()), made.data());
    execute::create_once(ctx, &secret).await.map(drop)
}

/// The cluster's authorities and keys; none: their Secret is not there.
pub async fn read(ctx: &Context, cd: &ClusterDeployment) -> Result<Option<Pki>, Error> {
    let name = pki_secret(&cd.name_any());
    let parse = |secret: Secret| {
        belongs_to(&secret, cd)?;
        Pki::from_data(&name, &secret.data.unwrap_or_default())
    };
    let found = find(ctx, cd, &name).await?;
    found.map(parse).transpose().doing(|| format!("read the keys of cluster {}", cd.name_any()))
}

/// The same, for what was decided on when they were there.
pub async fn get(ctx: &Context, cd: &ClusterDeployment) -> Result<Pki, Error> {
    let missing = || Error::Failed {
        action: format!("read the keys of cluster {}", cd.name_any()),
        source: plan::cluster_deployment::pki::missing(cd).into(),
    };
    read(ctx, cd).await?.ok_or_else(missing)
}

/// The Secret of this name beside the ClusterDeployment.
pub(crate) async fn find(ctx: &Context, cd: &ClusterDeployment, name: &str) -> Result<Option<Secret>, Error> {
    live::get(ctx, &cd.namespace().unwrap_or_default(), name).await
}

/// An Opaque Secret of the ClusterDeployment, to be deleted with it.
pub(crate) fn secret(cd: &ClusterDeployment, name: &str, data: material::Data) -> Secret {
    let mut secret = Secret { type_: Some("Opaque".into()), data: Some(data), ..Secret::default() };
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.namespace = cd.namespace();
    secret.metadata.labels = Some([(label::CLUSTER.to_owned(), cd.name_any())].into());
    secret.metadata.owner_references = cd.controller_owner_ref(&()).map(|owner| vec![owner]);
    secret
}

/// Refuses a Secret of another object, e.g. of a ClusterDeployment of the same name that was there before.
pub(crate) fn belongs_to(secret: &Secret, cd: &ClusterDeployment) -> Result<(), PkiError> {
    let owner = secret.owner_references().iter().find(|owner| owner.controller == Some(true));
    match owner {
        Some(owner) if Some(&owner.uid) != cd.meta().uid.as_ref() => Err(PkiError::NotOurs {
            secret: secret.name_any(),
            owner: format!("{} {}, UID {}", owner.kind, owner.name, owner.uid),
        }),
        _ => Ok(()),
    }
}
