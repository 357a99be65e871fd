//! Kubernetes Events: told once for a change of state, never once for a pass.

use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};
use plan::news::News;

use crate::error::chain;

const LONGEST_NOTE: usize = 1000;

/// Where Events go.
pub struct Events {
    recorder: Recorder,
}

impl Events {
    pub(crate) fn new(client: Client) -> Self {
        let reporter = Reporter {
            controller: crds::names::FIELD_MANAGER.into(),
            instance: None,
        };
        Self {
            recorder: Recorder::new(client, reporter),
        }
    }

    /// Tells that something went as it should. `reason` in CamelCase, `note` a sentence.
    pub async fn normal<K: Resource<DynamicType = ()>>(&self, about: &K, reason: &str, note: &str) {
        self.tell(about, EventType::Normal, reason, note).await;
    }

    /// Tells that something needs a look.
    pub async fn warning<K: Resource<DynamicType = ()>>(&self, about: &K, reason: &str, note: &str) {
        self.tell(about, EventType::Warning, reason, note).await;
    }

    /// Tells a piece of news, as what it is.
    pub async fn news<K: Resource<DynamicType = ()>>(&self, about: &K, news: &News) {
        let type_ = match news.warning {
            true => EventType::Warning,
            false => EventType::Normal,
        };
        self.tell(about, type_, &news.reason, &news.note).await;
    }

    async fn tell<K: Resource<DynamicType = ()>>(
        &self,
        about: &K,
        type_: EventType,
        reason: &str,
        note: &str,
    ) {
        let event = Event {
            type_,
            reason: reason.into(),
            note: Some(note.chars().take(LONGEST_NOTE).collect()),
            action: reason.into(),
            secondary: None,
        };
        // An Event that cannot be told holds nothing up.
        if let Err(error) = self.recorder.publish(&event, &about.object_ref(&())).await {
            tracing::warn!(reason, error = %chain(&error), "an Event could not be written");
        }
    }
}
