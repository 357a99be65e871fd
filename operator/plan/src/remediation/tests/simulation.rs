//! A cluster whose machines fall sick, recover, vanish and come, and what must hold at every turn of it.

use std::collections::BTreeMap;

use crds::remediation_policy::RemediationAction as Action;
use crds::step::Role;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use proptest::prelude::*;

use super::{
    Effort, EffortResult, Patient, State, Verdict, Ward, at, decide, failed, not_tried, patient, rule, ward,
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
    ward: Ward,
    made: usize,
    replaced: usize,
}

impl World {
    fn happens(&mut self, happening: &Happening) {
        let now = self.ward.now;
        let lost = self.ward.unreachable.is_some();
        match happening {
            Happening::FallsSick(index) => {
                let patient = self.nth(*index);
                if patient.joined && patient.state == State::Well {
                    patient.state = State::Sick {
                        since: now,
                        what: "silent".into(),
                    };
                }
            }
            Happening::Recovers(index) => {
                let patient = self.nth(*index);
                if patient.joined && !lost {
                    patient.state = State::Well;
                }
            }
            Happening::StopsStarting(index) => {
                let patient = self.nth(*index);
                if patient.role == Role::Worker && patient.efforts.is_empty() {
                    patient.joined = false;
                    patient.state = State::NeverStarted {
                        since: now,
                        what: "no SSH".into(),
                    };
                }
            }
            Happening::SetSkip(index, skip) => self.nth(*index).skipped = *skip,
            Happening::Busy(index, busy) => {
                let patient = self.nth(*index);
                let works = patient
                    .efforts
                    .last()
                    .is_some_and(|last| last.result == EffortResult::UnderWay);
                patient.busy = (*busy && !works).then(|| "by-hand".into());
            }
            Happening::Ends(index, result) => end(self.nth(*index), now, *result),
            Happening::Contact(made) => self.contact(*made),
            Happening::Etcd(well) => self.ward.etcd = (!well).then(|| "no leader".into()),
            Happening::Paused(paused) => self.ward.paused = *paused,
            Happening::Change(change) => self.ward.change = change.then(|| "c9 joins".into()),
            Happening::Elsewhere(number) => self.ward.elsewhere = *number,
            Happening::Spares(free) => self.ward.spares.free = *free,
            Happening::Replaced(number) => {
                let set = self.ward.sets.get_mut("worker").unwrap();
                set.replaced = *number;
            }
            Happening::Approved(approved) => self.ward.approved = *approved,
            Happening::LosesStatus => (self.ward.was_too_many, self.ward.calm_since) = (false, None),
            Happening::Passes(seconds) => self.ward.now += SignedDuration::from_secs(*seconds),
        }
        let free = self.ward.spares.free;
        self.ward
            .patients
            .iter_mut()
            .for_each(|patient| patient.fitting = free);
    }

    fn nth(&mut self, index: usize) -> &mut Patient {
        let count = self.ward.patients.len();
        &mut self.ward.patients[index % count]
    }

    fn contact(&mut self, made: bool) {
        let now = self.ward.now;
        match (made, self.ward.unreachable.is_some()) {
            (false, false) => {
                self.ward.unreachable = Some("no answer".into());
                for patient in self.ward.patients.iter_mut().filter(|patient| patient.joined) {
                    patient.told = patient.state != State::Well;
                    patient.state = State::Unknown;
                }
            }
            (true, true) => {
                self.ward.unreachable = None;
                for patient in self.ward.patients.iter_mut().filter(|patient| patient.joined) {
                    patient.state = if patient.told {
                        State::Sick {
                            since: now,
                            what: "silent".into(),
                        }
                    } else {
                        State::Well
                    };
                }
            }
            _ => {}
        }
    }

    /// Decides, checks what must hold, and carries it out; true when anything began.
    fn turn(&mut self) -> bool {
        let before = self.ward.clone();
        let round = decide(&before);
        self.check(&before, &round);
        (self.ward.was_too_many, self.ward.calm_since) = (round.too_many, round.calm_since);
        let mut began = false;
        for verdict in &round.verdicts {
            let Some(begin) = &verdict.begin else { continue };
            began = true;
            self.made += 1;
            if begin.action == Action::Replace {
                self.replaced += 1;
                self.ward.spares.free -= 1;
                let gone = self.patient(&verdict.machine).clone();
                self.ward.patients.retain(|patient| patient.name != gone.name);
                // Its set makes another, which takes the spare Host and joins at once.
                let name = format!("{}x", gone.name);
                let state = State::Well;
                let mut new = patient(&name, gone.role, state);
                new.rule = gone.rule;
                self.ward.patients.push(new);
                continue;
            }
            let (now, run) = (self.ward.now, format!("r{}", self.made));
            self.patient(&verdict.machine).efforts.push(Effort {
                run,
                action: begin.action,
                made: now,
                ended: now,
                retry: None,
                result: EffortResult::UnderWay,
            });
        }
        let free = self.ward.spares.free;
        self.ward
            .patients
            .iter_mut()
            .for_each(|patient| patient.fitting = free);
        began
    }

    fn patient(&mut self, name: &str) -> &mut Patient {
        self.ward
            .patients
            .iter_mut()
            .find(|patient| patient.name == name)
            .unwrap()
    }

    fn check(&self, ward: &Ward, round: &super::super::Round) {
        let by_name: BTreeMap<&str, &Patient> = ward
            .patients
            .iter()
            .map(|patient| (patient.name.as_str(), patient))
            .collect();
        let begins: Vec<_> = round
            .verdicts
            .iter()
            .filter(|verdict| verdict.begin.is_some())
            .collect();
        let active = round.verdicts.iter().filter(|verdict| verdict.action.is_some());
        let sick = ward
            .patients
            .iter()
            .filter(|patient| matches!(patient.state, State::Sick { .. }))
            .count();
        let (mut replaces, mut control_planes) = (0, 0);
        for verdict in active.clone() {
            control_planes += usize::from(by_name[verdict.machine.as_str()].role != Role::Worker);
        }
        for verdict in &begins {
            let patient = by_name[verdict.machine.as_str()];
            let remediation = &patient.rule.as_ref().unwrap().remediation;
            let action = verdict.action.unwrap();
            assert!(!ward.paused && ward.unreachable.is_none() && ward.etcd.is_none());
            assert!(!patient.skipped && patient.busy.is_none());
            let IntOrString::Int(most) = remediation.max_unhealthy else {
                unreachable!()
            };
            let few = sick <= usize::try_from(most).unwrap();
            assert!(few || ward.approved, "maxUnhealthy");
            let set = patient.set.as_ref().unwrap();
            let of_set = |verdict: &&&Verdict| {
                let other = by_name[verdict.machine.as_str()];
                other.set.as_ref() == Some(set) && other.may_serve()
            };
            let seen = ward.sets[set];
            let out = seen.replaced + active.clone().filter(|verdict| of_set(&verdict)).count();
            assert!(out <= seen.most || !patient.may_serve(), "maxUnavailable");
            let under_repair = ward.elsewhere + active.clone().count();
            assert!(
                under_repair <= usize::try_from(remediation.max_concurrent).unwrap(),
                "budget"
            );
            let last = patient.efforts.last();
            assert!(
                last.is_none_or(|last| last.result != EffortResult::UnderWay),
                "two at once"
            );
            if let Some(last) = last.filter(|last| last.result == EffortResult::Done) {
                let fresh = matches!(&patient.state, State::Sick { since, .. } if *since > last.ended);
                let wait = SignedDuration::from_secs(i64::from(remediation.wait_seconds));
                assert!(fresh || last.ended + wait <= ward.now, "not waited for");
            }
            if patient.role != Role::Worker {
                assert!(
                    ward.change.is_none() && control_planes == 1,
                    "one control plane at a time"
                );
                let of_etcd = ward.patients.iter().filter(|other| other.role == patient.role);
                let left = of_etcd.clone().filter(|other| other.name != patient.name);
                let well = left.filter(|other| other.state == State::Well).count();
                let safe = action == Action::RestartServices || well > of_etcd.count() / 2;
                assert!(safe, "etcd keeps its majority");
            }
            replaces += usize::from(action == Action::Replace);
        }
        assert!(
            replaces + ward.spares.awaited <= ward.spares.free || replaces == 0,
            "no more than the pool has"
        );
    }
}

fn end(patient: &mut Patient, now: jiff::Timestamp, result: u8) {
    let Some(last) = patient
        .efforts
        .last_mut()
        .filter(|last| last.result == EffortResult::UnderWay)
    else {
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
    if result == 0 && patient.state != State::Unknown {
        patient.state = State::Well;
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
        let mut ward = ward(0);
        for patient in &mut ward.patients {
            let mut rule = rule();
            rule.remediation.max_unhealthy = IntOrString::Int(max_unhealthy);
            rule.remediation.max_concurrent = max_concurrent;
            rule.remediation.keep_spare_hosts = keep;
            rule.remediation.actions = actions.clone();
            patient.rule = Some(rule);
        }
        ward.sets.get_mut("worker").unwrap().most = max_unavailable;
        let mut world = World { ward, made: 0, replaced: 0 };
        for happening in &happenings {
            world.happens(happening);
            world.turn();
        }
        // Everything is well but the machines; all that begins is carried out, and helps nothing.
        for calm in [Happening::Contact(true), Happening::Etcd(true), Happening::Paused(false), Happening::Change(false), Happening::Elsewhere(0), Happening::Replaced(0), Happening::Approved(false)] {
            world.happens(&calm);
        }
        for patient in &mut world.ward.patients {
            (patient.busy, patient.skipped) = (None, false);
        }
        let mut quiet = 0;
        for _ in 0..400 {
            world.ward.now += SignedDuration::from_secs(700);
            let now = world.ward.now;
            world.ward.patients.iter_mut().for_each(|patient| end(patient, now, 1));
            quiet = if world.turn() { 0 } else { quiet + 1 };
            if quiet > 5 {
                break;
            }
        }
        prop_assert!(quiet > 5, "it goes on for ever: {} actions", world.made);
        let rest = decide(&world.ward);
        prop_assert!(rest.verdicts.iter().all(|verdict| verdict.begin.is_none() && !verdict.message.is_empty()));
        // Nothing that could be repaired is left lying: each sick one has a reason that a person can do something
        // about.
        let ends = ["NothingLeftToTry", "TooManyUnhealthy", "NoSpareHost", "SpareHostsReserved", "QuorumRisk", "Canceled"];
        for verdict in &rest.verdicts {
            prop_assert!(ends.contains(&verdict.reason.as_str()), "{verdict:?}");
        }
        let _ = at(0);
    }
}
