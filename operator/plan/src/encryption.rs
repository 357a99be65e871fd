//! What is encrypted in a cluster's etcd, and by what, without its keys: as the spec wants it, and as the Secret with
//! the cluster's keys has it.

use crds::cluster_deployment::{Encryption, EncryptionProvider, KmsPlugin};
use crds::encryption_entry::{FIRST_RESOURCES, canonical};

/// Which resources are encrypted, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Sorted, none of them twice.
    pub resources: Vec<String>,
    /// The plug-in; none: the API server itself, with a key of the cluster.
    pub kms: Option<KmsPlugin>,
}

impl Default for Scheme {
    fn default() -> Self {
        Self { resources: vec![FIRST_RESOURCES.to_owned()], kms: None }
    }
}

impl Scheme {
    /// What the spec wants; without it, what holds by default.
    pub fn wanted(spec: Option<&Encryption>) -> Self {
        let Some(encryption) = spec else { return Self::default() };
        let kms = encryption.kms.clone().filter(|_| encryption.provider == EncryptionProvider::KmsV2);
        let resources: Vec<String> = encryption.resources.iter().map(|resource| resource.0.clone()).collect();
        Self { resources: canonical(&resources), kms }
    }
}

impl std::fmt::Display for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by ", self.resources.join(", "))?;
        match &self.kms {
            Some(plugin) => write!(f, "KMS plug-in {}", plugin.name),
            None => f.write_str("Secretbox"),
        }
    }
}

/// What encrypts, and what takes its place while that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Succession {
    /// What encrypted before; without one under way the same as `to`.
    pub from: Scheme,
    /// What encrypts in the end.
    pub to: Scheme,
    /// Whether it takes place since the spec was edited: what a person puts into the Secret does not.
    pub is_edit: bool,
    /// The plug-ins that have encrypted something, by now or once.
    pub plugins: Vec<KmsPlugin>,
}

impl Succession {
    /// Whether what is wanted differs from what comes of it.
    pub fn differs(&self, wanted: &Scheme) -> bool {
        self.to != *wanted
    }

    /// A plug-in of the name of the wanted one that has encrypted something behind another endpoint.
    pub fn same_name(&self, wanted: &Scheme) -> Option<&KmsPlugin> {
        let wanted = wanted.kms.as_ref()?;
        self.plugins.iter().find(|known| known.name == wanted.name && known.endpoint != wanted.endpoint)
    }

    /// Whether nothing but Secrets is written anew.
    pub fn is_of_secrets(&self) -> bool {
        [&self.from, &self.to].iter().all(|scheme| scheme.resources == [FIRST_RESOURCES])
    }

    /// The plug-in that takes over what another one, or a key, has encrypted.
    pub fn arriving(&self) -> Option<&KmsPlugin> {
        self.to.kms.as_ref().filter(|_| self.from.kms != self.to.kms)
    }
}
