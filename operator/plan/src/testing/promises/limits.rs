//! Promises about how many machines are repaired, replaced and taken away while others are sick.

use crds::names::{annotation, condition};
use crds::step::{Intent, Step};
use crds::{Machine, ObjectExt, PlaybookRun, conditions};
use jiff::Timestamp;

use super::super::cluster::SimulatedCluster;
use super::super::world::World;

impl World {
    /// A repair begins only where a machine is sick, and few are.
    pub(in super::super) fn check_new_run(&self, cluster: &str, run: &PlaybookRun) {
        if run.spec.intent == Intent::Repair && !run.spec.steps.contains(&Step::RecoverEtcd) {
            self.check_budget(cluster, run.name());
        }
    }

    /// A machine is replaced only where few are sick, and never while the cluster's API is out of reach.
    pub(in super::super) fn check_replacement(&self, cluster: &str, machine: &Machine) {
        let goes_on = self.find_cluster(cluster).is_some_and(|cluster| cluster.stays() && cluster.is_installed());
        let is_sick = is_provisioned(machine) && states(machine, condition::NODE_READY, "False", self.now);
        if goes_on && is_sick && !machine.is_deleting() {
            self.check_budget(cluster, &format!("the replacement of {}", machine.name()));
        }
    }

    /// Known as sick, by what the Machines themselves say, are no more than may be; unless a person has approved it.
    fn check_budget(&self, cluster: &str, what: &str) {
        let approvals = self.find_cluster(cluster).and_then(|known| known.deployment.annotation(annotation::APPROVE));
        if approvals.is_some_and(|approvals| approvals.contains("repair.")) {
            return;
        }
        self.check_sick(cluster, what, self.now);
        let reached = self.reached_since(cluster);
        assert!(
            self.profile.max_unhealthy.is_none() || reached != Some(None),
            "{what}, with the cluster's API out of reach"
        );
    }

    /// A set takes away a machine that is well only where few are sick, for all that could be known for some turns.
    pub(in super::super) fn check_removal(&self, machine: &Machine) {
        let known = self.now - self.profile.tick * 3;
        let cluster = &machine.spec.cluster_name;
        let goes_on = self.find_cluster(cluster).is_some_and(SimulatedCluster::stays);
        let reached = self.reached_since(cluster).flatten().is_some_and(|since| since <= known);
        if goes_on && reached && states(machine, condition::READY, "True", known) {
            self.check_sick(cluster, &format!("{} is well and goes", machine.name()), known);
        }
    }

    fn check_sick(&self, cluster: &str, what: &str, known: Timestamp) {
        let Some(percent) = self.profile.max_unhealthy else {
            return;
        };
        let mut stay = self.machines_of(cluster);
        stay.retain(|machine| !machine.is_deleting() && is_provisioned(machine));
        let sick = stay.iter().filter(|machine| states(machine, condition::NODE_READY, "False", known)).count();
        let allowed = (stay.len() * percent).div_ceil(100).max(1);
        assert!(sick <= allowed, "{what}, with {sick} of {} sick\n{}", stay.len(), self.report());
    }

    /// Since when the cluster's API is reached, as its object says: `Some(None)` if it is not, and `None` if nothing is
    /// said of it.
    fn reached_since(&self, cluster: &str) -> Option<Option<Timestamp>> {
        let status = self.find_cluster(cluster)?.cluster.as_ref()?.status.as_ref()?;
        let reachable = conditions::find(&status.conditions, condition::REACHABLE);
        Some(reachable.filter(|stated| stated.status == "True").map(|stated| stated.last_transition_time.0))
    }
}

fn is_provisioned(machine: &Machine) -> bool {
    machine.status.as_ref().is_some_and(|status| status.provisioned_at.is_some())
}

/// Whether the Machine has a condition with this status, at this time already.
fn states(machine: &Machine, type_: &str, status: &str, known: Timestamp) -> bool {
    let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let found = conditions::find(conditions, type_);
    found.is_some_and(|found| found.status == status && found.last_transition_time.0 <= known)
}
