//! The metadata cluster, which Clusterwright itself runs in: a control plane and a node on the host, a second node in a machine.
//!
//! It has no DNS of its own: the operator finds the API by the variables that every Pod gets.

mod control_plane;
mod host_node;
mod images;
mod machine_node;
mod node;
mod pki;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::cgroups::Group;
use crate::command::Invocation;
use crate::network::HOST_ADDRESS;
use crate::place::Place;
use crate::programs::{Programs, component};
use crate::{machines, network, processes};
use pki::Pki;

/// The nodes and their addresses: the host itself, then the machine.
pub const NODES: [(&str, Ipv4Addr); 2] = [("meta-1", HOST_ADDRESS), ("meta-2", Ipv4Addr::new(172, 30, 0, 2))];

/// How long each step of the start may take.
const DEADLINE: Duration = Duration::from_secs(90);

/// The metadata cluster of a lab.
#[derive(Debug, Clone)]
pub struct Metadata {
    place: Place,
    programs: Programs,
    rootfs: PathBuf,
    pki: Pki,
}

impl Metadata {
    /// The cluster in that lab, with these programs and this root filesystem for its machine.
    pub fn new(place: &Place, programs: Programs, rootfs: PathBuf) -> Self {
        Self {
            pki: Pki::at(&place.metadata()),
            place: place.clone(),
            programs,
            rootfs,
        }
    }

    /// Whether its API server runs.
    pub fn is_up(&self) -> bool {
        processes::find(&self.place, "kube-apiserver").is_some()
    }

    /// Starts all of it and waits until both nodes are Ready. What runs already is left alone.
    pub fn up(&self) -> Result<()> {
        if !self.is_up() {
            // Whatever is there is what a run left that ended badly.
            self.remove()?;
        }
        network::up()?;
        self.pki
            .ensure(&self.programs.find("kubeadm")?, component("kubernetes")?.version)?;
        Self::daemons().create(None)?;
        thread::scope(|scope| {
            let runtime = scope.spawn(|| host_node::start_runtime(self));
            let machine = scope.spawn(|| machine_node::launch(self));
            control_plane::start(self)?;
            runtime
                .join()
                .map_err(|_| anyhow!("the start of containerd ended"))??;
            machine
                .join()
                .map_err(|_| anyhow!("the start of the second node ended"))??;
            let machine = scope.spawn(|| machine_node::start(self));
            host_node::start(self)?;
            machine
                .join()
                .map_err(|_| anyhow!("the start of the second node ended"))?
        })?;
        for (name, _) in NODES {
            self.wait_for("kubelet", &format!("node {name} to be Ready"), || {
                self.node_ready(name)
            })?;
        }
        self.wait_for("kube-controller-manager", "the default ServiceAccount", || {
            self.kubectl(["get", "serviceaccount", "default", "-o", "name"])
        })
    }

    /// Ends all of it and removes what it left, whatever state it is in.
    pub fn remove(&self) -> Result<()> {
        if self.place.machine(NODES[1].0).exists() {
            machines::remove_directory(&self.place, NODES[1].0)?;
        }
        host_node::remove(self)?;
        for name in control_plane::PROCESSES.iter().rev() {
            processes::stop(&self.place, name)?;
        }
        for name in ["metadata", "metadata-pods"] {
            Group::new(name).remove()?;
        }
        let directory = self.directory();
        match fs::remove_dir_all(&directory) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).with_context(|| format!("failed to remove {}", directory.display())),
        }
    }

    /// Imports an image archive into both nodes, unless that very file is there already.
    pub fn load_image(&self, archive: &Path) -> Result<()> {
        images::load(self, archive)
    }

    /// Where the administrator's kubeconfig is.
    pub fn kubeconfig(&self) -> PathBuf {
        self.pki.kubeconfig("admin")
    }

    /// Runs kubectl as administrator and gives its standard output.
    pub fn kubectl<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<String> {
        self.kubectl_invocation()?
            .args(args)
            .within(Duration::from_secs(20))
            .run()
    }

    /// Applies manifests.
    pub fn apply(&self, manifests: &str) -> Result<()> {
        self.kubectl_invocation()?
            .args(["apply", "-f", "-"])
            .input(manifests)
            .run()
            .map(drop)
    }

    /// The names of the processes on the host that the cluster is made of.
    pub fn processes() -> impl Iterator<Item = &'static str> {
        control_plane::PROCESSES.into_iter().chain(host_node::PROCESSES)
    }

    fn kubectl_invocation(&self) -> Result<Invocation> {
        let mut argument = std::ffi::OsString::from("--kubeconfig=");
        argument.push(self.kubeconfig());
        Ok(Invocation::new(self.programs.find("kubectl")?).args([argument]))
    }

    fn directory(&self) -> PathBuf {
        self.place.metadata()
    }

    /// The control group of its programs on the host.
    fn daemons() -> Group {
        Group::new("metadata")
    }

    fn node_ready(&self, name: &str) -> Result<String> {
        let path = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        let status = self.kubectl(["get", "node", name, "-o", path])?;
        if status != "True" {
            bail!("its condition Ready is {status:?}");
        }
        Ok(status)
    }

    /// Asks until there is an answer; the process's log is shown when none comes or when the process ends.
    fn wait_for(&self, process: &str, what: &str, ask: impl Fn() -> Result<String>) -> Result<()> {
        let until = Instant::now() + DEADLINE;
        loop {
            let last = match ask() {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let gone = processes::find(&self.place, process).is_none();
            if gone || Instant::now() >= until {
                let why = if gone { "has ended" } else { "does not get there" };
                let log = processes::log_tail(&self.place, process);
                return Err(last).with_context(|| format!("waited for {what}, but {process} {why}:\n{log}"));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A node's part of the Pod network.
fn number_of(node: &str) -> usize {
    NODES
        .iter()
        .position(|(name, _)| *name == node)
        .map_or(0, |index| index + 1)
}
