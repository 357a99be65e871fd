//! What every object tells of itself, without the options that an object from the API never leaves open; and its
//! conditions, also where it has no status yet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource;

use crate::{conditions, for_every_kind};

/// An object's metadata, read as it is on all objects that come from the API.
pub trait ObjectExt {
    /// Its name; empty before it was ever written.
    fn name(&self) -> &str;
    /// Its namespace; empty where it has none.
    fn namespace(&self) -> &str;
    /// Its UID; empty before it was ever written.
    fn uid(&self) -> &str;
    /// The generation of its spec; 0 before it was ever written.
    fn generation(&self) -> i64;
    /// When it was made, by the API server's clock.
    fn created_at(&self) -> Option<&Time>;
    /// Whether it is being deleted.
    fn is_deleting(&self) -> bool;
    /// Whether it has this finalizer.
    fn has_finalizer(&self, finalizer: &str) -> bool;
    /// The value of an annotation.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// Whether one of its owners has this UID.
    fn is_owned_by(&self, uid: &str) -> bool;
}

impl<K: Resource> ObjectExt for K {
    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.meta().namespace.as_deref().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }

    fn generation(&self) -> i64 {
        self.meta().generation.unwrap_or_default()
    }

    fn created_at(&self) -> Option<&Time> {
        self.meta().creation_timestamp.as_ref()
    }

    fn is_deleting(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    fn has_finalizer(&self, finalizer: &str) -> bool {
        self.meta().finalizers.iter().flatten().any(|there| there == finalizer)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn is_owned_by(&self, uid: &str) -> bool {
        let owners = self.meta().owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| owner.uid == uid)
    }
}

/// An object of ours with conditions in its status.
pub trait Conditions {
    /// All of them; none before it has a status.
    fn conditions(&self) -> &[Condition];

    /// The one of this type.
    fn condition(&self, type_: &str) -> Option<&Condition> {
        conditions::find(self.conditions(), type_)
    }

    /// Whether the one of this type is `True`.
    fn is_true(&self, type_: &str) -> bool {
        conditions::is_true(self.conditions(), type_)
    }
}

macro_rules! with_conditions {
    ($($kind:ty),+) => {
        $(impl Conditions for $kind {
            fn conditions(&self) -> &[Condition] {
                self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
            }
        })+
    };
}

for_every_kind!(with_conditions);
