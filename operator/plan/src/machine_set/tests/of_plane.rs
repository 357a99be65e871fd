//! A set of a Karmada control plane, beside a ClusterDeployment of the same name.

use crds::{FormerRef, KarmadaDeployment, Machine, MachineSet};
use jiff::Timestamp;

use super::{HOST, machine};
use crate::machine_set::{Action, Observed, plan};

fn plane() -> KarmadaDeployment {
    serde_yaml::from_str("{apiVersion: clusterwright.dev/v1alpha1, kind: KarmadaDeployment, metadata: {name: a, namespace: fleet, uid: k1-uid}, spec: {version: 1.18.2, mode: Binary, binary: {controlPlane: {replicas: 1}, artifacts: {url: 'https://b.example.com'}}, crds: {bundle: {url: 'https://b.example.com'}}}}").unwrap()
}

fn set() -> MachineSet {
    serde_yaml::from_str("{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, metadata: {name: a-w, namespace: fleet, uid: set}, spec: {clusterName: a, clusterKind: KarmadaDeployment, role: control-plane, replicas: 1}}").unwrap()
}

fn actions(plane: Option<&KarmadaDeployment>, machines: &[&Machine]) -> (Vec<Action>, Option<String>) {
    let plan = plan(&Observed {
        now: Timestamp::UNIX_EPOCH,
        set: &set(),
        formed: plane.map(Into::into),
        machines,
        hosts: &[],
        has_pool: true,
        runs: &[],
    });
    (plan.actions, plan.status.message)
}

#[test]
fn what_it_makes_is_of_its_plane_and_no_node() {
    let (made, _) = actions(Some(&plane()), &[]);
    let [Action::CreateMachine(machine)] = made.as_slice() else { panic!("{made:?}") };
    assert_eq!(machine.spec.former(), FormerRef::plane("a"));
    assert_eq!((machine.spec.kubernetes_version, machine.spec.labels.len()), (None, 0));
    // One of these is counted, and one of a cluster of the same name is not, whatever its labels say.
    let mut of_cluster = self::machine(0, HOST, true);
    of_cluster.spec.role = crds::step::Role::ControlPlane;
    of_cluster.metadata.owner_references = None;
    assert_eq!(actions(Some(&plane()), &[&of_cluster]).0.len(), 1);
    assert!(actions(Some(&plane()), &[machine]).0.is_empty());
}

#[test]
fn without_its_plane_it_makes_nothing_and_names_what_is_missing() {
    let (made, message) = actions(None, &[]);
    assert!(made.is_empty());
    assert!(message.unwrap().contains("there is no KarmadaDeployment a in this namespace"));
}
