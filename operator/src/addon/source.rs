//! The source of an Addon, as it is now.

use std::collections::BTreeMap;

use crds::addon::{BundleManifests, ManifestsRef, ValuesRef};
use crds::{Addon, ObjectExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use plan::addon::bundle::{Entry, EntryKind, EntryWanted};
use plan::addon::chart::{ChartArchive, ValuesSeen};
use plan::addon::revision::{Revision, SourceRead, SourceSeen};
use plan::addon::{Content, Problem};

use super::bundle::{Access, entry};
use super::content::{is_kept, pack};
use crate::context::Context;
use crate::error::Error;
use crate::live;

/// The revision that the source makes, and its content as it is kept; or why it makes none.
pub(super) async fn read(ctx: &Context, addon: &Addon) -> Result<(Result<Content, Problem>, Vec<u8>), Error> {
    let read = match source(ctx, addon).await? {
        Ok(read) => read,
        Err(problem) => return Ok((Err(problem), Vec::new())),
    };
    let revision = match Revision::new(addon.name(), &addon.spec, read) {
        Ok(revision) => revision,
        Err(problem) => return Ok((Err(problem), Vec::new())),
    };
    let (name, packed) = (revision.name(), pack(&revision)?);
    let content = Content { size: packed.len(), is_kept: is_kept(ctx, addon, &name).await?, revision: name };
    Ok((Ok(content), packed))
}

/// What the source has now; or what of a bundle is not to be had.
async fn source(ctx: &Context, addon: &Addon) -> Result<Result<SourceRead, Problem>, Error> {
    let namespace = addon.namespace();
    let mut read = SourceRead::default();
    let from = addon.spec.source.manifests.as_ref().map(|manifests| manifests.from.as_slice()).unwrap_or_default();
    for reference in from {
        match &reference.bundle {
            Some(bundle) => match of_bundle(ctx, namespace, bundle).await? {
                Ok(seen) => read.manifests.push(seen),
                Err(problem) => return Ok(Err(problem)),
            },
            None => read.manifests.extend(seen(ctx, namespace, reference).await?),
        }
    }
    let Some(chart) = &addon.spec.source.chart else { return Ok(Ok(read)) };
    for reference in &chart.values_from {
        read.values.extend(values_seen(ctx, namespace, reference).await?);
    }
    if let Some(place) = &chart.bundle {
        let (ca, credentials) = (chart.ca_ref.as_ref(), chart.credentials_ref.as_ref());
        let access = Access { namespace, field: "spec.source.chart", ca, credentials };
        let wanted = EntryWanted {
            field: "spec.source.chart.bundle",
            place: place.clone(),
            kind: EntryKind::Chart,
            name: chart.name.clone().unwrap_or_default(),
            version: chart.version.clone(),
        };
        match entry(ctx, &access, &wanted, false).await? {
            Ok((Entry { url, sha256 }, _)) => read.archive = Some(ChartArchive { url, sha256 }),
            Err(problem) => return Ok(Err(problem)),
        }
    }
    Ok(Ok(read))
}

/// Manifests of a bundle.
async fn of_bundle(
    ctx: &Context,
    namespace: &str,
    bundle: &BundleManifests,
) -> Result<Result<SourceSeen, Problem>, Error> {
    let field = "spec.source.manifests.from[].bundle";
    let (ca, credentials) = (bundle.ca_ref.as_ref(), bundle.credentials_ref.as_ref());
    let access = Access { namespace, field, ca, credentials };
    let wanted = EntryWanted {
        field,
        place: bundle.place(),
        kind: EntryKind::Manifests,
        name: bundle.name.clone(),
        version: bundle.version.clone(),
    };
    let read = entry(ctx, &access, &wanted, true).await?;
    Ok(read.map(|(_, file)| SourceSeen {
        kind: "Bundle",
        name: bundle.url.clone(),
        data: Some(BTreeMap::from([(wanted.title(), file)])),
    }))
}

async fn values_seen(ctx: &Context, namespace: &str, reference: &ValuesRef) -> Result<Option<ValuesSeen>, Error> {
    let source = ManifestsRef {
        config_map_ref: reference.config_map_ref.clone(),
        secret_ref: reference.secret_ref.clone(),
        bundle: None,
    };
    let seen = seen(ctx, namespace, &source).await?;
    Ok(seen.map(|SourceSeen { kind, name, data }| {
        let found = data.map(|mut data| data.remove(&reference.key));
        ValuesSeen { kind, name, key: reference.key.clone(), found }
    }))
}

async fn seen(ctx: &Context, namespace: &str, reference: &ManifestsRef) -> Result<Option<SourceSeen>, Error> {
    if let Some(config_map) = &reference.config_map_ref {
        let found = live::get::<ConfigMap>(ctx, namespace, &config_map.name).await?;
        let data = found.map(|found| {
            let texts = found.data.unwrap_or_default().into_iter().map(|(key, text)| (key, text.into_bytes()));
            let binary = found.binary_data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0));
            texts.chain(binary).collect()
        });
        return Ok(Some(SourceSeen { kind: "ConfigMap", name: config_map.name.clone(), data }));
    }
    let Some(secret) = &reference.secret_ref else {
        return Ok(None);
    };
    let found = live::get::<Secret>(ctx, namespace, &secret.name).await?;
    let data = found.map(|found| {
        let data = found.data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0));
        data.collect::<BTreeMap<String, Vec<u8>>>()
    });
    Ok(Some(SourceSeen { kind: "Secret", name: secret.name.clone(), data }))
}
