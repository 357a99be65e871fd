//! Faults on real parts: installs of one control plane and one worker that are hit in a chosen step, and what is
//! promised to hold afterwards.
//!
//! `fault`, `schedule`, `fault_effect`, `pending`, `verdict` and `table` decide and know no cluster; `observers` watch,
//! `inject` hits, `installation` drives one install, `campaign` drives all of them.

pub mod campaign;
pub mod fault;
pub mod fault_effect;
pub mod inject;
pub mod installation;
pub mod observers;
pub mod pending;
pub mod schedule;
pub mod table;
pub mod verdict;
