//! A look into a plane through its API server: the objects there, who leads, whether a policy would be admitted, and,
//! while it is brought to another version, what it propagates.

use crds::cluster::ComponentHealth;
use crds::cluster_addon::AppliedObject;
use crds::names::KARMADA_FIELD_MANAGER;
use crds::{KarmadaDeployment, ObjectExt};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use plan::cluster::components::from_lease;
use plan::karmada_deployment::removal::{KINDS_OF_PLANE, Kind};
use plan::karmada_deployment::{
    Contact, HostFacts, LEASES, Place, PlaneSeen, Propagated, Wanted, is_probed, is_upgrading, members, trial_policy,
};
use serde_json::Value;

use super::inventory::{Inventory, NAMESPACE, there};
use super::planes::Leases;
use super::probe;
use crate::context::Context;
use crate::error::Error;
use crate::kubeconfig::check::Checked;
use crate::objects::{Failure, Objects, Server, within};

/// The kinds of which objects are wanted in a plane and never removed.
const KINDS_THAT_STAY: [Kind; 2] = [NAMESPACE, ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")];

/// The objects of the plane that this kubeconfig leads to.
pub(super) fn objects(ctx: &Context, object: &KarmadaDeployment, checked: &Checked) -> Result<Objects, Error> {
    let title = format!("plane {}", object.name());
    let client = ctx.planes.connect(object.uid(), &title, checked, &ctx.gate)?;
    Ok(Objects::new(client, Server::Plane(object.uid().to_owned()), ctx.kinds.clone(), KARMADA_FIELD_MANAGER))
}

/// Of which plane it is asked, and what is wanted there.
pub(super) struct Asked<'a> {
    pub object: &'a KarmadaDeployment,
    pub facts: &'a HostFacts,
    pub wanted: &'a [Wanted],
}

/// Looks at all that is wanted there, and at all that was made there.
pub(super) async fn look(
    ctx: &Context,
    inventory: &Inventory<'_>,
    asked: &Asked<'_>,
    now: Timestamp,
) -> Contact<PlaneSeen> {
    match seen(ctx, inventory, asked, now).await {
        Ok(seen) => {
            // What was made there for members is watched with what is the plane's own.
            inventory.follow(&[&KINDS_OF_PLANE, &KINDS_THAT_STAY, &members::KINDS_OF_PLANE]).await;
            Contact::Made(seen)
        }
        Err(why) => Contact::Lost(why),
    }
}

async fn seen(
    ctx: &Context,
    inventory: &Inventory<'_>,
    asked: &Asked<'_>,
    now: Timestamp,
) -> Result<PlaneSeen, String> {
    let object = asked.object;
    let listed = inventory.listed(&KINDS_OF_PLANE).await?;
    inventory.listed(&KINDS_THAT_STAY).await?;
    let states = inventory.states(&there(asked.wanted, Place::Plane)).await?;
    let objects = inventory.objects();
    let (leaders, leases) = leaders(objects, object, &ctx.planes.leases(object.uid()), now).await?;
    ctx.planes.saw(object.uid(), leases);
    let policy_refused = policy_refused(objects).await?;
    let propagated = match is_upgrading(object, asked.facts) {
        true => Some(propagated(objects).await.map_err(|failure| failure.to_string())?),
        false => None,
    };
    let probe = match is_probed(object, asked.facts) {
        true => Some(probe::look(objects).await?),
        false => None,
    };
    Ok(PlaneSeen { states, listed, leaders, policy_refused, propagated, probe, left: None })
}

/// What carries workloads to members. The first is what a member has of one.
const CARRIERS: [Kind; 3] = [
    ("work.karmada.io", "v1alpha1", "Work"),
    ("work.karmada.io", "v1alpha2", "ResourceBinding"),
    ("work.karmada.io", "v1alpha2", "ClusterResourceBinding"),
];

async fn propagated(objects: &Objects) -> Result<Propagated, Failure> {
    let mut found = Propagated::default();
    for (at, kind) in CARRIERS.into_iter().enumerate() {
        let Some(counts) = objects.census(kind, None).await? else { continue };
        if at == 0 {
            found.works = counts.all;
        }
        found.terminating += counts.terminating;
        let first = counts.first_terminating.map(|name| format!("{} {name}", kind.2));
        found.first_terminating = found.first_terminating.or(first);
    }
    Ok(found)
}

/// The components that are led, as their Leases say.
async fn leaders(
    objects: &Objects,
    object: &KarmadaDeployment,
    before: &Leases,
    now: Timestamp,
) -> Result<(Vec<ComponentHealth>, Leases), String> {
    let (mut leaders, mut leases) = (Vec::new(), Leases::default());
    let wanted = LEASES.iter().filter(|(component, ..)| component.replicas(&object.spec).is_some());
    for (component, namespace, name) in wanted {
        let api: Api<Lease> = Api::namespaced(objects.client(), namespace);
        let lease = within(api.get_opt(name)).await.map_err(|failure| failure.to_string())?;
        let renewed = lease.and_then(|lease| lease.spec?.renew_time).map(|time| time.0);
        let (health, seen) = from_lease(component.name(), renewed, before.get(component).copied(), now);
        leaders.push(health);
        leases.extend(seen.map(|seen| (*component, seen)));
    }
    Ok((leaders, leases))
}

/// Why a policy would not be admitted; none: it would.
async fn policy_refused(objects: &Objects) -> Result<Option<String>, String> {
    let manifest = trial_policy();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&manifest["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let object = AppliedObject {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text(&manifest["kind"]),
        namespace: manifest["metadata"]["namespace"].as_str().map(str::to_owned),
        name: text(&manifest["metadata"]["name"]),
    };
    match objects.try_create(&object, &manifest).await {
        Ok(()) => Ok(None),
        Err(Failure::Lost(why)) => Err(why),
        Err(failure) => Ok(Some(failure.to_string())),
    }
}
