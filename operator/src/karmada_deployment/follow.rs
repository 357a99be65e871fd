//! Watches of what was made for planes, on their hosts and in themselves: what somebody changes there is put back at
//! once, and not only when it is looked at again anyway.

use std::collections::{BTreeMap, BTreeSet};

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
use plan::karmada_deployment::removal::{KINDS_OF_HOST, KINDS_OF_PLANE, Kind};
use plan::karmada_deployment::{Place, members};
use tokio::task::AbortHandle;

use crate::objects::Objects;

/// A watch is taken up again so often: its connection may be dead, and nothing would be seen.
const WATCH_SECONDS: u32 = 60;

/// Who is notified of a change.
pub(super) type Changes = UnboundedReceiver<ObjectRef<KarmadaDeployment>>;

/// The watches by the UIDs of their KarmadaDeployments.
pub(crate) struct Following {
    changed: UnboundedSender<ObjectRef<KarmadaDeployment>>,
    changes: Mutex<Option<Changes>>,
    watches: Mutex<BTreeMap<(String, Place), AbortHandle>>,
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

    /// Watches what was made for a plane in this place, unless it is watched. A watch that fails has ended: it begins
    /// anew, by the client that there is then, at the next look.
    pub(super) async fn follow(&self, object: &KarmadaDeployment, place: Place, objects: &Objects) {
        let key = (object.uid().to_owned(), place);
        if self.watches.lock().get(&key).is_some_and(|watch| !watch.is_finished()) {
            return;
        }
        let (kinds, namespace): (BTreeSet<Kind>, _) = match place {
            Place::Host => (KINDS_OF_HOST.into(), Some(object.spec.host_namespace.as_str())),
            // What was made there for members is watched with what is the plane's own.
            Place::Plane => (KINDS_OF_PLANE.into_iter().chain(members::KINDS_OF_PLANE).collect(), None),
        };
        let config = Config::default().labels(&selector(object)).timeout(WATCH_SECONDS);
        let mut watches = Vec::new();
        for (group, version, kind) in kinds {
            // One that is not known now is not watched; it is still looked at.
            let Ok(Some(known)) = objects.kind(group, version, kind).await else { continue };
            let api: Api<PartialObjectMeta<DynamicObject>> = match namespace.filter(|_| known.is_namespaced) {
                Some(namespace) => Api::namespaced_with(objects.client(), namespace, &known.resource),
                None => Api::all_with(objects.client(), &known.resource),
            };
            watches.push(watcher(api, config.clone()).modify(|object| object.metadata.managed_fields = None).boxed());
        }
        let (changed, plane) = (self.changed.clone(), ObjectRef::from_obj(object));
        let watch = tokio::spawn(async move {
            let mut events = stream::select_all(watches);
            while let Some(Ok(event)) = events.next().await {
                // The first list may have what was changed since it was looked at.
                let is_change = matches!(event, Event::Apply(_) | Event::Delete(_) | Event::InitDone);
                if is_change && changed.unbounded_send(plane.clone()).is_err() {
                    return;
                }
            }
        });
        if let Some(old) = self.watches.lock().insert(key, watch.abort_handle()) {
            old.abort();
        }
    }

    /// The KarmadaDeployment goes.
    pub(super) fn forget(&self, uid: &str) {
        self.watches.lock().retain(|(of, _), watch| {
            let stays = of != uid;
            if !stays {
                watch.abort();
            }
            stays
        });
    }
}
