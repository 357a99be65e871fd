//! Makes the backup of a run, as a program that Ansible starts beside its playbook: a snapshot of one member of etcd
//! streams over the run's SSH connection, through encryption, into the storage. Nothing of it is in a file here or on the
//! machine. Called by the name of its link, [`NAME`], in the run's private directory:
//!
//! - `etcd-backup take HOST` reads the member of a host, and stores it.
//! - `etcd-backup verify HOST` asks the storage whether the backup is whole, and reports it to the run.
//!
//! Its last line of output is its result, in JSON. It gives up when its standard input ends: whoever started it is gone.

mod abandoned;
mod answer;
mod events;
mod member_stream;
mod presence;
mod secrets;
mod settings;
mod work;

use std::ffi::OsString;
use std::path::Path;

use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

use crate::core_dumps;
use answer::Answer;

pub use presence::gone;
pub use settings::{FILE, Settings, connecting};

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
    let [verb, host] = words.as_slice() else {
        return Err(format!("usage: {NAME} take|verify HOST"));
    };
    let directory = link.parent().unwrap_or(Path::new("."));
    let _held = presence::hold(directory).map_err(|error| format!("failed to lock {FILE}: {error}"))?;
    let settings = Settings::read(directory).map_err(|error| format!("failed to read {FILE}: {error}"))?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("failed to start: {error}"))?;
    match verb.as_str() {
        "take" => Ok(runtime.block_on(work::take(&settings, host))),
        "verify" => Ok(runtime.block_on(work::verify(&settings))),
        other => Err(format!("there is no {other:?}; usage: {NAME} take|verify HOST")),
    }
}
