//! What the operator has used and written, from `/proc` and its metrics.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use anyhow::Result;
use e2e::operator_process::Operator;
use e2e::usage::usage;

/// The operator at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    at: Instant,
    processor_seconds: f64,
    /// Memory that is resident.
    pub resident_mib: f64,
    /// Writes to the API, the Lease apart.
    pub writes: u64,
    /// The same, by verb and resource.
    by_resource: BTreeMap<String, u64>,
}

/// What was used between two moments.
pub struct Used {
    seconds: f64,
    processor_seconds: f64,
    resident_mib: f64,
    writes: u64,
}

impl Sample {
    pub async fn take(operator: &Operator) -> Result<Self> {
        let used = usage(operator.pid())?;
        let metrics = operator.ask("/metrics").await?;
        let is_counted = |line: &&str| line.starts_with("clusterwright_api_writes_total{") && !line.contains("leases");
        let by_resource: BTreeMap<String, u64> = metrics.lines().filter(is_counted).filter_map(of_resource).collect();
        Ok(Self {
            at: Instant::now(),
            processor_seconds: used.seconds,
            resident_mib: used.mib,
            writes: by_resource.values().sum(),
            by_resource,
        })
    }

    pub fn since(&self, before: &Self) -> Used {
        Used {
            seconds: (self.at - before.at).as_secs_f64(),
            processor_seconds: self.processor_seconds - before.processor_seconds,
            resident_mib: self.resident_mib,
            writes: self.writes - before.writes,
        }
    }

    /// What was written, the most first.
    pub fn written(&self) -> String {
        let mut written: Vec<(&String, &u64)> = self.by_resource.iter().collect();
        written.sort_by_key(|(name, count)| (Reverse(**count), *name));
        let written: Vec<String> = written.into_iter().map(|(name, count)| format!("{name} {count}")).collect();
        written.join(", ")
    }
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, processor_seconds, resident_mib, writes } = self;
        let share = 100.0 * processor_seconds / seconds;
        write!(f, "{share:.1} % of a core, {resident_mib:.0} MiB, {writes} writes in {seconds:.0} s")
    }
}

/// Objects whose reconcile is due or under way, of all kinds.
pub async fn queue_depth(operator: &Operator) -> Result<u64> {
    let metrics = operator.ask("/metrics").await?;
    Ok(metrics.lines().filter(|line| line.starts_with("clusterwright_queue_depth{")).filter_map(value).sum())
}

/// The value that so many of a hundred do not exceed; 0 for none.
pub fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// `VERB RESOURCE` and how often, of a line of the metrics.
fn of_resource(line: &str) -> Option<(String, u64)> {
    let label = |name: &str| line.split_once(&format!("{name}=\""))?.1.split('"').next();
    Some((format!("{} {}", label("verb")?, label("resource")?), value(line)?))
}

fn value(line: &str) -> Option<u64> {
    line.rsplit(' ').next()?.parse().ok()
}
