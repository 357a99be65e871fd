//! The certificate that /metrics is served with: from files that a Secret's volume changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{Error, ResultExt, chain};

/// How often the files are read again.
const INTERVAL: Duration = Duration::from_secs(30);

/// The certificate and its key, as last read; clones are the same one.
#[derive(Clone)]
pub(super) struct Certificate {
    directory: PathBuf,
    current: Arc<RwLock<(Vec<u8>, Arc<ServerConfig>)>>,
}

impl Certificate {
    /// Reads tls.crt and tls.key of the directory.
    pub(super) fn read(directory: &Path) -> Result<Self, Error> {
        let current = Arc::new(RwLock::new(read(directory)?));
        Ok(Self { directory: directory.to_owned(), current })
    }

    /// What connections are served with from now on.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.current.read().1.clone()
    }

    /// Takes what is in the files now; whether it is another one. On an error the former one stays.
    pub(super) fn renew(&self) -> Result<bool, Error> {
        let found = read(&self.directory)?;
        let is_new = found.0 != self.current.read().0;
        if is_new {
            *self.current.write() = found;
        }
        Ok(is_new)
    }

    /// Takes each new one, for ever.
    pub(super) async fn follow(self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.renew() {
                Ok(true) => tracing::info!("/metrics is served with a new certificate"),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "/metrics is served with its former certificate");
                }
            }
        }
    }
}

/// What the files hold, and what is made of it.
fn read(directory: &Path) -> Result<(Vec<u8>, Arc<ServerConfig>), Error> {
    let file = |name: &str| {
        let path = directory.join(name);
        std::fs::read(&path).doing(|| format!("read {}", path.display()))
    };
    let (certificate, key) = (file("tls.crt")?, file("tls.key")?);
    let wrong = |source: Box<dyn std::error::Error + Send + Sync>| Error::Failed {
        action: format!("use tls.crt and tls.key of {} for /metrics", directory.display()),
        source,
    };
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let chain = chain.map_err(|source| wrong(source.into()))?;
    let private = PrivateKeyDer::from_pem_slice(&key).map_err(|source| wrong(source.into()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_no_client_auth())
        .and_then(|builder| builder.with_single_cert(chain, private))
        .map_err(|source| wrong(source.into()))?;
    Ok(([certificate, key].concat(), Arc::new(config)))
}
