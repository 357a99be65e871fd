//! The certificate of a Pull member's agent, in a Secret beside the KarmadaDeployment.

use crds::KarmadaDeployment;
use crds::karmada_deployment::SyncMode;
use jiff::Timestamp;
use plan::karmada_deployment::LeafWanted;
use plan::karmada_deployment::members::{AgentCertificate, Target, agent_secret, leaf};

use super::super::material::files;
use super::super::pki_owner::{pki_owner, row};
use super::asked::Asked;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::execute;
use crate::pki::{self, leaves};

/// The certificate that is there, and whether it is to be made.
pub(super) async fn read(ctx: &Context, asked: &Asked<'_>, target: &Target) -> Result<AgentCertificate, Error> {
    if target.sync_mode != SyncMode::Pull {
        return Ok(AgentCertificate::default());
    }
    let (owner, name) = (pki_owner(asked.object), agent_secret(asked.object, &target.name));
    let Some(secret) = owner.find(ctx, &name).await? else {
        return Ok(AgentCertificate { files: None, is_due: true });
    };
    if owner.check(&secret).is_err() {
        // It is somebody else's, as making ours will say.
        return Ok(AgentCertificate { files: None, is_due: true });
    }
    let kept = secret.data.unwrap_or_default();
    let is_due = match asked.pki {
        // Without authorities nothing is issued.
        None => false,
        Some(pki) => {
            let rows = [row(&leaf(&target.name))];
            let is_complete = leaves::is_complete(&kept, pki, &rows, owner.renewal, asked.now);
            !is_complete.doing(|| format!("look at the certificate in Secret {name}"))?
        }
    };
    Ok(AgentCertificate { files: Some(files(kept)), is_due })
}

/// Makes it, or keeps one that still does.
pub(super) async fn issue(
    ctx: &Context,
    object: &KarmadaDeployment,
    member: &str,
    wanted: &LeafWanted,
    now: Timestamp,
) -> Result<(), Error> {
    let owner = pki_owner(object);
    let pki = pki::get(ctx, &owner).await?;
    let (secret, what) = (agent_secret(object, member), format!("certificate of the agent in {member}"));
    leaves::ensure(ctx, &owner, (&secret, &what), &pki, &[row(wanted)], now).await.map(drop)
}

/// Deletes it, if it is ours.
pub(super) async fn delete(ctx: &Context, object: &KarmadaDeployment, member: &str) -> Result<(), Error> {
    let (owner, name) = (pki_owner(object), agent_secret(object, member));
    let Some(secret) = owner.find(ctx, &name).await? else { return Ok(()) };
    owner.check(&secret).doing(|| format!("delete Secret {name}"))?;
    execute::delete(ctx, &secret, None).await
}
