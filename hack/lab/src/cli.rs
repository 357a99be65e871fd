//! The command line: one file per group of verbs.

mod machine;

use anyhow::Result;
use clap::{Parser, Subcommand};
use lab::place::Place;

/// Real clusters on this machine: a metadata cluster, and machines to build clusters on.
#[derive(Parser)]
#[command(name = "lab", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Add, stop, kill, cut off and remove machines
    #[command(subcommand)]
    Machine(machine::Verb),
    /// The Secret with the key that opens every machine
    #[command(subcommand)]
    Secret(machine::SecretVerb),
    /// Run a machine until it is off
    #[command(hide = true)]
    Supervise {
        /// The machine
        name: String,
    },
}

/// Does what the arguments ask for.
pub(crate) fn run() -> Result<()> {
    let place = Place::from_env();
    match Arguments::parse().verb {
        Verb::Machine(verb) => machine::run(&place, verb),
        Verb::Secret(verb) => machine::run_secret(&place, verb),
        Verb::Supervise { name } => lab::machines::supervise(&place, &name),
    }
}
