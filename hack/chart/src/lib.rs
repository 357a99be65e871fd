//! The chart's templates, written from the files of the kustomization: those are the source, and say in comments what
//! of them a value decides. `make manifests` writes, a test compares.
//!
//! - `LINE  # chart: TEMPLATE`: the template stands in the line's place, at its depth. A comment that stands alone adds
//!   a line to the chart.
//! - Lines from `# chart-skip` to `# chart-resume` are of the kustomization alone.
//! - The operator's namespace is the release's. What is a template already (alerts have some) comes out as it is.

mod files;
mod template;

pub use files::{Files, all, left_over, write};
pub use template::{definition, template};
