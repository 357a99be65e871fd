//! The executor's process: PID 1 of a run's Job, or a command in a shell. By the name of a link it is Ansible's ssh, or
//! makes a backup.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use executor::cli::{Cli, Command};
use executor::{capped_ssh, etcd_backup};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next().map(PathBuf::from).unwrap_or_default();
    if name.file_name() == Some(capped_ssh::NAME.as_ref()) {
        return capped_ssh::run(arguments).into();
    }
    if name.file_name() == Some(etcd_backup::NAME.as_ref()) {
        return etcd_backup::run(&name, arguments).into();
    }
    execute()
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn execute() -> ExitCode {
    match Cli::parse().command {
        Command::Run(run) => {
            // At a terminal, progress says the rest.
            log(if run.run.is_some() { "info" } else { "warn" });
            executor::run::run(&run).await.into()
        }
        Command::Storage(arguments) => {
            log("warn");
            executor::storage::look(&arguments).await.into()
        }
        Command::RemoveBackup(arguments) => {
            log("warn");
            executor::backup_removal::remove(&arguments).await.into()
        }
        Command::VerifyBackup(arguments) => {
            log("warn");
            executor::backup_verification::verify(&arguments).await.into()
        }
        Command::FetchKeys(arguments) => {
            log("warn");
            executor::fetched_keys::fetch(&arguments).await.into()
        }
        Command::FetchSnapshot(arguments) => {
            log("warn");
            executor::fetched_snapshot::fetch(&arguments).await.into()
        }
        Command::Chart(arguments) => {
            log("warn");
            executor::chart::run(&arguments).await.into()
        }
        Command::Inputs => {
            println!("{}", executor::example::text());
            ExitCode::SUCCESS
        }
    }
}

fn log(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}
