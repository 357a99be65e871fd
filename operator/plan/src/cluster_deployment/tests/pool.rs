//! Growing and shrinking from the spare pool: what joins, what it has to do with what is there already, and what
//! becomes of Hosts that cannot be used.

use crds::ObjectExt;
use crds::machine_set::MachineSetMode;
use crds::names::label;
use crds::references::LocalRef;
use crds::step::{Intent, Role};
use crds::{Machine, conditions};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Just;

use super::ready;
use crate::testing::{Fate, World};

fn spec(workers: i32) -> String {
    format!("controlPlane: {{replicas: 1}}, workers: [{{name: general, replicas: {workers}}}]")
}

fn summary(world: &World) -> String {
    let status = world.deployment.status.clone().unwrap();
    status.workers.unwrap().summary
}

/// A Machine that a platform makes, naming its Host.
fn platforms(name: &str, host: &str, set: Option<&str>) -> Machine {
    let labels = set.map_or_else(String::new, |set| format!(", labels: {{{}: {set}}}", label::MACHINE_SET));
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, namespace: fleet, uid: uid-of-{name}, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z'{labels}}}, spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostRef: {{name: {host}}}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

#[test]
fn more_workers_join_in_one_run_that_touches_only_them() {
    let mut world = World::new(&spec(2), 6);
    world.settle();
    let before = world.runs.len();
    world.respec(&spec(5));
    world.settle();
    let hosts: Vec<_> = world.runs[before..].iter().map(|run| run.spec.hosts.clone()).collect();
    assert_eq!(hosts, [["h4", "h5", "h6"]]);
    assert_eq!(summary(&world), "5/5");
}

#[test]
fn a_set_whose_count_is_open_grows_by_scaling_it() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general}]", 3);
    world.settle();
    world.sets[1].spec.replicas = 2;
    world.settle();
    assert_eq!(summary(&world), "2/2");
    assert_eq!(world.runs.last().unwrap().spec.hosts, ["h2", "h3"]);
}

#[test]
fn machines_that_a_platform_makes_join_on_the_hosts_that_they_name() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general}]", 5);
    world.settle();
    world.sets[1].spec.mode = MachineSetMode::Manual;
    world.sets[1].spec.replicas = 1;
    world.machines.push(platforms("p", "h4", Some("a-general")));
    world.settle();
    let run = world.runs.last().unwrap();
    assert_eq!((run.spec.intent, run.spec.hosts.clone()), (Intent::Join, vec!["h4".to_owned()]));
    assert_eq!((summary(&world), ready(&world).0), ("1/1".into(), "True".into()));
    let workers = world.machines.iter().filter(|machine| machine.spec.role == Role::Worker);
    assert_eq!(workers.count(), 1, "a Manual set makes none");
}

#[test]
fn an_automatic_set_that_lacks_one_takes_a_platforms_machine_and_makes_none() {
    let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general}]", 5);
    world.settle();
    world.machines.push(platforms("p", "h4", Some("a-general")));
    world.sets[1].spec.replicas = 1;
    world.settle();
    let workers: Vec<&Machine> = world.machines.iter().filter(|machine| machine.spec.role == Role::Worker).collect();
    assert_eq!(workers.len(), 1);
    assert_eq!(workers[0].metadata.name.as_deref(), Some("p"));
    let owners = workers[0].metadata.owner_references.as_deref().unwrap();
    assert_eq!(Some(&owners[0].uid), world.sets[1].metadata.uid.as_ref());
    assert_eq!((summary(&world), ready(&world).0), ("1/1".into(), "True".into()));
    // From now on it is one of the set's.
    world.sets[1].spec.replicas = 0;
    world.settle();
    assert!(world.machines.iter().all(|machine| machine.spec.role != Role::Worker));
}

#[test]
fn a_machine_that_is_deleted_by_hand_is_removed_and_its_set_makes_another() {
    let mut world = World::new(&spec(1), 3);
    world.settle();
    let before: Vec<_> = world.machines.iter().map(|machine| machine.metadata.uid.clone()).collect();
    world.delete_machine(1);
    world.settle();
    assert_eq!((world.machines.len(), summary(&world)), (2, "1/1".into()));
    assert_ne!(world.machines[1].metadata.uid, before[1]);
    assert_eq!(world.deleted_nodes, ["h2"]);
    assert!(!world.dirty.contains("h2"), "cleaned");
}

/// The rows "one of n hosts unreachable mid-run" and "SSH refused before the first task" of a join: others proceed.
#[test]
fn one_worker_that_is_unreachable_does_not_keep_the_others_from_joining_rows_20_and_22() {
    let mut world = World::new(&spec(3), 4);
    world.fates = vec![Fate::Well, Fate::Unreachable, Fate::Well, Fate::Well];
    world.settle();
    assert_eq!(summary(&world), "3/3");
    let joins = world.runs.iter().filter(|run| run.spec.intent == Intent::Join);
    let hosts: Vec<_> = joins.map(|run| run.spec.hosts.clone()).collect();
    assert_eq!(hosts, [vec!["h2", "h3", "h4"], vec!["h2"]], "only that one is tried again");
}

/// The rows of a run that was lost: "Job deleted by a user", "SSH drops mid-task", "host reboots mid-task".
#[test]
fn a_join_that_was_lost_goes_on_where_it_stopped_rows_18_21_and_23() {
    let mut world = World::new(&spec(1), 2);
    world.fates = vec![Fate::Well, Fate::Lost(3)];
    world.settle();
    assert_eq!(summary(&world), "1/1");
    let joins: Vec<_> = world.runs.iter().filter(|run| run.spec.intent == Intent::Join).collect();
    assert_eq!(joins.iter().map(|run| run.spec.resume).collect::<Vec<_>>(), [false, true]);
}

/// The rows "spec changed mid-run" and "CR deleted mid-run".
#[test]
fn a_count_that_changes_while_workers_join_is_met_after_it_rows_28_and_29() {
    let mut world = World::new(&spec(2), 6);
    while !world.runs.iter().any(|run| run.spec.intent == Intent::Join) || !world.works() {
        world.run_for(1);
    }
    let joining = world.runs.last().unwrap().spec.hosts.clone();
    world.respec(&spec(4));
    world.settle();
    let joins: Vec<_> = world.runs.iter().filter(|run| run.spec.intent == Intent::Join).collect();
    assert_eq!(joins[0].spec.hosts, joining, "what is under way stays as it was asked for");
    assert_eq!((joins.len(), summary(&world)), (2, "4/4".into()));

    let mut world = World::new(&spec(2), 3);
    while !world.runs.iter().any(|run| run.spec.intent == Intent::Join) || !world.works() {
        world.run_for(1);
    }
    world.delete();
    world.settle();
    assert!(world.gone && world.dirty.is_empty());
}

/// What was wrong with a machine that joined before says nothing about those that join now.
#[test]
fn a_sick_or_half_installed_or_unreachable_old_machine_blocks_nothing() {
    let check = |spoil: &dyn Fn(&mut World)| {
        let mut world = World::new(&spec(2), 5);
        world.settle();
        spoil(&mut world);
        let before = world.runs.len();
        world.respec(&spec(4));
        world.settle();
        let of_new = |run: &&crds::PlaybookRun| run.spec.hosts.iter().any(|host| host == "h4" || host == "h5");
        let joins: Vec<_> = world.runs[before..].iter().filter(of_new).map(|run| run.spec.hosts.clone()).collect();
        assert_eq!(joins, [["h4", "h5"]], "only they are touched");
        for host in ["h4", "h5"] {
            let machine = world.machines.iter().find(|machine| machine.spec.host_ref == Some(LocalRef::new(host)));
            let status = machine.unwrap().status.as_ref().unwrap();
            assert!(conditions::is_true(&status.conditions, "Ready"), "{host}: {:?}", status.message);
        }
    };
    // Its node is gone.
    check(&|world| {
        world.nodes.remove("h2");
    });
    // Its machine cannot be reached, and its Host object says so.
    check(&|world| {
        let host = world.hosts.iter_mut().find(|host| host.metadata.name.as_deref() == Some("h2")).unwrap();
        host.status.as_mut().unwrap().conditions.clear();
        world.silent.insert("h2".into());
        world.nodes.remove("h2");
    });
    // Its Host object has vanished.
    check(&|world| world.hosts.retain(|host| host.metadata.name.as_deref() != Some("h2")));
    // It is only half installed, and fails again and again.
    check(&|world| {
        world.always_fails = vec!["h2".into()];
        let machine =
            world.machines.iter_mut().find(|machine| machine.spec.host_ref == Some(LocalRef::new("h2"))).unwrap();
        machine.status = None;
        world.runs.retain(|run| run.spec.intent != Intent::Join);
        world.nodes.remove("h2");
    });
}

fn quarantines(world: &World) -> Vec<String> {
    let told = |host: &crds::Host| {
        let quarantine = host.spec.quarantine.as_ref()?;
        let name = host.metadata.name.as_deref().unwrap();
        Some(format!("{name} {:?}", quarantine.reason))
    };
    world.hosts.iter().filter_map(told).collect()
}

#[test]
fn a_host_that_cannot_join_is_quarantined_with_its_reason_and_another_is_taken() {
    let mut world = World::new(&spec(1), 3);
    world.fates = vec![Fate::Well, Fate::Fails, Fate::Fails, Fate::Fails];
    world.settle();
    assert_eq!(summary(&world), "1/1");
    assert_eq!(quarantines(&world), ["h2 JoinFailed"]);
    let quarantine = world.hosts[1].spec.quarantine.clone().unwrap();
    assert!(quarantine.message.contains("could not join after 3 attempts (TaskFailed)"), "{quarantine:?}");
    assert_eq!(quarantine.machine_set.as_deref(), Some("a-general"));
    assert_eq!(world.hosts[1].spec.claim_ref, None);
    assert!(!world.dirty.contains("h2"), "it was cleaned all the same");
    // It is nobody's, and nobody is given it.
    world.respec(&spec(2));
    world.settle();
    let (_, _, message) = ready(&world);
    assert!(message.contains("needs 1, 0 free match") && message.contains("quarantined: JoinFailed (h2)"), "{message}");
}

#[test]
fn after_three_hosts_that_cannot_join_a_person_is_asked() {
    let mut world = World::new(&spec(1), 7);
    world.always_fails = ["h2", "h3", "h4", "h5", "h6"].map(str::to_owned).to_vec();
    world.settle();
    assert_eq!(quarantines(&world).len(), 3, "{:?}", quarantines(&world));
    let claimed = world.hosts.iter().filter(|host| host.spec.claim_ref.is_some());
    assert_eq!(claimed.count(), 2, "the fourth stays, and can be tried again");
    let message = world.sets[1].status.as_ref().unwrap().message.clone().unwrap();
    assert!(message.contains("3 Hosts are quarantined for this set already"), "{message}");
}

/// What happens to the machines of a set.
#[derive(Clone, Debug)]
enum Happens {
    Scale(i32),
    Sick(usize),
    NodeBack,
    Delete(usize),
    TargetRecord(usize),
    Strip(usize),
    Offer(usize),
    Fate(Fate),
    Turns(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    let fate = prop_oneof![
        Just(Fate::Fails),
        Just(Fate::Unreachable),
        (0usize..6).prop_map(Fate::Lost),
        Just(Fate::NotStarted),
    ];
    prop_oneof![
        (0..5i32).prop_map(Happens::Scale),
        (1usize..9).prop_map(Happens::Sick),
        Just(Happens::NodeBack),
        (1usize..9).prop_map(Happens::Delete),
        (1usize..9).prop_map(Happens::TargetRecord),
        (1usize..9).prop_map(Happens::Strip),
        (2usize..9).prop_map(Happens::Offer),
        fate.prop_map(Happens::Fate),
        (0usize..6).prop_map(Happens::Turns),
    ]
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]
    /// Machines that are healthy, sick, marked, taken away by hand, stripped of what ties them to their set, and
    /// offered by a platform, in whatever order, while the count changes: one claim a Host, one run a Host
    /// (`World::check`), and in the end the count is met as far as the pool goes.
    #[test]
    fn whatever_happens_to_its_machines_a_set_settles_at_its_count(events in proptest::collection::vec(happens(), 0..14), finally in any::<bool>()) {
        let mut world = World::new("controlPlane: {replicas: 1}, workers: [{name: general}]", 8);
        world.settle();
        let (mut offered, mut replicas) = (0, 0);
        for event in events {
            let workers = |world: &World| -> Vec<usize> {
                let all = world.machines.iter().enumerate();
                all.filter(|(_, machine)| machine.spec.role == Role::Worker).map(|(index, _)| index).collect()
            };
            let nth = |world: &World, number: usize| workers(world).get(number % workers(world).len().max(1)).copied();
            match event {
                Happens::Scale(count) => {
                    replicas = count;
                    world.sets[1].spec.replicas = count;
                }
                Happens::Sick(number) => drop(world.nodes.remove(&format!("h{number}"))),
                Happens::NodeBack => {
                    let provisioned = |machine: &&Machine| machine.status.as_ref().is_some_and(|status| status.provisioned_at.is_some());
                    let hosts = world.machines.iter().filter(provisioned).filter_map(|machine| machine.spec.host_ref.clone());
                    let hosts: Vec<String> = hosts.map(|host| host.name).collect();
                    hosts.iter().for_each(|host| world.return_node(host));
                }
                Happens::Delete(number) => if let Some(index) = nth(&world, number) {
                    world.delete_machine(index);
                },
                Happens::TargetRecord(number) => if let Some(index) = nth(&world, number) {
                    let annotations = world.machines[index].metadata.annotations.get_or_insert_default();
                    annotations.insert(crds::names::annotation::DELETE_FIRST.into(), String::new());
                },
                Happens::Strip(number) => if let Some(index) = nth(&world, number) {
                    let metadata = &mut world.machines[index].metadata;
                    match number % 3 {
                        0 => metadata.labels = None,
                        1 => metadata.owner_references = None,
                        _ if metadata.deletion_timestamp.is_none() => metadata.finalizers = None,
                        _ => {}
                    }
                },
                Happens::Offer(number) => {
                    offered += 1;
                    let machine = platforms(&format!("p{offered}"), &format!("h{number}"), Some("a-general"));
                    world.machines.push(machine);
                }
                Happens::Fate(fate) => world.fates.push(fate),
                Happens::Turns(turns) => world.run_for(turns),
            }
        }
        if finally {
            replicas = 2;
            world.sets[1].spec.replicas = 2;
        }
        world.fates.clear();
        world.settle();
        let set = world.sets[1].metadata.uid.clone();
        let own = world.machines.iter().filter(|machine| {
            let owners = machine.metadata.owner_references.iter().flatten();
            owners.into_iter().any(|owner| Some(&owner.uid) == set.as_ref()) && !machine.is_deleting()
        });
        prop_assert_eq!(i32::try_from(own.count()).unwrap(), replicas);
        for host in &world.hosts {
            let Some(claim) = &host.spec.claim_ref else { continue };
            let holds = world.machines.iter().filter(|machine| machine.metadata.uid.as_ref() == Some(&claim.uid));
            prop_assert!(holds.count() == 1, "{claim:?}");
        }
    }
}
