//! `wright`: the command for administrators.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod bundle;
mod download;
mod layout;
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
    Bundle(Box<bundle::BundleCommand>),
    /// Carry images in OCI layouts
    #[command(subcommand)]
    Layout(layout::LayoutCommand),
}

/// Does what the arguments ask for, the first of which is the program's name. Arguments that are not understood end the
/// process, with what is allowed. The code is 1 where the answer is no.
pub async fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<ExitCode> {
    let command = Cli::parse_from(arguments).command;
    // A provider that somebody installed before is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match command {
        Command::Bundle(command) => bundle::run(*command).await,
        Command::Layout(command) => layout::run(command).await,
    }
}
