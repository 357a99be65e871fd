//! A member that is to be taken out of etcd, because its machine leaves or was forgotten: whether the next attempt is
//! due, and which of the members that stay carries it out. Nothing is needed of its own machine.

use std::collections::BTreeMap;

use crds::cluster_deployment::ForgottenMachine;
use crds::names::annotation;
use crds::step::{Intent, Step};
use crds::{Machine, PlaybookRun};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::attempts::{self, RetryDecision, Terms};
use crate::cluster_machine::ClusterMachine;
use crate::departure::{self, EtcdMembership};
use crate::run_request::{Asker, Attempt, RunRequest, Target};

/// Whose member is taken out.
pub(crate) struct Leaver<'a> {
    /// UID of its Machine.
    pub uid: &'a str,
    /// Its Host, whose name the member has.
    pub host: &'a str,
    /// What messages call it.
    pub title: String,
    /// What people ask for.
    retries: Vec<String>,
}

impl<'a> Leaver<'a> {
    /// One whose machine leaves; none: it never had a Host.
    pub fn of_machine(terms: &Terms, machine: &ClusterMachine<'a>) -> Option<Self> {
        Some(Self {
            uid: machine.uid(),
            host: &machine.machine.spec.host_ref.as_ref()?.name,
            title: machine.title(),
            retries: terms.asked_retries(machine.machine),
        })
    }

    /// One whose Machine is gone.
    pub fn of_forgotten(terms: &Terms, forgotten: &'a ForgottenMachine) -> Self {
        Self {
            uid: &forgotten.uid,
            host: &forgotten.host,
            title: departure::title_of_forgotten(forgotten),
            retries: terms.retry.clone().into_iter().collect(),
        }
    }

    /// The run that takes it out now.
    pub fn under_way(&self, membership: &EtcdMembership<'a>) -> Option<&'a PlaybookRun> {
        membership.removals_of(self.uid).into_iter().find(|run| !attempts::is_over(run))
    }

    /// Whether the next attempt is due.
    pub fn retry_decision(&self, terms: &Terms, membership: &EtcdMembership<'_>, now: Timestamp) -> RetryDecision {
        let removals = membership.removals_of(self.uid);
        let tried = attempts::tried_by(&removals, |run| {
            let host = run.spec.hosts.first()?;
            let target = attempts::targets(run).remove(host)?;
            Some((host.clone(), target))
        });
        let policy = terms.limited(self.retries.clone()).stopped_is_final();
        attempts::retry_decision(&tried, &policy, now)
    }

    /// Another member that is well, another one at each attempt: one may be dead without anyone's knowing. Those that
    /// leave later do it only where none stays. None: no such member is known. `with_host` finds a Machine's Host.
    pub fn executor<'m>(
        &self,
        membership: &EtcdMembership<'_>,
        with_host: impl Fn(&Machine) -> Option<ClusterMachine<'m>>,
        attempt: i32,
    ) -> Option<ClusterMachine<'m>> {
        let members = membership.members();
        let members = members.iter().filter_map(|machine| with_host(machine));
        let is_well = |machine: &ClusterMachine<'_>| machine.host.is_some() && membership.is_healthy(machine.machine);
        let mut others: Vec<ClusterMachine<'m>> =
            members.filter(|machine| machine.uid() != self.uid && is_well(machine)).collect();
        if others.iter().any(|machine| machine.deleted_at().is_none()) {
            others.retain(|machine| machine.deleted_at().is_none());
        }
        let index = usize::try_from(attempt).unwrap_or_default();
        others.get(index % others.len().max(1)).copied()
    }

    /// The members that etcd counts without it.
    pub fn others<'m>(&self, membership: &EtcdMembership<'m>) -> Vec<&'m Machine> {
        let members = membership.members().into_iter();
        members.filter(|other| other.metadata.uid.as_deref() != Some(self.uid)).collect()
    }

    /// The run by which this member takes it out; `etcd`: what a run must know of the others.
    pub fn run(
        &self,
        asker: &Asker<'_>,
        by: (ClusterMachine<'_>, Option<String>),
        etcd: BTreeMap<String, Value>,
        attempt: i32,
    ) -> PlaybookRun {
        let mut vars = etcd;
        vars.insert("etcd_member_remove".into(), json!({ "name": self.host, "host": self.host }));
        let targets: [Target<'_>; 1] = [by];
        // Whoever carries it out, it is the same attempt.
        let request = RunRequest {
            name_of: Some(vec!["member".to_owned(), self.uid.to_owned()]),
            vars,
            ..RunRequest::new(Intent::Remove, vec![Step::RemoveEtcdMember], &targets, Attempt::from_start(attempt))
        };
        let mut run = request.run(asker);
        let annotations = run.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::LEAVES.into(), self.uid.to_owned());
        run
    }
}

/// Members whose Machines were forgotten, in the order in which they are taken out: those that are not known to be well
/// first, then those that were tried less, since which of them lives is not always known.
pub(crate) fn in_order<'a>(membership: &EtcdMembership<'a>) -> Vec<&'a ForgottenMachine> {
    let mut forgotten = membership.forgotten();
    forgotten.sort_by_key(|one| {
        let tried = membership.removals_of(&one.uid).len();
        (one.node_ready, tried, one.host.clone(), one.uid.clone())
    });
    forgotten
}
