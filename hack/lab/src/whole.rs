//! The lab as a whole: what `lab up`, the tests and the benchmarks call.

use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::cache::Cache;
use crate::cgroups::Group;
use crate::endpoint::Endpoint;
use crate::machines::{self, Machine, MachineOptions, lab_program};
use crate::metadata::Metadata;
use crate::network::HOST_ADDRESS;
use crate::place::Place;
use crate::processes::{self, Daemon};
use crate::programs::Programs;
use crate::progress::Progress;
use crate::rootfs::Release;
use crate::serve::UPGRADES_PATH;
use crate::{images, manifests, network, operator, rootfs, ssh};

/// The port of the artifact bundle on the host's address.
pub const BUNDLE_PORT: u16 = 8080;
/// The name of the process that serves the bundle.
pub const BUNDLE_SERVER: &str = "bundle-server";

/// Everything of the lab, in one directory, from one cache.
#[derive(Debug, Clone)]
pub struct Lab {
    place: Place,
    cache: Cache,
    metadata: Metadata,
}

impl Lab {
    /// The lab that the environment names; what it is made of must have been built.
    pub fn open() -> Result<Self> {
        let (place, cache) = (Place::from_env(), Cache::from_env());
        let rootfs = rootfs::machine::find(&cache, Release::Debian12)?;
        let metadata = Metadata::new(&place, Programs::from_env(&cache), rootfs);
        Ok(Self { place, cache, metadata })
    }

    /// The lab with all of it running: network, bundle server, metadata cluster with its images. What runs is left
    /// alone.
    pub fn up() -> Result<Self> {
        let lab = Self::open()?;
        lab.start(&Progress::new())?;
        Ok(lab)
    }

    /// Starts what does not run.
    pub fn start(&self, progress: &Progress) -> Result<()> {
        let _alone = self.place.lock("up")?;
        let task = progress.task("network");
        network::up()?;
        ssh::ensure_user_key(&self.place)?;
        task.done();
        let task = progress.task("bundle server");
        self.serve_bundle()?;
        task.done();
        let task = progress.task("metadata cluster and its images");
        let changed = self.metadata.up(&self.metadata_images())?;
        task.done();
        operator::deploy(&self.metadata, changed, progress)
    }

    /// Imports the images that the metadata cluster runs, those that have changed. Says whether there were any.
    pub fn load_images(&self) -> Result<bool> {
        self.metadata.load_images(&self.metadata_images())
    }

    /// Where the lab keeps its state.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The metadata cluster.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The metadata cluster's administrator kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.metadata.kubeconfig()
    }

    /// Where machines find the artifact bundle: the URL without a slash at its end.
    pub fn bundle_url() -> String {
        format!("http://{HOST_ADDRESS}:{BUNDLE_PORT}")
    }

    /// Where machines find the artifact bundle for tests of upgrades, once it has been built.
    pub fn upgrades_bundle_url() -> String {
        format!("{}{UPGRADES_PATH}", Self::bundle_url())
    }

    /// Adds a machine and waits until it answers SSH.
    pub fn add_machine(&self, options: MachineOptions) -> Result<Machine> {
        machines::add(&self.place, &self.cache, options)
    }

    /// Adds several machines at once and waits until all answer SSH.
    pub fn add_machines(&self, all: Vec<MachineOptions>) -> Result<Vec<Machine>> {
        let mut added = Vec::new();
        for options in all {
            let machine = machines::define(&self.place, rootfs::machine::find(&self.cache, options.release)?, options)?;
            machine.launch()?;
            added.push(machine);
        }
        added.iter().try_for_each(Machine::wait)?;
        Ok(added)
    }

    /// The machine of that name.
    pub fn machine(&self, name: &str) -> Result<Machine> {
        machines::find(&self.place, name)
    }

    /// A stand-in for a load balancer, in this process; it ends when it is dropped.
    pub fn endpoint(listen: SocketAddr, backends: Vec<SocketAddr>) -> Result<Endpoint> {
        Endpoint::start(listen, backends)
    }

    /// The Host object for a machine, its key pinned.
    pub fn host_manifest(machine: &Machine, namespace: &str) -> Value {
        manifests::host(machine, namespace)
    }

    /// The Secret that opens every machine of the lab.
    pub fn secret_manifest(&self, namespace: &str) -> Result<Value> {
        ssh::ensure_user_key(&self.place)?;
        manifests::secret(&self.place, namespace)
    }

    fn serve_bundle(&self) -> Result<()> {
        let address = SocketAddr::new(HOST_ADDRESS.into(), BUNDLE_PORT);
        let process = Daemon::new(BUNDLE_SERVER, lab_program()?)
            .args(["serve-bundle", "--listen", &address.to_string()])
            .start(&self.place)?;
        for _ in 0..500 {
            if TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok() {
                return Ok(());
            }
            if !process.alive() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("the bundle server does not listen on {address}:\n{}", processes::log_tail(&self.place, BUNDLE_SERVER))
    }

    /// The images of the metadata cluster's Pods, as far as they have been built.
    fn metadata_images(&self) -> Vec<PathBuf> {
        [&images::PAUSE, &images::OPERATOR, &images::EXECUTOR]
            .into_iter()
            .map(|image| image.archive(&self.cache))
            .filter(|archive| archive.is_file())
            .collect()
    }
}

/// Ends everything of the lab and removes it, also what a run left that crashed. Needs nothing to have been built.
pub fn down(place: &Place, cache: &Cache) -> Result<()> {
    let programs = Programs::from_env(cache);
    machines::remove_all(place)?;
    Metadata::new(place, programs, PathBuf::new()).remove()?;
    for name in processes::names(place) {
        processes::stop(place, &name)?;
    }
    for pid in Group::all(place).pids() {
        // Started by a run that did not get to write it down.
        kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
    }
    Group::all(place).remove()?;
    network::down()?;
    machines::unmount_below(place.root())?;
    match std::fs::remove_dir_all(place.root()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to remove {}", place.root().display()))
        }
        _ => Ok(()),
    }
}

/// A machine that is removed when this is dropped: a test that fails leaves none behind.
#[derive(Debug)]
pub struct Temporary(Machine);

impl From<Machine> for Temporary {
    fn from(machine: Machine) -> Self {
        Self(machine)
    }
}

impl Deref for Temporary {
    type Target = Machine;
    fn deref(&self) -> &Machine {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = self.0.remove() {
            eprintln!("lab: {error:#}");
        }
    }
}
