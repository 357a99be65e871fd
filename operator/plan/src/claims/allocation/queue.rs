//! The order in which a set takes its candidates. Hosts are only ever taken and Machines only ever added, so a domain
//! only ever gets worse: what is written of it in the queue is never worse than it is, and the first entry that still
//! holds is the best of all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::candidates::{Candidates, Domain, FreeHosts};

/// Domains, the best first.
#[derive(Default)]
pub(super) struct Queue {
    entries: BinaryHeap<Reverse<Standing>>,
    /// How many of the domains were looked at, in the order of their first Host: most sets never look at most of them.
    seen: usize,
}

/// How good a domain is for a set; less is better.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    /// How many of the set are there, by each key in turn.
    crowd: Vec<usize>,
    /// Its first Host.
    rank: usize,
    domain: usize,
}

impl Queue {
    /// The best Host that is left, by its place among the free ones. `count` tells how many of the set are on Hosts
    /// with a value of a key, which is given by its number.
    pub fn best(
        &mut self,
        candidates: &mut Candidates<'_>,
        free: &FreeHosts<'_, '_>,
        count: impl Fn(usize, Option<&str>) -> usize,
    ) -> Option<usize> {
        let standing = |domain: &mut Domain<'_>, number: usize| {
            let first = domain.first(free)?;
            let values = domain.values.iter().enumerate();
            let standing = Standing {
                crowd: values.map(|(key, value)| count(key, *value)).collect(),
                rank: first.rank,
                domain: number,
            };
            Some((first.host, standing))
        };
        // No domain is better than one where the least of each key come together.
        let least = match self.seen < candidates.domains.len() {
            true => candidates.least(&count),
            false => Vec::new(),
        };
        loop {
            while let Some(domain) = candidates.domains.get_mut(self.seen) {
                let bound = (least.as_slice(), domain.best_rank());
                let is_better = |best: &Standing| (best.crowd.as_slice(), best.rank) < bound;
                if self.entries.peek().is_some_and(|Reverse(best)| is_better(best)) {
                    break;
                }
                let seen = standing(domain, self.seen);
                self.entries.extend(seen.map(|(_, standing)| Reverse(standing)));
                self.seen += 1;
            }
            let Reverse(written) = self.entries.pop()?;
            let domain = candidates.domains.get_mut(written.domain)?;
            if let Some((host, standing)) = standing(domain, written.domain) {
                let holds = standing == written;
                self.entries.push(Reverse(standing));
                if holds {
                    return Some(host);
                }
            }
        }
    }
}
