//! Whether Pods of a plane can mount the storage that its backup is in.

use crds::{BackupStorage, KarmadaDeployment, ObjectExt};

/// Why they cannot; none: they can, it is a bucket, or it is not there.
pub(crate) fn not_mounted(object: &KarmadaDeployment, storage: Option<&BackupStorage>) -> Option<String> {
    // Runs on machines read it from Pods beside the KarmadaDeployment.
    let storage = storage.filter(|storage| storage.spec.volume.is_some() && object.spec.binary.is_none())?;
    let is_beside = object.spec.host_cluster_ref.is_none() && object.spec.host_namespace == object.namespace();
    (!is_beside).then(|| {
        format!(
            "BackupStorage {} is a volume of namespace {}, which Pods of namespace {} of the host cannot mount: copy the backup into a bucket",
            storage.name(),
            object.namespace(),
            object.spec.host_namespace
        )
    })
}
