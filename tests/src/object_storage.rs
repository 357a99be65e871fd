//! A real S3 server of the test's own, with TLS and credentials, which Pods of the metadata cluster reach.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::cache::Cache;
use lab::network::HOST_ADDRESS;
use lab::programs::Programs;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::eventually::{Look, eventually};

/// The bucket that is there.
pub const BUCKET: &str = "clusterwright";
const ACCESS_KEY: &str = "lab-access-key";
const SECRET_KEY: &str = "lab-secret-key";

/// A server that runs until this is dropped.
pub struct ObjectStorage {
    /// Where it is, with its scheme and port.
    pub endpoint: String,
    /// The authority that its certificate comes from, PEM.
    pub authority: String,
    server: Child,
    directory: TempDir,
}

impl ObjectStorage {
    /// Starts versitygw over a directory, and waits until it answers.
    pub async fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let of = |name: &str| directory.path().join(name);
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec![HOST_ADDRESS.to_string()])?.self_signed(&key)?;
        fs::write(of("server.crt"), certificate.pem())?;
        fs::write(of("server.key"), key.serialize_pem())?;
        fs::create_dir_all(of("data").join(BUCKET))?;
        // Free a moment ago: nobody else listens on this address of the lab.
        let port = TcpListener::bind((HOST_ADDRESS, 0))?.local_addr()?.port();
        let program = Programs::from_env(&Cache::from_env()).find("versitygw")?;
        let log = fs::File::create(of("log"))?;
        let server = Command::new(program)
            .args(["--port", &format!("{HOST_ADDRESS}:{port}"), "--access", ACCESS_KEY, "--secret", SECRET_KEY])
            .arg("--cert")
            .arg(of("server.crt"))
            .arg("--key")
            .arg(of("server.key"))
            .arg("posix")
            .arg(of("data"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("failed to start versitygw")?;
        let endpoint = format!("https://{HOST_ADDRESS}:{port}");
        let mut storage = Self { endpoint, authority: certificate.pem(), server, directory };
        storage.wait(port).await?;
        Ok(storage)
    }

    async fn wait(&mut self, port: u16) -> Result<()> {
        let log = self.directory.path().join("log");
        eventually("the S3 server listens", Duration::from_secs(20), async || {
            if let Some(status) = self.server.try_wait()? {
                ensure!(false, "versitygw ended with {status}: {}", fs::read_to_string(&log)?);
            }
            Ok(match tokio::net::TcpStream::connect((HOST_ADDRESS, port)).await {
                Ok(_) => Look::Done(()),
                Err(error) => Look::Waiting(error.to_string()),
            })
        })
        .await
    }

    /// The directory of the bucket: objects are files there.
    pub fn bucket(&self) -> PathBuf {
        self.directory.path().join("data").join(BUCKET)
    }

    /// A curl that puts a file into the bucket, as one does by hand.
    pub fn put(&self, file: &Path, key: &str) -> Command {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3"])
            .args(["--user", &format!("{ACCESS_KEY}:{SECRET_KEY}")])
            // It signs no file that it sends.
            .args(["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"])
            .arg("--cacert")
            .arg(self.directory.path().join("server.crt"))
            .arg("--upload-file")
            .arg(file)
            .arg(format!("{}/{BUCKET}/{key}", self.endpoint));
        curl
    }

    /// The Secret, the ConfigMap and the BackupStorage of that name, for a namespace.
    pub fn objects(&self, namespace: &str, name: &str) -> [Value; 3] {
        let meta = || json!({ "namespace": namespace, "name": name });
        [
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": meta(),
                "stringData": { "accessKeyID": ACCESS_KEY, "secretAccessKey": SECRET_KEY }
            }),
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(), "data": { "ca.crt": self.authority } }),
            json!({
                "apiVersion": "clusterwright.dev/v1alpha1", "kind": "BackupStorage", "metadata": meta(),
                "spec": { "s3": {
                    "endpoint": self.endpoint, "bucket": BUCKET, "prefix": "etcd",
                    "credentialsRef": { "name": name }, "caRef": { "name": name }
                } }
            }),
        ]
    }
}

impl Drop for ObjectStorage {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
