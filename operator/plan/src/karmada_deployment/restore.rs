//! A plane that begins with a backup: its keys, etcd's data, what serves; then, once a person has approved what would
//! become of members, what acts. Its record is `status.restoredFrom`; everything else is read off what is there, so
//! that an operator that is cut off goes on where it was.

mod approval;
pub(super) mod data;
mod gate;
mod go_on;
mod member_report;
mod on_machines;
mod record;
pub(super) mod revision;
mod scene;

pub(super) use go_on::{Outcome, go_on};
pub use member_report::{carried, kinds};
pub(crate) use on_machines::id;
pub use on_machines::installed_from;
pub(super) use on_machines::{holds_machines, variables};
pub(super) use scene::Scene;
