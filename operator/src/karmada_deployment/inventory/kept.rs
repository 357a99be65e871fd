//! What is kept between two looks at a place: what was listed there, and which of it was found to be as it is wanted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crds::cluster_addon::AppliedObject;
use jiff::Timestamp;
use parking_lot::Mutex;
use plan::karmada_deployment::removal::Kind;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::objects::Server;

/// How long what was listed is believed of watches that say nothing, in seconds: one may have been lost.
const LISTED_SECONDS: i64 = 300;
/// How long an object that was as it is wanted is not compared again, in seconds: what an API server makes of it may
/// change with the server.
const SAME_SECONDS: i64 = 600;

/// The UID of the KarmadaDeployment, and where it is.
pub(super) type Key = (String, Server);

/// What is kept of all places; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Inventories(Arc<Mutex<HashMap<Key, Kept>>>);

#[derive(Default)]
struct Kept {
    /// UID of the cluster; none: nobody asked.
    cluster: Option<String>,
    /// Since when all that is listed was; none: something was done since.
    since: Option<Timestamp>,
    listed: BTreeMap<Kind, Vec<Value>>,
    /// Fingerprints of what was as it is wanted, and when that was found.
    same: HashMap<[u8; 32], Timestamp>,
}

impl Inventories {
    /// Whether what was listed may still be believed.
    pub(super) fn is_fresh(&self, key: &Key, now: Timestamp) -> bool {
        let since = self.0.lock().get(key).and_then(|kept| kept.since);
        since.is_some_and(|since| is_younger(since, now, LISTED_SECONDS))
    }

    /// Nothing is listed, and all that is from now on is of now.
    pub(super) fn begin(&self, key: &Key, now: Timestamp) {
        let mut all = self.0.lock();
        let kept = all.entry(key.clone()).or_default();
        (kept.since, kept.listed) = (Some(now), BTreeMap::new());
        kept.same.retain(|_, found| is_younger(*found, now, SAME_SECONDS));
    }

    /// Whether what is kept is of the cluster of this UID. If it is of another, or of none, nothing is kept.
    pub(in crate::karmada_deployment) fn is_of(&self, key: &Key, cluster: &str) -> bool {
        let mut all = self.0.lock();
        let is_same = all.get(key).is_some_and(|kept| kept.cluster.as_deref() == Some(cluster));
        if !is_same {
            all.insert(key.clone(), Kept { cluster: Some(cluster.to_owned()), ..Kept::default() });
        }
        is_same
    }

    /// What was listed of a kind; none: it was not listed.
    pub(super) fn listed(&self, key: &Key, kind: Kind) -> Option<Vec<Value>> {
        self.0.lock().get(key)?.listed.get(&kind).cloned()
    }

    /// All objects of a kind.
    pub(super) fn put(&self, key: &Key, kind: Kind, listed: &[Value]) {
        self.0.lock().entry(key.clone()).or_default().listed.insert(kind, listed.to_vec());
    }

    /// This object, if it is among those that were listed.
    pub(super) fn find(&self, key: &Key, object: &AppliedObject) -> Option<Value> {
        let all = self.0.lock();
        let is_kind = |kind: &Kind| (kind.0, kind.1, kind.2) == (&*object.group, &*object.version, &*object.kind);
        let (_, listed) = all.get(key)?.listed.iter().find(|(kind, _)| is_kind(kind))?;
        let is_it = |live: &&Value| {
            let metadata = &live["metadata"];
            metadata["name"] == *object.name && metadata["namespace"].as_str() == object.namespace.as_deref()
        };
        listed.iter().find(is_it).cloned()
    }

    /// Whether this was found to be as it is wanted, not long ago.
    pub(super) fn is_same(&self, key: &Key, fingerprint: &[u8; 32], now: Timestamp) -> bool {
        let found = self.0.lock().get(key).and_then(|kept| kept.same.get(fingerprint).copied());
        found.is_some_and(|found| is_younger(found, now, SAME_SECONDS))
    }

    /// This is as it is wanted.
    pub(super) fn found_same(&self, key: &Key, fingerprint: [u8; 32], now: Timestamp) {
        self.0.lock().entry(key.clone()).or_default().same.insert(fingerprint, now);
    }

    /// Something was done there.
    pub(super) fn forget(&self, key: &Key) {
        if let Some(kept) = self.0.lock().get_mut(key) {
            kept.since = None;
        }
    }

    /// Keeps, of what is kept for a KarmadaDeployment, that alone of servers for which `stays` holds.
    pub(in crate::karmada_deployment) fn retain(&self, uid: &str, stays: impl Fn(&Server) -> bool) {
        self.0.lock().retain(|(of, server), _| of != uid || stays(server));
    }
}

fn is_younger(then: Timestamp, now: Timestamp, seconds: i64) -> bool {
    (0..seconds).contains(&now.duration_since(then).as_secs())
}

/// All of an object, and of what is wanted of it, that the comparison of both depends on: not what its status says, nor
/// how often or by whom else it was written.
pub(super) fn fingerprint(live: &Value, manifest: &Value, manager: &str) -> [u8; 32] {
    let mut bare = live.clone();
    let mut own = Vec::new();
    if let Some(object) = bare.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = bare["metadata"].as_object_mut() {
        let entries = metadata.remove("managedFields").unwrap_or_default();
        let is_own = |entry: &&Value| entry["manager"] == manager && entry["operation"] == "Apply";
        own.extend(entries.as_array().into_iter().flatten().filter(is_own).map(|entry| entry["fieldsV1"].clone()));
        metadata.remove("resourceVersion");
        metadata.remove("generation");
    }
    Sha256::digest(json!([bare, own, manifest]).to_string()).into()
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use serde_json::{Value, json};

    use super::{Inventories, LISTED_SECONDS, SAME_SECONDS, fingerprint};
    use crate::objects::Server;

    const ROLE: super::Kind = ("rbac.authorization.k8s.io", "v1", "ClusterRole");

    #[test]
    fn what_was_found_is_believed_for_a_while_and_not_once_something_was_done() {
        let begin: Timestamp = "2026-11-27T00:00:00Z".parse().unwrap();
        let after = |seconds: i64| begin + SignedDuration::from_secs(seconds);
        let (kept, key) = (Inventories::default(), ("uid".to_owned(), Server::Metadata));
        assert!(!kept.is_fresh(&key, begin), "nothing was listed");
        kept.begin(&key, begin);
        kept.put(&key, ROLE, &[json!({ "metadata": { "name": "a" } })]);
        kept.found_same(&key, [1; 32], begin);
        assert!(kept.is_fresh(&key, after(LISTED_SECONDS - 1)) && !kept.is_fresh(&key, after(LISTED_SECONDS)));
        assert!(!kept.is_fresh(&key, after(-1)), "the clock was put back");
        let same = |seconds: i64| kept.is_same(&key, &[1; 32], after(seconds));
        assert!(same(SAME_SECONDS - 1) && !same(SAME_SECONDS));
        kept.forget(&key);
        assert!(!kept.is_fresh(&key, begin) && same(0));
        kept.begin(&key, after(1));
        assert!(kept.listed(&key, ROLE).is_none(), "it is listed anew");
        kept.put(&key, ROLE, &[]);
        assert!(kept.is_fresh(&key, after(1)) && same(1));
        assert!(!kept.is_of(&key, "cluster") && kept.is_of(&key, "cluster"));
        assert!(!kept.is_fresh(&key, after(1)) && !same(1), "it was another cluster's");
    }

    #[test]
    fn an_object_is_compared_again_once_it_or_what_is_wanted_has_changed() {
        let live = |change: fn(&mut Value)| {
            let mut live = json!({
                "metadata": { "name": "a", "resourceVersion": "1", "generation": 1, "managedFields": [
                    { "manager": "ours", "operation": "Apply", "fieldsV1": { "f:spec": {} } },
                    { "manager": "other", "operation": "Update", "fieldsV1": {} },
                ] },
                "spec": { "replicas": 1 }, "status": { "ready": 0 },
            });
            change(&mut live);
            live
        };
        let wanted = json!({ "spec": { "replicas": 1 } });
        let as_found = fingerprint(&live(|_| {}), &wanted, "ours");
        let is_known = |live: Value| fingerprint(&live, &wanted, "ours") == as_found;
        assert!(is_known(live(|live| live["status"]["ready"] = json!(1))));
        assert!(is_known(live(|live| live["metadata"]["resourceVersion"] = json!("2"))));
        assert!(is_known(live(|live| live["metadata"]["managedFields"][1]["fieldsV1"] = json!({ "f:status": {} }))));
        assert!(!is_known(live(|live| live["spec"]["replicas"] = json!(2))));
        assert!(!is_known(live(|live| live["metadata"]["labels"] = json!({ "a": "b" }))));
        assert!(!is_known(live(|live| live["metadata"]["managedFields"][0]["fieldsV1"] = json!({}))));
        assert_ne!(fingerprint(&live(|_| {}), &json!({ "spec": { "replicas": 2 } }), "ours"), as_found);
    }
}
