//! `lab endpoint`.

use std::net::SocketAddr;

use anyhow::Result;
use clap::Subcommand;
use lab::endpoint;
use lab::place::Place;

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Listen on an address and forward to the backends that answer
    Add {
        name: String,
        /// Address and port, for example 172.30.0.1:7001
        #[arg(long)]
        listen: SocketAddr,
        /// A backend, for example 172.30.0.10:6443; give one for each
        #[arg(long = "backend", required = true)]
        backends: Vec<SocketAddr>,
    },
    /// End a stand-in
    Remove { names: Vec<String> },
    /// Show all
    List,
}

pub(crate) fn run(place: &Place, verb: Verb) -> Result<()> {
    match verb {
        Verb::Add { name, listen, backends } => endpoint::add(place, &name, listen, &backends),
        Verb::Remove { names } => names.iter().try_for_each(|name| endpoint::remove(place, name)),
        Verb::List => {
            for name in endpoint::list(place) {
                println!("{name}");
            }
            Ok(())
        }
    }
}
