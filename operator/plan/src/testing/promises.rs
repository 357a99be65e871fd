//! What must be so after every write.

mod control_plane;
mod end;
mod limits;
mod releases;
mod runs;

use std::collections::BTreeSet;

use crds::names::annotation;
use crds::playbook_run::RunPhase;
use crds::step::Intent;
use crds::{Conditions, Machine, ObjectExt, Reason};

use super::world::World;
use crate::attempts;

impl World {
    pub fn check(&self) {
        self.check_claims();
        self.check_requests();
        self.check_runs();
        for cluster in &self.clusters {
            self.check_lock(cluster);
            self.check_one_change(cluster);
            self.check_drains(cluster);
        }
        self.check_installs();
        self.check_authorities();
        self.check_reasons();
    }

    /// A Machine has one Host, a Host one Machine, and a claim holds its Host.
    fn check_claims(&self) {
        for machine in &self.machines {
            let holds = |uid: &str| uid == machine.uid();
            let held =
                self.hosts.iter().filter(|host| host.spec.claim_ref.as_ref().is_some_and(|claim| holds(&claim.uid)));
            assert!(held.count() <= 1, "{} holds two Hosts", machine.name());
        }
        let mut named = BTreeSet::new();
        let machines = self.machines.iter().filter(|_| self.profile.only_sets_make_machines);
        for host in machines.filter_map(|machine| machine.spec.host_ref.as_ref()) {
            assert!(named.insert(&host.name), "two Machines on {}", host.name);
        }
        for host in self.hosts.iter().filter(|host| host.spec.claim_ref.is_some()) {
            let finalizers = host.metadata.finalizers.as_ref();
            assert!(finalizers.is_some_and(|all| !all.is_empty()), "nothing holds {}, which is claimed", host.name());
        }
    }

    /// No request has more Machines than it asks for, and what it answered stands.
    fn check_requests(&self) {
        for request in &self.requests {
            let is_its =
                |machine: &&Machine| machine.annotation(annotation::MACHINE_REQUEST_UID) == Some(request.uid());
            let live = self.machines.iter().filter(is_its).filter(|machine| !machine.is_deleting());
            let (has, wanted) = (live.count(), request.spec.wanted());
            assert!(has <= wanted, "{} has {has} Machines and wants {wanted}\n{}", request.name(), self.report());
            let answers = ["Fulfilled", "PartiallyFulfilled", "Failed"].map(|type_| request.is_true(type_));
            let given = answers.iter().filter(|given| **given).count();
            let is_answered = request.status.as_ref().is_some_and(|status| status.answered_at.is_some());
            assert_eq!(given, usize::from(is_answered), "{}: {:?}", request.name(), request.status);
        }
    }

    /// A machine is installed once.
    fn check_installs(&self) {
        let installs = self.runs.iter().filter(|run| {
            run.spec.intent == Intent::Install
                && run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Succeeded)
        });
        let mut installed = BTreeSet::new();
        for host in installs.flat_map(|run| attempts::targets(run).into_values()) {
            assert!(installed.insert(host.uid), "a cluster is installed once");
        }
    }

    /// Every condition has a reason of the table, which has it on conditions of that type.
    fn check_reasons(&self) {
        let of_clusters = self.clusters.iter().flat_map(|cluster| cluster.deployment.conditions());
        let of_machines = self.machines.iter().flat_map(Conditions::conditions);
        let of_sets = self.sets.iter().flat_map(Conditions::conditions);
        let of_hosts = self.hosts.iter().flat_map(Conditions::conditions);
        let of_requests = self.requests.iter().flat_map(Conditions::conditions);
        let all = of_clusters.chain(of_requests).chain(of_machines).chain(of_sets).chain(of_hosts);
        // But for those of other controllers, for which readiness gates wait.
        for stated in all.filter(|stated| !stated.type_.contains('/')) {
            let (type_, reason) = (&stated.type_, &stated.reason);
            let known = Reason::from_name(reason).unwrap_or_else(|| panic!("{type_}: {reason} is in no table"));
            assert!(
                known.may_stand_on(type_),
                "crds/src/reason/table.rs: {reason} stands on {type_}: {}",
                stated.message
            );
        }
    }
}
