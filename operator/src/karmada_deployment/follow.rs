//! Watches of what was made for planes, on their hosts, in themselves and in their members: what somebody changes there
//! is put back at once, and not only when it is looked at again anyway; and what they say nothing of is not listed
//! again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crds::{KarmadaDeployment, ObjectExt};
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{StreamExt, stream};
use kube::Api;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use parking_lot::Mutex;
use plan::karmada_deployment::names::selector;
use plan::karmada_deployment::removal::Kind;
use tokio::task::AbortHandle;

use crate::objects::{Objects, Server};

/// A watch is taken up again so often: its connection may be dead, and nothing would be seen. Clients give one up that
/// has been silent for 295 s.
const WATCH_SECONDS: u32 = 240;

/// Who is notified of a change.
pub(super) type Changes = UnboundedReceiver<ObjectRef<KarmadaDeployment>>;

/// The watches by the UIDs of their KarmadaDeployments, and by where they are.
pub(crate) struct Following {
    changed: UnboundedSender<ObjectRef<KarmadaDeployment>>,
    changes: Mutex<Option<Changes>>,
    watches: Mutex<HashMap<(String, Server), Watch>>,
}

struct Watch {
    task: AbortHandle,
    /// What it is to watch.
    kinds: BTreeSet<Kind>,
    /// Whether it watches all of that.
    is_complete: bool,
    seen: Arc<Seen>,
}

/// What a watch has seen.
struct Seen {
    /// Kinds that were not listed yet.
    unlisted: AtomicUsize,
    has_changed: AtomicBool,
}

impl Default for Following {
    fn default() -> Self {
        let (changed, changes) = unbounded();
        Self { changed, changes: Mutex::new(Some(changes)), watches: Mutex::default() }
    }
}

impl Following {
    /// The changes of all that is watched; whoever asks first gets them.
    pub(super) fn changes(&self) -> Changes {
        self.changes.lock().take().unwrap_or_else(|| unbounded().1)
    }

    /// Watches what was made for a plane there of these kinds, unless all of them are watched: a plane that is set back
    /// in its place has Jobs, and had none. A watch that fails has ended: it begins anew, by the client that there is
    /// then, at the next look.
    pub(super) async fn follow(
        &self,
        object: &KarmadaDeployment,
        objects: &Objects,
        kinds: &BTreeSet<Kind>,
        namespace: Option<&str>,
    ) {
        let key = (object.uid().to_owned(), objects.server().clone());
        let follows = |watch: &Watch| !watch.task.is_finished() && watch.kinds.is_superset(kinds);
        if self.watches.lock().get(&key).is_some_and(follows) {
            return;
        }
        let config = Config::default().labels(&selector(object)).timeout(WATCH_SECONDS);
        let (mut watches, mut is_complete) = (Vec::new(), true);
        for (group, version, kind) in kinds {
            // One that is not known now is not watched; it is still looked at.
            let Ok(Some(known)) = objects.kind(group, version, kind).await else {
                is_complete = false;
                continue;
            };
            let api: Api<PartialObjectMeta<DynamicObject>> = match namespace.filter(|_| known.is_namespaced) {
                Some(namespace) => Api::namespaced_with(objects.client(), namespace, &known.resource),
                None => Api::all_with(objects.client(), &known.resource),
            };
            watches.push(watcher(api, config.clone()).modify(|object| object.metadata.managed_fields = None).boxed());
        }
        let (changed, plane) = (self.changed.clone(), ObjectRef::from_obj(object));
        let unlisted = AtomicUsize::new(watches.len());
        let seen = Arc::new(Seen { unlisted, has_changed: AtomicBool::new(true) });
        let sees = seen.clone();
        let task = tokio::spawn(async move {
            let mut events = stream::select_all(watches);
            while let Some(Ok(event)) = events.next().await {
                if matches!(event, Event::InitDone) {
                    // Once all were listed, nothing is left to count.
                    let _ = sees.unlisted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                }
                // The first list may have what was changed since it was looked at.
                let is_change = matches!(event, Event::Apply(_) | Event::Delete(_) | Event::InitDone);
                if is_change {
                    sees.has_changed.store(true, Ordering::SeqCst);
                    if changed.unbounded_send(plane.clone()).is_err() {
                        return;
                    }
                }
            }
        });
        let watch = Watch { task: task.abort_handle(), kinds: kinds.clone(), is_complete, seen };
        if let Some(old) = self.watches.lock().insert(key, watch) {
            old.task.abort();
        }
    }

    /// Whether all that was made for a plane there is being watched, and nothing was seen to change since
    /// [`Self::expect`].
    pub(super) fn is_quiet(&self, key: &(String, Server)) -> bool {
        let watches = self.watches.lock();
        watches.get(key).is_some_and(|watch| {
            let is_listed = watch.seen.unlisted.load(Ordering::SeqCst) == 0;
            let is_watched = watch.is_complete && is_listed && !watch.task.is_finished();
            is_watched && !watch.seen.has_changed.load(Ordering::SeqCst)
        })
    }

    /// All of it is looked at from now on: what changes after this is to be looked at again.
    pub(super) fn expect(&self, key: &(String, Server)) {
        if let Some(watch) = self.watches.lock().get(key) {
            watch.seen.has_changed.store(false, Ordering::SeqCst);
        }
    }

    /// Keeps, of the watches for a KarmadaDeployment, those alone of servers for which `stays` holds.
    pub(super) fn retain(&self, uid: &str, stays: impl Fn(&Server) -> bool) {
        self.watches.lock().retain(|(of, server), watch| {
            let stays = of != uid || stays(server);
            if !stays {
                watch.task.abort();
            }
            stays
        });
    }
}
