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
    let live = match live(objects, object).await? {
        Ok(Found::Object(live)) => live,
        Ok(Found::Nothing) => return Ok(State::Missing),
        Ok(Found::NoKind) => return Ok(State::KindUnknown),
        Err(why) => return Ok(State::Refused(why)),
    };
    let trial = trial(objects, object, manifest, manager, &live).await?;
    Ok(State::There { live, trial })
}

/// The object as it is, or why reading it is refused. An error says why the cluster does not answer.
pub(crate) async fn live(objects: &Objects, object: &AppliedObject) -> Result<Result<Found, String>, String> {
    match objects.get(object).await {
        Ok(found) => Ok(Ok(found)),
        Err(Failure::Lost(why)) => Err(why),
        Err(failure) => Ok(Err(failure.to_string())),
    }
}

/// What this field manager would change by applying an object that is there, as a dry run says. An error says why the
/// cluster does not answer.
pub(crate) async fn trial(
    objects: &Objects,
    object: &AppliedObject,
    manifest: &Value,
    manager: &str,
    live: &Value,
) -> Result<Trial, String> {
    Ok(match objects.try_apply(object, manifest, manager).await {
        Ok(tried) if is_same(live, &tried, manager) => Trial::Same,
        Ok(_) => Trial::Differs,
        Err(Failure::Conflicts(conflicts)) => Trial::Conflicts(conflicts),
        Err(Failure::Refused(why)) if why.contains("does not support dry run") => Trial::Unknown,
        Err(Failure::Refused(why) | Failure::Forbidden(why)) => Trial::Refused(why),
        Err(Failure::Lost(why)) => return Err(why),
    })
}
