//! The plane's etcd and its API server: real programs, started with the commands and the files that the operator gives
//! their Pods. Only ports and addresses differ, since no Pod network is there.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use lab::cache::Cache;
use serde_json::Value;
use tokio::time::sleep;

use crate::NAMESPACE;
use crate::network::Network;
use e2e::api_server::free_port;

/// Where the operator's Pods have their files.
const DIRECTORY: &str = "/etc/karmada";
const DEADLINE: Duration = Duration::from_secs(90);

/// What runs of the plane; clones are the same.
#[derive(Clone)]
pub struct Programs(Arc<Running>);

struct Running {
    host: Client,
    network: Network,
    directory: tempfile::TempDir,
    /// The port of the node that the API server is reached by.
    port: u16,
    etcd_ports: [u16; 3],
    plane: Mutex<Option<Client>>,
    /// What the API server was started with.
    started: Mutex<Vec<String>>,
    children: Mutex<Vec<(&'static str, Child)>>,
}

impl Programs {
    pub fn new(host: Client, network: Network, port: u16) -> Result<Self> {
        let etcd_ports = [free_port()?, free_port()?, free_port()?];
        let directory = tempfile::tempdir()?;
        let (plane, started, children) = (Mutex::default(), Mutex::default(), Mutex::default());
        Ok(Self(Arc::new(Running { host, network, directory, port, etcd_ports, plane, started, children })))
    }

    /// A client of the plane with the administrator's kubeconfig, once it answers.
    pub fn plane(&self) -> Option<Client> {
        lock(&self.0.plane).clone()
    }

    /// Starts etcd, if it does not run.
    pub async fn etcd(&self, set: &StatefulSet) -> Result<()> {
        if self.runs("etcd") {
            return Ok(());
        }
        let files = self.files("k1-etcd").await?;
        let [client, peer, metrics] = self.0.etcd_ports;
        let data = self.0.directory.path().join("data");
        let command = command(&serde_json::to_value(set)?)?;
        let arguments = command.into_iter().map(|argument| match argument.split_once('=') {
            Some(("--name", _)) => "--name=k1-etcd-0".to_owned(),
            Some(("--data-dir", _)) => format!("--data-dir={}", data.display()),
            Some((flag @ ("--listen-client-urls" | "--advertise-client-urls"), _)) => {
                format!("{flag}=https://127.0.0.1:{client}")
            }
            Some((flag @ ("--listen-peer-urls" | "--initial-advertise-peer-urls"), _)) => {
                format!("{flag}=https://127.0.0.1:{peer}")
            }
            Some(("--listen-metrics-urls", _)) => format!("--listen-metrics-urls=http://127.0.0.1:{metrics}"),
            Some(("--initial-cluster", _)) => format!("--initial-cluster=k1-etcd-0=https://127.0.0.1:{peer}"),
            // Its Secret says so until it was whole once.
            Some(("--initial-cluster-state", _)) => "--initial-cluster-state=new".to_owned(),
            _ => argument.replace(DIRECTORY, &files.display().to_string()),
        });
        let arguments: Vec<String> = arguments.chain(["--unsafe-no-fsync=true".to_owned()]).collect();
        self.spawn("etcd", &arguments)
    }

    /// Starts the API server, if it does not run so, and waits until it answers whom the operator has made a
    /// kubeconfig.
    pub async fn api_server(&self, deployment: &Deployment) -> Result<()> {
        let command = command(&serde_json::to_value(deployment)?)?;
        let is_other = *lock(&self.0.started) != command;
        if self.plane().is_some() && !is_other {
            return Ok(());
        }
        if is_other {
            self.end("kube-apiserver");
            *lock(&self.0.started) = command.clone();
        }
        if !self.runs("kube-apiserver") {
            let files = self.files("k1-apiserver").await?;
            let egress = self.0.directory.path().join("egress.yaml");
            std::fs::write(&egress, self.0.network.egress())?;
            let [client, ..] = self.0.etcd_ports;
            let arguments = command.into_iter().map(|argument| match argument.split_once('=') {
                Some(("--secure-port", _)) => format!("--secure-port={}", self.0.port),
                Some(("--etcd-servers", _)) => format!("--etcd-servers=https://127.0.0.1:{client}"),
                _ => argument.replace(DIRECTORY, &files.display().to_string()),
            });
            let own = ["--advertise-address=192.0.2.1".into(), "--endpoint-reconciler-type=none".into()];
            let egress = format!("--egress-selector-config-file={}", egress.display());
            let arguments: Vec<String> = arguments.chain(own).chain([egress]).collect();
            self.spawn("kube-apiserver", &arguments)?;
        }
        let secrets: Api<Secret> = Api::namespaced(self.0.host.clone(), "fleet");
        let secret = secrets.get("k1-kubeconfig").await?.data.context("it has no data")?;
        let text = String::from_utf8(secret.get("kubeconfig").context("no kubeconfig")?.0.clone())?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(Kubeconfig::from_yaml(&text)?, &options).await?;
        // A kubelet asks whether it is ready, and says nothing of who it is.
        let mut kubelet = Config::new(config.cluster_url.clone());
        kubelet.accept_invalid_certs = true;
        let (kubelet, client) = (Client::try_from(kubelet)?, Client::try_from(config)?);
        let until = Instant::now() + DEADLINE;
        while let Err(error) = kubelet.request_text(http::Request::get("/readyz").body(Vec::new())?).await {
            ensure!(Instant::now() < until, "the plane does not answer: {error:?}\n{}", self.log("kube-apiserver"));
            sleep(Duration::from_millis(200)).await;
        }
        *lock(&self.0.plane) = Some(client);
        Ok(())
    }

    /// The end of a program's log.
    pub fn log(&self, program: &str) -> String {
        let log = std::fs::read_to_string(self.0.directory.path().join(format!("{program}.log"))).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Ends the API server, which is not started again.
    pub fn kill_api_server(&self) {
        for (_, child) in lock(&self.0.children).iter_mut().filter(|(program, _)| *program == "kube-apiserver") {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Takes a snapshot of etcd, as a backup has it.
    pub fn snapshot(&self) -> Result<()> {
        let pki = self.0.directory.path().join("k1-apiserver/pki");
        let file = |flag: &str, name: &str| format!("--{flag}={}", pki.join(name).display());
        let arguments = [
            format!("--endpoints=https://127.0.0.1:{}", self.0.etcd_ports[0]),
            file("cacert", "etcd/ca.crt"),
            file("cert", "apiserver-etcd-client.crt"),
            file("key", "apiserver-etcd-client.key"),
            "snapshot".to_owned(),
            "save".to_owned(),
            self.snapshot_file().display().to_string(),
        ];
        run_etcd("etcdctl", &arguments)
    }

    fn snapshot_file(&self) -> PathBuf {
        self.0.directory.path().join("snapshot.db")
    }

    /// Makes etcd's data with the command of a Job's container, of the snapshot that was taken.
    pub fn restore(&self, job: &Job) -> Result<()> {
        let data = self.0.directory.path().join("data");
        let arguments = command(&serde_json::to_value(job)?)?;
        let peer = format!("https://127.0.0.1:{}", self.0.etcd_ports[1]);
        let arguments = arguments.into_iter().map(|argument| match argument.split_once('=') {
            Some(("--data-dir", _)) => format!("--data-dir={}", data.display()),
            Some(("--initial-cluster", _)) => format!("--initial-cluster=k1-etcd-0={peer}"),
            Some(("--initial-advertise-peer-urls", _)) => format!("--initial-advertise-peer-urls={peer}"),
            _ if argument == "/restore/snapshot.db" => self.snapshot_file().display().to_string(),
            _ => argument,
        });
        run_etcd("etcdutl", &arguments.collect::<Vec<_>>())
    }

    /// Ends all of it, and removes etcd's data: another plane has this place.
    pub fn forget(&self) -> Result<()> {
        self.end("kube-apiserver");
        self.end("etcd");
        lock(&self.0.started).clear();
        std::fs::remove_dir_all(self.0.directory.path().join("data"))?;
        for secret in ["k1-etcd", "k1-apiserver"] {
            std::fs::remove_dir_all(self.0.directory.path().join(secret))?;
        }
        Ok(())
    }

    fn end(&self, program: &str) {
        *lock(&self.0.plane) = None;
        lock(&self.0.children).retain_mut(|(running, child)| {
            if *running == program {
                let _ = child.kill();
                let _ = child.wait();
            }
            *running != program
        });
    }

    fn runs(&self, program: &str) -> bool {
        lock(&self.0.children).iter().any(|(running, _)| *running == program)
    }

    /// The files of a Secret, as its Pods see them.
    async fn files(&self, secret: &str) -> Result<PathBuf> {
        let secrets: Api<Secret> = Api::namespaced(self.0.host.clone(), NAMESPACE);
        let found = secrets.get(secret).await?;
        let directory = self.0.directory.path().join(secret);
        for (key, content) in found.data.unwrap_or_default() {
            let path = directory.join(path_of(&key));
            std::fs::create_dir_all(path.parent().unwrap_or(&directory))?;
            std::fs::write(path, content.0)?;
        }
        Ok(directory)
    }

    fn spawn(&self, program: &'static str, arguments: &[String]) -> Result<()> {
        let path = lab::programs::Programs::from_env(&Cache::from_env()).find(program)?;
        let log = File::create(self.0.directory.path().join(format!("{program}.log")))?;
        let child = Command::new(&path)
            .args(arguments)
            .current_dir(self.0.directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("failed to start {}", path.display()))?;
        lock(&self.0.children).push((program, child));
        Ok(())
    }
}

/// `pki.etcd.ca.crt` is `pki/etcd/ca.crt`, as the volume of the Pod has it.
fn path_of(key: &str) -> PathBuf {
    match key.strip_prefix("pki.") {
        Some(rest) => match rest.strip_prefix("etcd.") {
            Some(rest) => Path::new("pki/etcd").join(rest),
            None => Path::new("pki").join(rest),
        },
        None => PathBuf::from(key),
    }
}

/// Runs one of etcd's programs for administrators to its end; an error has what it printed.
pub fn run_etcd(program: &str, arguments: &[String]) -> Result<()> {
    let path = lab::programs::Programs::from_env(&Cache::from_env()).find("etcd")?.with_file_name(program);
    let output = Command::new(&path).args(arguments).output();
    let output = output.with_context(|| format!("failed to start {}", path.display()))?;
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    ensure!(output.status.success(), "{program} {arguments:?}: {said}");
    Ok(())
}

/// The arguments of the program of a workload.
pub fn command(workload: &Value) -> Result<Vec<String>> {
    let command = workload["spec"]["template"]["spec"]["containers"][0]["command"].as_array();
    let command = command.context("it has no command")?.iter().skip(1);
    Ok(command.filter_map(|argument| argument.as_str().map(str::to_owned)).collect())
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Running {
    fn drop(&mut self) {
        for (_, child) in lock(&self.children).iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
