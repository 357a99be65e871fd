//! History: what runs have made of etcd's members, and which API servers were told.

use crds::ObjectExt;
use crds::names::annotation;
use crds::step::{Role, Step};
use crds::{Machine, PlaybookRun};
use jiff::Timestamp;

use super::EtcdMembership;
use super::health::{is_leaving, provisioned_at};
use crate::attempts::{self, Outcome};
use crate::settings::has_brought;

impl<'a> EtcdMembership<'a> {
    /// The runs that take a machine's member out of etcd.
    pub fn removals(&self, machine: &Machine) -> Vec<&'a PlaybookRun> {
        self.removals_of(machine.uid())
    }

    /// The same, by the UID of a Machine that may be gone.
    pub fn removals_of(&self, uid: &str) -> Vec<&'a PlaybookRun> {
        let runs = self.runs.iter().copied();
        runs.filter(|run| leaves(run) == Some(uid)).collect()
    }

    pub fn removal_under_way(&self, machine: &Machine) -> Option<&'a PlaybookRun> {
        let removals = self.removals(machine);
        removals.into_iter().find(|run| !attempts::is_over(run))
    }

    /// When a run took it out of etcd, or made another member the only one.
    pub fn left_at(&self, machine: &Machine) -> Option<Timestamp> {
        let removed = self.removals(machine).into_iter().filter(|run| has_succeeded(run));
        let made = machine.created_at();
        let survivor = |run: &PlaybookRun| {
            let survivors = attempts::targets(run);
            survivors.values().any(|target| Some(&target.uid) == machine.metadata.uid.as_ref())
        };
        let recovered = self.recoveries().filter(|run| made < run.created_at() && !survivor(run));
        removed.chain(recovered).filter_map(attempts::ended_at).max()
    }

    /// Runs that made one member the only one.
    pub fn recoveries(&self) -> impl Iterator<Item = &'a PlaybookRun> {
        let recovers = |run: &&PlaybookRun| run.spec.steps.contains(&Step::RecoverEtcd) && has_succeeded(run);
        self.runs.iter().copied().filter(recovers)
    }

    /// Whether it is out of etcd, and the API servers know.
    pub fn has_left(&self, machine: &Machine) -> bool {
        let left_at = self.left_at(machine);
        left_at.is_some_and(|since| self.untold(since).is_empty())
    }

    /// When etcd's members changed last, for all that is known.
    pub fn changed_at(&self) -> Option<Timestamp> {
        let removed = self.runs.iter().copied().filter(|run| leaves(run).is_some());
        let removed = removed.filter(|run| has_succeeded(run)).chain(self.recoveries());
        let joined = self.machines.iter().filter(|machine| self.is_of_etcd(machine));
        let joined = joined.filter_map(|machine| provisioned_at(machine));
        removed.filter_map(attempts::ended_at).chain(joined).max()
    }

    /// Control planes that work and whose API servers know only the members of a dedicated etcd from before this time.
    pub fn untold(&self, since: Timestamp) -> Vec<&'a Machine> {
        if self.etcd_role() != Some(Role::Etcd) {
            return Vec::new();
        }
        let knows = |machine: &Machine| {
            provisioned_at(machine).is_some_and(|at| at >= since) || self.tellings(machine, since).is_some()
        };
        let works = |machine: &&Machine| {
            machine.spec.role == Role::ControlPlane && self.is_healthy(machine) && !is_leaving(machine)
        };
        let machines = self.machines.iter().copied().filter(works);
        machines.filter(|machine| !knows(machine)).collect()
    }

    /// A run that told this control plane of etcd's members, begun at this time or later.
    fn tellings(&self, machine: &Machine, since: Timestamp) -> Option<&'a PlaybookRun> {
        let host = &machine.spec.host_ref.as_ref()?.name;
        self.runs.iter().copied().find(|run| {
            knows_of(run, since)
                && attempts::targets(run)
                    .get(host)
                    .is_some_and(|target| Some(&target.uid) == machine.metadata.uid.as_ref())
                && (attempts::outcome(run, host) == Outcome::Succeeded || has_brought(run, PLANE_API_SERVER, host))
        })
    }
}

/// The part of a plane on machines whose flags name etcd's members.
const PLANE_API_SERVER: &str = "apiserver";

/// Whether a run tells of etcd's members as they have been since then. The moment of the change that it was made for
/// says so: the time of its creation is of another clock.
pub(crate) fn knows_of(run: &PlaybookRun, since: Timestamp) -> bool {
    let change = run.annotation(annotation::ETCD_CHANGE);
    let change = change.and_then(|change| change.parse::<Timestamp>().ok());
    let made = run.created_at().map(|made| made.0);
    let is_of_plane = run.spec.parts().any(|part| part.part == PLANE_API_SERVER);
    let tells = !run.spec.intent.changes_nothing() && (run.spec.steps.contains(&Step::EtcdEndpoints) || is_of_plane);
    tells && change.or(made).is_some_and(|known| known >= since)
}

/// The Machine that a run takes out of etcd.
pub(super) fn leaves(run: &PlaybookRun) -> Option<&str> {
    let leaves = run.annotation(annotation::LEAVES);
    leaves.filter(|_| run.spec.steps.contains(&Step::RemoveEtcdMember))
}

pub(super) fn has_succeeded(run: &PlaybookRun) -> bool {
    let hosts = &run.spec.hosts;
    let succeeded = |host: &String| attempts::outcome(run, host) == Outcome::Succeeded;
    !hosts.is_empty() && hosts.iter().all(succeeded)
}
