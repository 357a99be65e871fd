//! Changes that a pool counts: a Host is written at each of its probes, and a set whenever one of its Machines changes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crds::{Host, ObjectExt};
use kube::Resource;
use parking_lot::Mutex;
use plan::host_pool::class;

/// How an object is compared with what was seen of it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    New,
    Same,
    Changed,
    Gone,
}

/// What was seen of each object last, by namespace and name.
#[derive(Default)]
pub(super) struct News(Mutex<HashMap<(String, String), u64>>);

impl News {
    /// By what counts of it; `None`: it is gone.
    pub fn seen(&self, object: &impl Resource, counts: Option<impl Hash>) -> Seen {
        let key = (object.namespace().to_owned(), object.name().to_owned());
        let Some(counts) = counts else {
            self.0.lock().remove(&key);
            return Seen::Gone;
        };
        let mut hasher = DefaultHasher::new();
        counts.hash(&mut hasher);
        let digest = hasher.finish();
        match self.0.lock().insert(key, digest) {
            None => Seen::New,
            Some(former) if former == digest => Seen::Same,
            Some(_) => Seen::Changed,
        }
    }

    /// Whether what counts of an object is another than it was; `None`: it is gone, which always is news.
    pub fn is_news(&self, object: &impl Resource, counts: Option<impl Hash>) -> bool {
        self.seen(object, counts) != Seen::Same
    }
}

/// Which pools a Host concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concerns {
    None,
    /// Those that select it.
    Selecting,
    /// It was selected by others before, or is gone.
    All,
}

/// What pools count of Hosts.
#[derive(Default)]
pub(super) struct HostNews {
    selected_by: News,
    class: News,
}

impl HostNews {
    pub fn concerns(&self, host: &Host, is_there: bool) -> Concerns {
        let facts = host.status.as_ref().and_then(|status| status.facts.as_ref());
        let size = facts.map(|facts| (facts.cpus, facts.memory_mib));
        let selected_by = self.selected_by.seen(host, is_there.then_some((&host.metadata.labels, size)));
        let class = self.class.seen(host, is_there.then(|| class(host)));
        match (selected_by, class) {
            (Seen::Changed | Seen::Gone, _) => Concerns::All,
            (Seen::Same, Seen::Same) => Concerns::None,
            _ => Concerns::Selecting,
        }
    }
}
