//! The control groups of what the lab runs. Every machine starts in a group of its own, or all kubelets would share one
//! root.
//!
//! Both layouts are served: one mount a controller (version 1, the one this is tested on) and a single one (version 2).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::place::Place;

/// One group, the same path in every hierarchy.
#[derive(Debug, Clone)]
pub struct Group {
    name: String,
    directories: Vec<PathBuf>,
}

impl Group {
    /// The group of that name in a lab.
    pub fn new(place: &Place, name: &str) -> Self {
        Self::at(format!("{}/{name}", place.name()))
    }

    /// The group of everything that a lab runs.
    pub fn all(place: &Place) -> Self {
        Self::at(place.name())
    }

    fn at(name: String) -> Self {
        let roots = hierarchies(Path::new("/sys/fs/cgroup"));
        Self { directories: roots.iter().map(|root| root.join(&name)).collect(), name }
    }

    /// The path below each hierarchy's root, as a kubelet's `cgroupRoot` wants it.
    pub fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// Makes the group everywhere, with a memory limit if one is given.
    pub fn create(&self, memory_mib: Option<u32>) -> Result<()> {
        for directory in &self.directories {
            fs::create_dir_all(directory)
                .with_context(|| format!("failed to create control group {}", directory.display()))?;
            inherit_cpusets(directory)?;
        }
        if let Some(mib) = memory_mib {
            self.limit_memory(mib)?;
        }
        Ok(())
    }

    fn limit_memory(&self, mib: u32) -> Result<()> {
        let bytes = (u64::from(mib) << 20).to_string();
        for directory in &self.directories {
            for file in ["memory.limit_in_bytes", "memory.max"] {
                let path = directory.join(file);
                if path.exists() {
                    return fs::write(&path, &bytes)
                        .with_context(|| format!("failed to limit memory with {}", path.display()));
                }
            }
        }
        bail!("no memory controller in /sys/fs/cgroup");
    }

    /// The files that a process writes its pid to in order to be in the group.
    pub fn entrances(&self) -> Vec<PathBuf> {
        self.directories.iter().map(|directory| directory.join("cgroup.procs")).collect()
    }

    /// The pids in the group and all groups below it.
    pub fn pids(&self) -> Vec<i32> {
        let mut pids = Vec::new();
        for directory in &self.directories {
            for group in subtree(directory) {
                let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
                pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|pid| *pid > 0));
            }
        }
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Removes the groups below this one, which a machine that is gone has left.
    pub fn remove_children(&self) -> Result<()> {
        self.remove_all(false)
    }

    /// Removes the group and all below it. Its processes must have ended; those just killed get a moment to go.
    pub fn remove(&self) -> Result<()> {
        self.remove_all(true)
    }

    fn remove_all(&self, with_self: bool) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(5);
        for directory in &self.directories {
            for group in subtree(directory) {
                if !with_self && group == *directory {
                    continue;
                }
                while let Err(error) = fs::remove_dir(&group) {
                    if error.kind() == std::io::ErrorKind::NotFound {
                        break;
                    }
                    if Instant::now() >= until {
                        return Err(error)
                            .with_context(|| format!("failed to remove control group {}", group.display()));
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        Ok(())
    }
}

/// The roots of the hierarchies: the mount itself with version 2, each controller's directory with version 1.
fn hierarchies(mount: &Path) -> Vec<PathBuf> {
    if mount.join("cgroup.controllers").exists() {
        return vec![mount.to_owned()];
    }
    let mut roots: Vec<PathBuf> = fs::read_dir(mount)
        .into_iter()
        .flatten()
        .flatten()
        // Debian links `cpu` to `cpu,cpuacct`: one entry a hierarchy is enough.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| path.join("cgroup.procs").exists())
        .collect();
    roots.sort();
    roots
}

/// The directory and all below it, the deepest first.
fn subtree(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(subtree(&entry.path()));
        }
    }
    if directory.exists() {
        found.push(directory.to_owned());
    }
    found
}

/// A new group of version 1 has no processor until it is told which: each level takes its parent's.
fn inherit_cpusets(directory: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let mut levels: Vec<&Path> =
            directory.ancestors().take_while(|level| level.join("cgroup.clone_children").exists()).collect();
        levels.reverse();
        for pair in levels.windows(2) {
            let (parent, child) = (pair[0].join(file), pair[1].join(file));
            if !child.exists() || !fs::read_to_string(&child).unwrap_or_default().trim().is_empty() {
                continue;
            }
            let value = fs::read_to_string(&parent).with_context(|| format!("failed to read {}", parent.display()))?;
            fs::write(&child, value.trim()).with_context(|| format!("failed to write {}", child.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_controller_of_version_1_is_a_hierarchy_and_links_are_not() {
        let mount = tempfile::tempdir().unwrap();
        for name in ["memory", "cpu,cpuacct", "empty"] {
            fs::create_dir(mount.path().join(name)).unwrap();
        }
        fs::write(mount.path().join("memory/cgroup.procs"), "").unwrap();
        fs::write(mount.path().join("cpu,cpuacct/cgroup.procs"), "").unwrap();
        std::os::unix::fs::symlink("cpu,cpuacct", mount.path().join("cpu")).unwrap();
        let found = hierarchies(mount.path());
        assert_eq!(found, [mount.path().join("cpu,cpuacct"), mount.path().join("memory")]);
    }

    #[test]
    fn version_2_is_one_hierarchy() {
        let mount = tempfile::tempdir().unwrap();
        fs::write(mount.path().join("cgroup.controllers"), "memory").unwrap();
        assert_eq!(hierarchies(mount.path()), [mount.path()]);
    }

    #[test]
    fn groups_are_removed_from_the_leaves_up() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        let order = subtree(root.path());
        assert_eq!(order, [root.path().join("a/b"), root.path().join("a"), root.path().to_owned()]);
    }
}
