//! The machine's processes, as `/proc` shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use guard::exec_race::{EXEC, race_window};
use guard::process_owner::{Owner, Seen, Worker, command_of, owner_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::state::Directory;

/// How soon a process that shows nothing is looked at again.
const AGAIN: Duration = Duration::from_millis(1);

/// Looks again and again at all processes.
pub struct Watch<'a> {
    directory: &'a Directory,
    /// Those that show nothing for good, with their programs: they are waited for once.
    silent: BTreeSet<(i32, PathBuf)>,
}

impl<'a> Watch<'a> {
    /// A watch for processes of this directory's guard.
    pub fn new(directory: &'a Directory) -> Self {
        Self { directory, silent: BTreeSet::new() }
    }

    /// Every process that belongs to a fence, but for this one and those that it was started by: a run does not begin
    /// by ending the connection that it came through. One that shows nothing now is waited for until it does: it may be
    /// one of them in the middle of an exec.
    pub fn running(&mut self) -> Vec<(Owner, Worker)> {
        let own = lineage();
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut left: Vec<i32> =
            all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid| !own.contains(pid)).collect();
        let mut found = Vec::new();
        let mut shown = BTreeMap::new();
        loop {
            left.retain(|pid| {
                let Some(seen) = look(*pid) else { return false };
                let owner = owner_of(&seen, self.directory.path());
                found.extend(owner.map(|owner| (owner, worker(&seen, owner))));
                owner.is_none() && self.is_in_exec_race(seen, &mut shown)
            });
            if left.is_empty() {
                return found;
            }
            thread::sleep(AGAIN);
        }
    }

    /// `shown`: what was shown by each process that is waited for.
    fn is_in_exec_race(&mut self, seen: Seen, shown: &mut BTreeMap<i32, Shown>) -> bool {
        let Some(longest) = race_window(&seen, self.directory.path()) else {
            return false;
        };
        let process = (seen.pid, seen.executable);
        if self.silent.contains(&process) {
            return false;
        }
        let now = Instant::now();
        let before = shown.entry(seen.pid).or_insert(Shown { longest, since: now, first: now });
        if before.longest != longest {
            *before = Shown { longest, since: now, ..*before };
        }
        let racing = now.duration_since(before.since) < longest && now.duration_since(before.first) < EXEC;
        if !racing {
            self.silent.insert(process);
        }
        racing
    }
}

/// A process that is waited for, since when it shows what it does, and since when nothing of its owner.
struct Shown {
    longest: Duration,
    since: Instant,
    first: Instant,
}

fn worker(seen: &Seen, owner: Owner) -> Worker {
    Worker { pid: seen.pid, command: command_of(seen), fence: owner.fence.to_string() }
}

/// Sends a signal; a process that is gone by now needs none.
pub fn signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

/// A process as `/proc` shows it; `None` of one that has ended (it may wait to be collected for ever) and of the
/// kernel's own: these have no program.
fn look(pid: i32) -> Option<Seen> {
    let place = PathBuf::from(format!("/proc/{pid}"));
    let executable = match fs::read_link(place.join("exe")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        read => read.unwrap_or_default(),
    };
    Some(Seen {
        pid,
        executable,
        arguments: fs::read(place.join("cmdline")).unwrap_or_default(),
        environment: fs::read(place.join("environ")).unwrap_or_default(),
        cgroups: fs::read_to_string(place.join("cgroup")).unwrap_or_default(),
        contained: is_contained(&place),
        sleeping: stat_of(pid).is_some_and(|stat| stat.first().is_some_and(|state| state == "S")),
    })
}

fn is_contained(place: &Path) -> bool {
    let space = |process: &Path| fs::read_link(process.join("ns/pid")).ok();
    match (space(place), space(Path::new("/proc/self"))) {
        (Some(its), Some(own)) => its != own,
        _ => false,
    }
}

/// This process, its parent, and so on.
pub fn lineage() -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let mut lineage = vec![own];
    let mut pid = own;
    while let Some(parent) = parent_of(pid).filter(|parent| *parent > 0 && !lineage.contains(parent)) {
        lineage.push(parent);
        pid = parent;
    }
    lineage
}

fn parent_of(pid: i32) -> Option<i32> {
    stat_of(pid)?.get(1)?.parse().ok()
}

/// The fields of `/proc/PID/stat` from its third on: STATE PARENT ...
fn stat_of(pid: i32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // NUMBER (NAME) STATE PARENT ...: the name may hold brackets and spaces.
    Some(stat.rsplit(')').next()?.split_whitespace().map(str::to_owned).collect())
}
