mod in_service;
mod of_plane;
mod without_deployment;

use crds::{ClusterDeployment, Machine, MachineSet, conditions};
use jiff::Timestamp;

use super::{Action, Observed, plan};
use crate::Plan;
use crate::formed_cluster::FormedCluster;

fn set(replicas: u32, more: &str) -> MachineSet {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, metadata: {{name: a-w, namespace: fleet, uid: set}}, spec: {{clusterName: a, role: worker, replicas: {replicas} {more}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn deployment() -> ClusterDeployment {
    serde_yaml::from_str(
        "{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a}, spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}}}",
    )
    .unwrap()
}

fn machine(ordinal: u32, more: &str, ready: bool) -> Machine {
    let status = if ready {
        "{conditions: [{type: Ready, status: 'True', reason: Running, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}"
    } else {
        "{}"
    };
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m{ordinal}, uid: uid-{ordinal}, creationTimestamp: '2026-01-0{}T00:00:00Z', labels: {{clusterwright.dev/cluster: a, clusterwright.dev/machine-set: a-w, clusterwright.dev/role: worker}}, finalizers: [clusterwright.dev/release-host], annotations: {{clusterwright.dev/ordinal: '{ordinal}'}}, ownerReferences: [{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, name: a-w, uid: set, controller: true, blockOwnerDeletion: true}}]}}, spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4 {more}}}, status: {status}}}",
        ordinal + 1
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn planned(set: &MachineSet, machines: &[Machine]) -> Plan<Action, crds::MachineSetStatus> {
    let machines: Vec<&Machine> = machines.iter().collect();
    plan(&Observed {
        now: Timestamp::UNIX_EPOCH,
        set,
        formed: Some(FormedCluster::from(&deployment())),
        machines: &machines,
        hosts: &[],
        has_pool: true,
        runs: &[],
    })
}

fn deleted(set: &MachineSet, machines: &[Machine]) -> Vec<String> {
    let name = |step: Action| match step {
        Action::DeleteMachine(machine) => machine.metadata.name,
        _ => None,
    };
    planned(set, machines).actions.into_iter().filter_map(name).collect()
}

const HOST: &str = ", hostRef: {name: h}";

#[test]
fn machines_are_named_by_set_and_ordinal_and_a_free_ordinal_is_used_again() {
    let created = |machines: &[Machine]| {
        let steps = planned(&set(3, ""), machines).actions;
        steps
            .into_iter()
            .map(|step| match step {
                Action::CreateMachine(machine) => super::ordinal_of(&machine).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(created(&[]), [0, 1, 2]);
    assert_eq!(created(&[machine(1, HOST, true)]), [0, 2]);
    let mut leaving = machine(0, HOST, true);
    leaving.metadata.deletion_timestamp = leaving.metadata.creation_timestamp.clone();
    assert_eq!(created(&[leaving, machine(1, HOST, true)]), [2, 3], "a name is free once its Machine is gone");
}

#[test]
fn those_without_a_host_go_first_then_those_that_are_not_ready_then_the_newest() {
    let machines = [
        machine(0, HOST, true),
        machine(1, HOST, true),
        machine(2, HOST, false),
        machine(3, "", false),
        machine(4, HOST, true),
    ];
    assert_eq!(deleted(&set(4, ""), &machines), ["m3"]);
    assert_eq!(deleted(&set(2, ""), &machines), ["m3", "m2", "m4"]);
    assert_eq!(deleted(&set(2, ", deletion: {order: Oldest}"), &machines), ["m3", "m2", "m0"]);
}

fn condition(machine: &mut Machine, type_: &str, status: &str) {
    let yaml = format!(
        "{{type: {type_}, status: '{status}', reason: X, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}"
    );
    let status = machine.status.get_or_insert_default();
    status.conditions.retain(|there| there.type_ != type_);
    status.conditions.push(serde_yaml::from_str(&yaml).unwrap());
}

fn annotate(machine: &mut Machine, key: &str, value: &str) {
    let annotations = machine.metadata.annotations.get_or_insert_default();
    annotations.insert(key.to_owned(), value.to_owned());
}

#[test]
fn marked_machines_go_before_all_others_and_those_that_are_not_known_to_be_well_before_those_that_are() {
    let mut machines = [0, 1, 2, 3, 4].map(|ordinal| machine(ordinal, HOST, ordinal != 2));
    machines[4].spec.host_ref = None;
    annotate(&mut machines[0], "clusterwright.dev/delete-first", "");
    condition(&mut machines[1], "Ready", "Unknown");
    assert_eq!(deleted(&set(0, ""), &machines), ["m0", "m4", "m2", "m1", "m3"]);
}

#[test]
fn a_manual_set_neither_makes_nor_deletes() {
    assert_eq!(planned(&set(3, ", mode: Manual"), &[]).actions, []);
    assert_eq!(planned(&set(0, ", mode: Manual"), &[machine(0, HOST, true)]).actions, []);
}

#[test]
fn the_status_serves_the_scale_subresource_and_says_what_is_lacking() {
    let status = planned(&set(2, ""), &[machine(0, HOST, true), machine(1, "", false)]).status;
    assert_eq!(status.selector.as_deref(), Some("clusterwright.dev/cluster=a,clusterwright.dev/machine-set=a-w"));
    assert_eq!((status.replicas, status.ready_replicas), (2, 1));
    let hosts = conditions::find(&status.conditions, "HostsAvailable").unwrap();
    assert_eq!((hosts.status.as_str(), hosts.message.as_str()), ("False", "needs 1, 0 free match"));
}

#[test]
fn a_set_says_how_many_hosts_it_needs_and_how_many_are_free() {
    let machines = [machine(0, "", false), machine(1, "", false), machine(2, "", false)];
    let host = |name: &str, unschedulable: bool| -> crds::Host {
        serde_yaml::from_str(&format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}}}, spec: {{address: {name}.example, unschedulable: {unschedulable}, ssh: {{credentialsRef: {{name: k}}}}}}, status: {{cleanedEpoch: 0, conditions: [{{type: Ready, status: 'True', reason: X, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}")).unwrap()
    };
    let hosts = [host("h1", false), host("h2", false), host("h3", true)];
    let plan = plan(&Observed {
        now: Timestamp::UNIX_EPOCH,
        set: &set(3, ""),
        formed: Some(FormedCluster::from(&deployment())),
        machines: &machines.iter().collect::<Vec<_>>(),
        hosts: &hosts.iter().collect::<Vec<_>>(),
        has_pool: true,
        runs: &[],
    });
    let told = conditions::find(&plan.status.conditions, "HostsAvailable").unwrap();
    assert_eq!((told.status.as_str(), told.reason.as_str()), ("False", "NotEnoughHosts"));
    assert_eq!(told.message, "needs 3, 2 free match; 1 matches and is not to be taken: unschedulable (h3)");
}

#[test]
fn a_machine_that_is_not_provisioned_follows_its_template_and_others_wait_for_an_upgrade() {
    let check = |status: &str, expected: usize| {
        let mut machine = machine(0, HOST, true);
        machine.status = serde_yaml::from_str(status).unwrap();
        let set = set(1, ", template: {kubernetesVersion: 1.35.5}");
        let steps = planned(&set, &[machine]).actions;
        assert_eq!(steps.len(), expected, "{steps:?}");
    };
    check("{}", 1);
    check("{provisionedAt: '2026-01-01T00:00:00Z', kubernetesVersion: 1.35.4}", 0);
    check("{provisionedAt: '2026-01-01T00:00:00Z', kubernetesVersion: 1.35.5}", 1);
    check("{provisionedAt: '2026-01-01T00:00:00Z', kubernetesVersion: 1.35.5-eks}", 0);
}

#[test]
fn labels_annotations_and_taints_of_machines_follow_the_template_one_write_a_machine() {
    let mut set = set(2, "");
    let (first, mut second) = (machine(0, HOST, true), machine(1, HOST, true));
    assert_eq!(steps(&set, &[first.clone(), second.clone()]), [] as [&str; 0]);
    set.spec.template.labels.insert("pool".into(), crds::node_metadata::LabelValue("fast".into()));
    let actions = planned(&set, &[first.clone(), second.clone()]).actions;
    assert_eq!(actions.len(), 2, "{actions:?}");
    for action in actions {
        let Action::SetNodeMetadata { labels, .. } = action else { panic!("{action:?}") };
        assert_eq!(labels, set.spec.template.labels);
    }
    second.spec.labels = set.spec.template.labels.clone();
    assert_eq!(planned(&set, &[first.clone(), second.clone()]).actions.len(), 1);
    set.spec.mode = crds::machine_set::MachineSetMode::Manual;
    assert_eq!(planned(&set, &[first, second]).actions, [], "a platform's are its own");
}

fn steps(set: &MachineSet, machines: &[Machine]) -> Vec<String> {
    let name = |machine: &Machine| machine.metadata.name.clone().unwrap();
    let told = |step| match step {
        Action::CreateHostPool(pool) => format!("pool {}", pool.metadata.name.unwrap()),
        Action::CreateMachine(machine) => format!("create {}", super::ordinal_of(&machine).unwrap()),
        Action::Adopt(machine) => format!("adopt {} as {}", name(&machine), super::ordinal_of(&machine).unwrap()),
        Action::QuarantineHost { machine, host, .. } => format!("put {host} of {} aside", name(&machine)),
        Action::DeleteMachine(machine) => format!("delete {}", name(&machine)),
        Action::SetNodeMetadata { machine, .. } => format!("metadata {}", name(&machine)),
        Action::SetVersion { machine, .. } => format!("version {}", name(&machine)),
    };
    planned(set, machines).actions.into_iter().map(told).collect()
}

fn platforms(ordinal: u32) -> Machine {
    let mut machine = machine(ordinal, HOST, true);
    machine.metadata.owner_references = None;
    machine.metadata.annotations = None;
    machine.metadata.finalizers = None;
    machine
}

#[test]
fn a_set_that_lacks_one_takes_over_a_platforms_machine_before_it_makes_one() {
    let own = || machine(0, HOST, true);
    let check = |replicas, machines: &[Machine], expected: &[&str]| {
        assert_eq!(steps(&set(replicas, ""), machines), expected);
    };
    check(3, &[own(), platforms(5)], &["adopt m5 as 1", "create 2"]);
    check(2, &[own(), platforms(6), platforms(5)], &["adopt m5 as 1"]);
    check(1, &[own(), platforms(5)], &[]);
    check(0, &[own(), platforms(5)], &["delete m0"]);
    let mut elses = platforms(5);
    elses.metadata.owner_references =
        Some(serde_yaml::from_str("[{apiVersion: v1, kind: X, name: x, uid: x, controller: true}]").unwrap());
    check(1, &[elses], &["create 0"]);
    let mut of_other_role = platforms(5);
    of_other_role.spec.role = crds::step::Role::ControlPlane;
    check(1, &[of_other_role], &["create 0"]);
    let adopted = planned(&set(1, ""), &[platforms(5)]).actions;
    let [Action::Adopt(adopted)] = adopted.as_slice() else { panic!("{adopted:?}") };
    assert_eq!(steps(&set(1, ""), &[(**adopted).clone()]), [""; 0], "taken over once");
    let message = planned(&set(1, ""), &[own(), platforms(5)]).status.message.unwrap();
    assert_eq!(message, "running; m5 with its label will be taken over once the count is raised");
}

/// The row "finalizer/ownerRef stripped, child deleted".
#[test]
fn a_machine_that_lost_its_owner_its_labels_or_its_finalizer_is_made_whole_row_30() {
    let check = |spoil: &dyn Fn(&mut Machine)| {
        let mut spoiled = machine(0, HOST, true);
        spoil(&mut spoiled);
        let machines = [spoiled, machine(1, HOST, true)];
        assert_eq!(steps(&set(2, ""), &machines), ["adopt m0 as 0"]);
    };
    check(&|machine| machine.metadata.owner_references = None);
    check(&|machine| machine.metadata.labels = None);
    check(&|machine| machine.metadata.finalizers = None);
}

fn control_planes(replicas: u32, ready: &[bool]) -> (MachineSet, Vec<Machine>) {
    let mut set = set(replicas, "");
    set.spec.role = crds::step::Role::ControlPlane;
    let machines = ready.iter().zip(0..).map(|(ready, ordinal)| {
        let mut machine = machine(ordinal, HOST, *ready);
        machine.spec.role = crds::step::Role::ControlPlane;
        let labels = machine.metadata.labels.get_or_insert_default();
        labels.insert("clusterwright.dev/role".into(), "control-plane".into());
        machine.status.as_mut().unwrap().provisioned_at = machine.metadata.creation_timestamp.clone();
        machine
    });
    (set, machines.collect())
}

fn planned_installed(set: &MachineSet, machines: &[Machine]) -> (Vec<String>, String) {
    let mut deployment = deployment();
    deployment.status = Some(serde_yaml::from_str("{installedAt: '2026-01-01T00:00:00Z'}").unwrap());
    let machines: Vec<&Machine> = machines.iter().collect();
    let plan = plan(&Observed {
        now: Timestamp::UNIX_EPOCH,
        set,
        formed: Some(FormedCluster::from(&deployment)),
        machines: &machines,
        hosts: &[],
        has_pool: true,
        runs: &[],
    });
    let told = plan.actions.into_iter().map(|step| match step {
        Action::CreateMachine(_) => "create".to_owned(),
        Action::DeleteMachine(machine) => machine.metadata.name.unwrap(),
        other => panic!("{other:?}"),
    });
    (told.collect(), plan.status.message.unwrap())
}

#[test]
fn control_planes_are_made_at_once_and_go_one_at_a_time_never_below_a_majority() {
    let check = |replicas, ready: &[bool], leaving: Option<usize>, expected: &[&str], says: &str| {
        let (set, mut machines) = control_planes(replicas, ready);
        if let Some(index) = leaving {
            machines[index].metadata.deletion_timestamp = machines[index].metadata.creation_timestamp.clone();
        }
        let (steps, message) = planned_installed(&set, &machines);
        assert_eq!(steps, expected, "{replicas} of {ready:?}");
        assert!(message.contains(says), "{message}");
    };
    check(5, &[true], None, &["create"; 4], "");
    check(3, &[true; 5], None, &["m4"], "");
    check(3, &[true; 5], Some(4), &[], "waits for machine m4 to leave");
    check(3, &[true, false, true, true, true], None, &["m1"], "");
    check(1, &[true, true, false], None, &["m2"], "");
    check(1, &[true, false, false], None, &[], "cannot go: 1 of the other 2");
    check(3, &[true, true, false, false, false], None, &[], "cannot go");
}

mod joining {
    use super::{Action, HOST, Machine, MachineSet, Observed, Plan, condition, deployment, machine, plan, set};
    use crds::{Host, PlaybookRun};
    use jiff::Timestamp;

    fn host(name: &str, claim: Option<&str>, more: &str) -> Host {
        let claim = claim.map_or_else(String::new, |uid| {
            format!(", claimRef: {{kind: Machine, name: m, uid: {uid}}}, claimEpoch: 1")
        });
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}}}, spec: {{address: {name}.example, ssh: {{credentialsRef: {{name: k}}}}{claim}{more}}}, status: {{cleanedEpoch: 0, conditions: [{{type: Ready, status: 'True', reason: X, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    fn in_quarantine(name: &str) -> Host {
        host(
            name,
            None,
            ", quarantine: {reason: JoinFailed, message: x, machine: m, machineSet: a-w, since: '2026-01-01T00:00:00Z'}",
        )
    }

    fn failed_join(attempt: u32, result: &str) -> PlaybookRun {
        let wanted = crate::provisioning::wanted(&deployment());
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r{attempt}, annotations: {{clusterwright.dev/machines: '{{\"h\": {{\"uid\": \"uid-0\"}}}}', clusterwright.dev/attempt: '{attempt}', clusterwright.dev/wanted: '{wanted}'}}}}, spec: {{clusterName: a, intent: Join, steps: [node], hosts: [h]}}, status: {{phase: Failed, finishedAt: '2026-01-01T00:0{}:00Z', {result}}}}}",
            attempt + 7
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    const FAILS: &str =
        "hosts: [{name: h, failed: 1, failure: {step: node, task: t, reason: PackageNotFound, message: no}}]";
    const SILENT: &str = "hosts: [{name: h, unreachable: true}]";

    fn planned(
        set: &MachineSet,
        machines: &[Machine],
        hosts: &[Host],
        runs: &[PlaybookRun],
    ) -> Plan<Action, crds::MachineSetStatus> {
        let mut deployment = deployment();
        deployment.status = Some(serde_yaml::from_str("{installedAt: '2026-01-01T00:00:00Z'}").unwrap());
        plan(&Observed {
            now: "2026-01-01T00:09:30Z".parse::<Timestamp>().unwrap(),
            set,
            formed: Some(super::FormedCluster::from(&deployment)),
            machines: &machines.iter().collect::<Vec<_>>(),
            hosts: &hosts.iter().collect::<Vec<_>>(),
            has_pool: true,
            runs: &runs.iter().collect::<Vec<_>>(),
        })
    }

    fn check(hosts: &[Host], result: &str, attempts: u32, put_aside: bool, says: &str) {
        check_machine(machine(0, HOST, false), hosts, result, attempts, put_aside, says);
    }

    fn check_machine(mut joins: Machine, hosts: &[Host], result: &str, attempts: u32, put_aside: bool, says: &str) {
        let replicas = u32::from(!crate::machine_request::is_requested(&joins));
        condition(&mut joins, "HostClaimed", "True");
        let runs: Vec<PlaybookRun> = (0..attempts).map(|attempt| failed_join(attempt, result)).collect();
        let plan = planned(&set(replicas, ""), &[joins], hosts, &runs);
        let told = match plan.actions.as_slice() {
            [] => false,
            [Action::QuarantineHost { host, quarantine, .. }, Action::DeleteMachine(_)] => {
                assert_eq!(host, "h");
                assert!(quarantine.contains(says) && quarantine.contains("JoinFailed"), "{quarantine}");
                true
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(told, put_aside, "{result} {attempts}");
        let message = plan.status.message.unwrap();
        assert!(put_aside || message.contains(says), "{message}");
    }

    #[test]
    fn a_host_that_fails_to_join_is_put_aside_when_another_is_free_and_at_most_three_of_a_set_are() {
        let held = || host("h", Some("uid-0"), "");
        let free = || host("i", None, "");
        check(&[held(), free()], FAILS, 3, true, "after 3 attempts (PackageNotFound)");
        check(&[held(), free()], FAILS, 2, false, "");
        check(&[held()], FAILS, 3, false, "no other Host is free");
        let aside = |count: usize| ["x", "y", "z"].into_iter().take(count).map(in_quarantine);
        let hosts: Vec<Host> = [held(), free()].into_iter().chain(aside(2)).collect();
        check(&hosts, FAILS, 3, true, "PackageNotFound");
        let hosts: Vec<Host> = [held(), free()].into_iter().chain(aside(3)).collect();
        check(&hosts, FAILS, 3, false, "3 Hosts are quarantined for this set already");
    }

    #[test]
    fn a_host_of_a_request_that_fails_to_join_is_put_aside_unless_the_request_names_it() {
        let requested = |spec: &str| {
            let mut joins = machine(0, spec, false);
            joins.metadata.owner_references = None;
            super::annotate(&mut joins, "clusterwright.dev/machine-request-uid", "r1");
            joins
        };
        let hosts = [host("h", Some("uid-0"), ""), host("i", None, "")];
        check_machine(requested(HOST), &hosts, FAILS, 3, true, "PackageNotFound");
        check_machine(requested(HOST), &hosts[..1], FAILS, 3, false, "running");
        check_machine(requested(", hostRef: {name: h}, hosts: [h]"), &hosts, FAILS, 3, false, "running");
        let other = ", hostRef: {name: h}, hostSelector: {matchLabels: {size: large}}";
        check_machine(requested(other), &hosts, FAILS, 3, false, "running");
    }

    /// The rows "SSH refused before the first task" and "one of n hosts unreachable mid-run": others proceed, and what
    /// does not come back is replaced.
    #[test]
    fn a_machine_that_stays_unreachable_while_it_joins_is_replaced_rows_20_and_22() {
        let held = || host("h", Some("uid-0"), "");
        let free = || host("i", None, "");
        check(&[held(), free()], SILENT, 3, true, "could not be reached");
        check(&[held(), free()], SILENT, 2, false, "");
        check(&[held()], SILENT, 3, false, "no other Host is free");
        let mut joins = machine(0, HOST, false);
        condition(&mut joins, "HostClaimed", "True");
        let claimed = &mut joins.status.as_mut().unwrap().conditions[0].last_transition_time;
        claimed.0 = "2026-01-01T00:06:00Z".parse().unwrap();
        let runs: Vec<PlaybookRun> = (0..3).map(|attempt| failed_join(attempt, SILENT)).collect();
        let plan = planned(&set(1, ""), &[joins], &[held(), free()], &runs);
        assert_eq!((plan.actions, plan.next), (vec![], crate::Next::after_seconds(90)), "it may only be rebooting");
    }

    #[test]
    fn what_does_not_lie_with_the_machine_costs_no_machine() {
        let hosts = [host("h", Some("uid-0"), ""), host("i", None, "")];
        check(&hosts, &FAILS.replace("PackageNotFound", "DigestMismatch"), 3, false, "");
        check(&hosts, "retriable: false, message: inputs refused", 1, false, "");
        check(&hosts, "message: the executor did not say anything", 3, false, "");
    }

    #[test]
    fn one_that_was_put_aside_before_a_crash_is_deleted_after_it() {
        let mut marked = machine(0, HOST, false);
        super::annotate(&mut marked, "clusterwright.dev/quarantine", "{}");
        let plan = planned(&set(1, ""), &[marked], &[host("h", Some("uid-0"), "")], &[]);
        assert!(matches!(plan.actions.as_slice(), [Action::DeleteMachine(_)]), "{:?}", plan.actions);
    }
}

#[test]
fn while_many_are_sick_no_healthy_machine_goes_and_the_set_says_so() {
    let mut deployment = deployment();
    let held = "{conditions: [{type: RemovalsHeld, status: 'True', reason: TooManyUnhealthy, message: 2 of 5 machines are sick at once, lastTransitionTime: '2026-01-01T00:00:00Z'}]}";
    deployment.status = Some(serde_yaml::from_str(held).unwrap());
    let mut machines = [0, 1, 2, 3].map(|ordinal| machine(ordinal, HOST, true));
    for machine in &mut machines {
        let status = machine.status.get_or_insert_default();
        status.provisioned_at = machine.metadata.creation_timestamp.clone();
    }
    condition(&mut machines[1], "Ready", "False");
    condition(&mut machines[2], "Ready", "Unknown");
    let set = set(1, "");
    let plan = plan(&Observed {
        now: Timestamp::UNIX_EPOCH,
        set: &set,
        formed: Some(FormedCluster::from(&deployment)),
        machines: &machines.iter().collect::<Vec<_>>(),
        hosts: &[],
        has_pool: true,
        runs: &[],
    });
    let sick = Action::DeleteMachine(Box::new(machines[1].clone()));
    assert_eq!(plan.actions, [sick], "one that is sick itself is not missed");
    let status = plan.status;
    let down = conditions::find(&status.conditions, "ScalingDown").unwrap();
    assert_eq!(
        (down.status.as_str(), down.reason.as_str(), down.message.as_str()),
        ("True", "TooManyUnhealthy", "2 healthy machines too many: 2 of 5 machines are sick at once")
    );
    assert_eq!(status.message.as_deref(), Some(down.message.as_str()));
}

fn requested(ordinal: u32) -> Machine {
    let mut machine = platforms(ordinal);
    annotate(&mut machine, "clusterwright.dev/machine-request-uid", "r1");
    machine
}

#[test]
fn machines_of_a_request_are_beside_the_sets_count_and_never_deleted_or_taken_over_by_it() {
    let machines = [machine(0, HOST, true), requested(1), requested(2)];
    assert_eq!(steps(&set(1, ""), &machines), [] as [&str; 0]);
    assert_eq!(steps(&set(2, ""), &machines), ["create 1"], "what is requested makes up for nothing that is lacking");
    assert_eq!(steps(&set(0, ""), &machines), ["delete m0"]);
    let status = planned(&set(1, ""), &machines).status;
    assert_eq!((status.replicas, status.requested_replicas, status.ready_replicas), (1, 2, 1));
    let manual = planned(&set(0, ", mode: Manual"), &machines[1..]).status;
    assert_eq!((manual.replicas, manual.requested_replicas), (0, 2));
}

#[test]
fn machines_of_a_request_follow_the_sets_labels_and_have_the_clusters_version_by_themselves() {
    let mut set = set(1, ", template: {kubernetesVersion: 1.35.5}");
    let (mut own, mut other) = (machine(0, HOST, true), requested(1));
    own.spec.kubernetes_version = set.spec.template.kubernetes_version;
    other.spec.kubernetes_version = None;
    assert_eq!(steps(&set, &[own.clone(), other.clone()]), [] as [&str; 0]);
    set.spec.template.labels.insert("pool".into(), crds::node_metadata::LabelValue("fast".into()));
    assert_eq!(steps(&set, &[own, other]), ["metadata m0", "metadata m1"]);
}

#[test]
fn a_set_has_the_pool_made_of_what_it_selects() {
    let set = set(0, ", template: {hostSelector: {matchLabels: {size: large}}}");
    let plan = plan(&Observed {
        now: Timestamp::UNIX_EPOCH,
        set: &set,
        formed: Some(FormedCluster::from(&deployment())),
        machines: &[],
        hosts: &[],
        has_pool: false,
        runs: &[],
    });
    let [Action::CreateHostPool(pool)] = plan.actions.as_slice() else { panic!("{:?}", plan.actions) };
    assert_eq!(Some(&pool.spec.host_selector), set.spec.template.host_selector.as_ref());
}
