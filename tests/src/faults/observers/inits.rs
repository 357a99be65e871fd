//! Every `kubeadm init` of an install's machines, seen as a process from the host: no log can hide one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lab::machines::Machine;
use lab::processes::{Identity, command_line};

use crate::faults::verdict::Init;

/// A `kubeadm init` lasts for seconds.
const INTERVAL: Duration = Duration::from_millis(300);
/// What a machine keeps once it is a node.
const RECORD: &str = "etc/clusterwright/kubeadm.json";

/// Watches until it is dropped.
pub struct Inits {
    seen: Arc<Mutex<Vec<Init>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Inits {
    /// Watches these machines.
    pub fn watch(machines: &[Machine]) -> Self {
        let (seen, over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (machines, ours, end) = (machines.to_vec(), seen.clone(), over.clone());
        let thread = std::thread::spawn(move || {
            let mut known: BTreeMap<(i32, u64), Identity> = BTreeMap::new();
            while !end.load(Ordering::Relaxed) {
                look(&machines, &mut known, &ours);
                std::thread::sleep(INTERVAL);
            }
        });
        Self { seen, over, thread: Some(thread) }
    }

    /// All that were seen.
    pub fn seen(&self) -> Vec<Init> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Inits {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn look(machines: &[Machine], known: &mut BTreeMap<(i32, u64), Identity>, seen: &Mutex<Vec<Init>>) {
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        // A child has its parent's words until it becomes another program.
        if !is_init(&command_line(pid)) || parent(pid).is_some_and(|parent| is_init(&command_line(parent))) {
            continue;
        }
        let Some((machine, identity)) = machines.iter().find(|machine| machine.owns(pid)).zip(Identity::read(pid))
        else {
            continue;
        };
        let key = (pid, identity.started);
        if known.contains_key(&key) {
            continue;
        }
        let init = Init {
            machine: machine.name().to_owned(),
            after_one_that_ended_well: machine.root().join(RECORD).exists(),
            beside_another: known.values().any(Identity::alive),
        };
        known.insert(key, identity);
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(init);
    }
}

fn parent(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

fn is_init(command: &str) -> bool {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    program.rsplit('/').next() == Some("kubeadm") && words.next() == Some("init")
}

#[cfg(test)]
mod tests {
    use super::is_init;

    #[test]
    fn an_init_is_told_from_a_join_and_from_who_only_speaks_of_it() {
        assert!(is_init("kubeadm init --config=/run/x.yaml"));
        assert!(is_init("/usr/local/bin/kubeadm init"));
        assert!(!is_init("kubeadm join --config=/run/x.yaml"));
        assert!(!is_init("sh -c kubeadm init"));
        assert!(!is_init(""));
    }
}
