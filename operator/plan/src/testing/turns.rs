//! Time: what happens by itself, and what the controllers make of it.

use std::fmt::Debug;
use std::rc::Rc;

use super::api::Write;
use super::world::World;

/// Writes and events that are kept.
const LOGGED: usize = 24;

impl World {
    /// Until nothing is written any more.
    pub fn settle(&mut self) {
        let mut still = 0;
        for _ in 0..self.profile.patience {
            still = if self.turn() { 0 } else { still + 1 };
            if still >= self.profile.rest {
                return;
            }
        }
        panic!("it has not come to rest\n{}", self.report());
    }

    /// So many turns, whatever is left to do.
    pub fn run_for(&mut self, turns: usize) {
        for _ in 0..turns {
            self.turn();
        }
    }

    /// The operator is killed after one write, or a few, each time, and begins anew.
    pub fn run_write_by_write(&mut self, turns: usize) {
        for turn in 0..turns {
            self.environment();
            let writes = self.writes().into_iter().take(1 + turn % 5);
            self.apply_all(writes);
        }
    }

    /// What the planners write at this very moment: nothing else goes on meanwhile.
    pub fn write_statuses(&mut self) {
        let writes = self.writes();
        self.apply_all(writes);
    }

    /// Time passes, and every controller looks once; returns whether anything was written or goes on.
    fn turn(&mut self) -> bool {
        let acted = self.environment();
        let writes = self.writes();
        let wrote = !writes.is_empty();
        self.apply_all(writes);
        acted || wrote || self.is_busy()
    }

    /// Time passes: runs begin and end, machines start, and Hosts and clusters are looked at. Returns whether anything
    /// was done in a cluster.
    pub(super) fn environment(&mut self) -> bool {
        self.now += self.profile.tick;
        self.play_runs();
        self.register_nodes();
        self.observe()
    }

    fn writes(&self) -> Vec<Write> {
        self.reconciles(self).into_iter().flatten().collect()
    }

    fn apply_all(&mut self, writes: impl IntoIterator<Item = Write>) {
        for write in writes {
            self.apply(&write);
            self.log(Rc::new(write));
            self.check();
        }
    }

    /// Keeps what happened, for whoever has to understand a failure.
    pub fn log(&mut self, entry: Rc<dyn Debug>) {
        if self.log.len() == LOGGED {
            self.log.remove(0);
        }
        self.log.push((self.now, entry));
    }
}
