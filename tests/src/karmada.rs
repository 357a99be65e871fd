//! Karmada's programs, where they are given, and what stands in for them where they are not.

pub mod definitions;
pub mod definitions_bundle;
pub mod given;
pub mod in_pods;
pub mod node;
pub mod on_machines;
pub mod probe;
pub mod progress;
pub mod room;
pub mod works;

/// The version that is tested.
pub const VERSION: &str = "1.18.2";
/// The version that a plane has before it is brought to [`VERSION`].
pub const FORMER: &str = "1.17.5";
