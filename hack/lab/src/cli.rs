//! The command line: one file per group of verbs.

mod endpoint;
mod machine;
mod status;

use std::io::Write;
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use lab::build::{self, BuildCommand};
use lab::cache::Cache;
use lab::place::Place;
use lab::progress::{Progress, seconds};
use lab::serve::{self, ServeBundle};
use lab::upstream::{self, ServeUpstream};
use lab::{Lab, down, endpoint as forwarder, machines};

/// Real clusters on this machine: a metadata cluster, and machines to build clusters on.
#[derive(Parser)]
#[command(name = "lab", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Build what is missing and start the network, the bundle server and the metadata cluster
    Up {
        /// Take what was built before, and build nothing
        #[arg(long)]
        no_build: bool,
    },
    /// End everything and remove it, also what a run left that crashed
    Down,
    /// Show processes, nodes and machines
    Status,
    /// Print the path of the metadata cluster's kubeconfig
    Kubeconfig,
    /// Print the directory with the kubectl that fits the lab's clusters
    KubectlPath,
    /// Import image archives into the metadata cluster's nodes: those named, or all that it needs
    Load { archives: Vec<std::path::PathBuf> },
    /// Add, stop, kill, cut off and remove machines
    #[command(subcommand)]
    Machine(machine::Verb),
    /// The Secret with the key that opens every machine
    #[command(subcommand)]
    Secret(machine::SecretVerb),
    /// Stand-ins for a load balancer
    #[command(subcommand)]
    Endpoint(endpoint::Verb),
    /// Build programs, root filesystems, images and the bundle
    #[command(subcommand)]
    Build(BuildCommand),
    /// Serve the artifact bundle over HTTP
    ServeBundle(ServeBundle),
    /// Serve what was built at the paths of upstream's servers, for `wright bundle create --mirror`
    ServeUpstream(ServeUpstream),
    /// Run a machine until it is off
    #[command(hide = true)]
    Supervise {
        /// The machine
        name: String,
    },
    /// Forward TCP to a backend that answers
    #[command(hide = true)]
    Forward {
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long = "backend", required = true)]
        backends: Vec<SocketAddr>,
    },
}

/// Does what the arguments ask for.
pub(crate) fn run() -> Result<()> {
    let place = Place::from_env();
    match Arguments::parse().verb {
        Verb::Up { no_build } => up(no_build),
        Verb::Down => {
            let task = Progress::new().task("lab down");
            down(&place, &Cache::from_env())?;
            task.done();
            Ok(())
        }
        Verb::Status => status::print(&place),
        Verb::Kubeconfig => {
            println!("{}", place.kubeconfig().display());
            Ok(())
        }
        Verb::KubectlPath => {
            println!("{}", Lab::open()?.metadata().kubectl_directory()?.display());
            Ok(())
        }
        Verb::Load { archives } => {
            let lab = Lab::open()?;
            let changed =
                if archives.is_empty() { lab.load_images()? } else { lab.metadata().load_images(&archives)? };
            println!("{}", if changed { "imported" } else { "nothing has changed" });
            Ok(())
        }
        Verb::Machine(verb) => machine::run(&place, verb),
        Verb::Secret(verb) => machine::run_secret(&place, verb),
        Verb::Endpoint(verb) => endpoint::run(&place, verb),
        Verb::Build(command) => block_on(build::run(command)),
        Verb::ServeBundle(args) => block_on(serve::run(args)),
        Verb::ServeUpstream(args) => block_on(upstream::run(args)),
        Verb::Supervise { name } => machines::supervise(&place, &name),
        Verb::Forward { listen, backends } => block_on(forwarder::forward(listen, backends)),
    }
}

fn up(no_build: bool) -> Result<()> {
    let started = Instant::now();
    if !no_build {
        block_on(build::run(BuildCommand::All(build::Images::default())))?;
    }
    let lab = Lab::open()?;
    lab.start(&Progress::new())?;
    println!("lab up: {}", seconds(started.elapsed()));
    println!("export KUBECONFIG={}", lab.kubeconfig().display());
    Ok(())
}

fn block_on(work: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?
        .block_on(work)
}

/// Writes to standard output. A reader that has gone away, as `head` does, has seen enough.
fn say(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).ok();
}
