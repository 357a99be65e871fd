//! All scenarios that are asked for: two clusters at a time, and those that are measured alone.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::profile::Profile;
use super::scenario::LifecycleScenario;
use super::table::Row;

/// Two cores drive two clusters well.
const SIDE_BY_SIDE: usize = 2;

/// Plays the scenarios and says how each went, in their order.
pub fn run(scenarios: &[LifecycleScenario]) -> Vec<Row> {
    let profiles = Profile::ALL.map(|profile| {
        let of = |scenario: &LifecycleScenario| scenario.profile() == profile;
        let ours: Vec<LifecycleScenario> =
            LifecycleScenario::ALL.into_iter().filter(of).filter(|s| scenarios.contains(s)).collect();
        (profile, ours)
    });
    let asked = profiles.into_iter().filter(|(_, scenarios)| !scenarios.is_empty());
    let (alone, beside): (Vec<_>, Vec<_>) = asked.partition(|(profile, _)| profile.goes_alone());
    let rows = Mutex::new(Vec::new());
    work(beside, SIDE_BY_SIDE, &rows);
    work(alone, 1, &rows);
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|row: &Row| row.scenario);
    rows
}

fn work(profiles: Vec<(Profile, Vec<LifecycleScenario>)>, threads: usize, rows: &Mutex<Vec<Row>>) {
    let queue = Mutex::new(VecDeque::from(profiles));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let queue = &queue;
            scope.spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some((profile, scenarios)) = next else {
                        return;
                    };
                    let played = play(profile, &scenarios);
                    rows.lock().unwrap_or_else(PoisonError::into_inner).extend(played);
                }
            });
        }
    });
}

/// On a runtime of its own: what blocks one cluster does not hold up the other.
fn play(profile: Profile, scenarios: &[LifecycleScenario]) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(profile.play(scenarios)),
        Err(error) => scenarios
            .iter()
            .map(|scenario| Row {
                scenario: *scenario,
                seen: Err(format!("failed to start a runtime: {error}")),
                took: std::time::Duration::ZERO,
            })
            .collect(),
    }
}
