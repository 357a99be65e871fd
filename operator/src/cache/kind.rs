//! The kinds that can be watched.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use serde::de::DeserializeOwned;

use super::keys::Indexed;

/// What a kind must be to be watched.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Indexed
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}
impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Indexed
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}
