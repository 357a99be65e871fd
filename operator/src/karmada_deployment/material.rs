//! What is secret of a plane, as the Secrets beside its KarmadaDeployment have it.

use std::collections::BTreeMap;

use crds::names::certificates_secret;
use crds::{KarmadaDeployment, ObjectExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use plan::karmada_deployment::pki::TABLE;
use plan::karmada_deployment::{Files, HostFacts, Material, leaves, sources};

use super::contents::files;
use super::given_estimators;
use super::pki_owner::{pki_owner, row};
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::kubeconfig::{self, Kept};
use crate::live;
use crate::pki::leaves::{first_end, is_complete};
use crate::pki::material::Data;
use crate::pki::{self, Pki, PkiOwner};

/// What stands before the names of a PKI's files.
const PKI: &str = "pki.";
const ENCRYPTION: &str = "encryption.key";

/// What was read.
#[derive(Default)]
pub(super) struct Secrets {
    pub material: Material,
    /// The administrator's kubeconfig, if it is there.
    pub kubeconfig: Option<Kept>,
    /// Its authorities, with their keys, if they are there.
    pub pki: Option<Pki>,
}

/// Reads all of it from the API: what is secret is in no cache.
pub(super) async fn read(
    ctx: &Context,
    object: &KarmadaDeployment,
    facts: &HostFacts,
    now: Timestamp,
) -> Result<Secrets, Error> {
    let owner = pki_owner(object);
    let kept = owner.find(ctx, &owner.keys_secret()).await?;
    let pki = pki::parse(&owner, kept.as_ref())?;
    let own = pki::own::read(ctx, &owner).await?;
    let mut material = Material {
        secrets: of_people(ctx, object).await?,
        estimators: given_estimators::read(ctx, object, &facts.seats).await?,
        authorities: kept.as_ref().map(|keys| pki::rotation::known(keys, pki.as_ref())).unwrap_or_default(),
        own_authorities: own.map(|own| own.and_then(|own| pki::own::seen(&own, TABLE, kept.as_ref()))),
        ..Material::default()
    };
    let Some(pki) = pki else {
        return Ok(Secrets { material, ..Secrets::default() });
    };
    let kept = certificates(ctx, &owner).await?;
    let rows: Vec<_> = leaves(object, facts).iter().map(row).collect();
    let doing = || format!("read the keys of {}", owner.title());
    material.leaves_due = !is_complete(&kept, &pki, &rows, owner.renewal, now).doing(doing)?;
    material.first_end = first_end(&kept);
    material.leaves = files(kept);
    material.keys = Some(keys(&pki).doing(doing)?);
    let kubeconfig = kubeconfig::read(ctx, &owner, &pki, now).await?;
    Ok(Secrets { material, kubeconfig, pki: Some(pki) })
}

/// Those that the spec refers to, as far as they are there.
async fn of_people(ctx: &Context, object: &KarmadaDeployment) -> Result<BTreeMap<String, Files>, Error> {
    let mut found = BTreeMap::new();
    for source in sources(object) {
        if let Some(secret) = live::get::<Secret>(ctx, object.namespace(), &source.name).await? {
            found.insert(source.name, files(secret.data.unwrap_or_default()));
        }
    }
    Ok(found)
}

async fn certificates(ctx: &Context, owner: &PkiOwner) -> Result<Data, Error> {
    let name = certificates_secret(&owner.name);
    let Some(found) = owner.find(ctx, &name).await? else { return Ok(Data::new()) };
    owner.check(&found).doing(|| format!("use Secret {name}"))?;
    Ok(found.data.unwrap_or_default())
}

/// What the programs of a plane are given: no key of an authority.
fn keys(pki: &Pki) -> Result<Files, pki::PkiError> {
    let own = pki.control_plane_files().into_iter().map(|(name, content)| {
        let name = name.strip_prefix(PKI).map(str::to_owned).unwrap_or(name);
        (name, content.0)
    });
    let mut keys: BTreeMap<String, Vec<u8>> = own.collect();
    keys.remove(ENCRYPTION);
    keys.insert("encryption.yaml".to_owned(), pki.encryption_configuration()?.into_bytes());
    Ok(Files(keys))
}
