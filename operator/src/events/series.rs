//! Which Events repeat one that was written: same object, type, reason and message. kube's own recorder leaves the
//! message out of its key, and then shows the first wording with the age of the last.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

/// A series ends when nothing was added to it for so long.
const ENDS_AFTER: SignedDuration = SignedDuration::from_mins(6);
/// What the API takes is 1024 bytes.
const LONGEST_NOTE: usize = 1024;

/// Something that is told of an object.
pub(super) struct Occurrence {
    pub regarding: ObjectReference,
    type_: &'static str,
    reason: String,
    note: String,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    kind: Option<String>,
    uid: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    type_: &'static str,
    reason: String,
    note: String,
}

struct Last {
    name: String,
    count: i32,
    at: Timestamp,
}

/// The series of Events that may go on.
#[derive(Default)]
pub(super) struct Series(HashMap<Key, Last>);

/// How an occurrence is written.
pub(super) enum Publish {
    /// As a new Event.
    New,
    /// As one more of the Event of this name.
    Repeat { name: String, series: EventSeries },
}

impl Occurrence {
    pub fn new(regarding: ObjectReference, type_: &'static str, reason: &str, note: &str) -> Self {
        let mut end = note.len().min(LONGEST_NOTE);
        while !note.is_char_boundary(end) {
            end -= 1;
        }
        Self { regarding, type_, reason: reason.to_owned(), note: note.get(..end).unwrap_or_default().to_owned() }
    }

    fn key(&self) -> Key {
        Key {
            kind: self.regarding.kind.clone(),
            uid: self.regarding.uid.clone(),
            name: self.regarding.name.clone(),
            namespace: self.regarding.namespace.clone(),
            type_: self.type_,
            reason: self.reason.clone(),
            note: self.note.clone(),
        }
    }

    /// The Event for it, under a name of this moment.
    pub fn event(&self, now: Timestamp) -> Event {
        let about = self.regarding.name.as_deref().unwrap_or(crds::names::FIELD_MANAGER);
        Event {
            action: Some(self.reason.clone()),
            event_time: Some(MicroTime(now)),
            metadata: ObjectMeta {
                namespace: self.regarding.namespace.clone(),
                name: Some(format!("{about}.{:x}", now.as_nanosecond())),
                ..ObjectMeta::default()
            },
            note: Some(self.note.clone()),
            reason: Some(self.reason.clone()),
            regarding: Some(self.regarding.clone()),
            reporting_controller: Some(crds::names::FIELD_MANAGER.to_owned()),
            reporting_instance: Some(crds::names::FIELD_MANAGER.to_owned()),
            type_: Some(self.type_.to_owned()),
            ..Event::default()
        }
    }
}

impl Series {
    /// Counts the occurrence if its series goes on.
    pub fn publish(&mut self, occurrence: &Occurrence, now: Timestamp) -> Publish {
        self.0.retain(|_, last| now.duration_since(last.at) < ENDS_AFTER);
        match self.0.get_mut(&occurrence.key()) {
            None => Publish::New,
            Some(last) => {
                last.count = last.count.saturating_add(1);
                last.at = now;
                Publish::Repeat {
                    name: last.name.clone(),
                    series: EventSeries { count: last.count, last_observed_time: MicroTime(now) },
                }
            }
        }
    }

    /// Its Event was written: what is told again from now on is counted there.
    pub fn begun(&mut self, occurrence: &Occurrence, name: String, at: Timestamp) {
        self.0.insert(occurrence.key(), Last { name, count: 1, at });
    }

    /// Its Event is gone.
    pub fn forget(&mut self, occurrence: &Occurrence) {
        self.0.remove(&occurrence.key());
    }
}
