//! What the Pods of a plane's API server are given besides: volumes, mounts, and containers beside it. Each is as in a
//! PodSpec. The schema has what tells them apart from the plane's own; the rest is left to the operator, since the
//! schema of a container alone is as large as that of the kind.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

/// An object of a PodSpec: a volume, a mount, a container.
pub type PodPart = Map<String, Value>;

/// The volumes that the API server's Pods have anyway.
pub const OWN_VOLUMES: [&str; 2] = ["files", "tmp"];
/// Where the API server has them mounted.
pub const OWN_PATHS: [&str; 2] = ["/etc/karmada", "/tmp"];
/// The container that the API server is.
pub const API_SERVER_CONTAINER: &str = "kube-apiserver";

/// An RFC 1123 label.
const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// An absolute path without `.` and `..`.
const PATH: &str = "^(/[.]?[A-Za-z0-9_][-A-Za-z0-9_.]*)+$";

const VOLUME_RULE: &str = "!(self.name in ['files', 'tmp'])";
const VOLUME_MESSAGE: &str = "'apiServer.extraVolumes: ' + self.name + ' is the name of a volume of the plane, as files and tmp are: give it another name'";
const MOUNT_RULE: &str = "!['/etc/karmada', '/tmp'].exists(p, self.mountPath == p || self.mountPath.startsWith(p + '/') || p.startsWith(self.mountPath + '/'))";
const MOUNT_MESSAGE: &str = "'apiServer.extraVolumeMounts: ' + self.mountPath + ' is over, or in, /etc/karmada or /tmp, where the plane has its own: mount it elsewhere, e.g. at /srv/' + self.name";
const CONTAINER_RULE: &str = "self.name != 'kube-apiserver'";
const CONTAINER_MESSAGE: &str = "'apiServer.sidecarContainers: ' + self.name + ' is the name of the API server itself: give the container another name'";

/// CEL: mode `Binary` has no Pods.
pub(super) const MODE_RULE: &str = "self.mode != 'Binary' || !has(self.apiServer) || (!has(self.apiServer.extraVolumes) && !has(self.apiServer.extraVolumeMounts) && !has(self.apiServer.sidecarContainers))";
pub(super) const MODE_MESSAGE: &str = "apiServer: extraVolumes, extraVolumeMounts and sidecarContainers are of Pods, which mode Binary has none of: leave them out";

pub(super) fn volumes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": { "type": "string", "description": "Its name: an RFC 1123 label, not `files` or `tmp`.", "minLength": 1, "maxLength": 63, "pattern": LABEL },
            },
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{ "rule": VOLUME_RULE, "messageExpression": VOLUME_MESSAGE }],
        },
    })
}

pub(super) fn mounts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["mountPath"],
        "items": {
            "type": "object",
            "required": ["mountPath", "name"],
            "properties": {
                "mountPath": { "type": "string", "description": "Where: an absolute path outside of `/etc/karmada` and `/tmp`, and not above them.", "minLength": 2, "maxLength": 253, "pattern": PATH },
                "name": { "type": "string", "description": "The name of one of `extraVolumes`.", "minLength": 1, "maxLength": 63, "pattern": LABEL },
            },
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{ "rule": MOUNT_RULE, "messageExpression": MOUNT_MESSAGE }],
        },
    })
}

pub(super) fn containers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 8,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["image", "name"],
            "properties": {
                "image": { "type": "string", "description": "Its image. It is pulled as those of the plane are: `images.pullPolicy` (unless it has a policy of its own), `images.pullSecretRefs`.", "minLength": 1, "maxLength": 512 },
                "name": { "type": "string", "description": "Its name: an RFC 1123 label, not `kube-apiserver`.", "minLength": 1, "maxLength": 63, "pattern": LABEL },
            },
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{ "rule": CONTAINER_RULE, "messageExpression": CONTAINER_MESSAGE }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_name_all_that_is_the_planes_own() {
        assert!(
            OWN_VOLUMES.iter().all(|name| VOLUME_RULE.contains(&format!("'{name}'")) && VOLUME_MESSAGE.contains(name))
        );
        assert!(OWN_PATHS.iter().all(|path| MOUNT_RULE.contains(&format!("'{path}'")) && MOUNT_MESSAGE.contains(path)));
        assert!(CONTAINER_RULE.contains(&format!("'{API_SERVER_CONTAINER}'")));
    }
}
