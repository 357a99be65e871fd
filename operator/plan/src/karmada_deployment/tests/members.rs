//! A plane and its members at once, from the first join to the end, and an operator that is cut off in between.

use crds::karmada_deployment::{KarmadaMemberPhase as Phase, UnjoinPolicy};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::members::tests::world::{Sight, World as Clusters};
use super::super::{Action, Component, Place, members_are_seen};
use super::world::{World, settled};

const EXPOSED: &str = "apiServer: {serviceType: NodePort, loadBalancerApiserverIp: 192.0.2.1}";

/// A plane on its host, and the clusters that are its members.
#[derive(Clone)]
struct Whole {
    plane: World,
    clusters: Clusters,
}

impl Whole {
    fn new(names: &[&str]) -> Self {
        Self { plane: settled(EXPOSED), clusters: Clusters::new(None, names) }
    }

    fn name(&mut self, name: &str, mode: &str) {
        self.clusters.name(name, mode);
        self.plane.object.spec.members = self.clusters.object.spec.members.clone();
    }

    fn forget(&mut self, name: &str) {
        self.plane.object.spec.members.retain(|member| member.name != name);
    }

    fn delete(&mut self) {
        self.plane.object.metadata.deletion_timestamp = Some(Time(self.plane.now));
        self.plane.object.metadata.generation = Some(2);
    }

    fn look(&mut self) {
        self.clusters.now = self.clusters.now.checked_add(SignedDuration::from_secs(20)).unwrap();
        self.plane.now = self.clusters.now;
        self.clusters.object = self.plane.object.clone();
        self.clusters.plane_is_up = self.plane.is_healthy(Place::Host, "Deployment", "k1-apiserver");
        self.plane.members = match members_are_seen(&self.plane.object) {
            true => self.clusters.look(&self.plane.material()),
            false => Sight::none(),
        };
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Member(action) => {
                self.clusters.act(action);
                self.clusters.check();
            }
            action => self.plane.play(std::slice::from_ref(action)),
        }
    }

    fn environment(&mut self) {
        self.plane.tick();
        if self.plane.is_healthy(Place::Host, "Deployment", "k1-controller-manager") {
            self.clusters.karmada();
        }
        self.clusters.check();
    }

    fn is_gone(&self) -> bool {
        self.plane.object.metadata.finalizers.is_none()
    }

    /// One look and what follows from it; how many actions there were.
    fn turn(&mut self) -> usize {
        self.look();
        let planned = self.plane.plan();
        planned.actions.iter().for_each(|action| self.act(action));
        self.plane.object.status = Some(planned.status);
        self.environment();
        planned.actions.len()
    }

    /// The same world in which the operator was cut off, once for each action: after it, and before the status.
    fn cut_off(&self) -> Vec<Self> {
        let mut whole = self.clone();
        whole.look();
        let mut cuts = Vec::new();
        for action in whole.plane.plan().actions {
            whole.act(&action);
            cuts.push(whole.clone());
        }
        cuts
    }

    /// Until nothing is done any more; a silence of a minute is waited for.
    fn rest(&mut self) {
        let mut quiet = 0;
        for _ in 0..200 {
            quiet = if self.turn() == 0 { quiet + 1 } else { 0 };
            if quiet > 6 || self.is_gone() {
                return;
            }
        }
        panic!("it has not come to rest: {:?}", self.plane.object.status);
    }

    fn phase(&self, name: &str) -> Option<Phase> {
        let members = &self.plane.object.status.as_ref().unwrap().members;
        members.iter().find(|member| member.name == name).map(|member| member.phase)
    }

    /// What there is, but for times, and names that a server gives.
    fn shape(&self) -> Vec<String> {
        let members = self.clusters.sites.iter().map(|(name, site)| {
            let (here, there) = (self.clusters.made_in(name), self.clusters.made_in_plane(name));
            format!("{name}: {:?}, {here} in it, {there} in the plane, runs {}", self.phase(name), site.workloads)
        });
        let host = format!("{} on the host, gone: {}", self.plane.host.len(), self.is_gone());
        members.chain([host]).collect()
    }
}

#[test]
fn members_join_a_plane_that_works_and_leave_it_before_it_goes() {
    let mut whole = Whole::new(&["a", "b"]);
    whole.name("a", "push");
    whole.name("b", "pull");
    whole.rest();
    assert_eq!((whole.phase("a"), whole.phase("b")), (Some(Phase::Joined), Some(Phase::Joined)));
    assert!(whole.plane.is_ready());
    let message = whole.plane.condition("Ready").2;
    assert_eq!(message, "the plane works and all members are reached");
    whole.delete();
    whole.rest();
    assert!(whole.is_gone());
    assert_eq!(whole.plane.host.keys().map(|key| key.0.as_str()).collect::<Vec<_>>(), ["Namespace"]);
    for name in ["a", "b"] {
        assert_eq!((whole.clusters.made_in(name), whole.clusters.sites[name].workloads), (0, 2), "{name}");
    }
}

#[test]
fn a_plane_that_is_repaired_holds_up_no_member_that_leaves() {
    let mut whole = Whole::new(&["a"]);
    whole.plane.object.spec.unjoin_policy = Some(UnjoinPolicy::Preserve);
    whole.name("a", "push");
    whole.rest();
    whole.plane.stuck.insert("k1-webhook".to_owned());
    whole.plane.host.retain(|key, _| key.0 != "Deployment" || key.2 != "k1-webhook");
    whole.forget("a");
    whole.rest();
    assert!(!whole.plane.is_ready());
    assert_eq!((whole.phase("a"), whole.clusters.made_in("a")), (None, 0));
    assert_eq!(whole.clusters.sites["a"].workloads, 2);
}

#[test]
fn a_member_that_is_dead_is_named_and_holds_up_the_end_of_its_plane_until_it_is_given_up() {
    let mut whole = Whole::new(&["a", "b"]);
    whole.name("a", "push");
    whole.name("b", "push");
    whole.rest();
    whole.clusters.sites.get_mut("b").unwrap().is_up = false;
    whole.rest();
    let (_, reason, message) = whole.plane.condition("Ready");
    assert_eq!(reason, "WaitingForMembers");
    assert!(message.starts_with("1 of 2 members are reached: b: "), "{message}");
    whole.delete();
    whole.rest();
    assert_eq!((whole.phase("a"), whole.phase("b")), (None, Some(Phase::Leaving)));
    assert!(whole.plane.is_healthy(Place::Host, "Deployment", "k1-apiserver"));
    let annotation = ("clusterwright.dev/force-remove".to_owned(), "member.b".to_owned());
    whole.plane.object.metadata.annotations = Some([annotation].into());
    whole.rest();
    assert!(whole.is_gone());
}

#[test]
fn members_leave_a_plane_that_is_dead() {
    let mut whole = Whole::new(&["a", "b"]);
    whole.name("a", "push");
    whole.name("b", "pull");
    whole.rest();
    whole.plane.stuck.insert("k1-apiserver".to_owned());
    whole.plane.host.retain(|key, _| key.2 != "k1-apiserver" || key.0 != "Deployment");
    whole.delete();
    whole.rest();
    assert!(whole.is_gone());
    for name in ["a", "b"] {
        assert_eq!((whole.clusters.made_in(name), whole.clusters.sites[name].workloads), (0, 2), "{name}");
    }
}

/// Plays on to rest; at each action another operator is cut off, and must come to the same.
fn cut_off_at_each(whole: &mut Whole) -> usize {
    let mut cuts = Vec::new();
    let mut quiet = 0;
    while quiet <= 6 && !whole.is_gone() {
        cuts.extend(whole.cut_off());
        quiet = if whole.turn() == 0 { quiet + 1 } else { 0 };
    }
    let count = cuts.len();
    for mut cut in cuts {
        cut.rest();
        assert_eq!(cut.shape(), whole.shape());
    }
    count
}

#[test]
fn an_operator_that_is_cut_off_at_any_action_finishes_what_it_began() {
    let mut whole = Whole::new(&["a", "b"]);
    whole.plane.object.spec.unjoin_policy = Some(UnjoinPolicy::Preserve);
    whole.name("a", "push");
    whole.name("b", "pull");
    let joining = cut_off_at_each(&mut whole);
    assert_eq!((whole.phase("a"), whole.phase("b")), (Some(Phase::Joined), Some(Phase::Joined)));
    whole.forget("a");
    let leaving = cut_off_at_each(&mut whole);
    assert_eq!((whole.phase("a"), whole.phase("b")), (None, Some(Phase::Joined)));
    whole.delete();
    let ending = cut_off_at_each(&mut whole);
    assert!(whole.is_gone());
    assert!(joining > 10 && leaving > 3 && ending > 10, "{joining} {leaving} {ending}");
}

/// How often a component was applied, and when it was restarted for members' tokens.
fn restarts(whole: &Whole, component: &str) -> (usize, Option<String>) {
    let name = format!("k1-{component}");
    let times = whole.plane.log.iter().filter(|done| **done == format!("apply Deployment {name}")).count();
    let live = whole.plane.find(Place::Host, "Deployment", &name).unwrap();
    let at = &live["spec"]["template"]["metadata"]["annotations"]["clusterwright.dev/restarted-at"];
    (times, at.as_str().map(str::to_owned))
}

#[test]
fn what_watches_members_is_restarted_once_for_many_new_tokens_seldom_and_not_for_a_join() {
    let mut whole = Whole::new(&["a", "b", "c"]);
    let renew = |whole: &mut Whole, names: &[&str]| {
        for name in names {
            let site = whole.clusters.sites.get_mut(*name).unwrap();
            for kind in ["Secret", "ServiceAccount"] {
                site.api.delete(kind, &format!("karmada-{name}"));
            }
        }
        whole.rest();
        assert!(names.iter().all(|name| whole.phase(name) == Some(Phase::Joined)) && whole.plane.is_ready());
    };
    whole.name("a", "push");
    whole.name("b", "push");
    whole.rest();
    whole.name("c", "push");
    whole.rest();
    let (joined, at) = restarts(&whole, "controller-manager");
    assert_eq!(at, None, "nobody is restarted for a join");

    renew(&mut whole, &["a", "b"]);
    let (times, first) = restarts(&whole, "controller-manager");
    assert!(times == joined + 1 && first.is_some(), "{times} {first:?}");
    let restarted_at = whole.plane.object.status.as_ref().unwrap().restarted_for_tokens_at.as_ref();
    assert_eq!(restarted_at.map(|at| at.0.to_string()), first);
    assert_eq!(restarts(&whole, "scheduler").1, None);

    // The next time waits for ten minutes to be over, and that is said.
    renew(&mut whole, &["c"]);
    assert_eq!(restarts(&whole, "controller-manager"), (times, first.clone()));
    let (status, reason, message) = whole.plane.condition("UpToDate");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaitingForRestart"), "{message}");
    assert!(message.contains("(c)"), "{message}");
    whole.forget("b");
    whole.plane.object.spec.unjoin_policy = Some(UnjoinPolicy::Preserve);
    whole.clusters.now = whole.clusters.now.checked_add(SignedDuration::from_secs(600)).unwrap();
    whole.rest();
    let (again, second) = restarts(&whole, "controller-manager");
    assert!(again == times + 1 && second > first, "{again} {second:?}");
    assert_eq!(whole.plane.condition("UpToDate").0, "True");

    // A later release reads them again.
    whole.plane.object.spec.version = serde_json::from_str("\"1.19.0\"").unwrap();
    let object = &whole.plane.object;
    assert_eq!(super::super::token_restart::restarted_at(object, Component::ControllerManager), None);
}
