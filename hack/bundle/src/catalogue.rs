//! The catalogue: what a bundle for a version of Kubernetes is made of, and where upstream publishes it. It is the
//! folder `catalogue`: `sources.yaml`, and a file of versions for each minor.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::index::{Artifact, Index, Kind};
use crate::packages::{Distribution, Package, Repository};
use crate::place;
use crate::version::{minor, rank};

const SOURCES: &str = include_str!("../catalogue/sources.yaml");
const DISTRIBUTIONS: &str = include_str!("../catalogue/distributions.yaml");
/// Files of a catalogue that are not named for a minor.
const OTHERS: [&str; 2] = ["sources", "distributions"];
const MINORS: [(&str, &str); 3] = [
    ("1.34", include_str!("../catalogue/1.34.yaml")),
    ("1.35", include_str!("../catalogue/1.35.yaml")),
    ("1.36", include_str!("../catalogue/1.36.yaml")),
];

/// Everything that can be downloaded by name.
#[derive(Debug)]
pub struct Catalogue {
    sources: Sources,
    minors: BTreeMap<String, BTreeMap<String, String>>,
    distributions: BTreeMap<String, Distribution>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    kubernetes: BTreeMap<String, Source>,
    components: BTreeMap<String, Source>,
    /// Of Karmada control planes on machines; a catalogue of one's own may have none.
    #[serde(default)]
    karmada: Planes,
}

/// Programs of Karmada control planes on machines.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Planes {
    /// In the version of Kubernetes.
    kubernetes: BTreeMap<String, Source>,
    /// In the version of Karmada.
    karmada: BTreeMap<String, Source>,
}

/// Templates of one artifact's places.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Source {
    File {
        url: String,
        checksums: Option<String>,
    },
    Archive {
        url: String,
        checksums: Option<String>,
    },
    Image {
        from: String,
    },
    /// A program that upstream publishes in an image alone, at this path in it.
    Program {
        from: String,
        path: String,
    },
}

/// One artifact to be downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its name in the index.
    pub name: String,
    /// Its version in the index.
    pub version: String,
    /// The architecture that it is for.
    pub arch: String,
    /// Its place in the bundle.
    pub path: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where an artifact comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file over HTTPS.
    Url { kind: Kind, url: String, checksums: Option<String> },
    /// An image of a registry.
    Registry { reference: String },
    /// A program in an image of a registry, at this path in it.
    Program { reference: String, path: String },
    /// A package of a distribution, with the digest in the list that it signs.
    Package { os: String, url: String, sha256: String },
}

impl Wanted {
    /// A package of a repository.
    pub fn package(repository: Repository<'_>, package: &Package) -> Self {
        Self {
            name: package.name.clone(),
            version: package.version.clone(),
            arch: repository.arch.to_owned(),
            path: format!("{}/{}", repository.directory(), package.file),
            origin: Origin::Package {
                os: repository.os.to_owned(),
                url: package.url.clone(),
                sha256: package.sha256.clone(),
            },
        }
    }

    /// The operating system that it is for.
    pub fn os(&self) -> &str {
        if let Origin::Package { os, .. } = &self.origin { os } else { "linux" }
    }

    /// Its entry of the index, if it has one.
    pub fn known<'a>(&self, index: &'a Index) -> Option<&'a Artifact> {
        match &self.origin {
            Origin::Package { .. } => index.artifacts.iter().find(|it| it.is_in_repository() && it.path == self.path),
            _ => index.find(&self.name, &self.version, &self.arch),
        }
    }
}

impl Catalogue {
    /// The catalogue that came with this program.
    pub fn built_in() -> Result<Self> {
        let minors = MINORS.map(|(minor, text)| (minor.to_owned(), text.to_owned()));
        Self::parse(SOURCES, &minors, DISTRIBUTIONS)
    }

    /// The catalogue in a folder of the same form.
    pub fn read(folder: &Path) -> Result<Self> {
        let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()));
        let reading = || format!("failed to look through {}", folder.display());
        let mut minors = Vec::new();
        for entry in fs::read_dir(folder).with_context(reading)? {
            let path = entry.with_context(reading)?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if path.extension().is_some_and(|ending| ending == "yaml") && !OTHERS.contains(&name.as_str()) {
                minors.push((name, read(&path)?));
            }
        }
        let distributions = folder.join("distributions.yaml");
        // It may have none.
        let distributions = if distributions.exists() { read(&distributions)? } else { "{}".to_owned() };
        Self::parse(&read(&folder.join("sources.yaml"))?, &minors, &distributions)
    }

    fn parse(sources: &str, minors: &[(String, String)], distributions: &str) -> Result<Self> {
        let sources: Sources = serde_yaml::from_str(sources).context("sources.yaml cannot be read")?;
        let mut tables = BTreeMap::new();
        for (name, text) in minors {
            ensure!(minor(&format!("{name}.0")).is_some(), "{name}.yaml is not named for a minor, such as 1.35");
            let table: BTreeMap<String, String> =
                serde_yaml::from_str(text).with_context(|| format!("{name}.yaml cannot be read"))?;
            for component in table.keys() {
                ensure!(
                    sources.components.contains_key(component),
                    "{name}.yaml has {component}, of which sources.yaml has no source"
                );
            }
            tables.insert(name.clone(), table);
        }
        let distributions = serde_yaml::from_str(distributions).context("distributions.yaml cannot be read")?;
        Ok(Self { sources, minors: tables, distributions })
    }

    /// Minors of Kubernetes that there are versions for, oldest first.
    pub fn minors(&self) -> Vec<&str> {
        let mut minors: Vec<&str> = self.minors.keys().map(String::as_str).collect();
        minors.sort_by(|one, other| rank(one).cmp(&rank(other)));
        minors
    }

    /// Versions of components by name that go with a version of Kubernetes.
    pub fn components(&self, kubernetes: &str) -> Result<&BTreeMap<String, String>> {
        let Some(minor) = minor(kubernetes) else {
            bail!("{kubernetes:?} is no version of Kubernetes: give major, minor and patch, such as 1.35.4");
        };
        self.minors
            .get(&minor)
            .with_context(|| format!("the catalogue has no Kubernetes {minor}, but {}", self.minors().join(", ")))
    }

    /// All that machines of a version of Kubernetes take.
    pub fn wanted(&self, kubernetes: &str, arch: &str) -> Result<Vec<Wanted>> {
        let table = self.components(kubernetes)?;
        let mut wanted = Vec::new();
        for (name, source) in &self.sources.kubernetes {
            let image = matches!(source, Source::Image { .. });
            let version = if image { format!("v{kubernetes}") } else { kubernetes.to_owned() };
            wanted.push(source.wanted(name, &version, arch));
        }
        for (name, version) in table {
            wanted.push(self.component(name, version, arch)?);
        }
        Ok(wanted)
    }

    /// The programs of Karmada control planes on machines, of this version of Karmada and these of Kubernetes.
    pub fn planes(&self, karmada: &str, kubernetes: &[String], arch: &str) -> Result<Vec<Wanted>> {
        let Planes { kubernetes: theirs, karmada: its } = &self.sources.karmada;
        ensure!(!its.is_empty(), "the catalogue has no programs of Karmada: sources.yaml has no part karmada");
        ensure!(
            minor(karmada).is_some() && !karmada.starts_with('v'),
            "{karmada:?} is no version of Karmada: give major, minor and patch, such as 1.18.2"
        );
        let of = |sources: &BTreeMap<String, Source>, version: &str| -> Vec<Wanted> {
            sources.iter().map(|(name, source)| source.wanted(name, version, arch)).collect()
        };
        let mut wanted = of(its, karmada);
        kubernetes.iter().for_each(|version| wanted.extend(of(theirs, version)));
        Ok(wanted)
    }

    /// The distribution that machines name so.
    pub fn distribution(&self, os: &str) -> Result<&Distribution> {
        let known: Vec<&str> = self.distributions.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        self.distributions.get(os).with_context(|| format!("the catalogue has no packages of {os}, but of {known}"))
    }

    /// One component in that version.
    pub fn component(&self, name: &str, version: &str, arch: &str) -> Result<Wanted> {
        let Some(source) = self.sources.components.get(name) else {
            let known: Vec<&str> = self.sources.components.keys().map(String::as_str).collect();
            bail!("the catalogue has no component {name}, but {}", known.join(", "));
        };
        Ok(source.wanted(name, version, arch))
    }
}

impl Source {
    fn wanted(&self, name: &str, version: &str, arch: &str) -> Wanted {
        let fill = |text: &String| {
            text.replace("{version}", version.strip_prefix('v').unwrap_or(version)).replace("{arch}", arch)
        };
        let (path, origin) = match self {
            Self::Image { from } => (place::image(name, version, arch), Origin::Registry { reference: fill(from) }),
            Self::Program { from, path } => {
                let origin = Origin::Program { reference: fill(from), path: fill(path) };
                (place::file(name, version, arch, ""), origin)
            }
            Self::File { url, checksums } => {
                let origin = Origin::Url { kind: Kind::File, url: fill(url), checksums: checksums.as_ref().map(fill) };
                (place::file(name, version, arch, ""), origin)
            }
            Self::Archive { url, checksums } => {
                let ending = if url.ends_with(".tgz") { ".tgz" } else { ".tar.gz" };
                let origin =
                    Origin::Url { kind: Kind::Archive, url: fill(url), checksums: checksums.as_ref().map(fill) };
                (place::file(name, version, arch, ending), origin)
            }
        };
        Wanted { name: name.to_owned(), version: version.to_owned(), arch: arch.to_owned(), path, origin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{COMPONENTS, IMAGES, PROGRAMS};

    #[test]
    fn each_minor_has_all_that_machines_take() {
        let catalogue = Catalogue::built_in().unwrap();
        assert_eq!(catalogue.minors(), ["1.34", "1.35", "1.36"]);
        let mut expected = [COMPONENTS.as_slice(), &PROGRAMS, &IMAGES].concat();
        expected.sort_unstable();
        for minor in catalogue.minors() {
            let wanted = catalogue.wanted(&format!("{minor}.1"), "amd64").unwrap();
            let mut names: Vec<&str> = wanted.iter().map(|it| it.name.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names, expected, "{minor}");
        }
    }

    #[test]
    fn templates_are_filled_and_nothing_is_left_of_them() {
        let catalogue = Catalogue::built_in().unwrap();
        let wanted = catalogue.wanted("1.35.4", "arm64").unwrap();
        let of = |name: &str| wanted.iter().find(|it| it.name == name).unwrap();
        let texts = wanted.iter().flat_map(|it| match &it.origin {
            Origin::Url { url, checksums, .. } => vec![url.clone(), checksums.clone().unwrap()],
            Origin::Registry { reference } => vec![reference.clone()],
            Origin::Package { .. } | Origin::Program { .. } => vec![],
        });
        for text in texts {
            assert!(!text.contains('{') && !text.contains('}') && !text.contains("vv"), "{text}");
        }
        let etcd = of("etcd");
        assert_eq!(etcd.path, "files/etcd-3.6.16-linux-arm64.tar.gz");
        assert_eq!(
            etcd.origin,
            Origin::Url {
                kind: Kind::Archive,
                url: "https://github.com/etcd-io/etcd/releases/download/v3.6.16/etcd-v3.6.16-linux-arm64.tar.gz".into(),
                checksums: Some("https://github.com/etcd-io/etcd/releases/download/v3.6.16/SHA256SUMS".into()),
            }
        );
        let proxy = of("registry.k8s.io/kube-proxy");
        assert_eq!(proxy.version, "v1.35.4");
        assert_eq!(proxy.origin, Origin::Registry { reference: "registry.k8s.io/kube-proxy:v1.35.4".into() });
        let coredns = of("registry.k8s.io/coredns/coredns");
        assert_eq!(coredns.version, "v1.14.7");
        assert_eq!(coredns.origin, Origin::Registry { reference: "docker.io/coredns/coredns:1.14.7".into() });
    }

    #[test]
    fn programs_of_karmada_are_those_of_its_images_and_of_kubernetes_releases() {
        let catalogue = Catalogue::built_in().unwrap();
        let versions = ["1.35.4".to_owned(), "1.34.3".to_owned()];
        let wanted = catalogue.planes("1.18.2", &versions, "amd64").unwrap();
        let found: Vec<String> = wanted.iter().map(|it| format!("{} {}", it.name, it.version)).collect();
        let of_karmada = [
            "aggregated-apiserver",
            "controller-manager",
            "descheduler",
            "metrics-adapter",
            "scheduler",
            "search",
            "webhook",
        ];
        let mut expected: Vec<String> = of_karmada.iter().map(|name| format!("karmada-{name} 1.18.2")).collect();
        for version in &versions {
            expected.extend(["kube-apiserver", "kube-controller-manager"].map(|name| format!("{name} {version}")));
        }
        assert_eq!(found, expected);
        assert_eq!(wanted[4].path, "files/karmada-scheduler-1.18.2-linux-amd64");
        let reference = "docker.io/karmada/karmada-scheduler:v1.18.2".to_owned();
        assert_eq!(wanted[4].origin, Origin::Program { reference, path: "bin/karmada-scheduler".into() });
        let url = "https://dl.k8s.io/v1.34.3/bin/linux/amd64/kube-apiserver".to_owned();
        let checksums = Some(format!("{url}.sha256"));
        assert_eq!(wanted[9].origin, Origin::Url { kind: Kind::File, url, checksums });
        for wrong in ["v1.18.2", "1.18", ""] {
            let error = catalogue.planes(wrong, &versions, "amd64").unwrap_err().to_string();
            assert!(error.contains("such as 1.18.2"), "{error}");
        }
    }

    /// The roles' own lists, as Ansible reads them.
    #[test]
    fn the_packages_are_those_that_the_roles_install() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../executor/ansible/roles/variables/defaults/main.yml");
        let defaults: BTreeMap<String, serde_yaml::Value> =
            serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let names = |variable: &str| -> Vec<String> { serde_yaml::from_value(defaults[variable].clone()).unwrap() };
        let mut expected = [names("bootstrap_os_packages"), names("bootstrap_os_load_balancer_packages")].concat();
        expected.sort();
        let catalogue = Catalogue::built_in().unwrap();
        for (os, distribution) in &catalogue.distributions {
            assert_eq!(distribution.packages, expected, "{os}");
            for (arch, lines) in &distribution.sources {
                assert!(["amd64", "arm64"].contains(&arch.as_str()), "{os}");
                assert!(lines.iter().all(|line| line.starts_with("deb [signed-by={keyring}] http")), "{os}: {lines:?}");
            }
        }
        assert!(
            catalogue
                .distribution("debian9")
                .unwrap_err()
                .to_string()
                .ends_with("of debian12, debian13, ubuntu22.04, ubuntu24.04")
        );
    }

    #[test]
    fn what_is_not_in_the_catalogue_is_refused_with_what_there_is() {
        let catalogue = Catalogue::built_in().unwrap();
        let said = |result: Result<Vec<Wanted>>| result.unwrap_err().to_string();
        assert!(said(catalogue.wanted("1.33.1", "amd64")).ends_with("no Kubernetes 1.33, but 1.34, 1.35, 1.36"));
        assert!(said(catalogue.wanted("1.35", "amd64")).contains("such as 1.35.4"));
        let error = catalogue.component("calico", "3.30.0", "amd64").unwrap_err().to_string();
        assert!(error.contains("no component calico, but clusterwright.dev/busybox, cni-plugins"), "{error}");
    }

    #[test]
    fn a_catalogue_of_ones_own_is_read_and_checked() {
        let dir = tempfile::tempdir().unwrap();
        let sources = "kubernetes: {}\ncomponents: {runc: {kind: file, url: 'https://x/runc-{version}.{arch}'}}";
        fs::write(dir.path().join("sources.yaml"), sources).unwrap();
        fs::write(dir.path().join("1.35.yaml"), "runc: 1.5.2").unwrap();
        let wanted = Catalogue::read(dir.path()).unwrap().wanted("1.35.9", "amd64").unwrap();
        let origin = Origin::Url { kind: Kind::File, url: "https://x/runc-1.5.2.amd64".into(), checksums: None };
        assert_eq!(wanted[0].origin, origin);
        for (file, text, said) in [
            ("1.36.yaml", "etcd: 3.6.16", "1.36.yaml has etcd, of which sources.yaml has no source"),
            ("minor.yaml", "{}", "minor.yaml is not named for a minor"),
            ("sources.yaml", "kubernetes: {}\ncomponents: {a: {kind: file, uri: x}}", "sources.yaml cannot be read"),
        ] {
            fs::write(dir.path().join(file), text).unwrap();
            let error = format!("{:#}", Catalogue::read(dir.path()).unwrap_err());
            assert!(error.contains(said), "{error}");
            let _ = fs::remove_file(dir.path().join(file));
        }
    }
}
