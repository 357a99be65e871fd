//! The receivers of Ansible's events.

use crate::event::Event;
use crate::fold::{Fold, Snapshot};

/// Receives events, and turns them into the run's status.
pub trait EventSink {
    /// Applies an event.
    fn receive(&mut self, event: &Event);
    /// The status after the events so far.
    fn snapshot(&self) -> Snapshot;
}

impl EventSink for Fold {
    fn receive(&mut self, event: &Event) {
        self.apply(event);
    }

    fn snapshot(&self) -> Snapshot {
        Fold::snapshot(self)
    }
}
