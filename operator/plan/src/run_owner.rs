//! The object that a cluster's runs belong to: what their names follow from, and what they are deleted with.

use std::collections::BTreeMap;

use crds::names::{annotation, label};
use crds::playbook_run::PlaybookRunSpec;
use crds::step::{Intent, Step};
use crds::{ClusterKind, ObjectExt, PlaybookRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::naming;

/// Hosts of one run, where one bad batch must not be everything.
pub const BATCH: usize = 100;
/// Deadline of one attempt.
const TIMEOUT_SECONDS: i32 = 3600;
/// Deadline of a probe.
const PROBE_TIMEOUT_SECONDS: i32 = 300;

/// What the runs of a cluster have to know of the object that forms it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOwner {
    /// Its name, which is that of the cluster.
    pub name: String,
    /// Its namespace, and that of its runs.
    pub namespace: String,
    /// Its UID: an object of the same name that is made later has runs of its own.
    pub uid: String,
    /// What kind of cluster it forms.
    pub kind: ClusterKind,
    reference: Option<OwnerReference>,
}

impl RunOwner {
    /// The object as the owner of runs, given with the reference by which they are deleted with it.
    pub fn new(object: &impl ObjectExt, kind: ClusterKind, reference: Option<OwnerReference>) -> Self {
        Self {
            kind,
            name: object.name().to_owned(),
            namespace: object.namespace().to_owned(),
            uid: object.uid().to_owned(),
            reference,
        }
    }

    /// Whether it made this object.
    pub fn owns(&self, child: &ObjectMeta) -> bool {
        child.owner_references.iter().flatten().any(|owner| owner.uid == self.uid)
    }

    /// A run of this name on these Hosts, which goes with the owner.
    pub fn run(&self, name: &str, intent: Intent, steps: Vec<Step>, hosts: Vec<String>, attempt: i32) -> PlaybookRun {
        let spec = PlaybookRunSpec {
            cluster_name: Some(self.name.clone()),
            cluster_kind: self.kind,
            timeout_seconds: TIMEOUT_SECONDS,
            ..PlaybookRunSpec::new(intent, steps, hosts)
        };
        let mut run = PlaybookRun::new(name, spec);
        run.metadata.namespace = Some(self.namespace.clone()).filter(|namespace| !namespace.is_empty());
        run.metadata.owner_references = self.reference.clone().map(|owner| vec![owner]);
        run.metadata.labels = Some(BTreeMap::from([
            (label::CLUSTER.into(), self.name.clone()),
            (label::INTENT.into(), intent.spec().slug.into()),
        ]));
        run.metadata.annotations = Some(BTreeMap::from([(annotation::ATTEMPT.into(), attempt.to_string())]));
        run
    }

    /// A read-only look at Hosts, by a step that changes nothing. Its name follows from the Hosts, these parts and the
    /// number.
    pub fn probe(&self, step: Step, hosts: &[&str], parts: &[&str], number: i32) -> PlaybookRun {
        let name = self.probe_name(hosts, parts, number);
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut run = self.run(&name, Intent::Probe, vec![step], hosts, number);
        run.spec.timeout_seconds = PROBE_TIMEOUT_SECONDS;
        run
    }

    /// The name that such a probe has.
    pub fn probe_name(&self, hosts: &[&str], parts: &[&str], number: i32) -> String {
        let parts = hosts.iter().chain(parts).copied();
        naming::run(&self.name, &self.uid, Intent::Probe, parts, number)
    }
}

#[cfg(test)]
mod tests {
    use crds::references::controller_ref;
    use crds::step::{Intent, Step};
    use crds::{ClusterKind, FormerRef, ObjectExt};
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::RunOwner;

    fn owner(uid: &str) -> RunOwner {
        let metadata = ObjectMeta {
            name: Some("plane".into()),
            namespace: Some("fleet".into()),
            uid: Some(uid.into()),
            ..ObjectMeta::default()
        };
        let object = ConfigMap { metadata, ..ConfigMap::default() };
        RunOwner::new(&object, ClusterKind::KarmadaDeployment, controller_ref(&object))
    }

    #[test]
    fn a_run_belongs_to_the_object_that_asks_for_it_of_whatever_kind() {
        let (ours, other) = (owner("uid-1"), owner("uid-2"));
        let run = ours.run("plane-install-0", Intent::Install, vec![Step::Prepare], vec!["h1".into()], 3);
        let references = run.metadata.owner_references.clone().unwrap();
        assert_eq!((references[0].kind.as_str(), references[0].uid.as_str()), ("ConfigMap", "uid-1"));
        assert!(ours.owns(&run.metadata) && !other.owns(&run.metadata));
        assert_eq!((run.namespace(), run.spec.former()), ("fleet", Some(FormerRef::plane("plane"))));
        assert_eq!(run.annotation("clusterwright.dev/attempt"), Some("3"));
    }

    #[test]
    fn the_name_of_a_probe_follows_from_its_owner_its_hosts_and_what_it_is_for() {
        let (ours, other) = (owner("uid-1"), owner("uid-2"));
        let probe = ours.probe(Step::ProbeHost, &["h1", "h2"], &["lost"], 1);
        assert_eq!(probe.name(), ours.probe_name(&["h2", "h1"], &["lost"], 1));
        assert_eq!((probe.spec.intent, probe.spec.timeout_seconds), (Intent::Probe, 300));
        let names = [
            ours.probe_name(&["h1"], &["lost"], 1),
            ours.probe_name(&["h1", "h2"], &["found"], 1),
            ours.probe_name(&["h1", "h2"], &["lost"], 2),
            other.probe_name(&["h1", "h2"], &["lost"], 1),
        ];
        assert!(names.iter().all(|name| name != probe.name()), "{names:?}");
    }
}
