//! The metadata cluster, which Clusterwright itself runs in: a control plane and a node on the host, a second node in a
//! machine.
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
        Self { pki: Pki::at(&place.metadata()), place: place.clone(), programs, rootfs }
    }

    /// Whether its API server runs.
    pub fn is_up(&self) -> bool {
        processes::find(&self.place, "kube-apiserver").is_some()
    }

    /// Starts all of it, imports images from these archives, and waits until both nodes are Ready. What runs already is
    /// left alone. Says whether there was an image to import.
    pub fn up(&self, archives: &[PathBuf]) -> Result<bool> {
        if !self.is_up() {
            // Whatever is there is what a run left that ended badly.
            self.remove()?;
        }
        network::up()?;
        self.pki.ensure(&self.programs.find("kubeadm")?, component("kubernetes")?.version)?;
        self.daemons().create(None)?;
        // Importing takes as long as the rest: each node begins as soon as its containerd answers.
        let changed = thread::scope(|scope| {
            let on_host = scope.spawn(|| {
                host_node::start_runtime(self)?;
                images::on_host(self, archives)
            });
            let in_machine = scope.spawn(|| {
                machine_node::launch(self)?;
                images::in_machine(self, archives)
            });
            control_plane::start(self)?;
            let on_host = on_host.join().map_err(|_| anyhow!("the start of the first node broke off"))??;
            host_node::start(self)?;
            let in_machine = in_machine.join().map_err(|_| anyhow!("the start of the second node broke off"))??;
            machine_node::start(self)?;
            Ok::<_, anyhow::Error>(on_host || in_machine)
        })?;
        for (name, _) in NODES {
            self.wait_for("kubelet", &format!("node {name} to be Ready"), || self.node_ready(name))?;
        }
        self.wait_for("kube-controller-manager", "the default ServiceAccount", || {
            self.kubectl(["get", "serviceaccount", "default", "-o", "name"])
        })?;
        Ok(changed)
    }

    /// Ends all of it and removes what it left, whatever state it is in.
    pub fn remove(&self) -> Result<()> {
        if self.place.machine(NODES[1].0).exists() {
            machines::remove_directory(&self.place, NODES[1].0)?;
        }
        host_node::remove(self)?;
        for name in control_plane::PROCESSES.iter().rev() {
            processes::kill_now(&self.place, name)?;
        }
        for name in ["metadata", "metadata-pods"] {
            Group::new(&self.place, name).remove()?;
        }
        let directory = self.directory();
        match fs::remove_dir_all(&directory) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).with_context(|| format!("failed to remove {}", directory.display())),
        }
    }

    /// Saves a snapshot of its etcd.
    pub fn snapshot(&self, file: &Path) -> Result<()> {
        control_plane::snapshot(self, file)
    }

    /// Sets its etcd back to a snapshot, with its API server stopped meanwhile, and waits until the API is ready.
    pub fn set_back(&self, file: &Path) -> Result<()> {
        control_plane::set_back(self, file)
    }

    /// Imports image archives into both nodes, each unless that very file is there already. Says whether there was
    /// anything to import.
    pub fn load_images(&self, archives: &[PathBuf]) -> Result<bool> {
        thread::scope(|scope| {
            let in_machine = scope.spawn(|| images::in_machine(self, archives));
            let on_host = images::on_host(self, archives)?;
            Ok(in_machine.join().map_err(|_| anyhow!("the import broke off"))?? || on_host)
        })
    }

    /// Imports one image archive into both nodes, as `load_images` does.
    pub fn load_image(&self, archive: &Path) -> Result<bool> {
        self.load_images(&[archive.to_owned()])
    }

    /// Where the administrator's kubeconfig is.
    pub fn kubeconfig(&self) -> PathBuf {
        self.pki.kubeconfig("admin")
    }

    /// The directory with the API server's audit log: what ServiceAccounts asked for.
    pub fn audit(&self) -> PathBuf {
        self.directory().join("audit")
    }

    /// Runs kubectl as administrator and gives its standard output.
    pub fn kubectl<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<String> {
        self.kubectl_invocation()?.args(args).within(Duration::from_secs(20)).run()
    }

    /// Applies manifests.
    pub fn apply(&self, manifests: &str) -> Result<()> {
        self.kubectl_invocation()?.args(["apply", "-f", "-"]).input(manifests).run().map(drop)
    }

    /// The directory with the cluster's own kubectl in it.
    pub fn kubectl_directory(&self) -> Result<PathBuf> {
        Ok(self.programs.bin(component("kubernetes")?))
    }

    /// The names of the processes on the host that the cluster is made of.
    pub fn processes() -> impl Iterator<Item = &'static str> {
        control_plane::PROCESSES.into_iter().chain(host_node::PROCESSES)
    }

    /// The kubectl program with the administrator's kubeconfig.
    pub(crate) fn kubectl_invocation(&self) -> Result<Invocation> {
        let mut argument = std::ffi::OsString::from("--kubeconfig=");
        argument.push(self.kubeconfig());
        Ok(Invocation::new(self.programs.find("kubectl")?).args([argument]))
    }

    fn directory(&self) -> PathBuf {
        self.place.metadata()
    }

    /// The control group of its programs on the host.
    fn daemons(&self) -> Group {
        Group::new(&self.place, "metadata")
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
    NODES.iter().position(|(name, _)| *name == node).map_or(0, |index| index + 1)
}
