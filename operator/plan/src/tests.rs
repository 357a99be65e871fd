//! Promises that all planners keep together.

mod fleet;
