//! What is looked at of a plane in one place.

use crds::cluster_addon::AppliedObject;
use plan::karmada_deployment::{Manifest, Place, Wanted};

/// What is wanted of a plane in this place.
pub(super) fn there(wanted: &[Wanted], place: Place) -> Vec<(&AppliedObject, &Manifest)> {
    wanted.iter().filter(|one| one.place == place).map(|one| (&one.object, &one.manifest)).collect()
}
