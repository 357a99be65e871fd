//! `wright bundle import`

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::bundle::import::{Imported, import};
use ::bundle::index::FILE;
use ::bundle::place::{DIRECTORIES, is_below};
use ::bundle::publish::create_dir;
use anyhow::{Context, Result, bail};
use clap::Args;

use super::push::OCI;
use super::{clear_partial, hold, say_index};
use crate::download::{Connection, PARTIAL};
use crate::progress::Progress;

/// Add a bundle that was carried here, from a directory, a tar or a registry
#[derive(Debug, Args)]
pub struct Import {
    /// A directory; a tar of one (`-`: standard input); or oci://REGISTRY/REPOSITORY:TAG, which `push` has filled
    source: String,
    /// The bundle's directory, which may be new
    #[arg(default_value = "bundle")]
    directory: PathBuf,
    /// Fail unless the index that comes has this SHA-256
    #[arg(long, value_name = "SHA256")]
    index_sha256: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Import {
    /// Copies what is not there; nothing is removed, and no file of a version that is there is replaced.
    pub async fn run(self) -> Result<ExitCode> {
        let bundle = &self.directory;
        let alone = hold(bundle)?;
        let promised = self.index_sha256.as_deref();
        let imported = if let Some(reference) = self.source.strip_prefix(OCI) {
            super::push::pull(&self.connection, reference, bundle, promised).await?
        } else {
            self.import_files(bundle, promised)?
        };
        clear_partial(bundle)?;
        drop(alone);
        for difference in &imported.differences {
            println!("{difference}");
        }
        println!("{} files were copied", imported.copied);
        say_index(bundle, &imported.index_sha256);
        Ok(ExitCode::SUCCESS)
    }

    fn import_files(&self, bundle: &Path, promised: Option<&str>) -> Result<Imported> {
        let bar = Progress::new().bar("import");
        let source = PathBuf::from(&self.source);
        let source = if source.is_dir() {
            source
        } else {
            let unpacked = bundle.join(PARTIAL).join("import");
            create_dir(&unpacked)?;
            bar.at("unpacking");
            let unpacking = || format!("failed to unpack {}", source.display());
            if self.source == "-" {
                unpack(std::io::stdin().lock(), &unpacked).with_context(unpacking)?;
            } else {
                unpack(File::open(&source).with_context(unpacking)?, &unpacked).with_context(unpacking)?;
            }
            unpacked
        };
        if !source.join(FILE).is_file() {
            bail!("{} holds no bundle: it has no {FILE}", self.source);
        }
        import(&source, bundle, promised, |artifact| bar.at(&artifact.to_string()))
    }
}

/// Unpacks the index and the artifacts of a bundle's tar, and nothing else. The tar may be of the directory or of what
/// is in it.
fn unpack(tar: impl Read, into: &Path) -> Result<()> {
    for entry in tar::Archive::new(tar).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let text = path.to_string_lossy();
        let Some(place) = place(text.trim_start_matches("./")) else { continue };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let target = into.join(&place);
        if let Some(parent) = target.parent() {
            create_dir(parent)?;
        }
        let mut out = File::create(&target).with_context(|| format!("failed to create {}", target.display()))?;
        std::io::copy(&mut entry, &mut out).with_context(|| format!("failed to write {}", target.display()))?;
    }
    Ok(())
}

/// Where a path of a tar belongs in a bundle. `None`: it is neither the index nor an artifact.
fn place(path: &str) -> Option<String> {
    let belongs = |path: &str| {
        let first = path.split('/').next().unwrap_or(path);
        is_below(path) && (path == FILE || (DIRECTORIES.contains(&first) && path != first))
    };
    let inner = path.split_once('/').map(|(_, inner)| inner);
    [Some(path), inner].into_iter().flatten().find(|path| belongs(path)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn of_a_tar_only_the_index_and_artifacts_are_taken() {
        for (path, expected) in [
            ("index.json", Some("index.json")),
            ("bundle/index.json", Some("index.json")),
            ("images/r/a.tar", Some("images/r/a.tar")),
            ("bundle/files/a", Some("files/a")),
            ("bundle.lock", None),
            ("files", None),
            ("files/../../etc/passwd", None),
            ("../index.json", Some("index.json")),
            ("a/b/index.json", None),
        ] {
            assert_eq!(place(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_tar_of_a_directory_is_unpacked() {
        let dir = tempfile::tempdir().unwrap();
        let mut tar = tar::Builder::new(Vec::new());
        for path in ["bundle/index.json", "bundle/files/a", "bundle/bundle.lock"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            tar.append_data(&mut header, path, "x".as_bytes()).unwrap();
        }
        unpack(tar.into_inner().unwrap().as_slice(), dir.path()).unwrap();
        let mut found: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        found.sort();
        assert_eq!(found, ["files", "index.json"]);
    }
}
