//! A look at an object: as it is, and as applying it would make it.

use crds::cluster_addon::AppliedObject;
use plan::cluster_addon::{State, Trial, is_same};
use serde_json::Value;

use super::{Failure, Found, Objects};

/// Calls that are under way at once.
pub(crate) const AT_ONCE: usize = 8;

/// How an object is, and what this field manager would change by applying it, as a dry run says; nothing is written. An
/// error says why the cluster does not answer.
pub(crate) async fn state(
    objects: &Objects,
    object: &AppliedObject,
    manifest: &Value,
    manager: &str,
) -> Result<State, String> {
    let live = match objects.get(object).await {
        Ok(Found::Object(live)) => live,
        Ok(Found::Nothing) => return Ok(State::Missing),
        Ok(Found::NoKind) => return Ok(State::KindUnknown),
        Err(Failure::Lost(why)) => return Err(why),
        Err(failure) => return Ok(State::Refused(failure.to_string())),
    };
    let trial = match objects.try_apply(object, manifest, manager).await {
        Ok(tried) if is_same(&live, &tried, manager) => Trial::Same,
        Ok(_) => Trial::Differs,
        Err(Failure::Conflicts(conflicts)) => Trial::Conflicts(conflicts),
        Err(Failure::Refused(why)) if why.contains("does not support dry run") => Trial::Unknown,
        Err(Failure::Refused(why) | Failure::Forbidden(why)) => Trial::Refused(why),
        Err(Failure::Lost(why)) => return Err(why),
    };
    Ok(State::There { live, trial })
}
