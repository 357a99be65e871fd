//! Packages of operating systems: a signed apt repository for each distribution and architecture, of all that the roles
//! install and everything that it depends on. Here are its texts; who downloads and signs is `wright`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::digest;
use crate::index::{Artifact, Index, Kind};

/// The key that a repository is signed with, beside it.
pub const KEY: &str = "packages.asc";
/// The file that apt reads first: digests, signed.
pub const RELEASE: &str = "InRelease";
/// The list of the packages.
pub const LIST: &str = "Packages";

/// One package, as its distribution describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name, e.g. `iproute2`.
    pub name: String,
    /// Its version, with its epoch if it has one.
    pub version: String,
    /// The name of its file, without a directory.
    pub file: String,
    /// Where its distribution has it.
    pub url: String,
    /// Of its file, in hexadecimal digits: from the list that the distribution signs.
    pub sha256: String,
    /// Its fields but `Filename`, as the distribution wrote them.
    fields: String,
}

/// The repository of one distribution and architecture.
#[derive(Debug, Clone, Copy)]
pub struct Repository<'a> {
    /// As machines name it in /etc/os-release, `ID` and `VERSION_ID`: `debian12`.
    pub os: &'a str,
    /// As Kubernetes and dpkg name it, e.g. `amd64`.
    pub arch: &'a str,
}

impl Repository<'_> {
    /// Its directory in the bundle.
    pub fn directory(&self) -> String {
        format!("os/{}/{}", self.os, self.arch)
    }

    /// Where the list of these bytes lies: by its digest, so that it is never replaced while somebody reads it.
    pub fn list(&self, sha256: &str) -> String {
        format!("{}/by-hash/SHA256/{sha256}", self.directory())
    }

    /// `Release`, to be signed: the list's digest, and the date, in the words of the distributions' own.
    pub fn release(&self, date: &str, list: &str) -> String {
        let (sha256, size) = (digest::of_bytes(list.as_bytes()), list.len());
        format!(
            "Origin: Clusterwright\nLabel: {os}\nArchitectures: {arch}\nAcquire-By-Hash: yes\nDate: {date}\nSHA256:\n \
             {sha256} {size} {LIST}\n",
            os = self.os,
            arch = self.arch,
        )
    }

    /// Whether the artifact is a part of it.
    pub fn holds(&self, artifact: &Artifact) -> bool {
        artifact.is_in_repository() && (artifact.os.as_str(), artifact.arch.as_str()) == (self.os, self.arch)
    }
}

/// Every repository in an index, by operating system and architecture.
pub fn repositories(index: &Index) -> Vec<(String, String)> {
    let releases = index.artifacts.iter().filter(|it| it.kind == Kind::Repository && it.name == RELEASE);
    releases.map(|it| (it.os.clone(), it.arch.clone())).collect()
}

/// The list of a repository: `Packages`.
pub fn list(packages: &[Package]) -> String {
    let mut sorted: Vec<&Package> = packages.iter().collect();
    sorted.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    sorted.iter().map(|package| format!("{}Filename: {}\n\n", package.fields, package.file)).collect()
}

/// Packages that the lists of a bundle's repositories name, and the index has not, or with another digest.
pub fn lacking(bundle: &Path, index: &Index) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (os, arch) in repositories(index) {
        let repository = Repository { os: &os, arch: &arch };
        let of_it = || index.artifacts.iter().filter(|artifact| repository.holds(artifact));
        let Some(list) = of_it().find(|artifact| artifact.kind == Kind::Repository && artifact.name == LIST) else {
            found.push(format!("the repository of {os}/{arch} has no list of its packages"));
            continue;
        };
        // One that is missing is reported as a file.
        let text = fs::read_to_string(bundle.join(&list.path)).unwrap_or_default();
        for stanza in text.split("\n\n").filter(|stanza| !stanza.trim().is_empty()) {
            let (file, sha256) =
                (field(stanza, "Filename").unwrap_or_default(), field(stanza, "SHA256").unwrap_or_default());
            let path = format!("{}/{file}", repository.directory());
            if !of_it().any(|artifact| artifact.path == path && artifact.sha256 == sha256) {
                found.push(format!("machines of {os}/{arch} do not find {file}, which their list of packages names"));
            }
        }
    }
    Ok(found)
}

/// What `apt-get install --print-uris` would download, found in what `apt-cache dumpavail` describes.
pub fn read(uris: &str, available: &str) -> Result<Vec<Package>> {
    let stanzas = stanzas(available);
    uris.lines().filter(|line| line.starts_with('\'')).map(|line| package(line, &stanzas)).collect()
}

fn package(line: &str, stanzas: &HashMap<&str, Vec<&str>>) -> Result<Package> {
    let (url, _) = line[1..].split_once('\'').with_context(|| format!("apt names no URL: {line}"))?;
    let path = decoded(url)?;
    let file = path.rsplit('/').next().unwrap_or(&path);
    let there = stanzas.get(file).map(Vec::as_slice).unwrap_or_default();
    let of_it = |stanza: &&&str| field(stanza, "Filename").is_some_and(|name| path.ends_with(name));
    let Some(stanza) = there.iter().find(of_it) else {
        bail!("apt would download {url}, and describes no package of that file");
    };
    let text = |name: &str| {
        let value = field(stanza, name).with_context(|| format!("apt describes {file} without {name}"))?;
        Ok::<_, anyhow::Error>(value.to_owned())
    };
    let sha256 = text("SHA256")?;
    ensure!(digest::is_digest(&sha256), "apt describes {file} with the SHA256 {sha256:?}");
    Ok(Package {
        name: text("Package")?,
        version: text("Version")?,
        file: file.to_owned(),
        url: url.to_owned(),
        sha256,
        fields: without_file_name(stanza),
    })
}

/// The stanzas by the last part of `Filename`: of two suites that have the same package there are two.
fn stanzas(available: &str) -> HashMap<&str, Vec<&str>> {
    let mut found: HashMap<&str, Vec<&str>> = HashMap::new();
    for stanza in available.split("\n\n").filter(|stanza| !stanza.trim().is_empty()) {
        if let Some(name) = field(stanza, "Filename") {
            found.entry(name.rsplit('/').next().unwrap_or(name)).or_default().push(stanza);
        }
    }
    found
}

fn field<'a>(stanza: &'a str, name: &str) -> Option<&'a str> {
    stanza.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// The stanza, each field with its further lines, but for where the distribution has the file.
fn without_file_name(stanza: &str) -> String {
    let mut text = String::new();
    for line in stanza.lines().filter(|line| !line.is_empty() && !line.starts_with("Filename:")) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// A URL without its percent-encoding.
fn decoded(url: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(url.len());
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(digits.with_context(|| format!("{url} is no URL: % is followed by no two hexadecimal digits"))?);
        rest = &after[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).with_context(|| format!("{url} is no URL"))
}

/// What there is of a distribution in the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Distribution {
    /// `sources.list` by architecture: lines of apt. `{keyring}` is filled in.
    pub sources: BTreeMap<String, Vec<String>>,
    /// The distribution's own keys, in the package of that name.
    pub keyring: Keyring,
    /// What machines install, for whatever they are.
    pub packages: Vec<String>,
}

/// Keys that a distribution signs its lists with.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keyring {
    /// Its path, where its package is installed.
    pub path: String,
    /// The package that brings it.
    pub package: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const URIS: &str = "Reading package lists...
'http://deb.example/debian/pool/main/x/xz/liblzma5_5.4.1-1%2bdeb12u2_amd64.deb' liblzma5_5.4.1-1+deb12u2_amd64.deb 4 MD5Sum:0
'http://deb.example/debian/pool/main/h/haproxy/haproxy_2.6-1_amd64.deb' haproxy_2.6-1_amd64.deb 4 MD5Sum:0
";

    fn available(digest: &str) -> String {
        let stanza = |name: &str, version: &str, path: &str, digit: &str| {
            format!(
                "Package: {name}\nVersion: {version}\nArchitecture: amd64\nDepends: libc6\n (>= 2)\nFilename: {path}\n\
                 Size: 4\nSHA256: {}\n\n",
                digit.repeat(64)
            )
        };
        [
            stanza("liblzma5", "5.4.1-1+deb12u2", "pool/updates/x/xz/liblzma5_5.4.1-1+deb12u2_amd64.deb", "c"),
            stanza("liblzma5", "5.4.1-1+deb12u2", "pool/main/x/xz/liblzma5_5.4.1-1+deb12u2_amd64.deb", "b"),
            stanza("haproxy", "2.6-1", "pool/main/h/haproxy/haproxy_2.6-1_amd64.deb", digest),
        ]
        .concat()
    }

    #[test]
    fn what_apt_would_download_is_described_by_the_signed_list() {
        let packages = read(URIS, &available("a")).unwrap();
        let [lzma, haproxy] = &packages[..] else { panic!("{packages:?}") };
        assert_eq!((lzma.name.as_str(), lzma.version.as_str()), ("liblzma5", "5.4.1-1+deb12u2"));
        assert_eq!(
            (lzma.file.as_str(), lzma.sha256.as_str()),
            ("liblzma5_5.4.1-1+deb12u2_amd64.deb", &*"b".repeat(64))
        );
        assert_eq!(haproxy.url, "http://deb.example/debian/pool/main/h/haproxy/haproxy_2.6-1_amd64.deb");
    }

    #[test]
    fn the_list_is_sorted_and_names_files_beside_it() {
        let list = list(&read(URIS, &available("a")).unwrap());
        let names: Vec<&str> = list.lines().filter_map(|line| line.strip_prefix("Package: ")).collect();
        assert_eq!(names, ["haproxy", "liblzma5"]);
        assert!(list.contains("Depends: libc6\n (>= 2)\n"), "{list}");
        assert!(list.contains("Filename: liblzma5_5.4.1-1+deb12u2_amd64.deb\n\n"), "{list}");
        assert_eq!(list.matches("Filename:").count(), 2);
    }

    #[test]
    fn the_release_has_the_lists_digest() {
        let repository = Repository { os: "debian12", arch: "arm64" };
        let release = repository.release("Thu, 26 Nov 2026 10:00:00 UTC", "Package: a\n");
        let digest = digest::of_bytes(b"Package: a\n");
        assert!(release.ends_with(&format!("SHA256:\n {digest} 11 Packages\n")), "{release}");
        assert!(release.contains("\nArchitectures: arm64\nAcquire-By-Hash: yes\nDate: Thu, 26 Nov 2026"), "{release}");
        assert_eq!(repository.list(&digest), format!("os/debian12/arm64/by-hash/SHA256/{digest}"));
    }

    #[test]
    fn a_package_that_the_list_names_and_the_index_has_not_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository { os: "debian12", arch: "amd64" };
        let packages = read(URIS, &available("a")).unwrap();
        let text = list(&packages);
        let path = repository.list(&digest::of_bytes(text.as_bytes()));
        fs::create_dir_all(dir.path().join(&path).parent().unwrap()).unwrap();
        fs::write(dir.path().join(&path), &text).unwrap();
        let artifact = |name: &str, kind: Kind, path: &str, sha256: &str| {
            Artifact::new(name, kind, "1", "amd64", path, (1, sha256.to_owned())).of_repository(repository)
        };
        let lists = digest::of_bytes(text.as_bytes());
        let mut all = vec![
            artifact(LIST, Kind::Repository, &path, &lists),
            artifact(RELEASE, Kind::Repository, "os/debian12/amd64/InRelease", &"e".repeat(64)),
        ];
        let path = |package: &Package| format!("os/debian12/amd64/{}", package.file);
        all.extend(packages.iter().map(|it| artifact(&it.name, Kind::Package, &path(it), &it.sha256)));
        let mut index = Index::new();
        index.replace_repository(repository, all.clone()).unwrap();
        assert_eq!(lacking(dir.path(), &index).unwrap(), Vec::<String>::new());
        all.pop();
        index.replace_repository(repository, all).unwrap();
        let said = "machines of debian12/amd64 do not find haproxy_2.6-1_amd64.deb, which their list of packages names";
        assert_eq!(lacking(dir.path(), &index).unwrap(), [said]);
    }

    #[test]
    fn what_apt_says_otherwise_is_refused() {
        let error = read(URIS, "").unwrap_err().to_string();
        assert!(error.contains("describes no package of that file"), "{error}");
        let error = read(URIS, &available("x")).unwrap_err().to_string();
        assert!(error.contains("haproxy_2.6-1_amd64.deb with the SHA256"), "{error}");
        assert!(read("'http://x/%zz' a 1", &available("a")).is_err());
    }
}
