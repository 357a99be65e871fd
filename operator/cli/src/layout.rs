//! `wright layout`: OCI image layouts, as `make images` writes them.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

mod push;
mod read;

/// Carry images in OCI layouts.
#[derive(Debug, Subcommand)]
pub enum LayoutCommand {
    /// Push a layout to a registry: the index under its tag, the images of all architectures, and what is said of them
    Push(push::Push),
}

/// Does what was asked.
pub async fn run(command: LayoutCommand) -> Result<ExitCode> {
    let LayoutCommand::Push(command) = command;
    command.run().await
}
