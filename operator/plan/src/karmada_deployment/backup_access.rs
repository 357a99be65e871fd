//! By whom the etcd of a plane on another cluster is backed up: a ServiceAccount there whose only right is to have
//! ports of the Pods of etcd forwarded. It goes with the StatefulSet of etcd.

use crds::KarmadaDeployment;
use crds::cluster_addon::AppliedObject;
use serde_json::{Value, json};

use super::component::Component;
use super::etcd::pod_name;
use super::names::{component_name, host_metadata, prefixed};
use super::place::Manifest;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Its name, and that of its Role.
pub fn backup_account(object: &KarmadaDeployment) -> String {
    prefixed(object, "etcd-backup")
}

/// The StatefulSet of etcd, whose UID is to be known.
pub fn etcd_workload(object: &KarmadaDeployment) -> AppliedObject {
    in_host_namespace(object, ("apps", "StatefulSet"), component_name(object, Component::Etcd))
}

/// The ServiceAccount, its Role and its RoleBinding, in the order in which they are applied on the host. `uid`: that of
/// the StatefulSet.
pub fn backup_access(object: &KarmadaDeployment, uid: &str) -> Vec<(AppliedObject, Manifest)> {
    let name = backup_account(object);
    let replicas = object.spec.etcd.local().map_or(1, |local| local.replicas);
    let pods: Vec<String> = (0..replicas).map(|ordinal| pod_name(object, ordinal)).collect();
    // Newer API servers ask for both verbs.
    let rule = json!({ "apiGroups": [""], "resources": ["pods/portforward"], "resourceNames": pods, "verbs": ["get", "create"] });
    let subject = json!({ "kind": "ServiceAccount", "name": name, "namespace": object.spec.host_namespace });
    let role = json!({ "apiGroup": RBAC, "kind": "Role", "name": name });
    [
        ("", "ServiceAccount", json!({})),
        (RBAC, "Role", json!({ "rules": [rule] })),
        (RBAC, "RoleBinding", json!({ "roleRef": role, "subjects": [subject] })),
    ]
    .into_iter()
    .map(|(group, kind, content)| {
        let found = in_host_namespace(object, (group, kind), name.clone());
        let manifest = manifest(object, &found, content, uid);
        (found, manifest)
    })
    .collect()
}

fn in_host_namespace(object: &KarmadaDeployment, (group, kind): (&str, &str), name: String) -> AppliedObject {
    let namespace = Some(object.spec.host_namespace.clone());
    AppliedObject { group: group.into(), version: "v1".into(), kind: kind.into(), namespace, name }
}

fn manifest(object: &KarmadaDeployment, found: &AppliedObject, content: Value, uid: &str) -> Manifest {
    let workload = etcd_workload(object);
    let mut metadata = host_metadata(object, &found.name);
    metadata["ownerReferences"] =
        json!([{ "apiVersion": "apps/v1", "kind": workload.kind, "name": workload.name, "uid": uid }]);
    let group = if found.group.is_empty() { String::new() } else { format!("{}/", found.group) };
    let mut manifest = content;
    manifest["apiVersion"] = json!(format!("{group}{}", found.version));
    manifest["kind"] = json!(found.kind);
    manifest["metadata"] = metadata;
    Manifest(manifest)
}

#[cfg(test)]
mod tests {
    use super::super::tests::world::plane;
    use super::backup_access;

    #[test]
    fn whoever_backs_it_up_has_ports_of_its_members_forwarded_and_goes_with_etcd() {
        let object = plane("hostClusterRef: {name: a}, hostNamespace: planes, etcd: {local: {replicas: 3}}");
        let made = backup_access(&object, "u1");
        let kinds: Vec<&str> = made.iter().map(|(found, _)| found.kind.as_str()).collect();
        assert_eq!(kinds, ["ServiceAccount", "Role", "RoleBinding"]);
        for (found, manifest) in &made {
            assert_eq!((found.name.as_str(), found.namespace.as_deref()), ("k1-etcd-backup", Some("planes")));
            assert_eq!(manifest.0["metadata"]["ownerReferences"][0]["uid"], "u1");
            assert_eq!(manifest.0["metadata"]["ownerReferences"][0]["name"], "k1-etcd");
        }
        assert_eq!(made[0].1.0["apiVersion"], "v1");
        let rules = made[1].1.0["rules"].as_array().unwrap();
        assert_eq!(rules.len(), 1, "it may do nothing else");
        assert_eq!(rules[0]["resourceNames"], serde_json::json!(["k1-etcd-0", "k1-etcd-1", "k1-etcd-2"]));
        assert_eq!(made[2].1.0["subjects"][0]["namespace"], "planes");
    }
}
