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
use kube::api::{Api, PostParams};
use kube::{Client, Resource, ResourceExt};

pub use authority::{Authority, Certified};
pub use material::Pki;

/// What can go wrong with certificates and keys.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("failed to make {what}")]
    Make {
        what: String,
        #[source]
        source: rcgen::Error,
    },
    #[error("failed to read {what}: {problem}")]
    Read { what: String, problem: String },
    #[error("Secret {secret} has no key {key}: restore it from a backup, it is never made anew")]
    MissingKey { secret: String, key: &'static str },
    #[error("the time is out of the range of certificates")]
    Time,
    #[error("Secret {secret} belongs to another object ({owner}): wait until it is collected, or remove it")]
    NotOurs { secret: String, owner: String },
    #[error("failed to {action}")]
    Api {
        action: String,
        #[source]
        source: Box<kube::Error>,
    },
}

impl PkiError {
    pub(crate) fn api(action: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let action = action.into();
        move |source| Self::Api { action, source: Box::new(source) }
    }
}

/// The cluster's authorities and keys: read from their Secret, or made and written there if there is none yet. A Secret
/// without an owner is taken as it is: that is how a cluster is rebuilt from a backup of its keys.
pub async fn ensure(client: &Client, cd: &ClusterDeployment, now: Timestamp) -> Result<Pki, PkiError> {
    let namespace = cd.namespace().unwrap_or_default();
    let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let name = pki_secret(&cd.name_any());
    for _ in 0..2 {
        let found = api.get_opt(&name).await;
        if let Some(secret) = found.map_err(PkiError::api(format!("read Secret {name}")))? {
            belongs_to(&secret, cd)?;
            return Pki::from_data(&name, &secret.data.unwrap_or_default());
        }
        let made = secret(cd, &name, Pki::generate(now)?.data());
        match api.create(&PostParams::default(), &made).await {
            // Someone else was faster: what they wrote counts.
            Err(kube::Error::Api(status)) if status.code == 409 => continue,
            result => {
                let written = result.map_err(PkiError::api(format!("create Secret {name}")))?;
                return Pki::from_data(&name, &written.data.unwrap_or_default());
            }
        }
    }
    Err(PkiError::Read {
        what: format!("Secret {name}"),
        problem: "it comes and goes".into(),
    })
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
    let owner = secret.owner_references().iter().find(|owner| owner.controller == Some(true));
    match owner {
        Some(owner) if Some(&owner.uid) != cd.meta().uid.as_ref() => Err(PkiError::NotOurs {
            secret: secret.name_any(),
            owner: format!("{} {}, UID {}", owner.kind, owner.name, owner.uid),
        }),
        _ => Ok(()),
    }
}
