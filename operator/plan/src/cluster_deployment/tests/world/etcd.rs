//! etcd of the small world: who is a member, which machines are dead, and what follows for the API.

use std::collections::BTreeSet;

use crds::ObjectExt;
use crds::PlaybookRun;
use crds::cluster::ClusterStatus;
use crds::conditions::{self, Statement};
use crds::names::condition;
use crds::step::{Intent, Role, Step as RunStep};

use super::World;
use crate::attempts;

impl World {
    /// The machine is dead: it answers to nobody, and its node falls silent.
    pub fn kill(&mut self, host: &str) {
        self.silent.insert(host.into());
        self.silent_nodes.insert(host.into());
    }

    /// It is back as it was.
    pub fn revive(&mut self, host: &str) {
        self.silent.remove(host);
        self.silent_nodes.remove(host);
    }

    pub(super) fn is_dead(&self, host: &str) -> bool {
        self.silent.contains(host) && self.silent_nodes.contains(host)
    }

    /// Whether a majority of etcd's members is alive.
    pub fn has_quorum(&self) -> bool {
        let alive = self.voters.iter().filter(|host| !self.is_dead(host)).count();
        self.voters.is_empty() || alive > self.voters.len() / 2
    }

    /// Whether an API server of the newest cluster answers.
    pub fn api_answers(&self) -> bool {
        self.serves && self.has_quorum() && !self.api_lost
    }

    /// Which cluster it is that answers, or did.
    pub fn api_uid(&self) -> String {
        format!("town-{}", self.inits)
    }

    /// What the Cluster object says of the API: it knows again which cluster it has seen.
    pub(super) fn look_at_api(&mut self) {
        let (answers, uid, now) = (self.api_answers(), self.api_uid(), self.time());
        let Some(cluster) = self.cluster.as_mut().filter(|_| self.kubeconfig) else {
            return;
        };
        let status = cluster.status.get_or_insert_with(ClusterStatus::default);
        let is_another = status.cluster_uid.as_ref().is_some_and(|known| *known != uid);
        let (reached, reason) = match answers {
            false => (Some(false), "ConnectionRefused"),
            true if is_another => (None, "ClusterIdentityChanged"),
            true => (Some(true), "ApiAnswers"),
        };
        if reached == Some(true) {
            status.cluster_uid = Some(uid);
        }
        status.unreachable_since = match answers {
            true => None,
            false => status.unreachable_since.clone().or(Some(now.clone())),
        };
        let reachable = Statement::new(condition::REACHABLE, reached, reason, reason);
        status.conditions = conditions::state(&status.conditions, &[reachable], None, &now);
    }

    /// The Host of the machine that begins a cluster, as its status says.
    pub(super) fn first_host(&self) -> Option<String> {
        let first = self.deployment.status.as_ref()?.first_control_plane.as_ref()?;
        let machines = &mut self.machines.iter();
        let first = machines.find(|machine| machine.metadata.name.as_ref() == Some(first))?;
        Some(first.spec.host_ref.as_ref()?.name.clone())
    }

    fn etcd_hosts(&self, run: &PlaybookRun) -> BTreeSet<String> {
        let dedicated = self.deployment.spec.etcd.replicas.is_some();
        let role = if dedicated { Role::Etcd } else { Role::ControlPlane };
        let hosts = run.spec.hosts.iter();
        hosts.filter(|host| self.role_of(host) == Some(role)).cloned().collect()
    }

    /// Whether a member that stays refuses to take out the one that is to go: it sees who is alive.
    pub(super) fn refuses(&self, run: &PlaybookRun) -> bool {
        if !run.spec.steps.contains(&RunStep::RemoveEtcdMember) {
            return false;
        }
        let leaves = &run.spec.vars["etcd_member_remove"]["host"];
        let others = || self.voters.iter().filter(|host| leaves != host.as_str());
        let alive = others().filter(|host| !self.is_dead(host)).count();
        !self.has_quorum() || alive <= others().count() / 2
    }

    /// What a run that ended, with so many steps done, made of etcd.
    pub(super) fn etcd_after(&mut self, run: &PlaybookRun, done: usize) {
        let did = |step| {
            let place = run.spec.steps.iter().position(|there| *there == step);
            place.is_some_and(|place| place < done)
        };
        let members = self.etcd_hosts(run);
        if did(RunStep::Etcd) {
            if run.spec.intent == Intent::Install {
                // Without any of those that were there it is another etcd, which no API server knows.
                self.serves &= members.iter().any(|host| self.voters.contains(host));
                self.voters.clear();
            }
            self.voters.extend(members.iter().cloned());
        }
        if did(RunStep::ControlPlane) && run.spec.intent == Intent::Install {
            self.begin_cluster(run);
        }
        if did(RunStep::RemoveEtcdMember) {
            assert!(self.has_quorum(), "a member is taken out without a majority");
            let leaves = &run.spec.vars["etcd_member_remove"]["host"];
            self.voters.retain(|host| leaves != host.as_str());
            assert!(!self.voters.is_empty(), "the last member was taken out");
            assert!(self.has_quorum(), "no majority is left after {leaves} was taken out");
        }
        if did(RunStep::RecoverEtcd) {
            assert!(!self.has_quorum(), "there was a majority, and it was given up");
            self.voters = members;
        }
        if run.spec.steps.contains(&RunStep::Reset) {
            for host in run.spec.hosts.iter().filter(|host| !self.dirty.contains(*host)) {
                let goes_on = !self.deployment.is_deleting();
                let status = self.deployment.status.as_ref();
                let stands = status.is_some_and(|status| status.installed_at.is_some());
                assert!(!goes_on || !stands || !self.voters.contains(host), "{host} is cleaned and still a member");
            }
        }
    }

    /// The first control plane begins a cluster, once: what was begun there is not begun again.
    fn begin_cluster(&mut self, run: &PlaybookRun) {
        let first = self.first_of.get(run.metadata.name.as_deref().unwrap()).cloned();
        let first = first.unwrap_or_else(|| run.spec.hosts[0].clone());
        let other = run.spec.hosts.iter().find(|host| self.begun_on.contains(*host));
        assert!(other.is_none_or(|other| *other == first), "a cluster is begun on {first}, and was on {other:?}");
        let is_new = self.begun_on.insert(first);
        self.inits += usize::from(is_new);
        if is_new || !self.serves {
            (self.serves, self.api_lost) = (true, false);
            self.nodes.clear();
        }
    }

    /// What must be so when a change of the control plane or etcd is asked for.
    pub(super) fn check_change(&self, run: &PlaybookRun) {
        let changes = |run: &PlaybookRun| {
            let of_council = |host: &String| self.role_of(host).is_some_and(|role| role != Role::Worker);
            let ours = !attempts::targets(run).is_empty();
            let kind = [Intent::Join, Intent::Repair, Intent::Install].contains(&run.spec.intent)
                || run.spec.steps.contains(&RunStep::RemoveEtcdMember);
            ours && kind && run.spec.hosts.iter().any(of_council)
        };
        if !changes(run) {
            return;
        }
        let mut others = self.runs.iter().filter(|other| !attempts::is_over(other));
        let other = others.find(|other| changes(other) && other.metadata.name != run.metadata.name);
        assert_eq!(other.map(|other| &other.metadata.name), None, "two changes at a time");
        let fresh = run.spec.intent == Intent::Join;
        for host in self.voters.iter().filter(|host| fresh && !run.spec.hosts.contains(host)) {
            let machine = self.machines.iter().find(|machine| {
                let named = machine.spec.host_ref.as_ref();
                named.is_some_and(|named| named.name == **host)
            });
            let conditions = machine.and_then(|machine| Some(&machine.status.as_ref()?.conditions));
            let well =
                conditions.is_some_and(|conditions| crds::conditions::is_true(conditions, condition::NODE_READY));
            let is_known = self.role_of(host) == Some(Role::ControlPlane);
            assert!(well || !is_known, "a new one comes in before the bad {host} is out");
        }
    }
}
