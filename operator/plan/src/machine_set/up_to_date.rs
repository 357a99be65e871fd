//! Whether the set's machines are as its template wants them, by what each of them says.

use crds::conditions::Statement;
use crds::names::condition;
use crds::{Conditions, Machine, ObjectExt, Reason};

use crate::lifecycle::is_provisioned;
use crate::message::cut;

/// As the first machine that is not, or is not known to be; machines that are on their way to their cluster do not
/// count.
pub(super) fn statement(live: &[&Machine]) -> Statement {
    let provisioned: Vec<&Machine> = live.iter().copied().filter(|machine| is_provisioned(machine)).collect();
    let stated = |status: &'static str| {
        provisioned.iter().filter_map(move |machine| {
            let stated = machine.condition(condition::UP_TO_DATE).filter(|stated| stated.status == status)?;
            Some((machine, stated))
        })
    };
    let summary = |status: &'static str, value: Option<bool>| {
        let count = stated(status).count();
        let (machine, first) = stated(status).next()?;
        let message = format!("{count} of {} machines; {}: {}", provisioned.len(), machine.name(), first.message);
        Some(Statement::new(condition::UP_TO_DATE, value, first.reason.clone(), cut(message)))
    };
    let all = || {
        let message = format!("all of {} machines have what is wanted", provisioned.len());
        Statement::new(condition::UP_TO_DATE, true, Reason::UpToDate, message)
    };
    summary("False", Some(false)).or_else(|| summary("Unknown", None)).unwrap_or_else(all)
}
