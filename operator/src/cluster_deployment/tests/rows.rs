//! A worker that joins, one that leaves, and one that is replaced, backups and restores, upgrades and settings, through
//! the controllers: whatever is cut off, refused, shown too late or never seen, the end is the same, and nothing is
//! made or done twice.

mod backups;
mod changes;
mod faults;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crds::{Host, Machine, PlaybookRun};
use k8s_openapi::api::core::v1::Node;
use plan::cluster::NodeSeen;
use serde_json::{Value, json};

use super::{Controller, DEPLOYMENT, look, others_go_on, turn};
use crate::cases;
use crate::context::Context;
use crate::fake_api::FakeApi;
use crate::remote::Key;
use faults::Fault;

/// What goes wrong comes within so many turns; in as many more all is well again.
const TURNS: usize = 40;
/// So many turns what cannot be decoded stays so.
const SPOILED_TURNS: usize = 3;
/// What an API server says when it cannot ask.
const WEBHOOK: &str = "failed calling webhook \"x.test\": context deadline exceeded";

/// What is done to a cluster that stands.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Join,
    Remove,
    Replace,
    /// A backup is taken and verified.
    BackUp,
    /// A schedule is made whose time has come.
    Schedule,
    /// A backup is deleted, and removed from its storage.
    RemoveBackup,
    /// etcd is set back to a backup, which is approved once.
    Restore,
    /// To the next minor of Kubernetes.
    Upgrade,
    /// A setting of all machines.
    Configure,
    /// Of certificates that end soon.
    Renew,
    /// Of an authority that no person holds anything of.
    Rotate,
}

const DEEDS: [Deed; 3] = [Deed::Join, Deed::Remove, Deed::Replace];

/// The metadata cluster and the cluster itself.
struct World {
    ours: FakeApi,
    theirs: FakeApi,
    /// The restore that a person has approved: one, and once.
    approved: Mutex<Option<String>>,
}

fn key() -> Key {
    Key { namespace: "fleet".into(), name: "a".into() }
}

impl World {
    /// Three Hosts; a cluster of a control plane on h1 and a worker on h2 stands.
    async fn standing() -> Self {
        let (ours, theirs) = (super::world(), FakeApi::default());
        ours.put("hosts", "{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {name: h3, namespace: fleet}, spec: {address: 10.0.0.3, ssh: {credentialsRef: {name: k}}}, status: {cleanedEpoch: 0, conditions: [{type: Ready, status: 'True', reason: Available, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}}");
        ours.edit(DEPLOYMENT, |deployment| {
            deployment["spec"]["workers"] = json!([{ "name": "w", "replicas": 1, "hosts": ["h2", "h3"] }]);
            deployment["spec"]["remediation"] = json!({
                "unhealthyAfterSeconds": 0, "waitSeconds": 0, "cooldownSeconds": 0, "maxUnhealthy": "100%", "actions": ["Replace"],
            });
        });
        let world = Self { ours, theirs, approved: Mutex::default() };
        let ctx = world.operator();
        for _ in 0..TURNS {
            world.turn(&ctx).await;
        }
        world.ours.edit("clusters/fleet/a", |cluster| {
            let condition = |type_: &str| json!({ "type": type_, "status": "True", "reason": "Reachable", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
            cluster["status"] = json!({ "clusterUID": "uid", "conditions": [condition("Reachable"), condition("Ready")] });
        });
        for _ in 0..3 {
            world.turn(&ctx).await;
        }
        assert_eq!(world.workers(), ["h2"], "{:#?}", world.told());
        world
    }

    fn copy(&self) -> Self {
        Self { ours: self.ours.copy(), theirs: self.theirs.copy(), approved: Mutex::default() }
    }

    fn operator(&self) -> Arc<Context> {
        self.operator_with(&[])
    }

    /// One that is started with these arguments.
    fn operator_with(&self, arguments: &[&str]) -> Arc<Context> {
        let ctx = self.ours.context_with(arguments);
        ctx.remote.put(&key(), self.theirs.client());
        ctx
    }

    /// What the controller of Clusters does, which is not here.
    fn show_nodes(&self, ctx: &Context) {
        ctx.remote.looked(&key());
        let nodes = self.theirs.list::<Node>("nodes").into_iter().map(NodeSeen::from_node);
        ctx.remote.show(&key(), nodes.collect());
    }

    async fn turn(&self, ctx: &Arc<Context>) {
        self.show_nodes(ctx);
        turn(ctx, &self.ours).await;
        self.time();
    }

    /// Everybody looks at what the caches show of an earlier state.
    async fn stale_turn(&self, ctx: &Arc<Context>, shown: &FakeApi) {
        self.show_nodes(ctx);
        look(ctx, shown);
        for controller in Controller::ALL {
            controller.pass(ctx, shown).await;
        }
        self.time();
    }

    /// Everybody looks, and what there is of a kind cannot be decoded.
    async fn spoiled_turn(&self, ctx: &Arc<Context>, plural: &str) {
        let prefix = format!("{plural}/");
        let names: Vec<String> = self.ours.names().into_iter().filter(|name| name.starts_with(&prefix)).collect();
        let spoil = |name: &String| {
            let mut kept = Value::Null;
            self.ours.edit(name, |object| {
                kept = std::mem::replace(&mut object["status"]["conditions"], json!("not a list"));
            });
            (name.clone(), kept)
        };
        let spoiled: Vec<(String, Value)> = names.iter().map(spoil).collect();
        let before = self.ours.names();
        self.show_nodes(ctx);
        turn(ctx, &self.ours).await;
        assert!(self.ours.names().iter().all(|name| before.contains(name) || !is_decided_by(name, plural)), "{plural}");
        for (name, kept) in spoiled.iter().filter(|(name, _)| self.ours.get(name).is_some()) {
            self.ours.edit(name, |object| match kept.is_null() {
                true => drop(object["status"].as_object_mut().unwrap().remove("conditions")),
                false => object["status"]["conditions"] = kept.clone(),
            });
        }
        self.time();
    }

    /// Everybody looks at the same twice, and those of backups so many times.
    async fn repeated_turn(&self, ctx: &Arc<Context>, times: usize) {
        self.show_nodes(ctx);
        let shown = self.ours.copy();
        look(ctx, &shown);
        for controller in Controller::ALL {
            let times = if matches!(controller, Controller::Etcd) { times } else { 2 };
            for _ in 0..times {
                controller.pass(ctx, &shown).await;
            }
        }
        self.time();
    }

    /// Only one of the controllers is told of what happened.
    async fn lonely_turn(&self, ctx: &Arc<Context>, number: usize, meanwhile: usize) {
        self.show_nodes(ctx);
        look(ctx, &self.ours);
        Controller::ALL[number % Controller::ALL.len()].pass(ctx, &self.ours).await;
        for _ in 0..meanwhile {
            self.time();
        }
    }

    /// Runs go on, and machines that joined are Nodes.
    fn time(&self) {
        others_go_on(&self.ours);
        self.time_of_backups();
        self.time_of_changes();
        for machine in self.ours.list::<Machine>("machines") {
            let joined = machine.status.as_ref().is_some_and(|status| status.provisioned_at.is_some());
            let host = machine.spec.host_ref.as_ref().map(|host| host.name.clone()).unwrap_or_default();
            let stays = machine.metadata.deletion_timestamp.is_none();
            if joined && stays && self.theirs.get(&format!("nodes//{host}")).is_none() {
                self.theirs.put("nodes", &format!("{{apiVersion: v1, kind: Node, metadata: {{name: {host}}}, spec: {{}}, status: {{nodeInfo: {{kubeletVersion: v{}}}, conditions: [{{type: Ready, status: 'True'}}]}}}}", self.version()));
            }
        }
    }

    fn ask(&self, deed: Deed) {
        let replicas = |count: i32| {
            self.ours.edit(DEPLOYMENT, |deployment| {
                deployment["spec"]["workers"][0]["replicas"] = json!(count);
                deployment["metadata"]["generation"] = json!(2);
            });
        };
        match deed {
            Deed::Join => replicas(2),
            Deed::Remove => replicas(0),
            Deed::Replace => self.theirs.edit("nodes//h2", |node| {
                node["status"]["conditions"][0]["status"] = json!("False");
            }),
            Deed::BackUp => self.back_up(),
            Deed::Schedule => self.schedule(),
            Deed::RemoveBackup => self.remove_backup(),
            Deed::Restore => self.restore(),
            Deed::Upgrade | Deed::Configure | Deed::Renew | Deed::Rotate => self.ask_for_change(deed),
        }
    }

    /// Hosts of the workers that are part of the cluster.
    fn workers(&self) -> Vec<String> {
        let machines = self.ours.list::<Machine>("machines").into_iter();
        let joined = machines.filter(|machine| {
            machine.spec.role == crds::step::Role::Worker
                && machine.metadata.deletion_timestamp.is_none()
                && machine.status.as_ref().is_some_and(|status| status.provisioned_at.is_some())
        });
        let mut hosts: Vec<String> = joined.filter_map(|machine| Some(machine.spec.host_ref?.name)).collect();
        hosts.sort();
        hosts
    }

    /// What came of it, without what chance decides.
    fn told(&self) -> Told {
        let mut runs: BTreeMap<String, usize> = BTreeMap::new();
        for run in self.ours.list::<PlaybookRun>("playbookruns") {
            let title = format!("{:?} on {}", run.spec.intent, run.spec.hosts.join(" "));
            *runs.entry(title).or_default() += 1;
        }
        let claims = self.ours.list::<Host>("hosts").into_iter().map(|host| {
            let holder = host.spec.claim_ref.map(|_| "claimed");
            (host.metadata.name.unwrap_or_default(), holder, host.spec.claim_epoch)
        });
        let nodes = self.theirs.values("nodes");
        Told {
            workers: self.workers(),
            machines: self.ours.list::<Machine>("machines").len(),
            claims: claims.collect(),
            runs,
            nodes: nodes.iter().map(|node| node["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect(),
            backups: self.told_of_backups(),
            changes: self.told_of_changes(),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Told {
    workers: Vec<String>,
    machines: usize,
    /// Host, whether it is claimed, and how often it was.
    claims: Vec<(String, Option<&'static str>, i64)>,
    /// How often each was made.
    runs: BTreeMap<String, usize>,
    nodes: Vec<String>,
    /// Backups and restores, and where they are.
    backups: Vec<String>,
    /// What each machine has, and the cluster wants.
    changes: Vec<String>,
}

/// Whether what is made under this name must not be made while objects of a kind cannot be decoded.
fn is_decided_by(name: &str, plural: &str) -> bool {
    match plural {
        "clusterdeployments" | "playbookruns" => name.starts_with("playbookruns/"),
        "backupstorages" => name.starts_with("playbookruns/") && name.contains("-backup-"),
        _ => false,
    }
}

/// The deed is done to a copy of the world, with a fault; the copy, and how many writes it took.
async fn live(standing: &World, deed: Deed, fault: Fault) -> (World, usize) {
    let world = standing.copy();
    world.ask(deed);
    let asked = world.ours.copy();
    let first = world.ours.writes();
    match fault {
        Fault::Dies(number, kind) => world.ours.cut(Some((first + number, kind))),
        Fault::Conflicts(number, times) => world.ours.conflict(first + number, times),
        _ => {}
    }
    let mut shown: Vec<FakeApi> = Vec::new();
    let (mut ctx, rival) = (world.operator(), world.operator());
    let (mut still, mut well) = (0, false);
    for number in 0..2 * TURNS {
        // One that was cut off and does nothing any more will not do better in the turns that are left.
        let is_dead = matches!(fault, Fault::Dies(..)) && still >= 3;
        if !well && (number >= TURNS || is_dead) {
            world.ours.cut(None);
            ctx = world.operator();
            (still, well) = (0, true);
        }
        let before = (world.ours.changes(), world.theirs.changes());
        let refused = world.ours.is_disturbed();
        match fault {
            Fault::Lags(turns) if !well => {
                shown.push(world.ours.copy());
                let place = shown.len().saturating_sub(turns + 1);
                world.stale_turn(&ctx, &shown[place]).await;
            }
            Fault::BackInTime(when) if number == when => {
                ctx = world.operator();
                world.stale_turn(&ctx, &asked).await;
            }
            Fault::Misses(meanwhile) if !well => world.lonely_turn(&ctx, number, meanwhile).await,
            Fault::Repeats(times) if !well => world.repeated_turn(&ctx, times).await,
            Fault::Rival if !well => {
                shown.push(world.ours.copy());
                world.turn(&ctx).await;
                world.stale_turn(&rival, &shown[number.saturating_sub(1)]).await;
            }
            Fault::Unadmitted(turn, times) if number == turn => {
                // POST, PUT and PATCH.
                world.ours.refuse("P", times, 500, json!({ "causes": [{ "message": WEBHOOK }] }));
                world.turn(&ctx).await;
            }
            Fault::Upgraded(turn) if number == turn => {
                ctx = world.operator_with(&["--executor-image=registry.test/executor:next"]);
                world.turn(&ctx).await;
            }
            Fault::Undecodable(first, plural) if (first..first + SPOILED_TURNS).contains(&number) => {
                world.spoiled_turn(&ctx, plural).await;
            }
            Fault::Refuses(turn, times, code) if number == turn => {
                world.ours.refuse("", times, code, json!({ "retryAfterSeconds": 60 }));
                world.turn(&ctx).await;
            }
            _ => world.turn(&ctx).await,
        }
        still = match before == (world.ours.changes(), world.theirs.changes()) {
            true if !refused => still + 1,
            _ => 0,
        };
        let comes = match fault {
            Fault::BackInTime(when) | Fault::Refuses(when, ..) | Fault::Unadmitted(when, _) | Fault::Upgraded(when) => {
                number <= when
            }
            Fault::Undecodable(first, _) => number < first + SPOILED_TURNS,
            _ => false,
        };
        let disturbed = comes
            || (!well && matches!(fault, Fault::Lags(_) | Fault::Misses(_) | Fault::Dies(..)))
            || world.ours.is_disturbed();
        if still >= 3 && !disturbed {
            break;
        }
    }
    let writes = world.ours.writes() - first;
    (world, writes)
}

/// Every fault comes to the same end as none; of three deeds in a row each meets another third of them.
async fn same_end(deed: Deed, faults: impl Fn(usize) -> Vec<Fault>) {
    let mut standing = World::standing().await;
    if matches!(deed, Deed::RemoveBackup | Deed::Restore) {
        standing = live(&standing, Deed::BackUp, Fault::None).await.0;
    }
    let (whole, writes) = live(&standing, deed, Fault::None).await;
    let expected = whole.told();
    assert_done(deed, &expected);
    for fault in cases::some(faults(writes), deed as usize) {
        let (world, _) = live(&standing, deed, fault).await;
        assert_eq!(world.told(), expected, "{deed:?} with {fault:?}: {:#?}", world.ours.requests());
    }
}

fn assert_done(deed: Deed, told: &Told) {
    let workers: &[&str] = match deed {
        Deed::BackUp | Deed::Schedule | Deed::RemoveBackup | Deed::Restore => return backups::assert_done(deed, told),
        Deed::Upgrade | Deed::Configure | Deed::Renew | Deed::Rotate => return changes::assert_done(deed, told),
        Deed::Join => &["h2", "h3"],
        Deed::Remove => &[],
        Deed::Replace => &["h3"],
    };
    assert_eq!(told.workers, workers, "{deed:?}: {told:#?}");
    assert!(told.runs.values().all(|made| *made == 1), "{deed:?}: {told:#?}");
    assert_eq!(told.machines, workers.len() + 1, "{deed:?}: {told:#?}");
    assert_eq!(told.nodes.len(), workers.len() + 1, "{deed:?}: {told:#?}");
}

#[tokio::test]
async fn an_operator_that_dies_at_any_write_is_followed_by_one_that_ends_it_the_same_rows_1_2_and_10() {
    for deed in DEEDS {
        same_end(deed, faults::deaths).await;
    }
}

#[tokio::test]
async fn what_a_lagging_api_server_shows_too_late_makes_nothing_twice_row_3() {
    for deed in DEEDS {
        same_end(deed, faults::behind).await;
    }
}

#[tokio::test]
async fn what_was_never_seen_to_happen_is_found_to_be_so_row_4() {
    for deed in DEEDS {
        same_end(deed, faults::misses).await;
    }
}

#[tokio::test]
async fn conflicts_at_any_write_one_or_twenty_are_tried_again_row_5() {
    for deed in DEEDS {
        same_end(deed, faults::conflicts).await;
    }
}
