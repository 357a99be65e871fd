//! What befalls an operator in the middle of its work, at one write of all.

use super::api::Write;
use super::world::World;

/// Turns without a write after which nothing more comes.
const REST: usize = 6;

/// What befalls the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mishap {
    /// It is killed after the write, and begins anew.
    Killed,
    /// The write is done, its answer is lost, and it is done once more.
    AnswerLost,
    /// The write and so many after it are refused: somebody else was there first.
    Refused(usize),
    /// From this write on it sees for so many turns what was there before.
    Stale(usize),
    /// The status of all objects of a kind is lost after the write.
    StatusLost(Kind),
}

/// Kinds with a status.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    ClusterDeployment,
    MachineSet,
    Machine,
    Host,
    PlaybookRun,
    Cluster,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::ClusterDeployment, Self::MachineSet, Self::Machine, Self::Host, Self::PlaybookRun, Self::Cluster];
}

impl World {
    /// Plays until nothing more comes, and tells how things stood before each turn.
    pub fn trace(&mut self, turns: usize) -> Vec<World> {
        let mut trace = Vec::new();
        self.turns(turns, usize::MAX / 2, Mishap::Killed, |world| trace.push(world.clone()));
        trace
    }

    /// Plays until nothing more comes, at most so many turns; the write with this number meets with the mishap.
    pub fn play(&mut self, turns: usize, number: usize, mishap: Mishap) {
        self.turns(turns, number, mishap, |_| {});
    }

    fn turns(&mut self, turns: usize, number: usize, mishap: Mishap, mut before: impl FnMut(&World)) {
        let mut cache: Option<(World, usize)> = None;
        let mut quiet = 0;
        for _ in 0..turns {
            if quiet == REST {
                return;
            }
            before(self);
            self.environment();
            let begun = self.written;
            let reconciles = match &cache {
                Some((cache, _)) => self.reconciles(cache),
                None => self.reconciles(self),
            };
            let was = matches!(mishap, Mishap::Stale(_)).then(|| self.clone());
            let mut killed = false;
            for writes in reconciles {
                for write in writes {
                    if killed || !self.write(&write, number, mishap) {
                        break;
                    }
                    killed = mishap == Mishap::Killed && self.written == number + 1;
                }
            }
            quiet = if self.written == begun { quiet + 1 } else { 0 };
            cache = match (cache.take(), mishap, was) {
                (None, Mishap::Stale(turns), Some(was)) if (begun..self.written).contains(&number) => {
                    Some((was, turns))
                }
                (Some((cache, left)), ..) if left > 1 => Some((cache, left - 1)),
                _ => None,
            };
        }
        panic!("it has not come to rest after {turns} turns, {mishap:?} at write {number}");
    }

    /// Writes; false: the rest of the reconcile is left out.
    fn write(&mut self, write: &Write, number: usize, mishap: Mishap) -> bool {
        let now = self.written;
        self.written += 1;
        let goes_on = match mishap {
            Mishap::Refused(times) if (number..number + times).contains(&now) => return false,
            Mishap::AnswerLost if now == number => {
                self.apply(write);
                false
            }
            _ => true,
        };
        self.apply(write);
        if let Mishap::StatusLost(kind) = mishap
            && now == number
        {
            self.lose(kind);
        }
        self.check();
        goes_on
    }

    /// The status of all objects of a kind is gone.
    pub fn lose(&mut self, kind: Kind) {
        match kind {
            Kind::ClusterDeployment => self.clusters.iter_mut().for_each(|cluster| cluster.deployment.status = None),
            Kind::MachineSet => self.sets.iter_mut().for_each(|set| set.status = None),
            Kind::Machine => self.machines.iter_mut().for_each(|machine| machine.status = None),
            Kind::Host => self.hosts.iter_mut().for_each(|host| host.status = None),
            Kind::PlaybookRun => self.runs.iter_mut().for_each(|run| run.status = None),
            Kind::Cluster => {
                let objects = self.clusters.iter_mut().filter_map(|cluster| cluster.cluster.as_mut());
                objects.for_each(|object| object.status = None);
            }
        }
    }

    /// The status of the ClusterDeployment is gone, as from a backup without it.
    pub fn lose_status(&mut self) {
        self.deployment.status = None;
    }

    /// What was written of repairs is gone, as from a backup without it.
    pub fn lose_repairs(&mut self) {
        if let Some(status) = &mut self.deployment.status {
            status.repairs.clear();
            status.repair_approval = None;
        }
    }
}
