//! The wire between the executor and a machine, cut while a command is at work.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::bench::LOOK;
use crate::machine::Machine;

const WHOLE: u8 = 0;
/// Nothing passes, and nobody hears of it.
const CUT: u8 = 1;
/// Connections end.
const TORN: u8 = 2;

/// A proxy in front of an sshd.
pub struct Wire {
    pub port: u16,
    state: Arc<AtomicU8>,
}

impl Wire {
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let wire = Self { port: listener.local_addr().unwrap().port(), state: Arc::default() };
        let state = Arc::clone(&wire.state);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let state = Arc::clone(&state);
                    thread::spawn(move || pass(from, to, &state));
                }
            }
        });
        wire
    }

    fn is(&self, state: u8) {
        self.state.store(state, Ordering::SeqCst);
    }

    /// As a link that flaps, or routes that are gone for a moment: nothing passes for so long, and nobody hears of it.
    pub fn flaps(&self, seconds: u64) {
        self.is(CUT);
        thread::sleep(Duration::from_secs(seconds));
        self.is(WHOLE);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8) {
    from.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut buffer = [0; 16 * 1024];
    loop {
        match state.load(Ordering::SeqCst) {
            WHOLE => (),
            CUT => {
                thread::sleep(Duration::from_millis(50));
                continue;
            }
            _ => break,
        }
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                // What was read when the wire was cut comes after it.
                while state.load(Ordering::SeqCst) == CUT {
                    thread::sleep(Duration::from_millis(50));
                }
                if to.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Writes down each of its executions, and is at work for as long as the wire is cut.
const WORKS: &str = "
- hosts: all
  gather_facts: false
  tasks:
  - name: Work
    ansible.builtin.shell: 'echo run >>{{ place }}/seen; while [ -d {{ place }} ] && [ ! -e {{ place }}/over ]; do sleep 0.2; done; echo end >>{{ place }}/seen'
";

/// How often a command is executed whose wire breaks in its middle, and what becomes of its host.
fn executions(breaks: impl FnOnce(&Wire)) -> (String, Value, String) {
    let mut machine = Machine::new();
    machine.bench.playbook("prepare", WORKS);
    machine.bench.playbook("probe/prepare", LOOK);
    let wire = Wire::to(machine.sshd.port);
    machine.inputs(&["prepare"], |model| model["hosts"]["w1"]["port"] = json!(wire.port), &["w1"]);
    let log = machine.bench.path().join("log");
    let mut run = machine.start(1, &log);
    machine.wait_for("seen");
    breaks(&wire);
    // A connection that outlived it goes on.
    std::fs::write(machine.bench.path().join("over"), "").unwrap();
    let code = run.wait().unwrap().code();
    let ran = machine.bench.ran(code, std::fs::read_to_string(&log).unwrap());
    let host = ran.host("w1").clone();
    // The next run waits for what is still at work, so this is all there is.
    machine.bench.playbook("prepare", LOOK);
    machine.inputs(&["prepare"], |_| (), &["w1"]);
    let next = machine.run(2);
    assert_eq!(next.code, 0, "{}", next.text);
    machine.history();
    (machine.read("seen"), host, ran.text)
}

#[test]
fn a_command_whose_connection_is_torn_is_not_executed_again() {
    let (seen, host, text) = executions(|wire| {
        wire.is(TORN);
        thread::sleep(Duration::from_millis(300));
        wire.is(WHOLE);
    });
    assert_eq!(seen, "run\nend\n", "{text}");
    assert_eq!(host["failure"]["reason"], "Unreachable", "{host:#}");
}

#[test]
fn a_command_whose_wire_is_cut_for_36_seconds_is_not_executed_again() {
    let (seen, host, text) = executions(|wire| {
        wire.flaps(36);
    });
    assert_eq!(seen, "run\nend\n", "{host:#}\n{text}");
}
