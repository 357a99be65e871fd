//! ClusterDeployment: makes the sets of machines, asks for the runs that turn them into a cluster, grants the cluster's
//! lock, and says how far it is.

mod conditions;
mod deletion;
mod drain_hooks;
mod endpoint;
pub mod fencing;
mod forgotten;
pub mod former;
mod gates;
mod growth;
mod history;
mod install;
mod join;
mod lack;
pub mod lock;
mod member;
mod part;
mod pause;
pub mod pki;
mod problem;
mod rebuild;
pub mod removals;
mod repair;
mod reset;
mod runs;
mod scene;
mod sets;
mod summary;
mod tokens;
mod up_to_date;
mod withdraw;

use std::collections::BTreeMap;

use crds::cluster::ClusterSpec;
use crds::names::{self, finalizer, label};
use crds::references::{LocalRef, controller_ref};
use crds::step::{Effect, LockUse};
use crds::{
    Cluster, ClusterDeployment, ClusterDeploymentStatus, Host, Machine, MachineSet, PlaybookRun,
    RemediationPolicy,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::cluster::NodeSeen;
use crate::hooks::Library;
use crate::settings::Manifests;
use crate::{Next, Plan};
use forgotten::Forgotten;
use growth::Growth;
use install::Install;
use join::Joins;
use lock::Lock;
use problem::Problem;
use rebuild::Rebuild;
use repair::Repairs;
use reset::Resets;
use scene::Scene;
use tokens::Tokens;

/// A kubeconfig with less left than this is made anew.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(60 * 24);

/// What ends without being seen here is looked for again after this.
const LOOK_AGAIN_SECONDS: u64 = 30;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The ClusterDeployment, read from the API and not from a cache: its lock is decided here.
    pub deployment: &'a ClusterDeployment,
    /// MachineSets of the namespace.
    pub sets: &'a [&'a MachineSet],
    /// Machines of the cluster.
    pub machines: &'a [&'a Machine],
    /// Hosts of the namespace.
    pub hosts: &'a [&'a Host],
    /// Runs of the cluster.
    pub runs: &'a [&'a PlaybookRun],
    /// The ConfigMap of `executor.customPlaybooksRef`, where hooks name it.
    pub library: Option<&'a Library>,
    /// ClusterDeployments of all namespaces that the operator watches; this one may be among them.
    pub deployments: &'a [&'a ClusterDeployment],
    /// RemediationPolicies of the namespace.
    pub policies: &'a [&'a RemediationPolicy],
    /// The Cluster object of the same name.
    pub cluster: Option<&'a Cluster>,
    /// The Nodes of the machines in `status.forgotten`, as far as there are any; `None`: the cluster's API is not reached.
    pub forgotten_nodes: Option<&'a [NodeSeen]>,
    /// What the ConfigMaps with manifests hold.
    pub manifests: &'a Manifests,
    /// Whether the Secret with the cluster's authorities is there.
    pub pki: bool,
    /// Whether the Secret with the administrator's kubeconfig is there.
    pub kubeconfig: bool,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Put the finalizer on the ClusterDeployment.
    AddFinalizer,
    /// Make the cluster's authorities and keys; nothing else does.
    MakePki,
    /// Make the administrator's kubeconfig for this endpoint.
    MakeKubeconfig {
        /// `https://host:port`.
        endpoint: String,
    },
    /// Apply the Cluster object.
    ApplyCluster(Box<Cluster>),
    /// Delete this very Cluster object: what it says is not the new cluster's.
    DeleteCluster(Box<Cluster>),
    /// Apply a MachineSet.
    ApplyMachineSet {
        /// Its name.
        name: String,
        /// What is wanted of it.
        object: Value,
    },
    /// Delete this very MachineSet; its Machines go with it.
    DeleteMachineSet(Box<MachineSet>),
    /// Delete this very Machine.
    DeleteMachine(Box<Machine>),
    /// Ask that this very Machine be forgotten although its Host cannot be cleaned.
    ForceRemoveMachine(Box<Machine>),
    /// Write on this very Machine since when it counts as lost, and that it is to be forgotten.
    ForgetMachine {
        /// The Machine.
        machine: Box<Machine>,
        /// Since when.
        since: Timestamp,
    },
    /// Make this run, once.
    CreateRun(Box<PlaybookRun>),
    /// Ask this run to stop.
    CancelRun(Box<PlaybookRun>),
    /// Ask this run to hold before its next step, or no longer to.
    HoldRun {
        /// The run.
        run: Box<PlaybookRun>,
        /// Whether to hold.
        paused: bool,
    },
    /// Delete this run, which is over and which no decision needs any more.
    DeleteRun(Box<PlaybookRun>),
    /// Record on this Host that its machine is fenced, if nobody has written the Host since it was read.
    MarkFenced(Box<Host>),
    /// Let the ClusterDeployment go.
    RemoveFinalizer,
}

impl Step {
    /// Whether the step is only right if nothing has changed since what it was decided on was read: caches are not believed.
    pub fn cannot_be_taken_back(&self) -> bool {
        matches!(
            self,
            Step::MakePki
                | Step::CreateRun(_)
                | Step::DeleteRun(_)
                | Step::DeleteMachineSet(_)
                | Step::DeleteMachine(_)
                | Step::DeleteCluster(_)
                | Step::ForceRemoveMachine(_)
                | Step::ForgetMachine { .. }
                | Step::RemoveFinalizer
        )
    }
}

/// What is under way, as far as it was planned; the status is told from it.
struct Work<'a> {
    lock: Lock,
    tokens: Tokens,
    problem: Option<Problem>,
    install: Install,
    growth: Growth,
    forgotten: Forgotten,
    joins: Joins<'a>,
    resets: Resets<'a>,
    repairs: Repairs,
    rebuild: Rebuild,
    put_back: Vec<(String, i32, i32)>,
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Step, ClusterDeploymentStatus> {
    let is_former = |machine: &&Machine| former::is_former(machine, observed.deployment, observed.sets);
    let (former, machines): (Vec<&Machine>, Vec<&Machine>) =
        observed.machines.iter().copied().partition(is_former);
    let mut plan = decide(&Observed {
        machines: &machines,
        ..*observed
    });
    former::tell(observed, &former, &mut plan.status);
    plan
}

fn decide(observed: &Observed<'_>) -> Plan<Step, ClusterDeploymentStatus> {
    let scene = Scene::of(observed);
    let mut tokens = tokens::of(&scene);
    let lock = grant(&scene, &tokens);
    let (mut steps, mut next) = match &mut tokens {
        Tokens::Lost(lost) => (std::mem::take(&mut lost.steps), lost.next),
        Tokens::Known(_) | Tokens::Found(_) => (Vec::new(), Next::OnChange),
    };
    if observed.deployment.metadata.deletion_timestamp.is_some() {
        let mut deletion = deletion::of(&scene, &tokens);
        let status = conditions::deleting(&scene, &lock, &tokens, &deletion);
        steps.append(&mut deletion.steps);
        steps.extend(history::steps(&scene, &lock));
        return Plan {
            steps,
            status,
            next: next.or_sooner(deletion.next),
            waits_for: Some(deletion.message),
        };
    }
    let finalizers = observed
        .deployment
        .metadata
        .finalizers
        .as_deref()
        .unwrap_or_default();
    if !finalizers
        .iter()
        .any(|there| there == finalizer::CLUSTER_DEPLOYMENT)
    {
        steps.push(Step::AddFinalizer);
    }
    if !observed.deployment.spec.paused {
        let mut fencing = fencing::of(&scene, matches!(tokens, Tokens::Known(_)));
        steps.append(&mut fencing.steps);
        next = next.or_sooner(fencing.next);
    }
    let problem = problem::find(&scene);
    // Machines are made, and runs asked for, once the lock is there: with it a new cluster is told from one whose status
    // was lost.
    let known = matches!(tokens, Tokens::Known(_));
    let may_work = problem.is_none() && !observed.deployment.spec.paused;
    let works = may_work && known;
    if problem.as_ref().is_some_and(|problem| problem.ends_unseen) {
        next = next.or_sooner(Next::after_seconds(LOOK_AGAIN_SECONDS));
    }
    let rebuild = rebuild::of(&scene, may_work, known);
    let works = works && !rebuild.stops;
    let growth = growth::of(&scene, works);
    let mut work = Work {
        lock,
        tokens,
        problem,
        install: install::of(&scene),
        forgotten: forgotten::of(&scene),
        joins: join::of(&scene),
        resets: reset::of(&scene),
        repairs: repair::of(&scene, known, growth.begins()),
        growth,
        rebuild,
        put_back: sets::put_back(&scene),
    };
    if works {
        steps.extend(access(&scene));
        steps.extend(sets::steps(&scene, &work.repairs.removals));
        if let Install::Begins(run) = &work.install {
            steps.push((**run).clone());
        }
        if let Install::Later { at, .. } = &work.install {
            next = next.or_sooner(deletion::until(&scene, *at));
        }
        if !work.growth.stops {
            steps.append(&mut work.joins.steps);
        }
        next = next.or_sooner(work.joins.next.unwrap_or(Next::OnChange));
        for (_, _, at, _) in &work.joins.later {
            next = next.or_sooner(deletion::until(&scene, *at));
        }
    }
    steps.append(&mut work.rebuild.steps);
    next = next.or_sooner(work.rebuild.next.unwrap_or(Next::OnChange));
    if !work.rebuild.stops {
        steps.append(&mut work.repairs.steps);
    }
    next = next.or_sooner(work.forgotten.next);
    if let Some(at) = work.repairs.look_again {
        next = next.or_sooner(deletion::until(&scene, at));
    }
    if !observed.deployment.spec.paused && known && !work.rebuild.stops {
        steps.append(&mut work.growth.steps);
        next = next.or_sooner(work.growth.next.unwrap_or(Next::OnChange));
        let (mut hooks, later) = drain_hooks::of(&scene);
        steps.append(&mut hooks);
        next = next.or_sooner(later);
        // What leaves is cleaned even if a wish cannot be met.
        steps.append(&mut work.resets.steps);
        steps.extend(withdraw::steps(&scene));
        for (_, at, _) in &work.resets.later {
            next = next.or_sooner(deletion::until(&scene, *at));
        }
    }
    if up_to_date::follows_manifests(&scene) {
        next = next.or_sooner(Next::after_seconds(LOOK_AGAIN_SECONDS));
    }
    steps.extend(pause::steps(&scene, &work.lock));
    steps.extend(history::steps(&scene, &work.lock));
    let (status, waits_for) = conditions::living(&scene, &work);
    Plan {
        steps,
        status,
        next,
        waits_for,
    }
}

fn grant(scene: &Scene<'_>, tokens: &Tokens) -> Lock {
    let deployment = scene.deployment;
    let deleting = deployment.metadata.deletion_timestamp.is_some();
    let status = deployment.status.clone().unwrap_or_default();
    let claimants: Vec<lock::Claimant> = scene
        .observed
        .runs
        .iter()
        .filter(|run| run.spec.intent.spec().lock != LockUse::None)
        .map(|run| {
            let cleans = run.spec.intent.spec().effect == Effect::Removes;
            // What is cleaned, or about to be, is not worked on any more.
            let goes = || run.spec.hosts.iter().any(|host| scene.is_leaving(host));
            let may_start = !deployment.spec.paused && (cleans || !(deleting || goes()));
            lock::Claimant::of(run, scene.observed.machines, may_start)
        })
        .collect();
    lock::decide(&status.operations, tokens.last(), &claimants, scene.observed.now)
}

/// Keys, kubeconfig and the Cluster object, each once it can be had.
fn access(scene: &Scene<'_>) -> Vec<Step> {
    let observed = scene.observed;
    let mut steps = Vec::new();
    if !observed.pki && !pki::is_missing(scene) {
        steps.push(Step::MakePki);
    }
    let Some(endpoint) = scene.endpoint() else {
        return steps;
    };
    let known = scene
        .deployment
        .status
        .as_ref()
        .and_then(|status| status.endpoint.as_ref());
    if !observed.kubeconfig || known != Some(&endpoint) || is_about_to_end(observed) {
        steps.push(Step::MakeKubeconfig { endpoint });
    }
    let spec = ClusterSpec {
        kubeconfig_ref: LocalRef::new(names::kubeconfig_secret(&scene.name)),
    };
    if observed.cluster.is_none_or(|cluster| cluster.spec != spec) {
        let mut cluster = Cluster::new(&scene.name, spec);
        cluster.metadata.namespace = scene.deployment.metadata.namespace.clone();
        cluster.metadata.owner_references = controller_ref(scene.deployment).map(|owner| vec![owner]);
        cluster.metadata.labels = Some(BTreeMap::from([(label::CLUSTER.into(), scene.name.clone())]));
        steps.push(Step::ApplyCluster(Box::new(cluster)));
    }
    steps
}

/// Whether the administrator's certificate, as the Cluster shows it, ends soon.
fn is_about_to_end(observed: &Observed<'_>) -> bool {
    let status = observed.cluster.and_then(|cluster| cluster.status.as_ref());
    let certificates = status
        .map(|status| status.certificates.as_slice())
        .unwrap_or_default();
    certificates.iter().any(|certificate| {
        certificate.name == "admin-kubeconfig"
            && certificate.expires_at.0.duration_since(observed.now) < RENEW_BEFORE
    })
}

#[cfg(test)]
mod tests;
