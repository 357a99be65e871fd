//! A real S3 server of the test's own on the loopback interface, with TLS and credentials: versitygw over a directory,
//! or, with `CLUSTERWRIGHT_S3=seaweedfs`, SeaweedFS. It ends with the test.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use backup::{Credentials, Store};
use crds::backup::{S3Inputs, StorageInputs};
use rcgen::{CertificateParams, KeyPair};

use super::process::{free_port, program};

/// The bucket that is there.
pub const BUCKET: &str = "etcd";
pub const ACCESS_KEY: &str = "AKIATESTACCESS";
pub const SECRET_KEY: &str = "test-secret-key";
/// How long a server may take to serve.
const STARTED: Duration = Duration::from_secs(60);

/// A server's certificate, which is its own authority.
pub struct Certificate {
    pub pem: String,
    key: String,
}

impl Certificate {
    pub fn new() -> Self {
        Self::with(|_| ())
    }

    /// One that ended long ago.
    pub fn expired() -> Self {
        Self::with(|certificate| certificate.not_after = rcgen::date_time_ymd(2020, 2, 1))
    }

    fn with(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        change(&mut certificate);
        Self { pem: certificate.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
    }
}

/// A server that runs until this is dropped.
pub struct ObjectStorage {
    process: Child,
    pub port: u16,
    pub authority: String,
    place: PathBuf,
}

impl ObjectStorage {
    /// Starts one below a directory, and waits until its bucket is there.
    pub fn start(place: &Path) -> Self {
        Self::with_certificate(place, &Certificate::new())
    }

    pub fn with_certificate(place: &Path, certificate: &Certificate) -> Self {
        fs::create_dir_all(place).unwrap();
        fs::write(place.join("server.crt"), &certificate.pem).unwrap();
        fs::write(place.join("server.key"), &certificate.key).unwrap();
        let port = free_port();
        let log = fs::File::create(place.join("log")).unwrap();
        let process = command(place, port).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn();
        let authority = certificate.pem.clone();
        let mut server = Self { process: process.unwrap(), port, authority, place: place.to_owned() };
        server.wait();
        server
    }

    fn wait(&mut self) {
        let since = Instant::now();
        while !self.has_bucket() {
            let ended = self.process.try_wait().unwrap();
            if ended.is_some() || since.elapsed() > STARTED {
                let log = fs::read_to_string(self.place.join("log")).unwrap_or_default();
                panic!("the S3 server does not serve ({ended:?}): {log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// versitygw has a directory for it; SeaweedFS is asked to make it.
    fn has_bucket(&self) -> bool {
        if TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            return false;
        }
        !is_seaweedfs() || self.curl("", &["--request", "PUT"]).is_ok() || self.curl("?list-type=2", &[]).is_ok()
    }

    /// What a client of it is given, at this port: that of a proxy, or its own.
    pub fn inputs(&self, port: u16) -> S3Inputs {
        S3Inputs {
            endpoint: format!("https://127.0.0.1:{port}"),
            bucket: BUCKET.to_owned(),
            prefix: "fleet".to_owned(),
            region: "us-east-1".to_owned(),
            path_style: true,
            authorities: Some(self.authority.clone()),
            server_side_encryption: None,
        }
    }

    /// Keys of its objects, in order.
    pub fn keys(&self) -> Vec<String> {
        elements(&self.curl("?list-type=2", &[]).unwrap(), "Key")
    }

    /// Keys of the uploads that were begun and neither completed nor aborted.
    pub fn uploads(&self) -> Vec<String> {
        elements(&self.curl("?uploads=", &[]).unwrap(), "Key")
    }

    /// An object that is written by hand from a file.
    pub fn put(&self, file: &Path, key: &str) {
        let file = file.display().to_string();
        self.curl(&format!("/{key}"), &["--upload-file", &file]).unwrap();
    }

    /// An object as it is, into a file.
    pub fn get(&self, key: &str, file: &Path) {
        let file = file.display().to_string();
        self.curl(&format!("/{key}"), &["--output", &file]).unwrap();
    }

    /// What curl prints of a request to the bucket, or what it complains.
    fn curl(&self, rest: &str, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--fail-with-body", "--aws-sigv4", "aws:amz:us-east-1:s3"])
            .args(["--user", &format!("{ACCESS_KEY}:{SECRET_KEY}")])
            // It signs no file that it sends.
            .args(["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"])
            .arg("--cacert")
            .arg(self.place.join("server.crt"))
            .args(arguments)
            .arg(format!("https://127.0.0.1:{}/{BUCKET}{rest}", self.port))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(said) } else { Err(format!("{complaint}{said}")) }
    }
}

impl Drop for ObjectStorage {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A client with these credentials.
pub async fn open(inputs: S3Inputs, secret: &str) -> Store {
    let files = [("accessKeyID", ACCESS_KEY.as_bytes()), ("secretAccessKey", secret.as_bytes())];
    Store::open(&StorageInputs::S3(inputs), &Credentials::from_files(files)).await.unwrap()
}

/// Whether the tests run against SeaweedFS.
pub fn is_seaweedfs() -> bool {
    match env::var("CLUSTERWRIGHT_S3").as_deref() {
        Ok("seaweedfs") => true,
        Ok("versitygw" | "") | Err(_) => false,
        Ok(other) => panic!("CLUSTERWRIGHT_S3 is {other}: versitygw (the default) or seaweedfs"),
    }
}

/// The directory in which versitygw has the bucket's objects, as files.
pub fn bucket_directory(place: &Path) -> PathBuf {
    place.join("data").join(BUCKET)
}

fn command(place: &Path, port: u16) -> Command {
    if is_seaweedfs() { seaweedfs(place, port) } else { versitygw(place, port) }
}

fn versitygw(place: &Path, port: u16) -> Command {
    fs::create_dir_all(bucket_directory(place)).unwrap();
    let mut command = Command::new(program("versitygw", "versitygw"));
    command
        .args(["--port", &format!("127.0.0.1:{port}"), "--access", ACCESS_KEY, "--secret", SECRET_KEY])
        .arg("--cert")
        .arg(place.join("server.crt"))
        .arg("--key")
        .arg(place.join("server.key"))
        .arg("posix")
        .arg(place.join("data"));
    command
}

/// Its master, one volume server, filer and S3 gateway in one process.
fn seaweedfs(place: &Path, port: u16) -> Command {
    fs::create_dir_all(place.join("data")).unwrap();
    let identity = serde_json::json!({"identities": [{
        "name": "test", "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }]});
    fs::write(place.join("s3.json"), identity.to_string()).unwrap();
    let mut command = Command::new(program("seaweedfs", "weed"));
    command
        .args([
            "server",
            "-s3",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-volume.max=50",
            "-master.volumeSizeLimitMB=256",
        ])
        .args(["-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0"])
        .arg(format!("-s3.localSocket={}", place.join("s3.sock").display()));
    for name in ["master", "volume", "filer"] {
        command.arg(format!("-{name}.port={}", free_port())).arg(format!("-{name}.port.grpc={}", free_port()));
    }
    command
        .args([format!("-s3.port={port}"), format!("-s3.port.grpc={}", free_port())])
        .arg(format!("-s3.cert.file={}", place.join("server.crt").display()))
        .arg(format!("-s3.key.file={}", place.join("server.key").display()))
        .arg(format!("-s3.config={}", place.join("s3.json").display()))
        .arg(format!("-dir={}", place.join("data").display()))
        .current_dir(place);
    command
}

/// The texts of all elements of this name.
fn elements(xml: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let parts = xml.split(&open).skip(1).filter_map(|part| part.split_once(&close));
    let mut texts: Vec<_> = parts.map(|(text, _)| text.to_owned()).collect();
    texts.sort();
    texts
}
