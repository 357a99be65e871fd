//! The guard's directory: the highest fence, kept so that it survives a loss of power, and the mutex around it.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use guard::Fence;
use guard::fence::FenceState;

use crate::failure::Failure;

/// How long a command waits for another guard that holds the mutex: it is held for milliseconds.
const MUTEX: Duration = Duration::from_secs(30);

/// Where the guard's state is.
#[derive(Debug, Clone)]
pub struct Directory(PathBuf);

/// The mutex is held while this lives.
#[derive(Debug)]
pub struct Held {
    pub directory: Directory,
    _lock: File,
}

impl Directory {
    /// The directory of this program's own file, by whatever link it was called.
    pub fn of_this_program() -> Result<Self, Failure> {
        let program = Path::new("/proc/self/exe");
        let found = fs::read_link(program).map_err(Failure::on("read", program))?;
        match found.parent() {
            Some(parent) => Ok(Self(parent.to_owned())),
            None => Err(Failure::State("the guard's program is in no directory".to_owned())),
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    pub fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// The directory of one run.
    pub fn run(&self, fence: Fence) -> PathBuf {
        self.runs().join(fence.to_string())
    }

    /// The highest fence seen; everybody may read it, and finds it whole.
    pub fn highest(&self) -> Result<Option<FenceState>, Failure> {
        let path = self.0.join("fence");
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(Failure::on("read", &path))?,
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            Failure::State(format!(
                "{} is damaged: {error}; once no run works on this machine, remove it and let the run begin again",
                path.display()
            ))
        })
    }

    /// Takes the mutex if nobody has it.
    pub fn try_hold(&self) -> Result<Option<Held>, Failure> {
        let path = self.0.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(Failure::on("open", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Held { directory: self.clone(), _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Failure::on("lock", &path)(error)),
        }
    }

    /// Takes the mutex, waiting for whoever has it.
    pub fn hold(&self) -> Result<Held, Failure> {
        let since = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(held) = self.try_hold()? {
                return Ok(held);
            }
            if since.elapsed() > MUTEX {
                return Err(Failure::State(format!(
                    "another guard has held {} for {} s; is one of them stopped?",
                    self.0.join("lock").display(),
                    MUTEX.as_secs()
                )));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl Held {
    /// Remembers the fence: after this returns, a loss of power does not forget it.
    pub fn remember(&self, fence_state: &FenceState) -> Result<(), Failure> {
        let text = serde_json::to_string(fence_state).map_err(Failure::json)?;
        replace(&self.directory.0.join("fence"), &(text + "\n"))
    }
}

/// Puts a file into place, whole or not at all, readable by everybody.
pub fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let draft = path.with_extension("new");
    let write = || {
        let mut file = File::create(&draft)?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&draft);
        Failure::on("write", &draft)(error)
    })?;
    fs::rename(&draft, path).map_err(Failure::on("put into place", path))?;
    sync_directory(path.parent().unwrap_or(Path::new("/")))
}

/// Makes what was put into a directory, or taken out, survive a loss of power.
pub fn sync_directory(path: &Path) -> Result<(), Failure> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(Failure::on("sync", path))
}
