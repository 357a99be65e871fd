//! The operator's program: reads its arguments and runs.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use operator::settings::Settings;

/// Builds and keeps Kubernetes clusters on machines reached by SSH.
#[derive(Parser)]
#[command(name = "operator", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Runs the controllers until SIGTERM.
    Run(Box<Settings>),
}

fn main() -> ExitCode {
    let Verb::Run(settings) = Arguments::parse().verb;
    operator::telemetry::start(settings.log_format);
    match operator::run(*settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %operator::error::chain(&error), "the operator stops");
            ExitCode::FAILURE
        }
    }
}
