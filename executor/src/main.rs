//! The executor's process: PID 1 of a run's Job, or a command in a shell.

use std::process::ExitCode;

use clap::Parser;
use executor::cli::{Cli, Command};
use tracing_subscriber::EnvFilter;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(run) => {
            // At a terminal, progress says the rest.
            log(if run.run.is_some() { "info" } else { "warn" });
            executor::run::run(&run).await.into()
        }
        Command::Inputs => {
            println!("{}", executor::example::text());
            ExitCode::SUCCESS
        }
    }
}

fn log(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}
