//! A plane on machines: the same components in the same stages as in Pods, as services of systemd. A stage is done once
//! its part is on every machine as it is wanted, and works there; what is not is brought by a run. So the same order
//! installs a plane, brings a machine to it, renews certificates and rolls a version through it.

mod balancer;
mod certificates;
mod order;
mod ports;
mod service;
mod turn;

pub use balancer::{Frontend, frontends, served_at};
pub use certificates::{Seat, api_server_leaf, serving_leaf};
pub use order::{Part, parts, steps_to_join};
pub use ports::Ports;
pub use service::{Service, Site, exec_start, service};
pub use turn::{Placed, PlaneMachine, Turn, turn};

#[cfg(test)]
mod tests;
