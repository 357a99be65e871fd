//! A plane that begins with a backup: its keys, etcd's data, what serves; then, once a person has approved what would
//! become of members, what acts. Its record is `status.restoredFrom`; everything else is read off what is there, so
//! that an operator that is cut off goes on where it was.

mod approval;
pub(super) mod data;
mod gate;
mod go_on;
mod installed;
mod member_report;
mod on_machines;
mod record;
pub(super) mod revision;
mod scene;

pub(super) use go_on::{Outcome, go_on};
pub(crate) use installed::id;
pub use installed::installed_from;
pub(super) use installed::variables;
pub use member_report::{carried, kinds};
pub(super) use on_machines::holds_machines;
pub(super) use scene::Scene;
