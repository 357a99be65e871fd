//! Objects of any kind on a cluster, through its API, written as one field manager: each call has its time, and says
//! how it failed.

mod census;
pub(crate) mod kinds;
pub(crate) mod look;
mod server;

use std::time::Duration;

use crds::cluster_addon::AppliedObject;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{GroupVersionKind, Status};
use kube::{Api, Client};
use plan::cluster_addon::conflict::{self, FieldConflict};
use plan::cluster_addon::{Deletion, State, Trial};
use serde_json::Value;

use crate::error::{Error, chain};
use kinds::{Kinds, Known};
pub(crate) use server::Server;

/// How long one call may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// A kind: group, version, kind.
pub(crate) type Kind<'a> = (&'a str, &'a str, &'a str);

/// The objects of one cluster.
pub(crate) struct Objects {
    client: Client,
    server: Server,
    kinds: Kinds,
    manager: &'static str,
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
    /// It has said no for want of a right, or, to a write, by its admission.
    #[error("{0}")]
    Forbidden(String),
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
    /// Those of a cluster, as this field manager.
    pub fn new(client: Client, server: Server, kinds: Kinds, manager: &'static str) -> Self {
        Self { client, server, kinds, manager }
    }

    /// The client of the cluster.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Whose API they are read through.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The kind; `None`: the cluster does not know it.
    pub async fn kind(&self, group: &str, version: &str, kind: &str) -> Result<Option<Known>, Failure> {
        let kind = GroupVersionKind::gvk(group, version, kind);
        within(self.kinds.get(&self.server, &self.client, &kind)).await
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
        self.kinds.forget(&self.server, &kind_of(object));
        Found::NoKind
    }

    /// The objects of a kind with these labels, in a namespace or in all of them; none where the kind is not known.
    /// They have `apiVersion` and `kind`.
    pub async fn list(&self, kind: Kind<'_>, namespace: Option<&str>, labels: &str) -> Result<Vec<Value>, Failure> {
        Ok(self.list_known(kind, namespace, labels).await?.unwrap_or_default())
    }

    /// The same; `None`: the kind is not known.
    pub async fn list_known(
        &self,
        kind: Kind<'_>,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Option<Vec<Value>>, Failure> {
        let (group, version, name) = kind;
        let Some(known) = self.kind(group, version, name).await? else { return Ok(None) };
        let api = self.all(&known, namespace);
        let params = ListParams::default().labels(labels);
        let call = async {
            match api.list(&params).await {
                Ok(listed) => Ok(Some(listed.items)),
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    self.kinds.forget(&self.server, &GroupVersionKind::gvk(group, version, name));
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        };
        let typed = |object: &DynamicObject| {
            let mut object = value(object);
            object["apiVersion"] = known.resource.api_version.clone().into();
            object["kind"] = known.resource.kind.clone().into();
            object
        };
        Ok(within(call).await?.map(|listed| listed.iter().map(typed).collect()))
    }

    fn all(&self, known: &Known, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace.filter(|_| known.is_namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &known.resource),
            None => Api::all_with(self.client.clone(), &known.resource),
        }
    }

    /// Creates the object by a dry run: all that admits is asked, and nothing is written.
    pub async fn try_create(&self, object: &AppliedObject, manifest: &Value) -> Result<(), Failure> {
        let Some(api) = self.api(object).await? else { return Err(unknown(object)) };
        let params = PostParams { dry_run: true, field_manager: Some(self.manager.into()) };
        let manifest: DynamicObject =
            serde_json::from_value(manifest.clone()).map_err(|error| Failure::Refused(error.to_string()))?;
        within(async { api.create(&params, &manifest).await.map(drop) }).await
    }

    /// How the object is once it was applied, or that it was not: conflicts and refusals are its state. An error: the
    /// cluster does not answer.
    pub async fn apply(&self, object: &AppliedObject, manifest: &Value, force: bool) -> Result<State, Error> {
        let params = PatchParams { force, ..self.params() };
        match self.patch(object, manifest, params).await {
            Ok(live) => Ok(State::There { live: Box::new(live), trial: Trial::Same }),
            Err(Failure::Conflicts(conflicts)) => Ok(State::Conflicting(conflicts)),
            Err(Failure::Refused(why) | Failure::Forbidden(why)) => Ok(State::Refused(why)),
            Err(Failure::Lost(why)) => Err(Failure::lost(&format!("apply {object}"), why)),
        }
    }

    /// The object as it would be once this field manager has applied it; nothing is written.
    pub async fn try_apply(&self, object: &AppliedObject, manifest: &Value, manager: &str) -> Result<Value, Failure> {
        let params = PatchParams { field_manager: Some(manager.into()), dry_run: true, ..PatchParams::default() };
        self.patch(object, manifest, params).await
    }

    /// Merges a patch of metadata into the object.
    pub async fn adopt(&self, object: &AppliedObject, patch: &Value) -> Result<(), Failure> {
        let Some(api) = self.api(object).await? else { return Ok(()) };
        let params = self.params();
        within(async { api.patch_metadata(&object.name, &params, &Patch::Merge(patch)).await.map(drop) }).await
    }

    /// Merges a patch into this very object, as it was seen: its metadata has the UID and the resourceVersion. One that
    /// was changed or has gone since is left as it is.
    pub async fn merge(&self, object: &AppliedObject, patch: &Value) -> Result<(), Failure> {
        let Some(api) = self.api(object).await? else { return Ok(()) };
        let params = self.params();
        let call = async {
            match api.patch(&object.name, &params, &Patch::Merge(patch)).await {
                Ok(_) => Ok(()),
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
                Err(error) => Err(error),
            }
        };
        within(call).await
    }

    async fn patch(&self, object: &AppliedObject, manifest: &Value, params: PatchParams) -> Result<Value, Failure> {
        let Some(api) = self.api(object).await? else {
            return Err(unknown(object));
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

    fn params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.manager.into()), ..PatchParams::default() }
    }

    async fn api(&self, object: &AppliedObject) -> Result<Option<Api<DynamicObject>>, Failure> {
        let known = self.kind(&object.group, &object.version, &object.kind).await?;
        Ok(known.map(|known| match (&object.namespace, known.is_namespaced) {
            (Some(namespace), true) => Api::namespaced_with(self.client.clone(), namespace, &known.resource),
            _ => Api::all_with(self.client.clone(), &known.resource),
        }))
    }
}

fn unknown(object: &AppliedObject) -> Failure {
    Failure::Refused(format!("its API server knows no {} of {}", object.kind, object.api_version()))
}

fn kind_of(object: &AppliedObject) -> GroupVersionKind {
    GroupVersionKind::gvk(&object.group, &object.version, &object.kind)
}

/// What was read can be written.
fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// The answer to a call, if it comes in time.
pub(crate) async fn within<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Failure> {
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
    let message = || format!("{} ({} {})", status.message, status.code, status.reason);
    match (conflicts.is_empty(), status.code) {
        (false, _) => Failure::Conflicts(conflicts),
        (true, 403) => Failure::Forbidden(message()),
        (true, _) => Failure::Refused(message()),
    }
}
