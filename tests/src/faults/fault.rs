//! What can go wrong on purpose, and where in an install.

use crds::step::{Intent, Step};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The processes of the executor's Pod get SIGKILL.
    PodKilled,
    /// The executor's Pod is deleted, with its grace period.
    PodDeleted,
    /// The node of the executor's Pod loses its power.
    NodeLost,
    /// The operator that leads gets SIGKILL.
    OperatorKilled,
    /// The operator that leads is stopped for longer than its lease, and then wakes up.
    OperatorStopped,
    /// The machine's network cable is pulled, and plugged in again.
    NetworkCut,
    /// The machine reboots.
    HostRebooted,
    /// The machine loses its power, and gets it back.
    PowerLost,
    /// The ClusterDeployment's spec is changed.
    SpecEdited,
    /// The frozen inputs of the run are deleted.
    InputsDeleted,
    /// The SSH Secret gets a key that opens nothing.
    SecretRotated,
    /// The machine answers with another host key.
    HostKeySwapped,
    /// The machine's disk is full.
    DiskFull,
    /// A person cancels the run.
    RunCanceled,
    /// A person deletes the ClusterDeployment.
    ClusterDeleted,
}

/// How an install that was hit has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Ready, by itself.
    Ready,
    /// Halted as a person wished; Ready after that person asked for it.
    ReadyOnRequest,
    /// Gone, its machines clean and back in the pool.
    Gone,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 15] = [
        Fault::PodKilled,
        Fault::PodDeleted,
        Fault::NodeLost,
        Fault::OperatorKilled,
        Fault::OperatorStopped,
        Fault::NetworkCut,
        Fault::HostRebooted,
        Fault::PowerLost,
        Fault::SpecEdited,
        Fault::InputsDeleted,
        Fault::SecretRotated,
        Fault::HostKeySwapped,
        Fault::DiskFull,
        Fault::RunCanceled,
        Fault::ClusterDeleted,
    ];

    /// The name on the command line, in the table, and of the namespace.
    pub fn name(self) -> &'static str {
        match self {
            Fault::PodKilled => "pod-sigkill",
            Fault::PodDeleted => "pod-delete",
            Fault::NodeLost => "node-lost",
            Fault::OperatorKilled => "operator-sigkill",
            Fault::OperatorStopped => "operator-sigstop",
            Fault::NetworkCut => "network-cut",
            Fault::HostRebooted => "host-reboot",
            Fault::PowerLost => "power-loss",
            Fault::SpecEdited => "spec-edited",
            Fault::InputsDeleted => "inputs-deleted",
            Fault::SecretRotated => "secret-rotated",
            Fault::HostKeySwapped => "host-key-swapped",
            Fault::DiskFull => "disk-full",
            Fault::RunCanceled => "run-canceled",
            Fault::ClusterDeleted => "cluster-deleted",
        }
    }

    /// The fault of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Where it strikes: in every step, or once, in the longest.
    pub fn places(self) -> Vec<Place> {
        match self {
            every if every < Fault::SpecEdited => Place::all(),
            // A full disk shows where images are unpacked.
            Fault::DiskFull => vec![Place::UNPACKS],
            _ => vec![Place::LONGEST],
        }
    }

    /// Whether it hits the operator, which all installs share, and no run.
    pub fn hits_the_operator(self) -> bool {
        matches!(self, Fault::OperatorKilled | Fault::OperatorStopped)
    }

    /// Whether the run that was under way must end as if nothing had happened.
    pub fn leaves_the_run_alone(self) -> bool {
        self.hits_the_operator() || matches!(self, Fault::SpecEdited | Fault::InputsDeleted | Fault::SecretRotated)
    }

    /// How the install has to end.
    pub fn ending(self) -> Ending {
        match self {
            Fault::RunCanceled => Ending::ReadyOnRequest,
            Fault::ClusterDeleted => Ending::Gone,
            _ => Ending::Ready,
        }
    }
}

/// A step of the install or of the join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// `Install` or `Join`.
    pub intent: Intent,
    /// The step.
    pub step: Step,
}

impl Place {
    /// The step that takes longest.
    pub const LONGEST: Place = Place { intent: Intent::Install, step: Step::ControlPlane };

    /// The step that fills the disk.
    pub const UNPACKS: Place = Place { intent: Intent::Install, step: Step::ContainerRuntime };

    /// Every step of an install of 1 + 1, in order.
    pub fn all() -> Vec<Place> {
        let install = [
            Step::BootstrapOs,
            Step::Preflight,
            Step::Prepare,
            Step::ContainerRuntime,
            Step::Etcd,
            Step::ControlPlane,
            Step::Network,
            Step::Addons,
            Step::PostInstall,
        ];
        let join = [
            Step::BootstrapOs,
            Step::Preflight,
            Step::Prepare,
            Step::ContainerRuntime,
            Step::Node,
            Step::Network,
            Step::PostInstall,
        ];
        let of =
            |intent, steps: &[Step]| -> Vec<Place> { steps.iter().map(|step| Place { intent, step: *step }).collect() };
        [of(Intent::Install, &install), of(Intent::Join, &join)].concat()
    }

    /// The first step of a run of this intent.
    pub fn first(intent: Intent) -> Option<Self> {
        Self::all().into_iter().find(|place| place.intent == intent)
    }

    /// The place of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|place| place.to_string() == name)
    }

    /// Where it is in the order of an install; later places have more.
    pub fn rank(self) -> usize {
        let all = Self::all();
        all.iter().position(|place| *place == self).unwrap_or(all.len())
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}/{}", self.intent.spec().slug, self.step))
    }
}

#[cfg(test)]
mod tests {
    use super::{Ending, Fault, Place};

    #[test]
    fn every_fault_and_every_place_is_found_by_its_name() {
        for fault in Fault::ALL {
            assert_eq!(Fault::from_name(fault.name()), Some(fault));
        }
        for place in Place::all() {
            assert_eq!(Place::from_name(&place.to_string()), Some(place));
        }
        assert_eq!(Fault::from_name("rain"), None);
    }

    #[test]
    fn eight_faults_strike_in_every_step_and_seven_once() {
        let (every, once): (Vec<Fault>, Vec<Fault>) =
            Fault::ALL.into_iter().partition(|fault| fault.places().len() > 1);
        assert_eq!((every.len(), once.len()), (8, 7));
        assert!(every.iter().all(|fault| fault.places() == Place::all()));
        let elsewhere = once.iter().filter(|fault| fault.places() != [Place::LONGEST]);
        assert_eq!(elsewhere.collect::<Vec<_>>(), [&Fault::DiskFull]);
    }

    #[test]
    fn a_later_step_ranks_higher_and_the_join_comes_after_the_install() {
        let ranks: Vec<usize> = Place::all().into_iter().map(Place::rank).collect();
        assert!(ranks.is_sorted(), "{ranks:?}");
        assert_eq!(ranks.len(), 16);
    }

    #[test]
    fn only_what_a_person_asked_for_keeps_a_cluster_from_being_ready_by_itself() {
        let others = Fault::ALL.into_iter().filter(|fault| fault.ending() != Ending::Ready);
        assert_eq!(others.collect::<Vec<_>>(), [Fault::RunCanceled, Fault::ClusterDeleted]);
    }
}
