//! An API server of its own: etcd and kube-apiserver on loopback ports in a directory that goes away, with the
//! CustomResourceDefinitions installed. Tests of a file that run at the same time share one.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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

const DEADLINE: Duration = Duration::from_secs(60);
const TOKEN: &str = "administrator-of-a-test";
/// Administrators too; what they ask for is in the audit log.
const AUDITED: [&str; 4] = ["operator-a", "operator-b", "operator-c", "operator-d"];

/// What a test holds: the API server ends when the last test lets go of it.
pub struct ApiServer {
    client: Client,
    processes: Arc<Processes>,
}

struct Processes {
    directory: tempfile::TempDir,
    address: IpAddr,
    port: u16,
    /// The administrator's.
    token: String,
    etcd_url: String,
    children: Mutex<Vec<Child>>,
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
        let server = Self::with(Arc::new(Processes::start(Ipv4Addr::LOCALHOST.into(), TOKEN.to_owned())?))?;
        tokio::runtime::Handle::current().block_on(server.install())?;
        Ok(server)
    }

    /// One of a test's own, without the definitions: a cluster that is looked at from another one. It is reached by
    /// this machine's own address, since a Cluster's kubeconfig must not lead to the operator's own Pod; so its token
    /// is known to nobody.
    pub async fn bare() -> Result<Self> {
        let token = format!("{:032x}", rand::random::<u128>());
        let server = tokio::task::block_in_place(|| Self::with(Arc::new(Processes::start(own_address()?, token)?)))?;
        server.answers().await?;
        Ok(server)
    }

    /// Runs these controllers of Kubernetes, e.g. `serviceaccount-token`, for as long as the API server is there.
    pub fn run_controllers(&self, controllers: &str) -> Result<()> {
        let program = Programs::from_env(&Cache::from_env()).find("kube-controller-manager")?;
        let kubeconfig = self.processes.directory.path().join("controllers.kubeconfig");
        std::fs::write(&kubeconfig, self.checked_kubeconfig()?)?;
        let child = self.processes.started(
            &program,
            &[
                ("kubeconfig", kubeconfig.display().to_string()),
                ("controllers", controllers.to_owned()),
                ("root-ca-file", "certs/apiserver.crt".into()),
                ("service-account-private-key-file", "sa.key".into()),
                ("leader-elect", "false".into()),
                ("secure-port", "0".into()),
            ],
        )?;
        // The API server stays what was started last.
        self.processes.children().insert(0, child);
        Ok(())
    }

    /// It answers no more, until [`ApiServer::resume`].
    pub fn stop(&self) {
        self.processes.end_last();
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

impl Processes {
    fn start(address: IpAddr, token: String) -> Result<Self> {
        let programs = Programs::from_env(&Cache::from_env());
        let directory = tempfile::tempdir().context("failed to make a directory for the API server")?;
        let path = directory.path();
        let (client_port, peer_port, port) = (free_port()?, free_port()?, free_port()?);
        let etcd_url = format!("http://127.0.0.1:{client_port}");
        let peer_url = format!("http://127.0.0.1:{peer_port}");
        let keys = Command::new(programs.find("kubeadm")?)
            .args(["init", "phase", "certs", "sa", "--cert-dir"])
            .arg(path)
            .output()
            .context("failed to run kubeadm")?;
        ensure!(keys.status.success(), "kubeadm: {}", String::from_utf8_lossy(&keys.stderr));
        let mut tokens = format!("{token},admin,admin,system:masters\n");
        for user in AUDITED.into_iter().filter(|_| address.is_loopback()) {
            tokens.push_str(&format!("{},{user},{user},system:masters\n", token_of(user)));
        }
        std::fs::write(path.join("tokens.csv"), tokens)?;
        std::fs::write(path.join("token"), &token)?;
        let policy = serde_json::json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [
                {"level": "Metadata", "users": AUDITED}, {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
                {"level": "None"},
            ],
        });
        std::fs::write(path.join("audit-policy.json"), policy.to_string())?;

        let server = Self { directory, address, port, token, etcd_url: etcd_url.clone(), children: Mutex::default() };
        server.spawn(
            &programs.find("etcd")?,
            &[
                ("data-dir", "etcd".into()),
                ("unsafe-no-fsync", "true".into()),
                ("listen-client-urls", etcd_url.clone()),
                ("advertise-client-urls", etcd_url.clone()),
                ("listen-peer-urls", peer_url.clone()),
                ("initial-advertise-peer-urls", peer_url.clone()),
                ("initial-cluster", format!("default={peer_url}")),
            ],
        )?;
        server.serve()?;
        Ok(server)
    }

    fn url(&self) -> String {
        format!("https://{}", SocketAddr::new(self.address, self.port))
    }

    fn config(&self) -> Result<Config> {
        let mut config = Config::new(self.url().parse()?);
        // It signs its certificate itself, anew each time, and nobody but this machine can be on the other end.
        config.accept_invalid_certs = true;
        config.auth_info.token = Some(self.token.clone().into());
        Ok(config)
    }

    /// Starts the API server itself.
    fn serve(&self) -> Result<()> {
        let programs = Programs::from_env(&Cache::from_env());
        self.spawn(
            &programs.find("kube-apiserver")?,
            &[
                ("etcd-servers", self.etcd_url.clone()),
                ("bind-address", self.address.to_string()),
                ("advertise-address", "192.0.2.1".into()),
                ("secure-port", self.port.to_string()),
                ("cert-dir", "certs".into()),
                ("token-auth-file", "tokens.csv".into()),
                ("audit-policy-file", "audit-policy.json".into()),
                ("audit-log-path", "audit.log".into()),
                ("service-account-issuer", "https://issuer.test".into()),
                ("service-account-key-file", "sa.pub".into()),
                ("service-account-signing-key-file", "sa.key".into()),
                ("service-cluster-ip-range", "10.0.0.0/24".into()),
                ("authorization-mode", "RBAC".into()),
                // An owner that is held up by what it owns is a right, as it is in the lab.
                ("enable-admission-plugins", "OwnerReferencesPermissionEnforcement".into()),
                ("endpoint-reconciler-type", "none".into()),
            ],
        )
    }

    /// Ends what was started last.
    fn end_last(&self) {
        let last = self.children().pop();
        if let Some(mut child) = last {
            // One that has ended already is no error.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn children(&self) -> MutexGuard<'_, Vec<Child>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, program: &Path, arguments: &[(&str, String)]) -> Result<()> {
        let child = self.started(program, arguments)?;
        self.children().push(child);
        Ok(())
    }

    fn started(&self, program: &Path, arguments: &[(&str, String)]) -> Result<Child> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = File::create(self.directory.path().join(format!("{name}.log")))?;
        Command::new(program)
            .args(arguments.iter().map(|(name, value)| format!("--{name}={value}")))
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("failed to start {}", program.display()))
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

impl Drop for Processes {
    fn drop(&mut self) {
        // The API server before its etcd.
        while !self.children().is_empty() {
            self.end_last();
        }
    }
}

fn token_of(user: &str) -> String {
    format!("{user}-of-a-test")
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
