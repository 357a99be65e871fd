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
        .context("failed to serve the bundle")
}

fn app(directory: PathBuf) -> Router {
    Router::new().fallback_service(ServeDir::new(directory))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::app;

    async fn get(path: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("bundle")).unwrap();
        std::fs::write(dir.path().join("bundle/index.json"), "{}").unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let server = axum::serve(listener, app(dir.path().join("bundle")));
        let server = tokio::spawn(server.into_future());
        client
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        server.abort();
        answer
    }

    #[tokio::test]
    async fn the_index_is_served() {
        let answer = get("/index.json").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("{}"), "{answer}");
    }

    #[tokio::test]
    async fn nothing_outside_the_bundle_is_served() {
        let answer = get("/../secret").await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
}
