//! What is observed of a cluster: the ClusterDeployment from the API, since its lock is decided by it, and what belongs
//! to the cluster from the cache, or from the API itself where something cannot be undone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::cluster_deployment::RecoveryStrategy;
use crds::names::{self, annotation};
use crds::references::LocalRef;
use crds::{
    Addon, Cluster, ClusterDeployment, ClusterDeploymentStatus, EtcdBackup, EtcdBackupSchedule, EtcdRestore, FormerRef,
    Host, KarmadaDeployment, Machine, MachineSet, PlaybookRun, RemediationPolicy,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Resource, ResourceExt};
use plan::Plan;
use plan::cluster::NodeSeen;
use plan::cluster_deployment::pki::TABLE;
use plan::cluster_deployment::{Action, Observed};
use plan::hooks::Library;
use plan::inputs::{InputsProblem, registry_digests};
use plan::key_transfer::RestoringSeen;
use plan::naming;
use plan::rotation::own::OwnAuthorities;
use plan::rotation::{self, Authorities};
use plan::settings::{self, Manifests};
use plan::undecodable::Undecodable;

use super::{pki_owner, restoring};
use crate::cache::{IndexKey, refs};
use crate::context::Context;
use crate::error::Error;
use crate::reconcile::now;
use crate::{live, pki, playbook_run};

/// What is known of a cluster.
pub(crate) struct Observation {
    pub(super) now: Timestamp,
    resumed_at: Option<Timestamp>,
    pub(super) deployment: ClusterDeployment,
    belongings: Belongings,
    deployments: Vec<Arc<ClusterDeployment>>,
    policies: Vec<Arc<RemediationPolicy>>,
    restores: Vec<Arc<EtcdRestore>>,
    planes: Vec<Arc<KarmadaDeployment>>,
    schedules: Vec<Arc<EtcdBackupSchedule>>,
    backups: Vec<Arc<EtcdBackup>>,
    restoring: RestoringSeen,
    library: Option<Library>,
    cluster: Option<Arc<Cluster>>,
    addon: Option<Arc<Addon>>,
    forgotten_nodes: Option<Vec<NodeSeen>>,
    manifests: Manifests,
    etcd_client: Option<Result<String, InputsProblem>>,
    secrets: SecretsSeen,
}

/// What is known of the Secrets with the cluster's keys and with its administrator's kubeconfig.
#[derive(Default)]
struct SecretsSeen {
    /// None: there is no Secret with keys.
    authorities: Option<Authorities>,
    own_authorities: Option<Result<OwnAuthorities, InputsProblem>>,
    has_kubeconfig: bool,
    kubeconfig_authority: Option<String>,
}

/// Objects that belong to a cluster, or may.
pub(super) struct Belongings {
    pub sets: Vec<Arc<MachineSet>>,
    pub machines: Vec<Arc<Machine>>,
    pub hosts: Vec<Arc<Host>>,
    pub runs: Vec<Arc<PlaybookRun>>,
}

impl Observation {
    /// As the caches show it; `None` when the ClusterDeployment is gone.
    pub(super) async fn cached(ctx: &Context, cached: &ClusterDeployment) -> Result<Option<Self>, Error> {
        let (namespace, name) = (cached.namespace().unwrap_or_default(), cached.name_any());
        let Some(deployment) = live::get::<ClusterDeployment>(ctx, &namespace, &name).await? else {
            return Ok(None);
        };
        let mut observed = Self {
            now: now(),
            resumed_at: ctx.resumed_at(),
            cluster: ctx.cache.clusters.get(&namespace, &name),
            addon: ctx.cache.addons.get(&namespace, &naming::own_addon(&name)),
            // Boxed: three more Secrets in one future are more than a test's stack takes.
            secrets: Box::pin(secrets_seen(ctx, &deployment)).await?,
            deployments: ctx.cache.cluster_deployments.everywhere(),
            policies: ctx.cache.policies.list(&namespace, |_| true),
            restores: ctx.cache.etcd_restores.of_cluster(&namespace, &name),
            backups: own_backups(ctx, &deployment),
            restoring: restoring::seen(ctx, &deployment).await?,
            planes: ctx.cache.karmada_deployments.list(&namespace, |_| true),
            schedules: ctx.cache.etcd_backup_schedules.list(&namespace, |_| true),
            library: library(ctx, &deployment).await?,
            manifests: manifests(ctx, &deployment).await?,
            etcd_client: playbook_run::etcd_client::digest(ctx, &deployment).await?,
            forgotten_nodes: forgotten_nodes(ctx, &deployment),
            belongings: cached_belongings(ctx, &deployment),
            deployment,
        };
        observed.find_holders(ctx).await?;
        Ok(Some(observed))
    }

    /// What belongs to the cluster, from the API.
    pub(super) async fn live(self, ctx: &Context) -> Result<Self, Error> {
        let belongings = live_belongings(ctx, &self.deployment).await?;
        // A plane may have begun to make the cluster its member just before it was to be deleted.
        let is_going = self.deployment.metadata.deletion_timestamp.is_some();
        let planes = match is_going && !self.planes.is_empty() {
            true => live_planes(ctx, &self.deployment).await?,
            false => self.planes,
        };
        Ok(Self { now: now(), belongings, planes, ..self })
    }

    pub(super) fn decide(&self) -> Plan<Action, ClusterDeploymentStatus> {
        plan::cluster_deployment::plan(&Observed {
            now: self.now,
            resumed_at: self.resumed_at,
            deployment: &self.deployment,
            sets: &refs(&self.belongings.sets),
            machines: &refs(&self.belongings.machines),
            hosts: &refs(&self.belongings.hosts),
            runs: &refs(&self.belongings.runs),
            deployments: &refs(&self.deployments),
            policies: &refs(&self.policies),
            restores: &refs(&self.restores),
            planes: &refs(&self.planes),
            schedules: &refs(&self.schedules),
            backups: &refs(&self.backups),
            restoring: &self.restoring,
            library: self.library.as_ref(),
            cluster: self.cluster.as_deref(),
            addon: self.addon.as_deref(),
            forgotten_nodes: self.forgotten_nodes.as_deref(),
            manifests: &self.manifests,
            etcd_client: self.etcd_client.as_ref(),
            pki: self.secrets.authorities.is_some(),
            authorities: self.secrets.authorities.as_ref().unwrap_or(&Authorities::default()),
            own_authorities: self.secrets.own_authorities.as_ref(),
            kubeconfig: self.secrets.has_kubeconfig,
            kubeconfig_authority: self.secrets.kubeconfig_authority.as_deref(),
        })
    }

    /// Reads the runs that hold the lock and that the cache does not show: only one that is gone lets go of it
    /// unheard.
    async fn find_holders(&mut self, ctx: &Context) -> Result<(), Error> {
        let namespace = self.deployment.namespace().unwrap_or_default();
        let cluster = self.deployment.name_any();
        for held in self.deployment.status.iter().flat_map(|status| &status.operations) {
            if self.belongings.runs.iter().any(|run| run.name_any() == held.run) {
                continue;
            }
            let found = live::get::<PlaybookRun>(ctx, &namespace, &held.run).await?;
            let found = found.filter(|run| run.spec.former() == Some(FormerRef::cluster(&cluster)));
            self.belongings.runs.extend(found.map(Arc::new));
        }
        Ok(())
    }
}

fn cached_belongings(ctx: &Context, deployment: &ClusterDeployment) -> Belongings {
    let (cache, namespace, name) = (&ctx.cache, deployment.namespace().unwrap_or_default(), deployment.name_any());
    let mut sets = cache.machine_sets.of_cluster(&namespace, &name);
    sets.extend(namesakes(ctx, deployment));
    Belongings {
        sets,
        machines: cache.machines.of_cluster(&namespace, &name),
        hosts: cache.hosts.list(&namespace, |_| true),
        runs: cache.runs.of_cluster(&namespace, &name),
    }
}

/// MachineSets of other clusters that have a name that this one needs, as the cache shows them.
fn namesakes(ctx: &Context, deployment: &ClusterDeployment) -> Vec<Arc<MachineSet>> {
    let namespace = deployment.namespace().unwrap_or_default();
    let named = deployment.set_names().into_iter().filter_map(|name| ctx.cache.machine_sets.get(&namespace, &name));
    named.filter(|set| set.spec.former() != FormerRef::cluster(&deployment.name_any())).collect()
}

pub(super) async fn live_belongings(ctx: &Context, deployment: &ClusterDeployment) -> Result<Belongings, Error> {
    let (namespace, name) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
    let machines = live::machines(ctx, &namespace, &name).await?;
    let mut sets = live::machine_sets(ctx, &namespace, &name).await?;
    sets.extend(namesakes(ctx, deployment));
    Ok(Belongings {
        sets,
        hosts: live_hosts(ctx, &namespace, &name, &machines).await?,
        machines,
        runs: live::runs(ctx, &namespace, &name).await?,
    })
}

/// The KarmadaDeployments of the namespace, from the API.
async fn live_planes(ctx: &Context, deployment: &ClusterDeployment) -> Result<Vec<Arc<KarmadaDeployment>>, Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    // One that cannot be decoded holds no deletion up: it goes on with the members that it has.
    live::list(ctx, &namespace, &ListParams::default(), |_| false).await
}

/// The Hosts that the cluster's Machines hold or name, and those that are quarantined, from the API; all others, which
/// nothing is done to, as the cache shows them.
async fn live_hosts(
    ctx: &Context,
    namespace: &str,
    cluster: &str,
    machines: &[Arc<Machine>],
) -> Result<Vec<Arc<Host>>, Error> {
    let mut hosts = ctx.cache.hosts.list(namespace, |_| true);
    let uids: BTreeSet<&str> = machines.iter().filter_map(|machine| machine.metadata.uid.as_deref()).collect();
    let named = machines.iter().filter_map(|machine| Some(machine.spec.host_ref.as_ref()?.name.clone()));
    let is_in_question = |host: &&Arc<Host>| {
        let holder = host.spec.claim_ref.as_ref().map(|claim| claim.uid.as_str());
        host.spec.quarantine.is_some() || holder.is_some_and(|holder| uids.contains(holder))
    };
    let in_question = hosts.iter().filter(is_in_question).map(|host| host.name_any());
    let names: BTreeSet<String> = named.chain(in_question).collect();
    let matters = |object: &Undecodable| ctx.cache.concerns(object, namespace, cluster);
    let live: Vec<Arc<Host>> = live::named(ctx, namespace, &names, matters).await?;
    hosts.retain(|host| !names.contains(&host.name_any()));
    hosts.extend(live);
    hosts.sort_by(|one, other| one.meta().name.cmp(&other.meta().name));
    Ok(hosts)
}

/// Backups of the cluster: all of them where one may be wanted before an upgrade or a rotation, else what was stored,
/// where it may begin anew with it.
fn own_backups(ctx: &Context, deployment: &ClusterDeployment) -> Vec<Arc<EtcdBackup>> {
    let (namespace, name) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
    let started = deployment.status.as_ref().and_then(|status| status.started_kubernetes_version);
    let is_upgraded = started.is_some_and(|started| started != deployment.spec.kubernetes_version);
    let may_rotate =
        rotation::request::asked(&deployment.metadata).is_some() || deployment.spec.certificates.ca_ref.is_some();
    if is_upgraded || may_rotate {
        return ctx.cache.etcd_backups.list(&namespace, |backup| backup.spec.cluster_name.as_ref() == Some(&name));
    }
    if deployment.spec.recovery.strategy != RecoveryStrategy::RestoreLatest {
        return Vec::new();
    }
    ctx.cache.etcd_backups.with(&namespace, &IndexKey::Stored(name))
}

/// The Nodes of the machines that the status remembers as forgotten; `None` while nothing is known of the cluster's
/// Nodes.
fn forgotten_nodes(ctx: &Context, deployment: &ClusterDeployment) -> Option<Vec<NodeSeen>> {
    let (namespace, cluster) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
    let forgotten = &deployment.status.as_ref()?.forgotten;
    // Of whom nothing is remembered nothing is known.
    forgotten.first()?;
    let nodes: Option<Vec<Option<NodeSeen>>> =
        forgotten.iter().map(|machine| ctx.remote.node(&namespace, &cluster, &machine.host)).collect();
    nodes.map(|nodes| nodes.into_iter().flatten().collect())
}

/// The ConfigMap of custom playbooks, where hooks name it.
async fn library(ctx: &Context, deployment: &ClusterDeployment) -> Result<Option<Library>, Error> {
    let executor = deployment.spec.executor.as_ref();
    let reference = executor.and_then(|executor| executor.custom_playbooks_ref.as_ref());
    let namespace = deployment.namespace().unwrap_or_default();
    let wanted = reference.filter(|_| deployment.spec.hooks.is_some());
    playbook_run::inputs::library(ctx, &namespace, wanted).await
}

/// What the ConfigMaps with manifests hold; what cannot be read is not known.
async fn manifests(ctx: &Context, deployment: &ClusterDeployment) -> Result<Manifests, Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let digest = async |reference: Option<&LocalRef>| -> Result<Option<String>, Error> {
        let Some(reference) = reference else {
            return Ok(Some(settings::digest(&BTreeMap::<String, String>::new())));
        };
        let found = playbook_run::inputs::manifests(ctx, &namespace, &reference.name).await?;
        Ok(found.ok().map(|data| settings::digest(&data)))
    };
    let spec = &deployment.spec;
    Ok(Manifests {
        network: digest(spec.networking.plugin.manifests_ref.as_ref()).await?,
        files: playbook_run::inputs::configuration_files(ctx, deployment).await?.ok(),
        registries: playbook_run::registries::seen(ctx, deployment).await?.ok().map(|seen| registry_digests(&seen)),
    })
}

async fn secrets_seen(ctx: &Context, deployment: &ClusterDeployment) -> Result<SecretsSeen, Error> {
    let (namespace, cluster) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
    let keys = there(ctx, &namespace, &names::pki_secret(&cluster)).await?;
    let kubeconfig = there(ctx, &namespace, &names::kubeconfig_secret(&cluster)).await?;
    let own = pki::own::read(ctx, &pki_owner(deployment)).await?;
    let own = own.map(|own| own.and_then(|own| pki::own::seen(&own, TABLE, keys.as_ref())));
    let made_with = kubeconfig.as_ref().and_then(|secret| secret.annotations().get(annotation::AUTHORITY).cloned());
    Ok(SecretsSeen {
        authorities: keys.map(|keys| pki::rotation::seen(&keys, TABLE)),
        own_authorities: own,
        has_kubeconfig: kubeconfig.is_some(),
        kubeconfig_authority: made_with,
    })
}

/// A Secret that is not about to go.
async fn there(ctx: &Context, namespace: &str, name: &str) -> Result<Option<Secret>, Error> {
    let secret = live::get::<Secret>(ctx, namespace, name).await?;
    Ok(secret.filter(|secret| secret.metadata.deletion_timestamp.is_none()))
}
