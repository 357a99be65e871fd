//! A chart on a cluster: when Helm is run for it, and what came of that.

mod attempt;
mod decision;
pub(super) mod job;
pub(super) mod leave;
mod need;
pub(super) mod plan;
pub mod prepared;
pub mod release;
mod seen;
mod upgrade;

pub use job::Operation;
pub use prepared::PreparedChart;
pub use release::{HELM_FIELD_MANAGER, Release};
pub use seen::ChartSeen;

#[cfg(test)]
mod tests;
