//! The operator has the rights that it is shipped with, and in the namespace of the plane those that an administrator
//! gives it there: it says which are missing, uses all of them, and needs no other.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use crds::Conditions;
use e2e::api_server::ApiServer;
use e2e::client::apply;
use e2e::helm::{NAMESPACE as OURS, Objects, kustomized};
use e2e::rights::{Right, granted, refused, unused};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::{Api, PostParams};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::{NAMESPACE, World};

const ACCOUNT: &str = "clusterwright-operator";
/// The ClusterRole that is bound where planes run; the component binds it in `karmada-system`.
const ROLE: &str = "clusterwright-karmada-host";
const OF_RIGHTS: [&str; 5] = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/// Installs the roles as the kustomization has them with the component for planes, but for the binding where the plane
/// runs; what an operator is configured with that has them.
pub async fn install(server: &ApiServer) -> Result<Config> {
    let client = server.client();
    make_namespace(&client, OURS).await?;
    let shipped = kustomized(&["karmada"])?;
    let is_of_rights = |object: &&Value| OF_RIGHTS.iter().any(|kind| object["kind"] == *kind);
    for object in shipped.values().filter(is_of_rights).filter(|object| !is_binding(object)) {
        apply(&client, object).await?;
    }
    let token = server.kubectl(&["create", "token", ACCOUNT, "--namespace", OURS])?;
    let mut config = server.config()?;
    config.auth_info.token = Some(token.trim().to_owned().into());
    Ok(config)
}

fn is_binding(object: &Value) -> bool {
    object["kind"] == "RoleBinding" && object["metadata"]["name"] == ROLE
}

/// Makes a namespace for a plane, and binds the role there as the component does in its own.
pub async fn bind(client: &Client, namespace: &str) -> Result<()> {
    make_namespace(client, namespace).await?;
    let shipped = kustomized(&["karmada"])?;
    let mut binding = shipped.values().find(|object| is_binding(object)).context("no binding is shipped")?.clone();
    binding["metadata"]["namespace"] = json!(namespace);
    apply(client, &binding).await?;
    Ok(())
}

pub async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
    Ok(())
}

/// Until the namespace is there and the role is bound in it, the operator says so; its message has the command that
/// binds it, which is run here. Since when the operator has the right.
pub async fn are_said_to_be_missing(world: &World) -> Result<Timestamp> {
    world.until("forbidden", is_forbidden).await?;
    println!("{}", world.server.kubectl(&["--namespace=fleet", "get", "kad"])?);
    let (_, message) = world.shown().await?;
    let command = message.split_once("run: kubectl ").and_then(|(_, rest)| rest.split_once(" ("));
    let (command, _) = command.with_context(|| format!("no command: {message}"))?;
    ensure!(command.contains(&format!("--serviceaccount={OURS}:{ACCOUNT}")), "{command}");
    make_namespace(&world.client, NAMESPACE).await?;
    world.server.kubectl(&command.split(' ').collect::<Vec<_>>())?;
    world.until("allowed", async |world| Ok(!is_forbidden(world).await?)).await?;
    Ok(Timestamp::now())
}

async fn is_forbidden(world: &World) -> Result<bool> {
    let plane = world.planes().get("k1").await?;
    Ok(plane.condition("Ready").is_some_and(|ready| ready.reason == "HostForbidden"))
}

/// What of the host's role is for planes that begin with a backup alone.
fn is_of_restores(right: &Right) -> bool {
    let is_of = ["jobs", "persistentvolumeclaims"].iter().any(|kind| right.resource.starts_with(kind));
    is_of && !is_of_etcd(right)
}

/// What is for an etcd whose members are added or removed alone.
fn is_of_etcd(right: &Right) -> bool {
    right.resource.ends_with("/portforward") || (right.resource == "persistentvolumeclaims" && right.verb == "delete")
}

/// Since then nothing was refused, and each right that planes need was used, if only by a watch that began before; but
/// for those of planes that begin with a backup, and of an etcd that grows or shrinks.
pub fn are_those_that_are_used(world: &World, since: Timestamp) -> Result<()> {
    are_used(world, since, 30, &|right| !is_of_restores(right) && !is_of_etcd(right))
}

/// The same of those of planes that begin with a backup, and no other.
pub fn of_restores_are_used(world: &World, since: Timestamp) -> Result<()> {
    are_used(world, since, 8, &is_of_restores)
}

fn are_used(world: &World, since: Timestamp, least: usize, counts: &dyn Fn(&Right) -> bool) -> Result<()> {
    let user = format!("system:serviceaccount:{OURS}:{ACCOUNT}");
    let mut requests = world.server.audit()?;
    requests.retain(|request| request.user == user);
    let mut missing = refused(&requests);
    missing.retain(|request| request.at >= since);
    ensure!(missing.is_empty(), "the operator lacks rights: {missing:?}");
    requests.retain(|request| request.code != 403);
    let shipped = kustomized(&["karmada"])?;
    let of_planes = |right: &Right| right.resource.starts_with("karmadadeployments");
    // Of owners is asked by admission, and not in the name of the operator.
    let of_owners = |right: &Right| right.resource.ends_with("/finalizers");
    let mut rights = rules(&shipped, "ClusterRole", None, ACCOUNT)?;
    rights.retain(|right| of_planes(right) && !of_owners(right));
    rights.extend(rules(&shipped, "ClusterRole", Some(NAMESPACE), ROLE)?);
    rights.extend(rules(&shipped, "Role", Some("kube-system"), &format!("{ROLE}.{OURS}"))?);
    rights.retain(|right| counts(right));
    ensure!(rights.len() > least, "{} rights", rights.len());
    let unused: Vec<String> = unused(&rights, &requests).iter().map(|right| right.to_string()).collect();
    ensure!(unused.is_empty(), "never used, in {} requests: {unused:?}", requests.len());
    println!("{} rights, all used, in {} requests", rights.len(), requests.len());
    Ok(())
}

/// What a role grants where it is bound.
fn rules(shipped: &Objects, kind: &str, namespace: Option<&str>, name: &str) -> Result<BTreeSet<Right>> {
    let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    let role = shipped.values().find(is_it).with_context(|| format!("no {kind} {name} is shipped"))?;
    Ok(granted(&serde_json::from_value::<Vec<PolicyRule>>(role["rules"].clone())?, namespace))
}
