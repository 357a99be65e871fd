//! etcd wanted: on the control planes, on machines of its own, or one that others run.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::placement::{HostNames, HostSelector};
use crate::references::LocalRef;
use crate::step::Role;

/// Below which a cluster's data is in etcd, where nothing else is said: kube-apiserver's own default.
pub const ETCD_PREFIX: &str = "/registry";

/// How often what the members hold is compared, where nothing else is said: every six hours.
const HASH_CHECK_SECONDS: i32 = 21_600;

/// CEL: client URLs as etcd itself writes them.
pub(crate) const ENDPOINTS_RULE: &str = "self.all(e, e.matches('^https://[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?:[1-9][0-9]{0,4}$') && int(e.substring(e.lastIndexOf(':') + 1)) <= 65535)";

/// Where etcd runs.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum EtcdTopology {
    /// On the control planes.
    #[default]
    Stacked,
    /// On machines of their own.
    Dedicated,
    /// Elsewhere, run by others: `endpoints` and `secretRef` say how it is reached. Its members and its data are never
    /// managed.
    External,
}

impl EtcdTopology {
    /// The role whose machines carry the members; none: no machine of the cluster does.
    pub fn role(self) -> Option<Role> {
        match self {
            EtcdTopology::Stacked => Some(Role::ControlPlane),
            EtcdTopology::Dedicated => Some(Role::Etcd),
            EtcdTopology::External => None,
        }
    }
}

/// etcd wanted.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(self.topology == 'Dedicated') == has(self.replicas)")
    .message("etcd.replicas goes with topology Dedicated, and only with it (1, 3, 5 or 7)"))]
#[x_kube(validation = Rule::new("self.topology == 'Dedicated' || !(has(self.hosts) || has(self.hostSelector))")
    .message("hosts and hostSelector of etcd go with topology Dedicated"))]
#[x_kube(validation = Rule::new("!(has(self.hosts) && has(self.hostSelector))")
    .message("hosts and hostSelector exclude each other: name the Hosts, or select them by labels"))]
#[x_kube(validation = Rule::new("(self.topology == 'External') == has(self.endpoints)")
    .message("etcd.endpoints goes with topology External, and only with it: give the client URLs of the members, e.g. https://10.0.0.5:2379"))]
#[x_kube(validation = Rule::new("(self.topology == 'External') == has(self.secretRef)")
    .message("etcd.secretRef goes with topology External, and only with it: name the Secret with ca.crt, tls.crt and tls.key"))]
#[x_kube(validation = Rule::new("self.topology == 'External' || !has(self.prefix)")
    .message("etcd.prefix goes with topology External"))]
#[x_kube(validation = Rule::new("self.topology != 'External' || !(has(self.hashCheckSeconds) || has(self.defragmentation))")
    .message("etcd.hashCheckSeconds and etcd.defragmentation do not go with topology External: those who run that etcd look after it"))]
pub struct Etcd {
    /// Default `Stacked`.
    #[serde(default)]
    pub topology: EtcdTopology,
    /// With `Dedicated`: how many members, 1, 3, 5 or 7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 7))]
    #[x_kube(validation = Rule::new("self % 2 == 1").message("must be odd: 1, 3, 5 or 7, since etcd needs a majority"))]
    pub replicas: Option<i32>,
    /// Which Hosts may be taken, by labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
    /// Which Hosts may be taken, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<HostNames>,
    /// With `External`: client URLs of the members, `https://HOST:PORT` with an IPv4 address or a DNS name, 1 to 9. All
    /// are of one etcd. A later edit is rolled out by a run of the step `etcd-endpoints`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 9), inner(length(min = 11, max = 270)))]
    #[x_kube(
        merge_strategy = ListMerge::Set,
        validation = Rule::new(ENDPOINTS_RULE)
            .message("etcd.endpoints are URLs of the form https://HOST:PORT, with an IPv4 address or a DNS name and a port of 1 to 65535, e.g. https://10.0.0.5:2379")
    )]
    pub endpoints: Vec<String>,
    /// With `External`: a Secret of type `kubernetes.io/tls` with one key more. `ca.crt`: the authorities that the
    /// members' certificates come from; `tls.crt` and `tls.key`: the client certificate of the API servers and its
    /// private key without a passphrase. All PEM. It may read and write below `prefix`. What changes in it is rolled
    /// out by a run of the step `etcd-endpoints`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalRef>,
    /// With `External`: below which keys the cluster's data is, as `--etcd-prefix` of kube-apiserver has it; so that
    /// clusters can share an etcd. Immutable. Default `/registry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 128), regex(pattern = r"^(/[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?)+$"))]
    pub prefix: Option<String>,
    /// How often it is compared what the members hold, by the hashes of all their keys at one revision, in seconds: 0,
    /// never, or 600 to 604800. Default 21600, six hours. Not with `External`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 604_800))]
    #[x_kube(validation = Rule::new("self == 0 || self >= 600")
        .message("must be 0, which means never, or 600 to 604800 seconds: each check reads the whole database of each member"))]
    pub hash_check_seconds: Option<i32>,
    /// When the members' databases are defragmented. Absent: only by the annotation `clusterwright.dev/defragment`; an
    /// etcd whose quota is used up waits for it, too. Not with `External`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defragmentation: Option<Defragmentation>,
}

/// When etcd's databases are defragmented: one member at a time, the one that leads last. Each stands still meanwhile,
/// for seconds to minutes, and so does the API server beside it. Where this is given, an etcd whose quota is used up
/// (alarm NOSPACE) is compacted and defragmented at once, unasked.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Defragmentation {
    /// When, as in crontab: minute, hour, day of month, month, day of week. `0 4 * * SUN` is every Sunday at 4:00. One
    /// that cannot begin within an hour is left out until it is due again.
    #[schemars(length(min = 9, max = 128), regex(pattern = r"^[0-9A-Za-z*,/-]+( +[0-9A-Za-z*,/-]+){4}$"))]
    pub schedule: String,
    /// The time zone that `schedule` is read in: a name of the IANA database, `Europe/Paris`. Default `Etc/UTC`.
    #[serde(default = "crate::schedule::default_time_zone")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"))]
    pub time_zone: String,
    /// A member is left as it is while less than so much of its database is free, in percent of its size, 1 to 95.
    /// Default 50.
    #[serde(default = "default_min_fragmentation_percent")]
    #[schemars(range(min = 1, max = 95))]
    pub min_fragmentation_percent: i32,
    /// A member is left as it is while less than so much of its database is free, in MiB, 1 to 16384. Default 100.
    #[serde(default = "default_min_reclaim", rename = "minReclaimMiB")]
    #[schemars(range(min = 1, max = 16_384))]
    pub min_reclaim_mib: i32,
}

fn default_min_fragmentation_percent() -> i32 {
    50
}

fn default_min_reclaim() -> i32 {
    100
}

impl Etcd {
    /// How often what the members hold is compared, in seconds; none: never.
    pub fn hash_check_seconds(&self) -> Option<i64> {
        let seconds = i64::from(self.hash_check_seconds.unwrap_or(HASH_CHECK_SECONDS));
        (self.topology != EtcdTopology::External && seconds > 0).then_some(seconds)
    }

    /// Below which keys the cluster's data is.
    pub fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(ETCD_PREFIX)
    }
}
