//! What a run's Pod finds in its directories.

use crds::inputs::MODEL_FILE;
use crds::playbook_run::FrozenInputs;
use k8s_openapi::api::core::v1::{
    ConfigMapProjection, ConfigMapVolumeSource, DownwardAPIProjection, DownwardAPIVolumeFile, EmptyDirVolumeSource,
    KeyToPath, ObjectFieldSelector, PersistentVolumeClaimVolumeSource, ProjectedVolumeSource, SecretVolumeSource,
    ServiceAccountTokenProjection, Volume, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Life of a token; the kubelet has it renewed. One that Kubernetes mounts by itself lives for a year.
const TOKEN_SECONDS: i64 = 1800;

/// The model, the secrets, the way to the API, a place in memory, and the volume of a storage.
pub(super) fn volumes(inputs: &FrozenInputs, claim: Option<&str>) -> Vec<Volume> {
    let volume = |name: &str| Volume { name: name.into(), ..Volume::default() };
    let mut volumes = vec![
        Volume {
            empty_dir: Some(EmptyDirVolumeSource {
                medium: Some("Memory".into()),
                size_limit: Some(Quantity("512Mi".into())),
            }),
            ..volume("work")
        },
        Volume {
            config_map: Some(ConfigMapVolumeSource {
                name: inputs.config_map.clone(),
                items: Some(vec![KeyToPath { key: MODEL_FILE.into(), path: MODEL_FILE.into(), mode: None }]),
                ..ConfigMapVolumeSource::default()
            }),
            ..volume("model")
        },
        Volume {
            secret: Some(SecretVolumeSource {
                secret_name: Some(inputs.secret.clone()),
                default_mode: Some(0o440),
                ..SecretVolumeSource::default()
            }),
            ..volume("secrets")
        },
        Volume { projected: Some(api_access()), ..volume("api-access") },
    ];
    volumes.extend(claim.map(claimed));
    volumes
}

/// The volume of a storage.
pub(crate) fn claimed(claim: &str) -> Volume {
    Volume {
        name: "backups".into(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource { claim_name: claim.into(), read_only: None }),
        ..Volume::default()
    }
}

/// What Kubernetes mounts by itself, but for the life of the token.
pub(crate) fn api_access() -> ProjectedVolumeSource {
    let path = |key: &str| KeyToPath { key: key.into(), path: key.into(), mode: None };
    let token =
        ServiceAccountTokenProjection { path: "token".into(), expiration_seconds: Some(TOKEN_SECONDS), audience: None };
    let authority =
        ConfigMapProjection { name: "kube-root-ca.crt".into(), items: Some(vec![path("ca.crt")]), optional: None };
    let namespace = DownwardAPIProjection {
        items: Some(vec![DownwardAPIVolumeFile {
            path: "namespace".into(),
            field_ref: Some(ObjectFieldSelector { api_version: None, field_path: "metadata.namespace".into() }),
            ..DownwardAPIVolumeFile::default()
        }]),
    };
    ProjectedVolumeSource {
        default_mode: Some(0o440),
        sources: Some(vec![
            VolumeProjection { service_account_token: Some(token), ..VolumeProjection::default() },
            VolumeProjection { config_map: Some(authority), ..VolumeProjection::default() },
            VolumeProjection { downward_api: Some(namespace), ..VolumeProjection::default() },
        ]),
    }
}
