//! What the estimators of members are given on machines, each in a Secret beside the KarmadaDeployment.

use std::collections::{BTreeMap, BTreeSet};

use crds::KarmadaDeployment;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::ByteString;
use plan::karmada_deployment::{GivenEstimator, Seats};

use super::contents::files;
use super::pki_owner::pki_owner;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::execute;
use crate::objects::look::AT_ONCE;

/// What is kept there for members that are named or known; nothing of a plane that never had an estimator, or is in
/// Pods. The operator may not list Secrets.
pub(super) async fn read(
    ctx: &Context,
    object: &KarmadaDeployment,
    seats: &Seats,
) -> Result<BTreeMap<String, GivenEstimator>, Error> {
    if object.spec.binary.is_none() || (object.spec.estimator.is_none() && !seats.has_estimators) {
        return Ok(BTreeMap::new());
    }
    let known = object.status.iter().flat_map(|status| &status.members).map(|member| member.name.clone());
    let names: BTreeSet<String> = object.spec.members.iter().map(|member| member.name.clone()).chain(known).collect();
    let looks: Vec<_> = names
        .into_iter()
        .map(|name| async move {
            let found = find(ctx, object, &name).await?;
            Ok::<_, Error>(found.map(|given| (name, given)))
        })
        .collect();
    let found: Vec<_> = stream::iter(looks).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// What is kept for one; somebody else's Secret is none, as keeping it there will say.
async fn find(ctx: &Context, object: &KarmadaDeployment, member: &str) -> Result<Option<GivenEstimator>, Error> {
    let owner = pki_owner(object);
    let secret = owner.find(ctx, &GivenEstimator::secret(object, member)).await?;
    let secret = secret.filter(|secret| owner.check(secret).is_ok());
    Ok(secret.and_then(|secret| GivenEstimator::parse(files(secret.data.unwrap_or_default()))))
}

/// Keeps it.
pub(super) async fn give(
    ctx: &Context,
    object: &KarmadaDeployment,
    member: &str,
    given: &GivenEstimator,
) -> Result<(), Error> {
    let (owner, name) = (pki_owner(object), GivenEstimator::secret(object, member));
    if let Some(found) = owner.find(ctx, &name).await? {
        owner.check(&found).doing(|| format!("use Secret {name}"))?;
    }
    let data = given.data().0.into_iter().map(|(name, content)| (name, ByteString(content))).collect();
    execute::apply(ctx, &owner.secret(&name, data)).await.map(drop)
}

/// Deletes what is kept, if it is ours.
pub(super) async fn take(ctx: &Context, object: &KarmadaDeployment, member: &str) -> Result<(), Error> {
    let (owner, name) = (pki_owner(object), GivenEstimator::secret(object, member));
    let Some(secret) = owner.find(ctx, &name).await? else { return Ok(()) };
    owner.check(&secret).doing(|| format!("delete Secret {name}"))?;
    execute::delete(ctx, &secret, None).await
}
