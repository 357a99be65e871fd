//! How a run reaches the etcd of a plane on another cluster: through that cluster's API, as a ServiceAccount that may
//! have ports of etcd's Pods forwarded and nothing else.

use crds::{KarmadaDeployment, ObjectExt, Reason};
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use plan::addon::Problem;
use plan::karmada_deployment::{backup_access, backup_account, etcd_workload, forwarding_host};

use crate::context::Context;
use crate::error::{Error, chain};
use crate::karmada_deployment::host_objects;
use crate::kubeconfig::check::Checked;
use crate::kubeconfig::from_secret;
use crate::objects::{Failure, Found, Objects, within};

/// How long its token lasts, in seconds: a run may wait for its Pod, and read for long.
const TOKEN_SECONDS: i64 = 4 * 3600;

/// Why the host cannot be asked; none: it can, or need not be.
pub(super) async fn problem(ctx: &Context, plane: &KarmadaDeployment) -> Result<Option<Problem>, Error> {
    let Some(host) = forwarding_host(plane) else { return Ok(None) };
    let unreached = |message| Ok(Some(Problem { reason: Reason::ClusterUnreachable, message }));
    match checked(ctx, plane, host).await? {
        Err(problem) => Ok(Some(problem)),
        Ok(_) if host_objects(ctx, plane).is_none() => {
            unreached(format!("etcd is read through the API of Cluster {host}, which the operator does not reach now"))
        }
        Ok(_) => Ok(None),
    }
}

/// The kubeconfig of whoever may have ports of etcd's Pods forwarded, and nothing else: made where it is missing, with
/// a token of its own.
pub(super) async fn kubeconfig(ctx: &Context, plane: &KarmadaDeployment) -> Result<ByteString, Error> {
    let host = forwarding_host(plane).unwrap_or_default();
    let doing = || format!("get access to etcd through Cluster {host}");
    let lost = |why: String| Failure::lost(&doing(), why);
    let checked = checked(ctx, plane, host).await?.map_err(|problem| lost(problem.message))?;
    let objects = host_objects(ctx, plane).ok_or_else(|| lost("it is not reached".to_owned()))?;
    let token = token(&objects, plane).await.map_err(|failure| lost(failure.to_string()))?;
    let kubeconfig = serde_yaml::to_string(&checked.with_token(&token).kubeconfig);
    let kubeconfig = kubeconfig.map_err(|error| lost(error.to_string()))?;
    Ok(ByteString(kubeconfig.into()))
}

async fn checked(ctx: &Context, plane: &KarmadaDeployment, host: &str) -> Result<Result<Checked, Problem>, Error> {
    let namespace = plane.namespace();
    match ctx.cache.clusters.get(namespace, host) {
        Some(cluster) => from_secret(ctx, namespace, &cluster.spec.kubeconfig_ref.name).await,
        None => {
            let message = format!("Cluster {host}, through whose API etcd is read, is not there");
            Ok(Err(Problem { reason: Reason::ClusterNotFound, message }))
        }
    }
}

async fn token(objects: &Objects, plane: &KarmadaDeployment) -> Result<String, Failure> {
    let workload = etcd_workload(plane);
    let gone = || Failure::Lost(format!("{workload} is not there"));
    let Found::Object(live) = objects.get(&workload).await? else { return Err(gone()) };
    let uid = live["metadata"]["uid"].as_str().ok_or_else(gone)?;
    for (object, manifest) in backup_access(plane, uid) {
        objects.apply(&object, &manifest.0, true).await.map_err(|error| Failure::Lost(chain(&error)))?;
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(objects.client(), &plane.spec.host_namespace);
    let spec = TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let name = backup_account(plane);
    let made = within(accounts.create_token_request(&name, &PostParams::default(), &request)).await?;
    let token = made.status.map(|status| status.token);
    token.ok_or_else(|| Failure::Lost(format!("ServiceAccount {name} was given no token")))
}
