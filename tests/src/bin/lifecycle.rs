//! `lifecycle`: plays what happens to clusters in their lives on the lab that is up, and says what was seen.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use e2e::lifecycle::profile::Profile;
use e2e::lifecycle::scenario::LifecycleScenario;
use e2e::lifecycle::{campaign, table};

/// Plays scenarios from the lives of clusters on real machines.
#[derive(Parser)]
struct Arguments {
    /// Only these
    #[arg(long = "scenario", value_name = "NAME")]
    scenarios: Vec<String>,
    /// A few instead of all
    #[arg(long)]
    sample: bool,
    /// Only those that other clusters may be beside
    #[arg(long, conflicts_with = "alone")]
    beside: bool,
    /// Only those that are measured alone
    #[arg(long)]
    alone: bool,
    /// Those of backups and restores instead of the others
    #[arg(long, conflicts_with = "sample")]
    backups: bool,
    /// Those of changes of running clusters instead of the others
    #[arg(long, conflicts_with_all = ["sample", "backups"])]
    changes: bool,
    /// Says what there is
    #[arg(long)]
    list: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.list {
        for scenario in LifecycleScenario::ALL {
            println!("{:<22} {}", scenario.name(), scenario.promise());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let rows = campaign::run(&arguments.scenarios()?);
    println!("\n{}", table::render(&rows));
    Ok(if table::all_passed(&rows) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Arguments {
    fn scenarios(&self) -> Result<Vec<LifecycleScenario>> {
        let mut scenarios = self.named()?;
        scenarios.retain(|scenario| match scenario.profile().goes_alone() {
            true => !self.beside,
            false => !self.alone,
        });
        Ok(scenarios)
    }

    fn named(&self) -> Result<Vec<LifecycleScenario>> {
        let all: &[LifecycleScenario] = if self.sample { &LifecycleScenario::SAMPLE } else { &LifecycleScenario::ALL };
        if self.scenarios.is_empty() {
            let is_of_run = |profile: Profile| {
                profile.is_of_backups() == self.backups
                    && profile.is_of_changes() == self.changes
                    && !profile.is_of_addons()
            };
            let asked = all.iter().copied().filter(|scenario| is_of_run(scenario.profile()));
            return Ok(asked.collect());
        }
        let known = LifecycleScenario::ALL.map(LifecycleScenario::name).join(", ");
        self.scenarios
            .iter()
            .map(|name| {
                LifecycleScenario::from_name(name).with_context(|| format!("there is no scenario {name:?}: {known}"))
            })
            .collect()
    }
}
