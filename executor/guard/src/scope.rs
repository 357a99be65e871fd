//! Joins a systemd scope of one's own, so that what a command leaves behind is found even if it cleared its
//! environment. Only a help: the mark in the environment counts where there is no systemd, or none that answers.

mod message;

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use guard::Fence;
use guard::process_owner::{in_scope, scope_name};

/// There where systemd is the machine's init.
const SYSTEMD: &str = "/run/systemd/system";
/// systemd's own socket, for root; works without a message bus.
const SOCKET: &str = "/run/systemd/private";
/// The longest that systemd may take. It answers within a millisecond, unless it reloads.
const PATIENCE: Duration = Duration::from_secs(1);
/// The largest answer that is read.
const LARGE: usize = 1 << 20;

/// Moves this process, and so all that it starts, into a scope of this fence.
pub fn join(fence: Fence) {
    if Path::new(SYSTEMD).exists() && joined() != Some(fence) {
        // Nobody could do anything about it: the command runs without one.
        let _ = ask(Path::new(SOCKET), fence, std::process::id());
    }
}

fn joined() -> Option<Fence> {
    in_scope(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default())
}

fn ask(socket: &Path, fence: Fence, pid: u32) -> io::Result<()> {
    let mut systemd = UnixStream::connect(socket)?;
    systemd.set_read_timeout(Some(PATIENCE))?;
    systemd.set_write_timeout(Some(PATIENCE))?;
    // Who we are (user 0, as hexadecimal text), and without waiting for the answer what we want.
    systemd.write_all(b"\0AUTH EXTERNAL 30\r\nBEGIN\r\n")?;
    systemd.write_all(&message::start_scope(&scope_name(fence, pid), pid))?;
    let since = Instant::now();
    accepted(&mut systemd)?;
    while !answered(&mut systemd)? {
        if since.elapsed() > PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    // The answer says that it will be done.
    while joined() != Some(fence) && since.elapsed() < PATIENCE {
        thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}

/// Reads the line that says that we are who we are.
fn accepted(systemd: &mut UnixStream) -> io::Result<()> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") && line.len() < 256 {
        systemd.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    if line.starts_with(b"OK ") { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Reads one message: whether it is the answer, and not news of something else.
fn answered(systemd: &mut UnixStream) -> io::Result<bool> {
    let mut head = [0; 16];
    systemd.read_exact(&mut head)?;
    let rest = message::rest_of(&head).filter(|rest| *rest <= LARGE);
    let rest = rest.ok_or(io::ErrorKind::InvalidData)?;
    systemd.read_exact(&mut vec![0; rest])?;
    match message::kind(&head) {
        message::RETURN => Ok(true),
        message::ERROR => Err(io::ErrorKind::Other.into()),
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    const FENCE: Fence = Fence { epoch: 3, token: 41 };

    /// A systemd that says this, and then nothing for a while.
    fn asked(says: &'static [u8]) -> (io::Result<()>, Vec<u8>, Duration) {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("private");
        let listener = UnixListener::bind(&socket).unwrap();
        let systemd = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = vec![0; 4096];
            let mut length = stream.read(&mut heard).unwrap();
            stream.write_all(says).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            while let Ok(more @ 1..) = stream.read(&mut heard[length..]) {
                length += more;
            }
            heard.truncate(length);
            heard
        });
        let since = Instant::now();
        let result = ask(&socket, FENCE, 7);
        (result, systemd.join().unwrap(), since.elapsed())
    }

    #[test]
    fn systemd_is_asked_for_a_scope_of_the_fence() {
        let (_, heard, _) = asked(b"");
        let heard = String::from_utf8_lossy(&heard);
        assert!(heard.starts_with("\0AUTH EXTERNAL 30\r\nBEGIN\r\nl\u{1}"), "{heard}");
        assert!(heard.contains("StartTransientUnit") && heard.contains("clusterwright-3-41-7.scope"));
    }

    #[test]
    fn a_systemd_that_refuses_says_nothing_or_talks_nonsense_costs_a_moment() {
        let error = b"OK 1\r\nl\x03\0\x01\0\0\0\0\x01\0\0\0\0\0\0\0";
        for says in [&b""[..], b"REJECTED\r\n", error, b"OK 1\r\nl\x02\0\x01\xff\xff\xff\xff", b"OK 1\r\nB"] {
            let (result, _, took) = asked(says);
            assert!(result.is_err());
            assert!(took < Duration::from_secs(4), "{took:?}");
        }
    }
}
