//! Who hears what Ansible does.

use crate::event::Event;
use crate::fold::{Fold, Snapshot};

/// Hears events, and says what the status should say.
pub trait Audience {
    /// Takes in an event.
    fn hear(&mut self, event: &Event);
    /// What the status should say now.
    fn shows(&self) -> Snapshot;
}

impl Audience for Fold {
    fn hear(&mut self, event: &Event) {
        self.apply(event);
    }

    fn shows(&self) -> Snapshot {
        self.snapshot()
    }
}
