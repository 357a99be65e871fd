//! Why what the API server's Pods are to have besides does not fit them. Names and paths of the plane's own are refused
//! by the schema.

use crds::karmada_deployment::{PlaneApiServer, PodPart};
use crds::{KarmadaDeployment, Reason};
use k8s_openapi::api::core::v1::{Container, Volume, VolumeMount};

use super::restricted::violation;
use super::typed::typed;
use crate::addon::Problem;
use crate::message::quote;

/// From what a volume may be: what the Pod Security Standard `restricted` allows.
const SOURCES: [&str; 8] =
    ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"];

/// The first thing that does not fit, with its field.
pub(in super::super) fn problem(object: &KarmadaDeployment) -> Option<Problem> {
    let wanted = &object.spec.api_server;
    let of = |field: &str, parts: &[PodPart], key: &str, check: &dyn Fn(&PodPart) -> Result<(), String>| {
        parts.iter().find_map(|part| {
            let why = quote(check(part).err()?);
            let name = part.get(key).and_then(|name| name.as_str()).unwrap_or_default();
            Some(format!("spec.apiServer.{field}: {name}: {why}"))
        })
    };
    let message = of("extraVolumes", &wanted.extra_volumes, "name", &volume)
        .or_else(|| of("extraVolumeMounts", &wanted.extra_volume_mounts, "mountPath", &|part| mount(wanted, part)))
        .or_else(|| of("sidecarContainers", &wanted.sidecar_containers, "name", &|part| container(wanted, part)))?;
    Some(Problem { reason: Reason::InvalidPodSpec, message })
}

fn volume(part: &PodPart) -> Result<(), String> {
    let read: Volume = typed(part)?;
    let given = part.iter().filter(|(field, value)| *field != "name" && !value.is_null());
    let given: Vec<&str> = given.map(|(field, _)| field.as_str()).collect();
    if !matches!(given.as_slice(), [source] if SOURCES.contains(source)) {
        let given = if given.is_empty() { "nothing".to_owned() } else { given.join(" and ") };
        return Err(format!("it is from {given}: a volume of a plane's Pods is from one of {}", SOURCES.join(", ")));
    }
    let sources = read.projected.and_then(|projected| projected.sources).unwrap_or_default();
    match sources.iter().any(|source| source.service_account_token.is_some()) {
        true => Err("projected.sources[].serviceAccountToken is a token of the host cluster, which a plane's Pods have none of: leave it out".to_owned()),
        false => Ok(()),
    }
}

fn mount(wanted: &PlaneApiServer, part: &PodPart) -> Result<(), String> {
    let read: VolumeMount = typed(part)?;
    is_of_extra_volumes(wanted, &read.name)
}

fn container(wanted: &PlaneApiServer, part: &PodPart) -> Result<(), String> {
    let read: Container = typed(part)?;
    if let Some(why) = violation(&read) {
        return Err(why);
    }
    let mounts = read.volume_mounts.iter().flatten().map(|mount| &mount.name);
    let devices = read.volume_devices.iter().flatten().map(|device| &device.name);
    mounts.chain(devices).try_for_each(|name| is_of_extra_volumes(wanted, name))
}

fn is_of_extra_volumes(wanted: &PlaneApiServer, name: &str) -> Result<(), String> {
    let there: Vec<&str> = wanted.extra_volumes.iter().filter_map(|volume| volume.get("name")?.as_str()).collect();
    match there.contains(&name) {
        true => Ok(()),
        false => {
            let there = if there.is_empty() {
                "none is given".to_owned()
            } else {
                format!("allowed is {}", there.join(" or "))
            };
            Err(format!("it mounts volume {name}, and only spec.apiServer.extraVolumes may be mounted: {there}"))
        }
    }
}
