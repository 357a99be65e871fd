//! Events of a backup, into the FIFO that the executor reads beside the callback plugin's lines. Each is one write that
//! the kernel keeps whole.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, thread};

use crds::etcd_backup::BackupContent;
use crds::etcd_restore::StagedBackup;
use serde_json::{Value, json};

/// The variable that names the FIFO.
const VARIABLE: &str = "CLUSTERWRIGHT_EVENTS";
/// Writes of at most so many bytes are not mixed with those of others (PIPE_BUF).
const WHOLE: usize = 4096;
/// How long the executor may be too busy to read.
const PATIENCE: Duration = Duration::from_secs(30);

/// The FIFO, if there is one: without it nothing is reported.
#[derive(Clone, Debug)]
pub(super) struct Events(Option<PathBuf>);

impl Events {
    /// The one that the environment names.
    pub(super) fn of_this_run() -> Self {
        Self(env::var_os(VARIABLE).map(PathBuf::from))
    }

    /// So many bytes are stored. Nobody waits for it to be read.
    pub(super) fn progress(&self, bytes: u64) {
        // The next one says more.
        let _ = self.write(json!({"event": "backup_progress", "bytes": bytes}), Duration::ZERO);
    }

    /// The backup is whole.
    pub(super) fn backup(&self, content: &BackupContent) -> io::Result<()> {
        self.write(json!({"event": "backup", "content": content}), PATIENCE)
    }

    /// So many bytes of a snapshot were brought to a host. Nobody waits for it to be read.
    pub(super) fn staging_progress(&self, host: &str, bytes: u64) {
        // The next one says more.
        let _ = self.write(json!({"event": "staging_progress", "host": host, "bytes": bytes}), Duration::ZERO);
    }

    /// The backup is whole on the machines.
    pub(super) fn staged(&self, staged: &StagedBackup) -> io::Result<()> {
        self.write(json!({"event": "staged", "staged": staged}), PATIENCE)
    }

    fn write(&self, mut event: Value, patience: Duration) -> io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        event["at"] = json!(now.as_secs_f64());
        let line = format!("{event}\n");
        if line.len() > WHOLE {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the event is too long"));
        }
        let until = Instant::now() + patience;
        // An executor that is gone is an error, and not waited for.
        let mut fifo = OpenOptions::new().append(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
        loop {
            match fifo.write(line.as_bytes()) {
                Ok(length) if length == line.len() => return Ok(()),
                Ok(_) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() != ErrorKind::WouldBlock || Instant::now() >= until => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Read;
    use std::thread;
    use std::time::Duration;

    use nix::sys::stat::Mode;
    use serde_json::json;

    use super::Events;
    use crate::event::{Event, What};

    #[test]
    fn events_are_lines_that_the_executor_understands_and_none_is_waited_for_without_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("events");
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let events = Events(Some(path.clone()));
        let content = json!({"location": "a/b", "revision": 1, "keys": 2, "size": 3, "sha256": "a0", "member": "m1",
            "etcdVersion": "3.6.16", "kubernetesVersion": "1.35.4", "startedAt": "2026-11-23T10:00:00Z",
            "completedAt": "2026-11-23T10:00:07Z"});
        let content = serde_json::from_value(content).unwrap();
        assert!(events.backup(&content).is_err(), "nobody reads");
        events.progress(1);

        let mut fifo = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        events.progress(5);
        events.backup(&content).unwrap();
        let staged = json!({"backup": "b", "location": "a/b", "takenAt": "2026-11-23T10:00:00Z", "revision": 1, "keys": 2,
            "size": 3, "sha256": "a0", "etcdVersion": "3.6.16", "bump": 1_000_000_000, "clusterID": "c0ffee"});
        let staged: crds::etcd_restore::StagedBackup = serde_json::from_value(staged).unwrap();
        events.staging_progress("m1", 7);
        events.staged(&staged).unwrap();
        let mut text = vec![0; 8192];
        let length = fifo.read(&mut text).unwrap();
        let lines: Vec<What> = text[..length]
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| Event::parse(line).unwrap().what)
            .collect();
        let expected = [
            What::BackupProgress { bytes: 5 },
            What::Backup(Box::new(content.clone())),
            What::StagingProgress { host: "m1".to_owned(), bytes: 7 },
            What::Staged(Box::new(staged)),
        ];
        assert_eq!(lines, expected);

        // A pipe that is full is waited for where it matters.
        for _ in 0..100_000 {
            events.progress(1);
        }
        let reader = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            let mut text = Vec::new();
            while !String::from_utf8_lossy(&text).contains("\"backup\"") {
                let mut piece = vec![0; 1 << 20];
                let length = fifo.read(&mut piece).unwrap();
                text.extend_from_slice(&piece[..length]);
            }
        });
        events.backup(&content).unwrap();
        reader.join().unwrap();
    }
}
