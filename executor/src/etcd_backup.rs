//! Makes the backup of a run, as a program that Ansible starts beside its playbook: a snapshot of one member of etcd
//! streams over the run's SSH connection, through encryption, into the storage. Nothing of it is in a file here, nor on
//! the machine unless that is asked for. Called by the name of its link, [`NAME`], in the run's private directory:
//!
//! - `etcd-backup take HOST` reads the member of a host, and stores it.
//! - `etcd-backup verify HOST` asks the storage whether the backup is whole, and reports it to the run.
//!
//! In a run that brings a backup to the machines:
//!
//! - `etcd-backup inspect` says whether it may be restored, and what it is.
//! - `etcd-backup send HOST` streams its snapshot, decrypted and checked, into a file on a host.
//! - `etcd-backup report JSON` reports it to the run, with what the machines agree on: `currentRevision`, `bump` and
//!   `clusterID`.
//!
//! Its last line of output is its result, in JSON. It gives up when its standard input ends: whoever started it is
//! gone.

mod abandoned;
mod answer;
mod cluster_keys;
mod endpoints;
mod events;
mod found;
mod inspect;
mod machine_file;
mod member_stream;
mod over_ssh;
mod presence;
mod program_output;
mod reach;
mod secrets;
mod send;
mod settings;
mod spool;
mod stage;
mod staging_settings;
mod work;

use std::ffi::OsString;
use std::path::Path;

use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

use crate::core_dumps;
use answer::Answer;
use stage::Agreed;

pub use endpoints::{EndpointsFailure, OverEndpoints};
pub use over_ssh::{connecting, over_ssh};
pub use presence::gone;
pub use settings::{FILE, Settings};
pub use spool::{DIRECTORY as SPOOL_DIRECTORY, SpoolPlaces, Spooling};
pub use staging_settings::{DATA_DIRECTORY, FILE as STAGING_FILE, Sending, StagingSettings, snapshot_file};

/// The name of the link in a run's private directory.
pub const NAME: &str = "etcd-backup";

/// Works in the directory of the link by which this was called; returns the exit code.
pub fn run(link: &Path, arguments: impl Iterator<Item = OsString>) -> u8 {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    let answer = prepared(link, arguments).unwrap_or_else(|problem| Answer::failed(&problem));
    answer.say()
}

fn prepared(link: &Path, arguments: impl Iterator<Item = OsString>) -> Result<Answer, String> {
    core_dumps::forbid().map_err(|error| format!("failed to forbid core dumps: {error}"))?;
    let words: Vec<String> = arguments.filter_map(|word| word.into_string().ok()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let directory = link.parent().unwrap_or(Path::new("."));
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("failed to start: {error}"))?;
    let held = |file| presence::hold(directory, file).map_err(|error| format!("failed to lock {file}: {error}"));
    let unreadable = |file| move |error| format!("failed to read {file}: {error}");
    match words.as_slice() {
        ["take" | "verify", _] => {
            let _held = held(FILE)?;
            let settings = Settings::read(directory).map_err(unreadable(FILE))?;
            Ok(match words.as_slice() {
                ["take", host] => runtime.block_on(work::take(&settings, host)),
                _ => runtime.block_on(work::verify(&settings)),
            })
        }
        ["inspect"] | ["send" | "report", _] => {
            let _held = held(STAGING_FILE)?;
            let settings = StagingSettings::read(directory).map_err(unreadable(STAGING_FILE))?;
            match words.as_slice() {
                ["send", host] => Ok(runtime.block_on(stage::sent(&settings, host))),
                ["report", agreed] => Ok(runtime.block_on(stage::reported(&settings, &Agreed::parse(agreed)?))),
                _ => Ok(runtime.block_on(stage::inspected(&settings))),
            }
        }
        _ => Err(format!("usage: {NAME} take|verify HOST, or inspect, or send HOST, or report JSON")),
    }
}
