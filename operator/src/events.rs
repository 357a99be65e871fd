//! Kubernetes Events: told once for a change of state, never once for a pass.

mod series;

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use parking_lot::Mutex;
use plan::transitions::Transition;

use crate::error::chain;
use series::{Occurrence, Publish, Series};

/// Where Events go.
pub struct Events {
    client: Client,
    series: Mutex<Series>,
}

impl Events {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, series: Mutex::default() }
    }

    /// Tells that something went as it should. `reason` in CamelCase, `note` a sentence.
    pub async fn normal<K: Resource<DynamicType = ()>>(&self, about: &K, reason: impl AsRef<str>, note: &str) {
        self.tell(about, "Normal", reason.as_ref(), note).await;
    }

    /// Tells that something needs a look.
    pub async fn warning<K: Resource<DynamicType = ()>>(&self, about: &K, reason: impl AsRef<str>, note: &str) {
        self.tell(about, "Warning", reason.as_ref(), note).await;
    }

    /// Reports a transition of a condition.
    pub async fn transition<K: Resource<DynamicType = ()>>(&self, about: &K, transition: &Transition) {
        let type_ = match transition.warning {
            true => "Warning",
            false => "Normal",
        };
        self.tell(about, type_, &transition.reason, &transition.note).await;
    }

    async fn tell<K: Resource<DynamicType = ()>>(&self, about: &K, type_: &'static str, reason: &str, note: &str) {
        let occurrence = Occurrence::new(about.object_ref(&()), type_, reason, note);
        // An Event that cannot be told holds nothing up.
        if let Err(error) = self.publish(&occurrence).await {
            tracing::warn!(reason, error = %chain(&error), "an Event could not be written");
        }
    }

    async fn publish(&self, occurrence: &Occurrence) -> Result<(), kube::Error> {
        let namespace = occurrence.regarding.namespace.as_deref().unwrap_or("default");
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let now = Timestamp::now();
        // Apart, so that the lock is not held across a request.
        let publish = self.series.lock().publish(occurrence, now);
        if let Publish::Repeat { name, series } = publish {
            let patch = serde_json::json!({ "series": series });
            match events.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
                Ok(_) => return Ok(()),
                // It has expired, or was deleted: it is told anew.
                Err(kube::Error::Api(status)) if status.code == 404 => self.series.lock().forget(occurrence),
                Err(error) => return Err(error),
            }
        }
        let event = occurrence.event(now);
        let name = event.metadata.name.clone().unwrap_or_default();
        events.create(&PostParams::default(), &event).await?;
        self.series.lock().begun(occurrence, name, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crds::Machine;
    use k8s_openapi::api::events::v1::Event;

    use super::Events;
    use crate::fake_api::FakeApi;

    fn machine() -> Machine {
        serde_yaml::from_str(
            "{metadata: {name: a-1, namespace: fleet, uid: u-1}, spec: {clusterName: a, role: worker, kubernetesVersion: 1.35.4}}",
        )
        .unwrap()
    }

    async fn told(notes: &[&str]) -> Vec<(String, Option<i32>)> {
        let api = FakeApi::default();
        let events = Events::new(api.client());
        for note in notes {
            events.normal(&machine(), "WaitingToJoin", note).await;
        }
        let mut written: Vec<Event> = api.list("events");
        written.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
        written
            .into_iter()
            .map(|event| (event.note.unwrap_or_default(), event.series.map(|series| series.count)))
            .collect()
    }

    #[tokio::test]
    async fn an_event_with_another_message_is_another_event_and_shows_the_new_words() {
        assert_eq!(
            told(&["joins once the control plane is installed", "joins with run a-join-0"]).await,
            [
                ("joins once the control plane is installed".to_owned(), None),
                ("joins with run a-join-0".to_owned(), None)
            ]
        );
    }

    #[tokio::test]
    async fn an_event_that_says_the_same_again_is_counted() {
        assert_eq!(told(&["waits", "waits", "waits"]).await, [("waits".to_owned(), Some(3))]);
    }

    #[tokio::test]
    async fn an_event_that_has_expired_is_written_anew() {
        let api = FakeApi::default();
        let events = Events::new(api.client());
        events.normal(&machine(), "WaitingToJoin", "waits").await;
        for event in api.list::<Event>("events") {
            let key = format!("events/fleet/{}", event.metadata.name.unwrap());
            api.edit(&key, |event| event["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into());
        }
        events.normal(&machine(), "WaitingToJoin", "waits").await;
        let written: Vec<Event> = api.list("events");
        assert_eq!(written.len(), 1);
        assert_eq!(written[0].series, None);
    }
}
