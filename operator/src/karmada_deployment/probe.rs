//! The probe of a plane, through its API server: its template, and what Karmada has made of it.

use crds::cluster_addon::AppliedObject;
use plan::karmada_deployment::{Manifest, PlaneSeen, ProbeSeen, probe_binding, probe_namespace, probe_template};
use serde_json::Value;

use crate::error::Error;
use crate::objects::look::live;
use crate::objects::{Found, Objects};

/// Looks at it. An error says why the plane does not answer.
pub(super) async fn look(objects: &Objects) -> Result<ProbeSeen, String> {
    let template = match read(objects, &probe_template()).await? {
        Ok(Some(template)) => template,
        Ok(None) => return Ok(ProbeSeen::default()),
        Err(why) => return Ok(refused(why)),
    };
    Ok(match read(objects, &probe_binding()).await? {
        Ok(binding) => ProbeSeen { template: Some(template), binding, refused: None },
        Err(why) => refused(why),
    })
}

/// What there is to be removed of it from a plane that is asked nothing else any more.
pub(super) async fn look_for_left(objects: &Objects) -> Result<PlaneSeen, String> {
    let left = read(objects, &probe_namespace()).await??;
    Ok(PlaneSeen { left, ..PlaneSeen::default() })
}

/// Gives the template another value.
pub(super) async fn ask(objects: &Objects, manifest: &Manifest, seen: &mut ProbeSeen) -> Result<(), Error> {
    let state = objects.apply(&probe_template(), &manifest.0, true).await?;
    seen.apply(state);
    Ok(())
}

/// The object, or why reading it is refused.
async fn read(objects: &Objects, object: &AppliedObject) -> Result<Result<Option<Value>, String>, String> {
    Ok(live(objects, object).await?.map(|found| match found {
        Found::Object(live) => Some(*live),
        Found::Nothing | Found::NoKind => None,
    }))
}

fn refused(why: String) -> ProbeSeen {
    ProbeSeen { refused: Some(why), ..ProbeSeen::default() }
}
