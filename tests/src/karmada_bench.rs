//! What planes of Karmada's own programs take on this machine: to join members, and to run elsewhere what ran in a
//! member that dies. It prints what it measured, and asserts nothing; `hack/bench/karmada` runs it. Or it keeps such a
//! plane, for what others run against it.

pub mod failover;
pub mod join;
mod kubelets;
mod member;
mod plane;
mod processes;
pub mod serve;
mod settings;
mod table;
