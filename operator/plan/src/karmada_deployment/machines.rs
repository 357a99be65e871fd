//! A plane on machines: the same components in the same stages as in Pods, as services of systemd. A stage is done once
//! its part is on every machine as it is wanted, and works there; what is not is brought by a run. So the same order
//! installs a plane, brings a machine to it, renews certificates and rolls a version through it.

mod act;
mod asked;
mod balancer;
mod certificates;
mod deletion;
pub(super) mod endpoint_claim;
pub(super) mod endpoint_problem;
pub(super) mod estimators;
mod estimators_seen;
mod history;
mod lock;
mod on_all;
mod operations;
mod order;
mod part_run;
mod part_wanted;
mod placed;
mod plane;
mod ports;
mod proposal;
mod reports;
mod restore_runs;
mod rollout;
mod seating;
mod secret_files;
mod service;
mod state;
mod taken_off;
mod together;
mod turn;
mod wanted_parts;

pub use act::Act;
pub(crate) use asked::{programs, services};
pub use balancer::{Frontend, frontends, served_at};
pub use certificates::leaves;
pub(super) use deletion::Deletion;
pub(super) use estimators_seen::estimators_seen;
pub use order::{EtcdStart, Part, parts, steps_to_join};
pub(super) use plane::Machines;
pub use ports::Ports;
pub(super) use restore_runs::RestoreRun;
pub use seating::seats;
pub use secret_files::secret_files;
pub(super) use service::has_all_files;
pub use service::{Service, Site, exec_start, service};
pub use together::together;
pub use turn::{Placed, PlaneMachine, Turn, turn};

#[cfg(test)]
pub(super) mod tests;
