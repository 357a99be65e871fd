//! The processes of an API server: etcd, kube-apiserver, and what runs beside them.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use kube::Config;
use lab::cache::Cache;
use lab::programs::Programs;

use super::free_port;

/// Administrators too; what they ask for is in the audit log.
pub const AUDITED: [&str; 4] = ["operator-a", "operator-b", "operator-c", "operator-d"];

/// They end when this is dropped.
pub struct Processes {
    pub directory: tempfile::TempDir,
    address: IpAddr,
    port: u16,
    /// The administrator's.
    pub token: String,
    pub etcd_url: String,
    /// Flags of the API server beside those that all have; the last word where both have one.
    flags: Flags,
    /// By the names of their programs; the API server was started last.
    children: Mutex<Vec<(String, Child)>>,
}

/// Flags of a program and their values.
pub type Flags = Vec<(&'static str, String)>;

impl Processes {
    /// With an etcd of its own, unless one is given.
    pub fn start(address: IpAddr, token: String, etcd: Option<String>, flags: Flags) -> Result<Self> {
        let programs = Programs::from_env(&Cache::from_env());
        let directory = tempfile::tempdir().context("failed to make a directory for the API server")?;
        let path = directory.path();
        let (client_port, peer_port, port) = (free_port()?, free_port()?, free_port()?);
        let has_own_etcd = etcd.is_none();
        let etcd_url = etcd.unwrap_or_else(|| format!("http://127.0.0.1:{client_port}"));
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

        let children = Mutex::default();
        let server = Self { directory, address, port, token, etcd_url: etcd_url.clone(), flags, children };
        if has_own_etcd {
            let of_etcd = [
                ("data-dir", "etcd".into()),
                ("unsafe-no-fsync", "true".into()),
                ("listen-client-urls", etcd_url.clone()),
                ("advertise-client-urls", etcd_url),
                ("listen-peer-urls", peer_url.clone()),
                ("initial-advertise-peer-urls", peer_url.clone()),
                ("initial-cluster", format!("default={peer_url}")),
            ];
            server.spawn("etcd", &of_etcd)?;
        }
        server.serve()?;
        Ok(server)
    }

    pub fn url(&self) -> String {
        format!("https://{}", SocketAddr::new(self.address, self.port))
    }

    pub fn config(&self) -> Result<Config> {
        let mut config = Config::new(self.url().parse()?);
        // It signs its certificate itself, anew each time, and nobody but this machine can be on the other end.
        config.accept_invalid_certs = true;
        config.auth_info.token = Some(self.token.clone().into());
        Ok(config)
    }

    /// Starts the API server itself.
    pub fn serve(&self) -> Result<()> {
        let own = vec![
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
        ];
        self.spawn("kube-apiserver", &[own, self.flags.clone()].concat())
    }

    /// Ends what was started last.
    pub fn end_last(&self) {
        let last = self.children().pop();
        if let Some((_, mut child)) = last {
            // One that has ended already is no error.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The API server before its etcd.
    pub fn end_all(&self) {
        while !self.children().is_empty() {
            self.end_last();
        }
    }

    pub fn children(&self) -> MutexGuard<'_, Vec<(String, Child)>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, program: &str, flags: &[(&str, String)]) -> Result<()> {
        let child = self.started(program, flags)?;
        self.children().push((program.to_owned(), child));
        Ok(())
    }

    /// The API server stays what was started last.
    pub fn spawn_beside(&self, program: &str, flags: &[(&str, String)]) -> Result<()> {
        let child = self.started(program, flags)?;
        self.children().insert(0, (program.to_owned(), child));
        Ok(())
    }

    fn started(&self, name: &str, flags: &[(&str, String)]) -> Result<Child> {
        let program = Programs::from_env(&Cache::from_env()).find(name)?;
        let log = File::create(self.directory.path().join(format!("{name}.log")))?;
        Command::new(&program)
            .args(flags.iter().map(|(name, value)| format!("--{name}={value}")))
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("failed to start {}", program.display()))
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// The token of one of [`AUDITED`].
pub fn token_of(user: &str) -> String {
    format!("{user}-of-a-test")
}
