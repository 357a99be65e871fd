//! A connection to a port of the machine itself, over a command's standard input and output: it needs no forwarding in
//! sshd, and no rights. Nothing of it is kept, capped or read.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

/// How long the port may take to accept.
const ACCEPT: Duration = Duration::from_secs(10);
/// How long the port may be silent once whoever called has nothing more to say.
const LINGER: Duration = Duration::from_secs(60);
const BUFFER: usize = 64 * 1024;

/// Connects, and passes bytes both ways until the port has nothing more to say. Whoever called may end its side first:
/// the port is told, and what it still says is passed on.
pub fn connect(address: SocketAddr) -> Result<u8, Failure> {
    let failed = |error: io::Error| Failure::Connect(format!("failed to connect to {address}: {error}"));
    let socket = TcpStream::connect_timeout(&address, ACCEPT).map_err(failed)?;
    socket.set_nodelay(true).map_err(failed)?;
    // Not the streams of std: they buffer, and look for ends of lines.
    let input = io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(failed)?;
    let output = io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(failed)?;
    relay(socket, input, output, LINGER)
        .map_err(|error| Failure::Connect(format!("the connection to {address} broke: {error}")))?;
    Ok(0)
}

/// Passes bytes both ways. The end of the socket's side ends it; the input may be open still.
fn relay(
    mut socket: TcpStream,
    mut input: impl Read + Send + 'static,
    mut output: impl Write,
    linger: Duration,
) -> io::Result<()> {
    socket.set_read_timeout(Some(linger))?;
    let mut sending = socket.try_clone()?;
    let ended = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&ended);
    thread::spawn(move || {
        // An error of the socket shows where it is read.
        let _ = pass(&mut input, &mut sending, || false);
        let _ = sending.shutdown(Shutdown::Write);
        done.store(true, Ordering::Relaxed);
    });
    pass(&mut socket, &mut output, || !ended.load(Ordering::Relaxed))
}

/// Passes bytes on until the end of the stream. `patient` says, after a silence, whether to wait on.
fn pass(from: &mut impl Read, to: &mut impl Write, patient: impl Fn() -> bool) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return to.flush(),
            Ok(length) => to.write_all(buffer.get(..length).unwrap_or_default())?,
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            // A timeout of a socket is said in either way.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if !patient() {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind, Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::thread;
    use std::time::Duration;

    use super::{connect, relay};

    /// The bytes that come out while the server does this with its connection.
    fn relayed(
        input: impl Read + Send + 'static,
        linger: Duration,
        serve: impl FnOnce(TcpStream) + Send + 'static,
    ) -> (io::Result<()>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = thread::spawn(move || serve(listener.accept().unwrap().0));
        let mut output = Vec::new();
        let ended = relay(socket, input, &mut output, linger);
        server.join().unwrap();
        (ended, output)
    }

    /// Input that never ends and never says anything.
    struct Open;

    impl Read for Open {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            loop {
                thread::park();
            }
        }
    }

    #[test]
    fn every_byte_passes_both_ways_also_after_the_input_has_ended() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(31) >> 3) as u8).collect();
        let (ended, output) = relayed(io::Cursor::new(bytes.clone()), Duration::from_secs(60), |mut socket| {
            let mut all = Vec::new();
            // Sees the end of the input, and only then answers.
            socket.read_to_end(&mut all).unwrap();
            all.reverse();
            socket.write_all(&all).unwrap();
        });
        ended.unwrap();
        assert!(output.iter().rev().eq(&bytes), "{} bytes", output.len());
    }

    #[test]
    fn it_ends_with_the_servers_side_although_the_input_is_open() {
        let (ended, output) = relayed(Open, Duration::from_millis(50), |mut socket| {
            // Longer than the silence that is allowed after the input's end.
            thread::sleep(Duration::from_millis(300));
            socket.write_all(b"bye").unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
        });
        ended.unwrap();
        assert_eq!(output, b"bye");
    }

    #[test]
    fn a_server_that_says_nothing_after_the_inputs_end_is_not_waited_for() {
        let (ended, _) = relayed(io::empty(), Duration::from_millis(50), |mut socket| {
            let _ = socket.read(&mut [0; 1]);
            let _ = socket.read(&mut [0; 1]);
            thread::sleep(Duration::from_millis(500));
        });
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_port_at_which_nobody_listens_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let failure = connect(address).unwrap_err();
        assert_eq!(failure.exit_code(), 69);
        assert!(failure.to_string().contains(&format!("failed to connect to {address}")), "{failure}");
    }
}
