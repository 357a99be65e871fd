//! A directory with a guard in it, and what it says.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use guard::fence::FenceState;
use guard::log_audit::{self, Report};
use guard::record::{Event, Record};
use serde_json::Value;
use tempfile::TempDir;

pub struct Place {
    directory: TempDir,
    mounted: bool,
}

impl Place {
    /// Nothing if this is not root.
    pub fn new() -> Option<Self> {
        Self::made(|_| false)
    }

    /// On a file system of its own, of so many MiB.
    pub fn small(mebibytes: usize) -> Option<Self> {
        Self::made(|path| {
            let size = format!("size={mebibytes}m");
            succeeds(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path));
            true
        })
    }

    fn made(prepare: impl FnOnce(&Path) -> bool) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("this test needs root, and promises nothing without");
            return None;
        }
        let directory = TempDir::new().unwrap();
        let mounted = prepare(directory.path());
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        let place = Self { directory, mounted };
        place.install();
        Some(place)
    }

    /// Puts the program into place, as the executor does.
    pub fn install(&self) {
        let draft = self.file("guard.draft");
        // By another process: a file that this one writes cannot be run while any other test starts a program.
        succeeds(Command::new("cp").arg(env!("CARGO_BIN_EXE_guard")).arg(&draft));
        fs::rename(draft, self.file("guard")).unwrap();
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn guard(&self, verb: &str) -> Command {
        let mut guard = Command::new(self.file("guard"));
        guard.arg(verb);
        guard
    }

    pub fn begin(&self, epoch: i64, token: i64) -> Command {
        let mut begin = self.guard("begin");
        begin.args(["--epoch", &epoch.to_string(), "--token", &token.to_string()]);
        begin.args(["--cluster", "a", "--host", "h", "--run", &format!("ns/r{token}")]);
        begin.args(["--attempt", "0", "--steps", "etcd,node"]);
        begin
    }

    /// Begins, and gives the answer.
    pub fn begun(&self, epoch: i64, token: i64) -> Value {
        answer(&mut self.begin(epoch, token))
    }

    pub fn end(&self, epoch: i64, token: i64) -> Command {
        let mut end = self.guard("end");
        end.args(["--epoch", &epoch.to_string(), "--token", &token.to_string()]);
        end
    }

    /// A command of the step `etcd`.
    pub fn shell(&self, epoch: i64, token: i64, command: &str) -> Command {
        let mut shell = Command::new(self.file(&format!("runs/{epoch}-{token}/etcd")));
        shell.args(["-c", command]);
        shell
    }

    /// The same, with every signal as it is by default: who runs these tests may have been told to ignore some.
    pub fn hearing_shell(&self, epoch: i64, token: i64, command: &str) -> Command {
        let mut shell = Command::new("env");
        shell.arg("--default-signal");
        shell.arg(self.file(&format!("runs/{epoch}-{token}/etcd")));
        shell.args(["-c", command]);
        shell
    }

    /// Takes the lock's name away from the command that holds it: the next one is at work beside it.
    pub fn unlock(&self, epoch: i64, token: i64) {
        fs::remove_file(self.file(&format!("runs/{epoch}-{token}/command.lock"))).unwrap();
    }

    pub fn highest(&self) -> Value {
        answer(&mut self.guard("read"))
    }

    /// The audit of the log; it finds no violation.
    pub fn report(&self) -> Report {
        let read = |name| fs::read_to_string(self.file(name)).unwrap_or_default();
        let report = log_audit::read(&read("log.1"), &read("log"));
        assert_eq!(report.violations, [], "{}{}", read("log.1"), read("log"));
        report
    }

    pub fn records(&self) -> Vec<Record> {
        let log = fs::read_to_string(self.file("log")).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn has(&self, event: Event) -> bool {
        self.records().iter().any(|record| record.event == event)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Whatever a test left at work when it failed.
        if let Ok(text) = fs::read_to_string(self.file("fence"))
            && let Ok(highest) = serde_json::from_str::<FenceState>(&text)
        {
            let mut end = self.end(highest.fence.epoch, highest.fence.token);
            let _ = end.args(["--wait-seconds", "0", "--kill-after-seconds", "0"]).output();
        }
        if self.mounted {
            let _ = Command::new("umount").arg("--lazy").arg(self.directory.path()).status();
        }
    }
}

pub fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", err(&output));
}

pub fn answer(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", err(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Refused by the guard, in its words, with nothing else said.
pub fn assert_refused(output: &Output) {
    assert_eq!(output.status.code(), Some(79), "{}", err(output));
    assert!(err(output).starts_with("clusterwright-guard: refused: "), "{}", err(output));
    assert_eq!(out(output), "");
}

/// In the background, silent.
pub fn started(command: &mut Command) -> std::process::Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

pub fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
