//! `lab status`.

use anyhow::Result;
use lab::Lab;
use lab::place::Place;
use lab::processes;

use super::machine;

/// Prints processes, nodes and machines.
pub(crate) fn print(place: &Place) -> Result<()> {
    println!("{:<28} {:<8} {:>8}  LOG", "PROCESS", "STATE", "PID");
    for name in processes::names(place) {
        let (state, pid) = match processes::find(place, &name) {
            Some(process) => ("running", process.pid.to_string()),
            None => ("ended", "-".to_owned()),
        };
        println!(
            "{name:<28} {state:<8} {pid:>8}  {}",
            processes::log_file(place, &name).display()
        );
    }
    println!();
    if let Ok(lab) = Lab::open()
        && lab.metadata().is_up()
    {
        match lab.metadata().kubectl(["get", "nodes", "-o", "wide"]) {
            Ok(nodes) => println!("{nodes}"),
            Err(error) => println!("metadata cluster: {error:#}\n"),
        }
        println!("KUBECONFIG={}\n", lab.kubeconfig().display());
    } else {
        println!("metadata cluster: down\n");
    }
    machine::list(place)
}
