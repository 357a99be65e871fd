//! Parts as they are brought to machines, turn by turn; what a machine's services are.

mod certificates;
mod defragmentation;
mod estimators;
pub(in super::super) mod fleet;
mod guards;
mod in_place;
mod restore;
mod services;
mod stories;

use std::collections::BTreeMap;

use proptest::prelude::*;

use crds::playbook_run::KarmadaPart;
use crds::step::Step;

use super::super::component::Component;
use super::super::place::Stage;
use super::super::tests::world::plane;
use super::order::{in_order, steps};
use super::{EtcdStart, Part, Placed, PlaneMachine, Turn, parts, steps_to_join, together, turn};

const ALL: &str = "descheduler: {}, search: {}, metricsAdapter: {}";

fn machine(name: &str) -> PlaneMachine {
    PlaneMachine { name: name.to_owned(), set_aside: None, has: BTreeMap::new() }
}

/// Machines of a plane, and the digest that is wanted of each part: of the balancer it follows from the machines.
#[derive(Clone)]
struct World {
    stages: Vec<(Stage, Part)>,
    /// The stage before which the plane itself has been given all.
    reached: Stage,
    machines: Vec<PlaneMachine>,
    version: String,
}

impl World {
    fn new(names: &[&str]) -> Self {
        let machines = names.iter().map(|name| machine(name)).collect();
        Self { stages: parts(&plane(ALL).spec), reached: Stage::Foundation, machines, version: "1".into() }
    }

    fn parts(&self) -> Vec<Part> {
        self.stages.iter().map(|(_, part)| *part).collect()
    }

    fn wanted(&self, part: Part) -> BTreeMap<String, String> {
        let names: Vec<&str> = self.machines.iter().map(|machine| machine.name.as_str()).collect();
        let digest = |name: &str| match part {
            Part::Balancer => names.join(" "),
            Part::Component(_) | Part::Etcd | Part::LoadBalancer | Part::Estimators => {
                format!("{} {name}", self.version)
            }
        };
        names.iter().map(|name| ((*name).to_owned(), digest(name))).collect()
    }

    /// The first part that is not done, and what is done about it.
    fn next(&self) -> Option<(Part, Turn)> {
        self.turns().into_iter().map(|(_, part, turn)| (part, turn)).next()
    }

    /// The same, with those after it.
    fn turns(&self) -> Vec<(Stage, Part, Turn)> {
        let turn_of = |(stage, part): &(Stage, Part)| (*stage, *part, turn(&self.machines, *part, &self.wanted(*part)));
        let turns = self.stages.iter().map(turn_of);
        turns.skip_while(|(_, _, turn)| *turn == Turn::Done).collect()
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

    /// What is done until nothing is left to do: the parts of each run with the machines they are brought to.
    fn play(&mut self) -> Vec<(Vec<Part>, Vec<String>)> {
        let mut done = Vec::new();
        while let Some((part, turn)) = self.next() {
            assert!(done.len() < 200, "it does not settle: {part:?} {turn:?}");
            match turn {
                Turn::On(names) => {
                    let turns = self.turns();
                    // What the plane itself is given before it is there by now.
                    self.reached = self.reached.max(turns[0].0);
                    let parts = together(&turns, |gate| gate < self.reached);
                    assert_eq!(parts[0], part);
                    parts.iter().for_each(|part| self.bring(*part, &names));
                    done.push((parts, names));
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
    assert_eq!(done.iter().flat_map(|(parts, _)| parts.clone()).collect::<Vec<_>>(), world.parts());
    assert!(done.iter().all(|(_, names)| names.len() == 3), "{done:?}");
    // etcd comes by itself; others together, up to where the plane itself is given something.
    let firsts: Vec<&str> = done.iter().map(|(parts, _)| parts[0].title()).collect();
    let expected =
        ["the balancer", "etcd", "kube-apiserver", "karmada-webhook", "karmada-scheduler", "karmada-metrics-adapter"];
    assert_eq!(firsts, expected);
    let order: Vec<&str> = world.stages.iter().map(|(_, part)| part.title()).collect();
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
        let etcd = Placed { digest: world.wanted(Part::Etcd)[name].clone(), is_well: Some(true) };
        world.machines.last_mut().unwrap().has.insert(Part::Etcd, etcd);
        let (touched, of_newcomer): (Vec<_>, Vec<_>) =
            world.play().into_iter().partition(|(_, names)| names != &[name]);
        assert!(touched.iter().all(|(parts, _)| parts == &[Part::Balancer]), "{touched:?}");
        let all: Vec<Part> = world.parts().into_iter().filter(|part| *part != Part::Etcd).collect();
        assert_eq!(of_newcomer, [(all, vec![name.to_owned()])], "in one run: the plane has what is between them");
    }
}

#[test]
fn parts_come_together_on_the_same_machines_up_to_what_the_plane_lacks_or_one_that_waits() {
    use Component::{AggregatedApiServer, ApiServer, KubeControllerManager, Scheduler, Webhook};
    let on = |names: &[&str]| Turn::On(names.iter().map(|name| (*name).to_owned()).collect());
    let of = |component: Component, turn: Turn| (component.stage(), Part::Component(component), turn);
    let (waits, a, b) = (|| Turn::Waits("it does not work".into()), || on(&["a"]), || on(&["b"]));
    let holder = |turn: Turn| (Stage::ApiServer, Part::LoadBalancer, turn);
    let check = |turns: &[(Stage, Part, Turn)], is_open: bool, expected: &str| {
        let parts = together(turns, |_| is_open);
        assert_eq!(parts.iter().map(|part| part.name()).collect::<Vec<_>>().join(" "), expected, "{turns:?}");
    };
    let (first, second) = (of(ApiServer, a()), of(KubeControllerManager, a()));
    check(&[first.clone(), second.clone(), of(Webhook, a())], true, "apiserver kube-controller-manager webhook");
    check(&[first.clone(), second.clone(), of(Webhook, a())], false, "apiserver kube-controller-manager");
    check(
        &[first.clone(), of(KubeControllerManager, Turn::Done), of(AggregatedApiServer, a())],
        false,
        "apiserver aggregated-apiserver",
    );
    check(&[first.clone(), of(KubeControllerManager, waits()), of(AggregatedApiServer, a())], true, "apiserver");
    check(&[first.clone(), of(KubeControllerManager, b()), of(AggregatedApiServer, a())], true, "apiserver");
    check(&[first.clone(), of(KubeControllerManager, on(&["a", "b"]))], true, "apiserver");
    // Others are told first of one that is to hold the endpoint; what is brought to it meanwhile needs no endpoint.
    check(&[first.clone(), holder(b()), second.clone()], true, "apiserver kube-controller-manager");
    check(&[first, holder(a()), second], true, "apiserver load-balancer kube-controller-manager");
    let etcd = |turn: Turn| (Stage::Etcd, Part::Etcd, turn);
    check(&[(Stage::Foundation, Part::Balancer, a()), etcd(a()), of(ApiServer, a())], true, "balancer");
    check(&[etcd(a()), of(ApiServer, a())], true, "etcd");
    check(&[of(Scheduler, waits())], true, "");
    check(&[], true, "");
}

#[test]
fn the_parts_of_a_run_are_in_the_order_of_its_steps() {
    let parts = [Part::Balancer, Part::Component(Component::ApiServer), Part::LoadBalancer, SCHEDULER];
    let steps = steps(&parts);
    let steps: Vec<&str> = steps.iter().map(Step::name).collect();
    assert_eq!(steps, ["karmada-balancer", "karmada-programs", "karmada-service", "load-balancer"]);
    let mut ordered = parts.to_vec();
    ordered.sort_by_key(|part| in_order(*part));
    assert_eq!(ordered, [parts[0], parts[1], parts[3], parts[2]]);
    for (_, part) in super::parts(&plane(&format!("{ALL}, estimator: {{}}")).spec) {
        let brought = KarmadaPart { part: part.name().to_owned(), digests: BTreeMap::new() };
        assert_eq!(super::order::steps(&[part]).last(), Some(&brought.step()), "{part:?}");
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
    assert_eq!(world.play(), [(vec![Part::Balancer], vec!["b".to_owned(), "c".to_owned()])]);
}

#[test]
fn a_change_goes_from_machine_to_machine_and_halts_where_it_does_not_work() {
    let mut world = World::new(&["a", "b", "c"]);
    world.play();
    world.version = "2".into();
    let mut tried = world.clone();
    let done = world.play();
    assert!(done.iter().all(|(_, names)| names.len() == 1), "{done:?}");
    // etcd on each, then all that is after it on each.
    let order: Vec<String> = done.iter().map(|(parts, names)| format!("{} {}", parts.len(), names[0])).collect();
    let rest = world.parts().len() - 2;
    assert_eq!(
        order,
        ["1 a", "1 b", "1 c"]
            .map(str::to_owned)
            .into_iter()
            .chain(["a", "b", "c"].map(|name| format!("{rest} {name}")))
            .collect::<Vec<_>>()
    );
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
    let names = |etcd| steps_to_join(etcd).iter().map(|step| step.name()).collect::<Vec<_>>().join(" ");
    assert_eq!(names(EtcdStart::Empty), "bootstrap-os preflight prepare etcd");
    assert_eq!(names(EtcdStart::Backup), "bootstrap-os preflight prepare stage-backup etcd");
    assert_eq!(names(EtcdStart::NoMember), "bootstrap-os preflight prepare");
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

    #[test]
    fn from_any_state_parts_that_come_together_interrupt_no_machine_that_works_alone(
        machines in proptest::collection::vec((proptest::collection::vec(placed(), 4), any::<bool>()), 1..5),
        open in any::<bool>(),
    ) {
        let all: Vec<(Stage, Part)> = parts(&plane("").spec).into_iter().filter(|(stage, _)| *stage >= Stage::ApiServer).take(4).collect();
        let build = |(index, (states, aside)): (usize, (Vec<Has>, bool))| {
            let mut machine = machine(&format!("m{index}"));
            machine.set_aside = aside.then(|| "it does not answer".to_owned());
            for ((_, part), has) in all.iter().zip(states) {
                machine.has.extend(has.map(|(current, is_well)| {
                    (*part, Placed { digest: if current { "new" } else { "old" }.into(), is_well })
                }));
            }
            machine
        };
        let machines: Vec<PlaneMachine> = machines.into_iter().enumerate().map(build).collect();
        let wanted = machines.iter().map(|machine| (machine.name.clone(), "new".to_owned())).collect();
        let turns = all.iter().map(|(stage, part)| (*stage, *part, turn(&machines, *part, &wanted)));
        let turns: Vec<(Stage, Part, Turn)> = turns.skip_while(|(_, _, turn)| *turn == Turn::Done).collect();
        let brought = together(&turns, |_| open);
        let Some((_, _, Turn::On(names))) = turns.first() else {
            prop_assert!(brought.is_empty());
            return Ok(());
        };
        let is_touched = |machine: &&PlaneMachine| names.contains(&machine.name);
        for part in &brought {
            let works = |machine: &&PlaneMachine| {
                machine.set_aside.is_none() && machine.has.get(part).is_some_and(|placed| placed.is_well == Some(true))
            };
            let interrupted = machines.iter().filter(works).filter(is_touched).count();
            let left = machines.iter().filter(works).filter(|machine| !is_touched(machine)).count();
            prop_assert!(interrupted == 0 || interrupted == 1 && (left > 0 || machines.len() == 1), "{part:?} {machines:?}");
        }
        // None before one ahead of it that does not work on these machines, or is wanted otherwise.
        let last = turns.iter().position(|(_, part, _)| Some(part) == brought.last()).unwrap();
        for (_, part, turn) in &turns[..last] {
            prop_assert!(brought.contains(part) || *turn == Turn::Done, "{part:?} {turn:?}");
        }
    }
}
