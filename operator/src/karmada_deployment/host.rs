//! A look at what a plane runs as: its objects on the host cluster, and its Pods.

use crds::cluster_addon::AppliedObject;
use crds::names::KARMADA_FIELD_MANAGER;
use crds::{KarmadaDeployment, ObjectExt};
use plan::karmada_deployment::names::{api_server_service, selector};
use plan::karmada_deployment::removal::KINDS_OF_HOST;
use plan::karmada_deployment::{Contact, HostFacts, HostSeen, Place, Wanted};

use super::inventory::Inventory;
use super::look::there;
use crate::context::Context;
use crate::objects::{Found, Objects, Server};
use crate::remote::Key;

/// The objects of the host cluster; none: there is no contact with it.
pub(super) fn objects(ctx: &Context, object: &KarmadaDeployment) -> Option<Objects> {
    let (client, server) = match &object.spec.host_cluster_ref {
        None => (ctx.client.clone(), Server::Metadata),
        Some(cluster) => {
            let client = ctx.remote.client(object.namespace(), &cluster.name)?;
            (client, Server::Cluster(Key::new(object.namespace(), &cluster.name)))
        }
    };
    Some(Objects::new(client, server, ctx.kinds.clone(), KARMADA_FIELD_MANAGER))
}

/// What it says of how the API server is reached; an error says why it says nothing.
pub(super) async fn facts(objects: &Objects, object: &KarmadaDeployment) -> Result<HostFacts, String> {
    let service = AppliedObject {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Service".to_owned(),
        namespace: Some(object.spec.host_namespace.clone()),
        name: api_server_service(object),
    };
    match objects.get(&service).await {
        Ok(Found::Object(service)) => Ok(HostFacts { service: Some(*service) }),
        Ok(Found::Nothing | Found::NoKind) => Ok(HostFacts::default()),
        Err(failure) => Err(failure.to_string()),
    }
}

/// Looks at all that is wanted there, and at all that was made there.
pub(super) async fn look(
    inventory: &Inventory<'_>,
    object: &KarmadaDeployment,
    wanted: &[Wanted],
) -> Contact<HostSeen> {
    match seen(inventory, object, wanted).await {
        Ok(seen) => {
            inventory.follow(&[&KINDS_OF_HOST]).await;
            Contact::Made(seen)
        }
        Err(why) => Contact::Lost(why),
    }
}

async fn seen(inventory: &Inventory<'_>, object: &KarmadaDeployment, wanted: &[Wanted]) -> Result<HostSeen, String> {
    let listed = inventory.listed(&KINDS_OF_HOST).await?;
    let states = inventory.states(&there(wanted, Place::Host)).await?;
    let (namespace, selector) = (Some(object.spec.host_namespace.as_str()), selector(object));
    let pods = inventory.objects().list(("", "v1", "Pod"), namespace, &selector).await;
    Ok(HostSeen { states, listed, pods: pods.map_err(|failure| failure.to_string())? })
}
