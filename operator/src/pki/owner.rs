//! The object that a PKI belongs to: what its Secrets are called and belong to, and what is wanted of it.

use crds::names::{etcd_certificates_secret, kubeconfig_secret, label, pki_secret};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use plan::certificates::RenewalPolicy;
use plan::encryption::Scheme;
use plan::pki::PkiRow;

use super::error::PkiError;
use super::material::Data;
use crate::context::Context;
use crate::error::Error;
use crate::live;

/// What a PKI has to know of the object that it belongs to.
#[derive(Clone, Debug)]
pub struct PkiOwner {
    /// What messages call it, before its name: `cluster`.
    pub noun: &'static str,
    /// Its namespace, and that of its Secrets.
    pub namespace: String,
    /// Its name. Those of its Secrets follow from it.
    pub name: String,
    /// The reference by which its Secrets are deleted with it, and told from those of others.
    pub reference: Option<OwnerReference>,
    /// The authorities and keys that it has.
    pub table: &'static [PkiRow],
    /// What is to encrypt in its etcd.
    pub encryption: Scheme,
    /// How long its certificates last, and when they are renewed.
    pub renewal: RenewalPolicy,
    /// The Secret with authorities that people bring, where it refers to one.
    pub own_authorities: Option<String>,
    /// What a reader is told where the keys are gone: what is to be done.
    pub missing: String,
}

impl PkiOwner {
    /// That of an object, with this table; nothing is encrypted but Secrets, and nobody brings authorities.
    pub fn new<K>(noun: &'static str, object: &K, table: &'static [PkiRow], renewal: RenewalPolicy) -> Self
    where
        K: Resource<DynamicType = ()>,
    {
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        Self {
            noun,
            missing: format!("Secret {} is gone: restore it from a backup", pki_secret(&name)),
            namespace,
            name,
            reference: object.controller_owner_ref(&()),
            table,
            encryption: Scheme::default(),
            renewal,
            own_authorities: None,
        }
    }

    /// As messages call it: `cluster prod-a`.
    pub fn title(&self) -> String {
        format!("{} {}", self.noun, self.name)
    }

    /// Name of the Secret with its authorities and keys.
    pub fn keys_secret(&self) -> String {
        pki_secret(&self.name)
    }

    /// Name of the Secret with its administrator's kubeconfig.
    pub fn kubeconfig_secret(&self) -> String {
        kubeconfig_secret(&self.name)
    }

    /// Name of the Secret with the certificates of its etcd.
    pub fn etcd_certificates_secret(&self) -> String {
        etcd_certificates_secret(&self.name)
    }

    /// The Secret of this name beside it, whoever it belongs to.
    pub(crate) async fn find(&self, ctx: &Context, name: &str) -> Result<Option<Secret>, Error> {
        live::get(ctx, &self.namespace, name).await
    }

    /// An Opaque Secret of it, to be deleted with it.
    pub(crate) fn secret(&self, name: &str, data: Data) -> Secret {
        let mut secret = Secret { type_: Some("Opaque".into()), data: Some(data), ..Secret::default() };
        secret.metadata.name = Some(name.to_owned());
        secret.metadata.namespace = Some(self.namespace.clone());
        secret.metadata.labels = Some([(label::CLUSTER.to_owned(), self.name.clone())].into());
        secret.metadata.owner_references = self.reference.clone().map(|owner| vec![owner]);
        secret
    }

    /// Refuses a Secret of another object, e.g. of one of the same name that was there before, or of another kind.
    pub(crate) fn check(&self, secret: &Secret) -> Result<(), PkiError> {
        let owner = secret.owner_references().iter().find(|owner| owner.controller == Some(true));
        let uid = self.reference.as_ref().map(|owner| &owner.uid);
        match owner {
            Some(owner) if Some(&owner.uid) != uid => Err(PkiError::NotOurs {
                secret: secret.name_any(),
                owner: format!("{} {}, UID {}", owner.kind, owner.name, owner.uid),
            }),
            _ => Ok(()),
        }
    }
}
