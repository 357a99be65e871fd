//! Serves the artifact bundle over HTTP, as a machine of the lab sees it.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use axum::Router;
use clap::Args;
use tower_http::services::ServeDir;

use crate::cache::Cache;

/// `lab serve-bundle`
#[derive(Debug, Clone, Args)]
pub struct ServeBundle {
    /// Address and port to listen on
    #[arg(long, default_value = "172.30.0.1:8080")]
    pub listen: SocketAddr,
    /// The bundle's directory [default: the one in the cache]
    #[arg(long)]
    pub directory: Option<PathBuf>,
}

/// Serves until the process is told to end.
pub async fn run(args: ServeBundle) -> Result<()> {
    let directory = args.directory.unwrap_or_else(|| Cache::from_env().bundle());
    let listener = tokio::net::TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("failed to listen on {}", args.listen))?;
    axum::serve(listener, app(directory))
        .await
        .context("failed to serve the bundle")
}

fn app(directory: PathBuf) -> Router {
    Router::new().fallback_service(ServeDir::new(directory))
}
