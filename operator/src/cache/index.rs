//! The objects of one kind as last seen, in the order of their names, and by what they have in common.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kube::ResourceExt;

use super::keys::IndexKey;
use super::kind::Kind;

/// Objects by their names.
type Named<K> = BTreeMap<String, Arc<K>>;

/// The objects of one kind.
#[derive(Debug)]
pub(super) struct Index<K> {
    /// Counts the changes.
    version: u64,
    namespaces: BTreeMap<String, Namespace<K>>,
}

/// Those of one namespace. No key without objects.
#[derive(Debug)]
struct Namespace<K> {
    objects: Named<K>,
    by_key: HashMap<IndexKey, Named<K>>,
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Self { version: 0, namespaces: BTreeMap::new() }
    }
}

impl<K> Default for Namespace<K> {
    fn default() -> Self {
        Self { objects: Named::new(), by_key: HashMap::new() }
    }
}

impl<K: Kind> Index<K> {
    /// Shows these objects, and no others.
    pub fn replace(&mut self, objects: impl IntoIterator<Item = Arc<K>>) {
        self.namespaces.clear();
        self.version += 1;
        for object in objects {
            self.put(object);
        }
    }

    /// Another one after each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Puts an object in, in place of what had its name.
    pub fn put(&mut self, object: Arc<K>) {
        let (namespace, name) = place(&*object);
        self.remove(&*object);
        let namespace = self.namespaces.entry(namespace).or_default();
        for key in object.keys() {
            namespace.by_key.entry(key).or_default().insert(name.clone(), object.clone());
        }
        namespace.objects.insert(name, object);
    }

    /// Takes out what has the name of this object.
    pub fn remove(&mut self, object: &K) {
        self.version += 1;
        let (namespace, name) = place(object);
        let Some(namespace) = self.namespaces.get_mut(&namespace) else { return };
        let Some(old) = namespace.objects.remove(&name) else { return };
        for key in old.keys() {
            if let Some(named) = namespace.by_key.get_mut(&key) {
                named.remove(&name);
                if named.is_empty() {
                    namespace.by_key.remove(&key);
                }
            }
        }
    }

    /// All of every namespace, in the order of namespaces and names.
    pub fn everywhere(&self) -> impl Iterator<Item = &Arc<K>> {
        self.namespaces.values().flat_map(|namespace| namespace.objects.values())
    }

    /// Those of a namespace, in the order of names.
    pub fn all(&self, namespace: &str) -> impl Iterator<Item = &Arc<K>> {
        self.namespaces.get(namespace).into_iter().flat_map(|namespace| namespace.objects.values())
    }

    /// Those of a namespace that have a key, in the order of names.
    pub fn with(&self, namespace: &str, key: &IndexKey) -> impl Iterator<Item = &Arc<K>> {
        let named = self.namespaces.get(namespace).and_then(|namespace| namespace.by_key.get(key));
        named.into_iter().flat_map(BTreeMap::values)
    }
}

fn place<K: Kind>(object: &K) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crds::{FormerRef, Machine, MachineSet, PlaybookRun};
    use kube::ResourceExt;
    use proptest::prelude::*;

    use super::{Index, IndexKey, Kind};

    fn machine(namespace: &str, name: &str, cluster: &str, host: Option<&str>) -> Arc<Machine> {
        let host = host.map(|host| format!(", hostRef: {{name: {host}}}")).unwrap_or_default();
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{namespace: {namespace}, name: {name}}}, spec: {{clusterName: {cluster}, role: worker, kubernetesVersion: 1.35.4{host}}}}}"
        );
        Arc::new(serde_yaml::from_str(&yaml).unwrap())
    }

    fn names<'a, K: Kind>(objects: impl Iterator<Item = &'a Arc<K>>) -> Vec<String> {
        objects.map(|object| object.name_any()).collect()
    }

    #[test]
    fn what_has_a_key_is_found_by_it_as_long_as_it_has_it() {
        let a = || IndexKey::Cluster("a".into());
        let mut index = Index::default();
        index.replace([machine("n", "m2", "a", None), machine("n", "m1", "a", None)]);
        index.put(machine("n", "m3", "b", Some("h3")));
        index.put(machine("other", "m1", "a", None));
        assert_eq!(names(index.with("n", &a())), ["m1", "m2"]);
        assert_eq!(names(index.with("n", &IndexKey::Host("h3".into()))), ["m3"]);
        assert_eq!(names(index.with("n", &IndexKey::WaitsForHost)), ["m1", "m2"]);
        index.put(machine("n", "m1", "a", Some("h1")));
        assert_eq!(names(index.with("n", &IndexKey::WaitsForHost)), ["m2"]);
        index.remove(&machine("n", "m2", "whatever", None));
        assert_eq!(names(index.with("n", &a())), ["m1"]);
        assert_eq!(names(index.all("n")), ["m1", "m3"]);
        assert_eq!(names(index.everywhere()), ["m1", "m3", "m1"]);
    }

    #[test]
    fn a_plane_and_a_cluster_of_one_name_do_not_find_each_others_machines_sets_and_runs() {
        fn find<K: Kind>(kind: &str, spec: &str) {
            let object = |name: &str, more: &str| -> Arc<K> {
                let yaml = format!(
                    "{{apiVersion: clusterwright.dev/v1alpha1, kind: {kind}, metadata: {{namespace: n, name: {name}}}, spec: {{clusterName: k1, {spec}{more}}}}}"
                );
                Arc::new(serde_yaml::from_str(&yaml).unwrap())
            };
            let mut index = Index::default();
            index.replace([object("c", ""), object("p", ", clusterKind: KarmadaDeployment")]);
            let found = |former: FormerRef<'_>| names(index.with("n", &former.into()));
            assert_eq!(found(FormerRef::cluster("k1")), ["c"], "{kind}");
            assert_eq!(found(FormerRef::plane("k1")), ["p"], "{kind}");
        }
        find::<Machine>("Machine", "role: control-plane");
        find::<MachineSet>("MachineSet", "role: control-plane");
        find::<PlaybookRun>("PlaybookRun", "intent: Install, steps: [prepare], hosts: [h1]");
    }

    proptest! {
        #[test]
        fn it_shows_what_going_over_all_would_show(
            changes in prop::collection::vec((0..3u8, 0..6u8, 0..3u8, prop::option::of(0..3u8), any::<bool>()), 0..60)
        ) {
            let mut index = Index::<Machine>::default();
            let mut there = std::collections::BTreeMap::new();
            for (namespace, name, cluster, host, goes) in changes {
                let (namespace, name) = (format!("n{namespace}"), format!("m{name}"));
                let host = host.map(|host| format!("h{host}"));
                let object = machine(&namespace, &name, &format!("c{cluster}"), host.as_deref());
                if goes {
                    index.remove(&object);
                    there.remove(&(namespace, name));
                } else {
                    index.put(object.clone());
                    there.insert((namespace, name), object);
                }
            }
            prop_assert_eq!(names(index.everywhere()), names(there.values()));
            for cluster in 0..3 {
                let cluster = format!("c{cluster}");
                let wanted = there.iter().filter(|((namespace, _), machine)| namespace == "n1" && machine.spec.cluster_name == cluster);
                let wanted = names(wanted.map(|(_, machine)| machine));
                prop_assert_eq!(names(index.with("n1", &IndexKey::Cluster(cluster))), wanted);
            }
        }
    }
}
