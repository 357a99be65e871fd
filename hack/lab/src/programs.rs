//! The programs of a cluster: which ones, which versions, from which Go modules, and where they are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cache::Cache;

pub mod go;

/// Several programs that come from one Go module and share a version.
#[derive(Debug, Clone)]
pub struct Component {
    /// Its name in the cache and, for most, in the bundle.
    pub name: &'static str,
    /// The version without a `v`.
    pub version: &'static str,
    /// The folder under `hack/programs` whose go.mod pins it.
    pub folder: &'static str,
    /// The Go module that the version is of.
    pub module: &'static str,
    /// The programs: name and Go package.
    pub programs: &'static [(&'static str, &'static str)],
    /// Whether it is linked statically against C libraries.
    pub cgo: bool,
    /// Go build tags.
    pub tags: &'static str,
    /// Go variables set at link time; `{v}` is the version, `{major}` and `{minor}` its parts.
    pub variables: &'static [(&'static str, &'static str)],
    /// The minor of Kubernetes that it goes with in place of what goes with all others.
    pub minor: Option<&'static str>,
}

/// What the lab runs and its bundle holds.
pub const COMPONENTS: &[Component] = &[
    etcd("3.6.16", "etcd-3.6", None),
    Component {
        name: "containerd",
        version: "2.4.2",
        folder: "containerd-2.4",
        module: "github.com/containerd/containerd/v2",
        programs: &[
            ("containerd", "github.com/containerd/containerd/v2/cmd/containerd"),
            ("containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"),
            ("ctr", "github.com/containerd/containerd/v2/cmd/ctr"),
        ],
        cgo: false,
        tags: "",
        variables: &[
            ("github.com/containerd/containerd/v2/version.Version", "v{v}"),
            ("github.com/containerd/containerd/v2/version.Revision", "unknown"),
            ("github.com/containerd/containerd/v2/version.Package", "github.com/containerd/containerd/v2"),
        ],
        minor: None,
    },
    Component {
        name: "runc",
        version: "1.5.2",
        folder: "runc-1.5",
        module: "github.com/opencontainers/runc",
        programs: &[("runc", "github.com/opencontainers/runc")],
        cgo: true,
        tags: "seccomp netgo osusergo",
        // Its version comes with its source, as an embedded file.
        variables: &[("main.gitCommit", "unknown")],
        minor: None,
    },
    Component {
        name: "cni-plugins",
        version: "1.9.1",
        folder: "cni-plugins-1.9",
        module: "github.com/containernetworking/plugins",
        programs: &[
            ("bandwidth", "github.com/containernetworking/plugins/plugins/meta/bandwidth"),
            ("bridge", "github.com/containernetworking/plugins/plugins/main/bridge"),
            ("firewall", "github.com/containernetworking/plugins/plugins/meta/firewall"),
            ("host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local"),
            ("loopback", "github.com/containernetworking/plugins/plugins/main/loopback"),
            ("portmap", "github.com/containernetworking/plugins/plugins/meta/portmap"),
            ("ptp", "github.com/containernetworking/plugins/plugins/main/ptp"),
            ("tuning", "github.com/containernetworking/plugins/plugins/meta/tuning"),
        ],
        cgo: false,
        tags: "",
        variables: &[("github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion", "v{v}")],
        minor: None,
    },
    Component {
        name: "coredns",
        version: "1.14.7",
        folder: "coredns-1.14",
        module: "github.com/coredns/coredns",
        programs: &[("coredns", "github.com/coredns/coredns")],
        cgo: false,
        tags: "",
        variables: &[("github.com/coredns/coredns/coremain.GitCommit", "unknown")],
        minor: None,
    },
    kubernetes("1.35.4", "kubernetes-1.35"),
    // An S3 server, for backups. It is in no bundle: users have their own.
    Component {
        name: "versitygw",
        version: "1.8.0",
        folder: "versitygw-1.8",
        module: "github.com/versity/versitygw",
        programs: &[("versitygw", "github.com/versity/versitygw/cmd/versitygw")],
        cgo: false,
        tags: "",
        variables: &[("main.Version", "v{v}")],
        minor: None,
    },
    // What charts are installed with. It is in no bundle: the executor's image has it.
    Component {
        name: "helm",
        version: "4.3.1",
        folder: "helm-4",
        module: "helm.sh/helm/v4",
        programs: &[("helm", "helm.sh/helm/v4/cmd/helm")],
        cgo: false,
        tags: "",
        variables: &[("helm.sh/helm/v4/internal/version.version", "v{v}")],
        minor: None,
    },
];

/// What `make backups` needs beside them: another S3 server, since what one accepts another may not.
pub const STORAGES: &[Component] = &[Component {
    name: "seaweedfs",
    // Its releases are no versions of a Go module.
    version: "0.0.0-20261109003541-7506e5f91cd6",
    folder: "seaweedfs-4",
    module: "github.com/seaweedfs/seaweedfs",
    programs: &[("weed", "github.com/seaweedfs/seaweedfs/weed")],
    cgo: false,
    tags: "",
    variables: &[],
    minor: None,
}];

/// What `make addons` needs beside them: what clusters get as an add-on. It is in no bundle.
pub const ADDONS: &[Component] = &[Component {
    name: "metrics-server",
    version: "0.9.0",
    folder: "metrics-server-0.9",
    module: "sigs.k8s.io/metrics-server",
    programs: &[("metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server")],
    cgo: false,
    tags: "",
    variables: &[("k8s.io/client-go/pkg/version.gitVersion", "v{v}")],
    minor: None,
}];

/// What a test of an upgrade needs beside them: an older minor of Kubernetes, and the etcd that goes with it.
pub const UPGRADES: &[Component] =
    &[kubernetes("1.34.4", "kubernetes-1.34"), etcd("3.6.14", "etcd-3.6.14", Some("1.34"))];

/// What `make changes` needs beside those: a patch of that minor, and the minor after the lab's.
pub const CHANGES: &[Component] = &[kubernetes("1.34.3", "kubernetes-1.34.3"), kubernetes("1.36.3", "kubernetes-1.36")];

const fn etcd(version: &'static str, folder: &'static str, minor: Option<&'static str>) -> Component {
    Component {
        name: "etcd",
        version,
        folder,
        module: "go.etcd.io/etcd/server/v3",
        programs: &[
            ("etcd", "go.etcd.io/etcd/server/v3"),
            ("etcdctl", "go.etcd.io/etcd/etcdctl/v3"),
            ("etcdutl", "go.etcd.io/etcd/etcdutl/v3"),
        ],
        cgo: false,
        tags: "",
        variables: &[("go.etcd.io/etcd/api/v3/version.GitSHA", "unknown")],
        minor,
    }
}

const fn kubernetes(version: &'static str, folder: &'static str) -> Component {
    Component {
        name: "kubernetes",
        version,
        folder,
        module: "k8s.io/kubernetes",
        programs: &[
            ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
            ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
            ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
            ("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
            ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
            ("kubeadm", "k8s.io/kubernetes/cmd/kubeadm"),
            ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
        ],
        cgo: false,
        tags: "",
        // kubeadm decides by its own version what it may install.
        variables: &[
            ("k8s.io/component-base/version.gitVersion", "v{v}"),
            ("k8s.io/component-base/version.gitMajor", "{major}"),
            ("k8s.io/component-base/version.gitMinor", "{minor}"),
            ("k8s.io/component-base/version.gitTreeState", "clean"),
            ("k8s.io/component-base/version.gitCommit", "unknown"),
        ],
        // It is one.
        minor: None,
    }
}

fn all() -> impl Iterator<Item = &'static Component> {
    COMPONENTS.iter().chain(STORAGES).chain(ADDONS).chain(UPGRADES).chain(CHANGES)
}

/// The first component of this name: Kubernetes is the minor that the lab itself runs.
pub fn component(name: &str) -> Result<&'static Component> {
    all().find(|it| it.name == name).with_context(|| format!("no component is named {name}"))
}

/// Where programs are: given ones before built ones.
#[derive(Debug, Clone)]
pub struct Programs {
    given: Option<PathBuf>,
    built: PathBuf,
}

impl Programs {
    /// The cache's programs, with those of the directory `CLUSTERWRIGHT_PROGRAMS` in their place.
    pub fn from_env(cache: &Cache) -> Self {
        let given = std::env::var_os("CLUSTERWRIGHT_PROGRAMS").filter(|value| !value.is_empty());
        Self::new(given.map(PathBuf::from), cache.programs())
    }

    /// Programs of `given` where it has the component, else of `built`.
    pub fn new(given: Option<PathBuf>, built: PathBuf) -> Self {
        Self { given, built }
    }

    /// The directory of a component's programs, there or not.
    pub fn bin(&self, component: &Component) -> PathBuf {
        let place = |root: &Path| root.join(component.name).join(component.version).join("bin");
        match self.given.as_deref().map(place) {
            Some(given) if given.is_dir() => given,
            _ => place(&self.built),
        }
    }

    /// The path of one program of a component, there or not.
    pub fn path(&self, component: &Component, program: &str) -> PathBuf {
        self.bin(component).join(program)
    }

    /// Versions of a component that is only ever given, each with its programs by name and path; sorted.
    pub fn given(&self, component: &str) -> Vec<(String, Vec<(String, PathBuf)>)> {
        let entries = |path: &Path| {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            let mut entries: Vec<_> =
                entries.map(|it| (it.file_name().to_string_lossy().into_owned(), it.path())).collect();
            entries.sort();
            entries
        };
        let Some(given) = &self.given else { return Vec::new() };
        let versions = entries(&given.join(component));
        let programs = versions.into_iter().map(|(version, path)| (version, entries(&path.join("bin"))));
        programs.filter(|(_, programs)| !programs.is_empty()).collect()
    }

    /// Whether all programs of a component are there.
    pub fn has(&self, component: &Component) -> bool {
        component.programs.iter().all(|(name, _)| self.path(component, name).is_file())
    }

    /// The path of a program of the older minor of Kubernetes, which must be there.
    pub fn find_older(&self, program: &str) -> Result<PathBuf> {
        let older = UPGRADES.iter().find(|it| it.name == "kubernetes").context("no older minor is known")?;
        must_be_there(self.path(older, program), "upgrades")
    }

    /// The path of a program that must be there, in the version that the lab runs.
    pub fn find(&self, program: &str) -> Result<PathBuf> {
        let owner = all()
            .find(|it| it.programs.iter().any(|(name, _)| *name == program))
            .with_context(|| format!("no component has a program {program}"))?;
        let path = self.path(owner, program);
        let is_of = |components: &[Component]| components.iter().any(|it| it.name == owner.name);
        let built_by = match (is_of(STORAGES), is_of(ADDONS)) {
            (true, _) => "storages",
            (_, true) => "addons",
            _ => "programs",
        };
        must_be_there(path, built_by)
    }
}

fn must_be_there(path: PathBuf, built_by: &str) -> Result<PathBuf> {
    let missing = || format!("{} is missing: run `lab build {built_by}`", path.display());
    path.is_file().then_some(()).with_context(missing)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::project;

    #[test]
    fn the_table_names_the_versions_that_go_mod_pins() {
        for component in all() {
            let path = project::path("hack/programs").join(component.folder).join("go.mod");
            let go_mod = fs::read_to_string(&path).unwrap();
            let pinned = format!("{} v{} ", component.module, component.version);
            assert!(
                go_mod
                    .lines()
                    .any(|line| format!("{line} ").trim_start().trim_start_matches("require ").starts_with(&pinned)),
                "{} does not pin {pinned}",
                path.display()
            );
        }
    }

    #[test]
    fn the_table_has_the_programs_that_go_mod_lists_as_tools() {
        for component in all() {
            let path = project::path("hack/programs").join(component.folder).join("go.mod");
            let go_mod = fs::read_to_string(&path).unwrap();
            for (_, package) in component.programs {
                assert!(
                    go_mod.lines().any(|line| line.trim().trim_start_matches("tool ") == *package),
                    "{} lacks {package}",
                    path.display()
                );
            }
        }
    }

    #[test]
    fn the_lab_runs_the_newer_kubernetes() {
        assert_eq!(component("kubernetes").unwrap().version, "1.35.4");
        let programs = Programs::new(None, PathBuf::from("/cache"));
        let error = programs.find("kubeadm").unwrap_err().to_string();
        assert!(error.contains("/cache/kubernetes/1.35.4/bin/kubeadm"), "{error}");
    }

    #[test]
    fn upgrades_are_to_a_patch_and_to_the_minors_around_the_labs() {
        let minor = |version: &str| version.split('.').nth(1).unwrap().parse::<u32>().unwrap();
        let ours = minor(component("kubernetes").unwrap().version);
        let minors = |all: &[Component]| -> Vec<u32> {
            all.iter().filter(|it| it.name == "kubernetes").map(|it| minor(it.version)).collect()
        };
        assert_eq!((minors(UPGRADES), minors(CHANGES)), (vec![ours - 1], vec![ours - 1, ours + 1]));
    }

    #[test]
    fn given_programs_take_the_place_of_built_ones_component_by_component() {
        let dir = tempfile::tempdir().unwrap();
        let given = dir.path().join("given");
        fs::create_dir_all(given.join("runc/1.5.2/bin")).unwrap();
        let programs = Programs::new(Some(given.clone()), dir.path().join("built"));
        assert_eq!(programs.path(component("runc").unwrap(), "runc"), given.join("runc/1.5.2/bin/runc"));
        assert!(programs.bin(component("etcd").unwrap()).starts_with(dir.path().join("built")));
    }

    #[test]
    fn a_missing_program_names_the_command_that_builds_it() {
        let programs = Programs::new(None, PathBuf::from("/nowhere"));
        let error = programs.find("kubectl").unwrap_err().to_string();
        assert!(error.contains("kubectl") && error.contains("lab build programs"), "{error}");
        let error = programs.find("weed").unwrap_err().to_string();
        assert!(error.contains("weed") && error.contains("lab build storages"), "{error}");
    }
}
