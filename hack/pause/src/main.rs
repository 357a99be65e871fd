//! PID 1 of a Pod's sandbox: holds its namespaces open, reaps orphans, ends when told to.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

fn main() {
    // kubeadm's upgrade runs `pause -v` to see that Jobs work.
    if std::env::args().nth(1).as_deref() == Some("-v") {
        println!("pause");
        return;
    }
    // Init has no default for a signal; one that is blocked can be waited for all the same.
    let awaited: SigSet = [Signal::SIGCHLD, Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    if awaited.thread_block().is_err() {
        std::process::exit(1);
    }
    while let Ok(Signal::SIGCHLD) = awaited.wait() {
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            if status == WaitStatus::StillAlive {
                break;
            }
        }
    }
}
