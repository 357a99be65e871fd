//! Machines of a plane, and who works on them: sets make Machines, which take Hosts; the executor plays the runs that
//! hold the lock; and what leaves goes.

use std::collections::{BTreeMap, BTreeSet};

use crds::playbook_run::{Fence, FenceOwner, PlaybookRunStatus, RunPhase};
use crds::step::{Intent, Role, Step};
use crds::{Host, KarmadaDeployment, Machine, MachineSet, MachineStatus, ObjectExt, PlaybookRun, Reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::super::super::seats::MachinesSeen;
use super::super::Act;
use crate::attempts::{self, Outcome, outcome};
use crate::departure::{self, Departure};
use crate::formed_cluster::FormedCluster;

/// Since when conditions are as they are.
const SINCE: &str = "2026-11-27T09:00:00Z";

/// What a machine runs of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    pub digest: String,
    pub healthy: bool,
}

#[derive(Clone, Default)]
pub struct Fleet {
    pub hosts: Vec<Host>,
    pub sets: Vec<MachineSet>,
    pub machines: Vec<Machine>,
    pub runs: Vec<PlaybookRun>,
    /// What runs on each Host.
    pub units: BTreeMap<String, BTreeMap<String, Unit>>,
    /// Hosts that answer nobody.
    pub dead: BTreeSet<String>,
    /// Hosts that do not accept SSH logins, with the reason; what runs there works on.
    pub denied: BTreeMap<String, Reason>,
    /// Hosts whose member of etcd is not healthy.
    pub sick_members: BTreeSet<String>,
    /// Hosts on which nothing comes of what a run says that it has brought.
    pub lied_about: BTreeSet<String>,
    /// Whether runs that hold the lock work on, and do not end.
    pub lingers: bool,
    /// Members whose estimators do not work, wherever they are.
    pub sick: BTreeSet<String>,
    /// What each member of etcd says of itself, where one is asked.
    pub member: Value,
    /// Parts that fail on a Host.
    pub fails: BTreeSet<(String, String)>,
    /// Parts and Hosts that were worked on at once, run by run: `scheduler+search` on `h1`.
    pub played: Vec<(String, Vec<String>)>,
    /// When the metadata cluster was taken up again.
    pub resumed_at: Option<Timestamp>,
    /// What the guard of each machine knows: the highest fence, and whose it is.
    pub guards: BTreeMap<String, (Fence, FenceOwner)>,
    made: u32,
    /// The last tick's.
    now: Timestamp,
}

impl Fleet {
    /// With so many free Hosts: `h1` at 10.0.0.1 and so on.
    pub fn with_hosts(count: usize) -> Self {
        let host = |number: usize| {
            serde_yaml::from_str(&format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h{number}, namespace: fleet, uid: h{number}-uid, generation: 1}}, spec: {{address: 10.0.0.{number}, ssh: {{credentialsRef: {{name: key}}}}}}}}"
            ))
            .unwrap()
        };
        Self { hosts: (1..=count).map(host).collect(), ..Self::default() }
    }

    /// As planners look at them.
    pub fn look<T>(&self, with: impl FnOnce(&MachinesSeen<'_>) -> T) -> T {
        let (sets, machines) = (self.sets.iter().collect::<Vec<_>>(), self.machines.iter().collect::<Vec<_>>());
        let (hosts, runs) = (self.hosts.iter().collect::<Vec<_>>(), self.runs.iter().collect::<Vec<_>>());
        with(&MachinesSeen {
            resumed_at: self.resumed_at,
            sets: &sets,
            machines: &machines,
            hosts: &hosts,
            runs: &runs,
            deployments: &[],
        })
    }

    /// Whether a part works on a machine that answers.
    pub fn serves(&self, part: &str) -> bool {
        let mut alive = self.units.iter().filter(|(host, _)| !self.dead.contains(*host));
        alive.any(|(_, units)| units.get(part).is_some_and(|unit| unit.healthy))
    }

    /// All that may change.
    pub fn shape(&self, object: &KarmadaDeployment) -> Value {
        let operations = object.status.as_ref().map(|status| (status.operations.len(), status.last_token));
        json!([
            self.machines.iter().map(|one| (one.name(), &one.spec.host_ref, &one.status)).collect::<Vec<_>>(),
            self.runs.iter().map(|run| (run.name(), attempts::is_over(run))).collect::<Vec<_>>(),
            self.hosts.iter().map(|host| (&host.spec.claim_ref, &host.status)).collect::<Vec<_>>(),
            operations,
        ])
    }

    /// Does an act; what it was, in words.
    pub fn play(&mut self, act: &Act) -> Option<String> {
        match act {
            Act::ApplyMachineSet { name, object } => {
                let mut set: MachineSet = serde_json::from_value((**object).clone()).unwrap();
                set.metadata.uid = Some(format!("{name}-uid"));
                self.sets.retain(|there| there.name() != name);
                self.sets.push(set);
                Some(format!("apply MachineSet {name}"))
            }
            Act::DeleteMachineSet(set) => {
                self.sets.retain(|there| there.name() != set.name());
                None
            }
            Act::DeleteMachine(machine) => {
                self.delete(machine.name());
                Some(format!("delete Machine {}", machine.name()))
            }
            Act::ForceRemoveMachine(machine) => {
                self.force(machine.name());
                None
            }
            Act::CreateRun(run) => {
                if self.runs.iter().any(|there| there.name() == run.name()) {
                    return None;
                }
                self.made += 1;
                let mut run = (**run).clone();
                run.metadata.uid = Some(format!("run-{}", self.made));
                // Each after those before it.
                let made = self.now + jiff::SignedDuration::from_millis(i64::from(self.made));
                run.metadata.creation_timestamp = Some(Time(made));
                let steps: Vec<&str> = run.spec.steps.iter().map(Step::name).collect();
                let parts: Vec<&str> = run.spec.parts().map(|part| part.part.as_str()).collect();
                let log = format!("run {} {} on {}", steps.join("+"), parts.join("+"), run.spec.hosts.join(","));
                let looks = run.spec.intent.changes_nothing();
                self.runs.push(run);
                (!looks).then_some(log)
            }
            Act::CancelRun(run) => {
                self.runs
                    .iter_mut()
                    .filter(|there| there.name() == run.name())
                    .for_each(|there| there.spec.cancel = true);
                None
            }
            Act::DeleteRun(run) => {
                self.runs.retain(|there| there.name() != run.name());
                None
            }
            Act::HoldRun { run, paused } => {
                let there = self.runs.iter_mut().find(|there| there.name() == run.name()).unwrap();
                there.spec.paused = *paused;
                Some(format!("hold {paused}"))
            }
            Act::Adopt(adoption) => {
                self.adopt(adoption);
                None
            }
            Act::MarkFenced(_) => None,
        }
    }

    pub fn delete(&mut self, name: &str) {
        let machine = self.machines.iter_mut().find(|machine| machine.name() == name).unwrap();
        machine.metadata.deletion_timestamp = Some(Time("2026-11-27T10:00:00Z".parse().unwrap()));
    }

    /// A person has it forgotten.
    pub fn force(&mut self, name: &str) {
        let machine = self.machines.iter_mut().find(|machine| machine.name() == name).unwrap();
        let generation = machine.generation().to_string();
        let annotations = machine.metadata.annotations.get_or_insert_default();
        annotations.insert("clusterwright.dev/force-remove".into(), generation);
    }

    /// The Machine that has a Host.
    pub fn on(&self, host: &str) -> Option<&Machine> {
        let is_on = |machine: &&Machine| machine.spec.host_ref.as_ref().is_some_and(|named| named.name == host);
        self.machines.iter().find(is_on)
    }

    /// Controllers and executors do what is theirs.
    pub fn tick(&mut self, object: &KarmadaDeployment, now: Timestamp) {
        self.now = now;
        if !object.is_deleting() {
            self.make_machines();
        }
        self.take_hosts();
        self.probe_hosts();
        self.play_runs(object, now);
        self.look_at_machines();
        self.leave(object, now);
    }

    fn make_machines(&mut self) {
        for set in self.sets.clone() {
            let role = set.spec.role;
            let of_set = |machine: &&Machine| machine.spec.role == role && !machine.is_deleting();
            let mut there: Vec<String> = self.machines.iter().filter(of_set).map(|one| one.name().to_owned()).collect();
            there.sort();
            let wanted = usize::try_from(set.spec.replicas).unwrap();
            for name in there.iter().skip(wanted).rev().take(1) {
                self.delete(name);
            }
            if there.len() < wanted {
                self.made += 1;
                let (name, uid) = (format!("{}-{:03}", set.name(), self.made), format!("machine-{}", self.made));
                let yaml = format!(
                    "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, namespace: fleet, uid: {uid}, generation: 1, creationTimestamp: '2026-11-27T08:30:00Z', ownerReferences: [{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, name: {set}, uid: {set}-uid, controller: true}}]}}, spec: {{clusterName: k1, clusterKind: KarmadaDeployment, role: {role}}}}}",
                    set = set.name(),
                    role = role.name(),
                );
                self.machines.push(serde_yaml::from_str(&yaml).unwrap());
            }
        }
    }

    fn take_hosts(&mut self) {
        for machine in self.machines.iter_mut().filter(|machine| machine.spec.host_ref.is_none()) {
            let free = |host: &&mut Host| host.spec.claim_ref.is_none() && host.spec.quarantine.is_none();
            let Some(host) = self.hosts.iter_mut().find(free) else { continue };
            let claim = json!({ "kind": "Machine", "name": machine.name(), "uid": machine.uid() });
            host.spec.claim_ref = Some(serde_json::from_value(claim).unwrap());
            host.spec.claim_epoch += 1;
            machine.spec.host_ref = Some(crds::references::LocalRef::new(host.name()));
        }
    }

    fn play_runs(&mut self, object: &KarmadaDeployment, now: Timestamp) {
        let held = object.status.as_ref().map(|status| status.operations.clone()).unwrap_or_default();
        let mut runs = std::mem::take(&mut self.runs);
        let mut at_work = 0;
        for run in runs.iter_mut().filter(|run| !attempts::is_over(run)) {
            let token = held.iter().find(|held| held.run == run.name()).map(|held| held.token);
            if run.spec.cancel {
                let status = run.status.get_or_insert_default();
                (status.phase, status.finished_at) = (Some(RunPhase::Canceled), Some(Time(now)));
                continue;
            }
            if run.spec.intent != Intent::Probe && token.is_none() {
                continue;
            }
            at_work += usize::from(run.spec.intent != Intent::Probe);
            assert!(at_work <= 1, "two runs at once: {}", run.name());
            run.status = Some(match token.filter(|_| self.lingers) {
                Some(token) => at_work_since(run, token, now),
                None => {
                    if let Some(token) = token {
                        self.pass_guards(run, token, object);
                    }
                    self.played(run, token.unwrap_or_default(), now)
                }
            });
        }
        self.runs = runs;
    }

    /// What comes of a run: each machine gets its parts in their order, up to the first that fails there. Where one
    /// fails, or does not answer, the run has failed.
    fn played(&mut self, run: &PlaybookRun, token: i64, now: Timestamp) -> PlaybookRunStatus {
        let looks = run.spec.intent.changes_nothing();
        let failing = |host: &String| {
            let mut parts = run.spec.parts().filter(|part| part.digests.contains_key(host));
            parts.find(|part| self.fails.contains(&(host.clone(), part.part.clone()))).map(|part| part.part.clone())
        };
        let failing: BTreeMap<&String, String> =
            run.spec.hosts.iter().filter_map(|host| Some((host, failing(host)?))).collect();
        let is_reached = |host: &String| !self.dead.contains(host) && !self.denied.contains_key(host);
        // One that is not reached stops a run before anything is brought; one that fails, before the next step.
        let are_reached = run.spec.hosts.iter().all(is_reached);
        let all = are_reached && failing.is_empty();
        let mut results: Vec<Value> = Vec::new();
        for host in &run.spec.hosts {
            let failure = json!({ "step": run.spec.steps.last().unwrap().name(), "task": "t", "reason": "TaskFailed", "message": "it ended with 1" });
            let brought = match are_reached && !looks {
                true => self.bring(run, host, failing.get(host), failing.is_empty()),
                false => BTreeMap::new(),
            };
            if let Some(reason) = self.denied.get(host) {
                let failure =
                    json!({ "step": "", "task": "", "reason": reason.as_str(), "message": "nobody is let in" });
                results.push(json!({ "name": host, "unreachable": true, "failure": failure }));
                continue;
            }
            results.push(match (self.dead.contains(host), failing.contains_key(host)) {
                (true, _) => json!({ "name": host, "unreachable": true }),
                (_, true) => json!({ "name": host, "failed": 1, "failure": failure, "brought": brought }),
                _ => json!({
                    "name": host, "clean": run.spec.steps.contains(&Step::Reset).then_some(true), "brought": brought,
                    "etcd": Some(&self.member).filter(|_| run.spec.steps == [Step::ProbeEtcd]),
                }),
            });
        }
        if !looks {
            let parts: Vec<&str> = run.spec.parts().map(|part| part.part.as_str()).collect();
            self.played.push((parts.join("+"), run.spec.hosts.clone()));
        }
        let phase = |at: usize| match (all, are_reached || at == 0) {
            (true, _) => "Succeeded",
            (false, true) => "Failed",
            (false, false) => "Pending",
        };
        let step = |(at, step): (usize, &Step)| json!({ "name": step.name(), "phase": phase(at), "startedAt": now, "finishedAt": now });
        let steps: Vec<Value> = run.spec.steps.iter().enumerate().map(step).collect();
        serde_json::from_value(json!({
            "phase": if all || looks { "Succeeded" } else { "Failed" }, "token": token,
            "finishedAt": now, "startedAt": now, "hosts": results, "steps": steps,
            "staged": Some(staged()).filter(|_| all && run.spec.intent == Intent::Stage),
        }))
        .unwrap()
    }

    /// What a run leaves on a machine: its parts, up to the one that fails, which does not work. Which it has brought.
    fn bring(
        &mut self,
        run: &PlaybookRun,
        host: &str,
        fails: Option<&String>,
        is_well: bool,
    ) -> BTreeMap<String, String> {
        let mut brought = BTreeMap::new();
        if run.spec.steps.contains(&Step::Reset) {
            self.units.remove(host);
        }
        for part in run.spec.parts() {
            let Some(digest) = part.digests.get(host).map(|digest| digest.0.clone()) else { continue };
            let units = self.units.entry(host.to_owned()).or_default();
            if part.part == "load-balancer" && !is_well && fails.is_none() {
                break;
            }
            if fails == Some(&part.part) {
                units.insert(part.part.clone(), Unit { digest, healthy: false });
                break;
            }
            brought.insert(part.part.clone(), digest.clone());
            if self.lied_about.contains(host) {
                continue;
            }
            if part.part == "etcd" {
                self.sick_members.remove(host);
            }
            if digest == "absent" {
                units.remove(&part.part);
                continue;
            }
            let healthy = !digest.ends_with("-stopped");
            units.insert(part.part.clone(), Unit { digest, healthy });
        }
        brought
    }

    /// What each Machine says of itself.
    fn look_at_machines(&mut self) {
        for machine in &mut self.machines {
            let Some(host) = machine.spec.host_ref.as_ref().map(|host| host.name.clone()) else { continue };
            let uid = machine.uid().to_owned();
            let joined = self.runs.iter().find(|run| {
                [Intent::Install, Intent::Join].contains(&run.spec.intent)
                    && attempts::is_about(run, &uid)
                    && outcome(run, &host) == Outcome::Succeeded
            });
            let joined = joined.and_then(attempts::ended_at);
            let mut status = machine.status.clone().unwrap_or_default();
            status.provisioned_at = status.provisioned_at.or(joined.map(Time));
            let probe = self.runs.iter().rfind(|run| run.spec.steps == [Step::ProbeKarmada]);
            let answers = !self.dead.contains(&host) && !self.denied.contains_key(&host);
            let seen = probe.filter(|run| attempts::is_over(run) && answers);
            if let Some(run) = seen.filter(|run| run.spec.hosts.contains(&host)) {
                let at = attempts::ended_at(run).unwrap();
                let asked =
                    run.spec.vars["karmada_hosts"][&host]["karmada_parts"].as_array().cloned().unwrap_or_default();
                let units = self.units.get(&host).cloned().unwrap_or_default();
                let part = |asked: &Value| {
                    let unit = units.get(asked["name"].as_str().unwrap());
                    serde_json::from_value(json!({
                        "name": asked["name"], "digest": unit.map(|unit| &unit.digest),
                        "healthy": unit.is_some_and(|unit| unit.healthy), "lastProbeTime": at,
                    }))
                    .unwrap()
                };
                let estimators = run.spec.vars.get("karmada_estimators");
                let estimators = estimators.and_then(|asked| asked["services"].as_array()).map(|services| {
                    let is_sick = |one: &&Value| self.sick.contains(one["name"].as_str().unwrap());
                    let sick = services.iter().filter(is_sick).map(|one| (one["name"].as_str().unwrap(), "timed out"));
                    serde_json::from_value(json!({
                        "name": "estimators", "digest": units.get("estimators").map(|unit| &unit.digest),
                        "healthy": true, "members": sick.collect::<BTreeMap<_, _>>(), "lastProbeTime": at,
                    }))
                    .unwrap()
                });
                status.parts = asked.iter().map(part).chain(estimators).collect();
            }
            let is_well = !self.dead.contains(&host);
            let deleting = status.conditions.iter().find(|there| there.type_ == "Deleting").cloned();
            let is_sick = self.sick_members.contains(&host);
            let condition = |type_: &str| {
                let sick = is_sick.then_some(Reason::EtcdMemberUnhealthy.as_str()).filter(|_| type_ == "Healthy");
                serde_json::from_value(json!({
                    "type": type_, "status": if is_well && sick.is_none() { "True" } else { "False" },
                    "reason": sick.unwrap_or("Seen"), "message": "", "lastTransitionTime": SINCE,
                }))
                .unwrap()
            };
            if status.provisioned_at.is_some() {
                status.conditions = ["Ready", "Healthy"].map(condition).into_iter().chain(deleting).collect();
            }
            machine.status = Some(MachineStatus { ..status });
        }
    }

    /// Machines that are being deleted go as far as they may.
    fn leave(&mut self, object: &KarmadaDeployment, now: Timestamp) {
        let all = self.machines.clone();
        let (refs, runs): (Vec<&Machine>, Vec<&PlaybookRun>) = (all.iter().collect(), self.runs.iter().collect());
        let cluster = FormedCluster::from(object);
        let forgotten = object.status.iter().flat_map(|status| &status.forgotten);
        let forgotten: Vec<&str> = forgotten.map(|one| one.uid.as_str()).collect();
        let mut gone = Vec::new();
        for machine in self.machines.iter_mut().filter(|machine| machine.is_deleting()) {
            let host = machine.spec.host_ref.as_ref().map(|host| host.name.clone());
            let departure = departure::decide(machine, &refs, cluster, &runs);
            let is_clean = runs.iter().any(|run| {
                run.spec.steps.contains(&Step::Reset)
                    && host.as_ref().is_some_and(|host| outcome(run, host) == Outcome::Succeeded)
                    && attempts::is_about(run, machine.uid())
            });
            let is_forced = machine.annotation("clusterwright.dev/force-remove").is_some();
            let untouched = !crate::provisioning::was_touched(machine, &runs);
            let reason = match departure {
                _ if host.is_none() || untouched || is_clean || is_forced && forgotten.contains(&machine.uid()) => {
                    gone.push((machine.name().to_owned(), host, is_forced));
                    continue;
                }
                _ if cluster.detaches => {
                    gone.push((machine.name().to_owned(), host, false));
                    continue;
                }
                Departure::MayGo => "LeavingEtcd",
                Departure::Left | Departure::NotAMember => "WaitingForReset",
                Departure::WaitingForTurn(_) | Departure::UnderWay(_) => "WaitingForTurn",
            };
            let condition = json!({ "type": "Deleting", "status": "True", "reason": reason, "message": "", "lastTransitionTime": SINCE });
            let status = machine.status.get_or_insert_default();
            status.conditions.retain(|there| there.type_ != "Deleting");
            status.conditions.push(serde_json::from_value(condition).unwrap());
        }
        for (name, host, is_forced) in gone {
            self.machines.retain(|machine| machine.name() != name);
            let Some(host) = self.hosts.iter_mut().find(|one| Some(one.name()) == host.as_deref()) else { continue };
            host.spec.claim_ref = None;
            if is_forced {
                let quarantine = json!({ "reason": "ForceRemoved", "message": "m", "machine": name, "since": now });
                host.spec.quarantine = serde_json::from_value(quarantine).ok();
            }
        }
    }

    /// Names of the Hosts with Machines of a role that stay.
    pub fn held(&self, role: Role) -> Vec<&str> {
        let of_role = |machine: &&Machine| machine.spec.role == role && !machine.is_deleting();
        let hosts = self.machines.iter().filter(of_role).filter_map(|machine| machine.spec.host_ref.as_ref());
        hosts.map(|host| host.name.as_str()).collect()
    }
}

/// What a run lays ready.
fn staged() -> Value {
    json!({
        "backup": "nightly", "location": "l", "takenAt": SINCE, "revision": 77, "keys": 1, "size": 9, "sha256": "a0",
        "etcdVersion": "3.6.6", "currentRevision": 90, "bump": 1_000_000_013, "clusterID": "c0",
    })
}

/// A run that works with this token; since when, if it has not begun before.
fn at_work_since(run: &PlaybookRun, token: i64, now: Timestamp) -> PlaybookRunStatus {
    let begun = run.status.clone().filter(|status| status.token == token);
    begun.unwrap_or_else(|| PlaybookRunStatus {
        phase: Some(RunPhase::Running),
        token,
        started_at: Some(Time(now)),
        ..PlaybookRunStatus::default()
    })
}
