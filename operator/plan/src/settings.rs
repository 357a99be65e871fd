//! Settings that can be edited after they were applied: what was frozen into runs, what runs have brought to machines,
//! and where that differs from what is wanted now.

pub mod authorities;
mod contents;
mod differences;
mod digest;
mod done;
mod karmada;
mod parts;
mod wanted;

pub use contents::{CONTENTS, Content, ETCD_CLIENT, NETWORK, REGISTRIES, REGISTRY_LOGIN};
pub use differences::{Difference, differences, of_dns};
pub use digest::digest;
pub(crate) use karmada::{brought, digest_in, has_brought, is_stopped, never_came_to, stopped};
pub use wanted::Wanted;

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::cluster_deployment::AppliedManifests;
use crds::machine::AppliedSettings;
use crds::playbook_run::FrozenSettings;
use crds::step::{Intent, Role, Step};
use crds::{ClusterDeployment, Machine, PlaybookRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::components::pins::COREDNS;
use crate::configuration::{PARTS, Part, files};
use crate::rotation::Authorities;
use crate::{attempts, components};
use done::{Done, how_done, joins_by, settings_of};
use wanted::KUBE_PROXY;

/// The variable that says which API servers are behind an endpoint that the control planes hold.
pub const BACKENDS: &str = "kube_apiserver_backends";

/// What objects hold that the spec refers to: manifests, as digests; none: it could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifests {
    /// Of `networking.plugin.manifestsRef`.
    pub network: Option<String>,
    /// The files that `configuration` refers to, by their keys, as they are.
    pub files: Option<BTreeMap<String, String>>,
    /// Digests of what `containerRuntime.registryMirrors` refer to, by prefix.
    pub registries: Option<BTreeMap<String, String>>,
}

/// What a run's inputs have of the objects that the spec refers to.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Of `networking.plugin.manifestsRef`.
    pub network: BTreeMap<String, String>,
    /// A digest of the certificates of `etcd.secretRef`.
    pub etcd_client: Option<String>,
    /// The files that `configuration` refers to, by their keys.
    pub files: BTreeMap<String, String>,
    /// Digests of what `containerRuntime.registryMirrors` refer to, by prefix.
    pub registries: BTreeMap<String, String>,
}

/// The settings of a run of this intent whose inputs are frozen now.
pub fn frozen(
    deployment: &ClusterDeployment,
    intent: Intent,
    contents: &Contents,
    authorities: &Authorities,
) -> FrozenSettings {
    let mut wanted = Wanted::new(deployment);
    for (name, contents) in [(files::NAME, &contents.files), (REGISTRIES, &contents.registries)] {
        wanted.configuration.extend(files::digest(contents).map(|digest| (name.to_owned(), digest)));
    }
    FrozenSettings {
        cert_sans: wanted.cert_sans,
        registry_mirrors: wanted.registry_mirrors,
        addon_manifests: String::new(),
        network_manifests: digest(&contents.network),
        etcd_endpoints: wanted.etcd_endpoints,
        etcd_client: contents.etcd_client.clone(),
        kubernetes_version: Some(components::version_of(deployment, intent)),
        configuration: wanted.configuration,
        authorities: authorities.digests(deployment.spec.etcd.topology),
    }
}

/// What runs have brought to the machine: what its status remembers, and what ended since. Runs may be pruned once this
/// is in the status.
pub fn applied(machine: &Machine, host: &str, runs: &[&PlaybookRun]) -> Option<AppliedSettings> {
    let recorded = machine.status.as_ref().and_then(|status| status.applied.clone());
    let mut newer: Vec<(i64, &PlaybookRun)> = newer(machine, host, recorded.as_ref(), runs).collect();
    newer.sort_by_key(|(token, _)| *token);
    if newer.is_empty() {
        return recorded;
    }
    let mut applied = recorded.unwrap_or_default();
    for (token, run) in newer {
        let bring = |field: &mut Option<String>, step, setting: Setting<'_>| match how_done(run, host, step) {
            Some(Done::Played) => *field = settings_of(run).and_then(setting),
            Some(Done::PassedOver) if field.is_none() => *field = common(machine, host, runs, step, setting),
            Some(Done::PassedOver) | None => {}
        };
        bring(&mut applied.registry_mirrors, Step::ContainerRuntime, &|settings| {
            Some(settings.registry_mirrors.clone())
        });
        bring(&mut applied.cert_sans, Step::ControlPlane, &|settings| Some(settings.cert_sans.clone()));
        for step in [Step::ControlPlane, Step::EtcdEndpoints] {
            bring(&mut applied.etcd_endpoints, step, &|settings| settings.etcd_endpoints.clone());
            bring(&mut applied.etcd_client, step, &|settings| settings.etcd_client.clone());
        }
        let version = |settings: &FrozenSettings| settings.kubernetes_version.map(|version| version.to_string());
        bring(&mut applied.kubernetes_version, brings_version(machine.spec.role, run), &version);
        bring(&mut applied.prefetched_version, Step::Prefetch, &version);
        let mut configure = |name: &str, steps: &mut dyn Iterator<Item = Step>, setting: Setting<'_>| {
            let mut has = applied.configuration.remove(name);
            steps.for_each(|step| bring(&mut has, step, setting));
            applied.configuration.extend(has.map(|has| (name.to_owned(), has)));
        };
        for part in PARTS.iter().filter(|part| part.concerns(machine.spec.role)) {
            let setting = |settings: &FrozenSettings| parts::of_machine(&settings.configuration, part, machine);
            configure(part.name, &mut part.steps(), &setting);
        }
        if machine.spec.role != Role::Etcd {
            let setting = |settings: &FrozenSettings| settings.configuration.get(REGISTRIES).cloned();
            configure(REGISTRIES, &mut [Step::ContainerRuntime].into_iter(), &setting);
        }
        if machine.spec.role == Role::ControlPlane {
            let setting = |settings: &FrozenSettings| settings.configuration.get(files::NAME).cloned();
            configure(files::NAME, &mut files::STEPS.into_iter(), &setting);
        }
        if how_done(run, host, Step::Prefetch) == Some(Done::Played) {
            applied.prefetched_at = attempts::ended_at(run).map(Time);
        }
        if how_done(run, host, Step::LoadBalancer) == Some(Done::Played) {
            applied.load_balancer_backends = run.spec.vars.get(BACKENDS).map(digest);
        }
        karmada::bring(&mut applied.parts, run, host);
        authorities::bring(&mut applied.authorities, machine, run, host);
        applied.token = token;
    }
    Some(applied)
}

/// The step after which a machine has the Kubernetes version of its run. An upgrade is over with its last one: what
/// hooks do afterwards is part of it.
fn brings_version(role: Role, run: &PlaybookRun) -> Step {
    let step = joins_by(role);
    let is_upgrade = run.spec.intent == Intent::Upgrade && run.spec.steps.contains(&step);
    run.spec.steps.last().copied().filter(|_| is_upgrade).unwrap_or(step)
}

/// Whether a run may bring anything: one that only looks plays no step.
fn brings(run: &PlaybookRun) -> bool {
    !run.spec.intent.changes_nothing()
}

/// Ended runs on the machine, with their tokens, that its status does not remember yet.
fn newer<'a>(
    machine: &'a Machine,
    host: &'a str,
    recorded: Option<&AppliedSettings>,
    runs: &[&'a PlaybookRun],
) -> impl Iterator<Item = (i64, &'a PlaybookRun)> {
    let last = recorded.map(|applied| applied.token).unwrap_or_default();
    let ended = runs.iter().copied().filter(|run| attempts::is_over(run) && brings(run));
    let newer = ended.filter_map(move |run| {
        let token = run.status.as_ref().map(|status| status.token)?;
        (token > last).then_some((token, run))
    });
    // Last: it reads all machines of the run, and few runs are newer.
    newer.filter(move |(_, run)| is_on(run, machine, host))
}

/// Whether a run was on this machine, and not on an earlier one of the same Host.
fn is_on(run: &PlaybookRun, machine: &Machine, host: &str) -> bool {
    let targets = attempts::targets(run);
    if let Some(target) = targets.get(host) {
        return machine.metadata.uid.as_ref() == Some(&target.uid);
    }
    let began = run.status.as_ref().and_then(|status| status.started_at.as_ref());
    targets.is_empty()
        && run.spec.hosts.iter().any(|named| named == host)
        && began.is_some_and(|at| Some(at) >= machine.created_at())
}

/// A setting that is the same in all runs with this step on the machine: whichever of them did it (its executor may
/// have been lost before it could say so), it brought this one.
fn common(machine: &Machine, host: &str, runs: &[&PlaybookRun], step: Step, setting: Setting<'_>) -> Option<String> {
    let with_step = |run: &&&PlaybookRun| brings(run) && run.spec.steps.contains(&step) && is_on(run, machine, host);
    let mut seen = runs.iter().filter(with_step).map(|run| settings_of(run).and_then(setting));
    let first = seen.next()??;
    seen.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

type Setting<'a> = &'a dyn Fn(&FrozenSettings) -> Option<String>;

/// The manifests that were applied to the cluster, by what its status remembers and what ended since. They are applied
/// on one of the control planes, of which these are the Hosts.
pub fn applied_manifests(
    deployment: &ClusterDeployment,
    control_planes: &[&str],
    runs: &[&PlaybookRun],
) -> Option<AppliedManifests> {
    let status = deployment.status.as_ref();
    let recorded = status.and_then(|status| status.applied_manifests.clone());
    let mut newer = newer_manifests(recorded.as_ref(), runs);
    newer.sort_by_key(|run| token_of(run));
    let mut applied = recorded;
    for run in newer {
        let played = |step: Step| {
            let mut hosts = control_planes.iter();
            hosts.any(|host| {
                run.spec.hosts.iter().any(|named| named == host) && how_done(run, host, step) == Some(Done::Played)
            })
        };
        let settings = settings_of(run);
        let applied = applied.get_or_insert_default();
        if played(Step::Addons) {
            applied.kube_proxy = settings.and_then(|settings| settings.configuration.get(KUBE_PROXY).cloned());
        }
        // Machines that join later do not apply them again.
        if played(Step::Network) && run.spec.intent != Intent::Join {
            applied.network = settings.map(|settings| settings.network_manifests.clone());
        }
        // kubeadm makes it for a cluster that begins.
        if played(Step::Coredns) || (run.spec.intent == Intent::Install && played(Step::ControlPlane)) {
            applied.coredns = settings.and_then(|settings| settings.configuration.get(COREDNS.part).cloned());
        }
        applied.token = token_of(run);
    }
    applied
}

fn token_of(run: &PlaybookRun) -> i64 {
    run.status.as_ref().map(|status| status.token).unwrap_or_default()
}

fn newer_manifests<'a>(recorded: Option<&AppliedManifests>, runs: &[&'a PlaybookRun]) -> Vec<&'a PlaybookRun> {
    let last = recorded.map(|applied| applied.token).unwrap_or_default();
    let newer = runs.iter().copied();
    let is_new = |run: &&PlaybookRun| attempts::is_over(run) && token_of(run) > last;
    newer.filter(|run| is_new(run) && brings(run) && applies_manifests(run)).collect()
}

/// Names of the ended runs that must not be pruned: those whose settings no status remembers yet, and of those that
/// were made by hand the newest on each machine, since nothing else would tell what it brought if a status were lost.
pub fn needed(deployment: &ClusterDeployment, machines: &[(&Machine, &str)], runs: &[&PlaybookRun]) -> Vec<String> {
    let status = deployment.status.as_ref();
    let recorded = status.and_then(|status| status.applied_manifests.as_ref());
    let mut needed = newer_manifests(recorded, runs);
    let is_by_hand = |run: &&PlaybookRun| attempts::is_over(run) && brings(run) && attempts::targets(run).is_empty();
    let by_hand: Vec<&PlaybookRun> = runs.iter().copied().filter(is_by_hand).collect();
    let newest = |with: &dyn Fn(&PlaybookRun) -> bool| {
        let runs = by_hand.iter().copied().filter(|run| with(run));
        runs.max_by_key(|run| token_of(run))
    };
    needed.extend(newest(&applies_manifests));
    for (machine, host) in machines {
        let recorded = machine.status.as_ref().and_then(|status| status.applied.as_ref());
        needed.extend(newer(machine, host, recorded, runs).map(|(_, run)| run));
        needed.extend(newest(&|run| applies_settings(run) && is_on(run, machine, host)));
    }
    needed.into_iter().filter_map(|run| run.metadata.name.clone()).collect()
}

/// Whether a run may apply manifests of the cluster.
fn applies_manifests(run: &PlaybookRun) -> bool {
    let has = |step| run.spec.steps.contains(&step);
    has(Step::Addons) || has(Step::Coredns) || (has(Step::Network) && run.spec.intent != Intent::Join)
}

/// Whether a run may bring settings to its machines.
fn applies_settings(run: &PlaybookRun) -> bool {
    let steps = [
        Step::ContainerRuntime,
        Step::ControlPlane,
        Step::EtcdEndpoints,
        Step::CertificateAuthorities,
        Step::RestartPods,
        Step::KmsPlugin,
        Step::RewriteSecrets,
    ];
    let mut steps = steps.into_iter().chain(PARTS.iter().flat_map(Part::steps));
    steps.any(|step| run.spec.steps.contains(&step))
}
