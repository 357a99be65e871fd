//! What the steps of a run do to its machines, and to the cluster that they are of.

use std::collections::BTreeSet;

use crds::step::{Intent, Role, Step};
use crds::{ObjectExt, PlaybookRun};

use super::world::World;
use crate::cluster_deployment::fencing::is_fence;

impl World {
    /// A run that did not come to its end leaves something behind.
    pub(super) fn leave_traces(&mut self, run: &PlaybookRun, done: usize) {
        run.spec.hosts.iter().for_each(|host| self.leave_trace(run, host, done));
    }

    /// So does one that did, but where it cleans a machine or only stops what is there.
    pub(super) fn leave_trace(&mut self, run: &PlaybookRun, host: &str, done: usize) {
        self.done.insert(host.to_owned(), done);
        self.bring_versions(run, host, done);
        self.bring_authorities(run, host, done);
        if !run.spec.steps.contains(&Step::Reset) && !is_fence(run) {
            self.dirty.insert(host.to_owned());
        }
    }

    /// All steps of a run are done on a machine: the kubelet works that is left on it.
    pub(super) fn leave_well(&mut self, run: &PlaybookRun, host: &str) {
        let has_kubelet = self.role_of(host).is_some_and(|role| role != Role::Etcd);
        let leaves_none = run.spec.steps.contains(&Step::Reset) || run.spec.intent == Intent::Prepare;
        if !has_kubelet || leaves_none {
            return;
        }
        if !self.stubborn.contains(host) {
            self.drifted.entry(host.to_owned()).or_default().retain(|step, _| !run.spec.steps.contains(step));
        }
        let does = |step| run.spec.steps.contains(&step);
        if does(Step::RestartServices) || does(Step::Reboot) {
            self.sick_nodes.remove(host);
        }
        let name = run.spec.cluster_name.clone().unwrap();
        self.kubelets.insert(host.to_owned(), name.clone());
        self.register_node(&name, host);
        let cluster = self.cluster_mut(&name);
        let drains = cluster.node_metadata.get(host).is_some_and(|node| node.owners.drains);
        if (does(Step::ControlPlane) || does(Step::Node)) && !drains {
            cluster.cordoned.remove(host);
        }
    }

    /// A machine is cleaned: it is no part of the cluster any more.
    pub(super) fn clean(&mut self, run: &PlaybookRun, host: &str) {
        let name = run.spec.cluster_name.clone().unwrap();
        self.check_reset(&name, host);
        self.cluster_mut(&name).api_servers.remove(host);
        self.wipe(host);
    }

    /// What a run that ended, with so many steps done, made of its cluster.
    pub(super) fn play_steps(&mut self, run: &PlaybookRun, done: usize) {
        let name = run.spec.cluster_name.clone().unwrap();
        for step in run.spec.steps.iter().take(done) {
            self.write_certificates(run, step);
            match step {
                Step::Etcd => self.join_etcd(&name, run),
                Step::ControlPlane => self.start_api_servers(&name, run),
                Step::RemoveEtcdMember => {
                    let leaves = leaving_member(run).unwrap_or_default();
                    self.check_member_may_leave(&name, &leaves);
                    let cluster = self.cluster_mut(&name);
                    cluster.voters.remove(&leaves);
                    cluster.api_servers.remove(&leaves);
                }
                Step::DefragmentEtcd => {
                    let data = &mut self.cluster_mut(&name).data;
                    (data.size, data.is_full) = (data.in_use, false);
                }
                Step::RecoverEtcd => {
                    self.check_recovery(&name);
                    self.cluster_mut(&name).voters = self.hosts_of_etcd(&name, run);
                }
                Step::BootstrapOs
                | Step::Preflight
                | Step::Prepare
                | Step::ContainerRuntime
                | Step::Node
                | Step::Network
                | Step::Addons
                | Step::LoadBalancer
                | Step::PostInstall
                | Step::EtcdEndpoints
                | Step::RestartServices
                | Step::Reboot
                | Step::Reset
                | Step::Fence
                | Step::ProbeHost
                | Step::ProbeEtcd
                | Step::ProbeCertificates
                | Step::RenewCertificates
                | Step::BackupEtcd
                | Step::StageBackup
                | Step::HoldControlPlane
                | Step::RestoreEtcd
                | Step::UndoRestore
                | Step::ReleaseControlPlane
                | Step::RemoveOldData
                | Step::PreflightUpgrade
                | Step::Prefetch
                | Step::KubeadmUpgrade
                | Step::ControlPlaneConfiguration
                | Step::KubeletConfiguration
                | Step::CertificateAuthorities
                | Step::RestartPods
                | Step::KmsPlugin
                | Step::RewriteSecrets
                | Step::Coredns
                | Step::KarmadaPrograms
                | Step::KarmadaBalancer
                | Step::KarmadaService
                | Step::ProbeKarmada
                | Step::ReadKubeconfig
                | Step::Custom(_) => {}
            }
        }
    }

    fn join_etcd(&mut self, name: &str, run: &PlaybookRun) {
        let members = self.hosts_of_etcd(name, run);
        let is_one = |host: &&String| {
            self.find_cluster(name).is_some_and(|cluster| cluster.voters.contains(*host))
                && self.etcd_data.contains(*host)
        };
        members.iter().filter(|host| !is_one(host)).for_each(|host| self.check_member_may_join(name, host));
        let cluster = self.cluster_mut(name);
        if run.spec.intent == Intent::Install {
            // Without any of those that were there it is another etcd, which no API server knows.
            cluster.serves &= members.iter().any(|host| cluster.voters.contains(host));
            cluster.voters.clear();
        }
        cluster.voters.extend(members.iter().cloned());
        self.etcd_data.extend(members);
    }

    fn start_api_servers(&mut self, name: &str, run: &PlaybookRun) {
        let is_one = |host: &&String| self.role_of(host) == Some(Role::ControlPlane);
        let hosts: Vec<String> = run.spec.hosts.iter().filter(is_one).cloned().collect();
        if run.spec.intent == Intent::Install {
            self.begin_cluster(name, run);
        }
        self.kubelets.extend(hosts.iter().map(|host| (host.clone(), name.to_owned())));
        self.cluster_mut(name).api_servers.extend(hosts);
    }

    /// The first control plane begins a cluster, once: what was begun there is not begun again.
    fn begin_cluster(&mut self, name: &str, run: &PlaybookRun) {
        let first = self.cluster_of(run).and_then(|cluster| cluster.first_of.get(run.name()).cloned());
        let first = first.unwrap_or_else(|| run.spec.hosts[0].clone());
        let other = run.spec.hosts.iter().find(|host| self.begun_on.contains(*host));
        assert!(other.is_none_or(|other| *other == first), "a cluster is begun on {first}, and was on {other:?}");
        let is_new = self.begun_on.insert(first);
        let cluster = self.cluster_mut(name);
        cluster.inits += usize::from(is_new);
        if is_new || !cluster.serves {
            (cluster.serves, cluster.api_lost) = (true, false);
            cluster.nodes.clear();
            cluster.node_metadata.clear();
            cluster.api_servers.clear();
        }
    }

    /// Hosts of a run whose machines are members of etcd.
    fn hosts_of_etcd(&self, name: &str, run: &PlaybookRun) -> BTreeSet<String> {
        let topology = self.find_cluster(name).map(|cluster| cluster.deployment.spec.etcd.topology);
        let role = topology.unwrap_or_default().role();
        let is_one = |host: &&String| role.is_some() && self.role_of(host) == role;
        run.spec.hosts.iter().filter(is_one).cloned().collect()
    }

    /// The step that finds out for itself that it must not be done: a member without whom etcd would not decide is not
    /// taken out, and none goes on alone while there is a majority.
    pub(super) fn step_that_refuses(&self, run: &PlaybookRun) -> Option<usize> {
        let cluster = self.cluster_of(run)?;
        let lets_nobody_in = cluster.is_installed() && !self.decides(cluster);
        let refuses = |step: &Step| match leaving_member(run) {
            // One that is a member already needs no vote to be one.
            None if *step == Step::Etcd && run.spec.intent == Intent::Join && lets_nobody_in => {
                let members = self.hosts_of_etcd(cluster.deployment.name(), run);
                members.iter().any(|host| !cluster.voters.contains(host))
            }
            Some(leaves) if *step == Step::RemoveEtcdMember => {
                !self.decides(cluster) || !self.decides_without(cluster, &leaves)
            }
            _ => *step == Step::RecoverEtcd && self.profile.recovery_looks_first && self.decides(cluster),
        };
        run.spec.steps.iter().position(refuses)
    }
}

/// The Host whose member `remove-etcd-member` takes out.
fn leaving_member(run: &PlaybookRun) -> Option<String> {
    let member = run.spec.vars.get("etcd_member_remove")?;
    Some(member["host"].as_str()?.to_owned())
}
