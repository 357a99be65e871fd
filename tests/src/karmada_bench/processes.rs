//! What each process of a measurement uses while something is measured.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;

use super::table::table;
use crate::usage::{Machine, Usage, usage};

/// A process, and what it is called in a report.
pub type Named = (String, u32);

/// Names processes after what they are of: `source kube-apiserver`.
pub fn named(of: &str, pids: Vec<Named>) -> Vec<Named> {
    pids.into_iter().map(|(program, pid)| (format!("{of} {program}"), pid)).collect()
}

/// What processes have used at a moment.
pub struct Sample {
    at: Instant,
    machine: Machine,
    used: BTreeMap<Named, Usage>,
}

impl Sample {
    /// Looks at these; those that are gone are left out.
    pub fn take(processes: Vec<Named>) -> Result<Self> {
        let used = processes.into_iter().filter_map(|one| usage(one.1).ok().map(|used| (one, used))).collect();
        Ok(Self { at: Instant::now(), machine: Machine::now()?, used })
    }

    /// What was used between two moments, as it is printed.
    pub fn since(&self, before: &Self) -> String {
        let seconds = (self.at - before.at).as_secs_f64();
        let idle = self.machine.idle_percent_since(&before.machine);
        let rows = rows(&before.used, &self.used);
        let all: f64 = rows.iter().map(|(_, used)| used.seconds).sum();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut text = format!(
            "{seconds:.1} s, {idle:.0} % of {cores} cores idle; these processes took {all:.1} s of processor time:\n"
        );
        let cells = |(name, used): (String, Usage)| {
            vec![name, format!("{:.1} s", used.seconds), format!("{:.0} MiB", used.mib)]
        };
        text.push_str(&table(&rows.into_iter().map(cells).collect::<Vec<_>>()));
        text
    }
}

/// What those of one name have used between two moments, and have at the second; the busiest first. One that began in
/// between has used all that it has.
fn rows(before: &BTreeMap<Named, Usage>, after: &BTreeMap<Named, Usage>) -> Vec<(String, Usage)> {
    let mut by_name: BTreeMap<String, Usage> = BTreeMap::new();
    for (process, now) in after {
        let used = now.seconds - before.get(process).map_or(0.0, |used| used.seconds);
        let sum = by_name.entry(process.0.clone()).or_default();
        (sum.seconds, sum.mib) = (sum.seconds + used, sum.mib + now.mib);
    }
    let mut rows: Vec<(String, Usage)> = by_name.into_iter().collect();
    rows.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
    rows
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{named, rows};
    use crate::usage::Usage;

    #[test]
    fn those_of_one_name_are_one_row_and_the_busiest_is_first() {
        let of = |all: &[(&str, u32, f64)]| {
            let used = |seconds: f64| Usage { seconds, mib: 10.0 };
            all.iter().map(|(name, pid, seconds)| (((*name).to_owned(), *pid), used(*seconds))).collect()
        };
        let before: BTreeMap<_, _> =
            of(&[("members etcd", 1, 5.0), ("members kube-apiserver", 2, 1.0), ("gone", 4, 9.0)]);
        let after =
            of(&[("members etcd", 1, 6.0), ("members kube-apiserver", 2, 3.0), ("members kube-apiserver", 3, 4.0)]);
        let apis = ("members kube-apiserver".to_owned(), Usage { seconds: 6.0, mib: 20.0 });
        let etcd = ("members etcd".to_owned(), Usage { seconds: 1.0, mib: 10.0 });
        assert_eq!(rows(&before, &after), [apis, etcd]);
    }

    #[test]
    fn a_process_is_named_after_what_it_is_of() {
        assert_eq!(named("host", vec![("etcd".into(), 7)]), [("host etcd".to_owned(), 7)]);
    }
}
