//! `lab machine` and `lab secret`.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Subcommand;
use lab::cache::Cache;
use lab::machines::{self, Machine, MachineOptions};
use lab::manifests;
use lab::place::Place;
use lab::rootfs::{self, Release};

use super::say;

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Add machines and wait until they answer SSH
    Add {
        /// Names of the machines
        #[arg(required = true)]
        names: Vec<String>,
        /// Memory limit of each, in MiB
        #[arg(long, value_name = "MiB")]
        memory: Option<u32>,
        /// Address of the machine (with one name); the lowest free one otherwise
        #[arg(long)]
        address: Option<Ipv4Addr>,
        /// A password for root, beside the lab's key
        #[arg(long)]
        password: Option<String>,
        /// What it runs
        #[arg(long, value_enum, default_value_t)]
        os: Release,
        /// Start machines that exist already instead of refusing
        #[arg(long)]
        if_absent: bool,
    },
    /// Start a machine that is off
    Start { names: Vec<String> },
    /// Shut a machine down cleanly
    Stop { names: Vec<String> },
    /// Take the power away
    Kill { names: Vec<String> },
    /// Reboot a machine from inside
    Reboot { names: Vec<String> },
    /// Cut a machine off the network
    Partition { names: Vec<String> },
    /// Connect a machine to the network again
    Heal { names: Vec<String> },
    /// End a machine and delete all that was on it
    Remove { names: Vec<String> },
    /// Show all machines
    List,
    /// Print the Host object of a machine
    Yaml {
        names: Vec<String>,
        /// Namespace of the Host
        #[arg(long, default_value = "fleet")]
        namespace: String,
    },
    /// Run a command on a machine as root
    Ssh {
        name: String,
        /// How long it may take, in seconds
        #[arg(long, default_value_t = 60)]
        deadline: u64,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

#[derive(Subcommand)]
pub(crate) enum SecretVerb {
    /// Print the Secret
    Yaml {
        /// Namespace of the Secret
        #[arg(long, default_value = "fleet")]
        namespace: String,
    },
}

pub(crate) fn run(place: &Place, verb: Verb) -> Result<()> {
    match verb {
        Verb::Add { names, memory, address, password, os, if_absent } => {
            let rootfs = rootfs::machine::find(&Cache::from_env(), os)?;
            let mut added = Vec::new();
            for name in names {
                let options = MachineOptions {
                    memory_mib: memory,
                    address,
                    password: password.clone(),
                    release: os,
                    ..MachineOptions::named(&name)
                };
                let started = Instant::now();
                let machine = match machines::find(place, &name) {
                    Ok(machine) if if_absent => machine,
                    _ => machines::define(place, rootfs.clone(), options)?,
                };
                machine.launch()?;
                added.push((machine, started));
            }
            for (machine, started) in added {
                machine.wait()?;
                told(machine.name(), &format!("answers SSH at {}", machine.address()), started);
            }
            Ok(())
        }
        Verb::Start { names } => each(place, &names, "started", Machine::start),
        Verb::Stop { names } => each(place, &names, "off", Machine::stop),
        Verb::Kill { names } => each(place, &names, "dead", Machine::kill),
        Verb::Reboot { names } => each(place, &names, "rebooted", Machine::reboot),
        Verb::Partition { names } => each(place, &names, "cut off", Machine::partition),
        Verb::Heal { names } => each(place, &names, "connected", Machine::heal),
        Verb::Remove { names } => each(place, &names, "removed", Machine::remove),
        Verb::List => {
            say(&table(place)?);
            Ok(())
        }
        Verb::Yaml { names, namespace } => {
            for name in names {
                let machine = machines::find(place, &name)?;
                say(&manifests::to_yaml(&manifests::host(&machine, &namespace)));
            }
            Ok(())
        }
        Verb::Ssh { name, deadline, command } => {
            let output = machines::find(place, &name)?.ssh(&command.join(" "), Duration::from_secs(deadline))?;
            print!("{}", output.stdout);
            eprint!("{}", output.stderr);
            std::process::exit(output.code)
        }
    }
}

pub(crate) fn run_secret(place: &Place, verb: SecretVerb) -> Result<()> {
    let SecretVerb::Yaml { namespace } = verb;
    lab::ssh::ensure_user_key(place)?;
    say(&manifests::to_yaml(&manifests::secret(place, &namespace)?));
    Ok(())
}

/// The machines as a table.
pub(crate) fn table(place: &Place) -> Result<String> {
    let mut text = format!("{:<16} {:<14} {:<12} {:>8}  {}\n", "MACHINE", "ADDRESS", "STATE", "MEMORY", "ROLE");
    for machine in machines::list(place)? {
        let memory = machine.memory_mib().map_or_else(|| "-".to_owned(), |mib| format!("{mib}Mi"));
        let role = if machine.is_metadata_node() { "metadata node" } else { "machine" };
        let (name, address, state) = (machine.name(), machine.address().to_string(), machine.state());
        text.push_str(&format!("{name:<16} {address:<14} {state:<12} {memory:>8}  {role}\n"));
    }
    Ok(text)
}

fn each(place: &Place, names: &[String], done: &str, act: impl Fn(&Machine) -> Result<()>) -> Result<()> {
    for name in names {
        let started = Instant::now();
        act(&machines::find(place, name)?)?;
        told(name, done, started);
    }
    Ok(())
}

fn told(name: &str, what: &str, started: Instant) {
    println!("machine {name} {what} ({:.1} s)", started.elapsed().as_secs_f32());
}
