//! How the cluster is, as its Cluster object tells.

use crds::conditions;
use crds::names::condition;
use jiff::Timestamp;

use super::ClusterState;

impl ClusterState<'_> {
    /// Whether a component of the cluster is healthy, and what it says; none: it was not looked at.
    pub fn component(&self, name: &str) -> Option<(bool, String)> {
        let status = self.observed.cluster?.status.as_ref()?;
        let mut components = status.components.iter();
        let component = components.find(|component| component.name == name)?;
        let message = component.message.clone();
        Some((component.healthy, message.unwrap_or_else(|| "unhealthy".into())))
    }

    /// What is wrong with etcd; none: nothing that is known.
    pub fn etcd_problem(&self) -> Option<String> {
        let (healthy, message) = self.component("etcd")?;
        (!healthy).then_some(message)
    }

    /// Why nothing changes etcd's members or joins: without etcd the API answers, and takes nobody in.
    pub fn waits_for_etcd(&self) -> Option<String> {
        let problem = self.etcd_problem()?;
        Some(format!("waits for etcd to be well: {problem}"))
    }

    /// Why nothing joins a cluster that is known not to answer: it would be refused, halfway through.
    pub fn waits_for_api(&self) -> Option<String> {
        let status = self.observed.cluster?.status.as_ref()?;
        let reachable = conditions::find(&status.conditions, condition::REACHABLE)?;
        (reachable.status == "False").then(|| format!("waits for the API of the cluster: {}", reachable.message))
    }

    /// Whether its API answers.
    pub fn is_reachable(&self) -> bool {
        let status = self.observed.cluster.and_then(|cluster| cluster.status.as_ref());
        status.is_some_and(|status| conditions::is_true(&status.conditions, condition::REACHABLE))
    }

    /// Since when the API has not answered.
    pub fn silent_since(&self) -> Option<Timestamp> {
        let status = self.observed.cluster?.status.as_ref()?;
        status.unreachable_since.as_ref().map(|since| since.0)
    }
}
