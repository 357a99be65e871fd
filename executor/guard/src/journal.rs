//! The machine's log. Written under the mutex, a whole line or nothing; turned over once it is large.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use guard::fence::FenceState;
use guard::log_audit;
use guard::record::{Event, Of, Record};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use crate::clock;
use crate::failure::Failure;
use crate::state::{Held, sync_directory};

/// Where the log is turned over.
const LARGE: u64 = 4 << 20;
/// Room that is kept after the last line, so that a command which could begin can also write its end, disk full or not.
const ROOM: u64 = 64 << 10;

/// A line about `fence_state`'s run; the clock is read when it is written.
pub fn record(event: Event, fence_state: &FenceState, step: &str) -> Record {
    Record {
        event,
        at: String::new(),
        monotonic: 0,
        boot: String::new(),
        cluster: fence_state.cluster.clone(),
        host: fence_state.host.clone(),
        run: fence_state.run.clone(),
        step: step.to_owned(),
        attempt: fence_state.attempt,
        fence: fence_state.fence,
        pid: std::process::id(),
        rc: None,
        of: None,
        signal: None,
        reason: None,
        processes: Vec::new(),
        highest: None,
        open: Vec::new(),
    }
}

impl Held {
    /// Writes a line. When it is on the disk is the kernel's business, but for what a later run must know.
    pub fn write(&self, mut record: Record) -> Result<(), Failure> {
        record.at = clock::now();
        record.monotonic = clock::monotonic();
        record.boot = clock::boot();
        let path = self.directory.log();
        let mut log = self.open_log(&path)?;
        let begins = matches!(record.event, Event::Raised | Event::Begin);
        if begins && length(&log, &path)? > LARGE && self.turn_over(&record).is_ok() {
            log = self.open_log(&path)?;
        }
        if begins {
            keep_room(&log, &path)?;
        }
        append(&mut log, &path, &line(&record)?)?;
        if record.event == Event::Raised {
            log.sync_all().map_err(Failure::on("sync", &path))?;
        }
        Ok(())
    }

    fn open_log(&self, path: &Path) -> Result<File, Failure> {
        let draft = path.with_extension("new");
        if !path.exists() && draft.exists() {
            // Cut off between the two moves of turning over; the draft was whole before the first.
            fs::rename(&draft, path).map_err(Failure::on("put into place", path))?;
        }
        OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .map_err(Failure::on("open", path))
    }

    /// Makes the log `log.1` and begins a new one, whose first line holds all that must be known of the older ones.
    fn turn_over(&self, now: &Record) -> Result<(), Failure> {
        let path = self.directory.log();
        let text = fs::read(&path).map_err(Failure::on("read", &path))?;
        let before = log_audit::read("", &String::from_utf8_lossy(&text));
        let first = Record {
            event: Event::Rotated,
            of: before.quiet.then_some(Of::Lower),
            highest: before.highest,
            open: before.open.into_iter().filter(|open| open.boot == now.boot).collect(),
            step: String::new(),
            ..now.clone()
        };
        let draft = path.with_extension("new");
        let write = || {
            let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
            file.write_all(line(&first).map_err(io::Error::other)?.as_bytes())?;
            file.sync_all()
        };
        write().map_err(Failure::on("write", &draft))?;
        fs::rename(&path, path.with_extension("1")).map_err(Failure::on("turn over", &path))?;
        fs::rename(&draft, &path).map_err(Failure::on("put into place", &path))?;
        sync_directory(self.directory.path())
    }
}

fn line(record: &Record) -> Result<String, Failure> {
    serde_json::to_string(record).map(|line| line + "\n").map_err(Failure::json)
}

fn length(log: &File, path: &Path) -> Result<u64, Failure> {
    log.metadata().map(|metadata| metadata.len()).map_err(Failure::on("look at", path))
}

/// Makes sure that what follows the last line is allocated, without making the file longer.
fn keep_room(log: &File, path: &Path) -> Result<(), Failure> {
    let metadata = log.metadata().map_err(Failure::on("look at", path))?;
    if metadata.blocks() * 512 >= metadata.len() + ROOM {
        return Ok(());
    }
    let wanted = i64::try_from(metadata.len() + 2 * ROOM).unwrap_or(i64::MAX);
    match fallocate(log, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, wanted) {
        // Some file systems cannot: then a full disk may cost an end.
        Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(()),
        Err(errno) => Err(Failure::on("keep room for", path)(errno.into())),
    }
}

fn append(log: &mut File, path: &Path, line: &str) -> Result<(), Failure> {
    let mut end = length(log, path)?;
    let whole = whole_lines(log, end).map_err(Failure::on("read", path))?;
    if whole < end {
        // A guard that was killed while it wrote had not acted on that line.
        log.set_len(whole).map_err(Failure::on("mend", path))?;
        end = whole;
    }
    log.write_all(line.as_bytes()).map_err(|error| {
        let _ = log.set_len(end);
        Failure::on("write", path)(error)
    })
}

/// How much of the file is whole lines.
fn whole_lines(log: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut block = [0; 4096];
    while end > 0 {
        // The last byte decides nearly always.
        let size = if end == length { 1 } else { end.min(4096) };
        log.seek(SeekFrom::Start(end - size))?;
        let read = &mut block[..usize::try_from(size).unwrap_or(1)];
        log.read_exact(read)?;
        if let Some(at) = read.iter().rposition(|byte| *byte == b'\n') {
            return Ok(end - size + at as u64 + 1);
        }
        end -= size;
    }
    Ok(0)
}
