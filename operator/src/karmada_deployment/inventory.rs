//! What was made for a plane in one place. Each kind is listed once a look, and not again while the watches there say
//! that nothing has changed. What was found to be as it is wanted is compared again once it or what is wanted has
//! changed, and now and then. So a place at rest costs next to nothing, however much is there.

pub(super) mod kept;

use std::collections::BTreeSet;

use crds::cluster_addon::AppliedObject;
use crds::names::KARMADA_FIELD_MANAGER;
use crds::{KarmadaDeployment, ObjectExt};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use plan::cluster_addon::{State, Trial};
use plan::karmada_deployment::names::selector;
use plan::karmada_deployment::removal::Kind;
use plan::karmada_deployment::{Manifest, Place, Wanted};
use serde_json::Value;

use crate::context::Context;
use crate::objects::look::{AT_ONCE, live, trial};
use crate::objects::{Failure, Found, Objects};
use kept::{Key, fingerprint};

/// Namespaces, as they are listed.
pub(super) const NAMESPACE: Kind = ("", "v1", "Namespace");

/// A look at one place.
pub(super) struct Inventory<'a> {
    ctx: &'a Context,
    object: &'a KarmadaDeployment,
    objects: &'a Objects,
    /// Where objects of kinds that are in namespaces are looked for; none: in all of them.
    namespace: Option<&'a str>,
    key: Key,
    now: Timestamp,
}

impl<'a> Inventory<'a> {
    /// Begins a look. What was listed before is taken for what is there, if nothing has changed since.
    pub fn open(
        ctx: &'a Context,
        object: &'a KarmadaDeployment,
        objects: &'a Objects,
        namespace: Option<&'a str>,
        now: Timestamp,
    ) -> Self {
        let key = (object.uid().to_owned(), objects.server().clone());
        let kept = &ctx.planes.inventories;
        if !(ctx.following.is_quiet(&key) && kept.is_fresh(&key, now)) {
            // Before anything is listed: what changes meanwhile is seen twice, and not missed.
            ctx.following.expect(&key);
            kept.begin(&key, now);
        }
        Self { ctx, object, objects, namespace, key, now }
    }

    /// The objects of the place.
    pub fn objects(&self) -> &'a Objects {
        self.objects
    }

    /// All objects of these kinds that were made for the plane. An error says why the place does not answer.
    pub async fn listed(&self, kinds: &[Kind]) -> Result<Vec<Value>, String> {
        self.know(kinds.iter().copied()).await?;
        let lists: Vec<_> = kinds.iter().map(|kind| self.listed_of(*kind)).collect();
        let all: Vec<Vec<Value>> = stream::iter(lists).buffered(AT_ONCE).try_collect().await?;
        Ok(all.into_iter().flatten().collect())
    }

    async fn listed_of(&self, kind: Kind) -> Result<Vec<Value>, String> {
        if let Some(known) = self.ctx.planes.inventories.listed(&self.key, kind) {
            return Ok(known);
        }
        let listed = self.objects.list_known(kind, self.namespace, &selector(self.object)).await;
        let Some(listed) = listed.map_err(|failure| failure.to_string())? else { return Ok(Vec::new()) };
        self.put(kind, &listed);
        Ok(listed)
    }

    /// These are all objects of a kind, as was found just now.
    pub fn put(&self, kind: Kind, listed: &[Value]) {
        self.ctx.planes.inventories.put(&self.key, kind, listed);
    }

    /// How each of these objects is, as this manifest would have it, in their order: those that were listed as they
    /// were, the others are read. An error says why the place does not answer.
    pub async fn states(&self, wanted: &[(&AppliedObject, &Manifest)]) -> Result<Vec<State>, String> {
        let kinds: BTreeSet<_> = wanted
            .iter()
            .map(|(object, _)| (object.group.as_str(), object.version.as_str(), object.kind.as_str()))
            .collect();
        self.know(kinds.into_iter()).await?;
        let looks: Vec<_> = wanted.iter().map(|(object, manifest)| self.state(object, manifest)).collect();
        stream::iter(looks).buffered(AT_ONCE).try_collect().await
    }

    /// Asks for these kinds one after the other: each is asked for once.
    async fn know<'k>(&self, kinds: impl Iterator<Item = (&'k str, &'k str, &'k str)>) -> Result<(), String> {
        for (group, version, kind) in kinds {
            if let Err(Failure::Lost(why)) = self.objects.kind(group, version, kind).await {
                return Err(why);
            }
        }
        Ok(())
    }

    async fn state(&self, object: &AppliedObject, manifest: &Manifest) -> Result<State, String> {
        let kept = &self.ctx.planes.inventories;
        let live = match kept.find(&self.key, object) {
            Some(live) => Box::new(live),
            None => match live(self.objects, object).await? {
                Ok(Found::Object(live)) => live,
                Ok(Found::Nothing) => return Ok(State::Missing),
                Ok(Found::NoKind) => return Ok(State::KindUnknown),
                Err(why) => return Ok(State::Refused(why)),
            },
        };
        let fingerprint = fingerprint(&live, &manifest.0, KARMADA_FIELD_MANAGER);
        if kept.is_same(&self.key, &fingerprint, self.now) {
            return Ok(State::There { live, trial: Trial::Same });
        }
        let trial = trial(self.objects, object, &manifest.0, KARMADA_FIELD_MANAGER, &live).await?;
        if trial == Trial::Same {
            kept.found_same(&self.key, fingerprint, self.now);
        }
        Ok(State::There { live, trial })
    }

    /// Watches these kinds from now on.
    pub async fn follow(&self, kinds: &[&[Kind]]) {
        let kinds = kinds.iter().copied().flatten().copied().collect();
        self.ctx.following.follow(self.object, self.objects, &kinds, self.namespace).await;
    }
}

/// What is wanted of a plane in this place.
pub(super) fn there(wanted: &[Wanted], place: Place) -> Vec<(&AppliedObject, &Manifest)> {
    wanted.iter().filter(|one| one.place == place).map(|one| (&one.object, &one.manifest)).collect()
}

/// Something was done there: what was listed is not believed any more.
pub(super) fn touched(ctx: &Context, object: &KarmadaDeployment, objects: Option<&Objects>) {
    if let Some(objects) = objects {
        ctx.planes.inventories.forget(&(object.uid().to_owned(), objects.server().clone()));
    }
}
