//! The files that a component is given: in a Secret of its own, so that none has what another one's are for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::KarmadaDeployment;
use serde_json::{Value, json};

use super::component::Component;
use super::endpoint::PORT;
use super::leaves::ESTIMATOR_CLIENT;
use super::material::Material;
use super::names::{api_server_service, full_host_name};
use super::restoring::is_closed;
use crate::naming::short_hash;

/// What anybody may ask an API server that admits administrators only: whether it works. A line is a rule. Kubelets ask
/// without saying who they are.
const POLICY: &str = concat!(
    r#"{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "system:unauthenticated", "readonly": true, "nonResourcePath": "/livez"}}"#,
    "\n",
    r#"{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "system:unauthenticated", "readonly": true, "nonResourcePath": "/readyz"}}"#,
    "\n",
    r#"{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "system:authenticated", "readonly": true, "nonResourcePath": "/livez"}}"#,
    "\n",
    r#"{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "system:authenticated", "readonly": true, "nonResourcePath": "/readyz"}}"#,
    "\n",
);
/// Its name.
pub(super) const POLICY_FILE: &str = "policy.jsonl";
/// Where the files of a component are in its container.
pub(super) const DIRECTORY: &str = "/etc/karmada";

/// Where a component finds its files, and the API server.
pub(super) struct Located {
    /// The directory of its files.
    pub directory: String,
    /// Whether all of them are in that directory itself.
    pub is_flat: bool,
    /// `https://host:port` of the API server that it asks.
    pub server: String,
    /// What the names of the API server's certificate begin with, among all certificates.
    pub api_server: String,
}

impl Located {
    /// In a container of a Pod.
    fn in_pod(object: &KarmadaDeployment) -> Self {
        Self {
            directory: DIRECTORY.to_owned(),
            is_flat: false,
            server: format!("https://{}:{PORT}", full_host_name(object, &api_server_service(object))),
            api_server: API_SERVER.to_owned(),
        }
    }

    /// The whole path of a file.
    pub fn path(&self, file: &str) -> String {
        let name = if self.is_flat { flat(file) } else { file.to_owned() };
        format!("{}/{name}", self.directory)
    }
}

/// What the files of the API server's certificate are called.
const API_SERVER: &str = "apiserver";

/// The name of a file where all are in one directory: `pki/etcd/ca.crt` is `etcd-ca.crt`.
pub(super) fn flat(path: &str) -> String {
    path.strip_prefix("pki/").unwrap_or(path).replace('/', "-")
}

/// The key in a Secret of the file of this path: `pki/ca.crt` is `pki.ca.crt`.
pub(super) fn key(path: &str) -> String {
    path.replace('/', ".")
}

/// A file: its path below [`DIRECTORY`], and its content.
pub(super) struct File {
    path: String,
    content: Vec<u8>,
}

impl File {
    pub fn new(path: &str, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), content: content.into() }
    }

    /// Its key in the Secret.
    pub fn key(&self) -> String {
        key(&self.path)
    }

    /// Its name where all are in one directory.
    pub fn flat_name(&self) -> String {
        flat(&self.path)
    }

    /// What is in it.
    pub fn into_content(self) -> Vec<u8> {
        self.content
    }
}

/// Where the content of a file is.
enum Origin<'a> {
    /// An entry of the authorities and keys.
    Keys(&'a str),
    /// A file of the certificates.
    Leaf(String),
    /// A key of the Secret of an external etcd.
    Etcd(&'a str),
    Kubeconfig,
    /// This text.
    Text(&'static str),
}

/// The files of a component in a Pod; none: one of them is not there yet.
pub(super) fn files(object: &KarmadaDeployment, material: &Material, component: Component) -> Option<Vec<File>> {
    files_at(object, material, component, &Located::in_pod(object))
}

/// The files of a component that is there; none: one of them is not there yet.
pub(super) fn files_at(
    object: &KarmadaDeployment,
    material: &Material,
    component: Component,
    located: &Located,
) -> Option<Vec<File>> {
    let origins = origins(object, component, located);
    let read = |origin: &Origin<'_>| match origin {
        Origin::Kubeconfig => Some(kubeconfig(component, located).into_bytes()),
        other => read(object, material, other),
    };
    origins.into_iter().map(|(path, origin)| Some(File { content: read(&origin)?, path })).collect()
}

/// A path in [`DIRECTORY`] as flags have it.
pub(super) fn path(file: &str) -> String {
    format!("{DIRECTORY}/{file}")
}

/// The Secret with these files.
pub(super) fn secret(metadata: Value, files: &[File]) -> Value {
    let data: serde_json::Map<String, Value> =
        files.iter().map(|file| (file.key(), json!(STANDARD.encode(&file.content)))).collect();
    json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data })
}

/// The volume that has those of this Secret under their paths.
pub(super) fn volume(secret: &str, files: &[File]) -> Value {
    let items: Vec<Value> = files.iter().map(|file| json!({ "key": file.key(), "path": file.path })).collect();
    // Their group is that of the Pod, whose user is not root.
    json!({ "name": "files", "secret": { "secretName": secret, "defaultMode": 0o440, "items": items } })
}

/// What changes when one of them does.
pub(super) fn digest(files: &[File]) -> String {
    let parts: Vec<String> =
        files.iter().flat_map(|file| [file.path.clone(), STANDARD.encode(&file.content)]).collect();
    short_hash(&parts.iter().map(String::as_str).collect::<Vec<_>>(), 16)
}

fn read(object: &KarmadaDeployment, material: &Material, origin: &Origin<'_>) -> Option<Vec<u8>> {
    let found = match origin {
        Origin::Keys(name) => material.keys.as_ref()?.get(name)?,
        Origin::Leaf(name) => material.leaves.get(name)?,
        Origin::Etcd(key) => material.secrets.get(&object.spec.etcd.external.as_ref()?.secret_ref.name)?.get(key)?,
        Origin::Text(text) => text.as_bytes(),
        Origin::Kubeconfig => return None,
    };
    Some(found.to_vec())
}

fn origins<'a>(object: &KarmadaDeployment, component: Component, located: &Located) -> Vec<(String, Origin<'a>)> {
    let suffix = component.suffix();
    let mut origins: Vec<(String, Origin<'a>)> = Vec::new();
    let mut pair_of = |stem: &str, leaf: &str| {
        let pair = |ending: &str| (format!("pki/{stem}.{ending}"), Origin::Leaf(format!("{leaf}.{ending}")));
        origins.extend(["crt", "key"].map(pair));
    };
    if component == Component::ApiServer {
        pair_of(API_SERVER, &located.api_server);
    }
    let mut pair = |stem: &str| pair_of(stem, stem);
    match component {
        Component::Etcd => ["etcd-server", "etcd-peer"].iter().for_each(|stem| pair(stem)),
        Component::ApiServer => pair("front-proxy-client"),
        _ => pair(&format!("{suffix}-client")),
    }
    if component.serves_plane() {
        pair(suffix);
    }
    if component.asks_estimators() && object.spec.estimator.is_some() {
        pair(ESTIMATOR_CLIENT);
    }
    if component.uses_etcd() && object.spec.etcd.external.is_none() {
        pair(&format!("{suffix}-etcd-client"));
    }
    let mut key = |path: &str, name| origins.push((path.to_owned(), Origin::Keys(name)));
    match component {
        Component::Etcd => {}
        Component::ApiServer => {
            for name in ["ca.crt", "front-proxy-ca.crt", "sa.key", "sa.pub"] {
                key(&format!("pki/{name}"), name);
            }
            key("encryption.yaml", "encryption.yaml");
            if is_closed(object) {
                origins.push((POLICY_FILE.to_owned(), Origin::Text(POLICY)));
            }
        }
        Component::KubeControllerManager => {
            ["ca.crt", "sa.key"].iter().for_each(|name| key(&format!("pki/{name}"), name))
        }
        _ => key("pki/ca.crt", "ca.crt"),
    }
    match &object.spec.etcd.external {
        Some(_) if component.uses_etcd() => {
            origins.push(("pki/etcd/ca.crt".to_owned(), Origin::Etcd("ca.crt")));
            for (ending, name) in [("crt", "tls.crt"), ("key", "tls.key")] {
                origins.push((format!("pki/{suffix}-etcd-client.{ending}"), Origin::Etcd(name)));
            }
        }
        None if component.uses_etcd() || component == Component::Etcd => {
            origins.push(("pki/etcd/ca.crt".to_owned(), Origin::Keys("etcd-ca.crt")));
        }
        _ => {}
    }
    if component.has_kubeconfig() {
        origins.push(("kubeconfig".to_owned(), Origin::Kubeconfig));
    }
    origins
}

/// The kubeconfig of a component. JSON is YAML.
fn kubeconfig(component: Component, located: &Located) -> String {
    let (name, suffix, path) = (component.name(), component.suffix(), |file: &str| located.path(file));
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "plane",
        "clusters": [{
            "name": "plane",
            "cluster": { "server": located.server, "certificate-authority": path("pki/ca.crt") },
        }],
        "contexts": [{ "name": "plane", "context": { "cluster": "plane", "user": name } }],
        "users": [{ "name": name, "user": {
            "client-certificate": path(&format!("pki/{suffix}-client.crt")),
            "client-key": path(&format!("pki/{suffix}-client.key")),
        } }],
    })
    .to_string()
}
