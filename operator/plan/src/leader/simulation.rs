//! Several candidates and one Lease, in a world where clocks run differently, processes are paused and killed, requests
//! take long and answers get lost. Whatever happens, never two of them hold the Lease at the same moment.

use std::time::Duration;

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

use super::{Candidate, Decision, Moment, Record, Times, Write};

/// What a request asks for.
#[derive(Clone, Debug)]
enum Ask {
    Look,
    Write(Write),
}

/// What the server answered: a read, a write done, a write refused.
#[derive(Clone, Debug)]
enum Answer {
    Read(Option<Record>),
    Wrote(Record),
    Refused,
}

/// A request under way, in milliseconds of the world's time.
#[derive(Clone, Debug)]
struct UnderWay {
    ask: Ask,
    sent: Moment,
    arrives: u64,
    answered: u64,
    answer: Option<Answer>,
    lost: bool,
}

struct Process {
    candidate: Candidate,
    life: u32,
    /// Its clock: what it showed when the world began, and how many of its milliseconds pass in 1000 of the world's.
    clock: (u64, u64),
    runs: bool,
    lives: bool,
    under_way: Option<UnderWay>,
    /// Left by those who gave up waiting or were killed: may arrive yet.
    adrift: Vec<(u64, Write, String)>,
}

struct World {
    now: u64,
    record: Option<Record>,
    version: u64,
    processes: Vec<Process>,
    dice: u64,
    slowest: u64,
    losses: u64,
}

/// How long a request is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

fn times() -> Times {
    Times::of_seconds(15, 10, 2).unwrap()
}

impl World {
    fn new(clocks: &[(u64, u64)], dice: u64) -> Self {
        let process = |(index, clock): (usize, &(u64, u64))| Process {
            candidate: Candidate::new(format!("{index}-0"), times()),
            life: 0,
            clock: *clock,
            runs: true,
            lives: true,
            under_way: None,
            adrift: Vec::new(),
        };
        Self {
            now: 0,
            record: None,
            version: 0,
            processes: clocks.iter().enumerate().map(process).collect(),
            dice: dice | 1,
            slowest: 50,
            losses: 0,
        }
    }

    fn throw(&mut self, sides: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % sides.max(1)
    }

    fn clock(&self, index: usize) -> Moment {
        let (start, rate) = self.processes[index].clock;
        Moment(Duration::from_micros(start * 1000 + self.now * rate))
    }

    /// Who holds the Lease by its own clock; one that is paused does, too, until its time is over.
    fn holders(&self) -> Vec<usize> {
        let holds = |index: &usize| {
            let process = &self.processes[*index];
            let until = process.candidate.holds_until();
            process.lives && until.is_some_and(|until| self.clock(*index) < until)
        };
        (0..self.processes.len()).filter(holds).collect()
    }

    fn serve(&mut self, ask: &Ask, holder: &str) -> Answer {
        let Ask::Write(write) = ask else {
            return Answer::Read(self.record.clone());
        };
        if write.version != self.record.as_ref().map(|record| record.version.clone()) {
            return Answer::Refused;
        }
        self.version += 1;
        let record = Record {
            version: self.version.to_string(),
            holder: (!holder.is_empty()).then(|| holder.to_owned()),
            lease_seconds: Some(15),
            transitions: write.transitions,
        };
        self.record = Some(record.clone());
        Answer::Wrote(record)
    }

    fn restart(&mut self, index: usize) {
        let process = &mut self.processes[index];
        process.life += 1;
        process.candidate = Candidate::new(format!("{index}-{}", process.life), times());
        (process.lives, process.runs) = (true, true);
    }

    fn kill(&mut self, index: usize) {
        let process = &mut self.processes[index];
        process.lives = false;
        let name = format!("{index}-{}", process.life);
        if let Some(UnderWay { ask: Ask::Write(write), arrives, answer: None, .. }) = process.under_way.take() {
            process.adrift.push((arrives, write, name));
        }
    }

    /// One process after the other gets its turn, once in each twenty milliseconds.
    fn turn(&mut self) {
        self.now += 20;
        for index in 0..self.processes.len() {
            self.deliver(index);
            let process = &self.processes[index];
            if process.lives && process.runs {
                self.act(index);
            }
            let holders = self.holders();
            assert!(holders.len() < 2, "at {} ms both of {holders:?} hold it", self.now);
        }
    }

    /// What is due arrives at the server, whether its sender runs or not.
    fn deliver(&mut self, index: usize) {
        let now = self.now;
        let due = |(arrives, _, _): &mut (u64, Write, String)| *arrives <= now;
        let adrift: Vec<_> = self.processes[index].adrift.extract_if(.., due).collect();
        for (_, write, name) in adrift {
            self.serve(&Ask::Write(write), &name);
        }
        let name = format!("{index}-{}", self.processes[index].life);
        let Some(mut under_way) = self.processes[index].under_way.take() else {
            return;
        };
        if under_way.answer.is_none() && under_way.arrives <= now {
            under_way.answer = Some(self.serve(&under_way.ask, &name));
        }
        self.processes[index].under_way = Some(under_way);
    }

    fn act(&mut self, index: usize) {
        let (now, clock) = (self.now, self.clock(index));
        let chance = self.throw(1000) as f64 / 1000.0;
        if let Some(under_way) = self.processes[index].under_way.take() {
            let name = format!("{index}-{}", self.processes[index].life);
            let process = &mut self.processes[index];
            let candidate = &mut process.candidate;
            match under_way.answer.clone() {
                Some(answer) if !under_way.lost && under_way.answered <= now => match answer {
                    Answer::Read(record) => candidate.saw(record, clock, chance),
                    Answer::Wrote(record) => candidate.wrote(record, under_way.sent, clock, chance),
                    Answer::Refused => candidate.was_refused(clock),
                },
                answer if clock.since(under_way.sent) >= PATIENCE => {
                    candidate.failed(under_way.sent, chance);
                    if let (Ask::Write(write), None) = (under_way.ask, answer) {
                        process.adrift.push((under_way.arrives, write, name));
                    }
                }
                _ => process.under_way = Some(under_way),
            }
        }
        let process = &self.processes[index];
        if process.under_way.is_some() {
            // The driver's own watch: it does not wait for an answer beyond the end of its time.
            if process.candidate.holds_until().is_some_and(|until| clock >= until) {
                self.kill(index);
            }
            return;
        }
        let ask = match process.candidate.decide(clock) {
            Decision::WaitUntil(_) => return,
            Decision::Lost(_) => return self.kill(index),
            Decision::Look => Ask::Look,
            Decision::Acquire(write) | Decision::Renew(write) => Ask::Write(write),
        };
        let (there, back) = (self.throw(self.slowest), self.throw(self.slowest));
        let lost = self.throw(100) < self.losses;
        self.processes[index].under_way =
            Some(UnderWay { ask, sent: clock, arrives: now + there, answered: now + there + back, answer: None, lost });
    }

    fn run(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds / 20 {
            self.turn();
        }
    }
}

#[derive(Clone, Debug)]
enum Happens {
    Nothing,
    Pause(usize),
    GoOn(usize),
    Kill(usize),
    Restart(usize),
    Network { slowest: u64, losses: u64 },
}

fn happens() -> impl Strategy<Value = (Happens, u64)> {
    let what = prop_oneof![
        Just(Happens::Nothing),
        (0..3usize).prop_map(Happens::Pause),
        (0..3usize).prop_map(Happens::Pause),
        (0..3usize).prop_map(Happens::GoOn),
        (0..3usize).prop_map(Happens::GoOn),
        (0..3usize).prop_map(Happens::Kill),
        (0..3usize).prop_map(Happens::Restart),
        (1..20_000u64, 0..100u64).prop_map(|(slowest, losses)| Happens::Network { slowest, losses }),
        (500..4_000u64).prop_map(|slowest| Happens::Network { slowest, losses: 0 }),
        (500..4_000u64).prop_map(|slowest| Happens::Network { slowest, losses: 0 }),
        Just(Happens::Network { slowest: 50, losses: 0 }),
    ];
    (what, 0..20_000u64)
}

/// Clocks that began at any time and run up to an eighth too fast or too slow.
fn clocks() -> impl Strategy<Value = Vec<(u64, u64)>> {
    proptest::collection::vec((0..10_000_000u64, 875..1125u64), 3)
}

proptest! {
    #[test]
    fn never_two_hold_the_lease(
        clocks in clocks(),
        dice in any::<u64>(),
        story in proptest::collection::vec(happens(), 1..30),
    ) {
        let mut world = World::new(&clocks, dice);
        for (happens, then) in story {
            match happens {
                Happens::Nothing => {}
                Happens::Pause(index) => world.processes[index].runs = false,
                Happens::GoOn(index) => world.processes[index].runs = true,
                Happens::Kill(index) => world.kill(index),
                Happens::Restart(index) if world.processes[index].lives => {}
                Happens::Restart(index) => world.restart(index),
                Happens::Network { slowest, losses } => (world.slowest, world.losses) = (slowest, losses),
            }
            world.run(then);
        }
        // When all is well again, and who ended is started again, one of them leads soon.
        (world.slowest, world.losses) = (50, 0);
        for _ in 0..60 {
            for index in 0..3 {
                if !world.processes[index].lives {
                    world.restart(index);
                }
                world.processes[index].runs = true;
            }
            world.run(1_000);
        }
        assert_eq!(world.holders().len(), 1, "nobody leads");
    }

    #[test]
    fn a_holder_that_dies_is_followed_within_lease_and_retry(dice in any::<u64>(), lived in 1_000..30_000u64) {
        let mut world = World::new(&[(0, 1000), (5_000, 1000), (77, 1000)], dice);
        world.run(lived);
        let holder = world.holders()[0];
        world.kill(holder);
        let died = world.now;
        while world.holders().is_empty() && world.now < died + 60_000 {
            world.turn();
        }
        let took = world.now - died;
        // A request takes up to 100 ms there and back.
        assert!((13_000 - 200..=17_000 + 200).contains(&took), "it took {took} ms");
    }

    #[test]
    fn one_that_only_looks_never_disturbs_a_holder(dice in any::<u64>()) {
        let mut world = World::new(&[(0, 1000), (0, 1125), (0, 875)], dice);
        world.run(2_000);
        let holder = world.holders();
        for _ in 0..30 {
            world.run(2_000);
            assert_eq!(world.holders(), holder);
        }
        assert_eq!(world.record.map(|record| record.transitions), Some(0));
    }
}
