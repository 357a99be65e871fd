//! The log of a run: whether there is one, and what keeps it.

use crds::ObjectExt;
use crds::Reason;
use crds::conditions::Statement;
use crds::names::{condition, label};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};

use super::observed::{LogSeen, RunObserved};
use super::pod::terminated;
use super::status::cut;
use crate::job::metadata;

/// Name of the compressed log in its ConfigMaps.
const LOG_KEY: &str = "log.gz";
/// Most parts of a log.
const MOST_PARTS: usize = 8;

/// True for a Pod that ended and whose node may still have its log: one that never began has none.
pub fn has_log(pod: &Pod) -> bool {
    let unknown = |reason: &str| matches!(reason, "ContainerStatusUnknown" | "StartError");
    terminated(pod).is_some_and(|end| !end.reason.as_deref().is_some_and(unknown))
}

/// Whether the log is there to be read; the condition `LogKept`.
pub(super) fn kept(observed: &RunObserved<'_>) -> Statement {
    let message = match observed.log {
        LogSeen::Parts(parts) if parts.is_empty() => "the executor wrote nothing",
        LogSeen::Parts(parts) => {
            let kept = parts.len().min(MOST_PARTS);
            let message = format!("kept in {}", crate::message::count(kept, "ConfigMap"));
            return Statement::new(condition::LOG_KEPT, true, Reason::Kept, message);
        }
        LogSeen::NotYet(why) | LogSeen::Lost(why) => why.as_str(),
        LogSeen::NotLookedAt => "the executor did not start, or its node is gone",
    };
    Statement::new(condition::LOG_KEPT, false, Reason::NoLog, cut(message))
}

/// The ConfigMaps that keep it.
pub(super) fn parts(observed: &RunObserved<'_>) -> Vec<ConfigMap> {
    let LogSeen::Parts(parts) = observed.log else {
        return Vec::new();
    };
    let name = observed.run.name().to_owned();
    let part = |(index, bytes): (usize, &Vec<u8>)| {
        let mut metadata = metadata(observed.run, &format!("{name}-log-{index}"));
        // One label finds all parts, in order, and nothing else of the run.
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(label::LOG.to_owned(), name.clone());
        ConfigMap {
            metadata,
            binary_data: Some([(LOG_KEY.to_owned(), ByteString(bytes.clone()))].into()),
            immutable: Some(true),
            ..ConfigMap::default()
        }
    };
    parts.iter().take(MOST_PARTS).enumerate().map(part).collect()
}
