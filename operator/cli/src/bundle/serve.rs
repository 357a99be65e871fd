//! `wright bundle serve`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use ::bundle::digest;
use ::bundle::index::{FILE, Index};
use ::bundle::place::DIRECTORIES;
use anyhow::{Context, Result};
use axum::Router;
use clap::Args;
use tower_http::services::{ServeDir, ServeFile};

use super::existing;

/// Serve the bundle over HTTP
#[derive(Debug, Args)]
pub struct Serve {
    /// The bundle's directory
    #[arg(default_value = "bundle")]
    directory: PathBuf,
    /// Address and port to listen on
    #[arg(long, default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
}

impl Serve {
    /// Serves until the process is told to end. Whatever is not the index or an artifact is not there.
    pub async fn run(self) -> Result<ExitCode> {
        let bundle = existing(&self.directory)?;
        Index::read(&bundle)?;
        let mut app = Router::new().route_service(&format!("/{FILE}"), ServeFile::new(bundle.join(FILE)));
        for directory in DIRECTORIES {
            app = app.nest_service(&format!("/{directory}"), ServeDir::new(bundle.join(directory)));
        }
        let listener = tokio::net::TcpListener::bind(self.listen)
            .await
            .with_context(|| format!("failed to listen on {}", self.listen))?;
        let address = listener.local_addr().context("failed to ask for the address")?;
        println!("serving {} at {}. In a ClusterDeployment{}:", bundle.display(), url(address), of_which(address));
        println!("  artifacts:\n    url: {}\n    indexSHA256: {}", url(address), digest::of_file(&bundle.join(FILE))?);
        axum::serve(listener, app).await.context("failed to serve the bundle")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What has to be put in the place of `ADDRESS`.
fn of_which(listening: SocketAddr) -> &'static str {
    if listening.ip().is_unspecified() { ", with an address of this machine as ADDRESS" } else { "" }
}

fn url(listening: SocketAddr) -> String {
    if listening.ip().is_unspecified() {
        return format!("http://ADDRESS:{}", listening.port());
    }
    format!("http://{listening}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cluster_is_told_to_ask_an_address_that_is_none() {
        for (listening, wanted) in [
            ("0.0.0.0:8080", "http://ADDRESS:8080"),
            ("[::]:80", "http://ADDRESS:80"),
            ("10.0.0.1:8080", "http://10.0.0.1:8080"),
            ("[fd00::1]:8080", "http://[fd00::1]:8080"),
        ] {
            assert_eq!(url(listening.parse().unwrap()), wanted);
        }
    }
}
