//! `faults`: hits installs on the lab that is up, and says what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use crds::step::{Intent, Step};
use e2e::faults::campaign::{self, Series};
use e2e::faults::fault::{Fault, Place};
use e2e::faults::table;

/// Hits installs of one control plane and one worker, and judges what follows.
#[derive(Parser)]
struct Arguments {
    /// Chooses the moment within each step, and how long outages last
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these faults
    #[arg(long = "fault", value_name = "NAME")]
    faults: Vec<String>,
    /// Only in these steps, e.g. install/etcd
    #[arg(long = "step", value_name = "PLACE")]
    steps: Vec<String>,
    /// A few hits instead of all
    #[arg(long)]
    sample: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let series = if arguments.sample { sample() } else { campaign::by_fault(&arguments.cells()?) };
    let results = campaign::run(series, arguments.seed);
    println!("\n{}", table::render(arguments.seed, &results));
    Ok(if table::all_passed(&results) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Arguments {
    fn cells(&self) -> Result<BTreeSet<(Fault, Place)>> {
        let faults = match self.faults.as_slice() {
            [] => Fault::ALL.to_vec(),
            names => names
                .iter()
                .map(|name| Fault::from_name(name).with_context(|| format!("there is no fault {name:?}: {}", known())))
                .collect::<Result<_>>()?,
        };
        let steps = self
            .steps
            .iter()
            .map(|name| Place::from_name(name).with_context(|| format!("there is no step {name:?}, e.g. install/etcd")))
            .collect::<Result<Vec<_>>>()?;
        let places = |fault: &Fault| {
            if steps.is_empty() { fault.places() } else { steps.clone() }
        };
        Ok(faults.iter().flat_map(|fault| places(fault).into_iter().map(|place| (*fault, place))).collect())
    }
}

fn known() -> String {
    Fault::ALL.map(Fault::name).join(", ")
}

/// One install with a fault of each kind on its way, and two that a person stops.
fn sample() -> Vec<Series> {
    let install = |step| Place { intent: Intent::Install, step };
    let join = |step| Place { intent: Intent::Join, step };
    let series = |name: &str, hits: &[(Place, Fault)]| Series {
        name: format!("sample-{name}"),
        hits: hits.iter().copied().collect::<BTreeMap<Place, Fault>>(),
    };
    vec![
        series(
            "hit",
            &[
                (install(Step::ContainerRuntime), Fault::PowerLost),
                (install(Step::ControlPlane), Fault::PodKilled),
                (join(Step::Node), Fault::HostRebooted),
            ],
        ),
        series("canceled", &[(install(Step::ControlPlane), Fault::RunCanceled)]),
        series("deleted", &[(install(Step::ControlPlane), Fault::ClusterDeleted)]),
        series("operator", &[(install(Step::Etcd), Fault::OperatorStopped)]),
    ]
}
