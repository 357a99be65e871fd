//! What is done when: it follows from the seed alone, so that a walk can be repeated. Which machine or run is meant
//! depends on what is there at that moment.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::action::Action;

/// Between two actions, in seconds.
const PAUSE: std::ops::Range<f64> = 4.0..22.0;
/// How many machines may be destroyed: each takes a spare one's place for good.
pub const DESTROYED: usize = 3;
/// The most workers that are ever wanted.
pub const WORKERS: usize = 3;

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Since the beginning of the walk.
    pub at: Duration,
    /// What is done.
    pub action: Action,
    /// Chooses among those that it can be done to: the one at this index, counted around.
    pub choice: usize,
}

/// What is done in a walk of this length.
pub fn schedule(seed: u64, length: Duration) -> Vec<Event> {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut events, mut at, mut destroyed) = (Vec::new(), Duration::ZERO, 0);
    loop {
        at += Duration::from_secs_f64(random.random_range(PAUSE));
        if at >= length {
            return events;
        }
        let mut action = draw(&mut random);
        if action == Action::Destroy {
            destroyed += 1;
            if destroyed > DESTROYED {
                action = Action::Return;
            }
        }
        let choice = random.random_range(0..1000);
        events.push(Event { at, action, choice });
    }
}

fn draw(random: &mut StdRng) -> Action {
    // From what SSH does not notice to what ends every connection.
    let outage = Duration::from_secs(random.random_range(3..50));
    match random.random_range(0..100) {
        0..10 => Action::KillOperator,
        // The lease is 15 s.
        10..16 => Action::StopOperator(Duration::from_secs(random.random_range(18..28))),
        16..28 => Action::KillExecutor,
        28..36 => Action::DeleteExecutor,
        36..46 => Action::Reboot,
        46..56 => Action::PowerLoss(outage),
        56..68 => Action::CutCable(outage),
        68..76 => Action::Destroy,
        76..82 => Action::Return,
        82..89 => Action::DeleteMachine,
        89..93 => Action::ScaleControlPlanes,
        93..97 => Action::ScaleWorkers(random.random_range(1..=WORKERS)),
        _ => Action::Pause(Duration::from_secs(random.random_range(5..40))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Action, DESTROYED, schedule};

    const LENGTH: Duration = Duration::from_secs(600);

    #[test]
    fn a_seed_repeats_its_walk_and_another_walks_elsewhere() {
        assert_eq!(schedule(7, LENGTH), schedule(7, LENGTH));
        assert_ne!(schedule(7, LENGTH), schedule(8, LENGTH));
    }

    #[test]
    fn a_longer_walk_begins_as_the_shorter_one() {
        let short = schedule(3, LENGTH);
        assert_eq!(schedule(3, 2 * LENGTH)[..short.len()], short);
    }

    #[test]
    fn no_more_machines_are_destroyed_than_there_are_spares_for() {
        for seed in 0..200 {
            let events = schedule(seed, 6 * LENGTH);
            let destroyed = events.iter().filter(|event| event.action == Action::Destroy);
            assert!(destroyed.count() <= DESTROYED, "seed {seed}");
        }
    }

    #[test]
    fn every_kind_of_action_comes_up() {
        let kinds: std::collections::BTreeSet<String> = (0..20)
            .flat_map(|seed| schedule(seed, LENGTH))
            .map(|event| event.action.to_string().split(" for ").next().unwrap_or_default().to_owned())
            .collect();
        assert!(kinds.len() >= 13, "{kinds:?}");
    }
}
