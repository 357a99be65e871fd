//! The machines of a plane as they are looked at in one pass: their lock, what is under way with them, and how far each
//! part is.

use crds::cluster_deployment::{EtcdStatus, ReplicaCounts};
use crds::etcd_restore::StagedBackup;
use crds::karmada_deployment::KarmadaComponentStatus;
use crds::step::Role;
use crds::{KarmadaDeploymentStatus, Reason};

use super::super::component::Component;
use super::super::observed::Observed;
use super::super::release::{RELEASES, Release};
use super::super::upgrade::Upgrade;
use super::act::Act;
use super::deletion::{self, Deletion};
use super::history::prune;
use super::lock::{grant, last_token};
use super::operations::{compare_store, defragment_etcd, propose};
use super::order::Part;
use super::part_wanted::{Basis, PartWanted};
use super::placed::{placed, version};
use super::proposal::Round;
use super::restore_runs::{self, RestoreRun};
use super::rollout::{Progress, progress};
use super::state::PlaneState;
use super::taken_off::taken_off;
use super::wanted_parts::wanted_parts;
use crate::Next;
use crate::addon::Problem;
use crate::etcd::{self, Finding};
use crate::lock::Lock;
use crate::lock::tokens::Tokens;
use crate::store::verdict::Verdict;

/// The machines of a plane, and what is done about them.
pub(in super::super) struct Machines<'a> {
    pub state: PlaneState<'a>,
    pub round: Round,
    /// How far each part is, in the order of the stages; none: a file of one is not there yet.
    pub(super) parts: Vec<(PartWanted, Progress<'a>)>,
    /// How many members are to have an estimator.
    members_with_estimator: usize,
}

impl<'a> Machines<'a> {
    /// Looks at them; none: the plane is in Pods. `has_spec`: whether the spec can be met, and it is known with what
    /// the plane begins.
    pub fn observe(observed: &Observed<'a>, upgrade: Option<&Upgrade>, has_spec: bool) -> Option<Self> {
        observed.object.spec.binary.as_ref()?;
        let state = PlaneState::observe(observed);
        let basis = Basis {
            object: observed.object,
            release: Release::wanted(&observed.object.spec).or(RELEASES.last())?,
            material: observed.material,
            seats: &observed.facts.seats,
            upgrade,
        };
        let tokens = last_token(&state);
        let lock = grant(&state, &tokens);
        let round = propose(&state, &basis, Round::new(&state, lock, tokens, has_spec));
        let wanted = if state.installed.is_some() { wanted_parts(&state, &basis) } else { None };
        let how_far = |one: PartWanted| {
            let progress = held(progress(&state, &one), one.is_held);
            (one, progress)
        };
        let parts = wanted.unwrap_or_default().into_iter().map(how_far).collect();
        Some(Self { state, round, parts, members_with_estimator: observed.material.estimators.len() })
    }

    /// What is done beside the stages, in any case.
    pub fn acts(&self) -> Vec<Act> {
        self.round.acts.iter().cloned().chain(prune(&self.state, &self.round.lock)).collect()
    }

    /// What is said first of the machines themselves.
    pub fn problem(&self) -> Option<&Problem> {
        self.round.problems.first()
    }

    /// When something of it is due by time alone.
    pub fn next(&self) -> Next {
        let parts = self.parts.iter().filter_map(|(_, progress)| progress.retry_at);
        parts.fold(self.round.next, |next, at| next.or_sooner(self.state.until(at)))
    }

    /// Whether etcd stands on the machines that the plane began with.
    pub fn are_installed(&self) -> bool {
        self.state.installed.is_some()
    }

    /// Whether such a run of the restore that is under way went well.
    pub fn has(&self, run: RestoreRun) -> bool {
        restore_runs::has(&self.state, run)
    }

    /// Whether etcd has the data of before, in a restore that is under way.
    pub fn are_back(&self) -> bool {
        restore_runs::is_untouched(&self.state) || self.has(RestoreRun::Undo)
    }

    /// What lies ready on the machines for the restore that is under way.
    pub fn staged(&self) -> Option<StagedBackup> {
        restore_runs::staged(&self.state)
    }

    /// What is taken off machines, once nothing in the plane leads to it any more.
    pub fn taken_off(&self) -> Option<(Option<Act>, String)> {
        // Who asks estimators is changed first, and their members let go of them.
        let asks = |part: Part| matches!(part, Part::Component(component) if component.asks_estimators());
        let is_asked = self.parts.iter().any(|(one, how_far)| asks(one.part) && !how_far.is_done());
        let (run, message) = taken_off(&self.state, is_asked || self.members_with_estimator > 0)?;
        let may_work = self.round.might_work();
        Some((run.filter(|_| may_work), message))
    }

    /// Whether nothing is done to them, nor to the plane, until they were compared with the store.
    pub fn are_held(&self) -> bool {
        self.state.comparison.holds()
    }

    /// What is said of the store; none: nothing speaks against it.
    pub fn store(&self) -> Option<Verdict> {
        compare_store::verdict(&self.state)
    }

    /// What makes the objects say what the machines do, once that is approved.
    pub fn adopted(&self) -> Vec<Act> {
        compare_store::adopt(&self.state)
    }

    /// The end of the machines; none: they are all given back.
    pub fn end(&self, cleans: bool) -> Option<Deletion> {
        deletion::plan(&self.state, &self.round.tokens, cleans)
    }

    /// Puts what is known of the machines into the status.
    pub fn record(&self, status: &mut KarmadaDeploymentStatus) {
        let Round { lock, tokens, forgotten, .. } = &self.round;
        let (Lock { operations, last_token, .. }, tokens): (&Lock, &Tokens) = (lock, tokens);
        status.operations = operations.clone();
        status.last_token = *last_token;
        status.initial_token = status.initial_token.or(tokens.initial());
        let comparison = &self.state.comparison;
        let given = self.state.object.status.as_ref().and_then(|status| status.last_token).or(tokens.last());
        status.comparisons = comparison.comparisons(&status.comparisons, given);
        status.compared_since = comparison.since().or(status.compared_since.take());
        status.approved_contradictions = comparison.approved();
        status.forgotten = forgotten.clone();
        status.first_installed_at = self.state.installed.clone();
        status.machines = Some(self.counts(Role::ControlPlane, self.state.cluster.control_planes));
        let dedicated = self.state.cluster.etcd_machines;
        status.etcd_machines = (dedicated > 0).then(|| self.counts(Role::Etcd, dedicated));
        let etcd = self.state.etcd_status().filter(|etcd| *etcd != EtcdStatus::default());
        status.etcd = etcd.or(status.etcd.take());
    }

    fn counts(&self, role: Role, wanted: i32) -> ReplicaCounts {
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let ready = number(self.state.working(role).filter(|machine| machine.is_ready()).count());
        let is_outdated = |name: &str| self.parts.iter().any(|(_, progress)| progress.names().contains(&name));
        let updated = self.state.working(role).filter(|machine| !is_outdated(machine.name()));
        ReplicaCounts {
            replicas: wanted,
            ready_replicas: ready,
            updated_replicas: number(updated.count()),
            summary: format!("{ready}/{wanted}"),
        }
    }

    /// `3 of 3 members are ready`; or what is wrong with them.
    pub fn etcd(&self) -> Result<String, Problem> {
        let Some(role) = self.state.cluster.etcd_role else {
            return Ok("the API server works with the etcd of spec.etcd.external".to_owned());
        };
        let membership = self.state.membership();
        let members = membership.members();
        let (all, well) = (members.len(), members.iter().filter(|member| membership.is_healthy(member)).count());
        let wanted = match role {
            Role::Etcd => self.state.cluster.etcd_machines,
            Role::ControlPlane | Role::Worker => self.state.cluster.control_planes,
        };
        let said = format!("{well} of {wanted} members are ready");
        if well == all && usize::try_from(wanted) == Ok(all) {
            let finding = self.state.etcd_status().as_ref().and_then(etcd::finding).filter(Finding::is_grave);
            return finding.map_or(Ok(said), |finding| Err(defragment_etcd::advised(&self.state, &finding)));
        }
        let sick = members.iter().find(|member| !membership.is_healthy(member));
        let sick = sick.and_then(|member| self.state.member(member));
        let of_sick = sick.map(|machine| format!(": {}: {}", machine.title(), machine.says()));
        // What is said of the machines says which one is to come, and why it does not.
        let of_missing = || self.problem().map(|problem| format!(": {}", problem.message));
        let of = of_sick.or_else(of_missing).unwrap_or_default();
        let reason = if all == 0 { Reason::ComponentStarting } else { Reason::EtcdUnhealthy };
        Err(Problem { reason, message: format!("etcd: {said}{of}") })
    }

    /// The components as they are on the machines.
    pub fn components(&self) -> Vec<KarmadaComponentStatus> {
        let spec = &self.state.object.spec;
        let shown = |component: Component| {
            component.replicas(spec)?;
            let part = Part::of(component);
            let has: Vec<_> = self
                .state
                .working(part.role(spec))
                .filter_map(|machine| placed(&machine, part, self.state.seen.runs))
                .collect();
            let ready = has.iter().filter(|placed| placed.is_well == Some(true)).count();
            let oldest = has.iter().filter_map(|placed| version(&placed.digest)).min();
            let wanted = match part.role(spec) {
                Role::Etcd => self.state.cluster.etcd_machines,
                Role::ControlPlane | Role::Worker => self.state.cluster.control_planes,
            };
            Some(KarmadaComponentStatus {
                name: component.name().to_owned(),
                version: oldest.map(str::to_owned),
                replicas: wanted,
                ready_replicas: i32::try_from(ready).unwrap_or(i32::MAX),
            })
        };
        Component::ALL.into_iter().filter_map(shown).chain(self.shown_estimators()).collect()
    }

    /// The estimators of all members in one row, each of them once for each machine; none: there are none.
    fn shown_estimators(&self) -> Option<KarmadaComponentStatus> {
        let part = Part::Estimators;
        let machines = || self.state.working(part.role(&self.state.object.spec));
        let has: Vec<_> = machines().filter_map(|machine| placed(&machine, part, self.state.seen.runs)).collect();
        let oldest = has.iter().filter_map(|placed| version(&placed.digest)).min();
        let seen = machines().filter_map(|machine| {
            let mut parts = machine.machine.status.as_ref()?.parts.iter();
            parts.find(|seen| seen.name == part.name() && seen.healthy).map(|seen| seen.members.len())
        });
        let ready: usize = seen.map(|sick| self.members_with_estimator.saturating_sub(sick)).sum();
        let members = i32::try_from(self.members_with_estimator).unwrap_or(i32::MAX);
        (members > 0).then(|| KarmadaComponentStatus {
            name: Component::Estimator.name().to_owned(),
            version: oldest.map(str::to_owned),
            replicas: members.saturating_mul(self.state.cluster.control_planes),
            ready_replicas: i32::try_from(ready).unwrap_or(i32::MAX),
        })
    }
}

/// Of what an upgrade has yet to come to nobody waits for it to work.
fn held(progress: Progress<'_>, is_held: bool) -> Progress<'_> {
    if !is_held {
        return progress;
    }
    let aside = progress.aside.or(progress.unhealthy);
    Progress { unhealthy: None, failed: None, aside, ..progress }
}
