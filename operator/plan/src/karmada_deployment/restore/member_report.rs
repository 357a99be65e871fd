//! What would become of a member once the restored plane propagates to it: read off Works, and off what is in the
//! member. Nothing is written for it.

mod comparison;

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::AppliedObject;
use crds::karmada_deployment::KarmadaMemberReport;
use serde_json::Value;

use super::super::place::object_of;
use super::super::restore_seen::MemberLook;
use crate::message::{count, cut};
use crate::naming::short_hash;
use comparison::{is_managed, is_same, writes_over};

/// Names that a message has of each list.
const NAMED: usize = 5;
/// What the namespace of a member's Works begins with.
const WORKS: &str = "karmada-es-";

/// What would become of one member. All names are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberReport {
    /// Objects that would be created.
    pub created: BTreeSet<String>,
    /// Objects that are there and would get another content: that of the backup.
    pub overwritten: BTreeSet<String>,
    /// Objects that would be deleted: their Works were being deleted when the backup was taken.
    pub deleted: BTreeSet<String>,
    /// Objects that stay, and that nothing in the plane stands for any more: they were propagated after the backup.
    pub orphaned: BTreeSet<String>,
    /// Why it is not known.
    pub unseen: Option<String>,
}

/// What would become of all members, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report(pub BTreeMap<String, MemberReport>);

/// The objects that Works carry to a member.
pub fn carried(works: &[Value], member: &str) -> Vec<AppliedObject> {
    of_member(works, member).flat_map(manifests).map(object_of).collect()
}

/// The kinds of those that Works carry to any member: group, version, kind.
pub fn kinds(works: &[Value]) -> BTreeSet<(String, String, String)> {
    let kind = |manifest: &Value| {
        let object = object_of(manifest);
        (object.group, object.version, object.kind)
    };
    works.iter().flat_map(manifests).map(kind).collect()
}

/// What would become of all members: of those that have Works, and of those that were looked at.
pub(super) fn report(works: &[Value], members: &BTreeMap<String, MemberLook>) -> Report {
    let namespace = |work: &Value| work["metadata"]["namespace"].as_str().map(str::to_owned);
    let with_works = works.iter().filter_map(namespace).filter_map(|name| name.strip_prefix(WORKS).map(str::to_owned));
    let names: BTreeSet<String> = with_works.chain(members.keys().cloned()).collect();
    let of = |name: &String| match members.get(name) {
        Some(Ok(objects)) => compare(works, name, objects),
        Some(Err(why)) => {
            MemberReport { unseen: Some(format!("it does not answer: {why}")), ..MemberReport::default() }
        }
        None => MemberReport {
            unseen: Some("it is not named in spec.members, and so not looked at".to_owned()),
            ..MemberReport::default()
        },
    };
    Report(names.iter().map(|name| (name.clone(), of(name))).collect())
}

fn of_member<'a>(works: &'a [Value], member: &str) -> impl Iterator<Item = &'a Value> {
    let namespace = format!("{WORKS}{member}");
    works.iter().filter(move |work| work["metadata"]["namespace"] == namespace.as_str())
}

fn manifests(work: &Value) -> impl Iterator<Item = &Value> {
    work["spec"]["workload"]["manifests"].as_array().into_iter().flatten()
}

/// Compares what a restored plane has for a member with what is there.
fn compare(works: &[Value], member: &str, objects: &[Value]) -> MemberReport {
    let mut found = MemberReport::default();
    let live: BTreeMap<String, &Value> = objects.iter().map(|object| (title(object), object)).collect();
    let mut carried = BTreeSet::new();
    for work in of_member(works, member) {
        for manifest in manifests(work) {
            let name = title(manifest);
            if let Some(list) = found.list_for(work, manifest, live.get(&name).copied()) {
                list.insert(name.clone());
            }
            carried.insert(name);
        }
    }
    // Two Works for one object: what one deletes is gone, whatever the other one wants.
    found.overwritten.retain(|name| !found.deleted.contains(name));
    found.orphaned.extend(live.into_keys().filter(|name| !carried.contains(name)));
    found
}

/// `Deployment default/nginx`.
fn title(manifest: &Value) -> String {
    let object = object_of(manifest);
    let group = if object.group.is_empty() { String::new() } else { format!(".{}", object.group) };
    match &object.namespace {
        Some(namespace) => format!("{}{group} {namespace}/{}", object.kind, object.name),
        None => format!("{}{group} {}", object.kind, object.name),
    }
}

impl MemberReport {
    /// Where it belongs what a Work does to an object; none: nothing.
    fn list_for(&mut self, work: &Value, manifest: &Value, live: Option<&Value>) -> Option<&mut BTreeSet<String>> {
        let spec = &work["spec"];
        if work["metadata"]["deletionTimestamp"].is_string() {
            let is_kept = spec["preserveResourcesOnDeletion"] == true;
            let list = if is_kept { &mut self.orphaned } else { &mut self.deleted };
            return live.filter(|live| is_managed(live)).map(|_| list);
        }
        if spec["suspendDispatching"] == true {
            return None;
        }
        match live {
            None => Some(&mut self.created),
            Some(live) if writes_over(live, manifest) && !is_same(live, manifest) => Some(&mut self.overwritten),
            Some(_) => None,
        }
    }

    fn lists(&self) -> [(&'static str, &BTreeSet<String>); 4] {
        [
            ("deleted", &self.deleted),
            ("overwritten", &self.overwritten),
            ("created", &self.created),
            ("left without a Work", &self.orphaned),
        ]
    }

    /// In one line: what is lost first.
    pub fn message(&self) -> String {
        if let Some(why) = &self.unseen {
            return why.clone();
        }
        let said = self.lists().into_iter().filter(|(_, names)| !names.is_empty()).map(|(what, names)| {
            let first: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
            let more = names.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{} {what}: {}{more}", count(names.len(), "object"), first.join(", "))
        });
        let said: Vec<String> = said.collect();
        if said.is_empty() { "nothing changes".to_owned() } else { said.join("; ") }
    }
}

impl Report {
    /// What stands for it: another one for every other outcome, and for a member more or less.
    pub fn digest(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (member, report) in &self.0 {
            parts.push(format!("member {member} {}", report.unseen.is_some()));
            for (what, names) in report.lists() {
                parts.extend(names.iter().map(|name| format!("{what} {name}")));
            }
        }
        short_hash(&parts.iter().map(String::as_str).collect::<Vec<_>>(), 12)
    }

    /// As the status has it.
    pub fn members(&self) -> Vec<KarmadaMemberReport> {
        let told = |(name, report): (&String, &MemberReport)| KarmadaMemberReport {
            name: name.clone(),
            message: cut(report.message()),
        };
        self.0.iter().take(256).map(told).collect()
    }
}

#[cfg(test)]
mod tests;
