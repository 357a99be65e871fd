//! The name of a cluster that can be reached.

/// A Cluster object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// The Cluster of this name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}
