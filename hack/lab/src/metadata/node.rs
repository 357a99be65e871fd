//! The configuration of a node of the metadata cluster, the same for the one on the host and the one in a machine.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use crate::network::POD_NETWORK;

/// The image that holds a Pod's namespaces, as it is named in the artifact bundle.
const SANDBOX: &str = "registry.k8s.io/pause:3.10.1";

/// A node: who it is, and where its files are as the node itself sees them.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub name: String,
    pub address: Ipv4Addr,
    /// Which of the Pod network's parts is its own.
    pub number: u8,
    /// Directories with the programs of each component.
    pub containerd_bin: PathBuf,
    pub runc: PathBuf,
    pub cni_bin: PathBuf,
    /// Configuration files.
    pub etc: PathBuf,
    /// What containerd keeps, and what it keeps until a restart.
    pub containerd_root: PathBuf,
    pub containerd_state: PathBuf,
    /// What the kubelet keeps.
    pub kubelet_root: PathBuf,
    pub pod_logs: PathBuf,
    /// What the address plugin keeps.
    pub cni_state: PathBuf,
    /// The cluster's CA certificate, and the kubeconfigs of the kubelet and of kube-proxy.
    pub ca: PathBuf,
    pub kubelet_kubeconfig: PathBuf,
    pub proxy_kubeconfig: PathBuf,
    /// The control group that Pods are in.
    pub cgroup_root: String,
}

/// The bridge of a node's Pods.
pub(super) const POD_BRIDGE: &str = "cwmeta0";

impl Node {
    /// The part of the Pod network that is on this node.
    pub(super) fn pod_network(&self) -> String {
        format!("10.200.{}.0/24", self.number)
    }

    /// The socket of its containerd.
    pub(super) fn socket(&self) -> PathBuf {
        self.containerd_state.join("containerd.sock")
    }

    /// containerd's configuration.
    pub(super) fn containerd(&self) -> String {
        format!(
            "version = 3
root = '{root}'
state = '{state}'
disabled_plugins = [
  'io.containerd.nri.v1.nri',
  'io.containerd.tracing.processor.v1.otlp',
  'io.containerd.internal.v1.tracing',
]
[grpc]
address = '{socket}'
[ttrpc]
address = '{socket}.ttrpc'
[plugins.'io.containerd.internal.v1.opt']
path = '{root}/opt'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{SANDBOX}'
[plugins.'io.containerd.cri.v1.runtime']
# The lab's root may not lower a process's score, and containers ask for that.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['{cni_bin}']
conf_dir = '{etc}/cni'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
runtime_path = '{shims}/containerd-shim-runc-v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = '{runc}'
SystemdCgroup = false
",
            root = self.containerd_root.display(),
            state = self.containerd_state.display(),
            socket = self.socket().display(),
            cni_bin = self.cni_bin.display(),
            etc = self.etc.display(),
            shims = self.containerd_bin.display(),
            runc = self.runc.display(),
        )
    }

    /// The Pod network's configuration. The masquerade is not the plugin's: chains that it makes would outlive the lab.
    pub(super) fn cni(&self) -> String {
        format!(
            r#"{{"cniVersion": "1.0.0", "name": "clusterwright-metadata", "plugins": [
  {{"type": "bridge", "bridge": "{POD_BRIDGE}", "isGateway": true, "hairpinMode": true,
    "ipam": {{"type": "host-local", "dataDir": "{state}", "ranges": [[{{"subnet": "{pods}"}}]],
              "routes": [{{"dst": "0.0.0.0/0"}}]}}}}
]}}
"#,
            state = self.cni_state.display(),
            pods = self.pod_network(),
        )
    }

    /// The kubelet's configuration.
    pub(super) fn kubelet(&self) -> String {
        format!(
            "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {address}
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}, x509: {{clientCAFile: '{ca}'}}}}
authorization: {{mode: Webhook}}
cgroupDriver: cgroupfs
cgroupRoot: {cgroup_root}
clusterDomain: cluster.local
containerRuntimeEndpoint: 'unix://{socket}'
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}}
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
oomScoreAdj: 0
podLogsDir: '{pod_logs}'
readOnlyPort: 0
resolvConf: /etc/resolv.conf
serializeImagePulls: false
volumePluginDir: '{root}/volume-plugins'
",
            address = self.address,
            ca = self.ca.display(),
            cgroup_root = self.cgroup_root,
            socket = self.socket().display(),
            pod_logs = self.pod_logs.display(),
            root = self.kubelet_root.display(),
        )
    }

    /// The kubelet's arguments.
    pub(super) fn kubelet_arguments(&self) -> Vec<String> {
        vec![
            format!("--config={}/kubelet.yaml", self.etc.display()),
            format!("--kubeconfig={}", self.kubelet_kubeconfig.display()),
            format!("--root-dir={}", self.kubelet_root.display()),
            format!("--cert-dir={}/pki", self.kubelet_root.display()),
            format!("--hostname-override={}", self.name),
            format!("--node-ip={}", self.address),
            "--runtime-cgroups=/".into(),
            "--kubelet-cgroups=/".into(),
        ]
    }

    /// kube-proxy's configuration.
    pub(super) fn proxy(&self) -> String {
        format!(
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clusterCIDR: {POD_NETWORK}
hostnameOverride: {name}
clientConnection: {{kubeconfig: '{kubeconfig}'}}
healthzBindAddress: {address}:10256
metricsBindAddress: {address}:10249
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
oomScoreAdj: 0
",
            name = self.name,
            address = self.address,
            kubeconfig = self.proxy_kubeconfig.display(),
        )
    }

    /// kube-proxy's arguments.
    pub(super) fn proxy_arguments(&self) -> Vec<String> {
        vec![format!("--config={}/kube-proxy.yaml", self.etc.display())]
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine_node;

    #[test]
    fn the_kubelet_runs_on_the_labs_control_groups_and_takes_no_anonymous_caller() {
        let text = machine_node::describe().kubelet();
        for wanted in ["failCgroupV1: false", "cgroupDriver: cgroupfs", "anonymous: {enabled: false}"] {
            assert!(text.contains(wanted), "{wanted} is not in {text}");
        }
    }

    #[test]
    fn pods_of_a_node_are_in_its_own_part_of_the_network() {
        let node = machine_node::describe();
        assert_eq!(node.pod_network(), "10.200.2.0/24");
        let cni: serde_json::Value = serde_json::from_str(&node.cni()).unwrap();
        assert_eq!(cni["plugins"][0]["ipam"]["ranges"][0][0]["subnet"], "10.200.2.0/24");
    }

    #[test]
    fn containers_ask_for_no_negative_score_and_their_shim_is_found_without_a_path() {
        let text = machine_node::describe().containerd();
        assert!(text.contains("restrict_oom_score_adj = true"), "{text}");
        assert!(text.contains("runtime_path = '/opt/lab/containerd/containerd-shim-runc-v2'"), "{text}");
    }
}
