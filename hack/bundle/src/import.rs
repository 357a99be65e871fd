//! Taking a bundle that was carried here into the one that machines use.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::diff::{Difference, diff};
use crate::digest::{self, Hashing};
use crate::index::{self, Artifact, Index};
use crate::packages::{self, Repository};
use crate::publish::publish;

/// What came of it.
#[derive(Debug)]
pub struct Imported {
    /// What the bundle has now that it had not before.
    pub differences: Vec<Difference>,
    /// How many files were copied; the others were there.
    pub copied: usize,
    /// SHA-256 of the bundle's index now.
    pub index_sha256: String,
}

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    /// What must be copied.
    pub needed: Vec<Needed>,
    before: Index,
    after: Index,
}

/// A file that must be copied.
#[derive(Debug)]
pub struct Needed {
    /// As it will be in the bundle.
    pub artifact: Artifact,
    /// Its path in the bundle that it comes from.
    pub source: String,
}

/// Says what `bundle` lacks of another bundle, whose index is given; nothing is ever removed. Fails if the two have
/// different files of one version, or if the index is another than the promised one.
pub fn plan(incoming: &[u8], place: &str, bundle: &Path, promised: Option<&str>) -> Result<Plan> {
    let got = digest::of_bytes(incoming);
    if let Some(promised) = promised {
        ensure!(
            got.eq_ignore_ascii_case(promised),
            "{place} has sha256 {got}, and {promised} was promised: nothing was imported"
        );
    }
    let incoming = Index::parse(incoming, place)?;
    let before = Index::read_or_new(bundle)?;
    let mut after = before.clone();
    let mut needed = Vec::new();
    for (os, arch) in packages::repositories(&incoming) {
        // A repository is signed as a whole: that of two which came last is the one that there is.
        after.replace_repository(Repository { os: &os, arch: &arch }, Vec::new())?;
    }
    for artifact in incoming.artifacts {
        let known = before.artifacts.iter().find(|known| known.key() == artifact.key());
        if let Some(known) = known.filter(|known| known.sha256.eq_ignore_ascii_case(&artifact.sha256)) {
            // It may lie elsewhere here, or have been lost.
            let path = bundle.join(&known.path);
            if !fs::metadata(path).is_ok_and(|found| found.len() == known.size) {
                needed.push(Needed { artifact: known.clone(), source: artifact.path });
            }
            after.insert(known.clone())?;
            continue;
        }
        after.insert(artifact.clone()).context("nothing was imported")?;
        needed.push(Needed { source: artifact.path.clone(), artifact });
    }
    after.components.extend(incoming.components);
    Ok(Plan { needed, before, after })
}

/// Copies what `bundle` lacks of the bundle in `source`, and adds it to the index, which is written last. Each file is
/// compared with its digest while it is copied. `promised` is the SHA-256 of the source's index, if it is known. `at`
/// is told which file is next.
pub fn import(source: &Path, bundle: &Path, promised: Option<&str>, mut at: impl FnMut(&Artifact)) -> Result<Imported> {
    let place = source.join(index::FILE);
    let incoming = fs::read(&place).with_context(|| format!("failed to read {}", place.display()))?;
    let mut plan = plan(&incoming, &place.display().to_string(), bundle, promised)?;
    for Needed { artifact, source: path } in &plan.needed {
        at(artifact);
        copy(&source.join(path), bundle, artifact)?;
    }
    plan.finish(bundle)
}

impl Plan {
    /// Adds what was copied to the index.
    pub fn finish(&mut self, bundle: &Path) -> Result<Imported> {
        let index_sha256 = self.after.write(bundle)?;
        Ok(Imported { differences: diff(&self.before, &self.after), copied: self.needed.len(), index_sha256 })
    }
}

fn copy(from: &Path, bundle: &Path, artifact: &Artifact) -> Result<()> {
    publish(&bundle.join(&artifact.path), |draft| {
        let copying = || format!("failed to copy {}", from.display());
        let mut reader = Hashing::new(File::open(from).with_context(copying)?);
        let mut writer = File::create(draft).with_context(copying)?;
        std::io::copy(&mut reader, &mut writer).with_context(copying)?;
        let (got, size) = reader.finish();
        if !got.eq_ignore_ascii_case(&artifact.sha256) {
            let promised = &artifact.sha256;
            bail!("{} has sha256 {got} ({size} bytes), and the index promises {promised}", from.display());
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{tests::whole, verify};

    fn imported(source: &Path, bundle: &Path) -> Result<Imported> {
        import(source, bundle, None, |_| {})
    }

    #[test]
    fn a_second_bundle_is_added_and_only_what_is_new_is_copied() {
        let (one, other, into) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        whole(one.path(), "1.34.4", "3.6.14");
        whole(other.path(), "1.35.4", "3.6.16");
        assert_eq!(imported(one.path(), into.path()).unwrap().copied, 14);
        let second = imported(other.path(), into.path()).unwrap();
        // Three programs and four images of Kubernetes, and etcd; the rest is the same.
        assert_eq!(second.copied, 8);
        let report = verify(into.path(), |_| {}).unwrap();
        assert_eq!((report.problems, report.kubernetes), (vec![], vec!["1.34.4".to_owned(), "1.35.4".to_owned()]));
        assert_eq!(report.index_sha256, second.index_sha256);
        let again = imported(other.path(), into.path()).unwrap();
        assert_eq!((again.copied, again.differences), (0, vec![]));
        assert_eq!(again.index_sha256, second.index_sha256);
    }

    #[test]
    fn a_file_that_was_damaged_on_the_way_is_refused_and_the_index_stays() {
        let (one, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        whole(one.path(), "1.34.4", "3.6.14");
        fs::write(one.path().join("files/runc-1.0.0-linux-amd64"), "cnur").unwrap();
        let error = imported(one.path(), into.path()).unwrap_err().to_string();
        assert!(error.contains("runc-1.0.0-linux-amd64 has sha256"), "{error}");
        assert!(!into.path().join(index::FILE).exists());
        assert!(!into.path().join("files/runc-1.0.0-linux-amd64").exists());
    }

    #[test]
    fn another_file_of_a_version_that_is_there_is_refused_before_anything_is_copied() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        whole(one.path(), "1.34.4", "3.6.14");
        let mut index = whole(other.path(), "1.34.4", "3.6.15");
        let runc = index.artifacts.iter_mut().find(|artifact| artifact.name == "runc").unwrap();
        runc.sha256 = "0".repeat(64);
        index.write(other.path()).unwrap();
        let error = format!("{:#}", imported(other.path(), one.path()).unwrap_err());
        assert!(error.starts_with("nothing was imported: runc 1.0.0"), "{error}");
        assert!(!one.path().join("files/etcd-3.6.15-linux-amd64").exists());
    }

    #[test]
    fn another_index_than_the_promised_one_is_refused() {
        let (one, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        whole(one.path(), "1.34.4", "3.6.14");
        let promised = "0".repeat(64);
        let error = import(one.path(), into.path(), Some(&promised), |_| {}).unwrap_err().to_string();
        assert!(error.contains(&promised) && error.contains("nothing was imported"), "{error}");
    }

    #[test]
    fn a_copy_that_was_cut_off_is_copied_again() {
        let (one, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        whole(one.path(), "1.34.4", "3.6.14");
        imported(one.path(), into.path()).unwrap();
        fs::write(into.path().join("files/runc-1.0.0-linux-amd64"), "ru").unwrap();
        assert_eq!(imported(one.path(), into.path()).unwrap().copied, 1);
        assert_eq!(verify(into.path(), |_| {}).unwrap().problems, Vec::<String>::new());
    }
}
