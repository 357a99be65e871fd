//! What is done about the members of etcd now: one of them is added or removed at a time, and only while all others
//! work. What an act was for is seen at the next look, in etcd itself.

use crds::{KarmadaDeployment, Reason};
use jiff::Timestamp;
use serde_json::Value;

use super::super::action::Action;
use super::super::names::is_made_for;
use super::super::observed::Observed;
use super::super::place::{Place, Stage};
use super::super::pod::first_trouble;
use super::super::progress::StageReport;
use super::super::removal::delete;
use super::seen::{EtcdMember, EtcdWorkload, Membership};
use super::size::{EtcdSize, is_gone, size, wanted};
use super::volume::EtcdVolume;
use super::{EtcdAct, MOST_MEMBERS, claim_name, is_held, peer_url, pod_name};
use crate::addon::Problem;
use crate::message::quote;

/// What is done about the members, and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Scaling {
    pub actions: Vec<Action>,
    /// How far it is; none: nothing is done.
    pub problem: Option<Problem>,
    /// What is to be said of a member that does not work.
    pub(super) note: Option<String>,
    /// Whether a Pod that is not ready is the one that comes or goes.
    pub(super) is_expected: bool,
}

impl Scaling {
    /// Adds it to the report of etcd's stage.
    pub fn add_to(&self, reports: &mut [StageReport]) {
        let Some(report) = reports.iter_mut().find(|report| report.stage == Stage::Etcd) else { return };
        report.writes.extend(self.actions.iter().cloned());
        report.problem = report.problem.take().or_else(|| self.problem.clone());
        match (&mut report.unhealthy, &self.note) {
            (unhealthy, _) if self.is_expected => *unhealthy = None,
            (Some(unhealthy), Some(note)) => unhealthy.message = format!("{}; {note}", unhealthy.message),
            (None, _) | (_, None) => {}
        }
    }
}

/// Decides; none: there are as many members as are wanted, or it is not time.
pub(in super::super) fn scaling(observed: &Observed<'_>) -> Option<Scaling> {
    let (object, facts) = (observed.object, observed.facts);
    let workload = facts.etcd.workload.as_ref().filter(|_| !is_held(object, facts))?;
    let scene = Scene {
        now: observed.now,
        object,
        workload,
        settled: workload.members?,
        wanted: wanted(object),
        size: size(object, facts),
        pods: observed.host.seen().map(|seen| seen.pods.as_slice())?,
        claims: &|ordinal| facts.etcd.claims.get(&ordinal),
    };
    match facts.etcd.members.as_ref()? {
        Ok(membership) if membership.is_stale => {
            let message = "its members have no majority, and are as one of them knows them".to_owned();
            scene.is_to_change().then(|| scene.blocked(message))
        }
        Ok(membership) => scene.advised(membership),
        Err(why) if scene.is_to_change() => {
            Some(scene.blocked(format!("its members cannot be read: {}", quote(why.clone()))))
        }
        // Pods that do not work are said to be so.
        Err(_) => None,
    }
}

/// What is decided by.
pub(super) struct Scene<'a> {
    pub now: Timestamp,
    pub object: &'a KarmadaDeployment,
    pub workload: &'a EtcdWorkload,
    /// How many members there are.
    pub settled: i32,
    pub wanted: i32,
    pub size: EtcdSize,
    pub pods: &'a [Value],
    pub claims: &'a dyn Fn(i32) -> Option<&'a Value>,
}

impl Scene<'_> {
    /// Whether members are to be added, removed or replaced.
    fn is_to_change(&self) -> bool {
        self.settled != self.wanted || self.workload.volumes.values().any(EtcdVolume::is_lost)
    }

    /// What is done, with what a person may do about a member that does not work.
    fn advised(&self, membership: &Membership) -> Option<Scaling> {
        let advice = self.advice(membership);
        match self.go_on(membership) {
            Some(done) => Some(Scaling { note: done.note.clone().or(advice), ..done }),
            None => advice.map(|advice| Scaling {
                actions: Vec::new(),
                problem: None,
                note: Some(advice),
                is_expected: false,
            }),
        }
    }

    fn go_on(&self, membership: &Membership) -> Option<Scaling> {
        if let Some(foreign) = membership.members.iter().find(|member| !self.is_ours(member)) {
            let (id, urls) = (&foreign.id, foreign.peer_urls.join(", "));
            let why = format!("member {id} at {} is none of the plane's: remove it from etcd", quote(urls));
            return self.is_to_change().then(|| self.blocked(why));
        }
        if let Some(removing) = self.remove_lost(membership) {
            return Some(removing);
        }
        let learner = (0..MOST_MEMBERS).find_map(|at| Some((at, membership.at(self.object, at)?)).filter(is_learner));
        if let Some((ordinal, learner)) = learner {
            return Some(self.learner(ordinal, learner));
        }
        if is_gone(self.object, membership, self.settled) {
            return Some(self.clean_up());
        }
        if let Some(adding) = self.add_again(membership) {
            return Some(adding);
        }
        if let Some(member) = membership.at(self.object, self.settled) {
            return Some(self.arrived(member));
        }
        match self.wanted.cmp(&self.settled) {
            std::cmp::Ordering::Greater => Some(self.grow()),
            std::cmp::Ordering::Less => Some(self.shrink(membership)),
            std::cmp::Ordering::Equal => None,
        }
    }

    fn is_ours(&self, member: &EtcdMember) -> bool {
        (0..MOST_MEMBERS).any(|ordinal| member.peer_urls.contains(&peer_url(self.object, ordinal)))
    }

    /// One that has no vote yet gets it, or is not wanted any more.
    fn learner(&self, ordinal: i32, learner: &EtcdMember) -> Scaling {
        let name = pod_name(self.object, ordinal);
        let id = learner.id.clone();
        let doing = |message: String, acts: Vec<EtcdAct>| match ordinal < self.settled {
            true => self.replacing(message, acts),
            false => self.doing(ordinal, message, acts),
        };
        // One that is replaced is so, whatever is wanted: only the last one goes.
        if ordinal >= self.wanted.max(self.settled - 1) {
            return doing(format!("removing member {name}, which has no vote yet"), vec![EtcdAct::Remove { id }]);
        }
        if learner.name.is_empty() {
            let pod = self.pod(ordinal).and_then(|pod| first_trouble([pod].into_iter()));
            let trouble = pod.map(|why| format!(": {}", quote(why))).unwrap_or_default();
            return doing(format!("waiting for member {name} to start{trouble}"), Vec::new());
        }
        doing(format!("member {name} gets a vote once it has caught up"), vec![EtcdAct::Promote { id }])
    }

    /// One that has a vote counts once its Pod is ready; without a Pod it is not wanted any more.
    fn arrived(&self, member: &EtcdMember) -> Scaling {
        let (ordinal, name) = (self.settled, pod_name(self.object, self.settled));
        if self.size.replicas > ordinal {
            return self.doing(ordinal, format!("waiting for Pod {name} to be ready"), Vec::new());
        }
        self.unready(ordinal).unwrap_or_else(|| {
            let act = EtcdAct::Remove { id: member.id.clone() };
            self.doing(ordinal, format!("removing member {name}, which has no Pod"), vec![act])
        })
    }

    /// The last member is out of etcd: its Pod goes, then its volume, since it must never start with that again.
    fn clean_up(&self) -> Scaling {
        let ordinal = self.settled - 1;
        let name = pod_name(self.object, ordinal);
        if self.workload.replicas > ordinal || self.pod(ordinal).is_some() {
            return self.doing(ordinal, format!("member {name} is removed: waiting for its Pod to end"), Vec::new());
        }
        self.drop_claim(ordinal).unwrap_or_else(|| self.doing(ordinal, format!("member {name} is removed"), Vec::new()))
    }

    fn grow(&self) -> Scaling {
        let (ordinal, title) = (self.settled, pod_name(self.object, self.settled));
        if let Some(waits) = self.unready(self.settled) {
            return waits;
        }
        self.drop_claim(ordinal).unwrap_or_else(|| {
            let peer_url = peer_url(self.object, ordinal);
            self.doing(ordinal, format!("adding member {title}"), vec![EtcdAct::AddLearner { peer_url }])
        })
    }

    fn shrink(&self, membership: &Membership) -> Scaling {
        let ordinal = self.settled - 1;
        let name = pod_name(self.object, ordinal);
        // One that does not work may go; all others must.
        if let Some(waits) = self.unready(ordinal) {
            return waits;
        }
        let Some(member) = membership.at(self.object, ordinal) else { return self.clean_up() };
        let successor = membership.at(self.object, 0).filter(|_| membership.leader.as_ref() == Some(&member.id));
        match successor {
            Some(successor) => {
                let act = EtcdAct::MoveLeader { pod: name.clone(), to: successor.id.clone() };
                self.doing(
                    ordinal,
                    format!("member {name} leads: another one is to lead before it is removed"),
                    vec![act],
                )
            }
            None => {
                let act = EtcdAct::Remove { id: member.id.clone() };
                self.doing(ordinal, format!("removing member {name}"), vec![act])
            }
        }
    }

    /// What waits for the first so many members, or for what is written of them.
    fn unready(&self, members: i32) -> Option<Scaling> {
        if let Some(waits) = self.unapplied(members) {
            return Some(waits);
        }
        let off = (0..members).find(|ordinal| !self.is_ready(*ordinal))?;
        let name = pod_name(self.object, off);
        Some(self.doing(members, format!("waiting for Pod {name} to be ready"), Vec::new()))
    }

    /// What waits for what is written of how many members there are.
    pub(super) fn unapplied(&self, ordinal: i32) -> Option<Scaling> {
        let is_applied = self.workload.replicas == self.size.replicas && self.size.members == Some(self.settled);
        (!is_applied).then(|| self.doing(ordinal, "its StatefulSet is applied".to_owned(), Vec::new()))
    }

    /// A volume from before is deleted; none: there is none.
    fn drop_claim(&self, ordinal: i32) -> Option<Scaling> {
        let claim = (self.claims)(ordinal)?;
        let name = claim_name(self.object, &self.workload.claims, ordinal);
        if !is_made_for(claim, self.object) {
            let namespace = &self.object.spec.host_namespace;
            return Some(self.blocked(format!(
                "PersistentVolumeClaim {namespace}/{name} is there and was not made for this plane: delete it"
            )));
        }
        let delete = delete(Place::Host, claim).into_iter().collect();
        let message = format!("deleting PersistentVolumeClaim {name}, whose data is that of a former member");
        Some(Scaling { actions: delete, ..self.doing(ordinal, message, Vec::new()) })
    }

    pub(super) fn pod(&self, ordinal: i32) -> Option<&Value> {
        let name = pod_name(self.object, ordinal);
        self.pods.iter().find(|pod| pod["metadata"]["name"] == name.as_str() && is_made_for(pod, self.object))
    }

    fn title(&self) -> String {
        let Self { settled, wanted, .. } = self;
        let how = match wanted.cmp(settled) {
            std::cmp::Ordering::Greater => "grows",
            std::cmp::Ordering::Less => "shrinks",
            std::cmp::Ordering::Equal => return "etcd's members".to_owned(),
        };
        format!("etcd {how} from {settled} to {wanted} members")
    }

    pub(super) fn is_ready(&self, ordinal: i32) -> bool {
        self.pod(ordinal).is_some_and(is_ready)
    }

    /// What is done about the member with this ordinal, which may or may not be ready; all before it stay.
    pub(super) fn doing(&self, ordinal: i32, message: String, acts: Vec<EtcdAct>) -> Scaling {
        let problem = Problem { reason: Reason::ScalingEtcd, message: format!("{}: {message}", self.title()) };
        let is_expected = (0..ordinal).all(|other| self.is_ready(other));
        let actions = acts.into_iter().map(Action::Etcd).collect();
        Scaling { actions, problem: Some(problem), note: None, is_expected }
    }

    pub(super) fn blocked(&self, message: String) -> Scaling {
        let problem = Problem { reason: Reason::EtcdScalingBlocked, message: format!("{}: {message}", self.title()) };
        Scaling { actions: Vec::new(), problem: Some(problem), note: None, is_expected: false }
    }
}

fn is_learner(found: &(i32, &EtcdMember)) -> bool {
    found.1.is_learner
}

/// Whether a Pod is ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
