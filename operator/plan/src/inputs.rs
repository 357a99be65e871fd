//! The model of a run: hosts, groups and variables, built from what was observed, in values and never as text.

mod artifact_lock;
pub mod artifacts;
mod backup;
mod credential;
pub mod endpoint;
mod etcd_client;
mod fence;
mod holders;
mod host;
mod identity;
pub(crate) mod manifests;
mod observed;
mod plane;
mod private_key;
mod problem;
mod registries;
mod resets;
mod restore;
mod same_on_all_hosts;
mod storage;
pub(crate) mod variables;

use std::collections::{BTreeMap, BTreeSet};

use crds::ObjectExt;
use crds::Reason;
use crds::inputs::{Group, RunInputs, VARIABLE_DEPTH_LIMIT, depth, is_reserved_variable, is_variable_name};
use crds::playbook_run::{check_steps, check_steps_of_kind};
use crds::step::{Effect, Intent, Step};
use crds::{Host, Machine, PlaybookRun};

use crate::hooks;
pub use artifact_lock::{ArtifactLock, lock_of};
pub use backup::{EtcdWithoutMachine, etcd_without_machine};
pub use credential::{Credentials, classify};
pub use etcd_client::{etcd_client_digest, etcd_client_files, etcd_client_values};
pub use host::{FirstKey, address_in_cluster, host_inputs};
pub use identity::identity;
use observed::Formed;
pub use observed::{BackupSeen, ClusterSeen, InputsObserved, PlaneMachines, PlaneSeen, RestoreSeen};
pub use problem::InputsProblem;
pub use registries::{
    Registries, RegistryLogin, RegistrySeen, digests as registry_digests, login_key, registry_ca, registry_login,
};
pub use storage::{StorageSeen, storage};
pub use variables::of_etcd;

/// A ConfigMap holds 1 MiB, its own fields included.
pub const MODEL_LIMIT: usize = 1_000_000;

/// What the run's own text may not say; nothing else needs to be observed to know it.
pub fn refused(run: &PlaybookRun) -> Option<InputsProblem> {
    // The schema says the same; a run may be older than it.
    if let Err(refused) = check_steps(run.spec.intent, &run.spec.steps) {
        let message = format!("{refused}: make a new run");
        return Some(InputsProblem::refused(Reason::StepNotAllowed, message));
    }
    if let Err(refused) = check_steps_of_kind(run.spec.cluster_kind, &run.spec.steps) {
        let message = format!("{refused}: make a new run");
        return Some(InputsProblem::refused(Reason::StepNotAllowed, message));
    }
    let is_backup = run.spec.intent == Intent::Backup;
    if run.spec.hosts.is_empty() && !is_backup {
        let message =
            format!("hosts is empty, and only a Backup may have none, this is {:?}: make a new run", run.spec.intent);
        return Some(InputsProblem::refused(Reason::InputsRefused, message));
    }
    let needs_none = is_backup && run.spec.hosts.is_empty() || run.spec.intent.spec().effect == Effect::Looks;
    if run.spec.cluster_name.is_none() && !needs_none {
        let message = format!(
            "clusterName is required for every intent but Probe, and Backup without hosts, this is {:?}: make a new run that names the cluster of its Hosts",
            run.spec.intent
        );
        return Some(InputsProblem::refused(Reason::ClusterNameMissing, message));
    }
    run.spec.vars.iter().find_map(|(name, value)| {
        if is_reserved_variable(name) {
            let message = format!(
                "vars.{name}: the name is reserved (ansible_* and Ansible's own variables are): choose another and make a new run"
            );
            return Some(InputsProblem::refused(Reason::ReservedVariable, message));
        }
        if !is_variable_name(name) {
            let message = format!(
                "vars.{name:?}: a variable's name is letters, digits and _, at most 128, and begins with no digit: choose another and make a new run"
            );
            return Some(InputsProblem::refused(Reason::InvalidVariable, message));
        }
        (depth(value) > VARIABLE_DEPTH_LIMIT).then(|| {
            let message = format!(
                "vars.{name}: nested {} levels deep or more: {VARIABLE_DEPTH_LIMIT} are allowed: give it as text, or flatter, in a new run",
                depth(value)
            );
            InputsProblem::refused(Reason::InvalidVariable, message)
        })
    })
}

/// Builds the model.
pub fn build(observed: &InputsObserved<'_>) -> Result<RunInputs, InputsProblem> {
    let run = observed.run;
    if let Some(problem) = refused(run) {
        return Err(problem);
    }
    let formed = observed.formed();
    let fences = fence::check(run, formed, observed.hosts)?;
    let machines = if fences { BTreeMap::new() } else { machines(run, formed)? };
    holders::check(run, &machines, observed.hosts)?;
    resets::check(run, &machines)?;
    let first_key = first_key(run);
    let mut hosts = BTreeMap::new();
    for name in &run.spec.hosts {
        let host = observed.hosts.get(name).ok_or_else(|| {
            InputsProblem::waits(Reason::HostNotFound, format!("Host {name} is not there: make it, or delete this run"))
        })?;
        let mut inputs = host_inputs(host, observed.hosts, observed.credentials, first_key)?;
        if fences {
            inputs.identity = host.spec.identity.clone();
        }
        match (machines.get(name.as_str()), formed) {
            (Some(machine), Some(Formed::Cluster(cluster))) => {
                host::place(&mut inputs, host, machine, cluster.deployment)?;
            }
            (Some(machine), Some(Formed::Plane(plane))) => plane::place(&mut inputs, run, (host, machine), plane)?,
            (None, _) | (_, None) => {}
        }
        hosts.insert(name.clone(), inputs);
    }
    // Without a machine nothing is played that could read them.
    let mut vars = match formed.filter(|_| !run.spec.hosts.is_empty()) {
        Some(Formed::Cluster(cluster)) => variables::of_cluster(cluster, observed.hosts, run)?,
        Some(Formed::Plane(plane)) => plane::variables(plane, observed.hosts, run)?,
        None => BTreeMap::new(),
    };
    let own = match formed {
        Some(Formed::Plane(_)) => plane::give(run, &mut hosts)?,
        Some(Formed::Cluster(_)) | None => run.spec.vars.clone(),
    };
    vars.extend(same_on_all_hosts::take(&mut hosts));
    vars.extend(own);
    Ok(RunInputs {
        namespace: run.namespace().to_owned(),
        run: run.name().to_owned(),
        cluster_name: run.spec.cluster_name.clone(),
        intent: run.spec.intent,
        steps: run.spec.steps.clone(),
        resume: run.spec.resume,
        hosts,
        vars,
        playbooks: hooks::playbooks(&run.spec, observed.library)?,
        backup: backup::inputs(run, observed.backup, observed.cluster)?,
        staging: restore::staging(run, observed.restore, observed.cluster)?,
    })
}

/// The Machines of the run's Hosts, by the Hosts' names.
fn machines<'a>(
    run: &PlaybookRun,
    formed: Option<Formed<'a>>,
) -> Result<BTreeMap<&'a str, &'a Machine>, InputsProblem> {
    match (formed, run.spec.former()) {
        (Some(formed), _) => host::machines_of(run, formed.machines()),
        (None, None) => Ok(BTreeMap::new()),
        (None, Some(former)) => {
            let message = format!("{former} is not there: make it, or delete this run");
            Err(InputsProblem::waits(Reason::ClusterNotFound, message))
        }
    }
}

/// What only looks may meet a machine for the first time; what changes it, or believes what it reads there, may not.
fn first_key(run: &PlaybookRun) -> FirstKey {
    match run.spec.intent.spec().effect {
        Effect::Looks if run.spec.steps.contains(&Step::ReadKubeconfig) => FirstKey::Refused,
        Effect::Looks => FirstKey::Believed,
        Effect::Provisions
        | Effect::Removes
        | Effect::Copies
        | Effect::Renews
        | Effect::Maintains
        | Effect::Compares => FirstKey::Refused,
    }
}

/// The variable, and its value, that say that the cluster's etcd is external.
const EXTERNAL: (&str, &str) = ("etcd_topology", "external");

/// What a run's Secret must hold beside the credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretsNeeded {
    /// Files of a control plane: authorities and keys.
    pub control_plane: bool,
    /// The keys that Secrets in etcd are encrypted with, alone.
    pub encryption: bool,
    /// Hosts whose etcd member's certificates are needed.
    pub etcd_hosts: BTreeSet<String>,
    /// All members of the cluster's etcd: host and address.
    pub etcd_members: Vec<(String, String)>,
    /// The client certificate of the API servers for the cluster's own etcd.
    pub apiserver_client: bool,
    /// How the control planes speak to an external etcd.
    pub etcd_client: bool,
    /// Hosts, and so Nodes, whose kubelets get a client certificate from the authority that signs.
    pub kubelets: BTreeSet<String>,
    /// Hosts that join, each by a token of its own.
    pub join_hosts: BTreeSet<String>,
    /// The login of the artifact source.
    pub artifacts_login: bool,
    /// The registries to whose mirrors machines log in, by prefix.
    pub registry_logins: Vec<String>,
    /// What a backup is fetched and decrypted with, and the cluster's keys, which it must have.
    pub staging: bool,
    /// The authority of a plane, by which it is known at its endpoint.
    pub authority: bool,
    /// The files of the part that a run brings to machines of a plane.
    pub karmada_part: bool,
    /// What a backup is made with: a client's certificate of etcd, the keys of the storage, and what is stored beside
    /// the snapshot.
    pub backup: bool,
}

/// No run gets a key that its steps have no use for.
pub fn secrets_needed(model: &RunInputs) -> SecretsNeeded {
    if model.backup.is_some() {
        return SecretsNeeded { backup: true, ..SecretsNeeded::default() };
    }
    let staging = model.staging.is_some();
    if staging && model.intent.spec().effect == Effect::Copies {
        return SecretsNeeded { staging: true, ..SecretsNeeded::default() };
    }
    match model.intent.spec().effect {
        _ if model.cluster_name.is_none() => return SecretsNeeded::default(),
        Effect::Renews => return to_renew(model),
        // No key of the cluster: a probe finds on the machine what it compares with.
        Effect::Compares => {
            let (artifacts_login, registry_logins) = (login(model), registry_logins(model));
            return SecretsNeeded { artifacts_login, registry_logins, ..SecretsNeeded::default() };
        }
        Effect::Provisions => {}
        Effect::Removes | Effect::Copies | Effect::Maintains | Effect::Looks => return SecretsNeeded::default(),
    }
    let has = |step: Step| model.steps.contains(&step);
    let hosts_in = |group: Group| hosts_in(model, group);
    let rotates = has(Step::CertificateAuthorities);
    let control_plane = (has(Step::ControlPlane) || rotates) && hosts_in(Group::KubeControlPlane).next().is_some();
    let encryption = [Step::KmsPlugin, Step::RewriteSecrets, Step::ReleaseControlPlane].into_iter().any(has);
    let is_external = is_external(model);
    let etcd = has(Step::Etcd) || has(Step::ControlPlane);
    let etcd_hosts: BTreeSet<String> = if etcd { hosts_in(Group::Etcd).collect() } else { BTreeSet::new() };
    let no_member = etcd_hosts.is_empty() && !control_plane;
    SecretsNeeded {
        control_plane,
        encryption: encryption && !control_plane && hosts_in(Group::KubeControlPlane).next().is_some(),
        etcd_hosts,
        etcd_members: if no_member { Vec::new() } else { etcd_members(model) },
        etcd_client: is_external
            && [Step::Preflight, Step::ControlPlane, Step::EtcdEndpoints, Step::CertificateAuthorities]
                .into_iter()
                .any(has)
            && hosts_in(Group::KubeControlPlane).next().is_some(),
        kubelets: [Group::KubeControlPlane, Group::KubeNode]
            .into_iter()
            .filter(|_| rotates)
            .flat_map(hosts_in)
            .collect(),
        join_hosts: [(Step::ControlPlane, Group::KubeControlPlane), (Step::Node, Group::KubeNode)]
            .into_iter()
            .filter(|(step, _)| has(*step))
            .flat_map(|(_, group)| hosts_in(group))
            .collect(),
        apiserver_client: control_plane && !is_external,
        authority: plane::is_of_plane(&model.vars) && has(Step::LoadBalancer),
        karmada_part: has(Step::KarmadaService),
        backup: false,
        staging,
        artifacts_login: login(model),
        registry_logins: registry_logins(model),
    }
}

/// The registries to whose mirrors the run's machines are to log in.
fn registry_logins(model: &RunInputs) -> Vec<String> {
    if model.steps.contains(&Step::ContainerRuntime) { registries::logins(&model.vars) } else { Vec::new() }
}

/// Whether the login of the artifact source is needed.
fn login(model: &RunInputs) -> bool {
    model.steps.iter().any(|step| step.spec().downloads) && artifacts::has_login(&model.vars)
}

/// Leaf certificates of the cluster's own etcd: kubeadm renews all others with the authorities on the machine.
fn to_renew(model: &RunInputs) -> SecretsNeeded {
    if is_external(model) {
        return SecretsNeeded::default();
    }
    SecretsNeeded {
        etcd_hosts: hosts_in(model, Group::Etcd).collect(),
        etcd_members: etcd_members(model),
        apiserver_client: hosts_in(model, Group::KubeControlPlane).next().is_some(),
        ..SecretsNeeded::default()
    }
}

fn hosts_in(model: &RunInputs, group: Group) -> impl Iterator<Item = String> + '_ {
    let hosts = model.hosts.iter().filter(move |(_, host)| host.groups.contains(&group));
    hosts.map(|(name, _)| name.clone())
}

fn is_external(model: &RunInputs) -> bool {
    model.vars.get(EXTERNAL.0).is_some_and(|topology| topology == EXTERNAL.1)
}

/// The members as the variable `etcd_members` has them.
fn etcd_members(model: &RunInputs) -> Vec<(String, String)> {
    let members = model.vars.get("etcd_members").and_then(serde_json::Value::as_array);
    let member = |member: &serde_json::Value| {
        let text = |key: &str| member.get(key).and_then(serde_json::Value::as_str);
        let address = text("client_url")?.strip_prefix("https://")?.rsplit_once(':')?.0;
        Some((text("host")?.to_owned(), address.trim_matches(['[', ']']).to_owned()))
    };
    members.into_iter().flatten().filter_map(member).collect()
}

/// Names of the Hosts that building a model must look at: the run's, the machines', and the bastions of those given.
pub fn hosts_to_observe<'a>(
    run: &'a PlaybookRun,
    machines: &'a [Machine],
    hosts: &'a BTreeMap<String, Host>,
) -> BTreeSet<&'a str> {
    let of_machines =
        machines.iter().filter_map(|machine| machine.spec.host_ref.as_ref()).map(|host| host.name.as_str());
    let bastions = hosts.values().filter_map(|host| host.spec.ssh.bastion_ref.as_ref()).map(|host| host.name.as_str());
    run.spec.hosts.iter().map(String::as_str).chain(of_machines).chain(bastions).collect()
}

#[cfg(test)]
mod tests;
