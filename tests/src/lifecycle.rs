//! The life of clusters on real machines: they grow, lose machines, get others in their place, shrink, and go.

pub mod campaign;
pub mod course;
pub mod guards;
pub mod scene;
pub mod stage;
pub mod table;
pub mod whole;
pub mod writer;
