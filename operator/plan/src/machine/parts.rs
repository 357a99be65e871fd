//! The parts of a Karmada control plane on the machine, as they were found when it was looked at last.

use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use jiff::SignedDuration;

use super::observed::Observed;
use crate::message::{cut, quote};

/// What was seen longer ago says nothing of now.
const STALE: SignedDuration = SignedDuration::from_mins(30);

/// `Ready` of a machine on which a part is known not to work.
pub(super) fn not_well(observed: &Observed<'_>) -> Option<Statement> {
    let parts = observed.machine.status.as_ref().map(|status| status.parts.as_slice()).unwrap_or_default();
    let mut fresh = parts.iter().filter(|part| observed.now.duration_since(part.last_probe_time.0) < STALE);
    let sick = fresh.find(|part| !part.healthy)?;
    let why = sick.message.as_deref().map(|message| format!(": {}", quote(message.to_owned()))).unwrap_or_default();
    let message = cut(format!("{} is not healthy{why}", sick.name));
    Some(Statement::new(condition::READY, false, Reason::PartUnhealthy, message))
}
