//! What happens to a fleet, by machines, networks, runs and people.

use std::rc::Rc;

use crds::cluster_deployment::{Approval, MaintenanceWindow};
use crds::machine::DrainReason;
use crds::node_metadata::{LabelValue, Taint, TaintEffect};
use crds::placement::WorkerSet;
use crds::step::Role;
use crds::{Host, Machine, ObjectExt};
use proptest::prelude::*;

use crate::testing::{Fate, World};

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// Nothing, for so many looks.
    Time(usize),
    /// A machine loses its power.
    Dies(usize),
    /// It has it again.
    Returns(usize),
    /// Its kubelet stops.
    Sickens(usize),
    /// Runs on it fail from now on.
    Breaks(usize),
    /// The operator and the cluster do not see each other.
    Cut,
    /// They do again.
    Healed,
    /// No operator works for some minutes.
    Gap,
    /// A person wishes so many workers.
    Workers(i32),
    /// A person wishes other labels and taints of the workers.
    Metadata(usize),
    /// A person begins to work on a machine, or has ended.
    Maintain(usize, bool),
    /// A person wishes the next minor of Kubernetes, or the next patch.
    Upgrade(bool),
    /// A person wishes to approve of what disrupts machines, or not any more.
    Manual(bool),
    /// A person has machines disrupted in the first minutes of each hour only.
    Windows,
    /// A person wishes so many control planes.
    Planes(i32),
    /// A person deletes a Machine.
    Delete(usize),
    /// A person forgets a Machine.
    Forget(usize),
    /// A person sets a machine up anew that is kept out of the pool.
    SetUpAnew(usize),
    /// A person pauses the cluster, or lets it go on.
    Pause(bool),
    /// A person approves of what is asked.
    Approve,
    /// A person keeps a Host out of the pool.
    Unschedulable(usize),
    /// What becomes of the next run.
    Fate(Fate),
}

impl Event {
    pub fn happens(&self, world: &mut World) {
        let cluster = world.name().to_owned();
        world.log(Rc::new(self.clone()));
        match self {
            Self::Time(looks) => world.run_for(*looks),
            Self::Dies(index) => world.kill(&host(world, *index)),
            Self::Returns(index) => world.boot(&host(world, *index)),
            Self::Sickens(index) => drop(world.sick_nodes.insert(host(world, *index))),
            Self::Breaks(index) => world.always_fails.push(host(world, *index)),
            Self::Cut => world.cut = true,
            Self::Healed => world.cut = false,
            Self::Gap => world.resumed_at = Some(world.time().0),
            Self::Workers(count) => world.scale_workers(&cluster, *count),
            Self::Metadata(number) => world.change_spec(&cluster, |spec| set_metadata(&mut spec.workers[0], *number)),
            Self::Maintain(index, begins) => {
                if let Some(machine) = nth(world, *index) {
                    let drain_for = begins.then_some(DrainReason::Maintenance).into_iter().collect();
                    world.drain_for(machine.name(), drain_for);
                }
            }
            Self::Upgrade(minor) => upgrade(world, &cluster, *minor),
            Self::Manual(asks) => world.change_spec(&cluster, |spec| {
                spec.approval = if *asks { Approval::Manual } else { Approval::Automatic };
            }),
            Self::Windows => world.change_spec(&cluster, |spec| {
                let (schedule, time_zone) = ("0 * * * *".into(), "Etc/UTC".into());
                spec.rollout.windows = vec![MaintenanceWindow { schedule, time_zone, duration_minutes: 10 }];
            }),
            Self::Planes(count) => {
                world.change_spec(&cluster, |spec| spec.control_plane.replicas = *count);
                world.approve_next(&cluster);
            }
            Self::Delete(index) => {
                if let Some(machine) = nth(world, *index) {
                    world.mark_deleted(&machine);
                }
            }
            Self::Forget(index) => {
                // Who forgets the last control plane has no cluster any more.
                let machine = nth(world, *index).filter(|machine| may_be_forgotten(world, machine));
                if let Some(machine) = machine {
                    world.mark_deleted(&machine);
                    world.force_remove(&machine.metadata.name.unwrap_or_default());
                }
            }
            Self::SetUpAnew(index) => {
                let host = host(world, *index);
                let is_kept = |there: &&Host| there.name() == host && there.spec.claim_ref.is_none();
                let kept = world.hosts.iter().find(is_kept);
                if kept.is_some_and(|host| host.spec.quarantine.is_some()) {
                    world.wipe(&host);
                    world.revive(&host);
                }
            }
            Self::Pause(paused) => world.change_spec(&cluster, |spec| spec.paused = *paused),
            Self::Approve => world.approve_next(&cluster),
            Self::Unschedulable(index) => {
                let count = world.hosts.len();
                world.hosts[index % count].spec.unschedulable = true;
            }
            Self::Fate(fate) => world.fates.push(*fate),
        }
        world.check();
    }
}

fn set_metadata(set: &mut WorkerSet, number: usize) {
    let name = format!("key-{number}");
    set.labels = [(name.clone(), LabelValue("x".into()))].into();
    set.taints =
        (0..number).map(|_| Taint { key: name.clone(), value: None, effect: TaintEffect::NoSchedule }).collect();
    set.taints.dedup();
}

/// From the version whose rollout has begun, once all machines have that: the API server and the planner refuse the
/// rest.
fn upgrade(world: &mut World, cluster: &str, is_minor: bool) {
    let status = world.select(cluster).deployment.status.clone().unwrap_or_default();
    let wanted = world.deployment.spec.kubernetes_version.to_string();
    let all = status.kubernetes_version;
    if status.started_kubernetes_version.is_none_or(|started| started.to_string() != wanted)
        || all != Some(wanted.clone())
    {
        return;
    }
    let numbers: Vec<u32> = wanted.split('.').map(|number| number.parse().unwrap()).collect();
    let (minor, patch) = if is_minor { (numbers[1] + 1, 0) } else { (numbers[1], numbers[2] + 1) };
    world.change_spec(cluster, |spec| spec.kubernetes_version = format!("1.{minor}.{patch}").parse().unwrap());
}

fn host(world: &World, index: usize) -> String {
    format!("h{}", index % world.hosts.len() + 1)
}

fn nth(world: &World, index: usize) -> Option<Machine> {
    let machines = world.machines_of(world.name());
    machines.get(index % machines.len().max(1)).map(|machine| (*machine).clone())
}

/// A worker, or a control plane beside which another one stays.
fn may_be_forgotten(world: &World, machine: &Machine) -> bool {
    let machines = world.machines_of(&machine.spec.cluster_name);
    let stays = |other: &&Machine| {
        let status = other.status.as_ref();
        other.spec.role == Role::ControlPlane
            && other.metadata.uid != machine.metadata.uid
            && !other.is_deleting()
            && status.is_some_and(|status| status.provisioned_at.is_some())
    };
    machine.spec.role != Role::ControlPlane || machines.into_iter().any(|other| stays(&other))
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        (0usize..8).prop_map(Fate::FailsAfter),
        (0usize..8).prop_map(Fate::Lost),
        Just(Fate::NotStarted),
        Just(Fate::Well),
    ]
}

/// What happens to a cluster whose control plane is left alone.
pub fn of_workers() -> impl Strategy<Value = Event> {
    // The first machines by name are the control planes'.
    let machine = 2usize..9;
    prop_oneof![
        6 => (1usize..40).prop_map(Event::Time),
        2 => machine.clone().prop_map(Event::Dies),
        2 => machine.clone().prop_map(Event::Returns),
        2 => machine.clone().prop_map(Event::Sickens),
        1 => machine.clone().prop_map(Event::Breaks),
        1 => Just(Event::Cut),
        1 => Just(Event::Healed),
        1 => Just(Event::Gap),
        3 => (0i32..5).prop_map(Event::Workers),
        2 => (0usize..3).prop_map(Event::Metadata),
        2 => prop::bool::ANY.prop_map(Event::Upgrade),
        1 => prop::bool::ANY.prop_map(Event::Manual),
        1 => Just(Event::Windows),
        2 => (1usize..6, prop::bool::ANY).prop_map(|(index, begins)| Event::Maintain(index, begins)),
        1 => (1usize..6).prop_map(Event::Delete),
        1 => (1usize..6).prop_map(Event::Forget),
        1 => machine.clone().prop_map(Event::SetUpAnew),
        1 => prop::bool::ANY.prop_map(Event::Pause),
        1 => machine.prop_map(Event::Unschedulable),
        2 => fate().prop_map(Event::Fate),
    ]
}

/// What happens to a cluster, and to its control plane too.
pub fn of_all() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => of_workers(),
        2 => (0usize..9).prop_map(Event::Dies),
        2 => (0usize..9).prop_map(Event::Returns),
        1 => (0usize..9).prop_map(Event::Sickens),
        1 => (0usize..8, prop::bool::ANY).prop_map(|(index, begins)| Event::Maintain(index, begins)),
        1 => (0usize..8).prop_map(Event::Delete),
        2 => (0usize..8).prop_map(Event::Forget),
        1 => (0usize..9).prop_map(Event::SetUpAnew),
        2 => prop_oneof![Just(1), Just(3), Just(5)].prop_map(Event::Planes),
        1 => Just(Event::Approve),
    ]
}
