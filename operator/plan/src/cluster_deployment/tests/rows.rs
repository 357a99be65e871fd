//! Faults that come while machines join, leave and are repaired: what was cut short is taken up again or waits for a
//! word, what cannot be reached is told, what a person changes meanwhile is met after it. The page docs/faults.md has
//! the table.

mod cut_short;
mod meanwhile;
mod one_address;
mod out_of_reach;

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::conditions::{self, Statement};
use crds::names::condition;
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Role};
use crds::{Machine, PlaybookRun};

use super::ready;
use crate::testing::World;

/// One control plane, and so many workers that are repaired: the kubelet is restarted, then they are replaced.
fn spec(workers: usize) -> String {
    format!(
        "controlPlane: {{replicas: 1}}, workers: [{{name: general, replicas: {workers}}}], machineRemoval: {{forceRemoveAfterSeconds: 14000}}, \
         remediation: {{unhealthyAfterSeconds: 60, neverStartedAfterSeconds: 86400, waitSeconds: 3000, cooldownSeconds: 0, maxUnhealthy: '100%', maxConcurrent: 2, actions: [RestartServices, Replace]}}"
    )
}

/// It stands, its API is looked at, and so many Hosts are there.
fn standing(workers: usize, hosts: usize) -> World {
    let mut world = World::new(&spec(workers), hosts);
    world.settle();
    reachable(&mut world, true);
    world.settle();
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

/// Whether the cluster's API answers, and the Cluster object says so.
fn reachable(world: &mut World, yes: bool) {
    let now = world.time();
    let uid = world.api_uid();
    world.api_lost = !yes;
    let status = world.cluster.as_mut().unwrap().status.get_or_insert_default();
    status.cluster_uid = Some(uid);
    let says = Statement::new(condition::REACHABLE, yes, "Looked", "nobody answers there");
    status.conditions = conditions::state(&status.conditions, &[says], None, &now);
}

/// How many runs were made that change a machine: silent ones are asked all the time.
fn works(world: &World) -> usize {
    let changes = |run: &&PlaybookRun| run.spec.intent != Intent::Probe;
    world.runs.iter().filter(changes).count()
}

/// What machines of a cluster go through.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Join,
    Remove,
    Repair,
}

const DEEDS: [Deed; 3] = [Deed::Join, Deed::Remove, Deed::Repair];

impl Deed {
    fn intent(self) -> Intent {
        match self {
            Deed::Join => Intent::Join,
            Deed::Remove => Intent::Reset,
            Deed::Repair => Intent::Repair,
        }
    }

    /// A cluster of two workers to which it is done now.
    fn begun(self) -> World {
        let mut world = standing(2, 5);
        match self {
            Deed::Join => world.respec(&spec(3)),
            Deed::Remove => world.respec(&spec(1)),
            Deed::Repair => drop(world.silent_nodes.insert("h2".into())),
        }
        world
    }

    /// The same, with its run at work.
    fn at_work(self) -> World {
        let mut world = self.begun();
        for _ in 0..30 {
            world.run_for(1);
            if let Some(index) = last(&world, self)
                && world.runs[index].status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running)
            {
                return world;
            }
        }
        panic!("no run of {self:?} works: {:?}", ready(&world));
    }

    /// Hosts of the workers in the end.
    fn workers(self) -> usize {
        match self {
            Deed::Join => 3,
            Deed::Remove => 1,
            Deed::Repair => 2,
        }
    }

    /// Until nothing is written any more: what was repaired is well. Its runs, in the order of their tokens.
    fn settle(self, world: &mut World) -> Vec<(Vec<String>, i64)> {
        let mut seen: BTreeMap<String, (Vec<String>, i64)> = BTreeMap::new();
        for _ in 0..40 {
            for (name, hosts, token) in runs(world, self) {
                seen.insert(name, (hosts, token));
            }
            world.run_for(1);
            heal(world);
        }
        world.settle();
        let place = format!("{self:?}: {:?}", ready(world));
        assert_eq!(ready(world).0, "True", "{place}");
        assert_eq!(workers(world).len(), self.workers(), "{place}");
        let mut seen: Vec<_> = seen.into_values().collect();
        seen.sort_by_key(|(_, token)| *token);
        seen
    }
}

/// A node whose services were restarted is Ready.
fn heal(world: &mut World) {
    let well = |run: &&PlaybookRun| {
        run.spec.intent == Intent::Repair
            && run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Succeeded)
    };
    let hosts: Vec<String> = world.runs.iter().filter(well).flat_map(|run| run.spec.hosts.clone()).collect();
    for host in hosts {
        world.silent_nodes.remove(&host);
    }
}

/// The run of a deed that was made last.
fn last(world: &World, deed: Deed) -> Option<usize> {
    world.runs.iter().rposition(|run| {
        run.spec.intent == deed.intent()
            && (deed != Deed::Join || world.runs.iter().filter(|run| run.spec.intent == Intent::Join).count() > 1)
    })
}

/// The runs of a deed that are there: name, hosts, and the token that each was given.
fn runs(world: &World, deed: Deed) -> Vec<(String, Vec<String>, i64)> {
    let of_deed = world.runs.iter().filter(|run| run.spec.intent == deed.intent());
    let told = |run: &PlaybookRun| {
        let token = run.status.as_ref().map_or(0, |status| status.token);
        (run.metadata.name.clone().unwrap(), run.spec.hosts.clone(), token)
    };
    // The first two workers joined before.
    of_deed.filter(|run| run.spec.hosts != ["h2", "h3"] || deed != Deed::Join).map(told).collect()
}

/// A run ends so, by another hand than its executor's.
fn ends(world: &mut World, deed: Deed, reason: &str) {
    let index = last(world, deed).unwrap();
    end_run(world, index, RunPhase::Unknown, reason);
}

/// A run ends so, and nobody knows how far it came.
pub(super) fn end_run(world: &mut World, index: usize, phase: RunPhase, reason: &str) {
    let now = world.time();
    let status = world.runs[index].status.as_mut().unwrap();
    status.phase = Some(phase);
    status.finished_at = Some(now.clone());
    status.message = Some(format!("{reason}: nobody knows how far it came"));
    let end = crds::playbook_run::end(phase, reason, reason);
    status.conditions = conditions::state(&[], &end, None, &now);
}

fn workers(world: &World) -> Vec<&Machine> {
    let stays = |machine: &&Machine| machine.spec.role == Role::Worker && !machine.is_deleting();
    world.machines.iter().filter(stays).collect()
}

fn host_of(machine: &Machine) -> &str {
    machine.spec.host_ref.as_ref().map_or("", |host| &host.name)
}

fn worker_hosts(world: &World) -> Vec<String> {
    let mut hosts: Vec<String> = workers(world).into_iter().map(|machine| host_of(machine).to_owned()).collect();
    hosts.sort();
    hosts
}

fn holder(world: &World, host: &str) -> Option<String> {
    let found = world.hosts.iter().find(|there| there.metadata.name.as_deref() == Some(host));
    Some(found?.spec.claim_ref.as_ref()?.name.clone())
}

/// What a Machine that leaves says, if one does.
fn leaving(world: &World) -> (String, String) {
    let machine = world.machines.iter().find(|machine| machine.is_deleting());
    let status = machine.and_then(|machine| machine.status.clone()).unwrap_or_default();
    let deleting = conditions::find(&status.conditions, condition::DELETING).cloned();
    (deleting.map(|deleting| deleting.reason).unwrap_or_default(), status.message.unwrap_or_default())
}
