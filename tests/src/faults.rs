//! Faults on real parts: installs of one control plane and one worker that are hit in a chosen step, and what is
//! promised to hold afterwards.
//!
//! `fault`, `schedule`, `grip`, `verdict` and `table` decide and know no cluster; `sight` looks, `inject` hits,
//! `course` drives one install, `campaign` drives all of them.

pub mod campaign;
pub mod course;
pub mod fault;
pub mod grip;
pub mod inject;
pub mod schedule;
pub mod sight;
pub mod table;
pub mod verdict;
pub mod wishes;
