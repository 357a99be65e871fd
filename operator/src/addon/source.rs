//! The source of an Addon, as it is now.

use std::collections::BTreeMap;

use crds::addon::{ManifestsRef, ValuesRef};
use crds::{Addon, ObjectExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use plan::addon::chart::ValuesSeen;
use plan::addon::revision::{Revision, SourceSeen};
use plan::addon::{Content, Problem};

use super::content::{is_kept, pack};
use crate::context::Context;
use crate::error::Error;
use crate::live;

/// The revision that the source makes, and its content as it is kept; or why it makes none.
pub(super) async fn read(ctx: &Context, addon: &Addon) -> Result<(Result<Content, Problem>, Vec<u8>), Error> {
    let mut sources = Vec::new();
    let from = addon.spec.source.manifests.as_ref().map(|manifests| manifests.from.as_slice()).unwrap_or_default();
    for reference in from {
        sources.extend(seen(ctx, addon.namespace(), reference).await?);
    }
    let mut values = Vec::new();
    for reference in addon.spec.source.chart.iter().flat_map(|chart| &chart.values_from) {
        values.extend(values_seen(ctx, addon.namespace(), reference).await?);
    }
    let revision = match Revision::new(addon.name(), &addon.spec, sources, values) {
        Ok(revision) => revision,
        Err(problem) => return Ok((Err(problem), Vec::new())),
    };
    let (name, packed) = (revision.name(), pack(&revision)?);
    let content = Content { size: packed.len(), is_kept: is_kept(ctx, addon, &name).await?, revision: name };
    Ok((Ok(content), packed))
}

async fn values_seen(ctx: &Context, namespace: &str, reference: &ValuesRef) -> Result<Option<ValuesSeen>, Error> {
    let source =
        ManifestsRef { config_map_ref: reference.config_map_ref.clone(), secret_ref: reference.secret_ref.clone() };
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
