//! What a run on machines of a Karmada control plane is given of its keys.

use crds::{KarmadaDeployment, PlaybookRun};
use jiff::Timestamp;
use kube::ResourceExt;
use plan::inputs::SecretsNeeded;

use super::artifacts_login::artifacts_login;
use crate::context::Context;
use crate::error::Error;
use crate::karmada_deployment::{part_files, pki_owner};
use crate::pki::etcd::Member;
use crate::pki::material::Data;
use crate::pki::{self, etcd};

/// The files that the run's steps have a use for.
pub(super) async fn files(
    ctx: &Context,
    plane: &KarmadaDeployment,
    run: &PlaybookRun,
    needs: &SecretsNeeded,
) -> Result<Data, Error> {
    let mut data = Data::new();
    if needs.authority || !needs.etcd_hosts.is_empty() {
        let owner = pki_owner(plane);
        let pki = pki::get(ctx, &owner).await?;
        if needs.authority {
            data.extend(pki.authority_files());
        }
        if !needs.etcd_hosts.is_empty() {
            let certificates =
                etcd::ensure(ctx, &owner, &pki, &Member::all(&needs.etcd_members), Timestamp::now()).await?;
            data.extend(pki.etcd_files());
            data.extend(certificates.files_of(needs.etcd_hosts.iter().map(String::as_str)));
        }
    }
    if needs.artifacts_login {
        let source = plane.spec.binary.as_ref().map(|binary| &binary.artifacts);
        data.extend(artifacts_login(ctx, &plane.namespace().unwrap_or_default(), source).await?);
    }
    if needs.karmada_part {
        data.extend(part_files(ctx, plane, run).await?);
    }
    Ok(data)
}
