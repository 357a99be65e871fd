//! What to do next, decided from what was observed. Pure functions: no client, no clock, no chance, no waiting.

mod next;

pub use next::{Next, Plan};

// One line for each planner, in alphabetical order.
pub mod cluster;
pub mod inputs;
#[cfg(test)]
pub mod settles;
