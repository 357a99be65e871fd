//! Gathers what a run's model is built from, and compares it with what is frozen already.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::Reason;
use crds::cluster_deployment::Artifacts;
use crds::inputs::MODEL_FILE;
use crds::references::LocalRef;
use crds::{ClusterDeployment, FormerRef, Host, KarmadaDeployment, PlaybookRun};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use plan::configuration::files::FILES;
use plan::hooks::Library;
use plan::inputs::artifacts::{self, ArtifactsSeen};
use plan::inputs::{
    ClusterSeen, Credentials, InputsObserved, InputsProblem, PlaneMachines, Registries, build, classify,
    hosts_to_observe, lock_of, registry_digests, secrets_needed,
};
use plan::playbook_run::InputsSeen;
use plan::rotation::Authorities;
use plan::settings::Contents;
use plan::undecodable::Undecodable;

use super::ownership::{named_as, taken};
use super::{backup, etcd_client, registries, restore, secrets};
use crate::cluster_deployment::pki_owner;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::former::Former;
use crate::karmada_deployment::pki_owner as plane_pki_owner;
use crate::{live, pki};

/// Looks at the run's inputs: what is to be frozen, or was frozen just so before a pass was cut off.
pub(super) async fn look(ctx: &Context, run: &PlaybookRun, former: Option<&Former>) -> Result<InputsSeen, Error> {
    if let Some(problem) = taken(ctx, run).await? {
        return Ok(InputsSeen::Problem(problem));
    }
    let built = gather(ctx, run, former).await?;
    let built = built.unwrap_or_else(InputsSeen::Problem);
    Ok(match (frozen(ctx, run).await?, built) {
        // Nothing is started from a text that somebody else may have put there.
        (Some(frozen), InputsSeen::Model { text, .. }) if frozen != text => {
            InputsSeen::Problem(InputsProblem::changed(&run.name_any()))
        }
        (_, built) => built,
    })
}

/// What an earlier pass froze before it was cut off.
async fn frozen(ctx: &Context, run: &PlaybookRun) -> Result<Option<String>, Error> {
    let map = named_as::<ConfigMap>(ctx, run).await?;
    let text = |map: ConfigMap| map.data.and_then(|mut data| data.remove(MODEL_FILE));
    Ok(map.map(|map| text(map).unwrap_or_default()))
}

async fn gather(
    ctx: &Context,
    run: &PlaybookRun,
    former: Option<&Former>,
) -> Result<Result<InputsSeen, InputsProblem>, Error> {
    let namespace = run.namespace().unwrap_or_default();
    let deployment = former.and_then(Former::deployment);
    let of_cluster = run.spec.cluster_name.as_deref();
    let matters = |object: &Undecodable| {
        run.spec.hosts.contains(&object.name)
            || of_cluster.is_some_and(|cluster| ctx.cache.concerns(object, &namespace, cluster))
    };
    let cluster = match deployment {
        Some(deployment) => match cluster_seen(ctx, run, deployment).await? {
            Ok(cluster) => Some(cluster),
            Err(problem) => return Ok(Err(problem)),
        },
        None => None,
    };
    let plane = match former {
        Some(Former::Plane(object)) => match plane_machines(ctx, run, object).await? {
            Ok(plane) => plane,
            Err(problem) => return Ok(Err(problem)),
        },
        Some(Former::Cluster(_)) | None => None,
    };
    let of_plane = plane.as_ref().map(|plane| plane.machines.as_slice());
    let machines = cluster.as_ref().map(|cluster| cluster.machines.as_slice()).or(of_plane).unwrap_or_default();
    let hosts = hosts(ctx, &namespace, hosts_to_observe(run, machines, &BTreeMap::new()), matters).await?;
    let needed = hosts_to_observe(run, machines, &hosts);
    let credentials =
        credentials(ctx, &namespace, hosts.values().filter(|host| needed.contains(host.name_any().as_str()))).await?;
    let library = library(ctx, &namespace, run.spec.playbooks_ref.as_ref()).await?;
    let backup = backup::seen(ctx, run, deployment).await?;
    let restore = restore::seen(ctx, run, former).await?;
    let observed = InputsObserved {
        run,
        cluster: cluster.as_ref(),
        plane: plane.as_ref(),
        hosts: &hosts,
        credentials: &credentials,
        library: library.as_ref(),
        backup: backup.as_ref(),
        restore: restore.as_ref(),
    };
    let model = match build(&observed) {
        Ok(model) => model,
        Err(problem) => return Ok(Err(problem)),
    };
    if let Some(deployment) = deployment
        && !secrets_needed(&model).join_hosts.is_empty()
        && secrets::mints_tokens(run.spec.intent)
        && ctx.remote.client(&namespace, &deployment.name_any()).is_none()
    {
        let message = format!("waits for the API of cluster {}: a token to join is made there", deployment.name_any());
        return Ok(Err(InputsProblem::waits(Reason::ClusterUnreachable, message)));
    }
    let text = serde_json::to_string(&model).doing(|| "write the model".into())?;
    let settings = cluster.as_ref().map(|cluster| {
        let contents = Contents {
            network: cluster.network_manifests.clone(),
            etcd_client: cluster.etcd_client.clone(),
            files: cluster.configuration_files.clone(),
            registries: registry_digests(&cluster.registries),
        };
        plan::settings::frozen(cluster.deployment, run.spec.intent, &contents, &cluster.authorities)
    });
    Ok(Ok(InputsSeen::Model { text, model: Box::new(model), settings }))
}

/// These Hosts, and those that they are reached through.
async fn hosts(
    ctx: &Context,
    namespace: &str,
    names: BTreeSet<&str>,
    matters: impl Fn(&Undecodable) -> bool,
) -> Result<BTreeMap<String, Host>, Error> {
    let mut wanted: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
    let mut asked = BTreeSet::new();
    let mut hosts = BTreeMap::new();
    while !wanted.is_empty() {
        let found: Vec<Arc<Host>> = live::named(ctx, namespace, &wanted, &matters).await?;
        asked.append(&mut wanted);
        for host in found {
            let bastion = host.spec.ssh.bastion_ref.as_ref().map(|bastion| bastion.name.clone());
            wanted.extend(bastion.filter(|name| !asked.contains(name)));
            hosts.insert(host.name_any(), Arc::unwrap_or_clone(host));
        }
    }
    Ok(hosts)
}

async fn cluster_seen<'a>(
    ctx: &Context,
    run: &PlaybookRun,
    deployment: &'a ClusterDeployment,
) -> Result<Result<ClusterSeen<'a>, InputsProblem>, Error> {
    let namespace = run.namespace().unwrap_or_default();
    let name = deployment.name_any();
    let machines = live::machines(ctx, &namespace, &name).await?;
    let machines = machines.into_iter().map(Arc::unwrap_or_clone).collect();
    let needs_cluster = run.spec.intent.spec().effect.needs_wanted();
    let mut ca_cert_hash = None;
    let mut authorities = Authorities::default();
    if needs_cluster {
        let Some(pki) = pki::read(ctx, &pki_owner(deployment)).await? else {
            let message = plan::cluster_deployment::pki::missing(deployment);
            return Ok(Err(InputsProblem::waits(Reason::PKIMissing, message)));
        };
        authorities = pki.seen();
        ca_cert_hash = Some(pki.ca_cert_hash().doing(|| format!("hash the certificate authority of cluster {name}"))?);
    }
    let network = deployment.spec.networking.plugin.manifests_ref.as_ref();
    let manifests = async |reference: Option<&LocalRef>| match reference.filter(|_| needs_cluster) {
        Some(reference) => manifests(ctx, &namespace, &reference.name).await,
        None => Ok(Ok(BTreeMap::new())),
    };
    let network = manifests(network).await?;
    let files = match needs_cluster {
        true => configuration_files(ctx, deployment).await?,
        false => Ok(BTreeMap::new()),
    };
    let source = deployment.spec.artifacts.as_ref().filter(|_| needs_cluster);
    let artifacts = match source {
        Some(source) => artifacts_seen(ctx, &namespace, source).await?,
        None => Ok(ArtifactsSeen::default()),
    };
    let registries = match needs_cluster {
        true => registries::seen(ctx, deployment).await?,
        false => Ok(Registries::new()),
    };
    let etcd_client = match needs_cluster {
        true => etcd_client::digest(ctx, deployment).await?.transpose(),
        false => Ok(None),
    };
    let seen = || {
        Ok(ClusterSeen {
            etcd_client: etcd_client?,
            artifacts: artifacts?,
            registries: registries?,
            deployment,
            machines,
            ca_cert_hash,
            authorities,
            network_manifests: network?,
            configuration_files: files?,
        })
    };
    Ok(seen())
}

/// A plane on machines; none: it says nothing of machines.
async fn plane_machines<'a>(
    ctx: &Context,
    run: &PlaybookRun,
    object: &'a KarmadaDeployment,
) -> Result<Result<Option<PlaneMachines<'a>>, InputsProblem>, Error> {
    let namespace = run.namespace().unwrap_or_default();
    let Some(binary) = &object.spec.binary else { return Ok(Ok(None)) };
    let machines = live::machines_of(ctx, &namespace, FormerRef::plane(&object.name_any())).await?;
    let machines = machines.into_iter().map(Arc::unwrap_or_clone).collect();
    if !run.spec.intent.spec().effect.needs_wanted() {
        return Ok(Ok(Some(PlaneMachines { object, binary, machines, artifacts: ArtifactsSeen::default() })));
    }
    if pki::read(ctx, &plane_pki_owner(object)).await?.is_none() {
        let message = plan::karmada_deployment::pki::missing(object);
        return Ok(Err(InputsProblem::waits(Reason::PKIMissing, message)));
    }
    let artifacts = artifacts_seen(ctx, &namespace, &binary.artifacts).await?;
    Ok(artifacts.map(|artifacts| Some(PlaneMachines { object, binary, machines, artifacts })))
}

/// The files that the configuration of a control plane refers to, by their keys.
pub(crate) async fn configuration_files(
    ctx: &Context,
    deployment: &ClusterDeployment,
) -> Result<Result<BTreeMap<String, String>, InputsProblem>, Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let mut contents = BTreeMap::new();
    for file in &FILES {
        let Some(LocalRef { name }) = file.reference(deployment) else { continue };
        let map = live::get::<ConfigMap>(ctx, &namespace, name).await?;
        match file.content(name, map) {
            Ok(content) => contents.insert(file.key.to_owned(), content),
            Err(problem) => return Ok(Err(problem)),
        };
    }
    Ok(Ok(contents))
}

/// What the references of the artifact source lead to.
pub(crate) async fn artifacts_seen(
    ctx: &Context,
    namespace: &str,
    source: &Artifacts,
) -> Result<Result<ArtifactsSeen, InputsProblem>, Error> {
    let mut seen = ArtifactsSeen::default();
    if let Some(LocalRef { name }) = &source.ca_ref {
        let map = live::get::<ConfigMap>(ctx, namespace, name).await?;
        match artifacts::ca_of("spec.artifacts.caRef", name, map.as_ref()) {
            Ok(ca) => seen.ca = Some(ca),
            Err(problem) => return Ok(Err(problem)),
        }
    }
    if let Some(LocalRef { name }) = &source.credentials_ref {
        let secret = live::get::<Secret>(ctx, namespace, name).await?;
        match artifacts::login_of(artifacts::CREDENTIALS, name, secret.as_ref()) {
            Ok(login) => seen.login = Some(login),
            Err(problem) => return Ok(Err(problem)),
        }
    }
    if let Some(LocalRef { name }) = &source.lock_ref {
        let map = live::get::<ConfigMap>(ctx, namespace, name).await?;
        match lock_of(name, map.as_ref()) {
            Ok(lock) => seen.lock = Some(lock),
            Err(problem) => return Ok(Err(problem)),
        }
    }
    Ok(Ok(seen))
}

pub(crate) async fn manifests(
    ctx: &Context,
    namespace: &str,
    name: &str,
) -> Result<Result<BTreeMap<String, String>, InputsProblem>, Error> {
    let map = live::get::<ConfigMap>(ctx, namespace, name).await?;
    Ok(match map {
        // Passing it over would leave out what somebody wanted applied, without a word.
        Some(map) if map.binary_data.as_ref().is_some_and(|data| !data.is_empty()) => {
            let keys: Vec<String> = map.binary_data.unwrap_or_default().into_keys().collect();
            let message =
                format!("ConfigMap {name}: binaryData {}: manifests are text: put them into data", keys.join(", "));
            Err(InputsProblem::waits(Reason::ManifestsNotText, message))
        }
        Some(map) => Ok(map.data.unwrap_or_default()),
        None => {
            let message = format!("ConfigMap {name} with manifests is not there: make it");
            Err(InputsProblem::waits(Reason::ConfigMapNotFound, message))
        }
    })
}

/// The ConfigMap of custom playbooks that is referred to, as it is.
pub(crate) async fn library(
    ctx: &Context,
    namespace: &str,
    reference: Option<&LocalRef>,
) -> Result<Option<Library>, Error> {
    let Some(LocalRef { name }) = reference else {
        return Ok(None);
    };
    let map = live::get::<ConfigMap>(ctx, namespace, name).await?;
    let (data, binary) = match map {
        Some(map) => (Some(map.data.unwrap_or_default()), map.binary_data.unwrap_or_default()),
        None => (None, BTreeMap::new()),
    };
    Ok(Some(Library { config_map: name.clone(), data, binary: binary.into_keys().collect() }))
}

/// What the Secrets hold that these Hosts refer to.
pub(crate) async fn credentials<'a>(
    ctx: &Context,
    namespace: &str,
    hosts: impl Iterator<Item = &'a Host>,
) -> Result<Credentials, Error> {
    let names: BTreeSet<&str> = hosts.map(|host| host.spec.ssh.credentials_ref.name.as_str()).collect();
    let mut credentials = Credentials::new();
    for name in names {
        let secret = live::get::<Secret>(ctx, namespace, name).await?;
        credentials.insert(name.to_owned(), classify(name, secret.as_ref()));
    }
    Ok(credentials)
}
