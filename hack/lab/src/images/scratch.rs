//! Images made of nothing but one program and what it needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use bundle::tree::Tree;

use super::archive::{Settings, is_fresh, write};
use super::{BUSYBOX, NEWER_PAUSE, PAUSE, Reference};
use crate::cache::Cache;
use crate::programs::{Component, Programs};
use crate::progress::Progress;
use crate::rootfs::Release;
use crate::{cargo, rootfs};

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One image to be made.
struct Scratch {
    reference: Reference,
    settings: Settings,
    tree: Tree,
}

/// The images that clusters of these components are made of.
pub fn references(components: &[Component]) -> Vec<Reference> {
    let mut references = vec![PAUSE, BUSYBOX];
    for component in components {
        match component.name {
            "coredns" => references.push(coredns_reference(component)),
            "metrics-server" => references.push(metrics_server_reference(component)),
            "kubernetes" => {
                references.extend(KUBERNETES.map(|(name, _)| kubernetes_reference(component, name)));
                references.extend(newer_pause(component));
            }
            _ => {}
        }
    }
    references
}

/// Makes the archives of these images whose programs have changed.
pub fn build(components: &[Component], cache: &Cache, programs: &Programs, progress: &Progress) -> Result<()> {
    let pause = cargo::pause(cache, progress)?;
    let machine = rootfs::machine::find(cache, Release::Debian12)?;
    let mut images = vec![pause_image(PAUSE, pause.clone()), busybox(&machine)?];
    for component in components {
        match component.name {
            "coredns" => images.push(coredns(component, programs)),
            "metrics-server" => images.push(metrics_server(component, programs)),
            "kubernetes" => {
                images.extend(kubernetes(component, programs, &machine)?);
                images.extend(newer_pause(component).map(|reference| pause_image(reference, pause.clone())));
            }
            _ => {}
        }
    }
    let mut stale = Vec::new();
    for image in images {
        let recipe = format!("{}\n{}", serde_json::to_string(&image.settings)?, image.tree.fingerprint()?);
        if !is_fresh(&image.reference.archive(cache), &recipe) {
            stale.push((image, recipe));
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    let task = progress.counted("images", stale.len());
    for (Scratch { reference, settings, tree }, recipe) in stale {
        task.at(&reference.to_string());
        write(&reference.archive(cache), &reference, &settings, &[], &tree, &recipe)?;
        task.advance();
    }
    task.done();
    Ok(())
}

fn base() -> Tree {
    let mut tree = Tree::new();
    tree.directory("/etc", 0o755, 0);
    tree.text("/etc/passwd", "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n");
    tree.text("/etc/group", "root:x:0:\nnobody:x:65534:\n");
    tree.directory("/tmp", 0o1777, 0);
    tree
}

/// The pause image that a Kubernetes of another minor expects.
fn newer_pause(component: &Component) -> Option<Reference> {
    let (reference, minor) = NEWER_PAUSE;
    component.version.starts_with(minor).then_some(reference)
}

fn pause_image(reference: Reference, program: PathBuf) -> Scratch {
    let mut tree = Tree::new();
    tree.program("/pause", program);
    let settings = Settings { entrypoint: vec!["/pause".into()], user: "65535:65535".into(), ..Settings::default() };
    Scratch { reference, settings, tree }
}

fn coredns_reference(component: &Component) -> Reference {
    Reference { name: "registry.k8s.io/coredns/coredns", version: format!("v{}", component.version).into() }
}

fn coredns(component: &Component, programs: &Programs) -> Scratch {
    let mut tree = base();
    tree.program("/coredns", programs.path(component, "coredns"));
    let settings =
        Settings { entrypoint: vec!["/coredns".into()], environment: vec![PATH.into()], ..Settings::default() };
    Scratch { reference: coredns_reference(component), settings, tree }
}

fn metrics_server_reference(component: &Component) -> Reference {
    Reference {
        name: "registry.k8s.io/metrics-server/metrics-server",
        version: format!("v{}", component.version).into(),
    }
}

fn metrics_server(component: &Component, programs: &Programs) -> Scratch {
    let mut tree = base();
    tree.program("/metrics-server", programs.path(component, "metrics-server"));
    let settings = Settings {
        entrypoint: vec!["/metrics-server".into()],
        environment: vec![PATH.into()],
        user: "65534:65534".into(),
        ..Settings::default()
    };
    Scratch { reference: metrics_server_reference(component), settings, tree }
}

fn busybox(machine: &Path) -> Result<Scratch> {
    let program = machine.join("usr/bin/busybox");
    let said = Command::new(&program)
        .arg("--list")
        .output()
        .with_context(|| format!("failed to run {}", program.display()))?;
    let mut tree = base();
    tree.directory("/bin", 0o755, 0);
    tree.program("/bin/busybox", &program);
    for applet in String::from_utf8_lossy(&said.stdout).lines().filter(|it| *it != "busybox") {
        tree.link(&format!("/bin/{applet}"), "busybox");
    }
    let settings = Settings { command: vec!["sh".into()], environment: vec![PATH.into()], ..Settings::default() };
    Ok(Scratch { reference: BUSYBOX, settings, tree })
}

/// Kubernetes' programs that run as Pods: program and image.
const KUBERNETES: [(&str, &str); 4] = [
    ("registry.k8s.io/kube-apiserver", "kube-apiserver"),
    ("registry.k8s.io/kube-controller-manager", "kube-controller-manager"),
    ("registry.k8s.io/kube-scheduler", "kube-scheduler"),
    ("registry.k8s.io/kube-proxy", "kube-proxy"),
];

fn kubernetes_reference(component: &Component, name: &'static str) -> Reference {
    Reference { name, version: format!("v{}", component.version).into() }
}

fn kubernetes(component: &Component, programs: &Programs, machine: &Path) -> Result<Vec<Scratch>> {
    KUBERNETES
        .iter()
        .map(|&(name, program)| {
            let mut tree = base();
            for directory in ["/usr", "/usr/local", "/usr/local/bin"] {
                tree.directory(directory, 0o755, 0);
            }
            tree.program(&format!("/usr/local/bin/{program}"), programs.path(component, program));
            if program == "kube-proxy" {
                packet_filter(&mut tree, machine)?;
            }
            let settings = Settings { environment: vec![PATH.into()], ..Settings::default() };
            Ok(Scratch { reference: kubernetes_reference(component, name), settings, tree })
        })
        .collect()
}

/// The programs with which kube-proxy writes its rules, from the machines' root filesystem.
fn packet_filter(tree: &mut Tree, machine: &Path) -> Result<()> {
    const NFT: &str = "/usr/sbin/xtables-nft-multi";
    let mut files: Vec<String> = [NFT, "/usr/sbin/nft", "/usr/sbin/conntrack"].map(String::from).to_vec();
    files.extend(extensions(machine)?);
    let libraries = libraries(machine, &files)?;
    let mut directories = BTreeSet::new();
    for file in files.iter().chain(&libraries) {
        let mut above: Vec<&Path> = Path::new(file).ancestors().skip(1).collect();
        above.pop();
        directories.extend(above.iter().map(|it| it.to_string_lossy().into_owned()));
    }
    for directory in &directories {
        tree.directory(directory, 0o755, 0);
    }
    for file in files.iter().chain(&libraries) {
        tree.program(file, machine.join(file.trim_start_matches('/')));
    }
    for family in ["iptables", "ip6tables"] {
        for verb in ["", "-save", "-restore"] {
            tree.link(&format!("/usr/sbin/{family}{verb}"), "xtables-nft-multi");
        }
    }
    Ok(())
}

/// The matches and targets that iptables loads by name.
fn extensions(machine: &Path) -> Result<Vec<String>> {
    let place = format!("/usr/lib/{}-linux-gnu/xtables", std::env::consts::ARCH);
    let directory = machine.join(place.trim_start_matches('/'));
    let reading = || format!("failed to read {}", directory.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&directory).with_context(reading)? {
        found.push(format!("{place}/{}", entry.with_context(reading)?.file_name().to_string_lossy()));
    }
    found.sort();
    Ok(found)
}

/// All libraries that `files` need, and the loader.
fn libraries(machine: &Path, files: &[String]) -> Result<BTreeSet<String>> {
    let said = Command::new("chroot")
        .arg(machine)
        .args(["ldd"])
        .args(files)
        .output()
        .context("failed to ask for the libraries of iptables")?;
    if !said.status.success() {
        bail!("failed to ask for the libraries of iptables: {}", String::from_utf8_lossy(&said.stderr).trim());
    }
    Ok(needed(&String::from_utf8_lossy(&said.stdout)))
}

/// The paths in `ldd`'s lines: `libmnl.so.0 => /lib/libmnl.so.0 (0x7f..)`, `/lib64/ld-linux.so.2 (0x7f..)`.
fn needed(said: &str) -> BTreeSet<String> {
    said.lines()
        .filter(|line| line.starts_with(char::is_whitespace))
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::COMPONENTS;

    #[test]
    fn ldd_lines_give_libraries_and_the_loader_but_not_the_files_asked_for() {
        let said = "/usr/sbin/nft:\n\tlinux-vdso.so.1 (0x7ffc)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n/usr/sbin/conntrack:\n\tstatically linked\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(needed(said), expected.map(String::from).into());
    }

    #[test]
    fn every_kubernetes_version_has_its_four_images() {
        let names: Vec<String> = references(COMPONENTS).iter().map(Reference::to_string).collect();
        for image in ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"] {
            assert!(names.contains(&format!("registry.k8s.io/{image}:v1.35.4")), "{names:?}");
        }
        assert!(names.contains(&"registry.k8s.io/coredns/coredns:v1.14.7".to_owned()), "{names:?}");
    }
}
