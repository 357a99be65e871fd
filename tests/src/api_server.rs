//! An API server of its own: etcd and kube-apiserver on loopback ports in a directory that goes away, with the
//! CustomResourceDefinitions installed. Tests of a file that run at the same time share one.

mod processes;

use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::{Client, Config};
use lab::cache::Cache;
use lab::programs::Programs;
use serde_json::Value;

pub use processes::Flags;
use processes::{AUDITED, Processes, token_of};

const DEADLINE: Duration = Duration::from_secs(60);
const TOKEN: &str = "administrator-of-a-test";

/// What a test holds: the API server ends when the last test lets go of it.
pub struct ApiServer {
    client: Client,
    processes: Arc<Processes>,
}

/// What the API server said to a request.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The object, or the `Status`.
    pub body: Value,
}

impl ApiServer {
    /// The one that runs, or a new one.
    pub async fn shared() -> Result<Self> {
        static SHARED: Mutex<Weak<Processes>> = Mutex::new(Weak::new());
        // Starting blocks: who comes at the same time waits for the same server.
        tokio::task::block_in_place(|| {
            let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(processes) = shared.upgrade() {
                return Self::with(processes);
            }
            let server = Self::start_with_definitions()?;
            *shared = Arc::downgrade(&server.processes);
            Ok(server)
        })
    }

    /// One of a test's own.
    pub async fn own() -> Result<Self> {
        tokio::task::block_in_place(Self::start_with_definitions)
    }

    fn start_with_definitions() -> Result<Self> {
        let processes = Processes::start(Ipv4Addr::LOCALHOST.into(), TOKEN.to_owned(), None, Flags::new())?;
        let server = Self::with(Arc::new(processes))?;
        tokio::runtime::Handle::current().block_on(server.install())?;
        Ok(server)
    }

    /// One of a test's own, without the definitions: a cluster that is looked at from another one. It is reached by
    /// this machine's own address, since a Cluster's kubeconfig must not lead to the operator's own Pod; so its token
    /// is known to nobody.
    pub async fn bare() -> Result<Self> {
        Self::bare_with(Flags::new()).await
    }

    /// The same with flags of its own.
    pub async fn bare_with(flags: Flags) -> Result<Self> {
        Self::start_bare(None, flags).await
    }

    /// Another cluster of this kind, which keeps what it has under a prefix in the etcd of this one: it goes when this
    /// one goes.
    pub async fn beside(&self, prefix: &str, mut flags: Flags) -> Result<Self> {
        flags.push(("etcd-prefix", prefix.to_owned()));
        Self::start_bare(Some(self.processes.etcd_url.clone()), flags).await
    }

    async fn start_bare(etcd: Option<String>, flags: Flags) -> Result<Self> {
        let token = format!("{:032x}", rand::random::<u128>());
        let start = || Self::with(Arc::new(Processes::start(own_address()?, token, etcd, flags)?));
        let server = tokio::task::block_in_place(start)?;
        server.answers().await?;
        Ok(server)
    }

    /// Runs these controllers of Kubernetes, e.g. `serviceaccount-token`, for as long as the API server is there.
    pub fn run_controllers(&self, controllers: &str) -> Result<()> {
        self.run_controllers_with(controllers, Flags::new())
    }

    /// The same with flags of its own.
    pub fn run_controllers_with(&self, controllers: &str, flags: Flags) -> Result<()> {
        let kubeconfig = self.processes.directory.path().join("controllers.kubeconfig");
        std::fs::write(&kubeconfig, self.checked_kubeconfig()?)?;
        let own = vec![
            ("kubeconfig", kubeconfig.display().to_string()),
            ("controllers", controllers.to_owned()),
            ("root-ca-file", "certs/apiserver.crt".into()),
            ("service-account-private-key-file", "sa.key".into()),
            ("leader-elect", "false".into()),
            ("secure-port", "0".into()),
        ];
        self.processes.spawn_beside("kube-controller-manager", &[own, flags].concat())
    }

    /// Runs Kubernetes' scheduler with this configuration, which is given the kubeconfig.
    pub fn run_scheduler(&self, mut configuration: Value) -> Result<()> {
        let directory = self.processes.directory.path();
        let (kubeconfig, file) = (directory.join("scheduler.kubeconfig"), directory.join("scheduler.json"));
        std::fs::write(&kubeconfig, self.checked_kubeconfig()?)?;
        configuration["clientConnection"]["kubeconfig"] = kubeconfig.display().to_string().into();
        std::fs::write(&file, configuration.to_string())?;
        let flags = [("config", file.display().to_string()), ("secure-port", "0".into())];
        self.processes.spawn_beside("kube-scheduler", &flags)
    }

    /// It answers no more, until [`ApiServer::resume`].
    pub fn stop(&self) {
        self.processes.end_last();
    }

    /// All of it is killed, the API server first, and does not come back.
    pub fn kill(&self) {
        self.processes.end_all();
    }

    /// What runs of it: names of programs, and their processes.
    pub fn pids(&self) -> Vec<(String, u32)> {
        self.processes.children().iter().map(|(program, child)| (program.clone(), child.id())).collect()
    }

    /// It answers again, with all that it had.
    pub async fn resume(&self) -> Result<()> {
        self.processes.serve()?;
        self.answers().await
    }

    /// A client with all rights, for the runtime that asks.
    fn with(processes: Arc<Processes>) -> Result<Self> {
        Ok(Self { client: Client::try_from(processes.config()?)?, processes })
    }

    /// What a client with all rights is made from.
    pub fn config(&self) -> Result<Config> {
        self.processes.config()
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    async fn install(&self) -> Result<()> {
        self.answers().await?;
        self.define(crds::manifests::all()).await
    }

    /// Installs these definitions, and waits until what they define is served.
    pub async fn define(&self, definitions: Vec<CustomResourceDefinition>) -> Result<()> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client());
        for definition in &definitions {
            let name = definition.metadata.name.clone().unwrap_or_default();
            let created = api.create(&PostParams::default(), definition).await;
            created.with_context(|| format!("the API server refuses the definition of {name}"))?;
        }
        for definition in &definitions {
            let name = definition.metadata.name.clone().unwrap_or_default();
            let established = kube::runtime::conditions::is_crd_established();
            let wait = kube::runtime::wait::await_condition(api.clone(), &name, established);
            tokio::time::timeout(DEADLINE, wait).await.with_context(|| format!("{name} is not established"))??;
        }
        // Established, and yet not served for a moment.
        let until = Instant::now() + DEADLINE;
        for definition in &definitions {
            let plural = &definition.spec.names.plural;
            while self.get(plural, "").await?.code != 200 {
                ensure!(Instant::now() < until, "{plural} are not served");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Ok(())
    }

    /// Waits until it does.
    async fn answers(&self) -> Result<()> {
        let until = Instant::now() + DEADLINE;
        while let Err(error) = self.ready().await {
            if Instant::now() > until {
                let log = std::fs::read_to_string(self.processes.directory.path().join("kube-apiserver.log"));
                let log = log.unwrap_or_default();
                let end: Vec<&str> = log.lines().rev().take(20).collect();
                bail!("the API server does not answer: {error:#}\n{}", end.join("\n"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    async fn ready(&self) -> Result<()> {
        let request = http::Request::get("/readyz").body(Vec::new())?;
        self.client().request_text(request).await?;
        let namespace = http::Request::get("/api/v1/namespaces/default").body(Vec::new())?;
        self.client().request_text(namespace).await?;
        Ok(())
    }

    /// A file with the kubeconfig of an administrator whose requests are in the audit log.
    pub fn kubeconfig(&self, user: &str) -> Result<PathBuf> {
        ensure!(AUDITED.contains(&user), "{user} is not among {AUDITED:?}");
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.processes.url(), "insecure-skip-tls-verify": true,
            }}],
            "users": [{"name": user, "user": {"token": token_of(user)}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        });
        let path = self.processes.directory.path().join(format!("{user}.kubeconfig"));
        std::fs::write(&path, kubeconfig.to_string())?;
        Ok(path)
    }

    /// What a program needs that speaks HTTP to it with all rights: its URL, a file with its certificate, and one with
    /// a token.
    pub fn for_programs(&self) -> (String, PathBuf, PathBuf) {
        let directory = self.processes.directory.path();
        (self.processes.url(), directory.join("certs/apiserver.crt"), directory.join("token"))
    }

    /// A kubeconfig as a Cluster takes it: its certificate is checked.
    pub fn checked_kubeconfig(&self) -> Result<String> {
        self.kubeconfig_of(&self.processes.token)
    }

    /// The same for whoever has this token.
    pub fn kubeconfig_of(&self, token: &str) -> Result<String> {
        let certificate = std::fs::read(self.processes.directory.path().join("certs/apiserver.crt"))?;
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.processes.url(),
                "certificate-authority-data": STANDARD.encode(certificate),
            }}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        Ok(kubeconfig.to_string())
    }

    /// What the users of [`ApiServer::kubeconfig`], and ServiceAccounts, have asked for so far.
    pub fn audit(&self) -> Result<Vec<crate::audit::Request>> {
        crate::audit::read(self.processes.directory.path())
    }

    /// Runs kubectl as an administrator; what it printed, or what it complained about.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let programs = Programs::from_env(&Cache::from_env());
        let output = Command::new(programs.find("kubectl")?)
            .arg(format!("--server={}", self.processes.url()))
            .args(["--insecure-skip-tls-verify", "--token", &self.processes.token])
            .env("KUBECONFIG", "/dev/null")
            .env("HOME", self.processes.directory.path())
            .args(arguments)
            .output()
            .context("failed to run kubectl")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && complaint.is_empty(), "kubectl {arguments:?}: {complaint}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Reads an object of ours in namespace `default`; with an empty name the list.
    pub async fn get(&self, plural: &str, name: &str) -> Result<Answer> {
        self.send(http::Request::get(url(plural, name, "")).body(Vec::new())?).await
    }

    /// Creates an object of ours in namespace `default`, unknown fields refused.
    pub async fn create(&self, plural: &str, object: &Value) -> Result<Answer> {
        self.post(plural, object, "?fieldValidation=Strict").await
    }

    /// As `create`, but nothing is kept.
    pub async fn try_create(&self, plural: &str, object: &Value) -> Result<Answer> {
        self.post(plural, object, "?fieldValidation=Strict&dryRun=All").await
    }

    async fn post(&self, plural: &str, object: &Value, query: &str) -> Result<Answer> {
        let request = http::Request::post(url(plural, "", query)).header("content-type", "application/json");
        self.send(request.body(serde_json::to_vec(object)?)?).await
    }

    /// Merges a patch into an object of ours, but nothing is kept.
    pub async fn try_patch(&self, plural: &str, name: &str, patch: &Value) -> Result<Answer> {
        self.merge(plural, name, "?fieldValidation=Strict&dryRun=All", patch).await
    }

    /// Merges a patch into an object of ours, or, with a name like `NAME/status`, into a subresource of it.
    pub async fn patch(&self, plural: &str, name: &str, patch: &Value) -> Result<Answer> {
        self.merge(plural, name, "?fieldValidation=Strict", patch).await
    }

    async fn merge(&self, plural: &str, name: &str, query: &str, patch: &Value) -> Result<Answer> {
        let request =
            http::Request::patch(url(plural, name, query)).header("content-type", "application/merge-patch+json");
        self.send(request.body(serde_json::to_vec(patch)?)?).await
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<Answer> {
        match self.client().request::<Value>(request).await {
            Ok(body) => Ok(Answer { code: 200, body }),
            Err(kube::Error::Api(status)) => Ok(Answer { code: status.code, body: serde_json::to_value(&status)? }),
            Err(error) => Err(error).context("failed to ask the API server"),
        }
    }
}

fn url(plural: &str, name: &str, query: &str) -> String {
    let name = if name.is_empty() { String::new() } else { format!("/{name}") };
    format!("/apis/clusterwright.dev/v1alpha1/namespaces/default/{plural}{name}{query}")
}

impl Answer {
    /// What a person reads.
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// The address that this machine has for others. Nothing is sent.
pub fn own_address() -> Result<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    Ok(socket.context("failed to find an address of this machine")?.ip())
}

/// A port of this machine that nobody uses.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("failed to find a free port")?;
    Ok(listener.local_addr()?.port())
}

/// A port that Services of nodes may have, and that nobody has here.
pub fn free_node_port() -> Result<u16> {
    let address = own_address()?;
    let free = |port: &u16| TcpListener::bind((address, *port)).is_ok();
    let start = 30_000 + u16::try_from(std::process::id() % 2_000)?;
    (start..32_767).find(free).context("no port is free")
}
