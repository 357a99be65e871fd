//! The actions of a plan, carried out one by one.

use crds::names::{self, FIELD_MANAGER, finalizer};
use crds::{ClusterDeployment, Machine, MachineSet};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use plan::cluster_deployment::Action;
use plan::store::adoption::Adoption;
use serde_json::{Value, json};

use super::pki_owner;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::kubeconfig::{self, KUBERNETES};
use crate::{execute, key_transfer, pki};

pub(super) async fn execute(ctx: &Context, deployment: &ClusterDeployment, action: &Action) -> Result<(), Error> {
    match action {
        Action::AddFinalizer => execute::add_finalizer(ctx, deployment, finalizer::CLUSTER_DEPLOYMENT).await,
        Action::RemoveFinalizer => execute::remove_finalizer(ctx, deployment, finalizer::CLUSTER_DEPLOYMENT).await,
        Action::MakePki { given } => {
            Box::pin(pki::make_with(ctx, &pki_owner(deployment), given, Timestamp::now())).await
        }
        Action::FetchKeys(transfer) => key_transfer::fetch(ctx, transfer).await,
        Action::TakeKeys => key_transfer::take(ctx, &pki_owner(deployment)).await,
        Action::DropKeyTransfer => key_transfer::discard(ctx, &pki_owner(deployment)).await,
        Action::MakeKubeconfig { endpoint } => {
            let owner = pki_owner(deployment);
            let pki = pki::get(ctx, &owner).await?;
            kubeconfig::ensure(ctx, &owner, &KUBERNETES, &pki, endpoint, Timestamp::now()).await.map(drop)
        }
        Action::Rotate(act) => {
            Box::pin(pki::rotation::execute(ctx, &pki_owner(deployment), act, Timestamp::now())).await
        }
        Action::ApplyCluster(cluster) => execute::apply(ctx, &**cluster).await.map(drop),
        Action::DeleteCluster(cluster) => execute::delete(ctx, &**cluster, None).await,
        Action::ApplyAddon(addon) => execute::apply(ctx, &**addon).await.map(drop),
        Action::DeleteAddon(addon) => execute::delete(ctx, &**addon, None).await,
        Action::ApplyMachineSet { name, object } => {
            apply_set(ctx, &deployment.namespace().unwrap_or_default(), name, object).await
        }
        Action::DeleteMachineSet(set) => execute::delete(ctx, &**set, None).await,
        Action::DeleteMachine(machine) => execute::delete(ctx, &**machine, None).await,
        Action::ForceRemoveMachine(machine) => force_remove(ctx, machine, None).await,
        Action::SetDrainFor { machine, reasons } => {
            let patch = json!({ "spec": { "drainFor": reasons } });
            execute::patch_if_unchanged(ctx, &**machine, patch).await.map(drop)
        }
        Action::ForgetMachine { machine, since } => force_remove(ctx, machine, Some(*since)).await,
        Action::CreateRun(run) => execute::create_ours(ctx, &**run).await,
        Action::CreateBackup(backup) => execute::create_ours(ctx, &**backup).await,
        Action::CancelRun(run) => execute::ask_run(ctx, run, "cancel", json!({ "cancel": true })).await,
        Action::HoldRun { run, paused: true } => execute::ask_run(ctx, run, "pause", json!({ "paused": true })).await,
        Action::HoldRun { run, paused: false } => {
            execute::ask_run(ctx, run, "let go on", json!({ "paused": false })).await
        }
        Action::MarkFenced(host) => {
            let patch = json!({ "spec": { "quarantine": { "fence": { "fenced": true } } } });
            execute::patch_if_unchanged(ctx, &**host, patch).await.map(drop)
        }
        Action::Adopt(adoption) => adopt(ctx, adoption).await,
        Action::DeleteRun(run) => execute::delete(ctx, &**run, None).await,
    }
}

/// Applies a MachineSet of this namespace.
pub(crate) async fn apply_set(ctx: &Context, namespace: &str, name: &str, object: &Value) -> Result<(), Error> {
    let api: Api<MachineSet> = Api::namespaced(ctx.client.clone(), namespace);
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.map(drop).doing(|| format!("apply MachineSet {name}"))
}

/// Makes an object say what a machine does.
pub(crate) async fn adopt(ctx: &Context, adoption: &Adoption) -> Result<(), Error> {
    let (host, patch) = match adoption {
        Adoption::DeleteMachine(machine) => return execute::delete(ctx, &**machine, None).await,
        Adoption::RaiseEpoch { host, epoch } => (host, json!({ "spec": { "claimEpoch": epoch } })),
        Adoption::ReleaseClaim { host, epoch, finalizers, quarantine } => {
            let spec = json!({ "claimRef": null, "identity": null, "claimEpoch": epoch, "quarantine": quarantine });
            (host, json!({ "metadata": { "finalizers": finalizers }, "spec": spec }))
        }
    };
    execute::patch_if_unchanged(ctx, &**host, patch).await.map(drop)
}

/// A person said of the whole cluster what is said of one of its machines here; or it is lost, since then.
pub(crate) async fn force_remove(ctx: &Context, machine: &Machine, lost: Option<Timestamp>) -> Result<(), Error> {
    let generation = machine.metadata.generation.unwrap_or_default().to_string();
    let mut annotations = json!({ names::annotation::FORCE_REMOVE: generation });
    if let Some(since) = lost {
        annotations[names::annotation::LOST_SINCE] = json!(since.to_string());
    }
    let patch = json!({ "metadata": { "annotations": annotations } });
    execute::patch_if_unchanged(ctx, machine, patch).await.map(drop)
}
