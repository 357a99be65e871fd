//! What happens: machines, networks, runs and people.

use crds::Machine;
use crds::ObjectExt;
use crds::names::annotation;
use crds::step::Role;
use proptest::prelude::*;

use super::executor::Fate;
use super::namespace::{Namespace, of_cluster};

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
    /// A person wishes so many workers.
    Workers(i32),
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
    pub fn happens(&self, namespace: &mut Namespace) {
        let cluster = namespace.looked_at.clone();
        namespace.last.push(format!("{} {self:?}", namespace.now));
        match self {
            Self::Time(looks) => namespace.run_for(*looks),
            Self::Dies(index) => {
                let machine = metal(namespace, *index);
                machine.alive = false;
            }
            Self::Returns(index) => metal(namespace, *index).boot(),
            Self::Sickens(index) => metal(namespace, *index).sick = true,
            Self::Breaks(index) => metal(namespace, *index).broken = true,
            Self::Cut => namespace.town(&cluster).cut = true,
            Self::Healed => namespace.town(&cluster).cut = false,
            Self::Workers(count) => namespace.workers(&cluster, *count),
            Self::Planes(count) => {
                namespace.host_request(&cluster, |spec| spec.control_plane.replicas = *count);
                namespace.tell(&cluster, annotation::APPROVE);
            }
            Self::Delete(index) => {
                if let Some(machine) = nth(namespace, *index) {
                    namespace.delete_machine(&machine);
                }
            }
            Self::Forget(index) => {
                // Who forgets the last control plane has no cluster any more.
                let machine = nth(namespace, *index).filter(|machine| may_be_forgotten(namespace, machine));
                if let Some(machine) = machine {
                    namespace.delete_machine(&machine);
                    namespace.force_remove(&machine.metadata.name.unwrap_or_default());
                }
            }
            Self::SetUpAnew(index) => {
                let count = namespace.hosts.len();
                let host = namespace.hosts[index % count].clone();
                let is_quarantined = host.spec.quarantine.is_some() && host.spec.claim_ref.is_none();
                if is_quarantined {
                    let machine = metal(namespace, *index);
                    machine.wipe();
                    machine.boot();
                    machine.boots = false;
                }
            }
            Self::Pause(paused) => namespace.host_request(&cluster, |spec| spec.paused = *paused),
            Self::Approve => namespace.tell(&cluster, annotation::APPROVE),
            Self::Unschedulable(index) => {
                let count = namespace.hosts.len();
                namespace.hosts[index % count].spec.unschedulable = true;
            }
            Self::Fate(fate) => namespace.fates.push(*fate),
        }
        namespace.check();
    }
}

fn metal(namespace: &mut Namespace, index: usize) -> &mut super::metal::Metal {
    let name = format!("h{}", index % namespace.hosts.len() + 1);
    namespace.metal.get_mut(&name).unwrap()
}

fn nth(namespace: &Namespace, index: usize) -> Option<Machine> {
    let machines = of_cluster(&namespace.machines, &namespace.looked_at);
    machines.get(index % machines.len().max(1)).map(|machine| (*machine).clone())
}

/// A worker, or a control plane beside which another one stays.
fn may_be_forgotten(namespace: &Namespace, machine: &Machine) -> bool {
    let machines = of_cluster(&namespace.machines, &machine.spec.cluster_name);
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
        (0usize..8).prop_map(Fate::Fails),
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
        3 => (0i32..5).prop_map(Event::Workers),
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
        1 => (0usize..8).prop_map(Event::Delete),
        2 => (0usize..8).prop_map(Event::Forget),
        1 => (0usize..9).prop_map(Event::SetUpAnew),
        2 => prop_oneof![Just(1), Just(3), Just(5)].prop_map(Event::Planes),
        1 => Just(Event::Approve),
    ]
}
