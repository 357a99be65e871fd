//! The life of clusters on real machines: they grow, lose machines, get others in their place, shrink, and go.

pub mod campaign;
pub mod guards;
pub mod profile;
pub mod records;
pub mod scenario;
pub mod stage;
pub mod table;
pub mod whole;
pub mod writer;
