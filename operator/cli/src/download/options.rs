//! What every command that downloads may be told.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use reqwest::Client;

use super::mirror::{self, Mirror};
use super::registry::Registry;

/// Where downloads come from, and what is believed of them
#[derive(Debug, Clone, Args)]
pub struct DownloadOptions {
    /// The file with the digest of each download [default: bundle.lock in the bundle]
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
    /// Take nothing that the lock has no digest of
    #[arg(long)]
    pub locked: bool,
    /// Take files below this URL, in place of upstream's servers: URL/dl.k8s.io/v1.35.4/...
    #[arg(long, value_name = "URL", value_parser = mirror::parse_url)]
    pub mirror: Option<String>,
    /// Take images from this registry, in place of their own: HOST/PREFIX/registry.k8s.io/pause
    #[arg(long, value_name = "HOST[/PREFIX]", value_parser = mirror::parse_registry)]
    pub image_mirror: Option<String>,
    #[command(flatten)]
    pub connection: Connection,
    /// How many are downloaded at once
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub parallel: u8,
}

/// Whom to talk to, and how
#[derive(Debug, Clone, Args)]
pub struct Connection {
    /// A registry that has no TLS; may be given several times
    #[arg(long, value_name = "HOST[:PORT]")]
    pub insecure_registry: Vec<String>,
    /// Certificates (PEM) of authorities that are trusted beside those of this machine
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// A directory whose `config.json` has logins to registries, as `docker login` writes it [default: ~/.docker]
    #[arg(long, value_name = "DIR", env = "DOCKER_CONFIG")]
    pub logins: Option<PathBuf>,
}

impl DownloadOptions {
    /// Where upstream's files and images are mirrored.
    pub fn mirror(&self) -> Mirror {
        Mirror { files: self.mirror.clone(), images: self.image_mirror.clone() }
    }
}

impl Connection {
    /// A client for files; proxies are those of the environment.
    pub fn client(&self) -> Result<Client> {
        let mut builder = Client::builder()
            .user_agent(concat!("wright/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(30))
            .read_timeout(Duration::from_secs(60));
        if let Some(pem) = self.authorities()? {
            builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(&pem)?);
        }
        builder.build().context("failed to set up HTTP")
    }

    /// A client for registries.
    pub fn registry(&self) -> Result<Registry> {
        Registry::new(&self.insecure_registry, self.authorities()?, self.logins.as_deref())
    }

    /// The authorities' certificates, checked.
    pub fn authorities(&self) -> Result<Option<Vec<u8>>> {
        let Some(path) = &self.ca else { return Ok(None) };
        let pem = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
        let some = reqwest::Certificate::from_pem_bundle(&pem).is_ok_and(|found| !found.is_empty());
        if some { Ok(Some(pem)) } else { bail!("{} has no certificates in PEM", path.display()) }
    }
}
