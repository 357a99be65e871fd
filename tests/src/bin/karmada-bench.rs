//! `karmada-bench`: measures planes of Karmada's own programs, or keeps one.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use e2e::karmada_bench::failover::size::Size;
use e2e::karmada_bench::serve::Wish;
use e2e::karmada_bench::{failover, join, serve};
use tokio::signal::unix::{SignalKind, signal};

/// Measures planes of Karmada's own programs, which are given in CLUSTERWRIGHT_PROGRAMS. Needs root, and no lab.
#[derive(Parser)]
struct Arguments {
    /// The operator; without it the one that the lab runs
    #[arg(long, global = true)]
    operator: Option<PathBuf>,
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand)]
enum Measurement {
    /// One member joins a plane, and then many at once
    Join {
        /// How many are many
        #[arg(long, default_value_t = 20)]
        members: u8,
    },
    /// A member with simulated nodes dies, and what it ran comes to run in another one
    Failover {
        /// How much runs there
        #[arg(value_enum, ignore_case = true, default_value_t = Size::S)]
        size: Size,
    },
    /// Measures nothing: a plane with members is kept until it is interrupted, for tests of others
    Serve(Wish),
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let operator = arguments.operator.as_deref();
    let measured = async {
        match arguments.measurement {
            Measurement::Join { members } => join::run(operator, members).await,
            Measurement::Failover { size } => failover::run(operator, size).await,
            Measurement::Serve(wish) => serve::run(operator, &wish).await,
        }
    };
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // Whatever the end is, all that was started ends with what is dropped here.
    tokio::select! {
        measured = measured => measured,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}
