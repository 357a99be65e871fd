//! All that is asked for, install by install: what shares nothing goes side by side, what hits all goes alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

use super::course::{self, Came, Ground, Wanted};
use super::fault::{Fault, Place};
use super::inject::{self, Node};
use super::schedule::Schedule;
use super::table::Results;
use super::verdict::Verdict;
use super::wishes::Wishes;
use crate::scenario::within;

/// Two cores drive two installs well.
const SIDE_BY_SIDE: usize = 2;
/// Steps that were over too soon are tried again in as many installs.
const INSTALLS: u32 = 6;
/// An operator that comes back misses some steps: they wait for the next install.
const INSTALLS_OF_OPERATOR: u32 = 12;

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

/// Drives all series and gives all verdicts. What loses a node goes beside the rest: its executors alone are kept to
/// that node, all others and the operators to the one that stays.
pub fn run(series: Vec<Series>, seed: u64) -> Results {
    let (alone, beside): (Vec<Series>, Vec<Series>) =
        series.into_iter().partition(Series::needs_the_lab_alone);
    let (lossy, steady): (Vec<Series>, Vec<Series>) = beside.into_iter().partition(Series::loses_a_node);
    let results = Mutex::new(Results::new());
    let crew = Crew {
        seed,
        results: &results,
    };
    if lossy.is_empty() {
        crew.work(vec![Lane::of(steady, SIDE_BY_SIDE, None)]);
    } else {
        let lanes = vec![
            Lane::of(steady, SIDE_BY_SIDE, Some(Node::STEADY)),
            Lane::of(lossy, 1, Some(Node::LOSSY)),
        ];
        crew.prepare(true);
        crew.work(lanes);
        crew.prepare(false);
    }
    crew.work(vec![Lane::of(alone, 1, None)]);
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Series that wait for each other.
struct Lane {
    queue: Mutex<VecDeque<Series>>,
    threads: usize,
    node: Option<Node>,
}

impl Lane {
    fn of(series: Vec<Series>, threads: usize, node: Option<Node>) -> Self {
        Self {
            queue: Mutex::new(series.into()),
            threads,
            node,
        }
    }

    fn next(&self) -> Option<Series> {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

/// Who drives the series.
struct Crew<'a> {
    seed: u64,
    results: &'a Mutex<Results>,
}

impl Crew<'_> {
    /// Works on all lanes at once, each thread with a Pod network of its own.
    fn work(&self, lanes: Vec<Lane>) {
        std::thread::scope(|scope| {
            let mut networks = 150..;
            for lane in &lanes {
                for network in networks.by_ref().take(lane.threads) {
                    let ground = Ground {
                        pod_cidr: format!("10.{network}.0.0/16"),
                        node: lane.node,
                    };
                    scope.spawn(move || {
                        while let Some(series) = lane.next() {
                            let came = self.drive(&series, &ground);
                            self.results
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .extend(came);
                        }
                    });
                }
            }
        });
    }

    /// Drives one series on a runtime of its own: what blocks one install does not hold up another's hit.
    fn drive(&self, series: &Series, ground: &Ground) -> Results {
        match runtime() {
            Ok(runtime) => runtime.block_on(series.drive(self.seed, ground)),
            Err(error) => series.failed(&format!("failed to start a runtime: {error}")),
        }
    }

    /// Keeps the operators off the node that is lost, or lets them go. If that fails, a lost node takes one of them away
    /// too, which makes what is promised no easier.
    fn prepare(&self, kept: bool) {
        let placed = runtime().map_err(anyhow::Error::from).and_then(|runtime| {
            runtime.block_on(async { inject::keep_operators(&inject::administrator().await?, kept).await })
        });
        if let Err(error) = placed {
            println!("failed to place the operators: {error:?}");
        }
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}

impl Series {
    fn needs_the_lab_alone(&self) -> bool {
        self.hits.values().any(|fault| fault.needs_the_lab_alone())
    }

    fn loses_a_node(&self) -> bool {
        self.hits.values().any(|fault| *fault == Fault::NodeLost)
    }

    async fn drive(&self, seed: u64, ground: &Ground) -> Results {
        let mut wishes = Wishes::new(&self.hits);
        let operator = self.hits.values().any(|fault| fault.hits_the_operator());
        let installs = if operator { INSTALLS_OF_OPERATOR } else { INSTALLS };
        for _ in 0..installs {
            let wanted = wishes.wanted();
            if wanted.is_empty() {
                break;
            }
            match self.install(&wanted, seed, ground).await {
                Ok(came) => came
                    .into_iter()
                    .for_each(|(place, came)| wishes.take(place, came)),
                // What an install is about breaks off seldom: the next one tells.
                Err(error) => {
                    println!("{}: {error:?}", self.name);
                    wishes.broke_off(&format!("{error:#}"));
                }
            }
        }
        wishes.results(installs)
    }

    async fn install(&self, wanted: &Wanted, seed: u64, ground: &Ground) -> Result<BTreeMap<Place, Came>> {
        within(&self.name, async |scenario| {
            let came = course::install(scenario, wanted, Schedule::new(seed), ground).await;
            if self.loses_a_node() {
                inject::start_node(&scenario.client)
                    .await
                    .context("failed to make the metadata cluster whole again")?;
            }
            came
        })
        .await
    }

    fn failed(&self, why: &str) -> Results {
        self.hits
            .iter()
            .map(|(place, fault)| ((*fault, *place), Verdict::Failed(vec![why.to_owned()])))
            .collect()
    }
}
