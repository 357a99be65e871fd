//! A real etcd of the test's own, with TLS and client certificates, which machines of the lab reach: as others would
//! run it for a cluster.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::cache::Cache;
use lab::network::HOST_ADDRESS;
use lab::programs::Programs;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::eventually::{Look, eventually};

/// One member that runs until this is dropped.
pub struct ExternalEtcd {
    /// Its client URL.
    pub endpoint: String,
    authority: Authority,
    programs: Programs,
    server: Child,
    directory: TempDir,
}

/// Certificates of one authority.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, both PEM.
struct Leaf {
    certificate: String,
    key: String,
}

impl Authority {
    fn make() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.distinguished_name.push(DnType::CommonName, "etcd-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    fn issue(&self, names: Vec<String>) -> Result<Leaf> {
        let mut params = CertificateParams::new(names)?;
        // With the authority's name OpenSSL would take it for the authority.
        params.distinguished_name.push(DnType::CommonName, "etcd");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Leaf { certificate, key: key.serialize_pem() })
    }
}

impl ExternalEtcd {
    /// Starts it, and waits until it has a leader.
    pub async fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let of = |name: &str| directory.path().join(name);
        let authority = Authority::make()?;
        fs::write(of("ca.crt"), &authority.certificate)?;
        for (name, names) in [("server", vec![HOST_ADDRESS.to_string()]), ("client", Vec::new())] {
            let leaf = authority.issue(names)?;
            fs::write(of(&format!("{name}.crt")), leaf.certificate)?;
            fs::write(of(&format!("{name}.key")), leaf.key)?;
        }
        // Free a moment ago: nobody else listens on this address of the lab.
        let [endpoint, peer] = [free_port()?, free_port()?].map(|port| format!("https://{HOST_ADDRESS}:{port}"));
        let programs = Programs::from_env(&Cache::from_env());
        let log = fs::File::create(of("log"))?;
        let mut command = Command::new(programs.find("etcd")?);
        command.args(["--name", "external", "--log-level", "warn", "--client-cert-auth", "--peer-client-cert-auth"]);
        command.arg("--data-dir").arg(of("data"));
        command.args(["--listen-client-urls", &endpoint, "--advertise-client-urls", &endpoint]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("external={peer}")]);
        for kind in ["", "peer-"] {
            for (flag, file) in [("trusted-ca-file", "ca.crt"), ("cert-file", "server.crt"), ("key-file", "server.key")]
            {
                command.arg(format!("--{kind}{flag}")).arg(of(file));
            }
        }
        let server = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("failed to start etcd")?;
        let mut etcd = Self { endpoint, authority, programs, server, directory };
        etcd.wait().await?;
        Ok(etcd)
    }

    async fn wait(&mut self) -> Result<()> {
        let log = self.path("log");
        eventually("the external etcd answers", Duration::from_secs(20), async || {
            if let Some(status) = self.server.try_wait()? {
                ensure!(false, "etcd ended with {status}: {}", fs::read_to_string(&log)?);
            }
            Ok(match self.etcdctl(&["endpoint", "health"]) {
                Ok(_) => Look::Done(()),
                Err(error) => Look::Waiting(error.to_string()),
            })
        })
        .await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn etcdctl(&self, arguments: &[&str]) -> Result<String> {
        let said = Command::new(self.programs.find("etcdctl")?)
            .args(["--endpoints", &self.endpoint])
            .arg("--cacert")
            .arg(self.path("ca.crt"))
            .arg("--cert")
            .arg(self.path("client.crt"))
            .arg("--key")
            .arg(self.path("client.key"))
            .args(arguments)
            .output()?;
        ensure!(said.status.success(), "etcdctl: {}", String::from_utf8_lossy(&said.stderr));
        Ok(String::from_utf8(said.stdout)?)
    }

    /// The keys below a prefix, in order.
    pub fn keys(&self, prefix: &str) -> Result<Vec<String>> {
        let said = self.etcdctl(&["get", "--prefix", "--keys-only", prefix])?;
        Ok(said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    /// Each key below a prefix with its version and the revision in which it was written last.
    pub fn versions(&self, prefix: &str) -> Result<Value> {
        let said = self.etcdctl(&["get", "--prefix", "--keys-only", "--write-out", "json", prefix])?;
        let found: Value = serde_json::from_str(&said)?;
        let of = |entry: &Value| json!([entry["key"], entry["version"], entry["mod_revision"]]);
        Ok(found["kvs"].as_array().map(|entries| entries.iter().map(of).collect()).unwrap_or_default())
    }

    /// How many members it has.
    pub fn members(&self) -> Result<usize> {
        Ok(self.etcdctl(&["member", "list"])?.lines().count())
    }

    /// The Secret of an API server's client, with a certificate of its own.
    pub fn secret(&self, namespace: &str, name: &str) -> Result<Value> {
        let client = self.authority.issue(Vec::new())?;
        Ok(secret(namespace, name, &self.authority.certificate, &client))
    }

    /// The same with a certificate that another authority issued.
    pub fn secret_of_a_stranger(&self, namespace: &str, name: &str) -> Result<Value> {
        let client = Authority::make()?.issue(Vec::new())?;
        Ok(secret(namespace, name, &self.authority.certificate, &client))
    }
}

fn secret(namespace: &str, name: &str, authority: &str, client: &Leaf) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": namespace, "name": name },
        "type": "kubernetes.io/tls",
        "stringData": { "ca.crt": authority, "tls.crt": client.certificate, "tls.key": client.key },
    })
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((HOST_ADDRESS, 0))?.local_addr()?.port())
}

impl Drop for ExternalEtcd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
