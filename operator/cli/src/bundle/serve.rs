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
        println!(
            "serving {} at http://{address}. In a ClusterDeployment, with an address of this machine:",
            bundle.display()
        );
        println!("  artifacts:\n    url: http://{address}\n    indexSHA256: {}", digest::of_file(&bundle.join(FILE))?);
        axum::serve(listener, app).await.context("failed to serve the bundle")?;
        Ok(ExitCode::SUCCESS)
    }
}
