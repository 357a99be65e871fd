//! The executor's process: PID 1 of a run's Job, or a command in a shell.

use std::process::ExitCode;

use clap::Parser;
use executor::cli::{Cli, Command};
use tracing_subscriber::EnvFilter;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    match Cli::parse().command {
        Command::Run(run) => executor::run::run(&run).await.into(),
        Command::Inputs => {
            println!("{}", executor::example::text());
            ExitCode::SUCCESS
        }
    }
}
