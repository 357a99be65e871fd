//! A registry of images, as far as pulling and pushing goes.

use std::collections::HashMap;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{Method, Response, StatusCode};
use bundle::digest;
use serde_json::{Value, json};

const LIST: &str = "application/vnd.oci.image.index.v1+json";
const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

#[derive(Debug, Default)]
pub struct Registry {
    /// What a request must have as its authorization.
    pub login: Option<String>,
    /// By digest.
    blobs: HashMap<String, Bytes>,
    /// Media type and bytes by repository and tag or digest.
    manifests: HashMap<(String, String), (String, Bytes)>,
}

impl Registry {
    /// A list with an image for each architecture, of one small layer each. Returns the digests of the images.
    pub fn publish_small(&mut self, repository: &str, tag: &str, archs: &[&str]) -> Vec<String> {
        let images = archs.iter().map(|arch| {
            let layer = Bytes::from(crate::upstream::content(&format!("{repository} {tag} {arch}")));
            (*arch, json!({"os": "linux", "architecture": arch, "rootfs": {"type": "layers"}}), vec![layer])
        });
        let images: Vec<_> = images.collect();
        self.publish(repository, tag, images)
    }

    /// An image of these layers for one architecture. Returns its digest.
    pub fn publish_layers(&mut self, repository: &str, tag: &str, arch: &str, layers: Vec<Bytes>) -> String {
        let config = json!({"os": "linux", "architecture": arch, "rootfs": {"type": "layers"}});
        self.publish(repository, tag, vec![(arch, config, layers)]).remove(0)
    }

    fn publish(&mut self, repository: &str, tag: &str, images: Vec<(&str, Value, Vec<Bytes>)>) -> Vec<String> {
        let mut listed = Vec::new();
        let mut digests = Vec::new();
        for (arch, config, layers) in images {
            let config = self.keep(config.to_string().into());
            let layers: Vec<Value> = layers
                .into_iter()
                .map(|layer| {
                    let (digest, size) = self.keep(layer);
                    json!({"mediaType": LAYER, "digest": digest, "size": size})
                })
                .collect();
            let kind = "application/vnd.oci.image.config.v1+json";
            let config = json!({"mediaType": kind, "digest": config.0, "size": config.1});
            let manifest = json!({"schemaVersion": 2, "mediaType": IMAGE, "config": config, "layers": layers});
            let (digest, size) = self.put_manifest(repository, None, IMAGE, manifest.to_string().into());
            let platform = json!({"os": "linux", "architecture": arch});
            listed.push(json!({"mediaType": IMAGE, "digest": digest, "size": size, "platform": platform}));
            digests.push(digest);
        }
        let unknown = json!({"os": "unknown", "architecture": "unknown"});
        let attestation = format!("sha256:{}", "0".repeat(64));
        listed.push(json!({"mediaType": IMAGE, "digest": attestation, "size": 1, "platform": unknown}));
        let list = json!({"schemaVersion": 2, "mediaType": LIST, "manifests": listed});
        self.put_manifest(repository, Some(tag), LIST, list.to_string().into());
        digests
    }

    fn keep(&mut self, bytes: Bytes) -> (String, usize) {
        let digest = format!("sha256:{}", digest::of_bytes(&bytes));
        let size = bytes.len();
        self.blobs.insert(digest.clone(), bytes);
        (digest, size)
    }

    fn put_manifest(&mut self, repository: &str, tag: Option<&str>, kind: &str, bytes: Bytes) -> (String, usize) {
        let digest = format!("sha256:{}", digest::of_bytes(&bytes));
        let size = bytes.len();
        for name in [Some(digest.as_str()), tag].into_iter().flatten() {
            self.manifests.insert((repository.to_owned(), name.to_owned()), (kind.to_owned(), bytes.clone()));
        }
        (digest, size)
    }

    /// Puts other bytes where a blob is, as a registry with a broken disk has them.
    pub fn damage_blobs(&mut self) {
        for content in self.blobs.values_mut() {
            let mut bytes = content.to_vec();
            bytes[0] ^= 1;
            *content = bytes.into();
        }
    }

    /// The answer; or a blob, which is delivered as files are; or nothing.
    pub fn answer(
        &mut self,
        method: &Method,
        path: &str,
        query: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, Option<Bytes>> {
        let path = path.trim_start_matches("/v2/");
        let with = |status: StatusCode| Response::builder().status(status);
        if path.is_empty() {
            return Ok(with(StatusCode::OK).body(Body::empty()).unwrap());
        }
        if let Some((repository, name)) = path.rsplit_once("/manifests/") {
            if method == Method::PUT {
                let (digest, _) = self.put_manifest(repository, Some(name), IMAGE, body.clone());
                let place = format!("/v2/{repository}/manifests/{digest}");
                return Ok(with(StatusCode::CREATED).header(LOCATION, place).body(Body::empty()).unwrap());
            }
            let known = self.manifests.get(&(repository.to_owned(), name.to_owned()));
            let (kind, bytes) = known.ok_or(None)?;
            return Ok(with(StatusCode::OK).header(CONTENT_TYPE, kind).body(Body::from(bytes.clone())).unwrap());
        }
        let (repository, name) = path.rsplit_once("/blobs/").ok_or(None)?;
        match *method {
            Method::POST => {
                let place = format!("/v2/{repository}/blobs/uploads/1");
                Ok(with(StatusCode::ACCEPTED).header(LOCATION, place).body(Body::empty()).unwrap())
            }
            Method::PUT => {
                let promised = query.trim_start_matches("digest=").replace("%3A", ":");
                let (digest, _) = self.keep(body.clone());
                assert_eq!(digest, promised, "what was pushed has another digest");
                let place = format!("/v2/{repository}/blobs/{digest}");
                Ok(with(StatusCode::CREATED).header(LOCATION, place).body(Body::empty()).unwrap())
            }
            _ => Err(self.blobs.get(name).cloned()),
        }
    }
}
