//! Fetches a chart, and holds it to its digest. Logins are in files: no process shows them.

use std::path::{Path, PathBuf};

use crds::Reason;
use crds::chart::{CA_FILE, ChartPlace};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::download;
use super::failure::Failure;
use super::files::write;
use super::helm::{Helm, REGISTRY, REPOSITORIES};
use super::login::login;
use crate::secrets::Secrets;

/// What the repository is called in that file.
const NAME: &str = "source";

/// A chart on disk.
pub(super) struct Archive {
    pub file: PathBuf,
    /// `sha256:` and hexadecimal.
    pub digest: String,
}

/// The chart; an error says why it is not there, or that it is another one.
pub(super) async fn fetch(
    helm: &mut Helm,
    place: &Path,
    secrets: &Secrets,
    chart: &ChartPlace,
) -> Result<Archive, Failure> {
    let failed = |error: std::io::Error| Failure::new(Reason::ChartNotFetched, error.to_string());
    let directory = place.join("fetched");
    std::fs::create_dir_all(&directory).map_err(failed)?;
    let authorities = secrets.get(CA_FILE).map(|pem| write(place, CA_FILE, pem)).transpose().map_err(failed)?;
    let authorities = authorities.map(|file| file.to_string_lossy().into_owned());
    let into = directory.to_string_lossy();
    let mut arguments = vec!["--version", &chart.version, "--destination", &into];
    if let Some(url) = &chart.archive {
        let bytes = helm.within(download::download(url, secrets)).await?;
        let file = write(&directory, "chart.tgz", &bytes).map_err(failed)?;
        return held(Archive { digest: digest(&file).map_err(failed)?, file }, url, chart);
    }
    let source = match (&chart.oci, &chart.repository, &chart.name) {
        (Some(oci), ..) => {
            write(place, REGISTRY, logins(oci, secrets).to_string().as_bytes()).map_err(failed)?;
            if let Some(file) = &authorities {
                arguments.extend(["--ca-file", file]);
            }
            if chart.plain_http {
                arguments.push("--plain-http");
            }
            oci.clone()
        }
        (None, Some(url), Some(name)) => {
            let repositories = repositories(url, authorities.as_deref(), secrets);
            write(place, REPOSITORIES, repositories.to_string().as_bytes()).map_err(failed)?;
            helm.must(&["repo", "update", NAME], Reason::ChartNotFetched).await?;
            format!("{NAME}/{name}")
        }
        (None, ..) => return Err(Failure::new(Reason::ChartNotFetched, "the inputs name no place of the chart")),
    };
    let arguments: Vec<&str> = ["pull", &source].into_iter().chain(arguments).collect();
    helm.must(&arguments, Reason::ChartNotFetched).await?;
    let file = archive(&directory).map_err(failed)?;
    let digest = digest(&file).map_err(failed)?;
    held(Archive { file, digest }, &source, chart)
}

/// The archive, if it is the one that is wanted.
fn held(archive: Archive, source: &str, chart: &ChartPlace) -> Result<Archive, Failure> {
    match chart.digest.as_ref().filter(|wanted| **wanted != archive.digest) {
        None => Ok(archive),
        Some(wanted) => {
            let (version, digest) = (&chart.version, &archive.digest);
            let message = format!("the archive of {source} {version} is {digest}, and {wanted} is wanted");
            Err(Failure::new(Reason::ChartDigestMismatch, message))
        }
    }
}

/// The login at the registry of a chart, as registries' clients have it.
fn logins(oci: &str, secrets: &Secrets) -> Value {
    let host = oci.trim_start_matches("oci://").split('/').next().unwrap_or_default();
    match login(secrets) {
        Some((username, password)) => {
            // It becomes base64 there.
            json!({"auths": {host: {"auth": ByteString(format!("{username}:{password}").into_bytes())}}})
        }
        None => json!({"auths": {}}),
    }
}

/// The repository, as Helm has it.
fn repositories(url: &str, authorities: Option<&str>, secrets: &Secrets) -> Value {
    let (username, password) = login(secrets).unwrap_or_default();
    json!({
        "apiVersion": "", "generated": "2026-01-01T00:00:00Z",
        "repositories": [{
            "name": NAME, "url": url, "username": username, "password": password,
            "caFile": authorities.unwrap_or_default(),
        }],
    })
}

/// The one archive in the directory.
fn archive(directory: &Path) -> std::io::Result<PathBuf> {
    let files = std::fs::read_dir(directory)?.collect::<std::io::Result<Vec<_>>>()?;
    let mut archives = files.into_iter().map(|file| file.path());
    let found = archives.find(|file| file.extension().is_some_and(|extension| extension == "tgz"));
    found.ok_or_else(|| std::io::Error::other("Helm has fetched no archive"))
}

fn digest(file: &Path) -> std::io::Result<String> {
    let hash = Sha256::digest(std::fs::read(file)?);
    Ok(format!("sha256:{}", hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}
