//! A cluster's certificate authorities and keys: made once, kept in the Secret `<cluster>-pki`, read ever after.
//! What exists is never made anew: a missing key is an error that names it, since a second certificate authority would
//! cut off every node of a running cluster.

pub mod authority;
pub mod certificate;
pub mod etcd;
pub mod material;

use crds::ClusterDeployment;
use crds::names::{label, pki_secret};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Resource, ResourceExt};

pub use authority::{Authority, Certified};
pub use material::Pki;

use crate::context::Context;
use crate::error::{Doing, Error};
use crate::execute;

/// What can go wrong with certificates and keys.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// Something could not be made.
    #[error("failed to make {what}")]
    Make {
        /// Of what.
        what: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// Something that is there cannot be used.
    #[error("{what} cannot be used: {problem}")]
    Read {
        /// What.
        what: String,
        /// Why.
        problem: String,
    },
    /// A key is gone.
    #[error("Secret {secret} has no key {key}: restore it from a backup, it is never made anew")]
    MissingKey {
        /// Name of the Secret.
        secret: String,
        /// Name of the key.
        key: &'static str,
    },
    /// A date that certificates cannot hold.
    #[error("the time is out of the range of certificates")]
    Time,
    /// The Secret is another object's.
    #[error("Secret {secret} belongs to another object ({owner}): it is used once that one is gone")]
    NotOurs {
        /// Name of the Secret.
        secret: String,
        /// Kind, name and UID of its owner.
        owner: String,
    },
}

impl<T> Doing<T> for Result<T, PkiError> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Failed {
            action: action(),
            source: Box::new(source),
        })
    }
}

/// The cluster's authorities and keys: read from their Secret, or made and written there if there is none yet. A Secret
/// without an owner is taken as it is: that is how a cluster is rebuilt from a backup of its keys.
pub async fn ensure(ctx: &Context, cd: &ClusterDeployment, now: Timestamp) -> Result<Pki, Error> {
    let name = pki_secret(&cd.name_any());
    let read = |secret: Secret| {
        belongs_to(&secret, cd)?;
        Pki::from_data(&name, &secret.data.unwrap_or_default())
    };
    if let Some(secret) = find(ctx, cd, &name).await? {
        return read(secret).doing(|| format!("read the keys of cluster {}", cd.name_any()));
    }
    let made = Pki::generate(now).doing(|| format!("make the keys of cluster {}", cd.name_any()))?;
    execute::create_once(ctx, &secret(cd, &name, made.data())).await?;
    // Someone else may have been faster: what is written counts, not what was made.
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), &cd.namespace().unwrap_or_default());
    let written = api.get(&name).await.doing(|| format!("read Secret {name}"))?;
    read(written).doing(|| format!("read the keys of cluster {}", cd.name_any()))
}

/// The Secret of this name beside the ClusterDeployment.
pub(crate) async fn find(ctx: &Context, cd: &ClusterDeployment, name: &str) -> Result<Option<Secret>, Error> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), &cd.namespace().unwrap_or_default());
    api.get_opt(name).await.doing(|| format!("read Secret {name}"))
}

/// An Opaque Secret of the ClusterDeployment, to be deleted with it.
pub(crate) fn secret(cd: &ClusterDeployment, name: &str, data: material::Data) -> Secret {
    let mut secret = Secret {
        type_: Some("Opaque".into()),
        data: Some(data),
        ..Secret::default()
    };
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.namespace = cd.namespace();
    secret.metadata.labels = Some([(label::CLUSTER.to_owned(), cd.name_any())].into());
    secret.metadata.owner_references = cd.controller_owner_ref(&()).map(|owner| vec![owner]);
    secret
}

/// Refuses a Secret of another object, e.g. of a ClusterDeployment of the same name that was there before.
pub(crate) fn belongs_to(secret: &Secret, cd: &ClusterDeployment) -> Result<(), PkiError> {
    let owner = secret
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true));
    match owner {
        Some(owner) if Some(&owner.uid) != cd.meta().uid.as_ref() => Err(PkiError::NotOurs {
            secret: secret.name_any(),
            owner: format!("{} {}, UID {}", owner.kind, owner.name, owner.uid),
        }),
        _ => Ok(()),
    }
}
