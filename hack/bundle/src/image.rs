//! Images as registries have them, and their archives: an OCI layout of one image in a tar, with the bytes of the
//! registry, so that the image has the same digest on machines as upstream.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};
use tar::{Builder, Header};

use crate::digest::{self, is_digest};

/// How compressed layers begin.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A manifest as the registry sent it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    config: Option<Blob>,
    #[serde(default)]
    layers: Option<Vec<Blob>>,
    #[serde(default)]
    manifests: Option<Vec<Entry>>,
}

/// One entry of a list of manifests.
#[derive(Debug, Clone, Deserialize)]
struct Entry {
    digest: String,
    #[serde(default)]
    platform: Option<Platform>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    os: String,
    architecture: String,
}

/// A configuration or a layer of an image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Blob {
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Size in bytes.
    pub size: u64,
}

/// What a manifest leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// A list of manifests: the digest of the one for the architecture that was asked for.
    List(String),
    /// The image: its configuration, then its layers, each once.
    Image(Vec<Blob>),
}

/// What the manifest of `image` says to a machine of that architecture.
pub fn content(manifest: &[u8], image: &str, arch: &str) -> Result<Content> {
    let found: Manifest =
        serde_json::from_slice(manifest).with_context(|| format!("the manifest of {image} cannot be read"))?;
    if let Some(manifests) = found.manifests {
        let is = |platform: &Platform| platform.os == "linux" && platform.architecture == arch;
        let platforms = manifests.iter().filter_map(|entry| Some((entry.platform.as_ref()?, entry)));
        if let Some((_, entry)) = platforms.clone().find(|(platform, _)| is(platform)) {
            checked(&entry.digest, image)?;
            return Ok(Content::List(entry.digest.clone()));
        }
        let there = platforms.filter(|(platform, _)| platform.architecture != "unknown");
        let there: Vec<String> = there.map(|(it, _)| format!("{}/{}", it.os, it.architecture)).collect();
        bail!("{image} is not there for linux/{arch}, but for {}", there.join(", "));
    }
    let Some(config) = found.config else { bail!("the manifest of {image} has neither a list nor a configuration") };
    let mut blobs = vec![config];
    for layer in found.layers.unwrap_or_default() {
        if !blobs.contains(&layer) {
            blobs.push(layer);
        }
    }
    for blob in &blobs {
        checked(&blob.digest, image)?;
    }
    Ok(Content::Image(blobs))
}

/// Fails if an image's configuration is of another architecture.
pub fn check_configuration(configuration: &[u8], image: &str, arch: &str) -> Result<()> {
    let found: Platform = serde_json::from_slice(configuration)
        .with_context(|| format!("the configuration of {image} cannot be read"))?;
    let (os, is) = (&found.os, &found.architecture);
    ensure!(os == "linux" && is == arch, "{image} is for {os}/{is} alone, and linux/{arch} was asked for");
    Ok(())
}

fn checked(digest: &str, image: &str) -> Result<()> {
    let known = digest.strip_prefix("sha256:").is_some_and(is_digest);
    ensure!(known, "the manifest of {image} names the digest {digest:?}, and only sha256 is known here");
    Ok(())
}

/// Writes the archive of an image that is called `name` (with its tag): its manifest, and its blobs, which lie in
/// `blobs` under the digits of their digests. The same image gives the same bytes.
pub fn write_archive(into: &Path, name: &str, arch: &str, manifest: &[u8], blobs: (&Path, &[Blob])) -> Result<()> {
    let writing = || format!("failed to write {}", into.display());
    let media_type = serde_json::from_slice::<Manifest>(manifest)?.media_type;
    let digits = digest::of_bytes(manifest);
    let index = index(name, arch, media_type.as_deref(), &digits, manifest.len());
    let file = File::create(into).with_context(writing)?;
    let mut tar = Builder::new(BufWriter::with_capacity(1 << 20, file));
    append(&mut tar, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#).with_context(writing)?;
    append(&mut tar, "index.json", &serde_json::to_vec(&index)?).with_context(writing)?;
    append(&mut tar, &format!("blobs/sha256/{digits}"), manifest).with_context(writing)?;
    for blob in blobs.1 {
        let digits = blob.digest.trim_start_matches("sha256:");
        let path: PathBuf = blobs.0.join(digits);
        let file = File::open(&path).with_context(|| format!("failed to open {}", path.display()))?;
        append_from(&mut tar, &format!("blobs/sha256/{digits}"), blob.size, file).with_context(writing)?;
    }
    tar.into_inner().and_then(|mut file| file.flush()).with_context(writing)
}

/// Writes one program of an image, at this path in it (`bin/karmada-scheduler`). Its blobs lie in `blobs` under the digits of
/// their digests, the configuration first, then the layers from the lowest on.
pub fn extract(into: &Path, image: &str, path: &str, blobs: (&Path, &[Blob])) -> Result<()> {
    for layer in blobs.1.iter().skip(1).rev() {
        let file = blobs.0.join(layer.digest.trim_start_matches("sha256:"));
        let reading = || format!("failed to read layer {} of {image}", layer.digest);
        match in_layer(&file, path).with_context(reading)? {
            Found::Nothing => {}
            Found::Removed => break,
            Found::Other => bail!("{image} has /{path}, and it is no program but a link or a directory"),
            Found::Program(content) => {
                return fs::write(into, content).with_context(|| format!("failed to write {}", into.display()));
            }
        }
    }
    bail!("{image} has no /{path}")
}

/// What a layer has of a path.
enum Found {
    Nothing,
    /// What lower layers have of it is not there any more.
    Removed,
    /// A link or a directory.
    Other,
    Program(Vec<u8>),
}

fn in_layer(layer: &Path, path: &str) -> Result<Found> {
    let mut file = BufReader::new(File::open(layer)?);
    let head = file.fill_buf()?;
    ensure!(!head.starts_with(&ZSTD), "it is compressed by zstd, and gzip or nothing is known here");
    let is_packed = head.starts_with(&GZIP);
    let content: Box<dyn Read> = if is_packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let removed = [format!("{directory}/.wh.{name}"), format!("{directory}/.wh..wh..opq"), format!(".wh.{directory}")];
    let mut found = Found::Nothing;
    for entry in tar::Archive::new(content).entries()? {
        let mut entry = entry?;
        let at = entry.path()?.to_string_lossy().trim_start_matches("./").trim_start_matches('/').to_owned();
        if at == path {
            if entry.header().entry_type() != tar::EntryType::Regular {
                return Ok(Found::Other);
            }
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            return Ok(Found::Program(content));
        }
        if removed.contains(&at) {
            found = Found::Removed;
        }
    }
    Ok(found)
}

/// What the images in an archive are called: one of ours, or as `docker save` and `ctr images export` write it.
pub fn names(archive: &Path) -> Result<Vec<String>> {
    let reading = || format!("failed to read {}", archive.display());
    let mut tar = tar::Archive::new(File::open(archive).with_context(reading)?);
    let mut names = Vec::new();
    for entry in tar.entries().with_context(reading)? {
        let entry = entry.with_context(reading)?;
        let path = entry.path().with_context(reading)?.into_owned();
        let texts = |value: &Value| value.as_str().map(str::to_owned);
        if path.as_os_str() == "manifest.json" {
            let images: Value = serde_json::from_reader(entry.take(1 << 20)).with_context(reading)?;
            let tags = images.as_array().into_iter().flatten().filter_map(|image| image["RepoTags"].as_array());
            names.extend(tags.flatten().filter_map(texts));
        } else if path.as_os_str() == "index.json" {
            let index: Value = serde_json::from_reader(entry.take(1 << 20)).with_context(reading)?;
            let images = index["manifests"].as_array().into_iter().flatten();
            names.extend(images.filter_map(|image| texts(&image["annotations"]["io.containerd.image.name"])));
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// The digest of the manifest of the image in an archive that was written here. `None`: it is another archive.
pub fn manifest_of(archive: &Path) -> Option<String> {
    let mut tar = tar::Archive::new(File::open(archive).ok()?);
    // It is the second entry.
    for entry in tar.entries().ok()?.take(2) {
        let entry = entry.ok()?;
        if entry.path().ok()?.as_os_str() == "index.json" {
            let index: Manifest = serde_json::from_reader(entry.take(1 << 20)).ok()?;
            return Some(index.manifests?.first()?.digest.clone());
        }
    }
    None
}

fn index(name: &str, arch: &str, media_type: Option<&str>, digits: &str, size: usize) -> Value {
    let tag = name.rsplit(':').next().unwrap_or(name);
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": media_type.unwrap_or(OCI_MANIFEST),
            "digest": format!("sha256:{digits}"),
            "size": size,
            "platform": {"os": "linux", "architecture": arch},
            // What containerd calls it.
            "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag},
        }],
    })
}

fn append(tar: &mut Builder<impl Write>, path: &str, content: &[u8]) -> Result<()> {
    append_from(tar, path, content.len() as u64, content)
}

fn append_from(tar: &mut Builder<impl Write>, path: &str, size: u64, content: impl Read) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(size);
    Ok(tar.append_data(&mut header, path, content)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(digit: &str) -> Blob {
        Blob { digest: format!("sha256:{}", digit.repeat(64)), size: 1 }
    }

    #[track_caller]
    fn check(manifest: &Value, arch: &str, expected: Result<Content, &str>) {
        let found = content(manifest.to_string().as_bytes(), "r/pause:3", arch).map_err(|error| format!("{error:#}"));
        match (&found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(*found, expected),
            (Err(error), Err(said)) => assert!(error.contains(said), "{error}"),
            (found, expected) => panic!("{found:?} is not {expected:?}"),
        }
    }

    #[test]
    fn of_a_list_the_manifest_of_the_architecture_is_taken() {
        let platform = |arch: &str| json!({"os": "linux", "architecture": arch});
        let entry = |arch: &str, digit: &str| json!({"digest": blob(digit).digest, "platform": platform(arch)});
        let list = json!({"manifests": [entry("arm64", "a"), entry("amd64", "b"), entry("unknown", "c")]});
        check(&list, "amd64", Ok(Content::List(blob("b").digest)));
        check(&list, "s390x", Err("r/pause:3 is not there for linux/s390x, but for linux/arm64, linux/amd64"));
        let odd = json!({"manifests": [{"digest": "md5:1", "platform": platform("amd64")}]});
        check(&odd, "amd64", Err("names the digest \"md5:1\""));
    }

    #[test]
    fn an_images_blobs_are_listed_once() {
        let of = |digit: &str| json!({"digest": blob(digit).digest, "size": 1});
        let manifest = json!({"config": of("a"), "layers": [of("b"), of("b"), of("c")]});
        check(&manifest, "amd64", Ok(Content::Image(vec![blob("a"), blob("b"), blob("c")])));
        let leaving = json!({"config": {"digest": "sha256:../../x", "size": 1}, "layers": []});
        check(&leaving, "amd64", Err("names the digest"));
        check(&json!({}), "amd64", Err("has neither a list nor a configuration"));
    }

    #[test]
    fn an_image_of_another_architecture_is_refused() {
        let configuration = br#"{"os": "linux", "architecture": "amd64", "rootfs": {}}"#;
        check_configuration(configuration, "r/pause:3", "amd64").unwrap();
        let error = check_configuration(configuration, "r/pause:3", "arm64").unwrap_err().to_string();
        assert_eq!(error, "r/pause:3 is for linux/amd64 alone, and linux/arm64 was asked for");
    }

    /// A layer with these paths, each of this content; a path that ends with `>` is a link.
    fn layer(directory: &Path, packed: bool, entries: &[(&str, &str)]) -> Blob {
        let mut tar = Builder::new(Vec::new());
        for (path, content) in entries {
            if let Some(path) = path.strip_suffix('>') {
                let mut header = Header::new_gnu();
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_size(0);
                tar.append_link(&mut header, path, content).unwrap();
            } else {
                append(&mut tar, path, content.as_bytes()).unwrap();
            }
        }
        let mut bytes = tar.into_inner().unwrap();
        if packed {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&bytes).unwrap();
            bytes = packed.finish().unwrap();
        }
        let digits = digest::of_bytes(&bytes);
        fs::write(directory.join(&digits), &bytes).unwrap();
        Blob { digest: format!("sha256:{digits}"), size: bytes.len() as u64 }
    }

    #[test]
    fn a_program_is_taken_from_the_highest_layer_that_has_it_and_never_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let made = |packed: bool, entries: &[(&str, &str)]| layer(dir.path(), packed, entries);
        let (lower, upper) =
            (made(true, &[("etc/x", "-"), ("bin/scheduler", "old")]), made(false, &[("./bin/scheduler", "new")]));
        let (gone, link) = (made(true, &[("bin/.wh.scheduler", "")]), made(true, &[("bin/scheduler>", "/bin/sh")]));
        let unknown = Blob { digest: format!("sha256:{}", "e".repeat(64)), size: 4 };
        fs::write(dir.path().join("e".repeat(64)), ZSTD).unwrap();
        let configuration = made(false, &[("bin/scheduler", "no layer")]);
        let check = |layers: &[&Blob], expected: Result<&str, &str>| {
            let blobs: Vec<Blob> = std::iter::once(&configuration).chain(layers.iter().copied()).cloned().collect();
            let into = dir.path().join("program");
            match (extract(&into, "r/scheduler:v1", "bin/scheduler", (dir.path(), &blobs)), expected) {
                (Ok(()), Ok(content)) => assert_eq!(fs::read_to_string(into).unwrap(), content),
                (Err(error), Err(said)) => assert!(format!("{error:#}").contains(said), "{error:#}"),
                (found, expected) => panic!("{found:?} is not {expected:?}"),
            }
        };
        check(&[&lower], Ok("old"));
        check(&[&lower, &upper], Ok("new"));
        check(&[&upper, &lower], Ok("old"));
        check(&[&lower, &gone], Err("r/scheduler:v1 has no /bin/scheduler"));
        check(&[&lower, &link], Err("no program but a link"));
        check(&[&lower, &unknown], Err("zstd"));
        check(&[], Err("r/scheduler:v1 has no /bin/scheduler"));
    }

    #[test]
    fn an_archive_of_docker_says_its_names_and_another_file_says_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("saved.tar");
        let mut tar = Builder::new(File::create(&path).unwrap());
        append(&mut tar, "manifest.json", br#"[{"Config": "a.json", "RepoTags": ["busybox:1.35"], "Layers": []}]"#)
            .unwrap();
        tar.finish().unwrap();
        assert_eq!(names(&path).unwrap(), ["busybox:1.35"]);
        std::fs::write(&path, "no tar at all").unwrap();
        assert!(names(&path).is_err());
    }

    #[test]
    fn an_archive_has_the_registrys_bytes_and_is_the_same_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let config = Blob { digest: format!("sha256:{}", digest::of_bytes(b"{}")), size: 2 };
        std::fs::write(dir.path().join(digest::of_bytes(b"{}")), "{}").unwrap();
        let manifest = format!(r#"{{ "config": {{"digest": "{}", "size": 2}} }}"#, config.digest);
        let made = |file: &str| {
            let path = dir.path().join(file);
            let blobs = [config.clone()];
            write_archive(&path, "r/pause:3", "amd64", manifest.as_bytes(), (dir.path(), &blobs)).unwrap();
            std::fs::read(path).unwrap()
        };
        let archive = made("one");
        assert_eq!(archive, made("other"));
        let mut files = std::collections::BTreeMap::new();
        for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            files.insert(entry.path().unwrap().to_string_lossy().into_owned(), content);
        }
        let digits = digest::of_bytes(manifest.as_bytes());
        assert_eq!(files[&format!("blobs/sha256/{digits}")], manifest);
        let index: Value = serde_json::from_str(&files["index.json"]).unwrap();
        assert_eq!(index["manifests"][0]["digest"], format!("sha256:{digits}"));
        assert_eq!(index["manifests"][0]["mediaType"], OCI_MANIFEST);
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], "r/pause:3");
        assert_eq!(files.len(), 4);
        assert_eq!(names(&dir.path().join("one")).unwrap(), ["r/pause:3"]);
        assert_eq!(manifest_of(&dir.path().join("one")), Some(format!("sha256:{digits}")));
        assert_eq!(manifest_of(&dir.path().join(digest::of_bytes(b"{}"))), None);
    }
}
