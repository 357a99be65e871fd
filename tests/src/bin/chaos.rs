//! `chaos`: hits and changes a cluster at random moments on the lab that is up, heals all, and says whether the cluster
//! came to match its spec without any manual action.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use e2e::chaos::schedule::schedule;
use e2e::chaos::walk::walk;

/// Walks at random over three control planes, their workers, and the operator.
#[derive(Parser)]
struct Arguments {
    /// Chooses what is done, and when
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long the cluster is hit
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Says what would be done, and does nothing
    #[arg(long)]
    list: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let length = Duration::from_secs(60 * arguments.minutes);
    if arguments.list {
        for event in schedule(arguments.seed, length) {
            println!("{:>6.1} s  {}", event.at.as_secs_f64(), event.action);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (text, code) = match runtime.block_on(walk(arguments.seed, length)) {
        Ok(walked) => {
            let text = format!(
                "{} actions done, {} skipped; matched its spec {:.0} s after the healing; {}\n1 passed, 0 failed",
                walked.done,
                walked.skipped,
                walked.converged.as_secs_f64(),
                walked.written
            );
            (text, ExitCode::SUCCESS)
        }
        Err(error) => (format!("FAILED: {error:#}\n0 passed, 1 failed"), ExitCode::FAILURE),
    };
    println!("\nChaos, seed {}, {} min: {text}", arguments.seed, arguments.minutes);
    Ok(code)
}
