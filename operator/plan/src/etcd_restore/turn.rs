//! Restores of one cluster or plane follow each other.

use crds::{EtcdRestore, ObjectExt};

use super::observed::Observed;
use super::phase::is_over;

/// Another one of the same cluster or plane that was made before, and is not over, in words.
pub(super) fn not_its_turn(observed: &Observed<'_>) -> Option<String> {
    let others = observed.restores.iter().filter(|other| other.uid() != observed.restore.uid() && !is_over(other));
    let before = |other: &&&EtcdRestore| {
        (other.created_at(), other.name()) < (observed.restore.created_at(), observed.restore.name())
    };
    let other = others.into_iter().find(before)?;
    Some(format!("EtcdRestore {} of {} is not over yet", other.name(), other.spec.subject()))
}
