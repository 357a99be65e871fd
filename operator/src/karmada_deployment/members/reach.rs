//! How a member is reached: by the kubeconfig of its Cluster, of the Secret that the spec names, or of the one with
//! what was read on its Host.

use crds::karmada_deployment::SyncMode;
use crds::names::{KARMADA_FIELD_MANAGER, member_kubeconfig_secret};
use crds::{ObjectExt, Reason};
use plan::addon::Problem;
use plan::karmada_deployment::members::{ReachedBy, Target, Wish};

use super::super::clients::User;
use super::asked::Asked;
use crate::context::Context;
use crate::error::{Error, chain};
use crate::kubeconfig::check::Checked;
use crate::kubeconfig::from_secret;
use crate::objects::{Objects, Server};

/// A member that can be asked.
pub(super) struct Reached {
    pub objects: Objects,
    pub checked: Checked,
    pub server: Server,
    /// What messages call it.
    pub title: String,
}

/// How a member is reached; or why there is nothing to reach it with.
pub(super) async fn reach(
    ctx: &Context,
    asked: &Asked<'_>,
    target: &Target,
) -> Result<Result<Reached, Problem>, Error> {
    let namespace = asked.object.namespace();
    let secret = match &target.reached_by {
        ReachedBy::Cluster(name) => match ctx.cache.clusters.get(namespace, name) {
            Some(cluster) => cluster.spec.kubeconfig_ref.name.clone(),
            None => return refused(Reason::ClusterNotFound, format!("Cluster {name} is not there")),
        },
        ReachedBy::Secret(name) if name.is_empty() => {
            return refused(Reason::SecretNotFound, "nothing tells any more by which kubeconfig it is reached".into());
        }
        ReachedBy::Secret(name) => name.clone(),
        ReachedBy::Host(_) => member_kubeconfig_secret(asked.object.name(), &target.name),
    };
    let checked = match from_secret(ctx, namespace, &secret).await? {
        Ok(checked) => checked,
        Err(problem) => return Ok(Err(problem)),
    };
    let is_given_them = target.sync_mode == SyncMode::Push && target.wish != Wish::Leave;
    if is_given_them && checked.authority_pem.is_none() {
        let message = format!("Secret {secret}: it has no certificate-authority-data, which Karmada is to be given");
        return refused(Reason::KubeconfigRejected, message);
    }
    let server = Server::Member { plane: asked.object.uid().to_owned(), name: target.name.clone() };
    let title = format!("member {} of plane {}", target.name, asked.object.name());
    let client = match ctx.planes.clients.connect((&server, User::Operator), &title, &checked, &ctx.gate) {
        Ok(client) => client,
        Err(error) => return refused(Reason::KubeconfigRejected, format!("Secret {secret}: {}", chain(&error))),
    };
    let objects = Objects::new(client, server.clone(), ctx.kinds.clone(), KARMADA_FIELD_MANAGER);
    Ok(Ok(Reached { objects, checked, server, title }))
}

fn refused(reason: Reason, message: String) -> Result<Result<Reached, Problem>, Error> {
    Ok(Err(Problem { reason, message }))
}
