//! An executor that is watched while it runs: its memory, and every process below it.

#![allow(dead_code, reason = "each file of tests uses its own part of it")]

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::{Bench, Ran};

/// A run as it was observed.
pub struct Watched {
    pub ran: Ran,
    /// The most memory that the executor itself had, in MiB.
    pub memory_mib: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// Runs to the end; `change` may add to its command; `look` is called again and again meanwhile, with its process.
pub fn run(bench: &Bench, args: &[&str], change: impl FnOnce(&mut Command), mut look: impl FnMut(u32)) -> Watched {
    let begun = Instant::now();
    let mut command = bench.command(args);
    change(&mut command);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let text = Arc::new(Mutex::new(Vec::new()));
    let mut streams: Vec<Box<dyn Read + Send>> =
        vec![Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
    let readers: Vec<_> = streams
        .drain(..)
        .map(|mut stream| {
            let text = Arc::clone(&text);
            thread::spawn(move || {
                let mut buffer = [0; 65536];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    text.lock().unwrap().extend_from_slice(&buffer[..length]);
                }
            })
        })
        .collect();
    let ended = AtomicBool::new(false);
    let pid = child.id();
    let mut memory_mib = 0;
    let status = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let status = child.wait().unwrap();
            ended.store(true, Ordering::Relaxed);
            status
        });
        while !ended.load(Ordering::Relaxed) {
            memory_mib = memory_mib.max(peak(pid));
            look(pid);
            thread::sleep(Duration::from_millis(20));
        }
        waiting.join().unwrap()
    });
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    let text = String::from_utf8_lossy(&text.lock().unwrap()).into_owned();
    Watched { ran: bench.ran(status.code(), text), memory_mib, elapsed: begun.elapsed() }
}

/// The most memory that a process has had, in MiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}
