//! What was tried in vain, counted: a reconcile that waited for the next attempt would keep others waiting.

use std::collections::HashMap;

use parking_lot::Mutex;

/// Attempts in vain, by the UID of what they were for.
#[derive(Debug, Default)]
pub(crate) struct Tries(Mutex<HashMap<String, u32>>);

impl Tries {
    /// Counts one more; how many there are.
    pub fn count(&self, uid: &str) -> u32 {
        let mut tries = self.0.lock();
        let count = tries.entry(uid.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// Of how many there are some.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Forgets those for one that came to its end.
    pub fn end(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}
