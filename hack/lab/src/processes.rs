//! Background processes of the lab: started detached, known by a pid file, ended by that pid and no other.

mod identity;
mod pod;

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::cgroups::Group;
use crate::place::{Place, write};
use identity::GRACE;

pub use identity::Identity;
pub use pod::{command_line, of_pod};

/// A background process to be started.
pub struct Daemon {
    name: String,
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(String, OsString)>,
    group: Option<Group>,
}

impl Daemon {
    /// A process under a name that is its own in the lab.
    pub fn new(name: &str, program: impl AsRef<OsStr>) -> Self {
        Self {
            name: name.to_owned(),
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            group: None,
        }
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets one environment variable.
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((key.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts the process, and all that it starts, in this control group.
    pub fn within(mut self, group: &Group) -> Self {
        self.group = Some(group.clone());
        self
    }

    /// Starts the process; one that already runs under this name is left as it is.
    pub fn start(self, place: &Place) -> Result<Identity> {
        if let Some(running) = find(place, &self.name) {
            return Ok(running);
        }
        let log = log_file(place, &self.name);
        write(&log, "")?;
        let log =
            OpenOptions::new().append(true).open(&log).with_context(|| format!("failed to open {}", log.display()))?;
        let errors = log.try_clone().context("failed to open the log twice")?;
        let entrances = self.group.as_ref().map(Group::entrances).unwrap_or_default();
        // setsid becomes the program: the pid that is known here stays the program's.
        let mut command = Command::new("setsid");
        command.args(enter_and_run(&entrances, &self.program, &self.args));
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        let mut child = command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("failed to start {}", self.name))?;
        let pid = i32::try_from(child.id()).context("failed to read a pid")?;
        let identity = Identity::read(pid);
        // Somebody must collect its exit status as long as this process lives.
        thread::spawn(move || child.wait().ok());
        let Some(identity) = identity else {
            bail!("{} ended at once:\n{}", self.name, log_tail(place, &self.name));
        };
        let text = serde_json::to_string(&identity).context("failed to encode a pid file")?;
        write(&pid_file(place, &self.name), text)?;
        Ok(identity)
    }
}

/// The arguments of a shell that puts itself into control groups and then becomes the program.
pub fn enter_and_run(entrances: &[PathBuf], program: &OsStr, args: &[OsString]) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if !entrances.is_empty() {
        let script =
            r#"n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ >"$1" || exit 125; shift; n=$((n - 1)); done; exec "$@""#;
        words.extend(["sh", "-c", script, "sh"].map(OsString::from));
        words.push(entrances.len().to_string().into());
        words.extend(entrances.iter().map(|path| path.clone().into_os_string()));
    }
    words.push(program.to_owned());
    words.extend(args.iter().cloned());
    words
}

/// The running process of that name.
pub fn find(place: &Place, name: &str) -> Option<Identity> {
    let text = fs::read_to_string(pid_file(place, name)).ok()?;
    serde_json::from_str::<Identity>(&text).ok().filter(Identity::alive)
}

/// Ends the process of that name, if it runs, and forgets it.
pub fn stop(place: &Place, name: &str) -> Result<()> {
    if let Some(identity) = find(place, name) {
        identity.end().with_context(|| format!("failed to end {name}"))?;
    }
    forget(place, name);
    Ok(())
}

/// Ends the process of that name at once, for when all that it has written is about to be removed.
pub fn kill_now(place: &Place, name: &str) -> Result<()> {
    if let Some(identity) = find(place, name) {
        identity.signal(Signal::SIGKILL)?;
        if !identity.wait_gone(GRACE) {
            bail!("{name} does not end");
        }
    }
    forget(place, name);
    Ok(())
}

/// Drops the pid file of a process that has ended.
pub fn forget(place: &Place, name: &str) {
    fs::remove_file(pid_file(place, name)).ok();
}

/// The names of all processes that have been started and not forgotten, in order.
pub fn names(place: &Place) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(place.pids())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
        .collect();
    names.sort();
    names
}

/// The log of the process of that name.
pub fn log_file(place: &Place, name: &str) -> PathBuf {
    place.logs().join(format!("{name}.log"))
}

/// The last lines of a process's log, for an error message.
pub fn log_tail(place: &Place, name: &str) -> String {
    tail(&fs::read_to_string(log_file(place, name)).unwrap_or_default(), 25)
}

/// The last `count` lines of a text.
pub fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn pid_file(place: &Place, name: &str) -> PathBuf {
    place.pids().join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_started_once_found_and_ended() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::at(directory.path());
        let sleeper = || Daemon::new("sleeper", "sleep").args(["60"]).start(&place).unwrap();
        let first = sleeper();
        assert_eq!(sleeper(), first);
        assert_eq!(names(&place), ["sleeper"]);
        stop(&place, "sleeper").unwrap();
        assert!(!first.alive());
        assert_eq!(find(&place, "sleeper"), None);
        assert!(names(&place).is_empty());
    }

    #[test]
    fn a_reused_pid_is_not_taken_for_ours() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::at(directory.path());
        let mut other = Identity::read(std::process::id().try_into().unwrap()).unwrap();
        other.started += 1;
        write(&pid_file(&place, "ghost"), serde_json::to_string(&other).unwrap()).unwrap();
        assert_eq!(find(&place, "ghost"), None);
        stop(&place, "ghost").unwrap();
    }

    #[test]
    fn a_process_enters_its_groups_before_it_becomes_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (directory.path().join("a"), directory.path().join("b"));
        let words = enter_and_run(&[a.clone(), b.clone()], OsStr::new("echo"), &["hi there".into()]);
        let mut child = Command::new(&words[0]).args(&words[1..]).spawn().unwrap();
        let pid = child.id().to_string();
        child.wait().unwrap();
        assert_eq!(fs::read_to_string(a).unwrap().trim(), pid);
        assert_eq!(fs::read_to_string(b).unwrap().trim(), pid);
    }
}
