//! A registry of a test's own, Debian's, that answers only who logs in. It serves plain HTTP on a loopback port.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::time::sleep;

use crate::api_server::free_port;

const PROGRAM: &str = "/usr/bin/docker-registry";
const DEADLINE: Duration = Duration::from_secs(30);
/// Who may push and pull.
pub const USER: &str = "release";
/// The password of that one.
pub const PASSWORD: &str = "of-a-test";

/// A running registry; ended when it is dropped, with all that it holds.
pub struct Registry {
    directory: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Registry {
    /// Starts one that is empty. The Debian packages docker-registry and apache2-utils must be there: hack/toolchain.
    pub async fn start() -> Result<Self> {
        ensure!(Path::new(PROGRAM).is_file(), "{PROGRAM} is missing: run hack/toolchain");
        let directory = tempfile::tempdir().context("failed to make a directory for the registry")?;
        let path = directory.path();
        let users = Command::new("htpasswd")
            .args(["-Bbn", USER, PASSWORD])
            .output()
            .context("failed to run htpasswd: run hack/toolchain")?;
        ensure!(users.status.success(), "htpasswd: {}", String::from_utf8_lossy(&users.stderr));
        std::fs::write(path.join("users"), users.stdout)?;
        let port = free_port()?;
        let settings = json!({
            "version": "0.1",
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": path.join("data")}, "delete": {"enabled": true}},
            "http": {"addr": format!("127.0.0.1:{port}")},
            "auth": {"htpasswd": {"realm": "test", "path": path.join("users")}},
        });
        std::fs::write(path.join("config.yml"), settings.to_string())?;
        let log = File::create(path.join("log"))?;
        let child = Command::new(PROGRAM)
            .arg("serve")
            .arg(path.join("config.yml"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("failed to start {PROGRAM}"))?;
        let registry = Self { directory, port, child };
        registry.answers().await?;
        Ok(registry)
    }

    async fn answers(&self) -> Result<()> {
        let until = Instant::now() + DEADLINE;
        while tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            let log = || std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            ensure!(Instant::now() < until, "the registry does not answer:\n{}", log());
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Its host and port.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A directory with a `config.json` that has the login, as `docker login` leaves it.
    pub fn login(&self) -> Result<PathBuf> {
        let directory = self.directory.path().join("login");
        std::fs::create_dir_all(&directory)?;
        let auth = STANDARD.encode(format!("{USER}:{PASSWORD}"));
        let config = json!({"auths": {self.host(): {"auth": auth}}});
        std::fs::write(directory.join("config.json"), config.to_string())?;
        Ok(directory)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // One that has ended already is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
