//! All that is asked for, install by install: what shares nothing goes side by side, what hits all goes alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

use super::course::{self, Came, Wanted};
use super::fault::{Fault, Place};
use super::inject;
use super::schedule::Schedule;
use super::table::Results;
use super::verdict::Verdict;
use crate::scenario::within;

/// Two cores drive two installs well.
const SIDE_BY_SIDE: usize = 2;
/// Steps that were over too soon are tried again in as many installs.
const INSTALLS: u32 = 4;
/// An operator that comes back misses some steps: they wait for the next install.
const INSTALLS_OF_OPERATOR: u32 = 10;

/// Installs that begin as one: what each has to be hit with.
pub struct Series {
    /// The namespace.
    pub name: String,
    /// At most one fault in a step.
    pub hits: BTreeMap<Place, Fault>,
}

/// One series a fault, as far as its cells are asked for.
pub fn by_fault(cells: &BTreeSet<(Fault, Place)>) -> Vec<Series> {
    let series = Fault::ALL.into_iter().map(|fault| Series {
        name: format!("fault-{}", fault.name()),
        hits: cells
            .iter()
            .filter(|(of, _)| *of == fault)
            .map(|(fault, place)| (*place, *fault))
            .collect(),
    });
    series.filter(|series| !series.hits.is_empty()).collect()
}

/// Drives all series and gives all verdicts.
pub fn run(series: Vec<Series>, seed: u64) -> Results {
    let (alone, beside): (Vec<Series>, Vec<Series>) =
        series.into_iter().partition(Series::needs_the_lab_alone);
    let results = Mutex::new(Results::new());
    work(beside, SIDE_BY_SIDE, seed, &results);
    work(alone, 1, seed, &results);
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn work(series: Vec<Series>, threads: usize, seed: u64, results: &Mutex<Results>) {
    let queue = Mutex::new(VecDeque::from(series));
    std::thread::scope(|scope| {
        for slot in 0..threads {
            let queue = &queue;
            scope.spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(series) = next else {
                        return;
                    };
                    let came = drive(&series, slot, seed);
                    results
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .extend(came);
                }
            });
        }
    });
}

/// Drives one series on a runtime of its own: what blocks one install does not hold up another's hit.
fn drive(series: &Series, slot: usize, seed: u64) -> Results {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(series.drive(slot, seed)),
        Err(error) => series.failed(&series.hits, &format!("failed to start a runtime: {error}")),
    }
}

impl Series {
    fn needs_the_lab_alone(&self) -> bool {
        self.hits.values().any(|fault| fault.needs_the_lab_alone())
    }

    async fn drive(&self, slot: usize, seed: u64) -> Results {
        let mut left = self.hits.clone();
        let mut late: BTreeMap<Place, String> = BTreeMap::new();
        let mut results = Results::new();
        let operator = self.hits.values().any(|fault| fault.hits_the_operator());
        let installs = if operator { INSTALLS_OF_OPERATOR } else { INSTALLS };
        for tries in 0..installs {
            if left.is_empty() {
                break;
            }
            let wanted: Wanted = left
                .iter()
                .map(|(place, fault)| (*place, (*fault, tries)))
                .collect();
            match self.install(&wanted, slot, seed).await {
                Ok(came) => {
                    for (place, came) in came {
                        match came {
                            Came::Judged(verdict) => {
                                if let Some(fault) = left.remove(&place) {
                                    results.insert((fault, place), verdict);
                                }
                            }
                            Came::Late(why) => {
                                late.insert(place, why);
                            }
                        }
                    }
                }
                Err(error) => {
                    println!("{}: {error:?}", self.name);
                    results.extend(self.failed(&left, &format!("{error:#}")));
                    return results;
                }
            }
        }
        for (place, fault) in left {
            let why = late.remove(&place).unwrap_or_default();
            results.insert(
                (fault, place),
                Verdict::NotHit(format!("in {installs} installs: {why}")),
            );
        }
        results
    }

    async fn install(&self, wanted: &Wanted, slot: usize, seed: u64) -> Result<BTreeMap<Place, Came>> {
        let pod_cidr = format!("10.{}.0.0/16", 150 + slot);
        within(&self.name, async |scenario| {
            let came = course::install(scenario, wanted, Schedule::new(seed), &pod_cidr).await;
            if wanted.values().any(|(fault, _)| *fault == Fault::NodeLost) {
                inject::use_all_nodes(&scenario.client)
                    .await
                    .context("failed to make the metadata cluster whole again")?;
            }
            came
        })
        .await
    }

    fn failed(&self, left: &BTreeMap<Place, Fault>, why: &str) -> Results {
        left.iter()
            .map(|(place, fault)| ((*fault, *place), Verdict::Failed(vec![why.to_owned()])))
            .collect()
    }
}
