//! What a person types to have another attempt.

use crds::commands::{self, Target};
use crds::names::annotation;

use super::observed::Observed;
use crate::attempts;

/// What a person types to have another attempt.
pub(in crate::machine) fn retry(observed: &Observed<'_>) -> String {
    let metadata = &observed.machine.metadata;
    let value = attempts::next_retry(metadata.annotations.as_ref(), metadata.generation.unwrap_or_default());
    commands::annotate(Target::Machine, metadata, annotation::RETRY, value)
}
