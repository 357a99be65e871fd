//! Who runs the controllers of a scenario: the operator that is deployed, or, when its program is named, one of the
//! scenario's own that works in its namespace only.

use std::path::PathBuf;

use anyhow::Result;
use lab::processes::{self, Daemon};
use lab::{Lab, place::Place};

/// Names the operator's program: each scenario starts one for itself. Unset: the deployed operator does the work.
pub const PROGRAM: &str = "CLUSTERWRIGHT_TEST_OPERATOR";

/// Starts the scenario's own operator, if one is asked for.
pub fn start(lab: &Lab, namespace: &str) -> Result<()> {
    let Some(program) = std::env::var_os(PROGRAM).filter(|program| !program.is_empty()) else {
        return Ok(());
    };
    Daemon::new(&process(namespace), PathBuf::from(program))
        .args(["run", "--namespace", namespace, "--listen", "127.0.0.1:0"])
        .env("KUBECONFIG", lab.kubeconfig())
        .env("RUST_LOG", std::env::var("RUST_LOG").unwrap_or_else(|_| "info".into()))
        .start(lab.place())?;
    Ok(())
}

/// Ends it, also one that an earlier scenario of the name left.
pub fn stop(place: &Place, namespace: &str) -> Result<()> {
    match processes::find(place, &process(namespace)) {
        Some(_) => processes::stop(place, &process(namespace)),
        None => Ok(()),
    }
}

/// The end of its log; empty, if there was none.
pub fn log(place: &Place, namespace: &str) -> String {
    processes::log_tail(place, &process(namespace))
}

fn process(namespace: &str) -> String {
    format!("operator-{namespace}")
}
