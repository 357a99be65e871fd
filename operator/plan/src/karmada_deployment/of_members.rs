//! What members are decided by: what was seen of them, and of their estimators on machines.

use super::machines::estimators_seen;
use super::members;
use super::observed::Observed;

impl<'a> Observed<'a> {
    /// What members are decided by.
    pub(super) fn of_members(&self) -> members::Observed<'a> {
        let Self { now, object, others, material, host, members: seen, .. } = *self;
        members::Observed { now, object, others, material, host: host.seen(), seen, on_machines: estimators_seen(self) }
    }
}
