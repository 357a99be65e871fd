//! etcd's programs, from the artifact bundle of a cluster or from upstream, as its machines have them: by version and
//! digest.

mod archive;
mod index;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crds::backup::ProgramsInputs;
use reqwest::{Certificate, Client, RequestBuilder, Response, StatusCode};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::digest::Summing;
use crate::error::{BackupError, ProgramsFailure};
use crate::text::chain;
use index::Index;

/// Name resolution, TCP and TLS.
const CONNECT: Duration = Duration::from_secs(10);
/// A download of which nothing comes for so long has ended.
const STALL: Duration = Duration::from_secs(60);
/// The largest index.
const INDEX: usize = 16 << 20;
/// The largest archive.
const ARCHIVE: u64 = 512 << 20;

/// How to log in to the bundle's server, if it asks for that. There is no `Debug` of it.
#[derive(Default)]
pub struct Login {
    /// `username` and `password`.
    pub basic: Option<(String, String)>,
    /// `token`; it comes first.
    pub token: Option<String>,
}

/// Programs that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// The server.
    pub etcd: PathBuf,
    /// What restores a snapshot.
    pub etcdutl: PathBuf,
}

impl Programs {
    /// Downloads them into a directory. Errors: the bundle cannot be read, has no such version for this machine, or
    /// another file than was meant.
    pub async fn fetch(inputs: &ProgramsInputs, login: &Login, directory: &Path) -> Result<Self, BackupError> {
        let client = client(inputs)?;
        let artifact = match inputs.url.is_empty() {
            true => upstream(inputs, architecture())?,
            false => in_bundle(&client, login, inputs).await?,
        };
        let archive = directory.join("etcd.tar.gz");
        download(&client, login, &artifact, &archive).await?;
        let programs = Self { etcd: directory.join("etcd"), etcdutl: directory.join("etcdutl") };
        archive::unpack(archive.clone(), directory.to_owned()).await.map_err(|problem| {
            failed(ProgramsFailure::Invalid, format!("{}: {problem}: it has to be made anew", artifact.url))
        })?;
        tokio::fs::remove_file(&archive).await.map_err(|error| unwritten(&error))?;
        Ok(programs)
    }
}

/// An archive, and what it must be.
struct Archive {
    url: String,
    sha256: String,
}

async fn in_bundle(client: &Client, login: &Login, inputs: &ProgramsInputs) -> Result<Archive, BackupError> {
    let url = format!("{}/index.json", inputs.url);
    let index = index(client, login, &url, inputs).await?;
    let artifact = index.etcd(inputs, architecture()).map_err(|problem| failed(problem.0, problem.1))?;
    Ok(Archive { url: format!("{}/{}", inputs.url, artifact.path), sha256: artifact.sha256 })
}

/// Nothing is taken from there whose digest is not known.
fn upstream(inputs: &ProgramsInputs, arch: &str) -> Result<Archive, BackupError> {
    match (inputs.archives.get(arch), inputs.digests.get(arch)) {
        (Some(url), Some(sha256)) => Ok(Archive { url: url.clone(), sha256: sha256.clone() }),
        _ => {
            let problem = format!(
                "no digest of etcd {} for linux/{arch} is known, the architecture of this Pod: give a lock with it in \
                 spec.artifacts.lockRef",
                inputs.version
            );
            Err(failed(ProgramsFailure::NotFound, problem))
        }
    }
}

/// As bundles name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn client(inputs: &ProgramsInputs) -> Result<Client, BackupError> {
    // The HTTP client takes the process's provider of cryptography. An error says that one was installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let unusable = |error: reqwest::Error| failed(ProgramsFailure::Unavailable, chain(&error));
    let mut builder = Client::builder().connect_timeout(CONNECT).read_timeout(STALL);
    // A redirect does not lead away from HTTPS; a login goes to no other server.
    builder = builder.https_only(!inputs.url.starts_with("http://"));
    if let Some(pem) = &inputs.authorities {
        let authorities = Certificate::from_pem_bundle(pem.as_bytes()).map_err(unusable)?;
        builder = builder.tls_certs_only(authorities);
    }
    builder.build().map_err(unusable)
}

async fn index(client: &Client, login: &Login, url: &str, inputs: &ProgramsInputs) -> Result<Index, BackupError> {
    let mut answer = get(client, login, url).await?;
    let mut text = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| unreachable(url, &error))? {
        text.extend_from_slice(&piece);
        if text.len() > INDEX {
            return Err(failed(ProgramsFailure::Invalid, format!("{url} has more than {INDEX} bytes")));
        }
    }
    let mut summing = Summing::default();
    summing.update(&text);
    let found = summing.finish().sha256;
    match &inputs.index_sha256 {
        Some(wanted) if *wanted != found => {
            let problem = format!("{url} has the SHA-256 {found}, and spec.artifacts.indexSHA256 is {wanted}");
            Err(failed(ProgramsFailure::Mismatch, problem))
        }
        Some(_) | None => {
            Index::parse(&text).map_err(|problem| failed(ProgramsFailure::Invalid, format!("{url}: {problem}")))
        }
    }
}

/// Puts the archive into a file; nobody uses it before its digest was compared.
async fn download(client: &Client, login: &Login, artifact: &Archive, path: &Path) -> Result<(), BackupError> {
    let url = &artifact.url;
    let mut answer = get(client, login, url).await?;
    let mut file = File::create(path).await.map_err(|error| unwritten(&error))?;
    let (mut summing, mut size) = (Summing::default(), 0);
    while let Some(piece) = answer.chunk().await.map_err(|error| unreachable(url, &error))? {
        size += piece.len() as u64;
        if size > ARCHIVE {
            return Err(failed(ProgramsFailure::Invalid, format!("{url} has more than {ARCHIVE} bytes")));
        }
        summing.update(&piece);
        file.write_all(&piece).await.map_err(|error| unwritten(&error))?;
    }
    file.flush().await.map_err(|error| unwritten(&error))?;
    let (found, wanted) = (summing.finish().sha256, artifact.sha256.to_lowercase());
    match found == wanted {
        true => Ok(()),
        false => {
            Err(failed(ProgramsFailure::Mismatch, format!("{url} has the SHA-256 {found}, and {wanted} is meant")))
        }
    }
}

async fn get(client: &Client, login: &Login, url: &str) -> Result<Response, BackupError> {
    let answer = with_login(client.get(url), login).send().await.map_err(|error| unreachable(url, &error))?;
    let problem = match answer.status() {
        StatusCode::OK => return Ok(answer),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            format!("{status}: correct the Secret of spec.artifacts.credentialsRef")
        }
        status => status.to_string(),
    };
    Err(failed(ProgramsFailure::Unavailable, format!("{url} answers {problem}")))
}

fn with_login(request: RequestBuilder, login: &Login) -> RequestBuilder {
    match (&login.token, &login.basic) {
        (Some(token), _) => request.bearer_auth(token),
        (None, Some((name, password))) => request.basic_auth(name, Some(password)),
        (None, None) => request,
    }
}

fn unreachable(url: &str, error: &reqwest::Error) -> BackupError {
    let problem = format!("{url} does not answer: {}; Pods of the metadata cluster must reach it", chain(error));
    failed(ProgramsFailure::Unavailable, problem)
}

fn unwritten(error: &std::io::Error) -> BackupError {
    BackupError::Verification { action: "write the programs of etcd", problem: error.to_string() }
}

fn failed(failure: ProgramsFailure, problem: String) -> BackupError {
    BackupError::Programs { failure, problem }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::http::{HeaderMap, Uri};
    use sha2::{Digest, Sha256};

    use super::*;

    /// An archive as etcd's releases are.
    fn archive(files: &[&str]) -> Vec<u8> {
        let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for file in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(3);
            header.set_mode(0o755);
            archive.append_data(&mut header, format!("etcd-v3.6.16-linux/{file}"), &b"run"[..]).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }

    fn sha256(bytes: &[u8]) -> String {
        hex::encode(Sha256::digest(bytes))
    }

    /// A server of a bundle with this archive, and what logins it was shown.
    async fn served(archive: Vec<u8>, digest: &str) -> (ProgramsInputs, Arc<Mutex<Vec<String>>>, String) {
        let entry = serde_json::json!({
            "name": "etcd", "kind": "archive", "version": "3.6.16", "os": "linux", "arch": architecture(),
            "path": "files/etcd.tar.gz", "size": archive.len(), "sha256": digest
        });
        let index = serde_json::json!({ "formatVersion": 1, "artifacts": [entry] }).to_string();
        let (listener, shown) = (tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::default());
        let url = format!("http://{}/bundle", listener.local_addr().unwrap());
        let (sum, logins): (_, Arc<Mutex<Vec<String>>>) = (sha256(index.as_bytes()), Arc::clone(&shown));
        let router = Router::new().fallback(move |uri: Uri, headers: HeaderMap| async move {
            let login = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
            logins.lock().unwrap().extend(login);
            match uri.path() {
                "/bundle/index.json" => (StatusCode::OK.as_u16(), index.clone().into_bytes()),
                "/bundle/files/etcd.tar.gz" => (200, archive.clone()),
                _ => (404, Vec::new()),
            }
            .into_answer()
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        let inputs = ProgramsInputs {
            url,
            archives: Default::default(),
            index_sha256: None,
            authorities: None,
            version: "3.6.16".to_owned(),
            digests: Default::default(),
        };
        (inputs, shown, sum)
    }

    trait IntoAnswer {
        fn into_answer(self) -> (axum::http::StatusCode, Vec<u8>);
    }

    impl IntoAnswer for (u16, Vec<u8>) {
        fn into_answer(self) -> (axum::http::StatusCode, Vec<u8>) {
            (axum::http::StatusCode::from_u16(self.0).unwrap(), self.1)
        }
    }

    async fn fetched(inputs: &ProgramsInputs, login: &Login) -> Result<(), BackupError> {
        let place = tempfile::tempdir().unwrap();
        let programs = Programs::fetch(inputs, login, place.path()).await?;
        for program in [&programs.etcd, &programs.etcdutl] {
            assert_eq!(std::fs::read(program).unwrap(), b"run");
            assert_eq!(program.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2, "nothing else is left");
        Ok(())
    }

    #[tokio::test]
    async fn programs_of_the_digest_that_is_meant_are_unpacked_and_no_others() {
        let whole = archive(&["etcd", "etcdctl", "README.md", "etcdutl"]);
        let (inputs, _, index) = served(whole.clone(), &sha256(&whole)).await;
        fetched(&inputs, &Login::default()).await.unwrap();
        let check = async |change: &dyn Fn(&mut ProgramsInputs), reason: &str, words: &str| {
            let mut inputs = inputs.clone();
            change(&mut inputs);
            match fetched(&inputs, &Login::default()).await {
                Ok(()) => assert!(reason.is_empty(), "{words}"),
                Err(error) => {
                    assert_eq!(error.reason(), reason, "{error}");
                    assert!(error.to_string().contains(words) && !error.is_damage(), "{error}");
                }
            }
        };
        check(&|inputs| inputs.index_sha256 = Some(index.clone()), "", "the index that was promised").await;
        check(&|inputs| inputs.index_sha256 = Some("0".repeat(64)), "DigestMismatch", "index.json").await;
        check(&|inputs| inputs.version = "3.5.1".into(), "ArtifactNotFound", "etcd 3.5.1 for linux/").await;
        let frozen = |inputs: &mut ProgramsInputs| {
            inputs.digests = [(architecture().to_owned(), "1".repeat(64))].into();
        };
        check(&frozen, "DigestMismatch", "is frozen for the cluster").await;
        check(&|inputs| inputs.url.push_str("/x"), "ArtifactSourceUnavailable", "404").await;
        check(&|inputs| inputs.url = "http://127.0.0.1:9".into(), "ArtifactSourceUnavailable", "must reach it").await;
    }

    #[tokio::test]
    async fn an_archive_that_was_changed_or_lacks_a_program_is_refused() {
        let whole = archive(&["etcd", "etcdutl"]);
        let (changed, ..) = served(whole, &"0".repeat(64)).await;
        assert_eq!(fetched(&changed, &Login::default()).await.unwrap_err().reason(), "DigestMismatch");
        let half = archive(&["etcd"]);
        let (lacking, ..) = served(half.clone(), &sha256(&half)).await;
        let error = fetched(&lacking, &Login::default()).await.unwrap_err();
        assert!(error.reason() == "ArtifactInvalid" && error.to_string().contains("etcdutl"), "{error}");
    }

    #[test]
    fn of_upstreams_archives_the_one_for_this_machine_is_taken_by_its_digest() {
        let map =
            |entries: &[(&str, &str)]| entries.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let inputs = ProgramsInputs {
            url: String::new(),
            archives: map(&[("amd64", "https://x/a"), ("arm64", "https://x/b")]),
            index_sha256: None,
            authorities: None,
            version: "3.6.16".to_owned(),
            digests: map(&[("arm64", "cd")]),
        };
        let found = upstream(&inputs, "arm64").unwrap();
        assert_eq!((found.url.as_str(), found.sha256.as_str()), ("https://x/b", "cd"));
        let error = upstream(&inputs, "amd64").err().unwrap();
        assert!(error.reason() == "ArtifactNotFound" && error.to_string().contains("linux/amd64"), "{error}");
    }

    #[tokio::test]
    async fn a_login_is_shown_as_the_server_asks_for_it() {
        let whole = archive(&["etcd", "etcdutl"]);
        for (login, expected) in [
            (Login { basic: Some(("a".into(), "b".into())), token: None }, "Basic YTpi"),
            (Login { basic: Some(("a".into(), "b".into())), token: Some("t".into()) }, "Bearer t"),
        ] {
            let (inputs, shown, _) = served(whole.clone(), &sha256(&whole)).await;
            fetched(&inputs, &login).await.unwrap();
            assert_eq!(*shown.lock().unwrap(), [expected, expected]);
        }
    }
}
