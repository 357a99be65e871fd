//! A machine that differs from what is wanted of it.

use crds::step::Step;

use crate::cluster_machine::ClusterMachine;
use crate::drift::restarts;

/// A machine on which steps are to be played again.
#[derive(Clone)]
pub(super) struct Drifted<'a> {
    pub machine: ClusterMachine<'a>,
    /// In the order in which they are played.
    pub steps: Vec<Step>,
    /// By what the runs are known that do so.
    pub key: String,
    /// How often that was done.
    pub attempts: usize,
}

impl Drifted<'_> {
    /// Whether something that serves may restart.
    pub fn is_disruptive(&self) -> bool {
        self.steps.iter().any(|step| restarts(*step))
    }

    /// `container-runtime, node`.
    pub fn named(&self) -> String {
        self.steps.iter().map(Step::name).collect::<Vec<_>>().join(", ")
    }
}
