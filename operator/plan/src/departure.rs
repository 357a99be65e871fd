//! Departure: whether a control plane or etcd machine of a cluster that goes on may leave it now. One at a time, never
//! below a majority of etcd's members, and none while another is joining.

mod forgotten;
mod health;
mod history;
mod membership;
mod ordering;
mod quorum;

use crds::ObjectExt;
use crds::step::Role;
use crds::{Machine, PlaybookRun};
use jiff::Timestamp;

pub(crate) use forgotten::title as title_of_forgotten;
pub(crate) use health::{has_sick_member, is_healthy};
pub(crate) use history::knows_of;
pub(crate) use membership::EtcdMembership;

use crate::formed_cluster::FormedCluster;
use crate::provisioning;
pub use health::is_out;

/// Where a machine that is being deleted stands with the control plane and etcd that it is to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// There is nothing to leave, and nothing to wait for.
    NotAMember,
    /// Nothing is done to it yet; why, as a sentence.
    WaitingForTurn(String),
    /// It is its turn. Once its Pods are away it says so with the reason `LeavingEtcd`, and is taken out of etcd.
    MayGo,
    /// It is being taken out of etcd; how far that is, as a sentence.
    UnderWay(String),
    /// It is a member no more.
    Left,
}

/// When a run took the machine's member out of etcd, or made another one the only member; none: it is in, or never was.
pub fn out_of_etcd_at(
    machine: &Machine,
    machines: &[&Machine],
    cluster: FormedCluster<'_>,
    runs: &[&PlaybookRun],
) -> Option<Timestamp> {
    let membership = EtcdMembership::new(machines, cluster, runs);
    membership.left_at(machine)
}

/// Decides for a Machine that is being deleted, from the Machines and runs of its cluster (others are passed over).
pub fn decide(
    machine: &Machine,
    machines: &[&Machine],
    cluster: FormedCluster<'_>,
    runs: &[&PlaybookRun],
) -> Departure {
    if machine.spec.role == Role::Worker
        || cluster.is_deleting
        || !cluster.is_installed
        || !provisioning::was_touched(machine, runs)
    {
        return Departure::NotAMember;
    }
    let membership = EtcdMembership::new(machines, cluster, runs);
    let is_member = membership.is_of_etcd(machine);
    if is_member && membership.has_left(machine) {
        return Departure::Left;
    }
    if is_member && let Some(since) = membership.left_at(machine) {
        let untold = membership.untold(since);
        let names: Vec<&str> = untold.iter().filter_map(|other| other.metadata.name.as_deref()).collect();
        return Departure::UnderWay(format!("it is out of etcd; the API servers of {} are told", names.join(", ")));
    }
    if let Some(run) = membership.removal_under_way(machine) {
        let run = run.name();
        return Departure::UnderWay(format!("run {run} takes it out of etcd"));
    }
    match membership.why_not_yet(machine) {
        Some(why) => Departure::WaitingForTurn(why),
        None if is_member => Departure::MayGo,
        None => Departure::NotAMember,
    }
}

#[cfg(test)]
mod tests {
    use crds::Machine;

    use super::{Departure, decide};
    use crate::formed_cluster::FormedCluster;
    use crate::formed_cluster::fixtures::PLANE;

    fn machine(name: &str, cluster: &str, leaves: bool) -> Machine {
        let deleted = if leaves { ", deletionTimestamp: 2026-01-02T00:00:00Z" } else { "" };
        serde_yaml::from_str(&format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, namespace: fleet, uid: {name}{deleted}}}, spec: {{clusterName: {cluster}, role: control-plane, kubernetesVersion: 1.35.4}}, status: {{provisionedAt: 2026-01-01T00:00:00Z, conditions: [{{type: NodeReady, status: 'True', reason: Ready, message: '', lastTransitionTime: 2026-01-01T00:00:00Z}}]}}}}"
        ))
        .unwrap()
    }

    #[test]
    fn a_member_leaves_whatever_forms_its_cluster_while_that_lets_it() {
        let decide = |cluster: FormedCluster<'_>, machines: &[Machine]| {
            decide(&machines[0], &machines.iter().collect::<Vec<_>>(), cluster, &[])
        };
        let three = [machine("a", "plane", true), machine("b", "plane", false), machine("c", "plane", false)];
        assert_eq!(decide(PLANE, &three), Departure::MayGo);
        let waits = |cluster, machines: &[Machine], expected: &str| match decide(cluster, machines) {
            Departure::WaitingForTurn(why) => assert!(why.contains(expected), "{why}"),
            other => panic!("{other:?}"),
        };
        waits(FormedCluster { is_paused: true, ..PLANE }, &three, "cluster plane is paused");
        waits(PLANE, &three[..2], "QuorumRisk: without it the cluster has 1 control-plane machine");
        waits(PLANE, &three[..1], "it is the only control-plane machine");
        let other = [machine("a", "plane", true), machine("b", "elsewhere", false), machine("c", "elsewhere", false)];
        waits(PLANE, &other, "it is the only control-plane machine");
        for gone in [FormedCluster { is_deleting: true, ..PLANE }, FormedCluster { is_installed: false, ..PLANE }] {
            assert_eq!(decide(gone, &three[..1]), Departure::NotAMember);
        }
        let of_others = FormedCluster { etcd_role: None, ..PLANE };
        assert_eq!(decide(of_others, &three), Departure::NotAMember, "it has no member to take out");
    }

    #[test]
    fn where_machines_are_no_nodes_their_members_of_etcd_say_whether_another_may_leave() {
        let bare = FormedCluster { has_nodes: false, ..PLANE };
        let mut three = [machine("a", "plane", true), machine("b", "plane", false), machine("c", "plane", false)];
        let mut say = |type_: &str, status: &str| {
            for machine in &mut three {
                machine.status.as_mut().unwrap().conditions = serde_yaml::from_str(&format!(
                    "[{{type: {type_}, status: '{status}', reason: X, message: '', lastTransitionTime: 2026-01-01T00:00:00Z}}]"
                ))
                .unwrap();
            }
            decide(&three[0], &three.iter().collect::<Vec<_>>(), bare, &[])
        };
        assert_eq!(say("NodeReady", "False"), Departure::MayGo, "there is no Node to ask");
        assert_eq!(say("Healthy", "Unknown"), Departure::MayGo, "not to know is not to be ill");
        let Departure::WaitingForTurn(why) = say("Healthy", "False") else { panic!("it may go") };
        assert!(why.contains("etcd has 3 members of which 0 are known to be well"), "{why}");
    }
}
