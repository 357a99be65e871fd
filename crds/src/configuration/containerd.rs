//! containerd's configuration.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::Proxy;

/// containerd's configuration. Mirrors of registries are in `spec.containerRuntime`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerdSettings {
    /// The proxy through which images are pulled. An edit restarts containerd; containers go on. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Further runtimes, by name, beside `runc`, which all Pods have that say nothing; at most 16. Their programs are
    /// on the machines already, else the step fails. A Pod gets one by a RuntimeClass whose `handler` is its name; make
    /// that yourself. An edit restarts containerd; containers go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub runtimes: Vec<Runtime>,
}

/// A runtime that RuntimeClasses name.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.binaryName) || self.type == 'io.containerd.runc.v2'")
    .message("binaryName goes with type io.containerd.runc.v2: other types have a program of their own (path)")
    .field_path(".binaryName"))]
#[x_kube(validation = Rule::new("!has(self.configPath) || self.type != 'io.containerd.runc.v2'")
    .message("configPath goes with other types than io.containerd.runc.v2, which reads no file")
    .field_path(".configPath"))]
pub struct Runtime {
    /// Its name, the `handler` of RuntimeClasses: an RFC 1123 label, not `runc`.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    #[x_kube(validation = Rule::new("self != 'runc'").message("runc is there already: give the runtime another name"))]
    pub name: String,
    /// containerd's name of its shim: `io.containerd.runsc.v1` is the program `containerd-shim-runsc-v1`.
    #[serde(rename = "type")]
    #[schemars(length(max = 63), regex(pattern = r"^io\.containerd\.[a-z0-9-]{1,32}\.v[0-9]{1,2}$"))]
    pub type_: String,
    /// Path of the shim. Default: it is found in `/usr/local/bin`, `/usr/bin` and their like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255), regex(pattern = r"^(/[A-Za-z0-9._+-]+)+$"))]
    pub path: Option<String>,
    /// With `io.containerd.runc.v2`: path of a program like runc, e.g. `/usr/bin/crun`. Default: runc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255), regex(pattern = r"^(/[A-Za-z0-9._+-]+)+$"))]
    pub binary_name: Option<String>,
    /// With another type: path of the file that its shim reads, e.g. `/etc/containerd/runsc.toml`. Default: the shim's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255), regex(pattern = r"^(/[A-Za-z0-9._+-]+)+$"))]
    pub config_path: Option<String>,
}
