//! Parts as they are brought to machines, turn by turn; what a machine's services are.

mod certificates;
pub(in super::super) mod fleet;
mod services;
mod stories;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::component::Component;
use super::super::tests::world::plane;
use super::{Part, Placed, PlaneMachine, Turn, parts, steps_to_join, turn};

const ALL: &str = "descheduler: {}, search: {}, metricsAdapter: {}";

fn machine(name: &str) -> PlaneMachine {
    PlaneMachine { name: name.to_owned(), set_aside: None, has: BTreeMap::new() }
}

/// Machines of a plane, and the digest that is wanted of each part: of the balancer it follows from the machines.
#[derive(Clone)]
struct World {
    parts: Vec<Part>,
    machines: Vec<PlaneMachine>,
    version: String,
}

impl World {
    fn new(names: &[&str]) -> Self {
        let parts = parts(&plane(ALL).spec).into_iter().map(|(_, part)| part).collect();
        Self { parts, machines: names.iter().map(|name| machine(name)).collect(), version: "1".into() }
    }

    fn wanted(&self, part: Part) -> BTreeMap<String, String> {
        let names: Vec<&str> = self.machines.iter().map(|machine| machine.name.as_str()).collect();
        let digest = |name: &str| match part {
            Part::Balancer => names.join(" "),
            Part::Component(_) | Part::Etcd | Part::LoadBalancer => format!("{} {name}", self.version),
        };
        names.iter().map(|name| ((*name).to_owned(), digest(name))).collect()
    }

    /// The first part that is not done, and what is done about it.
    fn next(&self) -> Option<(Part, Turn)> {
        let turns = self.parts.iter().map(|part| (*part, turn(&self.machines, *part, &self.wanted(*part))));
        turns.into_iter().find(|(_, turn)| *turn != Turn::Done)
    }

    /// A run has brought it; nobody knows yet whether it works.
    fn bring(&mut self, part: Part, names: &[String]) {
        let wanted = self.wanted(part);
        for machine in self.machines.iter_mut().filter(|machine| names.contains(&machine.name)) {
            let digest = wanted[&machine.name].clone();
            machine.has.insert(part, Placed { digest, is_well: None });
        }
    }

    /// All that is there works.
    fn settle(&mut self) {
        for machine in self.machines.iter_mut().filter(|machine| machine.set_aside.is_none()) {
            machine.has.values_mut().for_each(|placed| placed.is_well = Some(true));
        }
    }

    /// What is done until nothing is left to do: each part with the machines it is brought to.
    fn play(&mut self) -> Vec<(Part, Vec<String>)> {
        let mut done = Vec::new();
        while let Some((part, turn)) = self.next() {
            assert!(done.len() < 200, "it does not settle: {part:?} {turn:?}");
            match turn {
                Turn::On(names) => {
                    self.bring(part, &names);
                    done.push((part, names));
                }
                Turn::Waits(_) => {
                    let before = self.machines.clone();
                    self.settle();
                    if self.machines == before {
                        return done;
                    }
                }
                Turn::Done => unreachable!(),
            }
        }
        done
    }
}

const SCHEDULER: Part = Part::Component(Component::Scheduler);

#[test]
fn a_new_plane_gets_each_part_on_all_machines_at_once_in_the_order_of_its_stages() {
    let mut world = World::new(&["a", "b", "c"]);
    let done = world.play();
    assert_eq!(done.iter().map(|(part, _)| *part).collect::<Vec<_>>(), world.parts);
    assert!(done.iter().all(|(_, names)| names.len() == 3), "{done:?}");
    let order: Vec<&str> = world.parts.iter().map(|part| part.title()).collect();
    let expected =
        ["the balancer", "etcd", "kube-apiserver", "kube-controller-manager", "karmada-aggregated-apiserver"];
    assert_eq!(order[..5], expected);
    assert_eq!(order[5], "karmada-webhook", "before the controllers");
    assert!(parts(&plane("").spec).iter().all(|(_, part)| part.title() != "karmada-search"));
}

#[test]
fn a_machine_that_joins_gets_all_parts_in_their_order_and_of_others_the_balancer_alone_changes() {
    let mut world = World::new(&["a"]);
    world.play();
    for name in ["b", "c"] {
        world.machines.push(machine(name));
        let (touched, of_newcomer): (Vec<_>, Vec<_>) =
            world.play().into_iter().partition(|(_, names)| names != &[name]);
        assert!(touched.iter().all(|(part, _)| *part == Part::Balancer), "{touched:?}");
        let brought: Vec<Part> = of_newcomer.iter().map(|(part, _)| *part).collect();
        assert!(world.parts.ends_with(&brought[brought.len() - 9..]), "{brought:?}");
    }
}

#[test]
fn a_machine_that_joins_holds_the_endpoint_once_all_others_know_it() {
    let placed = |digest: &str| Placed { digest: digest.to_owned(), is_well: Some(true) };
    for holders in [["a", "b"].as_slice(), &["a"]] {
        let mut machines: Vec<PlaneMachine> = ["a", "b", "c"].map(machine).into();
        for machine in machines.iter_mut().filter(|machine| holders.contains(&machine.name.as_str())) {
            machine.has.insert(Part::LoadBalancer, placed("before"));
        }
        let wanted = machines.iter().map(|machine| (machine.name.clone(), "after".to_owned())).collect();
        let mut order = Vec::new();
        while let Turn::On(names) = turn(&machines, Part::LoadBalancer, &wanted) {
            for machine in machines.iter_mut().filter(|machine| names.contains(&machine.name)) {
                machine.has.insert(Part::LoadBalancer, placed("after"));
            }
            order.push(names.join(" "));
        }
        let expected: &[&str] = if holders.len() == 2 { &["a", "b", "c"] } else { &["a", "b c"] };
        assert_eq!(order, expected);
        assert_eq!(turn(&machines, Part::LoadBalancer, &wanted), Turn::Done);
    }
}

#[test]
fn one_that_leaves_is_taken_out_of_all_balancers_and_interrupts_nobody() {
    let mut world = World::new(&["a", "b", "c"]);
    world.play();
    // Also the first.
    world.machines.remove(0);
    assert_eq!(world.play(), [(Part::Balancer, vec!["b".to_owned(), "c".to_owned()])]);
}

#[test]
fn a_change_goes_from_machine_to_machine_and_halts_where_it_does_not_work() {
    let mut world = World::new(&["a", "b", "c"]);
    world.play();
    world.version = "2".into();
    let mut tried = world.clone();
    let done = world.play();
    assert!(done.iter().all(|(_, names)| names.len() == 1), "{done:?}");
    assert_eq!(done.len(), 3 * (world.parts.len() - 1));
    let Some((part, Turn::On(names))) = tried.next() else { panic!("nothing is done") };
    tried.bring(part, &names);
    let broken = tried.machines[0].has.get_mut(&part).unwrap();
    broken.is_well = Some(false);
    let halted = (part, Turn::Waits("etcd does not work on machine a".into()));
    assert_eq!(tried.next(), Some(halted));
}

#[test]
fn a_machine_that_is_dead_holds_up_nobody_and_the_last_that_works_is_left_alone() {
    let mut world = World::new(&["a", "b", "c"]);
    world.play();
    world.version = "2".into();
    world.machines[0].set_aside = Some("it does not answer".into());
    let done = world.play();
    assert!(done.iter().all(|(_, names)| names == &["b"] || names == &["c"]), "{done:?}");
    assert!(world.next().is_none(), "the others are done");
    world.version = "3".into();
    world.machines[1].set_aside = Some("it does not answer".into());
    let Some((_, Turn::Waits(why))) = world.next() else { panic!("the last one is changed") };
    assert_eq!(why, "etcd works on machine c alone: it stays as it is until another one works");
    // Alone by its spec, it is changed.
    world.machines.drain(..2);
    assert!(world.play().len() > 1);
    assert!(world.next().is_none());
}

#[test]
fn what_comes_before_the_parts_has_a_member_of_etcd_where_the_machine_is_to_carry_one() {
    let names = |has_member| steps_to_join(has_member).iter().map(|step| step.name()).collect::<Vec<_>>().join(" ");
    assert_eq!(names(true), "bootstrap-os preflight prepare etcd");
    assert_eq!(names(false), "bootstrap-os preflight prepare");
}

/// What a machine has of a part: whether it is as it is wanted, and whether it works.
type Has = Option<(bool, Option<bool>)>;

fn placed() -> impl Strategy<Value = Has> {
    proptest::option::of((any::<bool>(), proptest::option::of(any::<bool>())))
}

proptest! {
    #[test]
    fn from_any_state_no_machine_that_works_alone_is_interrupted(
        machines in proptest::collection::vec((placed(), any::<bool>()), 1..6),
    ) {
        let build = |(index, (placed, aside)): (usize, (Has, bool))| {
            let mut machine = machine(&format!("m{index}"));
            machine.set_aside = aside.then(|| "it does not answer".to_owned());
            machine.has.extend(placed.map(|(current, is_well)| {
                let digest = if current { "new" } else { "old" };
                (SCHEDULER, Placed { digest: digest.into(), is_well })
            }));
            machine
        };
        let machines: Vec<PlaneMachine> = machines.into_iter().enumerate().map(build).collect();
        let wanted = machines.iter().map(|machine| (machine.name.clone(), "new".to_owned())).collect();
        let Turn::On(names) = turn(&machines, SCHEDULER, &wanted) else { return Ok(()) };
        let works = |machine: &&PlaneMachine| {
            machine.set_aside.is_none() && machine.has.get(&SCHEDULER).is_some_and(|placed| placed.is_well == Some(true))
        };
        let touched = |machine: &&PlaneMachine| names.contains(&machine.name);
        let interrupted = machines.iter().filter(works).filter(touched).count();
        let left = machines.iter().filter(works).filter(|machine| !touched(machine)).count();
        prop_assert!(interrupted <= 1);
        prop_assert!(interrupted == 0 || left > 0 || machines.len() == 1, "{machines:?} {names:?}");
        prop_assert!(machines.iter().filter(touched).all(|machine| machine.set_aside.is_none()));
    }
}
