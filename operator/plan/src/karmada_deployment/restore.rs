//! A plane that begins with a backup: its keys, etcd's data, what serves; then, once a person has approved what would
//! become of members, what acts. One that an EtcdRestore sets back stops first, and does the same. Its record is
//! `status.restoredFrom`; everything else is read off what is there, so that an operator that is cut off goes on where
//! it was.

mod approval;
mod begin;
pub(super) mod data;
mod gate;
mod go_on;
mod handed;
mod installed;
mod member_report;
mod mounted;
mod on_machines;
mod record;
pub(super) mod revision;
mod scene;
mod stop;
pub(crate) mod undo;

pub(super) use begin::begins;
pub(super) use go_on::{Outcome, go_on};
pub use handed::{handed_over, is_handed_over, restored_from, source};
pub(crate) use installed::id;
pub use installed::installed_from;
pub(crate) use installed::set_back_by;
pub(super) use installed::variables;
pub use member_report::{carried, kinds};
pub(crate) use mounted::not_mounted;
pub(super) use on_machines::holds_machines;
pub(crate) use record::{differences, settled_in_place};
pub(super) use scene::Scene;
