//! `wright`: the command for administrators.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bundle;
mod download;
mod progress;

/// The command for administrators of Clusterwright.
#[derive(Debug, Parser)]
#[command(name = "wright", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make, check, change, carry and serve artifact bundles
    #[command(subcommand)]
    Bundle(bundle::BundleCommand),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Command::Bundle(command) = Cli::parse().command;
    // A provider that somebody installed before is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match bundle::run(command).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("wright: {error:#}");
            ExitCode::from(2)
        }
    }
}
