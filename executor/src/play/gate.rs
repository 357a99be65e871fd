//! The gate before each step: Ansible waits there until it is let go. Nobody lets it go when the run is to pause, or
//! when the executor is gone: then it ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::stat::Mode;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// An answer that is later does not hold a run up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks whether the run is to pause. Without anyone to ask, it is not.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    asks: Option<mpsc::Sender<oneshot::Sender<bool>>>,
}

impl Pauses {
    /// Asks through this channel.
    pub fn asking(asks: mpsc::Sender<oneshot::Sender<bool>>) -> Self {
        Self { asks: Some(asks) }
    }

    /// True when the run is to pause now.
    pub async fn wanted(&self) -> bool {
        let ask = async {
            let (answer, answered) = oneshot::channel();
            self.asks.as_ref()?.send(answer).await.ok()?;
            answered.await.ok()
        };
        timeout(ANSWER_TIMEOUT, ask).await.ok().flatten().unwrap_or(false)
    }
}

/// The FIFO at which Ansible waits.
pub(super) struct Gate {
    pub path: PathBuf,
    /// Held open: while we live, Ansible waits for us.
    fifo: File,
}

impl Gate {
    pub(super) fn make(directory: &Path) -> io::Result<Self> {
        let path = directory.join("gate");
        if path.exists() {
            std::fs::remove_file(&path)?;
        }
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let fifo = OpenOptions::new().read(true).write(true).open(&path)?;
        Ok(Self { path, fifo })
    }

    /// Lets Ansible go on.
    pub(super) fn go(&mut self) -> io::Result<()> {
        self.fifo.write_all(b"go\n")
    }
}
