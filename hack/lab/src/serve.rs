//! Serves the artifact bundles over HTTP, as a machine of the lab sees them.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use axum::Router;
use clap::Args;
use tower_http::services::ServeDir;

use crate::cache::Cache;

/// Where the bundle for tests of upgrades is, below the URL of the lab's own.
pub const UPGRADES_PATH: &str = "/upgrades";

/// `lab serve-bundle`
#[derive(Debug, Clone, Args)]
pub struct ServeBundle {
    /// Address and port to listen on
    #[arg(long, default_value = "172.30.0.1:8080")]
    pub listen: SocketAddr,
    /// The bundle's directory [default: the one in the cache, and below /upgrades the one for tests of upgrades]
    #[arg(long)]
    pub directory: Option<PathBuf>,
}

/// Serves until the process is told to end.
pub async fn run(args: ServeBundle) -> Result<()> {
    let app = match args.directory {
        Some(directory) => app(directory),
        None => labs(&Cache::from_env()),
    };
    let listener = tokio::net::TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("failed to listen on {}", args.listen))?;
    axum::serve(listener, app).await.context("failed to serve the bundle")
}

/// The lab's own bundle, and the one for tests of upgrades, which may be built later.
fn labs(cache: &Cache) -> Router {
    app(cache.bundle()).nest_service(UPGRADES_PATH, ServeDir::new(cache.upgrades_bundle()))
}

fn app(directory: PathBuf) -> Router {
    Router::new().fallback_service(ServeDir::new(directory))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::labs;
    use crate::cache::Cache;

    async fn get(path: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        for (bundle, index) in [(cache.bundle(), "{}"), (cache.upgrades_bundle(), "[]")] {
            std::fs::create_dir(&bundle).unwrap();
            std::fs::write(bundle.join("index.json"), index).unwrap();
        }
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let server = axum::serve(listener, labs(&cache));
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
    async fn the_index_of_the_bundle_for_upgrades_is_served_below() {
        let answer = get("/upgrades/index.json").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("[]"), "{answer}");
    }

    #[tokio::test]
    async fn nothing_outside_the_bundles_is_served() {
        for path in ["/../secret", "/upgrades/../../secret", "/upgrades/../secret"] {
            let answer = get(path).await;
            assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        }
    }
}
