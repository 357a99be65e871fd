//! Machines of the lab: systemd-nspawn containers with systemd and sshd, each with an address of its own.

mod address;
mod definition;
mod filesystem;
mod inside;
mod power;
mod supervisor;

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::cgroups::Group;
use crate::command::Output;
use crate::place::Place;
use crate::processes::Identity;
use crate::ssh::{self, Target};
use crate::{network, processes, rootfs};

pub use definition::{Bind, Definition, MachineOptions, Route};
pub(crate) use filesystem::unmount_below;
pub(crate) use power::lab_program;
pub use supervisor::supervise;

/// The machine's SSH host key, in its directory.
const HOST_KEY: &str = "ssh_host_ed25519_key";
/// How long a machine may take from its start to an answer over SSH.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// A machine that has been added to the lab.
#[derive(Debug, Clone)]
pub struct Machine {
    place: Place,
    definition: Definition,
    host_key: String,
}

/// What a machine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It runs, cut off from the network.
    Partitioned,
    /// It does not run.
    Stopped,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Running => "running",
            Self::Partitioned => "partitioned",
            Self::Stopped => "stopped",
        })
    }
}

/// Adds a machine, starts it and waits until it answers SSH.
pub fn add(place: &Place, cache: &Cache, options: MachineOptions) -> Result<Machine> {
    let machine = define(place, rootfs::machine::find(cache, options.release)?, options)?;
    machine.start()?;
    Ok(machine)
}

/// Chooses the machine's address and writes down what it is, without starting it.
pub fn define(place: &Place, rootfs: PathBuf, options: MachineOptions) -> Result<Machine> {
    definition::check_name(&options.name)?;
    let _lock = place.lock("machines")?;
    let directory = place.machine(&options.name);
    if directory.join(definition::FILE).exists() {
        bail!("machine {} exists; remove it first: lab machine remove {}", options.name, options.name);
    }
    let taken: Vec<(String, Ipv4Addr)> =
        list(place)?.iter().map(|machine| (machine.name().to_owned(), machine.address())).collect();
    let address = address::choose(&taken, options.address)?;
    ssh::ensure_user_key(place)?;
    let comment = options.name.clone();
    let host_key = ssh::ensure_key(&directory.join(HOST_KEY), &comment)?;
    let definition = Definition::new(options, address, rootfs);
    definition.save(&directory)?;
    Ok(Machine { place: place.clone(), definition, host_key: ssh::without_comment(&host_key) })
}

/// The machine of that name.
pub fn find(place: &Place, name: &str) -> Result<Machine> {
    let directory = place.machine(name);
    if !directory.join(definition::FILE).exists() {
        bail!("there is no machine {name}; lab machine list shows all");
    }
    load(place, name)
}

/// All machines, in order of their names.
pub fn list(place: &Place) -> Result<Vec<Machine>> {
    let mut names: Vec<String> = fs::read_dir(place.machines())
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join(definition::FILE).exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names.iter().map(|name| load(place, name)).collect()
}

/// Removes every machine, and what is left of any that was half made.
pub fn remove_all(place: &Place) -> Result<()> {
    for entry in fs::read_dir(place.machines()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        remove_directory(place, &name).with_context(|| format!("failed to remove machine {name}"))?;
    }
    Ok(())
}

fn load(place: &Place, name: &str) -> Result<Machine> {
    let directory = place.machine(name);
    let definition = Definition::load(&directory)?;
    let host_key = ssh::public_key(&directory.join(HOST_KEY))?;
    Ok(Machine { place: place.clone(), definition, host_key: ssh::without_comment(&host_key) })
}

impl Machine {
    /// Its name, which is its hostname too.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Its address on the lab's network.
    pub fn address(&self) -> Ipv4Addr {
        self.definition.address
    }

    /// The public part of its SSH host key: kind and key.
    pub fn host_key(&self) -> &str {
        &self.host_key
    }

    /// Whether it is a part of the metadata cluster and not a spare machine.
    pub fn is_metadata_node(&self) -> bool {
        self.definition.metadata_node
    }

    /// Its memory limit in MiB.
    pub fn memory_mib(&self) -> Option<u32> {
        self.definition.memory_mib
    }

    /// The machine's directory in the lab.
    pub fn directory(&self) -> PathBuf {
        self.place.machine(self.name())
    }

    /// The machine's files, as it sees them itself: there while the machine exists and has been started once.
    pub fn root(&self) -> PathBuf {
        filesystem::root(&self.directory())
    }

    /// How SSH reaches it.
    pub fn ssh_target(&self) -> Target {
        Target {
            address: self.address().into(),
            key: self.place.ssh_key(),
            known_hosts: self.directory().join("known_hosts"),
        }
    }

    /// Runs a command on it as root; `deadline` covers connecting too.
    pub fn ssh(&self, command: &str, deadline: Duration) -> Result<Output> {
        self.ssh_target().run(command, deadline)
    }

    /// What the machine is doing.
    pub fn state(&self) -> State {
        match self.init() {
            None => State::Stopped,
            Some(_) if power::is_cut(self) => State::Partitioned,
            Some(_) => State::Running,
        }
    }

    /// Starts it and waits for its answer over SSH.
    pub fn start(&self) -> Result<()> {
        self.launch()?;
        self.wait()
    }

    /// Mounts its files and writes what is its own into them; a start does the same first.
    pub fn prepare(&self) -> Result<()> {
        let key = ssh::ensure_user_key(&self.place)?;
        filesystem::prepare(&self.directory(), &self.definition, &key)
            .with_context(|| format!("failed to prepare the files of machine {}", self.name()))
    }

    /// Starts it without waiting for an answer.
    pub fn launch(&self) -> Result<()> {
        network::up()?;
        power::launch(self).with_context(|| format!("failed to start machine {}", self.name()))
    }

    /// Waits until it answers SSH.
    pub fn wait(&self) -> Result<()> {
        self.ssh_target().wait(START_DEADLINE).with_context(|| {
            format!("machine {} did not start:\n{}", self.name(), processes::log_tail(&self.place, &self.process()))
        })
    }

    /// Shuts it down cleanly and waits until it is off.
    pub fn stop(&self) -> Result<()> {
        power::stop(self).with_context(|| format!("failed to stop machine {}", self.name()))
    }

    /// Ends it as a power loss does: its init gets SIGKILL, nothing is written any more.
    pub fn kill(&self) -> Result<()> {
        power::kill(self).with_context(|| format!("failed to kill machine {}", self.name()))
    }

    /// Reboots it from inside and waits for its answer over SSH.
    pub fn reboot(&self) -> Result<()> {
        power::reboot(self).with_context(|| format!("failed to reboot machine {}", self.name()))?;
        self.wait()
    }

    /// Cuts it off the network, as pulling the cable does. A restart plugs it in again.
    pub fn partition(&self) -> Result<()> {
        power::plug(self, false).with_context(|| format!("failed to cut machine {}", self.name()))
    }

    /// Connects it to the network again.
    pub fn heal(&self) -> Result<()> {
        power::plug(self, true).with_context(|| format!("failed to heal machine {}", self.name()))
    }

    /// Ends it at once and removes all that was on it.
    pub fn remove(&self) -> Result<()> {
        remove_directory(&self.place, self.name()).with_context(|| format!("failed to remove machine {}", self.name()))
    }

    fn process(&self) -> String {
        process_name(self.name())
    }

    fn group(&self) -> Group {
        Group::new(&self.place, &self.process())
    }

    /// The first process of the machine, as the host sees it; none while it is off.
    pub fn init(&self) -> Option<Identity> {
        supervisor::init(&self.directory())
    }
}

/// The name of a machine's supervisor among the lab's processes.
fn process_name(machine: &str) -> String {
    format!("machine-{machine}")
}

/// Removes a machine by its directory, in whatever state it is.
pub(crate) fn remove_directory(place: &Place, name: &str) -> Result<()> {
    let directory = place.machine(name);
    power::end_at_once(place, name)?;
    filesystem::unmount(&directory)?;
    Group::new(place, &process_name(name)).remove()?;
    {
        // From here on it is no machine for anybody who looks at all of them.
        let _lock = place.lock("machines")?;
        fs::remove_file(directory.join(definition::FILE)).ok();
    }
    fs::remove_dir_all(&directory).with_context(|| format!("failed to remove {}", directory.display()))
}
