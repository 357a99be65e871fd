//! Objects of any kind on a cluster, through its API: each call has its time, and says how it failed.

use std::time::Duration;

use crds::cluster_addon::AppliedObject;
use crds::names::ADDON_FIELD_MANAGER;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions};
use kube::core::{GroupVersionKind, PartialObjectMeta, Status};
use kube::{Api, Client};
use plan::cluster_addon::Deletion;
use plan::cluster_addon::conflict::{self, FieldConflict};
use serde_json::Value;

use super::kinds::{Kinds, Known};
use crate::error::{Error, chain};
use crate::remote::Key;

/// How long one call may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// The objects of one cluster.
pub(crate) struct Objects {
    client: Client,
    cluster: Key,
    kinds: Kinds,
}

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The cluster does not answer.
    #[error("{0}")]
    Lost(String),
    /// Others have set the fields otherwise.
    #[error("{}", conflict::message(.0))]
    Conflicts(Vec<FieldConflict>),
    /// The API server has said no.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    /// The error of a reconcile that ends with it.
    pub fn lost(action: &str, why: String) -> Error {
        Error::Failed { action: action.to_owned(), source: why.into() }
    }
}

/// What reading an object found.
pub(crate) enum Found {
    /// The object.
    Object(Box<Value>),
    /// There is none.
    Nothing,
    /// There is no such kind any more.
    NoKind,
}

impl Objects {
    pub fn new(client: Client, cluster: Key, kinds: Kinds) -> Self {
        Self { client, cluster, kinds }
    }

    /// The kind; `None`: the cluster does not know it.
    pub async fn kind(&self, group: &str, version: &str, kind: &str) -> Result<Option<Known>, Failure> {
        let kind = GroupVersionKind::gvk(group, version, kind);
        within(self.kinds.get(&self.cluster, &self.client, &kind)).await
    }

    /// The object as it is.
    pub async fn get(&self, object: &AppliedObject) -> Result<Found, Failure> {
        let Some(api) = self.api(object).await? else {
            return Ok(Found::NoKind);
        };
        let call = async {
            match api.get(&object.name).await {
                Ok(found) => Ok(Found::Object(Box::new(value(&found)))),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(self.not_found(object, &status)),
                Err(error) => Err(error),
            }
        };
        within(call).await
    }

    /// Whether this says that the object is not there, or that its kind is not.
    fn not_found(&self, object: &AppliedObject, status: &Status) -> Found {
        let names_it = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
        if names_it {
            return Found::Nothing;
        }
        self.kinds.forget(&self.cluster, &kind_of(object));
        Found::NoKind
    }

    /// The object as it is once it was applied.
    pub async fn apply(&self, object: &AppliedObject, manifest: &Value, force: bool) -> Result<Value, Failure> {
        self.patch(object, manifest, PatchParams { force, ..params() }).await
    }

    /// The object as it would be once this field manager has applied it; nothing is written.
    pub async fn try_apply(&self, object: &AppliedObject, manifest: &Value, manager: &str) -> Result<Value, Failure> {
        let params = PatchParams { field_manager: Some(manager.into()), dry_run: true, ..PatchParams::default() };
        self.patch(object, manifest, params).await
    }

    /// Makes what a run has applied of the object the Addon's.
    pub async fn adopt(&self, object: &AppliedObject, patch: &Value) -> Result<(), Failure> {
        let Some(api) = self.api(object).await? else { return Ok(()) };
        let params = PatchParams { field_manager: Some(ADDON_FIELD_MANAGER.into()), ..PatchParams::default() };
        within(async { api.patch_metadata(&object.name, &params, &Patch::Merge(patch)).await.map(drop) }).await
    }

    async fn patch(&self, object: &AppliedObject, manifest: &Value, params: PatchParams) -> Result<Value, Failure> {
        let Some(api) = self.api(object).await? else {
            return Err(Failure::Refused(format!("the cluster knows no {} of {}", object.kind, object.api_version())));
        };
        let patch = Patch::Apply(manifest);
        within(async { api.patch(&object.name, &params, &patch).await.map(|applied| value(&applied)) }).await
    }

    /// Deletes this very object, what it owns in the background; gone already is well.
    pub async fn delete(&self, deletion: &Deletion) -> Result<(), Failure> {
        let Some(api) = self.api(&deletion.object).await? else {
            return Ok(());
        };
        let preconditions = Some(Preconditions { uid: Some(deletion.uid.clone()), resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::background() };
        let call = async {
            match api.delete(&deletion.object.name, &params).await {
                Ok(_) => Ok(()),
                // Another one of its name is not the one that goes.
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
                Err(error) => Err(error),
            }
        };
        within(call).await
    }

    /// The newest revision of a Helm release, as its Secret has it; `None`: there is none.
    pub async fn release(&self, namespace: &str, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let revisions = ListParams::default().labels(&format!("owner=helm,name={name}"));
        let found = within(api.list_metadata(&revisions)).await?;
        let revision = |secret: &PartialObjectMeta<Secret>| -> Option<i64> {
            secret.metadata.labels.as_ref()?.get("version")?.parse().ok()
        };
        let newest = found.items.iter().max_by_key(|secret| revision(secret));
        let Some(newest) = newest.and_then(|secret| secret.metadata.name.as_deref()) else { return Ok(None) };
        let secret = within(api.get_opt(newest)).await?;
        Ok(secret.and_then(|secret| secret.data?.remove("release")).map(|bytes| bytes.0))
    }

    async fn api(&self, object: &AppliedObject) -> Result<Option<Api<DynamicObject>>, Failure> {
        let known = self.kind(&object.group, &object.version, &object.kind).await?;
        Ok(known.map(|known| match (&object.namespace, known.is_namespaced) {
            (Some(namespace), true) => Api::namespaced_with(self.client.clone(), namespace, &known.resource),
            _ => Api::all_with(self.client.clone(), &known.resource),
        }))
    }
}

fn kind_of(object: &AppliedObject) -> GroupVersionKind {
    GroupVersionKind::gvk(&object.group, &object.version, &object.kind)
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(ADDON_FIELD_MANAGER.into()), ..PatchParams::default() }
}

/// What was read can be written.
fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

async fn within<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Failure> {
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(kube::Error::Api(status))) => Err(refusal(&status)),
        Ok(Err(error)) => Err(Failure::Lost(chain(&error))),
        Err(_) => Err(Failure::Lost(format!("no answer within {} s", DEADLINE.as_secs()))),
    }
}

fn refusal(status: &Status) -> Failure {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let conflicts = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    let conflicts: Vec<FieldConflict> =
        conflicts.map(|cause| FieldConflict::new(&cause.message, &cause.field)).collect();
    match conflicts.is_empty() {
        true => Failure::Refused(format!("{} ({} {})", status.message, status.code, status.reason)),
        false => Failure::Conflicts(conflicts),
    }
}
