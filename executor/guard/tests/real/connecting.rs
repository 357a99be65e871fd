//! A connection to a port of the machine through the shell of a step.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use guard::record::Event;

use super::place::{Place, err, eventually, out};

/// More than any cap on the output of a command.
const LARGE: usize = 9 << 20;

/// A port that does this with its one connection.
fn port(serve: impl FnOnce(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || serve(listener.accept().unwrap().0));
    address
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(31) >> 3) as u8).collect()
}

/// The guard's word for a connection, as the executor has it said on a machine.
fn connects(place: &Place, address: SocketAddr) -> String {
    format!("exec {} connect {address}", place.file("guard").display())
}

/// Says this and ends its side; gives what comes back.
fn exchanged(shell: &mut Command, says: &'static [u8]) -> Output {
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(says).unwrap();
    child.wait_with_output().unwrap()
}

fn answers(mut socket: TcpStream) {
    let mut said = String::new();
    socket.read_to_string(&mut said).unwrap();
    assert_eq!(said, "hello");
    socket.write_all(&bytes(LARGE)).unwrap();
}

#[test]
fn a_stream_of_any_length_passes_as_it_is() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let output = exchanged(&mut place.shell(1, 1, &connects(&place, port(answers))), b"hello");
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
    assert!(output.stdout == bytes(LARGE), "{} bytes", output.stdout.len());
    place.report();
}

#[test]
fn it_needs_no_root() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    // Nobody.
    let output = exchanged(place.shell(1, 1, &connects(&place, port(answers))).uid(65534).gid(65534), b"hello");
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
    assert!(output.stdout == bytes(LARGE), "{} bytes", output.stdout.len());
}

#[test]
fn a_port_that_is_closed_and_another_machines_are_refused_in_words() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let output = exchanged(&mut place.shell(1, 1, &connects(&place, closed)), b"");
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(69), ""));
    assert!(err(&output).starts_with("guard: failed to connect to 127.0.0.1:"), "{}", err(&output));
    let output = exchanged(&mut place.shell(1, 1, &connects(&place, "192.0.2.1:2379".parse().unwrap())), b"");
    assert_eq!(output.status.code(), Some(64), "{}", err(&output));
}

#[test]
fn a_newer_run_ends_a_connection_that_is_open() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let address = port(|mut socket| {
        let _ = socket.read(&mut [0; 1]);
        thread::sleep(Duration::from_secs(60));
    });
    let mut shell = place.shell(1, 1, &connects(&place, address));
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("it connects", || place.has(Event::Begin));
    let mut begin = place.begin(1, 2);
    assert!(begin.args(["--wait-seconds", "0", "--kill-after-seconds", "1"]).output().unwrap().status.success());
    assert!(!child.wait().unwrap().success());
    place.report();
}
