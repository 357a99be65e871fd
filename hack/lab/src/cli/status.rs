//! `lab status`.

use anyhow::Result;
use lab::Lab;
use lab::place::Place;
use lab::processes;

use super::{machine, say};

/// Prints processes, nodes and machines.
pub(crate) fn print(place: &Place) -> Result<()> {
    let mut text = format!("{:<28} {:<8} {:>8}  {}\n", "PROCESS", "STATE", "PID", "LOG");
    for name in processes::names(place) {
        let (state, pid) = match processes::find(place, &name) {
            Some(process) => ("running", process.pid.to_string()),
            None => ("ended", "-".to_owned()),
        };
        let log = processes::log_file(place, &name);
        text.push_str(&format!("{name:<28} {state:<8} {pid:>8}  {}\n", log.display()));
    }
    text.push_str(&format!("\n{}\n\n{}", nodes(), machine::table(place)?));
    say(&text);
    Ok(())
}

fn nodes() -> String {
    match Lab::open() {
        Ok(lab) if lab.metadata().is_up() => {
            let nodes = lab.metadata().kubectl(["get", "nodes", "-o", "wide"]);
            let nodes = nodes.unwrap_or_else(|error| format!("metadata cluster: {error:#}\n"));
            format!("{nodes}\nKUBECONFIG={}", lab.kubeconfig().display())
        }
        _ => "metadata cluster: down".to_owned(),
    }
}
