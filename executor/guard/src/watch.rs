//! `guard watch`: keeps the Pod network of this machine as the step `network` made it. A unit of systemd runs it, so
//! its output is in the journal.

mod program;
mod repair;
mod see;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use guard::network::{Defect, Wanted, defects};
use guard::pace::{Pace, Turn};

use crate::arguments::Watch;
use crate::begin::only_root;
use crate::failure::Failure;
use crate::state::Directory;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(2);
/// The rules are asked for in each so many looks: that starts a program.
const RULES_EVERY: u64 = 3;

/// Looks and repairs until it is ended.
pub fn watch(directory: &Directory, asked: &Watch) -> Result<u8, Failure> {
    only_root()?;
    let mut keeper = Keeper {
        asked,
        since: Instant::now(),
        pace: Pace::default(),
        rules: see::Rules::default(),
        complaints: BTreeMap::new(),
    };
    for look in 0u64.. {
        if was_replaced() {
            become_the_new_one(directory, asked);
        }
        keeper.look(look.is_multiple_of(RULES_EVERY));
        thread::sleep(INTERVAL);
    }
    Ok(0)
}

struct Keeper<'a> {
    asked: &'a Watch,
    since: Instant,
    pace: Pace,
    rules: see::Rules,
    /// Failures by their subject: logged once, not at each look.
    complaints: BTreeMap<String, String>,
}

impl Keeper<'_> {
    fn look(&mut self, rules_too: bool) {
        // Held while anything is changed: a reset takes it, and takes away what is wanted, before it takes away the
        // rest.
        let _lock = match lock(&self.asked.wanted) {
            Ok(Some(lock)) => lock,
            Ok(None) => return,
            Err(error) => {
                return self.complain("lock", &format!("failed to lock {}: {error}", self.asked.wanted.display()));
            }
        };
        let wanted = match self.wanted() {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return,
            Err(why) => return self.complain("wanted", &why),
        };
        self.settled("wanted");
        let settings = wanted.settings(&fs::read_to_string(&wanted.sysctl_file).unwrap_or_default());
        let mut observed = see::see(&wanted, &settings);
        if rules_too {
            match self.rules.differ(&wanted) {
                Ok(differ) => {
                    observed.rules_differ = Some(differ);
                    self.settled("nft");
                }
                Err(why) => self.complain("nft", &why),
            }
        }
        for defect in defects(&wanted, &settings, &observed) {
            self.repair(&wanted, &defect);
        }
    }

    /// Nothing where no step has written it, or a reset took it away.
    fn wanted(&self) -> Result<Option<Wanted>, String> {
        let path = &self.asked.wanted;
        let text = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| format!("failed to read {}: {error}", path.display()))?,
        };
        let wanted = serde_json::from_slice(&text);
        wanted.map(Some).map_err(|error| {
            format!(
                "{} is damaged: {error}; nothing is kept until the step network has written it again",
                path.display()
            )
        })
    }

    fn repair(&mut self, wanted: &Wanted, defect: &Defect) {
        let now = self.since.elapsed();
        match self.pace.ask(defect.thing(), now) {
            Turn::NotBefore(then) => {
                let minutes = then.saturating_sub(now).as_secs().div_ceil(60);
                let key = format!("pace {}", defect.thing());
                if !self.complaints.contains_key(&key) {
                    self.complain(
                        &key,
                        &format!(
                            "{defect}, again and again: somebody else changes it; it is left so for up to {minutes} minutes. Stop this \
                             unit if that is meant"
                        ),
                    );
                }
            }
            Turn::Now => {
                self.settled(&format!("pace {}", defect.thing()));
                match repair::repair(wanted, &mut self.rules, defect) {
                    Ok(()) => {
                        self.settled(defect.thing());
                        say(&format!("{defect}: repaired"));
                    }
                    Err(why) => {
                        // Nobody undid anything: it is tried at each look.
                        self.pace.take_back(defect.thing());
                        self.complain(defect.thing(), &format!("{defect}, and cannot be put back yet: {why}"));
                    }
                }
            }
        }
    }

    fn complain(&mut self, about: &str, what: &str) {
        if self.complaints.get(about).map(String::as_str) != Some(what) {
            say(what);
            self.complaints.insert(about.to_owned(), what.to_owned());
        }
    }

    fn settled(&mut self, about: &str) {
        self.complaints.remove(about);
    }
}

/// To the journal; that nobody reads it is no reason to stop.
fn say(what: &str) {
    let _ = writeln!(io::stdout(), "{what}");
}

/// The lock beside what is wanted; nothing where a reset has it, or where there is nothing to keep.
fn lock(wanted: &Path) -> io::Result<Option<File>> {
    let path = wanted.with_extension("lock");
    let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A run that brings another guard renames it over this one's file.
fn was_replaced() -> bool {
    fs::read_link("/proc/self/exe").is_ok_and(|path| path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)"))
}

/// Goes on as the guard that is in this one's place now; as this one if that cannot be run.
fn become_the_new_one(directory: &Directory, asked: &Watch) {
    let program: PathBuf = directory.path().join("guard");
    if program.is_file() {
        say("another guard was installed: going on as that one");
        let error = Command::new(&program).arg("watch").arg("--wanted").arg(&asked.wanted).exec();
        say(&format!("failed to run {}: {error}", program.display()));
    }
}
