//! `lifecycle`: plays what happens to clusters in their lives on the lab that is up, and says what was seen.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use e2e::lifecycle::scene::Scene;
use e2e::lifecycle::{campaign, table};

/// Plays scenes from the lives of clusters on real machines.
#[derive(Parser)]
struct Arguments {
    /// Only these
    #[arg(long = "scenario", value_name = "NAME")]
    scenes: Vec<String>,
    /// A few instead of all
    #[arg(long)]
    sample: bool,
    /// Only those that other clusters may be beside
    #[arg(long, conflicts_with = "alone")]
    beside: bool,
    /// Only those that are measured alone
    #[arg(long)]
    alone: bool,
    /// Says what there is
    #[arg(long)]
    list: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.list {
        for scene in Scene::ALL {
            println!("{:<22} {}", scene.name(), scene.promise());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let rows = campaign::run(&arguments.scenes()?);
    println!("\n{}", table::render(&rows));
    Ok(if table::all_passed(&rows) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Arguments {
    fn scenes(&self) -> Result<Vec<Scene>> {
        let mut scenes = self.named()?;
        scenes.retain(|scene| match scene.course().goes_alone() {
            true => !self.beside,
            false => !self.alone,
        });
        Ok(scenes)
    }

    fn named(&self) -> Result<Vec<Scene>> {
        let all: &[Scene] = if self.sample { &Scene::SAMPLE } else { &Scene::ALL };
        if self.scenes.is_empty() {
            return Ok(all.to_vec());
        }
        let known = Scene::ALL.map(Scene::name).join(", ");
        self.scenes
            .iter()
            .map(|name| {
                Scene::from_name(name).with_context(|| format!("there is no scenario {name:?}: {known}"))
            })
            .collect()
    }
}
