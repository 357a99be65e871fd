//! An etcd in Pods as its StatefulSet and its own programs make it: who is a member, which Pods run, and whose data is
//! on each volume. What etcd would refuse, or would lose a majority by, is a panic.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::names::label;
use crds::{KarmadaDeployment, ObjectExt};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::super::etcd::{EtcdAct, EtcdMember, Membership, claim_name, peer_url, pod_name};
use super::Key;

#[derive(Clone, Default, PartialEq)]
pub struct Etcd {
    pub membership: Membership,
    /// IDs of the members whose data is on volumes, by ordinal.
    data: BTreeMap<i32, String>,
    /// Whether each Pod that there is is ready.
    pods: BTreeMap<i32, bool>,
    /// Since when it is, or is not.
    since: BTreeMap<i32, Timestamp>,
    /// The claims that the StatefulSet has made, by name.
    pub claims: BTreeMap<String, Value>,
    /// Pods that do not work.
    pub broken: BTreeSet<i32>,
    /// How often a learner is refused a vote.
    pub behind: usize,
    /// Why its members cannot be read.
    pub unreadable: Option<String>,
    /// What the names of the claims begin with that its StatefulSet makes.
    claimed: String,
    made: usize,
}

impl Etcd {
    pub fn read(&self) -> Result<Membership, String> {
        let (all, working) = self.voters();
        let is_stale = working <= all / 2;
        self.unreadable.clone().map_or_else(|| Ok(Membership { is_stale, ..self.membership.clone() }), Err)
    }

    /// How many have a vote, and how many of them work.
    pub fn voters(&self) -> (usize, usize) {
        let voters = self.membership.members.iter().filter(|member| !member.is_learner);
        let runs = |at: &i32| self.pods.contains_key(at) && !self.broken.contains(at);
        let works = |member: &&EtcdMember| self.data.iter().any(|(at, id)| *id == member.id && runs(at));
        (voters.clone().count(), voters.filter(works).count())
    }

    fn assert_majority(&self, doing: &str) {
        let (all, working) = self.voters();
        assert!(working > all / 2, "{doing}: {working} of {all} members work");
    }

    /// The volume of a member is gone, and its claim with it: the next one is empty. What was on it.
    pub fn lose(&mut self, object: &KarmadaDeployment, at: i32) -> String {
        self.claims.remove(&claim_name(object, &self.claimed, at)).expect("a volume");
        self.data.remove(&at).expect("data on it")
    }

    /// What was lost is on the volume that is there by now.
    pub fn bring_back(&mut self, at: i32, data: String) {
        assert_eq!(self.data.insert(at, data), None);
    }

    pub fn act(&mut self, act: &EtcdAct) -> String {
        match act {
            EtcdAct::AddLearner { peer_url } => {
                let (all, working) = self.voters();
                assert_eq!(working, all, "etcd adds none while a member is away");
                let members = &mut self.membership.members;
                assert!(members.iter().all(|one| !one.is_learner), "a second one without a vote");
                assert!(members.iter().all(|one| !one.peer_urls.contains(peer_url)), "it is one already");
                self.made += 1;
                let (id, peer_urls) = (format!("id-{}", self.made), vec![peer_url.clone()]);
                members.push(EtcdMember { id, peer_urls, is_learner: true, ..EtcdMember::default() });
                format!("add {peer_url}")
            }
            EtcdAct::Promote { .. } if self.behind > 0 => {
                self.behind -= 1;
                "promote: it has not caught up".to_owned()
            }
            EtcdAct::Promote { id } => {
                self.assert_majority("a member gets a vote");
                assert!(self.data.values().any(|data| data == id), "it does not run");
                let member = self.membership.members.iter_mut().find(|member| member.id == *id).expect("a member");
                member.is_learner = false;
                format!("promote {}", member.name)
            }
            EtcdAct::MoveLeader { pod, to } => {
                let leader = self.membership.leader.clone();
                let named = |id: &str| self.membership.members.iter().find(|member| member.id == id);
                assert_eq!(
                    named(leader.as_deref().unwrap()).map(|member| &member.name),
                    Some(pod),
                    "who leads is asked"
                );
                let to = named(to).expect("a member");
                let said = format!("{} leads", to.name);
                self.membership.leader = Some(to.id.clone());
                said
            }
            EtcdAct::Remove { id } => {
                assert_ne!(self.membership.leader.as_ref(), Some(id), "the leader is removed");
                let at = self.membership.members.iter().position(|member| member.id == *id).expect("a member");
                let gone = self.membership.members.remove(at);
                self.assert_majority("a member is removed");
                format!("remove {}", gone.name)
            }
        }
    }

    /// Its volumes and Pods follow from the StatefulSet, and its members from their initial cluster.
    pub fn tick(&mut self, object: &KarmadaDeployment, now: Timestamp, host: &mut BTreeMap<Key, Value>) {
        let namespace = object.spec.host_namespace.clone();
        let key = |kind: &str, name: &str| (kind.to_owned(), namespace.clone(), name.to_owned());
        let workload = key("StatefulSet", &format!("{}-etcd", object.name()));
        let Some(live) = host.get(&workload) else { return self.pods.clear() };
        let replicas = i32::try_from(live["spec"]["replicas"].as_i64().unwrap()).unwrap();
        let secret = host[&key("Secret", &format!("{}-etcd", object.name()))]["data"].clone();
        let told = |name: &str| String::from_utf8(STANDARD.decode(secret[name].as_str().unwrap()).unwrap()).unwrap();
        let (cluster, state) = (told("initial-cluster"), told("initial-cluster-state"));
        let claimed = live["spec"]["volumeClaimTemplates"][0]["metadata"]["name"].as_str().unwrap().to_owned();
        if claimed != self.claimed {
            // On other volumes it is another etcd.
            (self.membership, self.data) = Default::default();
            self.claimed = claimed.clone();
        }
        let is_there = |claims: &BTreeMap<String, Value>, at: i32| {
            let name = claim_name(object, &claimed, at);
            claims.contains_key(&name) || host.contains_key(&key("PersistentVolumeClaim", &name))
        };
        self.data.retain(|at, _| is_there(&self.claims, *at));
        self.pods.retain(|at, _| *at < replicas);
        if state == "new" && self.membership.members.is_empty() {
            self.begin(&cluster);
        }
        for at in 0..replicas {
            if !is_there(&self.claims, at) {
                self.make_claim(object, at);
            }
            if !self.data.contains_key(&at) {
                self.start(object, at, &cluster);
            }
            let member = self.membership.members.iter().find(|member| self.data.get(&at) == Some(&member.id));
            let works = member.is_some_and(|member| !member.is_learner) && !self.broken.contains(&at);
            if self.pods.insert(at, works) != Some(works) {
                self.since.insert(at, now);
            }
        }
        self.elect();
        let ready = self.pods.values().filter(|ready| **ready).count();
        if let Some(live) = host.get_mut(&workload) {
            let generation = live["metadata"]["generation"].as_i64().unwrap_or(1);
            live["metadata"]["generation"] = json!(generation);
            live["status"] = json!({
                "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
                "availableReplicas": ready, "readyReplicas": ready,
            });
        }
    }

    /// Where the leader does not work, another member leads.
    fn elect(&mut self) {
        let works = |member: &&EtcdMember| {
            let is_it = |(at, id): (&i32, &String)| *id == member.id && self.pods.get(at) == Some(&true);
            !member.is_learner && self.data.iter().any(is_it)
        };
        let members = &self.membership.members;
        let leads = members.iter().filter(works).any(|member| Some(&member.id) == self.membership.leader.as_ref());
        if !leads && let Some(next) = members.iter().find(works).map(|member| member.id.clone()) {
            self.membership.leader = Some(next);
        }
    }

    fn begin(&mut self, cluster: &str) {
        for one in cluster.split(',') {
            self.made += 1;
            let (_, url) = one.split_once('=').unwrap();
            let (id, peer_urls) = (format!("id-{}", self.made), vec![url.to_owned()]);
            self.membership.members.push(EtcdMember { id, peer_urls, ..EtcdMember::default() });
        }
        self.membership.leader = self.membership.members.first().map(|member| member.id.clone());
    }

    /// One without data starts if its initial cluster is that of all members, also as one that has run before.
    fn start(&mut self, object: &KarmadaDeployment, at: i32, cluster: &str) {
        let told: BTreeSet<&str> = cluster.split(',').map(|one| one.split_once('=').unwrap().1).collect();
        let known: BTreeSet<&str> =
            self.membership.members.iter().flat_map(|member| &member.peer_urls).map(String::as_str).collect();
        let (knows_all, url) = (told == known, peer_url(object, at));
        let members = &mut self.membership.members;
        let new = members.iter_mut().find(|member| member.peer_urls.contains(&url));
        if let Some(new) = new.filter(|_| knows_all) {
            assert!(new.name.is_empty(), "{url} begins anew as what it was, and has forgotten what it has promised");
            new.name = pod_name(object, at);
            self.data.insert(at, new.id.clone());
        }
    }

    fn make_claim(&mut self, object: &KarmadaDeployment, at: i32) {
        self.made += 1;
        let name = claim_name(object, &self.claimed, at);
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name, "namespace": object.spec.host_namespace, "uid": format!("claim-{}", self.made),
                "labels": { (label::KARMADA_UID): object.uid() },
            },
        });
        self.claims.insert(name, claim);
    }

    /// The Pods, as the host has them.
    pub fn pods(&self, object: &KarmadaDeployment) -> Vec<Value> {
        let pod = |(at, ready): (&i32, &bool)| {
            let status = if *ready { "True" } else { "False" };
            json!({
                "metadata": {
                    "name": pod_name(object, *at),
                    "labels": { "app.kubernetes.io/name": "etcd", (label::KARMADA_UID): object.uid() },
                },
                "status": { "conditions": [{
                    "type": "Ready", "status": status, "lastTransitionTime": self.since[at].to_string(),
                }] },
            })
        };
        self.pods.iter().map(pod).collect()
    }
}
