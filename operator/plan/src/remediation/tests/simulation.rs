//! A cluster whose machines fall sick, recover, vanish and come, and what must hold at every turn of it.

use std::collections::BTreeMap;

use crds::remediation_policy::RemediationAction as Action;
use crds::step::Role;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use proptest::prelude::*;

use super::{
    Decision, Effort, EffortResult, MachineHealth, RemediationInput, State, at, decide, failed, health, input,
    not_tried, rule,
};

/// What happens between two looks.
#[derive(Clone, Debug)]
enum Happening {
    FallsSick(usize),
    Recovers(usize),
    StopsStarting(usize),
    SetSkip(usize, bool),
    Busy(usize, bool),
    Ends(usize, u8),
    Contact(bool),
    Etcd(bool),
    Paused(bool),
    Change(bool),
    Elsewhere(usize),
    Spares(usize),
    /// Machines of the workers' set are on their way out, to be replaced.
    Replaced(usize),
    Approved(bool),
    LosesStatus,
    Passes(i64),
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop_oneof![
        6 => (0usize..12).prop_map(FallsSick),
        3 => (0usize..12).prop_map(Recovers),
        1 => (0usize..12).prop_map(StopsStarting),
        1 => (0usize..12, any::<bool>()).prop_map(|(index, skip)| SetSkip(index, skip)),
        1 => (0usize..12, any::<bool>()).prop_map(|(index, busy)| Busy(index, busy)),
        8 => (0usize..12, 0u8..8).prop_map(|(index, result)| Ends(index, result)),
        1 => any::<bool>().prop_map(Contact),
        1 => any::<bool>().prop_map(Etcd),
        1 => any::<bool>().prop_map(Paused),
        1 => any::<bool>().prop_map(Change),
        1 => (0usize..4).prop_map(Elsewhere),
        1 => (0usize..4).prop_map(Spares),
        1 => (0usize..3).prop_map(Replaced),
        1 => any::<bool>().prop_map(Approved),
        1 => Just(LosesStatus),
        8 => (1i64..900).prop_map(Passes),
    ]
}

struct World {
    input: RemediationInput,
    made: usize,
    replaced: usize,
}

impl World {
    fn happens(&mut self, happening: &Happening) {
        let now = self.input.now;
        let lost = self.input.unreachable.is_some();
        match happening {
            Happening::FallsSick(index) => {
                let health = self.nth(*index);
                if health.joined && health.state == State::Well {
                    health.state = State::Sick { since: now, what: "silent".into() };
                }
            }
            Happening::Recovers(index) => {
                let health = self.nth(*index);
                if health.joined && !lost {
                    health.state = State::Well;
                }
            }
            Happening::StopsStarting(index) => {
                let health = self.nth(*index);
                if health.role == Role::Worker && health.efforts.is_empty() {
                    health.joined = false;
                    health.state = State::NeverStarted { since: now, what: "no SSH".into() };
                }
            }
            Happening::SetSkip(index, skip) => self.nth(*index).skipped = skip.then(String::new),
            Happening::Busy(index, busy) => {
                let health = self.nth(*index);
                let works = health.efforts.last().is_some_and(|last| last.result == EffortResult::UnderWay);
                health.busy = (*busy && !works).then(|| "by-hand".into());
            }
            Happening::Ends(index, result) => end(self.nth(*index), now, *result),
            Happening::Contact(made) => self.contact(*made),
            Happening::Etcd(well) => self.input.etcd = (!well).then(|| "no leader".into()),
            Happening::Paused(paused) => self.input.paused = *paused,
            Happening::Change(change) => self.input.change = change.then(|| "c9 joins".into()),
            Happening::Elsewhere(number) => self.input.elsewhere = *number,
            Happening::Spares(free) => self.input.spares.free = *free,
            Happening::Replaced(number) => {
                let set = self.input.sets.get_mut("worker").unwrap();
                set.replaced = *number;
            }
            Happening::Approved(approved) => self.input.approved = *approved,
            Happening::LosesStatus => (self.input.was_too_many, self.input.calm_since) = (false, None),
            Happening::Passes(seconds) => self.input.now += SignedDuration::from_secs(*seconds),
        }
        let free = self.input.spares.free;
        self.input.machines.iter_mut().for_each(|health| health.fitting = free);
    }

    fn nth(&mut self, index: usize) -> &mut MachineHealth {
        let count = self.input.machines.len();
        &mut self.input.machines[index % count]
    }

    fn contact(&mut self, made: bool) {
        let now = self.input.now;
        match (made, self.input.unreachable.is_some()) {
            (false, false) => {
                self.input.unreachable = Some("no answer".into());
                for health in self.input.machines.iter_mut().filter(|health| health.joined) {
                    health.told = health.state != State::Well;
                    health.state = State::Unknown;
                }
            }
            (true, true) => {
                self.input.unreachable = None;
                for health in self.input.machines.iter_mut().filter(|health| health.joined) {
                    health.state =
                        if health.told { State::Sick { since: now, what: "silent".into() } } else { State::Well };
                }
            }
            _ => {}
        }
    }

    /// Decides, checks what must hold, and carries it out; true when anything began.
    fn turn(&mut self) -> bool {
        let before = self.input.clone();
        let round = decide(&before);
        self.check(&before, &round);
        (self.input.was_too_many, self.input.calm_since) = (round.too_many, round.calm_since);
        let mut began = false;
        for decision in &round.decisions {
            let Some(begin) = &decision.begin else { continue };
            began = true;
            self.made += 1;
            if begin.action == Action::Replace {
                self.replaced += 1;
                self.input.spares.free -= 1;
                let gone = self.health(&decision.machine).clone();
                self.input.machines.retain(|health| health.name != gone.name);
                // Its set makes another, which takes the spare Host and joins at once.
                let name = format!("{}x", gone.name);
                let state = State::Well;
                let mut new = health(&name, gone.role, state);
                new.rule = gone.rule;
                self.input.machines.push(new);
                continue;
            }
            let (now, run) = (self.input.now, format!("r{}", self.made));
            self.health(&decision.machine).efforts.push(Effort {
                run,
                action: begin.action,
                made: now,
                ended: now,
                retry: None,
                result: EffortResult::UnderWay,
            });
        }
        let free = self.input.spares.free;
        self.input.machines.iter_mut().for_each(|health| health.fitting = free);
        began
    }

    fn health(&mut self, name: &str) -> &mut MachineHealth {
        self.input.machines.iter_mut().find(|health| health.name == name).unwrap()
    }

    fn check(&self, input: &RemediationInput, round: &super::super::Round) {
        let by_name: BTreeMap<&str, &MachineHealth> =
            input.machines.iter().map(|health| (health.name.as_str(), health)).collect();
        let begins: Vec<_> = round.decisions.iter().filter(|decision| decision.begin.is_some()).collect();
        let active = round.decisions.iter().filter(|decision| decision.action.is_some());
        let sick = input.machines.iter().filter(|health| matches!(health.state, State::Sick { .. })).count();
        let (mut replaces, mut control_planes) = (0, 0);
        for decision in active.clone() {
            control_planes += usize::from(by_name[decision.machine.as_str()].role != Role::Worker);
        }
        for decision in &begins {
            let health = by_name[decision.machine.as_str()];
            let remediation = &health.rule.as_ref().unwrap().remediation;
            let action = decision.action.unwrap();
            assert!(!input.paused && input.unreachable.is_none() && input.etcd.is_none());
            assert!(health.skipped.is_none() && health.busy.is_none());
            let IntOrString::Int(most) = remediation.max_unhealthy else { unreachable!() };
            let few = sick <= usize::try_from(most).unwrap();
            assert!(few || input.approved, "maxUnhealthy");
            let set = health.set.as_ref().unwrap();
            let of_set = |decision: &&&Decision| {
                let other = by_name[decision.machine.as_str()];
                other.set.as_ref() == Some(set) && other.may_serve()
            };
            let seen = input.sets[set];
            let out = seen.replaced + active.clone().filter(|decision| of_set(&decision)).count();
            assert!(out <= seen.most || !health.may_serve(), "maxUnavailable");
            let under_repair = input.elsewhere + active.clone().count();
            assert!(under_repair <= usize::try_from(remediation.max_concurrent).unwrap(), "budget");
            let last = health.efforts.last();
            assert!(last.is_none_or(|last| last.result != EffortResult::UnderWay), "two at once");
            if let Some(last) = last.filter(|last| last.result == EffortResult::Done) {
                let fresh = matches!(&health.state, State::Sick { since, .. } if *since > last.ended);
                let wait = SignedDuration::from_secs(i64::from(remediation.wait_seconds));
                assert!(fresh || last.ended + wait <= input.now, "not waited for");
            }
            if health.role != Role::Worker {
                assert!(input.change.is_none() && control_planes == 1, "one control plane at a time");
                let of_etcd = input.machines.iter().filter(|other| other.role == health.role);
                let left = of_etcd.clone().filter(|other| other.name != health.name);
                let well = left.filter(|other| other.state == State::Well).count();
                let safe = action == Action::RestartServices || well > of_etcd.count() / 2;
                assert!(safe, "etcd keeps its majority");
            }
            replaces += usize::from(action == Action::Replace);
        }
        assert!(replaces + input.spares.awaited <= input.spares.free || replaces == 0, "no more than the pool has");
    }
}

fn end(health: &mut MachineHealth, now: jiff::Timestamp, result: u8) {
    let Some(last) = health.efforts.last_mut().filter(|last| last.result == EffortResult::UnderWay) else {
        return;
    };
    last.ended = now;
    last.result = match result {
        0 | 1 => EffortResult::Done,
        2 => failed("TaskFailed"),
        3 => failed("Unreachable"),
        4 => failed("Unknown"),
        5 => not_tried("NotStarted"),
        6 => EffortResult::Held,
        _ => EffortResult::Canceled,
    };
    if result == 0 && health.state != State::Unknown {
        health.state = State::Well;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_the_brakes_hold_and_it_settles(
        max_unhealthy in 0i32..5,
        max_concurrent in 1i32..4,
        keep in 0i32..3,
        max_unavailable in 1usize..4,
        actions in prop_oneof![
            Just(vec![Action::RestartServices, Action::Reboot, Action::Replace]),
            Just(vec![Action::RestartServices, Action::Reboot]),
            Just(vec![Action::Replace]),
        ],
        happenings in proptest::collection::vec(happening(), 0..120),
    ) {
        let mut input = input(0);
        for health in &mut input.machines {
            let mut rule = rule();
            rule.remediation.max_unhealthy = IntOrString::Int(max_unhealthy);
            rule.remediation.max_concurrent = max_concurrent;
            rule.remediation.keep_spare_hosts = keep;
            rule.remediation.actions = actions.clone();
            health.rule = Some(rule);
        }
        input.sets.get_mut("worker").unwrap().most = max_unavailable;
        let mut world = World { input, made: 0, replaced: 0 };
        for happening in &happenings {
            world.happens(happening);
            world.turn();
        }
        // Everything is well but the machines; all that begins is carried out, and helps nothing.
        for calm in [Happening::Contact(true), Happening::Etcd(true), Happening::Paused(false), Happening::Change(false), Happening::Elsewhere(0), Happening::Replaced(0), Happening::Approved(false)] {
            world.happens(&calm);
        }
        for health in &mut world.input.machines {
            (health.busy, health.skipped) = (None, None);
        }
        let mut quiet = 0;
        for _ in 0..400 {
            world.input.now += SignedDuration::from_secs(700);
            let now = world.input.now;
            world.input.machines.iter_mut().for_each(|health| end(health, now, 1));
            quiet = if world.turn() { 0 } else { quiet + 1 };
            if quiet > 5 {
                break;
            }
        }
        prop_assert!(quiet > 5, "it goes on for ever: {} actions", world.made);
        let rest = decide(&world.input);
        prop_assert!(rest.decisions.iter().all(|decision| decision.begin.is_none() && !decision.message.is_empty()));
        // Nothing that could be repaired is left lying: each sick one has a reason that a person can do something
        // about.
        let ends = ["NothingLeftToTry", "TooManyUnhealthy", "NoSpareHost", "SpareHostsReserved", "QuorumRisk", "Canceled"];
        for decision in &rest.decisions {
            prop_assert!(ends.contains(&decision.reason.as_str()), "{decision:?}");
        }
        let _ = at(0);
    }
}
