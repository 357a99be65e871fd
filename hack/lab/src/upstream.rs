//! What the lab has built, at the paths of upstream's release servers and registries, as a mirror of them has it: so
//! `wright bundle` makes a bundle here that needs no internet.

pub mod proxy;

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode, Uri};
use bundle::catalogue::{Catalogue, Origin};
use bundle::digest;
use bundle::index::Index;
use clap::Args;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::images::architecture;

const LIST: &str = "application/vnd.oci.image.index.v1+json";
const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// `lab serve-upstream`
#[derive(Debug, Clone, Args)]
pub struct ServeUpstream {
    /// Address and port to listen on
    #[arg(long, default_value = "127.0.0.1:8082")]
    pub listen: SocketAddr,
}

/// Serves until the process is told to end.
pub async fn run(args: ServeUpstream) -> Result<()> {
    let app = router(&Cache::from_env().bundle())?;
    let listening = || format!("failed to listen on {}", args.listen);
    let listener = tokio::net::TcpListener::bind(args.listen).await.with_context(listening)?;
    serve(listener, app).await
}

/// Serves a mirror.
pub async fn serve(listener: tokio::net::TcpListener, mirror: Router) -> Result<()> {
    axum::serve(listener, mirror).await.context("failed to serve the mirror")
}

/// The mirror of all that the bundle of the lab in that directory holds: files below the names of their hosts, and
/// images in a registry, below the names of theirs.
pub fn router(built: &Path) -> Result<Router> {
    let index = Index::read(built).context("`lab build all` makes the lab's bundle")?;
    let mut site = Site::default();
    for kubernetes in index.kubernetes_versions() {
        for wanted in Catalogue::built_in()?.wanted(&kubernetes, architecture())? {
            let found = index
                .find(&wanted.name, &wanted.version, architecture())
                .with_context(|| format!("the lab's bundle has no {} {}", wanted.name, wanted.version))?;
            let file = built.join(&found.path);
            match wanted.origin {
                Origin::Url { url, checksums, .. } => {
                    site.add_file(&url, checksums.as_deref(), file, &found.sha256)?;
                }
                Origin::Registry { reference } => site.add_image(&reference, &file)?,
                // Debian's own servers have packages; what is in images alone is nothing that clusters take.
                Origin::Package { .. } | Origin::Program { .. } => {}
            }
        }
    }
    Ok(site.router())
}

/// A registry with images of docker archives: each has the name that is beside it, `karmada/karmada-agent:v1.18.2`.
pub fn registry(images: &[(String, PathBuf)]) -> Result<Router> {
    let mut site = Site::default();
    for (reference, archive) in images {
        site.add_image(reference, archive)?;
    }
    Ok(site.router())
}

/// Bytes, or a part of a file.
#[derive(Debug, Clone)]
enum Content {
    Bytes(Vec<u8>),
    Part { file: PathBuf, at: u64, size: u64 },
}

impl Content {
    fn read(&self) -> Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::Part { file, at, size } => {
                let mut file = File::open(file).with_context(|| format!("failed to open {}", file.display()))?;
                file.seek(SeekFrom::Start(*at))?;
                let mut bytes = Vec::new();
                file.take(*size).read_to_end(&mut bytes)?;
                Ok(bytes)
            }
        }
    }
}

/// Media type and content by path.
#[derive(Debug, Default)]
struct Site(HashMap<String, (&'static str, Content)>);

impl Site {
    fn router(self) -> Router {
        Router::new().fallback(answer).with_state(Arc::new(self))
    }

    fn add_file(&mut self, url: &str, checksums: Option<&str>, file: PathBuf, sha256: &str) -> Result<()> {
        let path = |url: &str| format!("/{}", url.trim_start_matches("https://"));
        let size = file.metadata().with_context(|| format!("failed to look at {}", file.display()))?.len();
        self.0.insert(path(url), ("application/octet-stream", Content::Part { file, at: 0, size }));
        if let Some(checksums) = checksums {
            let name = url.rsplit('/').next().unwrap_or(url);
            let line = format!("{sha256}  {name}\n").into_bytes();
            let (_, known) = self.0.entry(path(checksums)).or_insert(("text/plain", Content::Bytes(Vec::new())));
            if let Content::Bytes(known) = known {
                known.extend(line);
            }
        }
        Ok(())
    }

    /// The image of a docker archive. As upstream's, its tag is that of a list.
    fn add_image(&mut self, reference: &str, archive: &Path) -> Result<()> {
        let (repository, tag) = reference.rsplit_once(':').context("an image has a tag")?;
        let reading = || format!("failed to read {}", archive.display());
        let entries = entries(archive).with_context(reading)?;
        let entry = |name: &Value| {
            let found = name.as_str().and_then(|name| entries.get(name));
            found.cloned().with_context(|| format!("{} lacks {name}", archive.display()))
        };
        let manifest: Value = serde_json::from_slice(&entry(&json!("manifest.json"))?.read()?).with_context(reading)?;
        let config = self.add_blob(repository, CONFIG, entry(&manifest[0]["Config"])?)?;
        let names = manifest[0]["Layers"].as_array().cloned().unwrap_or_default();
        let layers = names.iter().map(|name| self.add_blob(repository, LAYER, entry(name)?));
        let layers = layers.collect::<Result<Vec<_>>>()?;
        let manifest = json!({"schemaVersion": 2, "mediaType": IMAGE, "config": config, "layers": layers});
        let manifest = manifest.to_string().into_bytes();
        let digest = format!("sha256:{}", digest::of_bytes(&manifest));
        let platform = json!({"os": "linux", "architecture": architecture()});
        let entry = json!({"mediaType": IMAGE, "digest": digest, "size": manifest.len(), "platform": platform});
        let list = json!({"schemaVersion": 2, "mediaType": LIST, "manifests": [entry]}).to_string().into_bytes();
        let place = |name: &str| format!("/v2/{repository}/manifests/{name}");
        self.0.insert(place(&digest), (IMAGE, Content::Bytes(manifest)));
        // Whoever has resolved the tag asks for what it found by the digest.
        let digest = format!("sha256:{}", digest::of_bytes(&list));
        self.0.insert(place(&digest), (LIST, Content::Bytes(list.clone())));
        self.0.insert(place(tag), (LIST, Content::Bytes(list)));
        Ok(())
    }

    /// Adds a blob, and describes it.
    fn add_blob(&mut self, repository: &str, kind: &'static str, content: Content) -> Result<Value> {
        let bytes = content.read()?;
        let digest = format!("sha256:{}", digest::of_bytes(&bytes));
        self.0.insert(format!("/v2/{repository}/blobs/{digest}"), (kind, content));
        Ok(json!({"mediaType": kind, "digest": digest, "size": bytes.len()}))
    }
}

/// The files of a tar, each as a part of it.
fn entries(archive: &Path) -> Result<HashMap<String, Content>> {
    let mut entries = HashMap::new();
    for entry in tar::Archive::new(File::open(archive)?).entries()? {
        let entry = entry?;
        let part = Content::Part { file: archive.to_owned(), at: entry.raw_file_position(), size: entry.size() };
        entries.insert(entry.path()?.to_string_lossy().into_owned(), part);
    }
    Ok(entries)
}

async fn answer(State(site): State<Arc<Site>>, uri: Uri) -> Response<Body> {
    let with = |status: StatusCode, body: Body| {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response
    };
    if uri.path() == "/v2/" {
        return with(StatusCode::OK, Body::empty());
    }
    let Some((kind, content)) = site.0.get(uri.path()).cloned() else {
        return with(StatusCode::NOT_FOUND, Body::from("not here"));
    };
    match tokio::task::spawn_blocking(move || content.read()).await {
        Ok(Ok(bytes)) => {
            let mut response = with(StatusCode::OK, Body::from(bytes));
            response.headers_mut().insert(CONTENT_TYPE, axum::http::HeaderValue::from_static(kind));
            response
        }
        Ok(Err(error)) => with(StatusCode::INTERNAL_SERVER_ERROR, Body::from(format!("{error:#}"))),
        Err(_) => with(StatusCode::INTERNAL_SERVER_ERROR, Body::from("cut off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_checksums_lists_all_files_that_it_is_of() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("etcd");
        std::fs::write(&file, "x").unwrap();
        let mut site = Site::default();
        for (arch, digit) in [("amd64", "a"), ("arm64", "b")] {
            let url = format!("https://x/etcd-{arch}");
            site.add_file(&url, Some("https://x/SHA256SUMS"), file.clone(), &digit.repeat(64)).unwrap();
        }
        let text = String::from_utf8(site.0["/x/SHA256SUMS"].1.read().unwrap()).unwrap();
        assert_eq!(bundle::checksums::find(&text, "etcd-arm64", "x").unwrap(), "b".repeat(64));
        assert_eq!(site.0["/x/etcd-amd64"].1.read().unwrap(), b"x");
    }

    #[test]
    fn an_image_is_found_by_its_tag_and_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("pause.tar");
        let mut tar = tar::Builder::new(File::create(&archive).unwrap());
        let manifest = json!([{"Config": "c.json", "Layers": ["l.tar"]}]).to_string();
        for (name, text) in [("manifest.json", manifest.as_str()), ("c.json", "{}"), ("l.tar", "layer")] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        tar.finish().unwrap();
        let mut site = Site::default();
        site.add_image("r.example/pause:3", &archive).unwrap();
        let read = |path: &str| site.0[&format!("/v2/r.example/pause/{path}")].1.read().unwrap();
        let by_tag = read("manifests/3");
        assert_eq!(read(&format!("manifests/sha256:{}", digest::of_bytes(&by_tag))), by_tag);
        let list = bundle::image::content(&by_tag, "pause", architecture()).unwrap();
        let bundle::image::Content::List(digest) = list else { panic!("{list:?} is no list") };
        let image = bundle::image::content(&read(&format!("manifests/{digest}")), "pause", architecture()).unwrap();
        let bundle::image::Content::Image(blobs) = image else { panic!("{image:?} is no image") };
        assert_eq!(blobs.iter().map(|blob| read(&format!("blobs/{}", blob.digest))).next_back().unwrap(), b"layer");
    }
}
