//! When what follows the death of a member was first seen.

use std::time::Duration;

use super::size::Load;
use crate::karmada_bench::table::table;

/// What is seen at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether Karmada says that the member is Ready.
    pub ready: bool,
    /// Whether its Cluster has the taint that evicts.
    pub tainted: bool,
    /// ResourceBindings that name the other member alone.
    pub moved: usize,
    /// Works of the other member that were applied there.
    pub applied: usize,
    /// Pods that run in the other member.
    pub running: usize,
}

type Holds = fn(&Facts, &Load) -> bool;

/// What is waited for, in order.
const MOMENTS: [(&str, Holds); 7] = [
    ("t1 the member is not Ready", |facts, _| !facts.ready),
    ("t2 its Cluster has the NoExecute taint", |facts, _| facts.tainted),
    ("   the first ResourceBinding is moved", |facts, _| facts.moved > 0),
    ("t3 the last ResourceBinding is moved", |facts, load| facts.moved >= load.deployments),
    ("t4 the last Work is applied in the other member", |facts, load| facts.applied >= load.deployments),
    ("   the first Pod runs there", |facts, _| facts.running > 0),
    ("t5 the last Pod runs there", |facts, load| facts.running >= load.pods()),
];

/// When each of them was first seen, since t0: the death.
pub struct Timeline {
    load: Load,
    reached: [Option<Duration>; MOMENTS.len()],
}

impl Timeline {
    pub fn new(load: Load) -> Self {
        Self { load, reached: [None; MOMENTS.len()] }
    }

    /// Takes down what is seen.
    pub fn look(&mut self, at: Duration, facts: &Facts) {
        for (reached, (_, holds)) in self.reached.iter_mut().zip(MOMENTS) {
            if reached.is_none() && holds(facts, &self.load) {
                *reached = Some(at);
            }
        }
    }

    /// Whether all was seen.
    pub fn is_over(&self) -> bool {
        self.reached.iter().all(Option::is_some)
    }

    /// All of it as a table, and what it means a second.
    pub fn render(&self) -> String {
        let seconds =
            |at: &Option<Duration>| at.map_or_else(|| "-".to_owned(), |at| format!("{:.1} s", at.as_secs_f64()));
        let row = |((what, _), at): ((&str, Holds), &Option<Duration>)| vec![what.to_owned(), seconds(at)];
        let head = vec!["t0 the member is killed".to_owned(), "0.0 s".to_owned()];
        let rows: Vec<Vec<String>> =
            [head].into_iter().chain(MOMENTS.into_iter().zip(&self.reached).map(row)).collect();
        let [_, tainted, _, moved, _, first, last] = self.reached;
        let rate = |count: usize, from: Option<Duration>, to: Option<Duration>| {
            let took = to?.checked_sub(from?)?.as_secs_f64().max(0.1);
            Some(format!("{:.1}", count as f64 / took))
        };
        let rate = |count, from, to| rate(count, from, to).unwrap_or_else(|| "-".to_owned());
        format!(
            "{}{} ResourceBindings a second from t2 to t3, {} Pods a second from the first to t5\n",
            table(&rows),
            rate(self.load.deployments, tainted, moved),
            rate(self.load.pods(), first, last)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Facts, Timeline};
    use crate::karmada_bench::failover::size::Load;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_was_seen_first_counts() {
        let mut timeline = Timeline::new(Load { nodes: 1, deployments: 2, replicas: 5 });
        let well = Facts { ready: true, ..Facts::default() };
        timeline.look(at(1), &well);
        timeline.look(at(40), &Facts::default());
        // Karmada may say otherwise again.
        timeline.look(at(41), &well);
        timeline.look(at(42), &Facts { tainted: true, ..Facts::default() });
        timeline.look(at(43), &Facts { moved: 1, tainted: true, ..Facts::default() });
        timeline.look(at(46), &Facts { moved: 2, applied: 2, running: 3, tainted: true, ..Facts::default() });
        assert!(!timeline.is_over());
        timeline.look(at(51), &Facts { moved: 2, applied: 2, running: 10, tainted: true, ..Facts::default() });
        assert!(timeline.is_over());
        let expected = "  t0 the member is killed                           0.0 s
  t1 the member is not Ready                       40.0 s
  t2 its Cluster has the NoExecute taint           42.0 s
     the first ResourceBinding is moved            43.0 s
  t3 the last ResourceBinding is moved             46.0 s
  t4 the last Work is applied in the other member  46.0 s
     the first Pod runs there                      46.0 s
  t5 the last Pod runs there                       51.0 s
0.5 ResourceBindings a second from t2 to t3, 2.0 Pods a second from the first to t5
";
        assert_eq!(timeline.render(), expected);
    }

    #[test]
    fn what_was_not_seen_has_no_time() {
        let mut timeline = Timeline::new(Load { nodes: 1, deployments: 2, replicas: 5 });
        timeline.look(at(40), &Facts::default());
        let text = timeline.render();
        assert!(text.contains("t1 the member is not Ready                       40.0 s"), "{text}");
        assert!(
            text.ends_with("- ResourceBindings a second from t2 to t3, - Pods a second from the first to t5\n"),
            "{text}"
        );
    }
}
