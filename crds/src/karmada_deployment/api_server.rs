//! The API server of a plane, and how it is reached.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::ComponentSettings;
use super::sidecars::{self, PodPart};
use crate::node_metadata::{ANNOTATION_KEYS_MESSAGE, ANNOTATION_KEYS_RULE, AnnotationValue};

const ADDRESS_RULE: &str = "self.serviceType != 'ClusterIP' || !has(self.loadBalancerApiserverIp)";
const ADDRESS_MESSAGE: &str =
    "apiServer.loadBalancerApiserverIp goes with serviceType NodePort or LoadBalancer: nothing listens there else";
const NODES_RULE: &str = "self.serviceType != 'NodePort' || has(self.loadBalancerApiserverIp)";
const NODES_MESSAGE: &str = "apiServer.loadBalancerApiserverIp is required with serviceType NodePort: the address of a load balancer of yours before the nodes, or of a node that stays";
const CLASS_RULE: &str = "self.serviceType == 'LoadBalancer' || !has(self.loadBalancerClass)";
const CLASS_MESSAGE: &str = "apiServer.loadBalancerClass goes with serviceType LoadBalancer";
const PORT_RULE: &str = "self.serviceType == 'NodePort' || !has(self.nodePort)";
const PORT_MESSAGE: &str = "apiServer.nodePort goes with serviceType NodePort";
const SUBNET_RULE: &str = "self.serviceSubnet == oldSelf.serviceSubnet";
const SUBNET_MESSAGE: &str = "apiServer.serviceSubnet cannot be changed: Services of the plane have addresses of it";

/// The API server of the plane.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(ADDRESS_RULE).message(ADDRESS_MESSAGE))]
#[x_kube(validation = Rule::new(NODES_RULE).message(NODES_MESSAGE))]
#[x_kube(validation = Rule::new(CLASS_RULE).message(CLASS_MESSAGE))]
#[x_kube(validation = Rule::new(PORT_RULE).message(PORT_MESSAGE))]
#[x_kube(validation = Rule::new(SUBNET_RULE).message(SUBNET_MESSAGE))]
pub struct PlaneApiServer {
    /// How it is reached from outside of the host cluster. Default `ClusterIP`.
    #[serde(default)]
    pub service_type: ServiceType,
    /// The IP address at which it is reached: with `LoadBalancer` the one that the load balancer is to have, with
    /// `NodePort`, where it is required, that of a load balancer of yours before the nodes. Default with
    /// `LoadBalancer`: the one that it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 45), regex(pattern = r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-f]*:[0-9a-f:]*)$"))]
    pub load_balancer_apiserver_ip: Option<String>,
    /// Which load balancer is asked, as `spec.loadBalancerClass` of a Service. Only with `LoadBalancer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    pub load_balancer_class: Option<String>,
    /// The port of the nodes, 1 to 65535, within the host cluster's range. Only with `NodePort`. Default: one that is
    /// free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub node_port: Option<i32>,
    /// Annotations of the Service; at most 32.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(ANNOTATION_KEYS_RULE).message(ANNOTATION_KEYS_MESSAGE))]
    pub service_annotations: BTreeMap<String, AnnotationValue>,
    /// Further DNS names and IP addresses that its certificate is for; at most 32.
    #[serde(default, rename = "certSANs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        inner(length(min = 1, max = 253), regex(pattern = r"^(\*\.)?[a-z0-9:]([-a-z0-9.:]*[a-z0-9])?$"))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub cert_sans: Vec<String>,
    /// The network of the plane's own Services, in CIDR notation. Nothing is reached there. Immutable. Default
    /// `10.96.0.0/12`.
    #[serde(default = "default_subnet")]
    #[schemars(length(min = 9, max = 18), regex(pattern = r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/(1[2-9]|2[0-8])$"))]
    pub service_subnet: String,
    /// Further volumes of its Pods, each as in a PodSpec, with a name of its own; at most 16. Allowed are `configMap`,
    /// `csi`, `downwardAPI`, `emptyDir`, `ephemeral`, `persistentVolumeClaim`, `projected` without a token of a
    /// ServiceAccount, and `secret`, of objects in `hostNamespace`. An edit rolls its Pods. Not with mode `Binary`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "sidecars::volumes")]
    pub extra_volumes: Vec<PodPart>,
    /// What of these the API server has mounted, each as in a PodSpec; at most 16. An edit rolls its Pods. Not with
    /// mode `Binary`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "sidecars::mounts")]
    pub extra_volume_mounts: Vec<PodPart>,
    /// Containers beside the API server in its Pods, each as in a PodSpec, with a name of its own; at most 8. A Pod is
    /// ready once all of its containers are. They keep the Pod Security Standard `restricted`: what they do not say of
    /// it is filled in, with a root file system that nobody writes, and what contradicts it is refused. They mount
    /// volumes of `extraVolumes` alone. An edit rolls the Pods. Not with mode `Binary`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "sidecars::containers")]
    pub sidecar_containers: Vec<PodPart>,
    /// How many, which version, and what it is started with.
    #[serde(flatten)]
    pub settings: ComponentSettings,
}

/// How the API server is reached.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum ServiceType {
    /// Inside of the host cluster alone, which must be the metadata cluster then.
    #[default]
    ClusterIP,
    /// By a port of each node of the host cluster.
    NodePort,
    /// By a load balancer of the host cluster.
    LoadBalancer,
}

impl ServiceType {
    /// As a Service has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClusterIP => "ClusterIP",
            Self::NodePort => "NodePort",
            Self::LoadBalancer => "LoadBalancer",
        }
    }
}

impl Default for PlaneApiServer {
    fn default() -> Self {
        Self {
            service_type: ServiceType::default(),
            load_balancer_apiserver_ip: None,
            load_balancer_class: None,
            node_port: None,
            service_annotations: BTreeMap::new(),
            cert_sans: Vec::new(),
            service_subnet: default_subnet(),
            extra_volumes: Vec::new(),
            extra_volume_mounts: Vec::new(),
            sidecar_containers: Vec::new(),
            settings: ComponentSettings::default(),
        }
    }
}

fn default_subnet() -> String {
    "10.96.0.0/12".to_owned()
}
