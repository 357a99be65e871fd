//! Faults that come while a cluster is upgraded, a setting is rolled out, certificates are renewed or an authority is
//! rotated: in each phase of each of them. The page docs/faults.md has the table.

mod beforehand;
mod cluster;
mod cut_short;
mod machines;
mod meanwhile;

use std::collections::BTreeSet;

use crds::cluster_deployment::RegistryMirror;
use crds::conditions;
use crds::names::{annotation, condition};
use crds::playbook_run::RunPhase;
use crds::step::Intent;
use crds::{Conditions, EtcdBackupSchedule, ObjectExt, PlaybookRun};
use jiff::SignedDuration;
use serde_json::json;

use super::ready;
use crate::rotation::{Stage, Subject};
use crate::testing::World;

/// Turns in which whatever is under way comes to its end.
const TURNS: usize = 240;

/// What is changed of a cluster that stands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// To the next minor, for which workers are drained.
    Minor,
    Patch,
    /// Of a registry's mirror, on all machines.
    Mirror,
    /// Of what Pods would not outlive: Nodes are drained for it.
    MaxPods,
    /// Of the leaves of control planes, which are due.
    Renewal,
    Rotation(Subject),
}

use Change::{MaxPods, Minor, Mirror, Patch, Renewal, Rotation};

const UPGRADES: [Change; 2] = [Minor, Patch];
const ALL: [Change; 9] = [
    Minor,
    Patch,
    Mirror,
    MaxPods,
    Renewal,
    Rotation(Subject::Ca),
    Rotation(Subject::EtcdCa),
    Rotation(Subject::FrontProxyCa),
    Rotation(Subject::ServiceAccountKey),
];
/// One of each kind, in which all phases are.
const KINDS: [Change; 4] = [Minor, MaxPods, Renewal, Rotation(Subject::FrontProxyCa)];

/// A cluster of three control planes and two workers stands, and its certificates have been looked at. A schedule says
/// where backups go.
fn standing(certificates: u32) -> World {
    let spec = format!(
        "controlPlane: {{replicas: 3, endpoint: {{host: 10.9.9.9}}}}, workers: [{{name: general, replicas: 2}}], \
         certificates: {{validityDays: {certificates}}}, executor: {{historyLimit: 100}}, drift: {{checkEverySeconds: 0}}"
    );
    let mut world = World::new(&spec, 6);
    world.settle();
    world.run_for(40);
    world.schedules = vec![schedule()];
    assert_eq!(ready(&world).0, "True", "{:?}", ready(&world));
    world
}

fn schedule() -> EtcdBackupSchedule {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "EtcdBackupSchedule",
        "metadata": { "name": "nightly", "namespace": "fleet", "uid": "uid-nightly" },
        "spec": {
            "clusterName": "a", "schedule": "0 3 * * *",
            "template": { "storageRef": { "name": "s3" }, "encryption": { "recipients": [] } }
        }
    }))
    .unwrap()
}

impl Change {
    /// A cluster of which it is asked for now.
    fn asked(self) -> World {
        let mut world = standing(if self == Renewal { 90 } else { 3650 });
        self.ask(&mut world);
        world.write_statuses();
        world
    }

    fn ask(self, world: &mut World) {
        match self {
            Minor => world.change_spec("a", |spec| spec.kubernetes_version = "1.36.0".parse().unwrap()),
            Patch => world.change_spec("a", |spec| spec.kubernetes_version = "1.35.9".parse().unwrap()),
            Mirror => world.change_spec("a", |spec| {
                let endpoints = vec!["http://mirror:5000".into()];
                let mirror =
                    RegistryMirror { prefix: "registry.k8s.io".into(), endpoints, ..RegistryMirror::default() };
                spec.container_runtime.registry_mirrors = vec![mirror];
            }),
            MaxPods => world.change_spec("a", |spec| {
                spec.configuration = serde_json::from_value(json!({ "kubelet": { "maxPods": 50 } })).unwrap();
            }),
            Renewal => world.jump(SignedDuration::from_hours(24 * 62)),
            Rotation(subject) => {
                let annotations = world.deployment.metadata.annotations.get_or_insert_default();
                annotations.insert(annotation::ROTATE.into(), format!("{}.1", subject.name()));
            }
        }
    }

    /// What its runs on machines are.
    fn intents(self) -> &'static [Intent] {
        match self {
            Minor | Patch => &[Intent::Prefetch, Intent::Upgrade],
            Mirror | MaxPods | Rotation(_) => &[Intent::Configure],
            Renewal => &[Intent::Renew],
        }
    }

    fn runs(self, world: &World) -> Vec<&PlaybookRun> {
        world.runs.iter().filter(|run| self.intents().contains(&run.spec.intent)).collect()
    }

    /// The condition that speaks of it.
    fn condition(self) -> &'static str {
        match self {
            Minor | Patch | Mirror | MaxPods => condition::UP_TO_DATE,
            Renewal => condition::CERTIFICATES_VALID,
            Rotation(_) => condition::AUTHORITIES_ROTATED,
        }
    }

    /// What is said of it: by its condition, by that of all changes, and in the sentence.
    fn says(self, world: &World) -> String {
        let status = world.deployment.status.clone().unwrap();
        let told = [self.condition(), condition::UP_TO_DATE].map(|type_| {
            let found = conditions::find(&status.conditions, type_);
            found.map(|found| format!("{} {}: {}", found.status, found.reason, found.message)).unwrap_or_default()
        });
        format!("{}; {}", told.join("; "), status.message.unwrap_or_default())
    }

    /// Whether all machines have it.
    fn is_done(self, world: &World) -> bool {
        let status = world.deployment.status.as_ref().unwrap();
        let is = |type_: &str| conditions::is_true(&status.conditions, type_);
        let has = match self {
            Minor | Patch => {
                let wanted = world.deployment.spec.kubernetes_version.to_string();
                world.machines.iter().all(|machine| {
                    let told = machine.status.as_ref().and_then(|status| status.kubernetes_version.as_ref());
                    told == Some(&wanted)
                })
            }
            Mirror | MaxPods => true,
            Renewal => ["h1", "h2", "h3"].iter().all(|host| {
                let left = world.certificates[*host].duration_since(world.time().0);
                left > SignedDuration::from_hours(24 * 80)
            }),
            Rotation(subject) => {
                let ring = &world.authorities.rings[&subject];
                ring.stage == Stage::Settled && ring.signer == format!("{}-1", subject.name())
            }
        };
        let is_drained = world.machines.iter().any(|machine| !machine.spec.drain_for.is_empty());
        has && is(self.condition()) && is(condition::UP_TO_DATE) && !is_drained && !world.works()
    }

    /// It goes on until all machines have it, and the runs that it took end.
    fn finish(self, world: &mut World) {
        for _ in 0..TURNS {
            if self.is_done(world) && ready(world).0 == "True" {
                return;
            }
            pass(world);
        }
        panic!("{self:?} does not come to its end: {}\n{}", self.says(world), world.report());
    }

    /// The worlds at each moment of it at which something else begins: a run works, a Node is drained, a backup is
    /// made, a person is asked.
    fn moments(self) -> Vec<World> {
        let (mut world, mut seen, mut moments) = (self.asked(), BTreeSet::new(), Vec::new());
        for _ in 0..TURNS {
            let works = self.runs(&world).into_iter().find(|run| is_at_work(run)).map(|run| run.name().to_owned());
            let drained = world.machines.iter().find(|machine| machine.is_true(condition::DRAINED));
            let drained = drained.map(|machine| format!("{} is drained", machine.name()));
            let waits = (world.backups.len(), asked(&world));
            if (works.is_some() || drained.is_some() || waits.1.is_some()) && seen.insert((works, drained, waits)) {
                moments.push(world.clone());
            }
            if self.is_done(&world) && !moments.is_empty() {
                return moments;
            }
            pass(&mut world);
        }
        panic!("{self:?}: {}\n{}", self.says(&world), world.report());
    }

    /// Those of them at which a run works: of a rotation, at the first machine of each of its stages.
    fn at_work(self) -> Vec<World> {
        let moments = self.moments().into_iter();
        let mut at_work: Vec<World> = moments.filter(|world| self.work(world).is_some()).collect();
        let mut stages = BTreeSet::new();
        if let Rotation(subject) = self {
            at_work.retain(|world| {
                let ring = &world.authorities.rings[&subject];
                stages.insert((format!("{:?}", ring.stage), self.work(world).unwrap().spec.steps.clone()))
            });
        }
        assert!(at_work.len() >= 3, "{self:?}");
        at_work
    }

    /// The run that works.
    fn work(self, world: &World) -> Option<&PlaybookRun> {
        self.runs(world).into_iter().find(|run| is_at_work(run))
    }

    /// How many runs it takes if nothing comes in its way.
    fn whole(self) -> usize {
        let mut world = self.asked();
        self.finish(&mut world);
        self.runs(&world).len()
    }

    /// What was begun since so many of its runs were there, but what touches nothing that runs.
    fn begun(self, world: &World, before: usize) -> Vec<&PlaybookRun> {
        self.runs(world).into_iter().skip(before).filter(|run| run.spec.intent != Intent::Prefetch).collect()
    }
}

fn is_at_work(run: &PlaybookRun) -> bool {
    run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running)
}

/// A turn in which backups are taken, too, and a person approves what a rotation asks for.
fn pass(world: &mut World) {
    back_up(world);
    approve(world);
    world.run_for(1);
}

/// Backups that are made are there.
fn back_up(world: &mut World) {
    let now = world.time().0.to_string();
    for backup in world.backups.iter_mut().filter(|backup| backup.status.is_none()) {
        let content = json!({
            "location": format!("a/cd-uid/{}", backup.name()), "revision": 7, "keys": 5, "size": 9, "sha256": "x",
            "member": "h1", "etcdVersion": "3.6.16", "startedAt": now, "completedAt": now
        });
        backup.status = serde_json::from_value(json!({ "phase": "Succeeded", "backup": content })).unwrap();
    }
}

/// The approval that a rotation asks for.
fn asked(world: &World) -> Option<String> {
    let status = world.deployment.status.as_ref()?;
    let stated = conditions::find(&status.conditions, condition::AUTHORITIES_ROTATED)?;
    Some(stated.message.rsplit_once("clusterwright.dev/approve=")?.1.to_owned())
}

fn approve(world: &mut World) {
    if let Some(value) = asked(world) {
        let annotations = world.deployment.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::APPROVE.into(), value);
    }
}
