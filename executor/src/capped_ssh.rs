//! ssh as Ansible starts it: its output is capped where it is read. Ansible keeps all output of a command in memory, so
//! a machine with output without end would end the run for all of them. Called by the name of its link, [`NAME`].

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// The name of the link in a run's private directory.
pub const NAME: &str = "capped-ssh";
/// Begins the message of a command that was ended for its output; the callback plugin looks for it.
pub const MARKER: &str = "clusterwright-executor: too much output: ";
/// As much as the collection takes of a module's result. 50 machines at once still leave room in the Pod.
const STDOUT_LIMIT: usize = 4 << 20;
const STDERR_LIMIT: usize = 256 << 10;
/// Exit code of a command that was ended for its output: the machine could be reached.
const TOO_MUCH: u8 = 76;
/// How long the pipes of an ssh that has ended are still read: a master in the background may hold them.
const REST: Duration = Duration::from_millis(500);

/// How the reading of a stream ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// With the stream, or with whoever reads ours.
    Closed,
    /// At the limit.
    TooMuch,
}

/// A message to the main thread.
enum Message {
    Stream(Ended),
    Process(io::Result<ExitStatus>),
}

/// Runs ssh with these arguments and passes on its output, up to the limits; returns the exit code.
pub fn run(arguments: impl Iterator<Item = OsString>) -> u8 {
    match capped(Command::new("ssh").args(arguments), STDOUT_LIMIT, STDERR_LIMIT) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "ssh: failed to run: {error}");
            255
        }
    }
}

fn capped(command: &mut Command, stdout_limit: usize, stderr_limit: usize) -> io::Result<u8> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (messages, received) = channel();
    if let Some(stream) = child.stdout.take() {
        forward(stream, io::stdout(), stdout_limit, messages.clone());
    }
    if let Some(stream) = child.stderr.take() {
        forward(stream, io::stderr(), stderr_limit, messages.clone());
    }
    let pid = i32::try_from(child.id()).unwrap_or_default();
    thread::spawn(move || {
        let _ = messages.send(Message::Process(child.wait()));
    });
    Ok(conclude(&received, || {
        // Not waited for yet: the number is still its own.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
    }))
}

/// Waits for the process and for its streams.
fn conclude(received: &Receiver<Message>, kill: impl Fn()) -> u8 {
    let (mut open, mut ended) = (2, None);
    loop {
        let message = match ended {
            None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) if open == 0 => Err(RecvTimeoutError::Disconnected),
            Some(_) => received.recv_timeout(REST),
        };
        match message {
            Ok(Message::Stream(Ended::Closed)) => open -= 1,
            Ok(Message::Stream(Ended::TooMuch)) => {
                if ended.is_none() {
                    kill();
                }
                let _ = writeln!(
                    io::stderr(),
                    "{MARKER}the machine said more than {} MiB for one command, which was ended",
                    STDOUT_LIMIT >> 20
                );
                return TOO_MUCH;
            }
            Ok(Message::Process(status)) => ended = Some(status.map_or(255, code_of)),
            Err(_) => return ended.unwrap_or(255),
        }
    }
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}

fn forward(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    limit: usize,
    messages: Sender<Message>,
) {
    thread::spawn(move || {
        let _ = messages.send(Message::Stream(pass(&mut from, &mut to, limit)));
    });
}

/// Passes on at most so many bytes.
fn pass(from: &mut impl Read, to: &mut impl Write, limit: usize) -> Ended {
    let mut buffer = vec![0; 64 * 1024];
    let mut left = limit;
    loop {
        match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Ok(0) | Err(_) => return Ended::Closed,
            Ok(length) if length > left => return Ended::TooMuch,
            Ok(length) => {
                left -= length;
                let read = buffer.get(..length).unwrap_or_default();
                if to.write_all(read).and_then(|()| to.flush()).is_err() {
                    return Ended::Closed;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_passed_on_than_the_limit() {
        let passed = |text: &[u8], limit| {
            let mut to = Vec::new();
            let ended = pass(&mut &text[..], &mut to, limit);
            (ended, to)
        };
        assert_eq!(passed(b"four", 4), (Ended::Closed, b"four".to_vec()));
        assert_eq!(passed(b"", 0), (Ended::Closed, Vec::new()));
        let (ended, to) = passed(&vec![b'x'; 1 << 20], 100_000);
        assert_eq!(ended, Ended::TooMuch);
        assert!(to.len() <= 100_000);
    }
}
