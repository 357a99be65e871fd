//! A plane of Karmada's own programs is moved: another one, with another name and address, begins with its backup, and
//! its members, whose API servers stay, are taken over with what they run.

mod arrivals;
mod changes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::KarmadaDeployment;
use crds::karmada_deployment::KarmadaRestoredFrom;
use e2e::api_server::free_node_port;
use e2e::karmada::works::{bindings_are_converted, leaders_renew_their_leases, policies_pass_the_webhooks};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use tokio::time::sleep;

use super::World;
use super::members::{Member, a_change_reaches, join, propagate, run_all, start_four};
use super::moved::Seen;
use super::snapshot::Snapshot;
use crate::executor;
use crate::restore::approve;
use arrivals::Arrivals;
use changes::{changes_since, deletion_is_held, give, take};

/// The other plane, and where its Pods are.
const NEW: (&str, &str) = ("k2", "elsewhere");
const MODES: [&str; 4] = ["push", "push", "pull", "pull"];
/// Before the approval: as long as controllers and agents need to notice anything, and longer.
const LOOKS: Duration = Duration::from_secs(10);

/// What is had of a plane that is backed up.
struct Backup {
    snapshot: Snapshot,
    keys: BTreeMap<String, ByteString>,
    plane: KarmadaDeployment,
    /// What was in it.
    content: Seen,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs: make karmada"]
async fn a_plane_is_moved_and_its_members_keep_what_they_run() -> Result<()> {
    let world = World::start().await?;
    world.until("ready", World::is_ready).await?;
    let members = start_four(&world).await?;
    join(&world, &members, &MODES).await?;
    propagate(&world).await?;
    run_all(&world, &members).await?;
    for name in ["removed", "going"] {
        give(&world, &members, name).await?;
    }
    deletion_is_held(&world, &members).await?;
    let backup = back_up(&world).await?;
    changes_since(&world, &members).await?;

    let running = running(&members).await?;
    let before = seen(&members).await?;
    let moved = begin_elsewhere(&world, &backup).await?;
    it_waits_for_the_former_one(&world, &moved).await?;
    moved.until("asking", asks).await?;
    the_report_names_all(&moved).await?;
    sleep(LOOKS).await;
    for (member, (before, now)) in members.iter().zip(before.iter().zip(seen(&members).await?)) {
        before.is_untouched(&now, member.name())?;
    }
    taken_over(&moved, &members).await?;
    ensure!(self::running(&members).await? == running, "what runs in members is not what was there");
    only_what_was_reported_has_happened(&members, &before).await?;
    the_plane_works(&moved, &members, &backup).await
}

async fn running(members: &[Member]) -> Result<Vec<BTreeSet<String>>> {
    let mut all = Vec::new();
    for member in members {
        all.push(member.running().await?);
    }
    Ok(all)
}

async fn seen(members: &[Member]) -> Result<Vec<Seen>> {
    let mut all = Vec::new();
    for member in members {
        all.push(Seen::in_member(member).await?);
    }
    Ok(all)
}

async fn back_up(world: &World) -> Result<Backup> {
    let content = Seen::in_plane(&world.plane().await?).await?;
    let snapshot = Snapshot::take(world).await?;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "fleet");
    let keys = secrets.get(&format!("{}-pki", world.name)).await?.data.context("no keys")?;
    Ok(Backup { snapshot, keys, plane: world.planes().get(world.name).await?, content })
}

/// The former one is left as it is, and its programs run; another one begins with its backup.
async fn begin_elsewhere(world: &World, backup: &Backup) -> Result<World> {
    world.patch(json!({"spec": {"deletionPolicy": "Detach"}})).await?;
    world.planes().delete(world.name, &DeleteParams::default()).await?;
    world.until("detached", async |world| Ok(world.planes().get_opt(world.name).await?.is_none())).await?;
    let (name, namespace) = NEW;
    let moved = world.beside(name, namespace, world.net + 5).await?;
    executor::store(&world.client).await?;
    let mut spec = serde_json::to_value(&backup.plane.spec)?;
    spec["hostNamespace"] = json!(namespace);
    spec["apiServer"]["nodePort"] = json!(free_node_port()?);
    spec["restoreFrom"] = executor::restore_from();
    let plane = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment", "metadata": {"name": name}, "spec": spec,
    });
    moved.planes().create(&PostParams::default(), &serde_json::from_value(plane)?).await?;
    executor::fetch_keys(&world.client, name, &backup.plane, backup.keys.clone()).await?;
    backup.snapshot.restore(&moved).await?;
    Ok(moved)
}

/// It says so, and goes on once the programs are stopped as the docs say.
async fn it_waits_for_the_former_one(world: &World, moved: &World) -> Result<()> {
    moved.until("held", async |moved| Ok(moved.shown().await?.1.contains("still answers at"))).await?;
    let former = format!("clusterwright.dev/karmada={}", world.name);
    world.server.kubectl(&["-n", world.namespace, "delete", "deployments,statefulsets", "-l", &former])?;
    Ok(())
}

async fn asks(moved: &World) -> Result<bool> {
    Ok(moved.shown().await?.1.contains("clusterwright.dev/approve="))
}

async fn record(moved: &World) -> Result<KarmadaRestoredFrom> {
    let status = moved.planes().get(moved.name).await?.status.unwrap_or_default();
    status.restored_from.context("it has no record")
}

/// Nothing more, and nothing less.
async fn the_report_names_all(moved: &World) -> Result<()> {
    println!("{}", moved.server.kubectl(&["--namespace=fleet", "get", "kad"])?);
    let members = record(moved).await?.members;
    for member in &members {
        println!("{}: {}", member.name, member.message);
    }
    let rest = "1 object overwritten: ConfigMap default/settings; 1 object created: ConfigMap default/removed";
    let expected = |name: &str| match name {
        "m1" => format!(
            "1 object deleted: ConfigMap default/going; {rest}; 1 object left without a Work: ConfigMap default/added"
        ),
        _ => format!("{rest}; 2 objects left without a Work: ConfigMap default/added, ConfigMap default/going"),
    };
    ensure!(members.len() == MODES.len(), "{} members", members.len());
    let other = members.iter().find(|member| member.message != expected(&member.name));
    ensure!(other.is_none(), "{other:?}");
    Ok(())
}

/// It is approved, and all is there again: of no member that is said before its agent, or who pushes to it, has come.
async fn taken_over(moved: &World, members: &[Member]) -> Result<()> {
    let arrivals = Arrivals::begin(moved, members).await?;
    approve(&moved.server, &moved.shown().await?.1)?;
    moved.until("taken over", async |_| arrivals.are_all_said().await).await?;
    arrivals.are_true()?;
    ensure!(record(moved).await?.step.is_none(), "members are taken over, and it is not restored");
    moved.until("ready again", World::is_ready).await?;
    println!("{}", moved.server.kubectl(&["--namespace=fleet", "get", "kad"])?);
    Ok(())
}

/// What the report has named, and nothing else.
async fn only_what_was_reported_has_happened(members: &[Member], before: &[Seen]) -> Result<()> {
    for (member, before) in members.iter().zip(before) {
        let mut but = vec!["Pod karmada-system/", "ReplicaSet karmada-system/"];
        but.extend((member.name() == "m1").then_some("ConfigMap default/going"));
        before.is_kept(&Seen::in_member(member).await?, member.name(), &but)?;
    }
    Ok(())
}

/// It has all that was backed up, and what is changed from now on reaches every member.
async fn the_plane_works(moved: &World, members: &[Member], backup: &Backup) -> Result<()> {
    let plane = moved.plane().await?;
    backup.content.is_kept(&Seen::in_plane(&plane).await?, "the plane", &[])?;
    a_change_reaches(moved, members, "in the new plane").await?;
    give(moved, members, "afterwards").await?;
    take(moved, members, "removed").await?;
    bindings_are_converted(&plane).await?;
    policies_pass_the_webhooks(&plane).await?;
    leaders_renew_their_leases(&plane).await?;
    moved.until("ready at the end", World::is_ready).await
}
