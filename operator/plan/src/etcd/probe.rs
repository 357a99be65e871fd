//! The runs that look at the members of etcd.

use crds::PlaybookRun;
use crds::step::{Intent, Step};
use jiff::Timestamp;

use crate::attempts;

/// Whether a run looks at the members of an etcd.
pub fn is_probe(run: &PlaybookRun) -> bool {
    run.spec.intent == Intent::Probe && run.spec.steps == [Step::ProbeEtcd]
}

/// The looks that have ended, each with when: the newest first.
pub(crate) fn looks<'a>(runs: &[&'a PlaybookRun]) -> Vec<(Timestamp, &'a PlaybookRun)> {
    let ended = runs.iter().filter(|run| is_probe(run) && attempts::is_over(run));
    let mut looks: Vec<(Timestamp, &PlaybookRun)> =
        ended.filter_map(|run| Some((attempts::ended_at(run)?, *run))).collect();
    looks.sort_by_key(|(at, run)| (std::cmp::Reverse(*at), run.metadata.name.clone()));
    looks
}
