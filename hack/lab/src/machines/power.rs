//! Turning machines on and off, gently and not, and pulling their network cable.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use super::{Machine, process_name, supervisor};
use crate::command::run;
use crate::network::BRIDGE;
use crate::place::Place;
use crate::processes::{self, Daemon};

/// How long a clean shutdown may take; systemd itself gives each service 90 s.
const SHUTDOWN: Duration = Duration::from_secs(100);

/// SIGRTMIN+5, which systemd takes as "reboot".
const REBOOT_SIGNAL: &str = "-39";

/// Starts the supervisor and with it the machine.
pub(super) fn launch(machine: &Machine) -> Result<()> {
    if processes::find(&machine.place, &machine.process()).is_some() {
        return Ok(());
    }
    // One whose supervisor was killed would share its files with the new one.
    end_at_once(&machine.place, machine.name())?;
    machine.prepare()?;
    Daemon::new(&machine.process(), lab_program()?)
        .args(["supervise", machine.name()])
        .env("CLUSTERWRIGHT_LAB_DIR", machine.place.root())
        .start(&machine.place)?;
    Ok(())
}

/// Asks the machine to power off, and waits.
pub(super) fn stop(machine: &Machine) -> Result<()> {
    // nspawn takes SIGTERM as "shut the machine down".
    if let Some(nspawn) = supervisor::nspawn(&machine.directory()) {
        nspawn.signal(Signal::SIGTERM)?;
    }
    wait_off(machine, SHUTDOWN)
}

/// Takes the power away.
pub(super) fn kill(machine: &Machine) -> Result<()> {
    let Some(init) = machine.init() else {
        bail!("it does not run");
    };
    init.signal(Signal::SIGKILL)?;
    wait_off(machine, Duration::from_secs(10))
}

/// Reboots from inside and returns when the machine has gone down; it comes up under the same supervisor.
pub(super) fn reboot(machine: &Machine) -> Result<()> {
    let Some(before) = supervisor::nspawn(&machine.directory()) else {
        bail!("it does not run");
    };
    let Some(init) = machine.init() else {
        bail!("its init does not run");
    };
    // What `systemctl reboot` tells systemd, without the time that a connection takes.
    run("kill", [REBOOT_SIGNAL, &init.pid.to_string()])?;
    if !before.wait_gone(SHUTDOWN) {
        bail!("it did not go down within {} s", SHUTDOWN.as_secs());
    }
    let until = Instant::now() + Duration::from_secs(10);
    while supervisor::nspawn(&machine.directory()).is_none() {
        if Instant::now() >= until {
            bail!("its supervisor did not start it again");
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Sets the machine's side of the bridge up or down.
pub(super) fn plug(machine: &Machine, connected: bool) -> Result<()> {
    let link = cable(machine).context("its network interface is not there; does it run?")?;
    run("ip", ["link", "set", &link, if connected { "up" } else { "down" }])?;
    // The host would go on for seconds with what it learned while the cable was out.
    let address = machine.address().to_string();
    run("ip", ["neighbour", "flush", "to", &address, "dev", BRIDGE])?;
    Ok(())
}

/// Whether the machine runs with its cable pulled.
pub(super) fn is_cut(machine: &Machine) -> bool {
    let flags = cable(machine)
        .and_then(|link| std::fs::read_to_string(format!("/sys/class/net/{link}/flags")).ok())
        .and_then(|text| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok());
    flags.is_some_and(|flags| flags & 1 == 0)
}

/// The host's end of the machine's cable. nspawn shortens long names, so it is found by its number.
fn cable(machine: &Machine) -> Option<String> {
    let pid = machine.init()?.pid.to_string();
    let text = run("nsenter", ["-t", &pid, "-n", "ip", "-o", "link", "show", "host0"]).ok()?;
    let index = peer_index(&text)?;
    std::fs::read_dir("/sys/class/net").ok()?.flatten().find_map(|entry| {
        let number = std::fs::read_to_string(entry.path().join("ifindex")).ok()?;
        (number.trim() == index).then(|| entry.file_name().to_string_lossy().into_owned())
    })
}

/// The number after `@if` in a line of `ip link`.
fn peer_index(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("@if")?;
    Some(rest.chars().take_while(char::is_ascii_digit).collect())
}

/// Ends a machine whatever its state is, by what its directory says.
pub(super) fn end_at_once(place: &Place, name: &str) -> Result<()> {
    let directory = place.machine(name);
    let process = process_name(name);
    // The supervisor first, so that nothing is started again.
    if let Some(supervisor) = processes::find(place, &process) {
        supervisor.signal(Signal::SIGKILL)?;
        supervisor.wait_gone(Duration::from_secs(5));
    }
    if let Some(init) = supervisor::init(&directory) {
        init.signal(Signal::SIGKILL)?;
        init.wait_gone(Duration::from_secs(10));
    }
    if let Some(nspawn) = supervisor::nspawn(&directory)
        && !nspawn.wait_gone(Duration::from_secs(2))
    {
        nspawn.signal(Signal::SIGKILL)?;
        nspawn.wait_gone(Duration::from_secs(5));
    }
    processes::forget(place, &process);
    Ok(())
}

fn wait_off(machine: &Machine, deadline: Duration) -> Result<()> {
    if let Some(supervisor) = processes::find(&machine.place, &machine.process())
        && !supervisor.wait_gone(deadline)
    {
        bail!("it still runs after {} s", deadline.as_secs());
    }
    processes::forget(&machine.place, &machine.process());
    Ok(())
}

/// The `lab` program, which supervises machines: this process itself, or the one built beside the tests that use it.
pub(crate) fn lab_program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("failed to find the own program")?;
    let set = std::env::var_os("CLUSTERWRIGHT_LAB_PROGRAM").map(PathBuf::from);
    let candidates = set.into_iter().chain(candidates(&own));
    match candidates.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("the program `lab` is not built: run cargo build -p lab"),
    }
}

fn candidates(own: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if own.file_name().is_some_and(|name| name == "lab") {
        found.push(own.to_owned());
    }
    // Tests lie in target/debug/deps, examples and benches beside that.
    found.extend(own.ancestors().skip(1).take(2).map(|directory| directory.join("lab")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_find_the_program_beside_their_directory() {
        let found = candidates(Path::new("/target/debug/deps/e2e-0123"));
        assert!(found.contains(&PathBuf::from("/target/debug/lab")), "{found:?}");
        assert_eq!(candidates(Path::new("/target/debug/lab"))[0], Path::new("/target/debug/lab"));
    }

    #[test]
    fn the_other_end_of_a_cable_is_found_by_its_number() {
        let line = "2: host0@if17: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue\\    link/ether";
        assert_eq!(peer_index(line).as_deref(), Some("17"));
    }
}
