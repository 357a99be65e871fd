//! Departure: whether a control plane or etcd machine of a cluster that goes on may leave it now. One at a time, never
//! below a majority of etcd's members, and none while another is joining.

use crds::cluster_deployment::EtcdTopology;
use crds::names::{annotation, condition};
use crds::step::{Intent, Role, Step};
use crds::{ClusterDeployment, Machine, PlaybookRun, conditions};
use jiff::Timestamp;

use crate::attempts::{self, Outcome};
use crate::provisioning;

/// Where a machine that is being deleted stands with the control plane and etcd that it is to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// There is nothing to leave, and nothing to wait for.
    NotAMember,
    /// Nothing is done to it yet; why, as a sentence.
    WaitsForTurn(String),
    /// It is its turn. Once its Pods are away it says so with the reason `LeavesEtcd`, and is taken out of etcd.
    MayGo,
    /// It is being taken out of etcd; how far that is, as a sentence.
    UnderWay(String),
    /// It is a member no more.
    Left,
}

/// Where a Machine's removal stands after its turn has come: reasons of `Deleting`.
const ON_ITS_WAY: [&str; 5] = [
    "WaitsForHooks",
    "Draining",
    LEAVES_ETCD,
    "ClusterUnreachable",
    "DeletesNode",
];
/// Reasons of `Deleting` once the cluster has no part in the machine any more.
const OUT: [&str; 3] = ["WaitsForReset", "ReleasesHost", "HostReleased"];
/// Reason of `Deleting` of a machine that waits to be taken out of etcd.
pub const LEAVES_ETCD: &str = "LeavesEtcd";

/// Decides for a Machine that is being deleted, from the Machines and runs of its cluster (others are passed over).
pub fn of(
    machine: &Machine,
    machines: &[&Machine],
    deployment: &ClusterDeployment,
    runs: &[&PlaybookRun],
) -> Departure {
    let goes_on = deployment.metadata.deletion_timestamp.is_none();
    let installed = deployment
        .status
        .as_ref()
        .is_some_and(|status| status.installed_at.is_some());
    if machine.spec.role == Role::Worker
        || !goes_on
        || !installed
        || !provisioning::was_touched(machine, runs)
    {
        return Departure::NotAMember;
    }
    let council = Council::of(machine, machines, deployment, runs);
    let is_member = council.is_of_etcd(machine);
    if is_member && council.has_left(machine) {
        return Departure::Left;
    }
    if let Some(run) = council.removal_under_way(machine) {
        return Departure::UnderWay(format!("run {} takes it out of etcd", name_of_run(run)));
    }
    match council.why_not_yet(machine) {
        Some(why) => Departure::WaitsForTurn(why),
        None if is_member => Departure::MayGo,
        None => Departure::NotAMember,
    }
}

/// The control planes and etcd machines of one cluster, and what was done about them.
struct Council<'a> {
    deployment: &'a ClusterDeployment,
    machines: Vec<&'a Machine>,
    runs: &'a [&'a PlaybookRun],
}

impl<'a> Council<'a> {
    fn of(
        machine: &Machine,
        machines: &[&'a Machine],
        deployment: &'a ClusterDeployment,
        runs: &'a [&'a PlaybookRun],
    ) -> Self {
        let cluster = &machine.spec.cluster_name;
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

    /// Whether machines of this one's role carry etcd's members.
    fn is_of_etcd(&self, machine: &Machine) -> bool {
        let role = match self.deployment.spec.etcd.topology {
            EtcdTopology::Stacked => Role::ControlPlane,
            EtcdTopology::Dedicated => Role::Etcd,
            EtcdTopology::External => return false,
        };
        machine.spec.role == role
    }

    fn removals(&self, machine: &Machine) -> impl Iterator<Item = &'a PlaybookRun> {
        let uid = machine.metadata.uid.clone();
        self.runs.iter().copied().filter(move |run| {
            let annotations = run.metadata.annotations.as_ref();
            let leaves = annotations.and_then(|annotations| annotations.get(annotation::LEAVES));
            run.spec.steps.contains(&Step::RemoveEtcdMember) && leaves.is_some() && leaves == uid.as_ref()
        })
    }

    fn removal_under_way(&self, machine: &Machine) -> Option<&'a PlaybookRun> {
        self.removals(machine).find(|run| !attempts::is_over(run))
    }

    /// When a run took it out of etcd, or made another member the only one.
    fn left_at(&self, machine: &Machine) -> Option<Timestamp> {
        let removed = self
            .removals(machine)
            .filter(|run| has_succeeded(run))
            .filter_map(attempts::ended_at);
        let made = machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let recovered = self.runs.iter().filter(|run| {
            let began = run.metadata.creation_timestamp.as_ref().map(|time| time.0);
            let survivors = attempts::marks(run);
            run.spec.steps.contains(&Step::RecoverEtcd)
                && has_succeeded(run)
                && made < began
                && survivors
                    .values()
                    .all(|mark| Some(&mark.uid) != machine.metadata.uid.as_ref())
        });
        let recovered = recovered.filter_map(|run| attempts::ended_at(run));
        removed.chain(recovered).max()
    }

    fn has_left(&self, machine: &Machine) -> bool {
        self.left_at(machine).is_some()
    }

    /// Whether a machine that is being deleted is in nobody's way any more.
    fn is_out(&self, machine: &Machine) -> bool {
        let out = if self.is_of_etcd(machine) {
            self.has_left(machine)
        } else {
            OUT.contains(&deleting(machine))
        };
        is_leaving(machine) && (out || !provisioning::was_touched(machine, self.runs))
    }

    fn why_not_yet(&self, machine: &Machine) -> Option<String> {
        if self.deployment.spec.paused {
            let name = self.deployment.metadata.name.as_deref().unwrap_or_default();
            return Some(format!("cluster {name} is paused"));
        }
        self.another_leaves(machine)
            .or_else(|| self.another_run(machine))
            .or_else(|| self.quorum_risk(machine))
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
        let first = self
            .machines
            .iter()
            .filter(|other| is_leaving(other) && !self.is_out(other))
            .filter(|other| !is_same(other, machine))
            .min_by_key(|other| turn(other))?;
        (turn(first) < turn(machine)).then(|| {
            format!(
                "waits for machine {} to leave first: one control plane or etcd machine changes at a time",
                name_of(first)
            )
        })
    }

    /// A run on another control plane or etcd machine, unless that one is out already.
    fn another_run(&self, machine: &Machine) -> Option<String> {
        let in_the_way = |host: &String| {
            self.machines.iter().any(|other| {
                let named = other.spec.host_ref.as_ref();
                named.is_some_and(|named| named.name == *host)
                    && !is_same(other, machine)
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
            name_of_run(run),
            run.spec.hosts.join(", ")
        ))
    }

    /// Why the cluster cannot do without it now.
    fn quorum_risk(&self, machine: &Machine) -> Option<String> {
        let of_role = |other: &&&Machine| other.spec.role == machine.spec.role && !self.is_out(other);
        let peers: Vec<&Machine> = self
            .machines
            .iter()
            .filter(of_role)
            .filter(|other| provisioned(other))
            .copied()
            .collect();
        let others: Vec<&Machine> = peers
            .iter()
            .filter(|other| !is_same(other, machine))
            .copied()
            .collect();
        let healthy = |machines: &[&Machine]| machines.iter().filter(|other| is_healthy(other)).count();
        let role = machine.spec.role.name();
        if others.is_empty() {
            return Some(format!(
                "QuorumRisk: it is the only {role} machine of the cluster: it stays until another one has joined, or the cluster is deleted"
            ));
        }
        if !self.is_of_etcd(machine) {
            return (healthy(&others) == 0).then(|| {
                "QuorumRisk: no other control plane is known to be well: it stays until one is".to_owned()
            });
        }
        for (members, when) in [(&peers, "now"), (&others, "without it")] {
            let (well, needed) = (healthy(members), members.len() / 2 + 1);
            if well < needed {
                return Some(format!(
                    "QuorumRisk: {when} etcd has {} of which {well} are known to be well, and needs {needed}: it stays until more are",
                    crate::sentence::count(members.len(), "member")
                ));
            }
        }
        None
    }
}

fn has_succeeded(run: &PlaybookRun) -> bool {
    let hosts = &run.spec.hosts;
    !hosts.is_empty()
        && hosts
            .iter()
            .all(|host| attempts::outcome(run, host) == Outcome::Succeeded)
}

fn is_same(one: &Machine, other: &Machine) -> bool {
    one.metadata.uid == other.metadata.uid
}

fn is_leaving(machine: &Machine) -> bool {
    machine.metadata.deletion_timestamp.is_some()
}

fn provisioned(machine: &Machine) -> bool {
    let status = machine.status.as_ref();
    status.is_some_and(|status| status.provisioned_at.is_some())
}

/// Whether it is known to work: by its node, or, where there is none, for all that is known.
fn is_healthy(machine: &Machine) -> bool {
    let Some(status) = &machine.status else {
        return false;
    };
    match machine.spec.role {
        Role::Etcd => status.provisioned_at.is_some(),
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

fn name_of_run(run: &PlaybookRun) -> &str {
    run.metadata.name.as_deref().unwrap_or_default()
}
