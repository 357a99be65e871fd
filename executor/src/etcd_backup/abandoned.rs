//! The end of whoever started this program: its standard input ends, or it sends a signal.

use std::io::{self, Read};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// How long what was begun may take to be taken back.
const CLEANING: Duration = Duration::from_secs(20);

/// Returns once nobody waits for the result any more.
pub(super) async fn abandoned() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let (close, closed) = oneshot::channel();
    // A thread of its own: one of tokio's would be waited for at the end.
    thread::spawn(move || {
        let mut nothing = [0; 64];
        while matches!(io::stdin().read(&mut nothing), Ok(length) if length > 0) {}
        let _ = close.send(());
    });
    tokio::select! {
        _ = closed => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Waits for the tasks that take back what was begun, as the dropped backup left them to the runtime.
pub(super) async fn cleaned() {
    let until = Instant::now() + CLEANING;
    while Handle::current().metrics().num_alive_tasks() > 0 && Instant::now() < until {
        sleep(Duration::from_millis(50)).await;
    }
}
