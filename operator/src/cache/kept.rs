//! What was made of the caches, kept until they change.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Which version of each kind something was made of.
type Versions = (u64, u64);

/// One for each namespace.
pub(super) struct Kept<T>(Mutex<HashMap<String, (Versions, Arc<T>)>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Kept<T> {
    /// What was made of these versions; it is made once, and whoever comes meanwhile waits for it.
    pub fn get(&self, namespace: &str, versions: Versions, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = self.0.lock();
        if let Some((of, made)) = kept.get(namespace)
            && *of == versions
        {
            return made.clone();
        }
        let made = Arc::new(make());
        kept.insert(namespace.to_owned(), (versions, made.clone()));
        made
    }
}
