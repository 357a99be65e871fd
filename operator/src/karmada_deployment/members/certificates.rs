//! The certificates of a member alone, each in a Secret beside the KarmadaDeployment.

use crds::KarmadaDeployment;
use crds::karmada_deployment::SyncMode;
use jiff::Timestamp;
use plan::karmada_deployment::LeafWanted;
use plan::karmada_deployment::members::{Certificate, Certificates, Leaf, Target, has_estimator, leaf_wanted};

use super::super::contents::files;
use super::super::pki_owner::{pki_owner, row};
use super::asked::Asked;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::execute;
use crate::pki::{self, leaves};

/// Those that are there, and whether they are to be made.
pub(super) async fn read(ctx: &Context, asked: &Asked<'_>, target: &Target) -> Result<Certificates, Error> {
    let mut found = Certificates::default();
    if target.sync_mode == SyncMode::Pull {
        found.agent = certificate(ctx, asked, target, Leaf::Agent).await?;
    }
    if has_estimator(&asked.basis(), target) {
        found.estimator = certificate(ctx, asked, target, Leaf::Estimator).await?;
    }
    Ok(found)
}

async fn certificate(ctx: &Context, asked: &Asked<'_>, target: &Target, leaf: Leaf) -> Result<Certificate, Error> {
    let (owner, name) = (pki_owner(asked.object), leaf.secret(asked.object, &target.name));
    let Some(secret) = owner.find(ctx, &name).await? else {
        return Ok(Certificate { files: None, is_due: true });
    };
    if owner.check(&secret).is_err() {
        // It is somebody else's, as making ours will say.
        return Ok(Certificate { files: None, is_due: true });
    }
    let kept = secret.data.unwrap_or_default();
    let is_due = match asked.pki {
        // Without authorities nothing is issued.
        None => false,
        Some(pki) => {
            let rows = [row(&leaf_wanted(asked.object, leaf, &target.name))];
            let is_complete = leaves::is_complete(&kept, pki, &rows, owner.renewal, asked.now);
            !is_complete.doing(|| format!("look at the certificate in Secret {name}"))?
        }
    };
    Ok(Certificate { files: Some(files(kept)), is_due })
}

/// Makes one, or keeps one that still does.
pub(super) async fn issue(
    ctx: &Context,
    object: &KarmadaDeployment,
    member: &str,
    (leaf, wanted): (Leaf, &LeafWanted),
    now: Timestamp,
) -> Result<(), Error> {
    let owner = pki_owner(object);
    let pki = pki::get(ctx, &owner).await?;
    let (secret, what) = (leaf.secret(object, member), format!("certificate of the {} in {member}", leaf.owner()));
    leaves::ensure(ctx, &owner, (&secret, &what), &pki, &[row(wanted)], now).await.map(drop)
}

/// Deletes one, if it is ours.
pub(super) async fn delete(ctx: &Context, object: &KarmadaDeployment, member: &str, leaf: Leaf) -> Result<(), Error> {
    let (owner, name) = (pki_owner(object), leaf.secret(object, member));
    let Some(secret) = owner.find(ctx, &name).await? else { return Ok(()) };
    owner.check(&secret).doing(|| format!("delete Secret {name}"))?;
    execute::delete(ctx, &secret, None).await
}
