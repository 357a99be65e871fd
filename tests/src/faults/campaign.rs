//! All that is asked for, install by install: what shares nothing goes side by side, what hits all goes alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use super::fault::{Fault, Place};
use super::inject::{self, Node};
use super::installation::{self, Came, Ground, Wanted};
use super::pending::Pending;
use super::schedule::Schedule;
use super::table::{self, Results};
use super::verdict::Verdict;
use crate::scenario::within;

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
        hits: cells.iter().filter(|(of, _)| *of == fault).map(|(fault, place)| (*place, *fault)).collect(),
    });
    series.filter(|series| !series.hits.is_empty()).collect()
}

/// Drives all series and gives all verdicts. What loses a node goes beside the rest: its executors alone are kept to
/// that node, all others and the operators to the one that stays. It mostly waits, and that an operator is away
/// meanwhile makes what is promised of it no easier.
pub fn run(series: Vec<Series>, seed: u64) -> Results {
    let (operator, others): (Vec<Series>, Vec<Series>) = series.into_iter().partition(Series::hits_the_operator);
    let (lossy, steady): (Vec<Series>, Vec<Series>) = others.into_iter().partition(Series::loses_a_node);
    let results = Mutex::new(Results::new());
    let crew = Crew { seed, since: Instant::now(), results: &results };
    let loses = !lossy.is_empty();
    let stays = loses.then_some(Node::STEADY);
    if loses {
        crew.place_operators(true);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| crew.work(&Lane::new(lossy, &[152], Some(Node::LOSSY))));
        // Two cores drive two installs well.
        crew.work(&Lane::new(steady, &[150, 151], stays));
        crew.work(&Lane::new(operator, &[150], stays));
    });
    if loses {
        crew.place_operators(false);
    }
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Series that wait for each other.
struct Lane {
    queue: Mutex<VecDeque<Series>>,
    /// One for each install that goes on at the same time.
    grounds: Vec<Ground>,
}

impl Lane {
    fn new(series: Vec<Series>, networks: &[u8], node: Option<Node>) -> Self {
        let ground = |network: &u8| Ground { pod_cidr: format!("10.{network}.0.0/16"), node };
        Self { queue: Mutex::new(series.into()), grounds: networks.iter().map(ground).collect() }
    }

    fn next(&self) -> Option<Series> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Who drives the series.
struct Crew<'a> {
    seed: u64,
    since: Instant,
    results: &'a Mutex<Results>,
}

impl Crew<'_> {
    fn work(&self, lane: &Lane) {
        std::thread::scope(|scope| {
            for ground in &lane.grounds {
                scope.spawn(move || {
                    while let Some(series) = lane.next() {
                        let came = self.drive(&series, ground);
                        self.results.lock().unwrap_or_else(PoisonError::into_inner).extend(came);
                    }
                });
            }
        });
    }

    /// Drives one series on a runtime of its own: what blocks one install does not hold up another's hit.
    fn drive(&self, series: &Series, ground: &Ground) -> Results {
        match runtime() {
            Ok(runtime) => runtime.block_on(series.drive(self, ground)),
            Err(error) => series.failed(&format!("failed to start a runtime: {error}")),
        }
    }

    /// Keeps the operators off the node that is lost, or lets them go. If that fails, a lost node takes one of them
    /// away too, which makes what is promised no easier.
    fn place_operators(&self, kept: bool) {
        let placed = runtime().map_err(anyhow::Error::from).and_then(|runtime| {
            runtime.block_on(async { inject::keep_operators(&inject::administrator().await?, kept).await })
        });
        if let Err(error) = placed {
            println!("failed to place the operators: {error:?}");
        }
    }

    /// Says what is certain at once: a campaign that is broken off has proved so much.
    fn say(&self, fault: Fault, place: Place, verdict: &Verdict) {
        let seconds = self.since.elapsed().as_secs_f64();
        println!("[{seconds:>6.1} s] = {} in {place}: {}", fault.name(), table::cell(verdict));
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

impl Series {
    fn hits_the_operator(&self) -> bool {
        self.hits.values().any(|fault| fault.hits_the_operator())
    }

    fn loses_a_node(&self) -> bool {
        self.hits.values().any(|fault| *fault == Fault::NodeLost)
    }

    async fn drive(&self, crew: &Crew<'_>, ground: &Ground) -> Results {
        let mut pending = Pending::new(&self.hits);
        let installs = if self.hits_the_operator() { INSTALLS_OF_OPERATOR } else { INSTALLS };
        for _ in 0..installs {
            let wanted = pending.wanted();
            if wanted.is_empty() {
                break;
            }
            match self.install(&wanted, crew.seed, ground).await {
                Ok(came) => {
                    for (place, came) in came {
                        if let Some((fault, verdict)) = pending.take(place, came) {
                            crew.say(fault, place, &verdict);
                        }
                    }
                }
                // What an install is about breaks off seldom: the next one tells.
                Err(error) => {
                    println!("{}: {error:?}", self.name);
                    pending.broke_off(&format!("{error:#}"));
                }
            }
        }
        pending.results(installs)
    }

    async fn install(&self, wanted: &Wanted, seed: u64, ground: &Ground) -> Result<BTreeMap<Place, Came>> {
        let mut came = None;
        let ended = within(&self.name, async |scenario| {
            came = Some(installation::install(scenario, wanted, Schedule::new(seed), ground).await?);
            if self.loses_a_node() {
                inject::start_node(&scenario.client)
                    .await
                    .context("failed to make the metadata cluster whole again")?;
            }
            Ok(())
        })
        .await;
        match (came, ended) {
            (Some(came), Ok(())) => Ok(came),
            (Some(came), Err(error)) => {
                // What was seen has been seen.
                println!("{}: {error:?}", self.name);
                Ok(came)
            }
            (None, ended) => Err(ended.err().unwrap_or_else(|| anyhow!("nothing came of it"))),
        }
    }

    fn failed(&self, why: &str) -> Results {
        self.hits.iter().map(|(place, fault)| ((*fault, *place), Verdict::Failed(vec![why.to_owned()]))).collect()
    }
}
