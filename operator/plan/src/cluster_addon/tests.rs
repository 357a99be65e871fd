//! One Addon on one cluster.

use std::collections::BTreeMap;

use crds::cluster_addon::AppliedObject;
use crds::{Addon, Cluster, ClusterAddon, Reason};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::conflict::FieldConflict;
use super::prepared::{Prepared, prepare};
use super::{Action, Contact, DocumentSeen, Leftover, Observed, Seen, State, Trial, Wanted, plan};
use crate::addon::revision::{File, Revision};

const NOW: &str = "2026-01-01T01:00:00Z";

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

fn object(more: Value) -> ClusterAddon {
    let mut object = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterAddon",
        "metadata": {"name": "agent-a", "namespace": "fleet", "uid": "u", "generation": 1, "finalizers": ["clusterwright.dev/objects-removed"]},
        "spec": {"addonRef": {"name": "agent"}, "clusterRef": {"name": "a"}, "revision": "r"},
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

fn addon(more: Value) -> Addon {
    let mut object = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon", "metadata": {"name": "agent", "namespace": "fleet"},
        "spec": {"clusterSelector": {}, "source": {"manifests": {"from": [{"configMapRef": {"name": "agent"}}]}}},
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

fn cluster() -> Cluster {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "a", "namespace": "fleet"},
        "spec": {"kubeconfigRef": {"name": "a-kubeconfig"}},
    }))
    .unwrap()
}

const DEFINITION: &str = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.e.x}, spec: {group: e.x, names: {kind: Widget}}}";
const NAMESPACE: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: n}}";
const CONFIG: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: n}}";
const WIDGET: &str = "{apiVersion: e.x/v1, kind: Widget, metadata: {name: w, namespace: n}}";

fn prepared(documents: &[&str]) -> Prepared {
    let file = File { place: "ConfigMap agent: all.yaml".into(), text: documents.join("\n---\n") };
    let revision = Revision {
        version: Some("1".into()),
        template: false,
        files: vec![file],
        chart: None,
        health_checks: Vec::new(),
    };
    prepare("agent", "r", revision, &serde_json::Map::new()).unwrap()
}

fn id(kind: &str, name: &str) -> AppliedObject {
    let (group, namespace) = match kind {
        "CustomResourceDefinition" => ("apiextensions.k8s.io", None),
        "Namespace" => ("", None),
        "Widget" => ("e.x", Some("n")),
        _ => ("", Some("n")),
    };
    AppliedObject {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        namespace: namespace.map(str::to_owned),
        name: name.into(),
    }
}

fn live(more: Value) -> Box<Value> {
    let mut object =
        json!({"metadata": {"uid": "x", "managedFields": [{"manager": "clusterwright-addon", "operation": "Apply"}]}});
    merge(&mut object, more);
    Box::new(object)
}

fn there(trial: Trial) -> State {
    State::There { live: live(json!({})), trial }
}

struct World {
    object: ClusterAddon,
    addon: Addon,
    others: Vec<ClusterAddon>,
    wanted: Wanted,
    contact: Contact,
}

impl World {
    /// These documents, each with its state.
    fn seen(object: Value, documents: &[(&str, &str, State)]) -> Self {
        let texts: Vec<&str> = documents.iter().map(|(text, ..)| *text).collect();
        let prepared = prepared(&texts);
        let mut states: BTreeMap<String, State> =
            documents.iter().map(|(_, name, state)| ((*name).to_owned(), state.clone())).collect();
        let seen = |document: &super::documents::Document| {
            let state = states.remove(&document.name).unwrap();
            let known = state != State::KindUnknown;
            DocumentSeen { object: known.then(|| id(&document.kind, &document.name)), state }
        };
        let documents = prepared.documents.iter().map(seen).collect();
        Self {
            object: self::object(object),
            addon: addon(json!({})),
            others: Vec::new(),
            wanted: Wanted::Documents(Box::new(prepared)),
            contact: Contact::Made(Seen { documents, ..Seen::default() }),
        }
    }

    fn leftover(mut self, leftover: Leftover) -> Self {
        if let Contact::Made(seen) = &mut self.contact {
            seen.leftovers.push(leftover);
        }
        self
    }

    fn plan(&self) -> super::Planned {
        let cluster = cluster();
        plan(&Observed {
            now: NOW.parse::<Timestamp>().unwrap(),
            object: &self.object,
            addon: Some(&self.addon),
            cluster: Some(&cluster),
            others: &self.others.iter().collect::<Vec<_>>(),
            wanted: &self.wanted,
            contact: &self.contact,
            chart: &super::chart::ChartSeen::default(),
        })
    }

    /// What is done, in short; and reason and message of `Ready`.
    fn check(&self, actions: &[&str], reason: Reason, message: &str) {
        let plan = self.plan();
        let short = |action: &Action| match action {
            Action::AddFinalizer => "finalizer".to_owned(),
            Action::Record(objects) => format!("record {}", objects.len()),
            Action::Apply { object, force, .. } => {
                format!("{} {}", if *force { "force" } else { "apply" }, object.name)
            }
            Action::Adopt { object, .. } => format!("adopt {}", object.name),
            Action::Delete(deletion) => format!("delete {}", deletion.object.name),
            Action::RemoveFinalizer => "release".to_owned(),
            Action::RecordRelease(_) | Action::Run(_) | Action::DropInputs(_) => panic!("{action:?}"),
        };
        assert_eq!(plan.actions.iter().map(short).collect::<Vec<_>>(), actions);
        let ready = &plan.status.conditions[0];
        assert_eq!(
            (ready.type_.as_str(), ready.reason.as_str(), ready.message.as_str()),
            ("Ready", reason.as_str(), message)
        );
    }
}

fn applied(names: &[(&str, &str)]) -> Value {
    let inventory: Vec<AppliedObject> = names.iter().map(|(kind, name)| id(kind, name)).collect();
    json!({"status": {"revision": "r", "inventory": inventory}})
}

#[test]
fn what_is_about_to_be_applied_is_written_down_first_and_namespaces_come_before_what_is_in_them() {
    let world = World::seen(
        json!({"metadata": {"finalizers": []}}),
        &[(CONFIG, "c", State::Missing), (NAMESPACE, "n", State::Missing)],
    );
    let actions = ["finalizer", "record 2", "apply n", "apply c"];
    world.check(&actions, Reason::Applying, "applying Namespace n and 1 object more");
    let plan = world.plan();
    assert_eq!(plan.status.revision, None, "not as a whole");
    assert_eq!(plan.status.conditions[2].message, "Namespace n: it is not there");
}

#[test]
fn definitions_are_established_before_anything_else_is_applied() {
    let waits = World::seen(
        json!({}),
        &[
            (WIDGET, "w", State::KindUnknown),
            (CONFIG, "c", State::Missing),
            (DEFINITION, "widgets.e.x", State::Missing),
        ],
    );
    let message = "applying CustomResourceDefinition widgets.e.x and 2 objects more";
    waits.check(&["record 2", "apply widgets.e.x"], Reason::Applying, message);
    let not_yet = World::seen(
        applied(&[("CustomResourceDefinition", "widgets.e.x")]),
        &[(WIDGET, "w", State::KindUnknown), (DEFINITION, "widgets.e.x", there_definition(false))],
    );
    not_yet.check(&[], Reason::Applying, "applying Widget w");
    let established = World::seen(
        applied(&[("CustomResourceDefinition", "widgets.e.x")]),
        &[(WIDGET, "w", State::Missing), (DEFINITION, "widgets.e.x", there_definition(true))],
    );
    established.check(&["record 2", "apply w"], Reason::Applying, "applying Widget n/w");
    let unknown = World::seen(json!({}), &[(WIDGET, "w", State::KindUnknown)]);
    let message = "Widget w: the cluster knows no Widget of e.x/v1 (ConfigMap agent: all.yaml, document 1)";
    unknown.check(&[], Reason::KindNotFound, message);
}

fn there_definition(established: bool) -> State {
    let status = if established { "True" } else { "False" };
    let live = live(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "status": {"conditions": [{"type": "Established", "status": status}]},
    }));
    State::There { live, trial: Trial::Same }
}

#[test]
fn at_rest_nothing_is_done_and_the_revision_is_shown() {
    let world = World::seen(applied(&[("ConfigMap", "c")]), &[(CONFIG, "c", there(Trial::Same))]);
    world.check(&[], Reason::Applied, "1 object as wanted");
    let found = World::seen(json!({"metadata": {"finalizers": []}}), &[(CONFIG, "c", there(Trial::Same))]);
    found.check(&["finalizer"], Reason::Applied, "1 object as wanted");
    let mut again = World::seen(json!({}), &[(CONFIG, "c", there(Trial::Same))]);
    let first = world.plan().status;
    assert_eq!((first.revision.as_deref(), first.version.as_deref(), first.objects), (Some("r"), Some("1"), 1));
    assert!(first.applied_at.is_some() && first.digest.is_some());
    again.object.status = Some(first.clone());
    assert_eq!(again.plan().status, first, "nothing is written");
}

#[test]
fn what_a_person_changed_is_put_back_and_what_another_manager_set_is_named() {
    let conflict = |manager: &str| FieldConflict { manager: manager.into(), is_update: true, field: ".data.x".into() };
    let state = |managers: &[&str]| there(Trial::Conflicts(managers.iter().map(|manager| conflict(manager)).collect()));
    let config = |state: State| World::seen(applied(&[("ConfigMap", "c")]), &[(CONFIG, "c", state)]);
    config(state(&["kubectl-edit"])).check(&["force c"], Reason::Applying, "applying ConfigMap n/c");
    config(there(Trial::Differs)).check(&["apply c"], Reason::Applying, "applying ConfigMap n/c");
    let named = |managers: &str| format!("ConfigMap n/c: {managers}; spec.conflicts: Force would take the fields over");
    let message = named("helm has set .data.x; kubectl-edit has set .data.x");
    config(state(&["kubectl-edit", "helm"])).check(&[], Reason::FieldConflict, &message);
    // One that was there before is not taken over from whoever has made it.
    let foreign = State::There {
        live: Box::new(json!({"metadata": {}})),
        trial: Trial::Conflicts(vec![conflict("kubectl-create")]),
    };
    config(foreign.clone()).check(&[], Reason::FieldConflict, &named("kubectl-create has set .data.x"));
    let mut forced = config(foreign);
    forced.addon = addon(json!({"spec": {"conflicts": "Force"}}));
    forced.check(&["force c"], Reason::Applying, "applying ConfigMap n/c");
}

#[test]
fn a_problem_with_one_object_keeps_no_other_from_being_applied_and_nothing_is_pruned_meanwhile() {
    let other = "{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: n}}";
    let old = Leftover { object: id("Secret", "old"), live: Some(live(json!({}))), refused: None };
    let world = World::seen(
        applied(&[("ConfigMap", "c"), ("Secret", "old")]),
        &[(CONFIG, "c", State::Refused("no such field".into())), (other, "d", State::Missing)],
    );
    let message = "ConfigMap n/c: no such field (ConfigMap agent: all.yaml, document 1)";
    world.leftover(old).check(&["record 3", "apply d"], Reason::ApplyFailed, message);
}

#[test]
fn what_left_the_source_is_pruned_and_stays_in_the_inventory_until_it_is_gone() {
    let world = |live: Option<Box<Value>>| {
        World::seen(applied(&[("ConfigMap", "c"), ("Secret", "old")]), &[(CONFIG, "c", there(Trial::Same))])
            .leftover(Leftover { object: id("Secret", "old"), live, refused: None })
    };
    let pruning = world(Some(live(json!({}))));
    pruning.check(&["delete old"], Reason::Pruning, "deleting Secret n/old, which left the source");
    assert_eq!(pruning.plan().status.inventory.len(), 2);
    let gone = world(None);
    gone.check(&[], Reason::Applied, "1 object as wanted");
    assert_eq!(gone.plan().status.inventory.len(), 1);
}

#[test]
fn one_object_has_one_addon() {
    let mut world = World::seen(json!({}), &[(CONFIG, "c", State::Missing)]);
    let mut other = applied(&[("ConfigMap", "c")]);
    merge(&mut other, json!({"metadata": {"name": "other-a"}, "spec": {"addonRef": {"name": "other"}}}));
    world.others = vec![object(other.clone())];
    let message = "ConfigMap n/c is an object of Addon other, too: take it out of one of them";
    world.check(&[], Reason::ObjectTaken, message);
    assert!(world.plan().status.inventory.is_empty(), "it is not ours");
    // Both have written it down at the same time: the first by name has it.
    let mut world = World::seen(applied(&[("ConfigMap", "c")]), &[(CONFIG, "c", State::Missing)]);
    world.others = vec![object(other.clone())];
    world.check(&["apply c"], Reason::Applying, "applying ConfigMap n/c");
    merge(&mut other, json!({"metadata": {"name": "a-a"}}));
    world.others = vec![object(other)];
    world.check(&[], Reason::ObjectTaken, message);
}

#[test]
fn objects_have_their_time_to_become_healthy() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: n}}";
    let of = |phase: &str, since: &str| {
        let live = live(json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": phase}}));
        let status = json!({"status": {
            "revision": "r", "digest": prepared(&[pod]).digest, "appliedAt": since, "inventory": [id("Pod", "p")],
            "conditions": [{"type": "Healthy", "status": "False", "reason": "X", "message": "", "lastTransitionTime": since}],
        }});
        World::seen(status, &[(pod, "p", State::There { live, trial: Trial::Same })])
    };
    of("Pending", "2026-01-01T00:51:00Z").check(&[], Reason::ObjectProgressing, "Pod n/p: its phase is Pending");
    let late = of("Pending", "2026-01-01T00:50:00Z");
    late.check(&[], Reason::ObjectUnhealthy, "Pod n/p: its phase is Pending");
    assert_eq!(late.plan().status.conditions[3].type_, "Stalled");
    of("Failed", "2026-01-01T00:59:00Z").check(&[], Reason::ObjectUnhealthy, "Pod n/p: its phase is Failed");
    let well = of("Succeeded", "2026-01-01T00:59:00Z");
    well.check(&[], Reason::Applied, "1 object as wanted");
    assert_eq!(of("Pending", "2026-01-01T00:51:00Z").plan().status.unhealthy.unwrap().object, "Pod n/p");
}

#[test]
fn health_checks_of_the_user_count_too() {
    let check = |kind: &str, expression: &str| {
        let mut world = World::seen(applied(&[("ConfigMap", "c")]), &[(CONFIG, "c", there(Trial::Same))]);
        let Wanted::Documents(prepared) = &mut world.wanted else { panic!() };
        let check = json!({"apiVersion": "v1", "kind": kind, "expression": expression, "message": "no"});
        prepared.health_checks = vec![serde_json::from_value(check).unwrap()];
        world
    };
    check("ConfigMap", "object.metadata.uid == 'x'").check(&[], Reason::Applied, "1 object as wanted");
    check("ConfigMap", "object.metadata.uid == 'y'").check(&[], Reason::ObjectProgressing, "ConfigMap n/c: no");
    let message = "spec.healthChecks[0]: the Addon has no v1 Secret: correct it, or take it out";
    check("Secret", "true").check(&[], Reason::HealthCheckInvalid, message);
}

#[test]
fn while_it_is_paused_nothing_is_written_and_what_differs_is_counted() {
    let mut world = World::seen(applied(&[("ConfigMap", "c")]), &[(CONFIG, "c", there(Trial::Differs))]);
    world.addon = addon(json!({"spec": {"paused": true}}));
    let message = "paused: 1 object to be written once spec.paused of the Addon is false";
    world.check(&[], Reason::Paused, message);
}

#[test]
fn a_cluster_that_does_not_answer_keeps_its_status() {
    let mut world = World::seen(applied(&[("ConfigMap", "c")]), &[(CONFIG, "c", there(Trial::Same))]);
    world.contact = Contact::Lost("connection refused".into());
    world.check(&[], Reason::ClusterUnreachable, "Cluster a does not answer: connection refused");
    let status = world.plan().status;
    assert_eq!((status.inventory.len(), status.conditions[0].status.as_str()), (1, "Unknown"));
    assert_eq!(status.conditions[3].type_, "Reconciling");
}

#[test]
fn one_that_is_deleted_removes_its_objects_or_leaves_them() {
    let going = |more: Value| {
        let mut object = applied(&[("Namespace", "n"), ("ConfigMap", "c")]);
        merge(&mut object, json!({"metadata": {"deletionTimestamp": NOW, "generation": 2}}));
        merge(&mut object, more);
        let mut world = World::seen(object, &[]);
        world.contact = Contact::Made(Seen {
            documents: Vec::new(),
            leftovers: vec![
                Leftover { object: id("Namespace", "n"), live: Some(live(json!({}))), refused: None },
                Leftover { object: id("ConfigMap", "c"), live: Some(live(json!({}))), refused: None },
            ],
            release: None,
        });
        world
    };
    going(json!({})).check(&["delete c"], Reason::RemovingObjects, "deleting ConfigMap n/c; 2 objects left");
    let left = "2 objects left on the cluster";
    going(json!({"spec": {"deletionPolicy": "Orphan"}})).check(&["release"], Reason::Deleting, left);
    let mut dead = going(json!({}));
    dead.contact = Contact::NotMade;
    let message = "Cluster a does not answer; its objects are removed when it does; to leave them there and forget them: kubectl -n fleet annotate --overwrite clusteraddons.clusterwright.dev agent-a clusterwright.dev/force-remove=2";
    dead.check(&[], Reason::ClusterUnreachable, message);
    let forced = json!({"metadata": {"annotations": {"clusterwright.dev/force-remove": "2"}}});
    dead.object = going(forced).object;
    dead.check(&["release"], Reason::Deleting, left);
    let mut gone = going(json!({}));
    gone.contact = Contact::Made(Seen::default());
    gone.check(&["release"], Reason::RemovingObjects, "all objects are gone");
    let mut paused = going(json!({}));
    paused.addon = addon(json!({"spec": {"paused": true}}));
    paused.check(&[], Reason::Paused, "paused: 2 objects to be removed once spec.paused of the Addon is false");
}

#[test]
fn what_a_clusters_runs_have_applied_becomes_that_of_the_addon_of_its_spec_alone() {
    let of_run = json!({"metadata": {"managedFields": [{"manager": "clusterwright", "operation": "Apply"}]}});
    let state = |trial: Trial| State::There { live: live(of_run.clone()), trial };
    let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n}}";
    let seen = |trial: Trial| World::seen(json!({}), &[(text, "a", state(trial))]);
    let conflict = || Trial::Conflicts(vec![FieldConflict::new("conflict with \"clusterwright\"", ".data")]);
    for trial in [Trial::Same, Trial::Differs, conflict()] {
        let mut world = seen(trial);
        let owner = json!([{
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment", "name": "a", "uid": "c", "controller": true,
        }]);
        world.addon.metadata.owner_references = serde_json::from_value(owner).unwrap();
        world.check(&["record 1", "adopt a"], Reason::Applying, "applying ConfigMap n/a");
    }
    // Of any other Addon it is the object of others.
    let plan = seen(Trial::Same).plan();
    assert!(plan.actions.iter().all(|action| !matches!(action, Action::Adopt { .. })), "{:?}", plan.actions);
}
