//! The council: the control planes and etcd machines of one cluster, and what was done about them.

use crds::cluster_deployment::EtcdTopology;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role, Step};
use crds::{ClusterDeployment, Machine, PlaybookRun, conditions};
use jiff::Timestamp;

use super::{LEAVES_ETCD, is_out};
use crate::attempts::{self, Outcome};
use crate::{provisioning, sentence};

/// Where a Machine's removal stands after its turn has come: reasons of `Deleting`.
const ON_ITS_WAY: [&str; 5] = [
    "WaitsForHooks",
    "Draining",
    LEAVES_ETCD,
    "ClusterUnreachable",
    "DeletesNode",
];
/// With fewer left, a cluster that wants more keeps a machine that is well until another one has come.
const FEW: usize = 2;

/// The control planes and etcd machines of one cluster, and what was done about them.
pub(crate) struct Council<'a> {
    deployment: &'a ClusterDeployment,
    machines: Vec<&'a Machine>,
    runs: &'a [&'a PlaybookRun],
}

impl<'a> Council<'a> {
    pub fn of(
        cluster: &str,
        machines: &[&'a Machine],
        deployment: &'a ClusterDeployment,
        runs: &'a [&'a PlaybookRun],
    ) -> Self {
        let machines = machines
            .iter()
            .copied()
            .filter(|other| other.spec.cluster_name == *cluster && other.spec.role != Role::Worker)
            .collect();
        Self {
            deployment,
            machines,
            runs,
        }
    }

    /// The role whose machines carry etcd's members.
    pub fn etcd_role(&self) -> Option<Role> {
        match self.deployment.spec.etcd.topology {
            EtcdTopology::Stacked => Some(Role::ControlPlane),
            EtcdTopology::Dedicated => Some(Role::Etcd),
            EtcdTopology::External => None,
        }
    }

    pub fn is_of_etcd(&self, machine: &Machine) -> bool {
        Some(machine.spec.role) == self.etcd_role()
    }

    /// Machines whose members etcd counts: those that leave, too, until they have been taken out.
    pub fn members(&self) -> Vec<&'a Machine> {
        let machines = self.machines.iter().copied();
        let counted = |machine: &&Machine| {
            self.is_of_etcd(machine) && is_provisioned(machine) && self.left_at(machine).is_none()
        };
        machines.filter(counted).collect()
    }

    /// The runs that take a machine's member out of etcd.
    pub fn removals(&self, machine: &Machine) -> Vec<&'a PlaybookRun> {
        let runs = self.runs.iter().copied();
        runs.filter(|run| leaves(run).is_some() && leaves(run) == machine.metadata.uid.as_deref())
            .collect()
    }

    pub fn removal_under_way(&self, machine: &Machine) -> Option<&'a PlaybookRun> {
        let removals = self.removals(machine);
        removals.into_iter().find(|run| !attempts::is_over(run))
    }

    /// When a run took it out of etcd, or made another member the only one.
    pub fn left_at(&self, machine: &Machine) -> Option<Timestamp> {
        let removed = self
            .removals(machine)
            .into_iter()
            .filter(|run| has_succeeded(run));
        let made = machine.metadata.creation_timestamp.as_ref();
        let survivor = |run: &PlaybookRun| {
            let survivors = attempts::marks(run);
            survivors
                .values()
                .any(|mark| Some(&mark.uid) == machine.metadata.uid.as_ref())
        };
        let recovered = self
            .recoveries()
            .filter(|run| made < run.metadata.creation_timestamp.as_ref() && !survivor(run));
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
            machine.spec.role == Role::ControlPlane && is_healthy(machine) && !is_leaving(machine)
        };
        let machines = self.machines.iter().copied().filter(works);
        machines.filter(|machine| !knows(machine)).collect()
    }

    /// A run that told this control plane of etcd's members, begun at this time or later.
    fn tellings(&self, machine: &Machine, since: Timestamp) -> Option<&'a PlaybookRun> {
        let host = &machine.spec.host_ref.as_ref()?.name;
        self.runs.iter().copied().find(|run| {
            let made = run.metadata.creation_timestamp.as_ref();
            run.spec.steps.contains(&Step::EtcdEndpoints)
                && made.is_some_and(|made| made.0 >= since)
                && attempts::marks(run)
                    .get(host)
                    .is_some_and(|mark| Some(&mark.uid) == machine.metadata.uid.as_ref())
                && attempts::outcome(run, host) == Outcome::Succeeded
        })
    }

    /// Whether a machine that is being deleted is in nobody's way any more.
    pub fn is_out(&self, machine: &Machine) -> bool {
        let out = if self.is_of_etcd(machine) {
            self.has_left(machine)
        } else {
            is_out(deleting(machine)) || self.is_being_cleaned(machine)
        };
        is_leaving(machine) && (out || !provisioning::was_touched(machine, self.runs))
    }

    /// Whether a run was made to clean it since it is being deleted: everything else is done before.
    fn is_being_cleaned(&self, machine: &Machine) -> bool {
        let host = machine.spec.host_ref.as_ref().map(|host| &host.name);
        self.runs.iter().any(|run| {
            run.spec.steps.contains(&Step::Reset)
                && run.metadata.creation_timestamp >= machine.metadata.deletion_timestamp
                && host.is_some_and(|host| run.spec.hosts.contains(host))
        })
    }

    /// Machines that are being deleted and not out yet.
    pub fn leaving(&self) -> impl Iterator<Item = &'a Machine> {
        let machines = self.machines.iter().copied();
        machines.filter(|machine| is_leaving(machine) && !self.is_out(machine))
    }

    /// Why its removal does not begin, or go on.
    pub fn why_not_yet(&self, machine: &Machine) -> Option<String> {
        if self.deployment.spec.paused {
            let name = self.deployment.metadata.name.as_deref().unwrap_or_default();
            return Some(format!("cluster {name} is paused"));
        }
        let another = || self.another_leaves(machine);
        another()
            .or_else(|| self.run_in_the_way(Some(machine)))
            .or_else(|| self.cannot_do_without(machine))
    }

    fn another_leaves(&self, machine: &Machine) -> Option<String> {
        let turn = |machine: &Machine| {
            (
                !ON_ITS_WAY.contains(&deleting(machine)),
                is_healthy(machine),
                machine.metadata.deletion_timestamp.clone(),
                machine.metadata.name.clone(),
            )
        };
        // One that the cluster cannot do without waits for others to come, and keeps nobody.
        let may_go = |other: &&Machine| is_same(other, machine) || !self.is_kept(other);
        let first = self.leaving().filter(may_go).min_by_key(|other| turn(other))?;
        (turn(first) < turn(machine)).then(|| {
            format!(
                "waits for machine {} to leave first: one control plane or etcd machine changes at a time",
                name_of(first)
            )
        })
    }

    /// A run on a control plane or etcd machine other than this one, unless that one is out already.
    pub fn run_in_the_way(&self, machine: Option<&Machine>) -> Option<String> {
        let in_the_way = |host: &String| {
            self.machines.iter().any(|other| {
                let named = other.spec.host_ref.as_ref();
                named.is_some_and(|named| named.name == *host)
                    && machine.is_none_or(|machine| !is_same(other, machine))
                    && !self.is_out(other)
            })
        };
        let run = self.runs.iter().find(|run| {
            run.spec.intent != Intent::Probe
                && !attempts::is_over(run)
                && run.spec.hosts.iter().any(in_the_way)
        })?;
        Some(format!(
            "waits for run {} on {} to end: one control plane or etcd machine changes at a time",
            run.metadata.name.as_deref().unwrap_or_default(),
            run.spec.hosts.join(", ")
        ))
    }

    /// Whether it stays until another one has come: it is well, and the cluster cannot do without it.
    pub fn is_kept(&self, machine: &Machine) -> bool {
        is_healthy(machine) && self.cannot_do_without(machine).is_some()
    }

    /// Why the cluster cannot do without it now.
    pub fn cannot_do_without(&self, machine: &Machine) -> Option<String> {
        let of_etcd = self.is_of_etcd(machine);
        let counted = |other: &&&Machine| {
            other.spec.role == machine.spec.role
                && is_provisioned(other)
                && match of_etcd {
                    true => self.left_at(other).is_none(),
                    false => !self.is_out(other),
                }
        };
        let peers: Vec<&Machine> = self.machines.iter().filter(counted).copied().collect();
        let others: Vec<&Machine> = peers
            .iter()
            .filter(|other| !is_same(other, machine))
            .copied()
            .collect();
        let well = |machines: &[&Machine]| machines.iter().filter(|other| is_healthy(other)).count();
        let role = machine.spec.role.name();
        if others.is_empty() {
            return Some(format!(
                "QuorumRisk: it is the only {role} machine of the cluster: it stays until another one has joined, or the cluster is deleted"
            ));
        }
        if others.len() < FEW && self.wants(machine.spec.role) > FEW && is_healthy(machine) {
            return Some(format!(
                "QuorumRisk: without it the cluster has {}: it stays until another one has joined",
                sentence::count(others.len(), &format!("{role} machine"))
            ));
        }
        if !of_etcd {
            return (well(&others) == 0).then(|| {
                "QuorumRisk: no other control plane is known to be well: it stays until one is".to_owned()
            });
        }
        for (members, when) in [(&peers, "now"), (&others, "without it")] {
            let (well, needed) = (well(members), members.len() / 2 + 1);
            if well < needed {
                return Some(format!(
                    "QuorumRisk: {when} etcd has {} of which {well} are known to be well, and needs {needed}: it stays until more are",
                    sentence::count(members.len(), "member")
                ));
            }
        }
        None
    }

    fn wants(&self, role: Role) -> usize {
        let spec = &self.deployment.spec;
        let replicas = match role {
            Role::Etcd => spec.etcd.replicas.unwrap_or_default(),
            Role::ControlPlane | Role::Worker => spec.control_plane.replicas,
        };
        usize::try_from(replicas).unwrap_or_default()
    }
}

/// The Machine that a run takes out of etcd.
fn leaves(run: &PlaybookRun) -> Option<&str> {
    let annotations = run.metadata.annotations.as_ref()?;
    let leaves = annotations.get(annotation::LEAVES).map(String::as_str);
    leaves.filter(|_| run.spec.steps.contains(&Step::RemoveEtcdMember))
}

fn has_succeeded(run: &PlaybookRun) -> bool {
    let hosts = &run.spec.hosts;
    let succeeded = |host: &String| attempts::outcome(run, host) == Outcome::Succeeded;
    !hosts.is_empty() && hosts.iter().all(succeeded)
}

fn is_same(one: &Machine, other: &Machine) -> bool {
    one.metadata.uid == other.metadata.uid
}

fn is_leaving(machine: &Machine) -> bool {
    machine.metadata.deletion_timestamp.is_some()
}

fn provisioned_at(machine: &Machine) -> Option<Timestamp> {
    let status = machine.status.as_ref()?;
    status.provisioned_at.as_ref().map(|at| at.0)
}

fn is_provisioned(machine: &Machine) -> bool {
    provisioned_at(machine).is_some()
}

/// Whether it is known to work: by its node, or, where there is none, by its member of etcd, for all that is known.
pub(crate) fn is_healthy(machine: &Machine) -> bool {
    let Some(status) = &machine.status else {
        return false;
    };
    match machine.spec.role {
        Role::Etcd => {
            let healthy = conditions::find(&status.conditions, condition::HEALTHY);
            status.provisioned_at.is_some() && healthy.is_none_or(|healthy| healthy.status != "False")
        }
        Role::ControlPlane | Role::Worker => conditions::is_true(&status.conditions, condition::NODE_READY),
    }
}

/// The reason of `Deleting`, if it says that.
fn deleting(machine: &Machine) -> &str {
    let status = machine.status.as_ref();
    let there = status.and_then(|status| conditions::find(&status.conditions, condition::DELETING));
    there.map_or("", |there| there.reason.as_str())
}

fn name_of(machine: &Machine) -> &str {
    machine.metadata.name.as_deref().unwrap_or_default()
}
