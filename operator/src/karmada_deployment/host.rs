//! A look at what a plane runs as: its objects on the host cluster, and its Pods.

use crds::cluster_addon::AppliedObject;
use crds::names::KARMADA_FIELD_MANAGER;
use crds::{KarmadaDeployment, ObjectExt};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Api;
use kube::api::PostParams;
use plan::karmada_deployment::names::{api_server_service, selector};
use plan::karmada_deployment::removal::{WORKLOADS, kinds_of_host};
use plan::karmada_deployment::{
    Contact, EtcdSeen, EtcdWorkload, Forbidden, HostFacts, HostSeen, Place, Wanted, running_versions,
};

use super::inventory::{Inventory, there};
use crate::context::Context;
use crate::objects::{Failure, Found, Objects, Server, within};
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

/// What it says of how the API server is reached, and in which versions components run; an error is the contact that
/// there is instead.
pub(super) async fn facts(
    inventory: &Inventory<'_>,
    object: &KarmadaDeployment,
) -> Result<HostFacts, Contact<HostSeen>> {
    let objects = inventory.objects();
    let service = AppliedObject {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Service".to_owned(),
        namespace: Some(object.spec.host_namespace.clone()),
        name: api_server_service(object),
    };
    let service = match objects.get(&service).await {
        Ok(Found::Object(service)) => Some(*service),
        Ok(Found::Nothing | Found::NoKind) => None,
        Err(failure) => return Err(contact(objects, failure).await),
    };
    let workloads = inventory.listed(&WORKLOADS).await.map_err(Contact::Lost)?;
    let versions = running_versions(object, &workloads);
    let etcd = EtcdSeen { workload: EtcdWorkload::find(object, &workloads), ..EtcdSeen::default() };
    Ok(HostFacts { service, versions, etcd, ..HostFacts::default() })
}

/// Looks at all that is wanted there, and at all that was made there.
pub(super) async fn look(
    inventory: &Inventory<'_>,
    object: &KarmadaDeployment,
    wanted: &[Wanted],
) -> Contact<HostSeen> {
    match seen(inventory, object, wanted).await {
        Ok(seen) => {
            inventory.follow(&[&kinds_of_host(object)]).await;
            Contact::Made(seen)
        }
        Err(why) => Contact::Lost(why),
    }
}

async fn seen(inventory: &Inventory<'_>, object: &KarmadaDeployment, wanted: &[Wanted]) -> Result<HostSeen, String> {
    let listed = inventory.listed(&kinds_of_host(object)).await?;
    let states = inventory.states(&there(wanted, Place::Host)).await?;
    let (namespace, selector) = (Some(object.spec.host_namespace.as_str()), selector(object));
    let pods = inventory.objects().list(("", "v1", "Pod"), namespace, &selector).await;
    Ok(HostSeen { states, listed, pods: pods.map_err(|failure| failure.to_string())? })
}

/// What contact there is after a read that failed: for want of a right, the user is asked for who lacks it.
async fn contact(objects: &Objects, failure: Failure) -> Contact<HostSeen> {
    match failure {
        Failure::Forbidden(message) => Contact::Forbidden(Forbidden { user: user(objects).await, message }),
        failure => Contact::Lost(failure.to_string()),
    }
}

/// Whom the API server takes the operator for; everybody may ask that of himself.
async fn user(objects: &Objects) -> Option<String> {
    let api: Api<SelfSubjectReview> = Api::all(objects.client());
    let review = within(api.create(&PostParams::default(), &SelfSubjectReview::default())).await.ok()?;
    review.status?.user_info?.username
}
