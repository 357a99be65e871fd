//! A real S3 server of the test's own, with TLS and credentials, which Pods of the metadata cluster reach: versitygw
//! over a directory, or, with `CLUSTERWRIGHT_S3=seaweedfs`, SeaweedFS (`lab build storages`).

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
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
        // Free a moment ago: nobody else listens on this address of the lab.
        let port = free_port()?;
        let log = fs::File::create(of("log"))?;
        let mut command = match std::env::var("CLUSTERWRIGHT_S3").as_deref() {
            Ok("seaweedfs") => seaweedfs(directory.path(), port)?,
            Ok("versitygw" | "") | Err(_) => versitygw(directory.path(), port)?,
            Ok(other) => bail!("CLUSTERWRIGHT_S3 is {other}: versitygw (the default) or seaweedfs"),
        };
        let server = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        let server = server.with_context(|| format!("failed to start {}", command.get_program().display()))?;
        let endpoint = format!("https://{HOST_ADDRESS}:{port}");
        let mut storage = Self { endpoint, authority: certificate.pem(), server, directory };
        storage.wait(port).await?;
        Ok(storage)
    }

    async fn wait(&mut self, port: u16) -> Result<()> {
        let log = self.directory.path().join("log");
        eventually("the S3 server has its bucket", Duration::from_secs(60), async || {
            if let Some(status) = self.server.try_wait()? {
                ensure!(false, "the S3 server ended with {status}: {}", fs::read_to_string(&log)?);
            }
            if let Err(error) = tokio::net::TcpStream::connect((HOST_ADDRESS, port)).await {
                return Ok(Look::Waiting(error.to_string()));
            }
            // versitygw has a directory for it; SeaweedFS is asked to make it.
            if self.bucket().is_dir() {
                return Ok(Look::Done(()));
            }
            let made = self.curl().args(["--request", "PUT"]).arg(self.url("")).output()?;
            Ok(match made.status.success() {
                true => Look::Done(()),
                false => Look::Waiting(String::from_utf8_lossy(&made.stderr).into_owned()),
            })
        })
        .await
    }

    /// The directory of the bucket, of versitygw: objects are files there.
    pub fn bucket(&self) -> PathBuf {
        bucket_directory(self.directory.path())
    }

    /// A curl that puts a file into the bucket, as one does by hand.
    pub fn put(&self, file: &Path, key: &str) -> Command {
        let mut curl = self.curl();
        curl.arg("--upload-file").arg(file).arg(self.url(&format!("/{key}")));
        curl
    }

    fn url(&self, rest: &str) -> String {
        format!("{}/{BUCKET}{rest}", self.endpoint)
    }

    fn curl(&self) -> Command {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3"])
            .args(["--user", &format!("{ACCESS_KEY}:{SECRET_KEY}")])
            // It signs no file that it sends.
            .args(["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"])
            .arg("--cacert")
            .arg(self.directory.path().join("server.crt"));
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

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((HOST_ADDRESS, 0))?.local_addr()?.port())
}

fn bucket_directory(place: &Path) -> PathBuf {
    place.join("data").join(BUCKET)
}

fn program(name: &str) -> Result<PathBuf> {
    Programs::from_env(&Cache::from_env()).find(name)
}

fn versitygw(place: &Path, port: u16) -> Result<Command> {
    fs::create_dir_all(bucket_directory(place))?;
    let mut command = Command::new(program("versitygw")?);
    command
        .args(["--port", &format!("{HOST_ADDRESS}:{port}"), "--access", ACCESS_KEY, "--secret", SECRET_KEY])
        .arg("--cert")
        .arg(place.join("server.crt"))
        .arg("--key")
        .arg(place.join("server.key"))
        .arg("posix")
        .arg(place.join("data"));
    Ok(command)
}

/// Its master, one volume server, filer and S3 gateway in one process.
fn seaweedfs(place: &Path, port: u16) -> Result<Command> {
    fs::create_dir_all(place.join("data"))?;
    let identity = json!({"identities": [{
        "name": "lab", "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }]});
    fs::write(place.join("s3.json"), identity.to_string())?;
    let mut command = Command::new(program("weed")?);
    command
        .args(["server", "-s3", "-volume.max=50", "-master.volumeSizeLimitMB=256"])
        .args([format!("-ip={HOST_ADDRESS}"), format!("-ip.bind={HOST_ADDRESS}")])
        .args(["-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0"])
        .arg(format!("-s3.localSocket={}", place.join("s3.sock").display()));
    for name in ["master", "volume", "filer"] {
        command.args([format!("-{name}.port={}", free_port()?), format!("-{name}.port.grpc={}", free_port()?)]);
    }
    command
        .args([format!("-s3.port={port}"), format!("-s3.port.grpc={}", free_port()?)])
        .arg(format!("-s3.cert.file={}", place.join("server.crt").display()))
        .arg(format!("-s3.key.file={}", place.join("server.key").display()))
        .arg(format!("-s3.config={}", place.join("s3.json").display()))
        .arg(format!("-dir={}", place.join("data").display()))
        .current_dir(place);
    Ok(command)
}
