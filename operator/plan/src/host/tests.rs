use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::conditions;
use crds::host::HostPhase;
use crds::names::{annotation, condition};
use crds::playbook_run::RunPhase;
use crds::{Host, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::DeserializeOwned;

use super::{Action, HostObserved, ProbeSchedule, host};
use crate::inputs::InputsProblem;
use crate::settles::settles;
use crate::{Next, Plan};

mod identity;
mod store;

fn object<K: DeserializeOwned>(text: &str) -> K {
    serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn spare(name: &str, more: &str) -> Host {
    object(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}, namespace: fleet, uid: uid-{name}, generation: 1, creationTimestamp: 2026-01-01T00:00:00Z}}, spec: {{address: {name}.example, ssh: {{credentialsRef: {{name: k}}, hostKeyPolicy: TrustOnFirstUse}}{more}}}}}"
    ))
}

fn at(second: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    Timestamp::from_second(start.as_second() + second).unwrap()
}

/// Hosts, their probes, and a clock.
struct World {
    hosts: BTreeMap<String, Host>,
    probes: Vec<PlaybookRun>,
    problems: BTreeMap<String, InputsProblem>,
    now: i64,
    /// What a probe finds, by host; none: the probe comes to nothing.
    finds: BTreeMap<String, String>,
    /// Hosts whose Machine is gone.
    gone: BTreeSet<String>,
    /// When the store was taken up again.
    resumed_at: Option<Timestamp>,
}

impl World {
    fn new(hosts: Vec<Host>) -> Self {
        let hosts = hosts.into_iter().map(|host| (host.metadata.name.clone().unwrap(), host)).collect();
        Self {
            hosts,
            probes: vec![],
            problems: BTreeMap::new(),
            now: 10,
            finds: BTreeMap::new(),
            gone: BTreeSet::new(),
            resumed_at: None,
        }
    }

    fn plan(&self, name: &str) -> Plan<Action, crds::HostStatus> {
        let hosts: Vec<Arc<Host>> = self.hosts.values().cloned().map(Arc::new).collect();
        let probes: Vec<Arc<PlaybookRun>> = self.probes.iter().cloned().map(Arc::new).collect();
        host(&HostObserved {
            host: &self.hosts[name],
            now: at(self.now),
            schedule: ProbeSchedule { interval_seconds: 600, resumed_at: self.resumed_at },
            hosts: &hosts,
            probes: &probes,
            runs: &probes,
            problems: &self.problems,
            holder_is_gone: self.gone.contains(name),
        })
    }

    /// One pass of every Host; their statuses are written.
    fn turn(&mut self) -> Vec<Action> {
        let names: Vec<String> = self.hosts.keys().cloned().collect();
        let mut steps = Vec::new();
        for name in names {
            let plan = self.plan(&name);
            self.hosts.get_mut(&name).unwrap().status = Some(plan.status);
            steps.extend(plan.actions);
        }
        steps
    }

    /// Makes the probe, and lets it end at once.
    fn apply(&mut self, step: &Action) {
        let run = match step {
            Action::Probe(run) => run,
            Action::Forget(_) => return,
            Action::EndQuarantine(host) => return self.write(host, |host| host.spec.quarantine = None),
            Action::RaiseEpoch { host, epoch } => {
                return self.write(host, |host| host.spec.claim_epoch = *epoch);
            }
            Action::SetIdentity { host, identity } => {
                return self.write(host, |host| host.spec.identity = Some(identity.clone()));
            }
            Action::ReleaseClaim { host, finalizers, quarantine } => {
                return self.write(host, |host| {
                    host.spec.claim_ref = None;
                    host.spec.quarantine = Some(quarantine.clone());
                    host.metadata.finalizers = Some(finalizers.clone());
                });
            }
        };
        if self.probes.iter().any(|there| there.metadata.name == run.metadata.name) {
            return;
        }
        let mut run = (**run).clone();
        run.metadata.uid = Some(format!("uid-of-{}", self.probes.len()));
        run.metadata.creation_timestamp = Some(Time(at(self.now)));
        let results: Vec<String> = run
            .spec
            .hosts
            .iter()
            .filter_map(|host| {
                let found = self.finds.get(host)?;
                Some(format!("{{name: {host}, {found}}}"))
            })
            .collect();
        self.now += 5;
        run.status = Some(object(&format!("{{phase: Succeeded, message: m, hosts: [{}]}}", results.join(", "))));
        run.status.as_mut().unwrap().finished_at = Some(Time(at(self.now)));
        self.probes.push(run);
    }

    /// Changes the spec, if nobody has changed it since it was read.
    fn write(&mut self, read: &Host, change: impl FnOnce(&mut Host)) {
        let host = self.hosts.get_mut(read.metadata.name.as_ref().unwrap()).unwrap();
        if host.metadata.generation == read.metadata.generation {
            change(host);
            host.metadata.generation = host.metadata.generation.map(|generation| generation + 1);
        }
    }

    /// What the operator or a person writes.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Host)) {
        let read = self.hosts[name].clone();
        self.write(&read, change);
    }

    fn ask_release(&mut self, name: &str, value: &str) {
        let host = self.hosts.get_mut(name).unwrap();
        host.metadata.annotations = Some([(annotation::RELEASE.to_owned(), value.to_owned())].into());
    }

    fn settle(&mut self) -> usize {
        let steps = settles(self, 20, World::turn, World::apply, |world| {
            let under_way = world.probes.iter().filter(|run| {
                run.status.as_ref().and_then(|status| status.phase).is_none_or(|phase| phase == RunPhase::Running)
            });
            assert!(under_way.count() <= 1);
        });
        self.turn();
        steps.len()
    }

    fn shown(&self, name: &str) -> (HostPhase, String, &str) {
        let status = self.hosts[name].status.as_ref().unwrap();
        let ready = conditions::find(&status.conditions, condition::READY).unwrap();
        (status.phase.unwrap(), status.message.clone().unwrap(), ready.status.as_str())
    }
}

#[test]
fn new_hosts_are_probed_together_and_become_available_by_themselves() {
    let mut world =
        World::new(vec![spare("a", ""), spare("b", ""), spare("c", ", claimRef: {kind: Machine, name: m, uid: u}")]);
    world.finds.insert("a".into(), "clean: true, facts: {cpus: 4}, hostKey: ssh-ed25519 AAAA".into());
    world.finds.insert("b".into(), "unreachable: true, failure: {step: probe-host, task: t, reason: AuthenticationFailed, message: Permission denied}".into());
    world.settle();
    assert_eq!(world.probes.len(), 1);
    assert_eq!(world.probes[0].spec.hosts, ["a", "b"]);
    assert_eq!(world.shown("a"), (HostPhase::Available, "available".into(), "True"));
    let status = world.hosts["a"].status.as_ref().unwrap();
    assert_eq!((status.facts.as_ref().unwrap().cpus, status.cleaned_epoch), (4, Some(0)));
    assert_eq!(status.host_keys, ["ssh-ed25519 AAAA"]);
    let denied = "AuthenticationFailed: Permission denied".to_owned();
    assert_eq!(world.shown("b"), (HostPhase::Unreachable, denied, "False"));
    assert_eq!(world.shown("c"), (HostPhase::Claimed, "claimed by Machine m".into(), "True"));
}

#[test]
fn at_rest_nothing_is_written_until_the_interval_is_over() {
    let mut world = World::new(vec![spare("a", "")]);
    world.finds.insert("a".into(), "clean: true".into());
    world.settle();
    let before = world.hosts["a"].status.clone();
    world.now += 400;
    let plan = world.plan("a");
    assert_eq!((plan.actions.len(), Some(plan.status)), (0, before));
    assert!(matches!(plan.next, Next::After(wait) if (100..300).contains(&wait.as_secs())), "{:?}", plan.next);
    world.now += 300;
    assert_eq!(world.plan("a").actions.len(), 1);
}

#[test]
fn a_host_that_was_given_back_is_not_available_until_it_is_proved_clean() {
    let mut world = World::new(vec![spare("a", "")]);
    world.finds.insert("a".into(), "clean: true".into());
    world.settle();
    // Claimed, and given back: the epoch rose, and the generation twice.
    let host = world.hosts.get_mut("a").unwrap();
    host.spec.claim_epoch = 1;
    host.metadata.generation = Some(3);
    let plan = world.plan("a");
    assert_eq!(plan.status.phase, Some(HostPhase::Cleaning));
    assert_eq!(plan.actions.len(), 1, "probed at once");
    world.finds.insert("a".into(), "clean: false, leftovers: [/etc/kubernetes]".into());
    world.settle();
    let (phase, message, ready) = world.shown("a");
    assert_eq!((phase, ready), (HostPhase::Quarantined, "False"));
    assert!(message.contains("/etc/kubernetes"), "{message}");
    world.finds.insert("a".into(), "clean: true".into());
    world.now += 200;
    world.settle();
    assert_eq!(world.shown("a").0, HostPhase::Available);
    assert_eq!(world.hosts["a"].status.as_ref().unwrap().cleaned_epoch, Some(1));
}

#[test]
fn nobody_is_told_to_reset_a_machine_that_no_cluster_may_have() {
    for (unschedulable, expected) in [(true, "unschedulable, and not clean: "), (false, "reset the machine")] {
        let mut host = spare("a", "");
        host.spec.unschedulable = unschedulable;
        let mut world = World::new(vec![host]);
        world.finds.insert("a".into(), "clean: false, leftovers: [/etc/kubernetes]".into());
        world.settle();
        let (phase, message, _) = world.shown("a");
        assert_eq!(phase, HostPhase::Quarantined);
        assert!(message.contains(expected) && message.contains("/etc/kubernetes"), "{message}");
        assert_eq!(message.contains("reset the machine"), !unschedulable, "{message}");
    }
}

#[test]
fn a_probe_that_was_made_before_a_claim_proves_nothing_after_it() {
    let mut world = World::new(vec![spare("a", "")]);
    world.finds.insert("a".into(), "clean: true".into());
    let steps = world.turn();
    world.apply(&steps[0]);
    let host = world.hosts.get_mut("a").unwrap();
    host.spec.claim_epoch = 1;
    host.metadata.generation = Some(3);
    world.turn();
    assert_ne!(world.shown("a").0, HostPhase::Available);
}

#[test]
fn a_host_made_anew_under_its_name_does_not_inherit() {
    let mut world = World::new(vec![spare("a", "")]);
    world.finds.insert("a".into(), "clean: true".into());
    world.settle();
    let mut anew = spare("a", "");
    anew.metadata.uid = Some("other".into());
    world.hosts.insert("a".into(), anew);
    world.turn();
    assert_eq!(world.shown("a").0, HostPhase::Unreachable);
}

#[test]
fn a_probe_without_a_result_is_made_again_after_a_while_and_not_at_once() {
    let mut world = World::new(vec![spare("a", "")]);
    world.settle();
    assert_eq!(world.probes.len(), 1);
    let (phase, message, ready) = world.shown("a");
    assert_eq!((phase, ready), (HostPhase::Unreachable, "Unknown"));
    assert!(message.contains("came to no result"), "{message}");
    world.now += 61;
    assert_eq!(world.plan("a").actions.len(), 1);
}

#[test]
fn a_missing_secret_holds_up_its_own_hosts_only() {
    let mut world = World::new(vec![spare("a", ""), spare("b", "")]);
    world.problems.insert("a".into(), InputsProblem::waits(crds::Reason::SecretNotFound, "Secret k is not there"));
    world.finds.insert("b".into(), "clean: true".into());
    world.settle();
    assert_eq!(world.probes[0].spec.hosts, ["b"]);
    assert_eq!(world.shown("a"), (HostPhase::Unreachable, "Secret k is not there".into(), "False"));
}

#[test]
fn only_one_probe_is_under_way_and_at_most_fifty_hosts_are_in_it() {
    let hosts = (0..120).map(|number| spare(&format!("h{number:03}"), "")).collect();
    let mut world = World::new(hosts);
    let steps = world.turn();
    let names: std::collections::BTreeSet<_> = steps
        .iter()
        .map(|step| match step {
            Action::Probe(run) => run.metadata.name.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(names.len(), 1, "everyone makes the same probe");
    let Action::Probe(run) = &steps[0] else { panic!("{:?}", steps[0]) };
    assert_eq!(run.spec.hosts.len(), 50);
    let mut run = (**run).clone();
    run.metadata.uid = Some("x".into());
    world.probes.push(run);
    assert!(world.turn().is_empty());
}

#[test]
fn hosts_that_have_not_read_yet_what_a_probe_found_are_in_no_other_one() {
    let name = |number: usize| format!("h{number:03}");
    let mut world = World::new((0..150).map(|number| spare(&name(number), "")).collect());
    // Only one Host of each batch comes to its turn before the next probe is made.
    let mut probed = BTreeSet::new();
    for last in [149, 0, 50] {
        world.now += 10;
        let plan = world.plan(&name(last));
        let status = plan.status;
        world.hosts.get_mut(&name(last)).unwrap().status = Some(status);
        let plan = world.plan(if last == 149 { "h149" } else { "h148" });
        let probe = plan.actions.iter().find(|action| matches!(action, Action::Probe(_))).unwrap();
        world.apply(probe);
        let hosts = world.probes.last().unwrap().spec.hosts.clone();
        assert_eq!(hosts.len(), 50);
        assert!(hosts.iter().all(|host| probed.insert(host.clone())), "{hosts:?} were probed already");
    }
}

#[test]
fn a_host_that_waits_is_not_written_with_each_probe_that_ends() {
    let mut world = World::new((0..60).map(|number| spare(&format!("h{number:03}"), "")).collect());
    let before = world.plan("h059").status;
    let probe = world.plan("h000").actions.remove(0);
    world.apply(&probe);
    let run = world.probes.last_mut().unwrap();
    run.status = None;
    assert_eq!(world.plan("h059").status.message, before.message);
    assert!(before.message.is_some_and(|message| message == "waits for a probe"));
}

#[test]
fn one_machine_is_one_host() {
    let mut twin = spare("b", "");
    twin.spec.address = "a.example".into();
    let mut world = World::new(vec![spare("a", ""), twin]);
    world.finds.insert("a".into(), "clean: true".into());
    world.finds.insert("b".into(), "clean: true".into());
    world.settle();
    assert_eq!(world.shown("a").0, HostPhase::Available);
    let (phase, message, ready) = world.shown("b");
    assert_eq!((phase, ready), (HostPhase::Quarantined, "False"));
    assert!(message.contains("Host a has the same address"), "{message}");
    // With the first one gone, the second is the machine's only one.
    world.hosts.remove("a");
    world.settle();
    assert_eq!(world.shown("b").0, HostPhase::Available);
}

#[test]
fn a_machine_that_shows_another_hosts_key_is_not_offered_under_a_second_name() {
    let mut world = World::new(vec![spare("a", ""), spare("b", "")]);
    let key = "clean: true, hostKey: ssh-ed25519 AAAA";
    world.finds.insert("a".into(), key.into());
    world.finds.insert("b".into(), key.into());
    world.settle();
    assert_eq!(world.shown("a").0, HostPhase::Available);
    let (phase, message, ready) = world.shown("b");
    assert_eq!((phase, ready), (HostPhase::Quarantined, "False"));
    assert!(message.contains("Host a has the same host key"), "{message}");
}

fn quarantine(world: &mut World, name: &str, reason: &str) {
    let quarantine = format!(
        "{{reason: {reason}, message: 'could not join', machine: m, machineSet: a-w, since: 2026-01-01T00:00:00Z}}"
    );
    world.change(name, |host| {
        host.spec.claim_ref = None;
        host.spec.claim_epoch += 1;
        host.spec.quarantine = Some(object(&quarantine));
    });
}

#[test]
fn a_quarantine_ends_by_a_release_and_a_later_probe_that_finds_the_machine_clean() {
    for reason in ["JoinFailed", "CleaningFailed"] {
        let mut world = World::new(vec![spare("a", "")]);
        world.finds.insert("a".into(), "clean: true".into());
        world.settle();
        quarantine(&mut world, "a", reason);
        world.settle();
        let (phase, message, ready) = world.shown("a");
        assert_eq!((phase, ready), (HostPhase::Quarantined, "False"), "clean or not");
        assert_eq!(
            message,
            "quarantined since it was Machine m: could not join; correct it, then kubectl -n fleet annotate --overwrite hosts.clusterwright.dev a clusterwright.dev/release=2"
        );
        let why_not = crate::claims::why_not(&world.hosts["a"]).unwrap();
        assert_eq!(why_not, format!("quarantined: {reason}"));
        // It was found clean before that was asked for: that is not enough.
        world.finds.insert("a".into(), "clean: false, leftovers: [/etc/kubernetes]".into());
        world.ask_release("a", "2");
        let probes = world.probes.len();
        world.settle();
        assert_eq!(world.probes.len(), probes + 1, "looked at once");
        let (phase, message, _) = world.shown("a");
        assert_eq!(phase, HostPhase::Quarantined);
        assert!(message.contains("/etc/kubernetes"), "{message}");
        world.finds.insert("a".into(), "clean: true".into());
        world.now += 200;
        world.settle();
        assert_eq!(world.shown("a").0, HostPhase::Available);
        assert_eq!(world.hosts["a"].spec.quarantine, None);
    }
}

#[test]
fn a_release_for_another_generation_is_none() {
    let mut world = World::new(vec![spare("a", "")]);
    world.finds.insert("a".into(), "clean: true".into());
    quarantine(&mut world, "a", "JoinFailed");
    world.ask_release("a", "1");
    world.settle();
    assert_eq!(world.shown("a").0, HostPhase::Quarantined);
    world.ask_release("a", "2");
    world.settle();
    assert_eq!(world.shown("a").0, HostPhase::Available);
}

#[test]
fn a_host_that_was_removed_by_force_comes_back_by_itself_once_it_proves_clean() {
    let mut world = World::new(vec![spare("a", "")]);
    world.finds.insert("a".into(), "clean: true".into());
    world.settle();
    quarantine(&mut world, "a", "ForceRemoved");
    world.finds.insert("a".into(), "unreachable: true".into());
    world.settle();
    let (phase, message, _) = world.shown("a");
    assert_eq!(phase, HostPhase::Quarantined);
    assert!(message.contains("ends by itself") && message.contains("Unreachable"), "{message}");
    world.finds.insert("a".into(), "clean: false, leftovers: [kubelet]".into());
    world.now += 200;
    world.settle();
    assert!(world.shown("a").1.contains("kubelet"), "{}", world.shown("a").1);
    world.finds.insert("a".into(), "clean: true".into());
    world.now += 200;
    world.settle();
    assert_eq!(world.shown("a").0, HostPhase::Available);
}

/// The row "finalizer/ownerRef stripped, child deleted": a Machine that vanished took nothing back.
#[test]
fn a_claim_whose_machine_is_gone_is_taken_off_when_a_person_says_so_row_30() {
    let mut world = World::new(vec![spare("a", ", claimRef: {kind: Machine, name: m, uid: u}, claimEpoch: 1")]);
    world.finds.insert("a".into(), "clean: false, leftovers: [kubelet]".into());
    world.settle();
    assert_eq!(world.shown("a").2, "True");
    world.gone.insert("a".into());
    world.settle();
    let (phase, message, ready) = world.shown("a");
    assert_eq!((phase, ready), (HostPhase::Claimed, "False"));
    assert!(message.contains("clusterwright.dev/release=1"), "{message}");
    world.ask_release("a", "1");
    world.settle();
    assert_eq!(world.shown("a").0, HostPhase::Quarantined, "it may still be part of a cluster");
    world.finds.insert("a".into(), "clean: true".into());
    world.now += 200;
    world.settle();
    assert_eq!(world.shown("a").0, HostPhase::Available);
}

mod arbitrary {
    use super::{Action, World, at, object, spare};
    use crds::host::HostPhase;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};

    #[derive(Clone, Copy, Debug)]
    enum Happens {
        Claim(usize),
        Release(usize),
        Quarantine(usize, bool),
        Ask(usize),
        Change(usize),
        Time(i64),
        ProbeMade,
        ProbeEnds,
    }

    fn happens() -> impl Strategy<Value = Happens> {
        prop_oneof![
            (0..3_usize).prop_map(Happens::Claim),
            (0..3_usize).prop_map(Happens::Release),
            (0..3_usize, any::<bool>()).prop_map(|(index, forced)| Happens::Quarantine(index, forced)),
            (0..3_usize).prop_map(Happens::Ask),
            (0..3_usize).prop_map(Happens::Change),
            (1..400_i64).prop_map(Happens::Time),
            proptest::strategy::Just(Happens::ProbeMade),
            proptest::strategy::Just(Happens::ProbeEnds),
        ]
    }

    /// The machines as they really are: dirty from a claim until half of the releases, as their epoch says.
    fn is_really_clean(epoch: i64) -> bool {
        epoch % 3 != 2
    }

    fn apply(world: &mut World, what: Happens) {
        let name = |index: usize| ["a", "b", "c"][index];
        let change = |world: &mut World, index: usize, edit: &dyn Fn(&mut crds::Host)| {
            let host = world.hosts.get_mut(name(index)).unwrap();
            edit(host);
            host.metadata.generation = host.metadata.generation.map(|generation| generation + 1);
        };
        match what {
            Happens::Claim(index) => change(world, index, &|host| {
                host.spec.claim_ref = Some(object("{kind: Machine, name: m, uid: u}"));
                host.spec.claim_epoch += 1;
            }),
            Happens::Release(index) => change(world, index, &|host| host.spec.claim_ref = None),
            Happens::Quarantine(index, forced) => {
                let reason = if forced { "ForceRemoved" } else { "JoinFailed" };
                super::quarantine(world, name(index), reason);
            }
            Happens::Ask(index) => {
                let generation = world.hosts[name(index)].metadata.generation.unwrap();
                world.ask_release(name(index), &generation.to_string());
            }
            Happens::Change(index) => change(world, index, &|host| host.spec.unschedulable = !host.spec.unschedulable),
            Happens::Time(seconds) => world.now += seconds,
            Happens::ProbeMade => {
                for step in world.turn() {
                    let Action::Probe(run) = step else {
                        world.apply(&step);
                        continue;
                    };
                    if world.probes.iter().all(|there| there.metadata.name != run.metadata.name) {
                        let mut run = *run;
                        run.metadata.uid = Some(format!("uid-of-{}", world.probes.len()));
                        run.metadata.creation_timestamp = Some(Time(at(world.now)));
                        world.probes.push(run);
                    }
                }
            }
            Happens::ProbeEnds => {
                let hosts = world.hosts.clone();
                let now = world.now;
                for run in world.probes.iter_mut().filter(|run| run.status.is_none()) {
                    let found = run.spec.hosts.iter().map(|name| {
                        let clean = is_really_clean(hosts[name].spec.claim_epoch);
                        format!("{{name: {name}, clean: {clean}}}")
                    });
                    let found: Vec<String> = found.collect();
                    run.status = Some(object(&format!("{{phase: Succeeded, hosts: [{}]}}", found.join(", "))));
                    run.status.as_mut().unwrap().finished_at = Some(Time(at(now)));
                }
            }
        }
    }

    proptest! {
        /// Whatever happens in whatever order: nobody is offered a machine that is not clean, or another's; one probe
        /// is under way at most; and in the end everyone who can be is available.
        #[test]
        fn nobody_is_offered_a_machine_that_is_not_clean(events in vec(happens(), 0..60)) {
            let mut world = World::new(vec![spare("a", ""), spare("b", ""), spare("c", "")]);
            for event in events {
                apply(&mut world, event);
                world.turn();
                let under_way = world.probes.iter().filter(|run| run.status.is_none()).count();
                assert!(under_way <= 1);
                for host in world.hosts.values() {
                    if host.status.as_ref().unwrap().phase == Some(HostPhase::Available) {
                        assert!(host.spec.claim_ref.is_none() && host.spec.quarantine.is_none());
                        assert!(is_really_clean(host.spec.claim_epoch), "{host:?}");
                    }
                }
            }
            for _ in 0..4 {
                for event in [Happens::Time(700), Happens::ProbeMade, Happens::ProbeEnds, Happens::Time(1)] {
                    apply(&mut world, event);
                    world.turn();
                }
            }
            for (name, host) in &world.hosts {
                let kept = host.spec.quarantine.as_ref().is_some_and(|quarantine| {
                    let asked = super::super::quarantine::asked_release(host).is_some();
                    quarantine.reason != crds::host::QuarantineReason::ForceRemoved && !asked
                });
                let free = host.spec.claim_ref.is_none() && is_really_clean(host.spec.claim_epoch) && !kept;
                assert_eq!(world.shown(name).0 == HostPhase::Available, free, "{:?}", host.status);
            }
        }
    }
}
