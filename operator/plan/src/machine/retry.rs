//! What a person types to have another attempt.

use crds::commands::Target;

use super::observed::Observed;
use crate::attempts;

/// What a person types to have another attempt.
pub(in crate::machine) fn retry(observed: &Observed<'_>) -> String {
    attempts::retry_command(Target::Machine, &observed.machine.metadata)
}
