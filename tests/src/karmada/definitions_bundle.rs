//! A bundle with files of CustomResourceDefinitions.

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Serves a bundle with a file of definitions for each of these versions, for as long as the test runs: the place, as
/// the spec has it.
pub async fn serve(files: Vec<(&'static str, String)>) -> Result<Value> {
    let digest = |text: &str| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let artifact = |(version, file): &(&str, String)| {
        json!({
            "name": "karmada-crds", "kind": "manifests", "version": version, "path": format!("files/{version}.yaml"),
            "size": file.len(), "sha256": digest(file),
        })
    };
    let index = json!({"formatVersion": 1, "artifacts": files.iter().map(artifact).collect::<Vec<_>>()});
    let index = index.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let place = json!({"url": format!("http://{}", listener.local_addr()?), "indexSHA256": digest(&index)});
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let Ok(length) = stream.read(&mut request).await else { continue };
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let asked = |(version, _): &&(&str, String)| request.starts_with(&format!("GET /files/{version}.yaml "));
            let body = files.iter().find(asked).map_or(&index, |(_, file)| file);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            // A client that is gone asks again.
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    Ok(place)
}
