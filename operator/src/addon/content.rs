//! The content of revisions, each in a Secret that never changes.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use crds::names::{ADDON_REVISION_KEY, addon_revision_secret, label};
use crds::references::controller_ref;
use crds::{Addon, ObjectExt};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use plan::addon::revision::Revision;

use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::{execute, live};

/// More than any revision is.
const LARGEST: u64 = 64 << 20;

/// The content as it is kept: the same for the same revision.
pub(super) fn pack(revision: &Revision) -> Result<Vec<u8>, Error> {
    let doing = || "compress the content of a revision".to_owned();
    let text = serde_json::to_vec(revision).doing(doing)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&text).doing(doing)?;
    encoder.finish().doing(doing)
}

fn unpack(packed: &[u8]) -> Result<Revision, String> {
    let mut text = Vec::new();
    GzDecoder::new(packed).take(LARGEST).read_to_end(&mut text).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

/// The Secret with the content of a revision, if it is there and the Addon's own.
async fn kept(ctx: &Context, addon: &Addon, revision: &str) -> Result<Option<Secret>, Error> {
    let name = addon_revision_secret(addon.name(), revision);
    let found = live::get::<Secret>(ctx, addon.namespace(), &name).await?;
    Ok(found.filter(|secret| secret.is_owned_by(addon.uid())))
}

/// Whether the content of a revision is there, and the Addon's own.
pub(super) async fn is_kept(ctx: &Context, addon: &Addon, revision: &str) -> Result<bool, Error> {
    Ok(kept(ctx, addon, revision).await?.is_some())
}

/// Keeps the content of a revision.
pub(super) async fn keep(ctx: &Context, addon: &Addon, revision: &str, packed: &[u8]) -> Result<(), Error> {
    let mut secret = Secret {
        immutable: Some(true),
        data: Some(BTreeMap::from([(ADDON_REVISION_KEY.to_owned(), ByteString(packed.to_vec()))])),
        ..Secret::default()
    };
    secret.metadata.name = Some(addon_revision_secret(addon.name(), revision));
    secret.metadata.namespace = addon.metadata.namespace.clone();
    secret.metadata.labels = Some(BTreeMap::from([(label::ADDON.to_owned(), addon.name().to_owned())]));
    secret.metadata.owner_references = controller_ref(addon).map(|owner| vec![owner]);
    execute::create_ours(ctx, &secret).await
}

/// Deletes the content of a revision; what is not the Addon's own stays.
pub(super) async fn forget(ctx: &Context, addon: &Addon, revision: &str) -> Result<(), Error> {
    let Some(secret) = kept(ctx, addon, revision).await? else { return Ok(()) };
    execute::delete(ctx, &secret, None).await?;
    // Nobody looks for it once the status does not name it any more.
    match kept(ctx, addon, revision).await? {
        Some(left) if left.uid() == secret.uid() && !left.is_deleting() => {
            let action = format!("delete Secret {}", secret.name());
            Err(Error::Failed { action, source: "it is still there".into() })
        }
        Some(_) | None => Ok(()),
    }
}

/// The content of a revision of an Addon; or why it cannot be read.
pub(crate) async fn read(ctx: &Context, addon: &Addon, revision: &str) -> Result<Result<Revision, String>, Error> {
    let name = addon_revision_secret(addon.name(), revision);
    let Some(secret) = kept(ctx, addon, revision).await? else {
        return Ok(Err(format!("Secret {name}, which has the content of the revision, is not there")));
    };
    let data = secret.data.unwrap_or_default();
    let packed = data.get(ADDON_REVISION_KEY).map(|bytes| bytes.0.as_slice()).unwrap_or_default();
    Ok(unpack(packed)
        .map_err(|why| format!("Secret {name}, which has the content of the revision, cannot be read: {why}")))
}

#[cfg(test)]
mod tests {
    use plan::addon::revision::{File, Revision};

    use super::{pack, unpack};

    #[test]
    fn what_is_kept_is_read_again() {
        let file = File { place: "ConfigMap a: b".into(), text: "x".repeat(100_000) };
        let revision = Revision {
            version: Some("1".into()),
            template: true,
            files: vec![file],
            chart: None,
            health_checks: Vec::new(),
        };
        let packed = pack(&revision).unwrap();
        assert!(packed.len() < 1000, "{}", packed.len());
        assert_eq!(unpack(&packed).unwrap(), revision);
        assert_eq!(pack(&revision).unwrap(), packed);
        assert!(unpack(b"x").is_err());
    }
}
