//! Registries of images, over the API of the OCI distribution specification.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::bundle::digest;
use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures::TryStreamExt;
use oci_client::client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::manifest::{
    IMAGE_MANIFEST_LIST_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE, OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE,
};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use serde::Deserialize;
use tokio_util::io::ReaderStream;

const MANIFESTS: [&str; 4] =
    [OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE, IMAGE_MANIFEST_LIST_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE];

/// A client for registries; proxies are those of the environment.
pub struct Registry {
    /// Of the library; whoever uses it asks for a manifest or calls `log_in` first.
    pub client: Client,
    logins: Logins,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Registry")
    }
}

impl Registry {
    /// A client that speaks HTTP without TLS to `insecure` registries alone.
    pub fn new(insecure: &[String], ca: Option<Vec<u8>>, logins: Option<&Path>) -> Result<Self> {
        let protocol = match insecure {
            [] => ClientProtocol::Https,
            hosts => ClientProtocol::HttpsExcept(hosts.to_vec()),
        };
        let certificate = ca.map(|data| Certificate { encoding: CertificateEncoding::Pem, data });
        let config = ClientConfig {
            protocol,
            extra_root_certificates: certificate.into_iter().collect(),
            connect_timeout: Some(Duration::from_secs(30)),
            read_timeout: Some(Duration::from_secs(60)),
            use_monolithic_push: true,
            user_agent: concat!("wright/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        let client = Client::try_from(config).context("failed to set up a client for registries")?;
        Ok(Self { client, logins: Logins::read(logins)? })
    }

    /// Lets requests to the image's registry have the login that there is for it.
    pub async fn log_in(&self, image: &Reference) -> RegistryAuth {
        let login = self.logins.login_for(image.resolve_registry());
        self.client.store_auth_if_needed(image.resolve_registry(), &login).await;
        login
    }

    /// A manifest, by tag or digest, and its digest. What comes by digest has that digest.
    pub async fn manifest(&self, image: &Reference) -> Result<(Vec<u8>, String)> {
        let login = self.log_in(image).await;
        let (bytes, _) = self
            .client
            .pull_manifest_raw(image, &login, &MANIFESTS)
            .await
            .with_context(|| format!("failed to read the manifest of {image}"))?;
        let got = format!("sha256:{}", digest::of_bytes(&bytes));
        if let Some(asked) = image.digest() {
            ensure!(asked == got, "the registry's answer for {image} has the digest {got}");
        }
        Ok((bytes.to_vec(), got))
    }
}

/// Pushes a file unless the registry has it; whether it had to.
pub async fn push_file(registry: &Registry, target: &Reference, path: &Path, digest: &str, size: u64) -> Result<bool> {
    let pushing = || format!("failed to push {} to {target}", path.display());
    if registry.client.blob_exists(target, digest).await.with_context(pushing)? {
        return Ok(false);
    }
    let file = tokio::fs::File::open(path).await.with_context(pushing)?;
    let stream = ReaderStream::with_capacity(file, 1 << 18).map_err(OciDistributionError::IoError);
    registry.client.push_blob_stream(target, stream, digest, Some(size)).await.with_context(pushing)?;
    Ok(true)
}

/// The same image by its digest.
pub fn by_digest(image: &Reference, digest: &str) -> Reference {
    Reference::with_digest(image.registry().to_owned(), image.repository().to_owned(), digest.to_owned())
}

/// Logins of `docker login` and the like: `config.json` in a directory, or in `~/.docker`.
#[derive(Debug, Default, Deserialize)]
struct Logins {
    #[serde(default)]
    auths: HashMap<String, Login>,
}

#[derive(Debug, Deserialize)]
struct Login {
    #[serde(default)]
    auth: String,
}

impl Logins {
    fn read(directory: Option<&Path>) -> Result<Self> {
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".docker"));
        let Some(folder) = directory.map(Path::to_owned).or_else(home) else {
            return Ok(Self::default());
        };
        let path = folder.join("config.json");
        if !path.exists() {
            return Ok(Self::default());
        }
        let reading = || format!("failed to read {}", path.display());
        serde_json::from_slice(&std::fs::read(&path).with_context(reading)?).with_context(reading)
    }

    fn login_for(&self, registry: &str) -> RegistryAuth {
        let names =
            if registry == "index.docker.io" { vec!["https://index.docker.io/v1/", registry] } else { vec![registry] };
        let found = names.iter().find_map(|name| self.auths.get(*name));
        let decoded = found.and_then(|login| BASE64_STANDARD.decode(&login.auth).ok());
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        match text.as_deref().and_then(|text| text.split_once(':')) {
            Some((user, password)) => RegistryAuth::Basic(user.to_owned(), password.to_owned()),
            None => RegistryAuth::Anonymous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_for_its_registry_alone() {
        let text = serde_json::json!({"auths": {
            "r.example:5000": {"auth": BASE64_STANDARD.encode("me:a:b")},
            "https://index.docker.io/v1/": {"auth": BASE64_STANDARD.encode("hub:x")},
            "helped.example": {},
        }, "credsStore": "pass"});
        let logins: Logins = serde_json::from_value(text).unwrap();
        assert_eq!(logins.login_for("r.example:5000"), RegistryAuth::Basic("me".into(), "a:b".into()));
        assert_eq!(logins.login_for("index.docker.io"), RegistryAuth::Basic("hub".into(), "x".into()));
        for other in ["r.example", "helped.example"] {
            assert_eq!(logins.login_for(other), RegistryAuth::Anonymous, "{other}");
        }
    }
}
