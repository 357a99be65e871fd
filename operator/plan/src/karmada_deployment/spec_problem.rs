//! What keeps a plane from being worked on: wishes that cannot be met, or not yet. Each names the field and what to do.

use crds::karmada_deployment::ExternalEtcd;
use crds::names::{plane_control_plane_set, plane_etcd_set};
use crds::{KarmadaDeployment, MachineSet, ObjectExt, Reason};

use super::component::Component;
use super::machines::endpoint_problem;
use super::material::sources;
use super::observed::Observed;
use super::release::{RELEASES, Release};
use super::sidecars;
use crate::addon::Problem;

/// The first.
pub(super) fn find(observed: &Observed<'_>) -> Option<Problem> {
    version_unknown(observed.object)
        .or_else(|| setting_unknown(observed.object))
        .or_else(|| controllers_too_new(observed.object))
        .or_else(|| sidecars::problem(observed.object))
        .or_else(|| name_taken(observed))
        .or_else(|| etcd_in_use(observed))
        .or_else(|| host_missing(observed))
        .or_else(|| set_taken(observed))
        .or_else(|| endpoint_problem::problem(observed))
        .or_else(|| secret_missing(observed))
}

fn problem(reason: Reason, message: String) -> Option<Problem> {
    Some(Problem { reason, message })
}

fn version_unknown(object: &KarmadaDeployment) -> Option<Problem> {
    if Release::wanted(&object.spec).is_some() {
        return None;
    }
    let known: Vec<String> = RELEASES.iter().map(|one| format!("{}.{}", one.minor.0, one.minor.1)).collect();
    let version = object.spec.version.as_str();
    problem(Reason::SettingUnknown, format!("spec.version {version}: Karmada {} are known here", known.join(" and ")))
}

/// An unknown gate ends a program at its start; said before anything is changed, it ends nothing.
fn setting_unknown(object: &KarmadaDeployment) -> Option<Problem> {
    let (spec, release) = (&object.spec, Release::wanted(&object.spec)?);
    let of_all = spec.feature_gates.keys().map(|gate| ("spec".to_owned(), gate));
    let of_each = Component::every().filter(|component| component.is_of_karmada()).flat_map(|component| {
        let gates = component.settings(spec).into_iter().flat_map(|settings| settings.feature_gates.keys());
        gates.map(move |gate| (format!("spec.{}", component.field()), gate))
    });
    if let Some((field, gate)) = of_all.chain(of_each).find(|(_, gate)| !release.has_gate(gate)) {
        let version = spec.version.as_str();
        let message = format!("{field}.featureGates: Karmada {version} has no feature gate {gate}: take it out");
        return problem(Reason::SettingUnknown, message);
    }
    let given = Component::every().flat_map(|component| {
        let flags = component.settings(spec).into_iter().flat_map(|settings| settings.extra_args.keys());
        flags.map(move |flag| (component, flag.as_str()))
    });
    let is_absent = |(component, flag): &(Component, &str)| release.absent_flags.contains(&(component.field(), *flag));
    let (component, flag) = given.into_iter().find(is_absent)?;
    let (field, name, version) = (component.field(), component.name(), spec.version.as_str());
    let message = format!("spec.{field}.extraArgs: {name} {version} has no flag {flag}: take it out");
    problem(Reason::SettingUnknown, message)
}

/// Kubernetes' controllers may be a minor older than the API server, and never newer.
fn controllers_too_new(object: &KarmadaDeployment) -> Option<Problem> {
    let (spec, release) = (&object.spec, Release::wanted(&object.spec)?);
    let version = |component: Component| component.version(spec, release);
    let (api, controllers) = (version(Component::ApiServer), version(Component::KubeControllerManager));
    let minor = |text: &str| text.parse::<crds::ComponentVersion>().ok().map(|version| version.minor());
    let (api_minor, controllers_minor) = (minor(&api)?, minor(&controllers)?);
    let fits = api_minor.0 == controllers_minor.0
        && (0..=1).contains(&(i64::from(api_minor.1) - i64::from(controllers_minor.1)));
    if fits {
        return None;
    }
    let message = format!(
        "spec.kubeControllerManager.version is {controllers}, and that of spec.apiServer {api}: it must be of the same minor version, or one older"
    );
    problem(Reason::VersionSkewNotAllowed, message)
}

fn name_taken(observed: &Observed<'_>) -> Option<Problem> {
    let object = observed.object;
    if let Some(other) = observed.namesake {
        let message = format!(
            "{other} has this name, and its Secrets have the names that those of the plane would have: give the KarmadaDeployment another name"
        );
        return problem(Reason::NameTaken, message);
    }
    // One on machines has no place on a host cluster.
    if object.spec.binary.as_ref().is_some() {
        return None;
    }
    let has_place = |other: &&&KarmadaDeployment| {
        let host = |one: &KarmadaDeployment| {
            one.spec.host_cluster_ref.as_ref().map(|cluster| (one.namespace().to_owned(), cluster.name.clone()))
        };
        other.spec.binary.as_ref().is_none()
            && host(other) == host(object)
            && other.spec.host_namespace == object.spec.host_namespace
    };
    let other = earlier(observed).find(|other| has_place(&other))?;
    let (namespace, name) = (other.namespace(), other.name());
    let place = &object.spec.host_namespace;
    problem(
        Reason::NameTaken,
        format!(
            "spec.hostNamespace: {place} of the same host cluster is that of KarmadaDeployment {namespace}/{name}: delete this one, and make it with another"
        ),
    )
}

fn etcd_in_use(observed: &Observed<'_>) -> Option<Problem> {
    let own = observed.object.spec.etcd.external.as_ref()?;
    let is_within = |one: &str, other: &str| format!("{one}/").starts_with(&format!("{other}/"));
    let shares = |other: &ExternalEtcd| {
        let prefixes = (own.prefix.as_str(), other.prefix.as_str());
        own.endpoints.iter().any(|endpoint| other.endpoints.contains(endpoint))
            && (is_within(prefixes.0, prefixes.1) || is_within(prefixes.1, prefixes.0))
    };
    let other = earlier(observed).find(|other| other.spec.etcd.external.as_ref().is_some_and(shares))?;
    let (namespace, name) = (other.namespace(), other.name());
    problem(
        Reason::EtcdInUse,
        format!(
            "spec.etcd.external: KarmadaDeployment {namespace}/{name} has its data there below a prefix that {} is part of, or the other way round: make this one with another prefix",
            own.prefix
        ),
    )
}

/// Those that were there before: of two that want the same, the first has it.
fn earlier<'a>(observed: &'a Observed<'a>) -> impl Iterator<Item = &'a KarmadaDeployment> {
    let order = |one: &KarmadaDeployment| (one.created_at().map(|time| time.0), one.uid().to_owned());
    observed.others.iter().copied().filter(move |other| order(other) < order(observed.object))
}

/// A MachineSet of another one that has a name which the plane needs.
fn set_taken(observed: &Observed<'_>) -> Option<Problem> {
    let (object, name) = (observed.object, observed.object.name());
    object.spec.binary.as_ref()?;
    let needed = [plane_control_plane_set(name), plane_etcd_set(name)];
    let owns = |set: &MachineSet| set.metadata.owner_references.iter().flatten().any(|owner| owner.uid == object.uid());
    let sets = observed.machines.sets.iter();
    let foreign = sets.copied().find(|set| needed.iter().any(|name| name == set.name()) && !owns(set))?;
    let set = foreign.name();
    problem(
        Reason::NameTaken,
        format!(
            "MachineSet {set} is there and was not made for this plane: delete it, or make the plane under another name"
        ),
    )
}

fn host_missing(observed: &Observed<'_>) -> Option<Problem> {
    let reference = observed.object.spec.host_cluster_ref.as_ref()?;
    let message = || format!("spec.hostClusterRef: Cluster {} is not there", reference.name);
    if observed.host_cluster.is_some() { None } else { problem(Reason::ClusterNotFound, message()) }
}

fn secret_missing(observed: &Observed<'_>) -> Option<Problem> {
    sources(observed.object).into_iter().find_map(|source| {
        let (field, name) = (source.field, &source.name);
        let Some(files) = observed.material.secrets.get(name) else {
            return problem(Reason::SecretNotFound, format!("{field}: Secret {name} is not there"));
        };
        let missing = source.keys.iter().find(|key| files.get(key).is_none())?;
        problem(
            Reason::SecretNotFound,
            format!("{field}: Secret {name} has no key {missing}: it needs {}", source.keys.join(", ")),
        )
    })
}
