//! Names that stand in the API: group, labels, annotations, finalizers, field managers, condition types, reasons.

/// The API group.
pub const GROUP: &str = "clusterwright.dev";
/// Field manager of the operator's writes.
pub const FIELD_MANAGER: &str = "clusterwright-operator";
/// Field manager of the labels, annotations and taints that the operator gives to Nodes.
pub const NODE_FIELD_MANAGER: &str = "clusterwright";
/// Field manager by which the operator cordons the Node of a machine. Another one than that of labels and taints: what
/// is not applied again is given up.
pub const NODE_DRAIN_FIELD_MANAGER: &str = "clusterwright-drain";
/// Field manager of what Addons apply to clusters.
pub const ADDON_FIELD_MANAGER: &str = "clusterwright-addon";
/// Field manager of what Karmada control planes consist of: on their host clusters, and in themselves.
pub const KARMADA_FIELD_MANAGER: &str = "clusterwright-karmada";
/// The ClusterRole with the rights that the operator needs in the namespace of a Karmada plane on its host cluster.
pub const KARMADA_HOST_ROLE: &str = "clusterwright-karmada-host";
/// Field manager of the manifests that runs apply to a cluster.
pub const RUN_FIELD_MANAGER: &str = "clusterwright";
/// Field manager of the executor's writes.
pub const EXECUTOR_FIELD_MANAGER: &str = "clusterwright-executor";

/// Labels.
pub mod label {
    /// The ClusterDeployment that an object belongs to.
    pub const CLUSTER: &str = "clusterwright.dev/cluster";
    /// The MachineSet that a Machine belongs to.
    pub const MACHINE_SET: &str = "clusterwright.dev/machine-set";
    /// The MachineRequest that a Machine was made for, in whose set it is beside the set's own.
    pub const MACHINE_REQUEST: &str = "clusterwright.dev/machine-request";
    /// On a HostPool that the operator made because somebody asks for its selector: `true`. It goes when nobody does.
    pub const AUTOMATIC: &str = "clusterwright.dev/automatic";
    /// The role of a Machine or MachineSet.
    pub const ROLE: &str = "clusterwright.dev/role";
    /// The PlaybookRun that an object belongs to.
    pub const RUN: &str = "clusterwright.dev/run";
    /// The PlaybookRun whose log an object keeps.
    pub const LOG: &str = "clusterwright.dev/log";
    /// The BackupStorage that a Job looks at.
    pub const STORAGE: &str = "clusterwright.dev/storage";
    /// The EtcdBackup whose stored backup a Job verifies or removes.
    pub const BACKUP: &str = "clusterwright.dev/backup";
    /// The ClusterDeployment that begins with a backup, whose keys a Job fetches.
    pub const RESTORE_FROM: &str = "clusterwright.dev/restore-from";
    /// The EtcdBackupSchedule that an EtcdBackup was made by.
    pub const SCHEDULE: &str = "clusterwright.dev/schedule";
    /// The EtcdRestore before which an EtcdBackup was made of what was there.
    pub const RESTORE: &str = "clusterwright.dev/restore";
    /// The Addon that an object was made for: ClusterAddons, revisions, and what is applied to clusters.
    pub const ADDON: &str = "clusterwright.dev/addon";
    /// The ClusterAddon whose chart a Job installs or uninstalls.
    pub const CLUSTER_ADDON: &str = "clusterwright.dev/cluster-addon";
    /// The KarmadaDeployment that an object was made for, on its host cluster or in its plane.
    pub const KARMADA: &str = "clusterwright.dev/karmada";
    /// The UID of that KarmadaDeployment: by it the objects are found, and told from those of a namesake.
    pub const KARMADA_UID: &str = "clusterwright.dev/karmada-uid";
    /// The member of a plane that an object was made for, in the member or in the plane.
    pub const KARMADA_MEMBER: &str = "clusterwright.dev/karmada-member";
    /// The intent of a run, in lower case.
    pub const INTENT: &str = "clusterwright.dev/intent";
}

/// Annotations.
pub mod annotation {
    /// Ordinal of a Machine in its set.
    pub const ORDINAL: &str = "clusterwright.dev/ordinal";
    /// On Machines of a MachineRequest: its UID. One made anew under the same name has Machines of its own.
    pub const MACHINE_REQUEST_UID: &str = "clusterwright.dev/machine-request-uid";
    /// On Machines of a MachineRequest: its `spec.requestID`.
    pub const REQUEST_ID: &str = "clusterwright.dev/request-id";
    /// On a Node: whom its machine asks, as JSON, to find out whether its Pods reach others and the DNS.
    pub const NETWORK_PROBE: &str = "clusterwright.dev/network-probe";
    /// On a Node: which of its taints are its Machine's, as `key:Effect`, several separated by commas.
    pub const TAINTS_FROM_MACHINE: &str = "clusterwright.dev/taints-from-machine";
    /// Another attempt, after the last one allowed; its value is the generation it is meant for.
    pub const RETRY: &str = "clusterwright.dev/retry";
    /// On a PlaybookRun: end it at once, without a grace period; its value is the generation it is meant for.
    pub const KILL: &str = "clusterwright.dev/kill";
    /// On a ClusterDeployment: open a lock that was lost although not every machine could be asked for its token; its
    /// value is the generation it is meant for.
    pub const UNLOCK: &str = "clusterwright.dev/unlock";
    /// On a Machine: forget it without reaching its Host; on a ClusterAddon: without reaching its cluster. Its value is
    /// the generation it is meant for. On a KarmadaDeployment also `member.<name>`, several separated by commas: a
    /// member that leaves is given up, with what it still has of the plane.
    pub const FORCE_REMOVE: &str = "clusterwright.dev/force-remove";
    /// On an object that an Addon applies: `Orphan` keeps it on the cluster when it leaves the source, or the Addon
    /// goes.
    pub const DELETION_POLICY: &str = "clusterwright.dev/deletion-policy";
    /// On a Machine: goes first when its set shrinks; any value.
    pub const DELETE_FIRST: &str = "clusterwright.dev/delete-first";
    /// On a Machine, written by its set before it deletes it: why its Host is not to be claimed again, as JSON
    /// `{"reason": "JoinFailed", "message": "..."}`.
    pub const QUARANTINE: &str = "clusterwright.dev/quarantine";
    /// On a Machine, written by the operator: since when it counts as lost, as a time (RFC 3339). Its cluster is built
    /// anew without it, and without all Machines that were made before this time. On one Machine alone, or without
    /// `recovery.strategy: Rebuild` or `RestoreLatest`, it begins nothing.
    pub const LOST_SINCE: &str = "clusterwright.dev/lost-since";
    /// On a Machine: it is not repaired; any value.
    pub const SKIP_REMEDIATION: &str = "clusterwright.dev/skip-remediation";
    /// On a Host: ends its quarantine after a probe; its value is the generation it is meant for.
    pub const RELEASE: &str = "clusterwright.dev/release";
    /// On the object whose message asks for it: go on with what needs approval: `<what>.<digest>`,
    /// several separated by commas. Each is for one thing; the message has the whole command.
    pub const APPROVE: &str = "clusterwright.dev/approve";
    /// On a ClusterDeployment, or a KarmadaDeployment: rotate an authority or a key, `<ca, etcd-ca, front-proxy-ca,
    /// service-account-key or encryption-key>.<number>`; the number is one that it was not rotated with before, and
    /// greater. The encryption key of a KarmadaDeployment is not rotated.
    pub const ROTATE: &str = "clusterwright.dev/rotate";
    /// On the Secret with a cluster's authorities and keys, written by the operator: the numbers with which each was
    /// rotated last, as in `clusterwright.dev/rotate`, several separated by commas.
    pub const ROTATED: &str = "clusterwright.dev/rotated";
    /// On the Secret with a cluster's authorities and keys, written by the operator: digests of the keys of the
    /// authorities that it had before, `ca.0123456789abcdef`, several separated by commas.
    pub const RETIRED: &str = "clusterwright.dev/retired-authorities";
    /// On the Secret with the administrator's kubeconfig: the state of the cluster's authority that it was made with,
    /// as in `status.applied.authorities` of a Machine.
    pub const AUTHORITY: &str = "clusterwright.dev/authority";
    /// On a ClusterDeployment: defragment the members of its etcd once; its value is the generation it is meant for.
    pub const DEFRAGMENT: &str = "clusterwright.dev/defragment";
    /// On runs that defragment etcd: what for, `schedule.<time>`, `annotation.<value>` or `no-space.<number>`.
    pub const DEFRAGMENTS_FOR: &str = "clusterwright.dev/defragments-for";
    /// On runs that roll something out that was changed: a digest of the settings that were wanted then, or the
    /// Kubernetes version.
    pub const ROLLS_OUT: &str = "clusterwright.dev/rolls-out";
    /// On a renewal of certificates: the end that it puts off, in seconds since 1970.
    pub const RENEWS: &str = "clusterwright.dev/renews";
    /// On the operator's Lease, written with the write that takes it: when an operator took the metadata cluster up
    /// again after nobody had renewed the Lease for long, as a time (RFC 3339). The store may have been set back
    /// meanwhile.
    pub const RESUMED_AT: &str = "clusterwright.dev/resumed-at";
    /// On a ClusterDeployment: delete it in spite of `deletionProtection`; its value is the generation it is meant for.
    pub const DELETE_CONFIRMED: &str = "clusterwright.dev/delete-confirmed";
    /// On runs of a controller: the Machine of each Host, as JSON `{"<host>": {"uid": "<Machine's UID>"}}`.
    pub const MACHINES: &str = "clusterwright.dev/machines";
    /// On runs that take a member out of etcd: the UID of the Machine that leaves. The run works on one that stays.
    pub const LEAVES: &str = "clusterwright.dev/leaves";
    /// On runs of a controller: how often the same was tried before; 0 for the first.
    pub const ATTEMPT: &str = "clusterwright.dev/attempt";
    /// On runs that tell API servers of etcd's members: the moment of the last change of them that they know of.
    pub const ETCD_CHANGE: &str = "clusterwright.dev/etcd-change";
    /// On runs of a controller: the ClusterDeployment's generation that it was made from.
    pub const GENERATION: &str = "clusterwright.dev/generation";
    /// On runs of a controller: a digest of what the ClusterDeployment wanted of its machines; a pause does not change
    /// it.
    pub const WANTED: &str = "clusterwright.dev/wanted";
    /// On EtcdBackups that a schedule made: the UID of the ClusterDeployment. One made anew under the same name has
    /// backups of its own.
    pub const CLUSTER_UID: &str = "clusterwright.dev/cluster-uid";
    /// On EtcdBackups that were made before a restore: the UID of the EtcdRestore.
    pub const RESTORE_UID: &str = "clusterwright.dev/restore-uid";
    /// On EtcdBackups that a schedule made: when the backup was due, as a time (RFC 3339).
    pub const SCHEDULED_AT: &str = "clusterwright.dev/scheduled-at";
    /// On Pods of a Karmada control plane: a digest of the files that they are given, so that others roll them.
    pub const FILES: &str = "clusterwright.dev/files";
    /// On what belongs to one version of a Karmada control plane, its workloads and CustomResourceDefinitions: that
    /// version, without `v`.
    pub const VERSION: &str = "clusterwright.dev/version";
    /// On the StatefulSet of a plane's etcd, once it has begun: how many members it has, counting one that leaves until
    /// its volume is gone, and not one that has no vote yet.
    pub const ETCD_MEMBERS: &str = "clusterwright.dev/etcd-members";
    /// On the same: the UIDs of the PersistentVolumeClaims that its members work with, by ordinal, `0=<uid>,1=<uid>`.
    /// Of a member whose claim is another one by now, so that its data is lost, its ID in etcd, `1=lost:<id>`.
    pub const ETCD_VOLUMES: &str = "clusterwright.dev/etcd-volumes";
    /// On Pods of a Karmada control plane: when they were restarted for members' tokens (RFC 3339).
    pub const RESTARTED_AT: &str = "clusterwright.dev/restarted-at";
    /// On a Secret of a Karmada control plane with a member's credentials: when they were changed last (RFC 3339).
    pub const CREDENTIALS_CHANGED_AT: &str = "clusterwright.dev/credentials-changed-at";
    /// On a Cluster of a Karmada control plane: by what the operator reaches the member, `Cluster/<name>`,
    /// `Secret/<name>` or `Host/<name>`.
    pub const REACHED_BY: &str = "clusterwright.dev/reached-by";
    /// On a Secret with a kubeconfig that was read on a Host: where and when, as JSON
    /// `{"host": "<uid>", "run": "...", "at": "..."}`, and `server`, what the file says of it where that is another.
    pub const READ_FROM: &str = "clusterwright.dev/read-from";
    /// On a Cluster of a Karmada control plane: which of its taints are those of `spec.members`, as `key:Effect`,
    /// several separated by commas.
    pub const TAINTS_FROM_MEMBER: &str = "clusterwright.dev/taints-from-member";
    /// On the operator's probes: what each Host was when it was asked, as JSON
    /// `{"<host>": {"uid": "...", "generation": 1, "claimEpoch": 0}}`.
    pub const PROBED: &str = "clusterwright.dev/probed";
}

/// Finalizers.
pub mod finalizer {
    /// On Machines: the Host is given back first.
    pub const MACHINE: &str = "clusterwright.dev/release-host";
    /// On MachineRequests: their Machines are given back first, or left to their set.
    pub const MACHINE_REQUEST: &str = "clusterwright.dev/machines-returned";
    /// On ClusterDeployments: the machines go first.
    pub const CLUSTER_DEPLOYMENT: &str = "clusterwright.dev/machines-released";
    /// On Hosts that are claimed.
    pub const HOST: &str = "clusterwright.dev/claimed";
    /// On Jobs and their Pods: the outcome is recorded first.
    pub const OUTCOME_RECORDED: &str = "clusterwright.dev/outcome-recorded";
    /// On EtcdBackups with `deletionPolicy: Delete` that have begun: what they have stored is removed first.
    pub const BACKUP: &str = "clusterwright.dev/backup-removed";
    /// On Addons: their ClusterAddons go first.
    pub const ADDON: &str = "clusterwright.dev/addon-removed";
    /// On ClusterAddons: what was applied to the cluster is removed first, or left there.
    pub const CLUSTER_ADDON: &str = "clusterwright.dev/objects-removed";
    /// On KarmadaDeployments: the members leave first, and what runs on the host cluster is removed, or left there.
    pub const KARMADA: &str = "clusterwright.dev/plane-removed";
    /// On Clusters of a Karmada control plane: what the join made in the member and in the plane is removed first.
    pub const KARMADA_MEMBER: &str = "clusterwright.dev/member-left";
    /// On Clusters that are members of a Karmada control plane and were imported: they leave it first.
    pub const CLUSTER: &str = "clusterwright.dev/planes-left";
    /// On EtcdRestores that have begun: what they have on the machines is removed first.
    pub const RESTORE: &str = "clusterwright.dev/restore-ended";
    /// On PlaybookRuns: the Job ends first.
    pub const RUN: &str = "clusterwright.dev/run-ended";
}

/// Conditions of a cluster's Nodes that their machines report; `True` is bad, as of all but `Ready`.
pub mod node_condition {
    /// The machine does not reach the Pods of most of the machines that it asks.
    pub const POD_NETWORK_UNREACHABLE: &str = "clusterwright.dev/PodNetworkUnreachable";
    /// The machine gets no answer from the cluster's DNS.
    pub const CLUSTER_DNS_UNREACHABLE: &str = "clusterwright.dev/ClusterDNSUnreachable";
}

/// Condition types.
pub mod condition {
    /// The object is as wanted.
    pub const READY: &str = "Ready";
    /// Every control plane is Ready.
    pub const CONTROL_PLANE_READY: &str = "ControlPlaneReady";
    /// etcd is healthy.
    pub const ETCD_READY: &str = "EtcdReady";
    /// The API server of a Karmada control plane answers where it is to be reached.
    pub const API_SERVER_READY: &str = "APIServerReady";
    /// All other components of a Karmada control plane work: its APIs and webhooks answer, and it answers its probe.
    pub const COMPONENTS_READY: &str = "ComponentsReady";
    /// Every member of a Karmada control plane has joined, and is reached by it.
    pub const MEMBERS_READY: &str = "MembersReady";
    /// Every worker is Ready.
    pub const WORKERS_READY: &str = "WorkersReady";
    /// The network plugin works; of a Machine: its Pods reach those of other machines, and the DNS.
    pub const NETWORK_READY: &str = "NetworkReady";
    /// The last good backup is young enough; only there where a schedule is for the cluster. It is no part of `Ready`.
    pub const BACKED_UP: &str = "BackedUp";
    /// No member of etcd has an alarm, all hold the same, and the database is well below its quota; only there where
    /// the members are the cluster's own. Of `Ready` only the alarms and the comparison are a part, by `EtcdReady`.
    pub const ETCD_DATA_HEALTHY: &str = "EtcdDataHealthy";
    /// The last defragmentation of etcd went well; only there where one is scheduled or was asked for. It is no part of
    /// `Ready`.
    pub const ETCD_DEFRAGMENTED: &str = "EtcdDefragmented";
    /// All objects of an Addon are on the cluster as they are wanted, and none besides.
    pub const APPLIED: &str = "Applied";
    /// Add-ons are rolled out.
    pub const ADDONS_READY: &str = "AddonsReady";
    /// Every machine has the version wanted.
    pub const UP_TO_DATE: &str = "UpToDate";
    /// The maintenance windows can be read and open within a year; only there where `spec.rollout.windows` has any. It
    /// is no part of `Ready`.
    pub const MAINTENANCE_WINDOWS_VALID: &str = "MaintenanceWindowsValid";
    /// Work is under way.
    pub const PROGRESSING: &str = "Progressing";
    /// Nothing more starts.
    pub const PAUSED: &str = "Paused";
    /// The cluster's lock can be given out; only there, and `False`, while its last token is not known.
    pub const LOCK_AVAILABLE: &str = "LockAvailable";
    /// An object that the cluster is decided by cannot be decoded: nothing is done until it can; only there while that
    /// is so.
    pub const ON_HOLD: &str = "OnHold";
    /// It is being deleted.
    pub const DELETING: &str = "Deleting";
    /// SSH, or the API, answers.
    pub const REACHABLE: &str = "Reachable";
    /// The host key is the pinned one.
    pub const HOST_KEY_VERIFIED: &str = "HostKeyVerified";
    /// A claimed Host is the machine that was claimed; only there once a run has looked.
    pub const IDENTITY_VERIFIED: &str = "IdentityVerified";
    /// No other Host says the same machine-id; only there, and `False`, while one does.
    pub const MACHINE_ID_UNIQUE: &str = "MachineIDUnique";
    /// Nothing of a cluster is on the machine.
    pub const CLEAN: &str = "Clean";
    /// A Host is claimed.
    pub const HOST_CLAIMED: &str = "HostClaimed";
    /// The run that makes it part of its cluster succeeded.
    pub const PROVISIONED: &str = "Provisioned";
    /// The Node is Ready.
    pub const NODE_READY: &str = "NodeReady";
    /// Nothing is known to be wrong.
    pub const HEALTHY: &str = "Healthy";
    /// Pods have been moved away.
    pub const DRAINED: &str = "Drained";
    /// Hooks were played on a machine that leaves; only there, and `False`, when it goes on without some.
    pub const HOOKS_PLAYED: &str = "HooksPlayed";
    /// Every machine of the set is Ready.
    pub const MACHINES_READY: &str = "MachinesReady";
    /// Something is done about a sick machine; or why nothing is.
    pub const REMEDIATION: &str = "Remediation";
    /// Not as wanted, and something is done about it; only there while it is so.
    pub const RECONCILING: &str = "Reconciling";
    /// Not as wanted, and nothing is done about it until somebody acts; only there while it is so.
    pub const STALLED: &str = "Stalled";
    /// Machines are being added.
    pub const SCALING_UP: &str = "ScalingUp";
    /// Machines are being removed.
    pub const SCALING_DOWN: &str = "ScalingDown";
    /// There are Hosts enough.
    pub const HOSTS_AVAILABLE: &str = "HostsAvailable";
    /// A MachineSet was scaled although the ClusterDeployment owns its count; only there while it says something.
    pub const REPLICAS_REVERTED: &str = "ReplicasReverted";
    /// Neither the API nor any machine of the cluster has answered for long; only there while it says something.
    pub const MACHINES_LOST: &str = "MachinesLost";
    /// Machines were removed without reaching them, and something in the cluster still stands for them; only there
    /// while it says something.
    pub const MACHINES_FORGOTTEN: &str = "MachinesForgotten";
    /// Machines name the cluster that were made for a former ClusterDeployment of its name; only there while there are
    /// any.
    pub const FORMER_MACHINES: &str = "FormerMachines";
    /// So many machines are sick at once that no healthy one is taken away; only there while it says something.
    pub const REMOVALS_HELD: &str = "RemovalsHeld";
    /// Machines know more than the metadata cluster does, which was set back to an older state; or that is being found
    /// out (`Unknown`). Only there while it says something.
    pub const STORE_IS_OLDER: &str = "StoreIsOlder";
    /// The cluster is installed anew in place of one whose machines were all lost; only there while that goes on.
    pub const REBUILDING: &str = "Rebuilding";
    /// The run has succeeded and its outcome is recorded.
    pub const COMPLETE: &str = "Complete";
    /// Every machine that was requested has become Ready; `False` until then, or for good once it was answered.
    pub const FULFILLED: &str = "Fulfilled";
    /// When the request was answered, some of its machines were Ready; only there once that is so.
    pub const PARTIALLY_FULFILLED: &str = "PartiallyFulfilled";
    /// The run has ended without success and its outcome is recorded, or a request was answered with no machine Ready;
    /// only there once it has.
    pub const FAILED: &str = "Failed";
    /// The stored backup was verified: it is what was written; only there where `spec.verify` asks for it.
    pub const VERIFIED: &str = "Verified";
    /// The run's log can be read.
    pub const LOG_KEPT: &str = "LogKept";
    /// The control plane's components work.
    pub const CONTROL_PLANE_HEALTHY: &str = "ControlPlaneHealthy";
    /// Every node is Ready.
    pub const NODES_HEALTHY: &str = "NodesHealthy";
    /// A machine differs from what is wanted, though its settings were brought to it; of a cluster: some machine does.
    pub const DRIFTED: &str = "Drifted";
    /// No certificate is expired or about to.
    pub const CERTIFICATES_VALID: &str = "CertificatesValid";
    /// The authority or key whose rotation was asked for is rotated, on all machines; only there once one was asked
    /// for. It is no part of `Ready`.
    pub const AUTHORITIES_ROTATED: &str = "AuthoritiesRotated";
}

/// Name of the MachineSet of the control planes of a cluster.
pub fn control_plane_set(cluster: &str) -> String {
    format!("{cluster}-control-plane")
}
/// Name of the MachineSet of the dedicated etcd members of a cluster.
pub fn etcd_set(cluster: &str) -> String {
    format!("{cluster}-etcd")
}
/// Name of the MachineSet of the machines that have all components of a Karmada control plane.
pub fn plane_control_plane_set(plane: &str) -> String {
    format!("{plane}-karmada-control-plane")
}
/// Name of the MachineSet of the dedicated etcd members of a Karmada control plane.
pub fn plane_etcd_set(plane: &str) -> String {
    format!("{plane}-karmada-etcd")
}
/// Name of the MachineSet of a set of workers of a cluster.
pub fn worker_set(cluster: &str, set: &str) -> String {
    format!("{cluster}-{set}")
}
/// Name of the Secret with a cluster's certificate authorities and keys.
pub fn pki_secret(cluster: &str) -> String {
    format!("{cluster}-pki")
}
/// Name of the Secret that takes the keys of a backup on their way to that of the cluster that begins with it; also of
/// the ServiceAccount that may write it, and of what binds both.
pub fn fetched_keys_secret(cluster: &str) -> String {
    format!("{cluster}-fetched-keys")
}
/// Name of the Secret with the leaf certificates of a cluster's etcd.
pub fn etcd_certificates_secret(cluster: &str) -> String {
    format!("{cluster}-etcd-certificates")
}
/// Name of the Secret with the leaf certificates of a Karmada control plane.
pub fn certificates_secret(plane: &str) -> String {
    format!("{plane}-certificates")
}
/// Name of the Secret with a cluster's administrator kubeconfig.
pub fn kubeconfig_secret(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}
/// Name of the Secret with the kubeconfig of a member of a Karmada control plane that was read on a Host.
pub fn member_kubeconfig_secret(plane: &str, member: &str) -> String {
    format!("{plane}-kubeconfig-{member}")
}
/// Name of the Secret that takes the kubeconfigs which a run reads, each under the name of its Host.
pub fn read_kubeconfigs_secret(run: &str) -> String {
    format!("{run}-kubeconfigs")
}
/// Key of the kubeconfig in its Secret.
pub const KUBECONFIG_KEY: &str = "kubeconfig";
/// Name of the Secret with the content of a revision of an Addon.
pub fn addon_revision_secret(addon: &str, revision: &str) -> String {
    format!("{addon}-{revision}")
}
/// Key of the content of a revision in its Secret: JSON, compressed by gzip.
pub const ADDON_REVISION_KEY: &str = "revision.json.gz";
