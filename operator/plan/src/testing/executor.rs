//! Runs: they begin when the lock lets them, and end as the next fate says.

use crds::ObjectExt;
use crds::drift::StepDifference;
use crds::lock::Operation;
use crds::playbook_run::{Fence, FrozenSettings, HostResult, PlaybookRunSpec, PlaybookRunStatus, Progress, RunPhase};
use crds::step::{Intent, Step};
use crds::{PlaybookRun, Reason};

use super::results::{failed, failure};
use super::world::World;
use crate::attempts;
use crate::certificates::is_probe;
use crate::cluster_deployment::fencing::is_fence;
use crate::drift::is_comparison;
use crate::settings::{self, Contents};

impl World {
    /// Runs begin and end, and probes answer.
    pub(super) fn play_runs(&mut self) {
        // How a run ended is known to its Job.
        for run in self.runs.iter_mut().filter(|run| run.status.is_none()) {
            run.status = self.jobs.get(run.name()).cloned();
        }
        for index in 0..self.runs.len() {
            let run = &self.runs[index];
            let token = self.token_of(run);
            if attempts::is_over(run) {
                continue;
            }
            if run.spec.intent == Intent::Probe {
                self.probe(index);
            } else if is_comparison(run) && token > 0 && !run.spec.cancel {
                self.compare(index, token);
            } else if is_running(run) {
                self.finish(index);
            } else if run.spec.cancel {
                self.end(index, RunPhase::Canceled, Reason::Canceled, 0);
            } else if token > 0 && !run.spec.paused {
                self.begin(index, token);
            }
        }
    }

    /// Whether a run works now.
    pub fn works(&self) -> bool {
        self.runs.iter().any(is_running)
    }

    /// Whether a run of a cluster goes on without anybody's doing.
    pub(super) fn is_busy(&self) -> bool {
        self.runs.iter().filter(|run| run.spec.cluster_name.is_some()).any(|run| {
            let may_begin = self.token_of(run) > 0 && !run.spec.paused;
            let goes_on = is_running(run) || may_begin || run.spec.intent == Intent::Probe || run.spec.cancel;
            goes_on && !attempts::is_over(run)
        })
    }

    /// The token that the lock of its cluster gave to the run; 0: none.
    pub(super) fn token_of(&self, run: &PlaybookRun) -> i64 {
        let is_of_run = |operation: &&Operation| operation.run == run.name();
        let status = self.cluster_of(run).and_then(|cluster| cluster.status());
        let operation = status.and_then(|status| status.operations.iter().find(is_of_run));
        operation.map_or(0, |operation| operation.token)
    }

    /// A run begins: every guard takes its fence, or refuses it.
    fn begin(&mut self, index: usize, token: i64) {
        let run = self.runs[index].clone();
        self.check_fence(&run);
        if !is_fence(&run) && run.spec.hosts.iter().any(|host| self.role_of(host).is_none()) {
            return self.end(index, RunPhase::Failed, Reason::HostNotInCluster, 0);
        }
        let refused = self.refused(&run, token);
        let unknown = refused.iter().find(|host| self.is_unknown(&run, host, token));
        assert!(self.set_back.is_some() || unknown.is_none(), "{name} is refused by {unknown:?}", name = run.name());
        if self.set_back.is_some() && !refused.is_empty() {
            return self.refuse(index, &refused);
        }
        self.check_set_back(&run);
        self.check_begin(&run);
        let name = run.name().to_owned();
        self.begun_runs.insert(name.clone(), (run.spec.intent, run.spec.hosts.len()));
        let cluster = run.spec.cluster_name.clone().unwrap();
        let first = self.first_host(&cluster);
        self.cluster_mut(&cluster).first_of.extend(first.map(|first| (name.clone(), first)));
        // Nothing comes to one that SSH does not reach.
        let is_reached = |host: &&String| !self.silent.contains(*host) && !self.denied.contains_key(*host);
        let reached = run.spec.hosts.iter().filter(is_reached);
        for host in reached.cloned().collect::<Vec<_>>().iter() {
            let fence = (self.host(host).map_or(0, |host| host.spec.claim_epoch), token);
            if let Some((highest, holder)) = self.guards.get(host) {
                assert!(
                    fence > *highest || (fence == *highest && *holder == name),
                    "the guard of {host} has {highest:?} of {holder} and refuses {fence:?} of {name}"
                );
            }
            let (_, memory) = self.brings(&run, host, token);
            self.memories.insert(host.clone(), memory);
            // From now on the store knows what is done there.
            if let Some(set_back) = &mut self.set_back {
                set_back.changed.remove(host);
            }
            self.guards.insert(host.clone(), (fence, name.clone()));
            if run.spec.steps.iter().any(|step| [Step::Node, Step::ControlPlane].contains(step)) {
                self.configure_kubelet(host);
            }
        }
        let contents = Contents {
            etcd_client: self.etcd_client.clone().and_then(Result::ok),
            files: self.manifests.files.clone().unwrap_or_default(),
            registries: self.manifests.registries.clone().unwrap_or_default(),
            ..Contents::default()
        };
        let authorities = self.freeze_authorities(&run);
        let deployment = &self.cluster_mut(&cluster).deployment;
        let frozen = settings::frozen(deployment, run.spec.intent, &contents, &authorities);
        let settings =
            FrozenSettings { network_manifests: self.manifests.network.clone().unwrap_or_default(), ..frozen };
        self.runs[index].status = Some(PlaybookRunStatus {
            phase: Some(RunPhase::Running),
            started_at: Some(self.time()),
            token,
            settings: Some(settings),
            progress: Some(Progress { step: run.spec.steps[0].name().into(), ..Progress::default() }),
            ..PlaybookRunStatus::default()
        });
    }

    /// The Host of the machine that begins the cluster, as its status says.
    fn first_host(&self, cluster: &str) -> Option<String> {
        let first = self.find_cluster(cluster)?.status()?.first_control_plane.as_ref()?;
        let machine = self.machines.iter().find(|machine| machine.name() == first)?;
        Some(machine.spec.host_ref.as_ref()?.name.clone())
    }

    /// The probes of a comparison are played: no guard hears of it.
    fn compare(&mut self, index: usize, token: i64) {
        let run = self.runs[index].clone();
        self.check_begin(&run);
        let result = |host: &String| {
            if self.silent.contains(host) {
                return failed(host, run.spec.steps[0].name(), Reason::Unreachable);
            }
            let differs = self.drifted.get(host).into_iter().flatten();
            let differs =
                differs.filter(|(step, _)| run.spec.steps.contains(step)).map(|(step, message)| StepDifference {
                    step: *step,
                    unknown: message.is_empty(),
                    reason: Reason::ServiceOutdated.into(),
                    task: String::new(),
                    message: message.clone(),
                });
            HostResult { name: host.clone(), differences: differs.collect(), ..HostResult::default() }
        };
        let results: Vec<HostResult> = run.spec.hosts.iter().map(result).collect();
        let (phase, reason) = match results.iter().all(|result| result.failure.is_none()) {
            true => (RunPhase::Succeeded, Reason::Complete),
            false => (RunPhase::Failed, Reason::Unreachable),
        };
        self.runs[index].status.get_or_insert_default().token = token;
        self.end(index, phase, reason, run.spec.steps.len());
        self.report_outcome(index, phase, reason, results);
    }

    fn probe(&mut self, index: usize) {
        let PlaybookRunSpec { hosts, cluster_name, vars, .. } = self.runs[index].spec.clone();
        let asks_certificates = is_probe(&self.runs[index]);
        let compares = vars.get("etcd_hash_check").is_some_and(|asked| asked == true);
        let result = |name: &String| {
            let answers = !self.silent.contains(name);
            let (epoch, token) = self.guards.get(name).map(|(highest, _)| *highest).unwrap_or_default();
            HostResult {
                name: name.clone(),
                unreachable: !answers,
                clean: answers.then_some(!self.dirty.contains(name)),
                fence: answers.then_some(Fence { epoch, token }),
                fence_owner: self.memories.get(name).filter(|_| answers).map(|memory| memory.owner.clone()),
                failure: (!answers && cluster_name.is_none()).then(|| failure("probe-host", Reason::Unreachable)),
                etcd: self.etcd_seen(name, compares),
                certificates: if asks_certificates { self.certificates_seen(name) } else { Vec::new() },
                ..HostResult::default()
            }
        };
        let results = hosts.iter().map(result).collect();
        self.end(index, RunPhase::Succeeded, Reason::Complete, 1);
        self.report_results(index, results);
    }
}

fn is_running(run: &PlaybookRun) -> bool {
    run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running)
}
