//! The fence that owns a process of the machine, by what `/proc` shows of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Fence;

/// The variable in the environment of each command of a run: its fence. Whatever a command starts inherits it.
pub const MARK: &str = "CLUSTERWRIGHT_FENCE";
/// The variable beside it: the directory of the guard that put the mark there.
pub const FENCED_BY: &str = "CLUSTERWRIGHT_FENCED_BY";

/// A process as `/proc` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub pid: i32,
    /// The program's file.
    pub executable: PathBuf,
    /// NUL after each.
    pub arguments: Vec<u8>,
    /// NUL after each.
    pub environment: Vec<u8>,
    /// A line for each hierarchy.
    pub cgroups: String,
    /// It is in a container: in another space of process numbers than this guard.
    pub contained: bool,
    /// It waits for something that a signal may interrupt. What is in the middle of an exec does not.
    pub sleeping: bool,
}

/// A process of a fence. Its arguments stay out: they may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    pub pid: i32,
    /// The first of its arguments, the program's name.
    pub command: String,
    /// EPOCH-TOKEN.
    pub fence: String,
}

/// How the guard was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Called {
    /// By the name of a step's link in a run's directory: as a shell.
    Shell { fence: Fence, step: String },
    /// By its own name.
    Guard,
}

impl Called {
    /// By the first of the arguments: `.../runs/EPOCH-TOKEN/STEP`.
    pub fn by(name: &Path) -> Self {
        let shell = || {
            let directory = name.parent()?;
            let fence = directory.file_name()?.to_str()?.parse().ok()?;
            (directory.parent()?.file_name()? == "runs").then_some(())?;
            let step = name.file_name()?.to_str()?.to_owned();
            Some(Self::Shell { fence, step })
        };
        shell().unwrap_or(Self::Guard)
    }
}

/// The fence that a process belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub fence: Fence,
    /// It is a guard that ends the fence's processes.
    pub ends: bool,
}

/// The owner of a process, where the guard lives in `directory`: by its name if it is a guard, else by the mark in
/// its environment, else by the scope that it was started in. A container may be a machine with a guard of its own, so
/// in there only the scope counts.
pub fn owner_of(seen: &Seen, directory: &Path) -> Option<Owner> {
    let owner = |fence| Owner { fence, ends: false };
    let own = || guard_owner(seen, directory).or_else(|| marked(&seen.environment, directory).map(owner));
    (!seen.contained).then(own).flatten().or_else(|| in_scope(&seen.cgroups).map(owner))
}

/// The program's name, without anything that may be secret.
pub fn command_of(seen: &Seen) -> String {
    let name = seen.arguments.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = if name.is_empty() { seen.executable.to_string_lossy() } else { String::from_utf8_lossy(name) };
    // A program may put anything there, and everything into one: `sshd: user@pts/0`.
    let name = name.split(char::is_whitespace).next().unwrap_or_default();
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}

/// A guard counts from its first moment: between its check and its child, no child has the mark yet.
fn guard_owner(seen: &Seen, directory: &Path) -> Option<Owner> {
    if seen.executable.parent() != Some(directory) {
        return None;
    }
    let arguments: Vec<&[u8]> = seen.arguments.split(|byte| *byte == 0).collect();
    match Called::by(Path::new(OsStr::from_bytes(arguments.first()?))) {
        Called::Shell { fence, .. } => Some(Owner { fence, ends: false }),
        Called::Guard => Some(Owner {
            fence: Fence { epoch: number_after(&arguments, b"--epoch")?, token: number_after(&arguments, b"--token")? },
            ends: *arguments.get(1)? == b"end",
        }),
    }
}

fn number_after(arguments: &[&[u8]], name: &[u8]) -> Option<i64> {
    let at = arguments.iter().position(|argument| *argument == name)?;
    std::str::from_utf8(arguments.get(at + 1)?).ok()?.parse().ok()
}

fn marked(environment: &[u8], directory: &Path) -> Option<Fence> {
    let value = |name: &str| {
        environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    let fence = std::str::from_utf8(value(MARK)?).ok()?.parse().ok()?;
    (value(FENCED_BY)? == directory.as_os_str().as_bytes()).then_some(fence)
}

/// The fence of the scope that is among these control groups.
pub fn in_scope(cgroups: &str) -> Option<Fence> {
    cgroups.lines().find_map(|line| {
        // Only from the top: a container's groups are somewhere below.
        let path = line.splitn(3, ':').nth(2)?;
        let scope = path.strip_prefix("/clusterwright.slice/clusterwright-")?;
        let (name, _) = scope.split_once(".scope")?;
        let (fence, _pid) = name.rsplit_once('-')?;
        fence.parse().ok()
    })
}

/// The name of the systemd scope of one command.
pub fn scope_name(fence: Fence, pid: u32) -> String {
    format!("clusterwright-{fence}-{pid}.scope")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HERE: &str = "/var/lib/clusterwright/guard";
    const FENCE: Fence = Fence { epoch: 3, token: 41 };

    fn seen() -> Seen {
        Seen {
            pid: 7,
            executable: "/usr/bin/sleep".into(),
            arguments: b"sleep\x0060\0".to_vec(),
            environment: b"HOME=/root\0".to_vec(),
            cgroups: "1:name=systemd:/system.slice/ssh.service\n0::/system.slice/ssh.service\n".into(),
            contained: false,
            sleeping: false,
        }
    }

    fn mark(directory: &str) -> Vec<u8> {
        format!("A=b\0CLUSTERWRIGHT_FENCE=3-41\0CLUSTERWRIGHT_FENCED_BY={directory}\0").into_bytes()
    }

    fn owner(change: impl FnOnce(&mut Seen)) -> Option<Fence> {
        let mut seen = seen();
        change(&mut seen);
        owner_of(&seen, Path::new(HERE)).map(|owner| owner.fence)
    }

    #[test]
    fn a_process_of_nobody_is_left_alone() {
        assert_eq!(owner(|_| ()), None);
        assert_eq!(owner(|seen| seen.environment = b"XCLUSTERWRIGHT_FENCE=3-41\0".to_vec()), None);
        assert_eq!(owner(|seen| seen.environment = b"CLUSTERWRIGHT_FENCE=3\0".to_vec()), None);
        assert_eq!(owner(|seen| seen.arguments = b"/x/runs/3-41/etcd\0-c\0".to_vec()), None);
        assert_eq!(owner(|seen| seen.cgroups = "0::/clusterwright.slice/clusterwright-x.scope\n".into()), None);
    }

    #[test]
    fn what_inherited_the_mark_is_at_work() {
        assert_eq!(owner(|seen| seen.environment = mark(HERE)), Some(FENCE));
    }

    #[test]
    fn the_work_of_another_guard_is_left_alone() {
        assert_eq!(owner(|seen| seen.environment = mark("/tmp/other")), None);
        let in_a_container = owner(|seen| {
            seen.environment = mark(HERE);
            seen.contained = true;
        });
        assert_eq!(in_a_container, None);
        let below = format!("0::/machine.slice/m.scope/clusterwright.slice/{}\n", scope_name(FENCE, 99));
        assert_eq!(owner(|seen| seen.cgroups = below), None);
    }

    #[test]
    fn what_cleared_its_environment_is_found_in_its_scope() {
        let cgroups = format!("0::/clusterwright.slice/{}\n", scope_name(FENCE, 99));
        assert_eq!(owner(|seen| seen.cgroups = cgroups), Some(FENCE));
        let v1 = format!("4:memory:/\n1:name=systemd:/clusterwright.slice/{}\n0::/\n", scope_name(FENCE, 99));
        assert_eq!(owner(|seen| seen.cgroups = v1), Some(FENCE));
    }

    #[test]
    fn a_guard_counts_before_it_has_a_child() {
        let name = format!("{HERE}/runs/3-41/etcd\0-c\0true\0");
        for executable in ["guard", "guard (deleted)"] {
            let found = owner(|seen| {
                seen.executable = Path::new(HERE).join(executable);
                seen.arguments = name.clone().into_bytes();
            });
            assert_eq!(found, Some(FENCE));
        }
    }

    #[test]
    fn a_begin_that_was_overtaken_counts() {
        let found = owner(|seen| {
            seen.executable = Path::new(HERE).join("guard");
            seen.arguments = format!("{HERE}/guard\0begin\0--epoch\x003\0--token\x0041\0").into_bytes();
        });
        assert_eq!(found, Some(FENCE));
    }

    #[test]
    fn a_guard_that_ends_a_fence_is_known_as_that() {
        let ends = |verb: &str| {
            let seen = Seen {
                executable: Path::new(HERE).join("guard"),
                arguments: format!("guard\0{verb}\0--epoch\x003\0--token\x0041\0").into_bytes(),
                ..seen()
            };
            owner_of(&seen, Path::new(HERE)).map(|owner| owner.ends)
        };
        assert_eq!((ends("end"), ends("begin"), ends("read")), (Some(true), Some(false), Some(false)));
    }

    #[test]
    fn arguments_are_never_told() {
        let mut process = seen();
        process.arguments = b"mysql --password=canary\0--password\0canary\0".to_vec();
        assert_eq!(command_of(&process), "mysql");
        process.arguments = b"\0".to_vec();
        assert_eq!(command_of(&process), "/usr/bin/sleep");
    }

    #[test]
    fn the_steps_link_makes_the_guard_a_shell() {
        let shell = Called::Shell { fence: FENCE, step: "probe-etcd".into() };
        assert_eq!(Called::by(Path::new("/x/runs/3-41/probe-etcd")), shell);
        for name in ["guard", "/x/guard", "/x/runs/guard", "/x/run/3-41/etcd", "/3-41/etcd", ""] {
            assert_eq!(Called::by(Path::new(name)), Called::Guard, "{name}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_a_process_says_of_itself_is_a_panic(
            arguments: Vec<u8>, environment: Vec<u8>, cgroups: String, own: bool, contained: bool,
        ) {
            let executable = if own { Path::new(HERE).join("guard") } else { "/bin/x".into() };
            let seen = Seen { pid: 1, executable, arguments, environment, cgroups, contained, sleeping: false };
            owner_of(&seen, Path::new(HERE));
            command_of(&seen);
        }
    }
}
