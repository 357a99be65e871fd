//! One watch: what it shows goes into the store, and to those who follow the kind. What cannot be decoded goes into the
//! register instead, and the rest goes on.

use crds::Reason;
use futures::channel::mpsc::UnboundedSender;
use futures::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use parking_lot::{Mutex, RwLock};
use plan::undecodable::Undecodable;
use std::sync::Arc;

use super::index::Index;
use super::kind::Kind;
use super::register::Register;
use crate::decoding::Decoded;
use crate::error::chain;
use crate::events::Events;

/// Who follows a kind.
pub(super) type Subscribers<K> = Arc<Mutex<Vec<UnboundedSender<Arc<K>>>>>;

/// What one watch writes to.
pub(super) struct Follower<K: Kind> {
    pub writer: Writer<K>,
    pub store: Store<K>,
    pub index: Arc<RwLock<Index<K>>>,
    pub subscribers: Subscribers<K>,
    pub undecodable: Arc<Register>,
    /// Namespace and name of what could not be decoded since the list began.
    pub listed: Vec<(String, String)>,
}

impl<K: Kind> Follower<K> {
    /// Follows the watch until it ends. `report` is called once for each object that cannot be decoded, and for each
    /// mistake.
    pub(super) async fn follow(
        mut self,
        events: impl Stream<Item = Result<Event<Decoded<K>>, watcher::Error>>,
        report: impl Fn(Undecodable, ObjectMeta),
    ) {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let changed = match event {
                Ok(event) => self.take(event, &report),
                Err(error) => {
                    tracing::warn!(kind = %K::kind(&()), error = %chain(&error), "the watch failed; it is taken up again");
                    continue;
                }
            };
            self.subscribers
                .lock()
                .retain(|subscriber| changed.iter().all(|object| subscriber.unbounded_send(object.clone()).is_ok()));
        }
    }

    /// Takes in what has happened; which objects have changed by it.
    fn take(&mut self, event: Event<Decoded<K>>, report: &impl Fn(Undecodable, ObjectMeta)) -> Vec<Arc<K>> {
        match event {
            Event::Init => {
                self.listed.clear();
                self.writer.apply_watcher_event(&Event::Init);
                Vec::new()
            }
            Event::InitApply(Decoded::Object(object)) => {
                self.writer.apply_watcher_event(&Event::InitApply(object));
                Vec::new()
            }
            Event::InitApply(Decoded::Undecodable { metadata, why }) => {
                self.listed.push((why.namespace.clone(), why.name.clone()));
                self.register(*why, *metadata, report);
                Vec::new()
            }
            Event::InitDone => {
                let before = self.store.state();
                self.writer.apply_watcher_event(&Event::InitDone);
                self.index.write().replace(self.store.state());
                self.undecodable.keep(&K::kind(&()), &self.listed);
                // What vanished while nobody watched would otherwise never be told.
                let gone = before.into_iter().filter(|old| self.store.get(&ObjectRef::from_obj(&**old)).is_none());
                self.store.state().into_iter().chain(gone).collect()
            }
            Event::Apply(Decoded::Object(object)) => {
                let place = ObjectRef::from_obj(&object);
                self.writer.apply_watcher_event(&Event::Apply(object));
                let changed = self.store.get(&place);
                if let Some(object) = &changed {
                    self.index.write().put(object.clone());
                    self.forget(object);
                }
                changed.into_iter().collect()
            }
            Event::Apply(Decoded::Undecodable { metadata, why }) => {
                let place = reference::<K>(&why);
                self.register(*why, *metadata, report);
                self.leave(&place)
            }
            Event::Delete(Decoded::Object(object)) => {
                self.writer.apply_watcher_event(&Event::Delete(object.clone()));
                self.index.write().remove(&object);
                self.forget(&object);
                vec![Arc::new(object)]
            }
            Event::Delete(Decoded::Undecodable { why, .. }) => {
                let changed = self.leave(&reference::<K>(&why));
                self.undecodable.remove(&why.kind, &why.namespace, &why.name);
                changed
            }
        }
    }

    fn register(&self, why: Undecodable, metadata: ObjectMeta, report: &impl Fn(Undecodable, ObjectMeta)) {
        if self.undecodable.add(&why) {
            report(why, metadata);
        }
    }

    fn forget(&self, object: &K) {
        let namespace = object.namespace().unwrap_or_default();
        self.undecodable.remove(&K::kind(&()), &namespace, &object.name_any());
    }

    /// Takes what was there before out of the store: an old version is as good as none.
    fn leave(&mut self, place: &ObjectRef<K>) -> Vec<Arc<K>> {
        let old = self.store.get(place);
        if let Some(old) = &old {
            self.writer.apply_watcher_event(&Event::Delete((**old).clone()));
            self.index.write().remove(old);
        }
        old.into_iter().collect()
    }
}

fn reference<K: Kind>(object: &Undecodable) -> ObjectRef<K> {
    ObjectRef::new(&object.name).within(&object.namespace)
}

/// Reports an object that cannot be decoded: in the log, and by an Event on it, which nothing waits for.
pub(super) fn report<K: Kind>(events: &Arc<Events>, why: Undecodable, metadata: ObjectMeta) {
    let Undecodable { kind, namespace, name, field, error, .. } = &why;
    tracing::warn!(%kind, %namespace, %name, %field, %error, "an object cannot be decoded; what is decided by it is on hold");
    let note = format!(
        "{field} cannot be decoded: {error}. Correct that field: until then nothing is done with this {kind}, and what is decided by it is on hold"
    );
    let events = events.clone();
    tokio::spawn(async move {
        let object = Decoded::<K>::Undecodable { metadata: Box::new(metadata), why: Box::new(why) };
        events.warning(&object, Reason::DecodingFailed, &note).await;
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crds::Host;
    use futures::stream;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::ResourceExt;
    use kube::runtime::watcher::{self, Event};
    use parking_lot::Mutex;
    use plan::undecodable::Undecodable;
    use serde_json::json;

    use super::Follower;
    use crate::cache::{Cache, Watched};
    use crate::decoding::Decoded;
    use crate::fake_api::FakeApi;
    use crate::metrics::Objects;

    fn host(name: &str, since: &str) -> Decoded<Host> {
        let object = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Host",
            "metadata": { "name": name, "namespace": "fleet", "uid": name, "resourceVersion": "1" },
            "spec": {
                "address": "10.0.0.1", "ssh": { "credentialsRef": { "name": "k" } },
                "quarantine": { "reason": "JoinFailed", "message": "", "machine": "m", "since": since },
            },
        });
        serde_json::from_value(object).unwrap()
    }

    const GOOD: &str = "2026-01-01T00:00:00Z";
    const BAD: &str = "2026-01-01T00:00:00+99:99";

    /// What the watch showed: names in the store, names in the register, how often it was told; then what subscribers
    /// heard.
    async fn follow(cache: &Cache, events: Vec<Event<Decoded<Host>>>) -> (Vec<String>, usize, usize, Vec<String>) {
        let mut heard = Vec::new();
        let sent = cache.hosts.changes();
        let follower = follower(&cache.hosts);
        let told = Mutex::new(0);
        let tell = |_: Undecodable, _: ObjectMeta| *told.lock() += 1;
        let events = events.into_iter().map(Ok::<_, watcher::Error>);
        let follower = follower.follow(stream::iter(events), tell);
        follower.await;
        cache.hosts.subscribers.lock().clear();
        let mut sent = std::pin::pin!(sent);
        while let Some(host) = futures::StreamExt::next(&mut sent).await {
            heard.push(host.name_any());
        }
        let names = cache.hosts.everywhere().iter().map(|host| host.name_any()).collect();
        let told = *told.lock();
        (names, cache.undecodable.counts().values().sum(), told, heard)
    }

    fn follower(hosts: &Watched<Host>) -> Follower<Host> {
        Follower {
            writer: hosts.writer.lock().take().unwrap(),
            store: hosts.store.clone(),
            index: hosts.index.clone(),
            subscribers: hosts.subscribers.clone(),
            undecodable: hosts.undecodable.clone(),
            listed: Vec::new(),
        }
    }

    #[tokio::test]
    async fn one_object_that_cannot_be_decoded_does_not_keep_the_others_from_being_listed() {
        let cache = Cache::new();
        let listed = vec![
            Event::Init,
            Event::InitApply(host("h1", GOOD)),
            Event::InitApply(host("h2", BAD)),
            Event::InitApply(host("h3", GOOD)),
            Event::InitDone,
        ];
        let (names, undecodable, told, heard) = follow(&cache, listed).await;
        assert_eq!(names, ["h1", "h3"]);
        assert_eq!((undecodable, told, heard.len()), (1, 1, 2));
    }

    #[tokio::test]
    async fn an_object_that_can_be_decoded_no_more_is_told_once_and_comes_back_when_it_is_corrected() {
        let apply = |since| Event::Apply(host("h1", since));
        let list = |since| [Event::Init, Event::InitApply(host("h1", since)), Event::InitDone];
        let check = async |events: Vec<Event<Decoded<Host>>>, expected: (&[&str], usize, usize)| {
            let cache = Cache::new();
            let (names, undecodable, told, _) = follow(&cache, events).await;
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            assert_eq!((names.as_slice(), undecodable, told), expected);
        };
        check([list(GOOD).into(), vec![apply(BAD), apply(BAD)]].concat(), (&[], 1, 1)).await;
        check([list(GOOD).into(), vec![apply(BAD), apply(GOOD)]].concat(), (&["h1"], 0, 1)).await;
        check([list(BAD), list(BAD)].concat(), (&[], 1, 1)).await;
        check([list(BAD), list(GOOD)].concat(), (&["h1"], 0, 1)).await;
        check([list(BAD).into(), vec![Event::Init, Event::InitDone]].concat(), (&[], 0, 1)).await;
        let gone = Event::Delete(host("h1", BAD));
        check([list(BAD).into(), vec![gone]].concat(), (&[], 0, 1)).await;
    }

    #[tokio::test]
    async fn an_object_that_cannot_be_decoded_is_named_in_an_event_with_its_field_and_counted() {
        let api = FakeApi::default();
        let ctx = api.context();
        let events = ctx.events.clone();
        let report = move |why, metadata| super::report::<Host>(&events, why, metadata);
        let listed = [Event::Init, Event::InitApply(host("h2", BAD)), Event::InitDone];
        let listed = stream::iter(listed.map(Ok::<_, watcher::Error>));
        follower(&ctx.cache.hosts).follow(listed, report).await;
        let mut events = api.values("events");
        while events.is_empty() {
            // Nothing waits for it.
            tokio::task::yield_now().await;
            events = api.values("events");
        }
        let told = &events[0];
        assert_eq!((&told["reason"], &told["type"]), (&json!("DecodingFailed"), &json!("Warning")));
        assert_eq!(told["regarding"]["name"], "h2");
        let note = told["note"].as_str().unwrap();
        assert!(note.starts_with("spec.quarantine.since cannot be decoded: "), "{note}");
        ctx.metrics.undecodable(&ctx.cache.undecodable.counts());
        let metrics = ctx.metrics.text(&Objects::default()).unwrap();
        let counted = "clusterwright_objects_undecodable{kind=\"Host\"} 1";
        assert!(metrics.contains(counted), "{metrics}");
    }

    #[tokio::test]
    async fn whoever_follows_a_kind_hears_that_an_object_can_be_decoded_no_more() {
        let cache = Cache::new();
        let events =
            vec![Event::Init, Event::InitApply(host("h1", GOOD)), Event::InitDone, Event::Apply(host("h1", BAD))];
        let (.., heard) = follow(&cache, events).await;
        assert_eq!(heard, ["h1", "h1"]);
        let hold = cache.hold_of_cluster("fleet", "a");
        assert!(hold.is_none(), "nobody's Host holds nobody: {hold:?}");
        assert!(Arc::strong_count(&cache.undecodable) > 1);
    }
}
