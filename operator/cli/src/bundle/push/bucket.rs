//! A bundle in an S3 bucket, from where machines may read it over HTTPS.

use std::path::Path as FilePath;
use std::sync::Arc;

use ::bundle::index::{Artifact, FILE, Index};
use ::bundle::verify::problem;
use anyhow::{Context, Result, bail, ensure};
use object_store::aws::AmazonS3Builder;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{Certificate, ClientOptions, Error, ObjectStore, ObjectStoreExt};
use tokio::io::AsyncWriteExt;

use crate::progress::{Progress, bytes};

/// The size of a part of an upload, in bytes.
const PART: usize = 16 << 20;

/// A client of the bucket. Credentials, region and endpoint are those of the environment, by the names that all tools
/// of S3 know.
pub fn open(bucket: &str, endpoint: Option<&str>, authorities: Option<Vec<u8>>) -> Result<Arc<dyn ObjectStore>> {
    let mut options = ClientOptions::new().with_allow_http(endpoint.is_some_and(|url| url.starts_with("http://")));
    if let Some(pem) = authorities {
        for certificate in Certificate::from_pem_bundle(&pem).context("the authorities cannot be read")? {
            options = options.with_root_certificate(certificate);
        }
    }
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_client_options(options);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
    }
    Ok(Arc::new(builder.build().context("failed to set up a client of S3")?))
}

/// Uploads what the bucket has not below `prefix`, and the index last. `name` is the bucket's, for people.
pub async fn push(
    bundle: &FilePath,
    store: Arc<dyn ObjectStore>,
    name: &str,
    prefix: &str,
    replace: bool,
) -> Result<()> {
    let index = Index::read(bundle)?;
    let there = read_index(&store, prefix).await.with_context(|| format!("failed to read {FILE} in {name}"))?;
    let lost: Vec<String> = there
        .artifacts
        .iter()
        .filter(|known| !known.is_in_repository() && !has(&index, known))
        .map(ToString::to_string)
        .collect();
    ensure!(
        replace || lost.is_empty(),
        "{name}/{prefix} has what this bundle lacks, or has as another file: {}. Clusters may need it: import it \
         here first, or give --replace",
        lost.join(", ")
    );
    let progress = Progress::new();
    let (mut pushed, mut kept) = (0, 0);
    for artifact in &index.artifacts {
        let key = key(prefix, &artifact.path);
        if has(&there, artifact) && store.head(&key).await.is_ok_and(|found| found.size == artifact.size) {
            kept += artifact.size;
            continue;
        }
        let _bar = progress.bar(&artifact.to_string());
        if let Some(problem) = problem(bundle, artifact)? {
            bail!("{problem}: the index was not pushed; see `wright bundle verify {}`", bundle.display());
        }
        upload(&store, key, &bundle.join(&artifact.path))
            .await
            .with_context(|| format!("failed to push {artifact}"))?;
        pushed += artifact.size;
    }
    upload(&store, key(prefix, FILE), &bundle.join(FILE)).await.context("failed to push the index")?;
    println!("pushed {}, and {} were there: {name}/{prefix}", bytes(pushed), bytes(kept));
    Ok(())
}

/// Whether the index has that very file at that path.
fn has(index: &Index, artifact: &Artifact) -> bool {
    let same = |known: &&Artifact| known.path == artifact.path && known.sha256.eq_ignore_ascii_case(&artifact.sha256);
    index.artifacts.iter().any(|known| same(&known))
}

async fn read_index(store: &Arc<dyn ObjectStore>, prefix: &str) -> Result<Index> {
    match store.get(&key(prefix, FILE)).await {
        Ok(found) => Index::parse(&found.bytes().await?, FILE),
        Err(Error::NotFound { .. }) => Ok(Index::new()),
        Err(error) => Err(error.into()),
    }
}

fn key(prefix: &str, path: &str) -> Path {
    Path::from(format!("{prefix}/{path}"))
}

async fn upload(store: &Arc<dyn ObjectStore>, key: Path, path: &FilePath) -> Result<()> {
    let mut file = tokio::fs::File::open(path).await.with_context(|| format!("failed to open {}", path.display()))?;
    let mut writer = BufWriter::with_capacity(Arc::clone(store), key, PART);
    match tokio::io::copy(&mut file, &mut writer).await {
        Ok(_) => Ok(writer.shutdown().await?),
        Err(error) => {
            // Parts that nobody completes would be kept, and paid for.
            let _ = writer.abort().await;
            Err(error.into())
        }
    }
}
