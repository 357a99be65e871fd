//! What must be so at every turn, and in the end.

use std::collections::BTreeSet;

use crds::ObjectExt;
use crds::cluster_deployment::{LockMode, Operation};
use crds::names::condition;
use crds::step::{Intent, Role, Step};
use crds::{Conditions, Host, Machine, PlaybookRun, Reason, conditions};
use plan::attempts;
use plan::cluster_deployment::fencing::is_fence;

use super::namespace::{Namespace, TICK, of_cluster};

impl Namespace {
    /// What must be so at every turn.
    pub fn check(&self) {
        for machine in &self.machines {
            let uid = machine.metadata.uid.as_ref();
            let held = self.hosts.iter().filter(|host| host.spec.claim_ref.as_ref().map(|claim| &claim.uid) == uid);
            assert!(held.count() <= 1, "{:?} holds two Hosts", machine.metadata.name);
        }
        let mut named = BTreeSet::new();
        for machine in &self.machines {
            if let Some(host) = &machine.spec.host_ref {
                assert!(named.insert(&host.name), "two Machines on {}", host.name);
            }
        }
        for deployment in &self.deployments {
            let operations = deployment.status.as_ref().map(|status| status.operations.as_slice());
            let operations = operations.unwrap_or_default();
            for (index, one) in operations.iter().enumerate() {
                for other in &operations[index + 1..] {
                    // A machine that is no part of the cluster is worked on beside every other run.
                    let is_separate = |held: &Operation| held.mode == LockMode::Separate;
                    let apart = is_separate(one) || is_separate(other);
                    assert!(
                        apart || one.mode == LockMode::Shared && other.mode == LockMode::Shared,
                        "{} beside {}",
                        one.run,
                        other.run
                    );
                    assert!(one.hosts.iter().all(|host| !other.hosts.contains(host)), "two runs on one host");
                }
            }
            self.check_one_change(deployment.name());
        }
        self.check_reasons();
    }

    /// Every condition has a reason of the table, which has it on conditions of that type.
    fn check_reasons(&self) {
        let of_clusters = self.deployments.iter().flat_map(Conditions::conditions);
        let of_machines = self.machines.iter().flat_map(Conditions::conditions);
        let of_sets = self.sets.iter().flat_map(Conditions::conditions);
        let of_hosts = self.hosts.iter().flat_map(Conditions::conditions);
        for stated in of_clusters.chain(of_machines).chain(of_sets).chain(of_hosts) {
            let (type_, reason) = (&stated.type_, &stated.reason);
            let known = Reason::from_name(reason).unwrap_or_else(|| panic!("{type_}: {reason} is in no table"));
            assert!(
                known.may_stand_on(type_),
                "crds/src/reason/table.rs: {reason} stands on {type_}: {}",
                stated.message
            );
        }
    }

    /// One control-plane or etcd machine comes, or goes, at a time.
    fn check_one_change(&self, cluster: &str) {
        let machines = of_cluster(&self.machines, cluster);
        let membership = |host: &String| {
            machines.iter().any(|machine| {
                machine.spec.role != Role::Worker
                    && machine.spec.host_ref.as_ref().is_some_and(|named| named.name == *host)
            })
        };
        let installed =
            self.deployment_of(cluster).and_then(|deployment| deployment.status.as_ref()?.installed_at.clone());
        if installed.is_none() {
            return;
        }
        let changes = |run: &&PlaybookRun| {
            [Intent::Join, Intent::Remove, Intent::Repair].contains(&run.spec.intent)
                && run.spec.cluster_name.as_deref() == Some(cluster)
                && !attempts::is_over(run)
                && self.token_of(run) > 0
                && run.spec.hosts.iter().any(membership)
        };
        let under_way: Vec<&PlaybookRun> = self.runs.iter().filter(changes).collect();
        let names: Vec<_> = under_way.iter().map(|run| &run.metadata.name).collect();
        assert!(under_way.len() <= 1, "changes of the control plane side by side: {names:?}");
        let many = under_way.iter().find(|run| run.spec.hosts.len() > 1);
        let telling = |run: &PlaybookRun| run.spec.steps.contains(&Step::EtcdEndpoints);
        assert!(many.is_none_or(|run| telling(run)), "one run changes several control planes: {names:?}");
    }

    /// No two runs work on one host.
    pub fn check_begin(&self, run: &PlaybookRun) {
        for other in &self.runs {
            let works = other.status.as_ref().is_some_and(|status| status.token > 0) && !attempts::is_over(other);
            let both = run.spec.hosts.iter().find(|host| other.spec.hosts.contains(host));
            let same = run.metadata.uid == other.metadata.uid;
            assert!(
                same || !works || both.is_none(),
                "{:?} and {:?} on {both:?}",
                run.metadata.name,
                other.metadata.name
            );
        }
        for host in &run.spec.hosts {
            // Only a machine that its cluster gave up, and that nobody has claimed since, is fenced.
            let expected = match is_fence(run) {
                true => self.is_given_up(host),
                false => self.role_of(host).is_some(),
            };
            assert!(expected, "{:?} on {host}, which is not for it", run.metadata.name);
        }
    }

    fn is_given_up(&self, host: &str) -> bool {
        let host = self.hosts.iter().find(|found| found.metadata.name.as_deref() == Some(host));
        host.is_some_and(|host| {
            let quarantine = host.spec.quarantine.as_ref();
            host.spec.claim_ref.is_none() && quarantine.is_some_and(|quarantine| quarantine.fence.is_some())
        })
    }

    /// A repair begins only where a machine is sick, and few are.
    pub fn check_new_run(&self, cluster: &str, run: &PlaybookRun) {
        if run.spec.intent == Intent::Repair && !run.spec.steps.contains(&Step::RecoverEtcd) {
            self.check_budget(cluster, &format!("{:?}", run.metadata.name));
        }
    }

    /// A machine is replaced only where few are sick, and never while the cluster's API is out of reach.
    pub fn check_replacement(&self, cluster: &str, machine: &Machine) {
        let goes_on = self.deployment_of(cluster).is_some_and(|deployment| !deployment.is_deleting());
        let is_sick = is_sick(machine);
        if goes_on && is_sick && !machine.is_deleting() && self.is_installed(cluster) {
            self.check_budget(cluster, &format!("the replacement of {:?}", machine.metadata.name));
        }
    }

    fn is_installed(&self, cluster: &str) -> bool {
        let deployment = self.deployment_of(cluster);
        deployment.is_some_and(|found| found.status.as_ref().is_some_and(|status| status.installed_at.is_some()))
    }

    /// Known as sick, by what the Machines themselves say, are no more than 40 % of those that stay.
    fn check_budget(&self, cluster: &str, what: &str) {
        let machines = of_cluster(&self.machines, cluster);
        let stay = |machine: &&&Machine| {
            !machine.is_deleting() && machine.status.as_ref().is_some_and(|status| status.provisioned_at.is_some())
        };
        let stay: Vec<&&Machine> = machines.iter().filter(stay).collect();
        let sick = stay.iter().filter(|machine| is_sick(machine)).count();
        let allowed = (stay.len() * 40).div_ceil(100).max(1);
        assert!(sick <= allowed, "{what}, with {sick} of {} sick\n{}", stay.len(), self.told());
        let reachable = self.cluster(cluster).and_then(|cluster| cluster.status.as_ref());
        let reachable = reachable.is_none_or(|status| conditions::is_true(&status.conditions, condition::REACHABLE));
        assert!(reachable, "{what}, with the cluster's API out of reach");
    }

    /// A set takes away a machine that is well only where few are sick, for all that could be known for some looks.
    pub fn check_removal(&self, machine: &Machine) {
        let known = self.now - TICK * 3;
        let long = |machine: &Machine, type_: &str, status: &str| {
            let conditions = machine.status.as_ref().map(|status| &status.conditions);
            let found = conditions.and_then(|conditions| conditions::find(conditions, type_));
            found.is_some_and(|found| found.status == status && found.last_transition_time.0 <= known)
        };
        let cluster = &machine.spec.cluster_name;
        let goes_on = self.deployment_of(cluster).is_some_and(|deployment| !deployment.is_deleting());
        let reached = self.cluster(cluster).and_then(|cluster| cluster.status.as_ref());
        let reached = reached
            .and_then(|status| conditions::find(&status.conditions, condition::REACHABLE))
            .is_some_and(|found| found.status == "True" && found.last_transition_time.0 <= known);
        if !goes_on || !reached || !long(machine, condition::READY, "True") {
            return;
        }
        let machines = of_cluster(&self.machines, cluster);
        let stay: Vec<&&Machine> = machines
            .iter()
            .filter(|machine| !machine.is_deleting())
            .filter(|machine| {
                let status = machine.status.as_ref();
                status.is_some_and(|status| status.provisioned_at.is_some())
            })
            .collect();
        let sick = stay.iter().filter(|machine| long(machine, condition::NODE_READY, "False")).count();
        let allowed = (stay.len() * 40).div_ceil(100).max(1);
        assert!(
            sick <= allowed,
            "{:?} is well and goes, with {sick} of {} sick\n{}",
            machine.metadata.name,
            stay.len(),
            self.told()
        );
    }

    /// A Node that nobody's Machine stands for goes only if a machine of this cluster was forgotten there.
    pub fn check_stray(&self, cluster: &str, host: &str) {
        let machines = of_cluster(&self.machines, cluster);
        let stands = machines.iter().any(|machine| {
            let named = machine.spec.host_ref.as_ref();
            named.is_some_and(|named| named.name == host)
        });
        let is_held = self
            .hosts
            .iter()
            .any(|there| there.metadata.name.as_deref() == Some(host) && there.spec.claim_ref.is_some());
        assert!(
            !stands && !is_held,
            "the Node of {host}, which is a machine of {cluster}, is deleted\n{}",
            self.told()
        );
    }

    /// A member joins an etcd only when those that are there can still decide with it being slow to come.
    pub fn check_member_may_join(&self, cluster: &str, host: &str) {
        let town = &self.towns[cluster];
        if town.members.is_empty() || !self.is_installed(cluster) {
            return;
        }
        assert!(town.has_quorum(&self.metal), "{host} joins an etcd that has no quorum: {:?}", town.members);
        let dead: Vec<&String> = town
            .members
            .iter()
            .filter(|member| {
                let votes = self.metal[*member].alive && self.metal[*member].data;
                !votes && *member != host
            })
            .collect();
        let gone: Vec<&&String> = dead
            .iter()
            .filter(|member| {
                let machines = of_cluster(&self.machines, cluster);
                !machines.iter().any(|machine| {
                    let named = machine.spec.host_ref.as_ref();
                    named.is_some_and(|named| named.name == ***member) && !machine.is_deleting()
                })
            })
            .collect();
        assert!(gone.is_empty(), "{host} joins before the bad members {gone:?} are out\n{}", self.told());
    }

    /// Without it etcd decides as before.
    pub fn check_member_may_leave(&self, cluster: &str, host: &str) {
        let town = &self.towns[cluster];
        let last = town.members.len() == 1 && town.members.contains(host);
        assert!(!last, "{host} is the last member");
        assert!(town.has_quorum_without(host, &self.metal), "without {host} etcd has no quorum: {:?}", town.members);
    }

    /// Only an etcd without a majority is made anew.
    pub fn check_recovery(&self, cluster: &str) {
        let town = &self.towns[cluster];
        let unapproved = self.deployment_of(cluster).is_none_or(|deployment| {
            let annotations = deployment.metadata.annotations.as_ref();
            annotations.is_none_or(|all| !all.contains_key(crds::names::annotation::APPROVE))
        });
        assert!(!unapproved, "an etcd is made anew without a person's word: {:?}", town.members);
    }

    /// What a cluster that goes on still counts on is not cleaned.
    pub fn check_reset(&self, cluster: &str, host: &str) {
        let deployment = self.deployment_of(cluster);
        let goes_on = deployment.is_some_and(|deployment| !deployment.is_deleting());
        let town = &self.towns[cluster];
        if goes_on && self.is_installed(cluster) {
            assert!(!town.members.contains(host), "{host} is cleaned as a member of etcd");
            assert!(
                !town.nodes.contains(host) || self.metal[host].returned,
                "{host} is cleaned, and its Node is there"
            );
        }
    }

    /// A member of etcd leaves that first.
    pub fn check_node_may_go(&self, cluster: &str, host: &str) {
        let town = &self.towns[cluster];
        assert!(
            !town.members.contains(host) || !town.has_quorum(&self.metal),
            "the Node of {host} goes before its member of etcd\n{}",
            self.told()
        );
    }

    /// Nothing dirty is given back as if it were clean.
    pub fn check_release(&self, cluster: &str, host: &Host, quarantined: bool) {
        let name = host.name();
        assert!(quarantined || !self.metal[name].dirty, "{name} of {cluster} is given back as if it were clean");
    }

    /// How many Hosts may be claimed.
    fn free(&self) -> usize {
        let hosts = self.hosts.iter();
        hosts.filter(|host| plan::claims::why_not(host).is_none()).count()
    }

    /// In the end every cluster is as wished, as far as the Hosts suffice.
    pub fn check_end(&self) {
        let mut lacks = 0;
        for deployment in &self.deployments {
            let name = deployment.name().to_owned();
            let workers: i32 = deployment.spec.workers.iter().filter_map(|set| set.replicas).sum();
            let wanted = usize::try_from(deployment.spec.control_plane.replicas + workers).unwrap_or_default();
            let ready = self.ready_nodes(&name);
            let town = &self.towns[&name];
            let planes = usize::try_from(deployment.spec.control_plane.replicas).unwrap_or_default();
            assert!(
                ready <= wanted && town.nodes.len() == ready,
                "cluster {name} has {ready} Ready of {} nodes and wants {wanted}\n{}",
                town.nodes.len(),
                self.told()
            );
            let free = self.free();
            assert!(
                town.members.len() == planes || (free == 0 && town.members.len() < planes),
                "{} members of etcd of {name}, {planes} are wanted\n{}",
                town.members.len(),
                self.told()
            );
            for host in &town.members {
                let stands = self.role_of(host) == Some(Role::ControlPlane);
                assert!(stands, "{host} is a member of etcd, and nobody's\n{}", self.told());
            }
            let status = deployment.status.clone().unwrap_or_default();
            assert!(status.forgotten.is_empty(), "{name} still remembers {:?}\n{}", status.forgotten, self.told());
            lacks += wanted - ready;
        }
        let free = self.free();
        assert!(lacks == 0 || free == 0, "{lacks} nodes are missing, and {free} Hosts are free\n{}", self.told());
    }
}

fn is_sick(machine: &Machine) -> bool {
    let status = machine.status.as_ref();
    status.is_some_and(|status| {
        status.provisioned_at.is_some()
            && conditions::find(&status.conditions, condition::NODE_READY).is_some_and(|found| found.status == "False")
    })
}
