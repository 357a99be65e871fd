//! `upgrade-operator`: has the operator of the lab that is up replaced in the middle of an install, and says what was
//! seen. hack/upgrade-operator starts the lab with the former one, and this program.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use e2e::operator_upgrade::{Upgrade, play};

/// Replaces the operator in the middle of an install.
#[derive(Parser)]
struct Arguments {
    /// The newer executor is the same image as the former one
    #[arg(long)]
    same_executor: bool,
    /// The program, and its arguments, that replaces operator and executor
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

fn main() -> Result<ExitCode> {
    let Arguments { same_executor, command } = Arguments::parse();
    let upgrade = Upgrade { command, executor_changes: !same_executor };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let seen = runtime.context("failed to start the runtime")?.block_on(play(&upgrade));
    Ok(match seen {
        Ok(seen) => {
            println!("upgrade-operator: passed: {seen}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("upgrade-operator: FAILED: {error:#}");
            ExitCode::FAILURE
        }
    })
}
