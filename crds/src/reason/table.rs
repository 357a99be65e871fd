//! The table of reasons, by name. `docs/reasons.md` is written from it.

use super::{ReasonSpec, Severity};
use crate::names::condition as c;

macro_rules! reasons {
    ($($name:ident $severity:ident [$($condition:ident)*] $meaning:literal $remedy:literal;)*) => {
        /// Why something is as it is: the reason of a condition, an Event, or a failure in a run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $(#[doc = $meaning] $name,)*
        }

        impl Reason {
            /// All of them, by name.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// Its name, as a status has it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name),)* }
            }

            /// What there is to know of it.
            pub const fn spec(self) -> ReasonSpec {
                match self {
                    $(Reason::$name => ReasonSpec {
                        severity: Severity::$severity,
                        conditions: &[$(c::$condition),*],
                        meaning: $meaning,
                        remedy: $remedy,
                    },)*
                }
            }
        }
    };
}

reasons! {
    AddonNotFound Warning [APPLIED READY]
        "An Addon is named that the namespace does not have."
        "Correct the name that the message gives, or create that Addon.";
    AddonTaken Warning [ADDONS_READY]
        "An Addon has the name that the Addon of `spec.addons` would have, and is not this ClusterDeployment's."
        "Delete it, or make it anew under another name.";
    AddonsUnhealthy Warning [ADDONS_READY READY]
        "CoreDNS, kube-proxy or the Addon of `spec.addons` is not as it is wanted."
        "Look at what the message names: Pods in `kube-system`, or the conditions of the Addon.";
    AddressNotFound Warning []
        "No interface of the machine has the address."
        "Correct `Host.spec.internalAddress`, or the endpoint's interface.";
    AddressNotIPv4 Warning [COMPLETE FAILED]
        "A machine's address is no IPv4 address, and the steps know no other."
        "Give an IPv4 address in `Host.spec.address` or `spec.internalAddress`.";
    AdoptingClaims Progressing [DELETING STORE_IS_OLDER UP_TO_DATE]
        "What contradicts the metadata cluster was approved: claim epochs and tokens are raised, and Hosts that others have are let go."
        "";
    AgentNotConnected Warning [MEMBERS_READY]
        "The agent of a Pull member has not come to the restored Karmada control plane for five minutes."
        "Have its Deployment `karmada-agent` in the member run, and reach the plane at the address of the message. See [restore](karmada/restore.md#wait-for-the-agents-of-pull-members).";
    AllMachinesLost Warning [MACHINES_LOST READY REBUILDING]
        "Neither the API nor any machine of the cluster has answered for `spec.recovery.lostAfterSeconds`."
        "Bring a machine back, or set `spec.recovery.strategy: Rebuild`, which loses the cluster's data unless its etcd is external.";
    AllReady Normal [CONTROL_PLANE_READY ETCD_READY FULFILLED MACHINES_READY MEMBERS_READY READY WORKERS_READY]
        "All that is wanted is there, and Ready."
        "";
    AnsibleFailed Warning []
        "`ansible-playbook` ended with an error and named no machine."
        "Read the run's log (`status.logRefs`).";
    AnsibleKilled Warning []
        "`ansible-playbook` was killed, usually for want of memory."
        "Read the run's log (`status.logRefs`); it is tried again.";
    Answers Normal [REACHABLE]
        "SSH accepts the operator's login."
        "";
    ApiAnswers Normal [REACHABLE]
        "The cluster's API answers."
        "";
    ApiserverNotReady Warning []
        "A kube-apiserver did not become ready in time."
        "Look at its container's log on the machine that the message names.";
    Applied Normal [APPLIED READY]
        "All objects of the Addon are on the cluster as they are wanted."
        "";
    ApplyFailed Warning [APPLIED MEMBERS_READY READY UP_TO_DATE]
        "The cluster refused an object of the Addon, or of the Karmada control plane."
        "Correct what the message says in the source; it is tried again.";
    Applying Progressing [APPLIED READY UP_TO_DATE]
        "Objects of the Addon, or of the Karmada control plane, are being applied."
        "";
    ArtifactIndexInvalid Warning []
        "The index of the artifact bundle cannot be read."
        "Look at `index.json` at `spec.artifacts.url`; make the bundle anew.";
    ArtifactInvalid Warning []
        "An archive of the bundle lacks files, or holds paths that lead out of it."
        "Make the bundle anew.";
    ArtifactLockInvalid Warning [COMPLETE FAILED READY]
        "The ConfigMap of `spec.artifacts.lockRef` holds no lock."
        "Make it of the file that `wright bundle lock` writes, with the key `bundle.lock`.";
    ArtifactNotFound Warning []
        "The artifact bundle, upstream or its lock lacks a file that the version needs."
        "Add it to the bundle or the lock, or choose a version that is there.";
    ArtifactSourceMissing Warning [READY]
        "There is no bundle, and the catalogue of upstream's releases has no versions for this minor of Kubernetes."
        "Give the URL of a bundle in `spec.artifacts.url`, or use a newer Clusterwright.";
    ArtifactSourceUnavailable Warning []
        "The machine does not reach the artifact bundle, or one of upstream's servers."
        "See the message; open the URL that it names from that machine.";
    AsWanted Normal [DRIFTED]
        "The machine was compared with what its cluster wants, and does not differ; of a cluster: no machine that was compared does."
        "";
    AuthenticationFailed Warning [COMPLETE FAILED REACHABLE READY]
        "The machine does not accept the login: wrong user, key or password."
        "Correct `Host.spec.ssh`, its Secret, or `authorized_keys` on the machine.";
    AuthoritiesDiffer Warning []
        "A machine does not have the authorities that its cluster is to have by now, or a process there has read others."
        "Nothing: it is tried again. The message says what differs.";
    AuthoritiesNotMounted Warning []
        "Pods of a machine do not have all of the cluster's authorities mounted that the machine has."
        "Look at the kubelet there, and at the ConfigMap `kube-root-ca.crt` in the Pods' namespaces; it is tried again.";
    AuthoritiesRefused Warning []
        "The machine could not be made to trust the authorities that are configured."
        "See the message: it ends with what update-ca-certificates or update-ca-trust said.";
    AuthorityEndsInAYear Warning [CERTIFICATES_VALID]
        "An authority of the cluster ends in less than a year; nobody renews it by itself."
        "Rotate it, by the command of the message. See [certificates](operations/certificates.md#rotate-an-authority).";
    AuthorityExpiresSoon Warning [CERTIFICATES_VALID]
        "An authority of the cluster ends in less than 90 days, and with it all that it has signed."
        "Rotate it now, by the command of the message. See [certificates](operations/certificates.md#rotate-an-authority).";
    AuthorityReplaced Warning [AUTHORITIES_ROTATED]
        "The Secret with the cluster's authorities and keys has others than those that its machines have."
        "Put the former ones back; to change them, have them [rotated](operations/certificates.md#rotate-an-authority).";
    AuthorizedKeysRefused Warning []
        "The keys of `configuration.machine.authorizedKeys` cannot be brought to the machine."
        "See the message: it says what sshd reads there instead.";
    Available Normal [READY]
        "The Host may be claimed."
        "";
    BackedUp Normal [BACKED_UP COMPLETE]
        "The backup is in its storage, whole, and was read back; of a cluster: its last one is young enough."
        "";
    BackingUp Progressing [COMPLETE CONTROL_PLANE_READY READY]
        "The backup is being taken; of a cluster: before a restore that is approved."
        "";
    BackupCorrupt Warning [COMPLETE FAILED]
        "A backup, or an object of one, is not what was written."
        "Check the storage, and use another backup; the message names what differs.";
    BackupDoesNotFit Warning [COMPLETE FAILED READY UP_TO_DATE]
        "The ClusterDeployment, or the KarmadaDeployment, differs from what was backed up in what its data depends on."
        "Delete it, and make it with the values that the message names; of an EtcdRestore, set them, and make a new one.";
    BackupExists Warning []
        "Another backup is where this one would go. It was not touched."
        "Nothing: each attempt has a place of its own; make a new EtcdBackup if it goes on.";
    BackupFailed Warning []
        "A backup was not taken, for a reason that has no name of its own."
        "The message says why; see the run's log (`status.logRefs`).";
    BackupInUse Progressing [DELETING]
        "A restore of the backup has not ended, or a cluster that begins with it does not stand yet: what it has stored is \
         removed afterwards."
        "";
    BackupMissed Warning [READY]
        "A backup was not begun within `spec.startingDeadlineSeconds` after it was due, and was left out."
        "The next one is taken when it is due. If it goes on, raise `spec.maxConcurrent` or the deadline.";
    BackupNeedsFormerKey Warning [COMPLETE FAILED]
        "What is in the backup is encrypted with a key, by a KMS plug-in, or of a resource that machines do not decrypt any more."
        "Have machines decrypt it [once more](backup.md#a-backup-of-before-the-encryption-key-was-rotated), then make a new EtcdRestore.";
    BackupNotComplete Progressing [COMPLETE]
        "The EtcdBackup that is to be restored is still being taken."
        "";
    BackupNotFound Warning [COMPLETE FAILED]
        "There is no such EtcdBackup in the namespace, or it has failed."
        "Name another one, or give the place in the storage in `source.stored`, in a new EtcdRestore.";
    BackupNotRemoved Warning [DELETING]
        "What a deleted EtcdBackup has stored cannot be removed from the storage."
        "Do what the message says about the storage; or let the EtcdBackup go with the command that it has.";
    BackupNotStaged Warning []
        "A backup does not lie ready on a machine, or not the same on all."
        "Play the step `stage-backup` again; the message says what differs.";
    BackupNotSupported Warning [COMPLETE FAILED READY]
        "A Karmada control plane is to begin with a backup in a volume, or to be set back to one, which its Pods cannot mount."
        "Copy the backup into a bucket.";
    BackupOfOtherCluster Warning [COMPLETE FAILED READY]
        "The backup is of another cluster: it has another name, or other keys."
        "Name a backup of this cluster in a new EtcdRestore; `manifest.json` in the storage says whose it is.";
    BackupOverdue Warning [BACKED_UP READY]
        "The newest good backup of a cluster is too old: a backup was due twice since then."
        "See what the message and the EtcdBackups of the schedule say; make an EtcdBackup by hand meanwhile.";
    BackupRequired Warning [AUTHORITIES_ROTATED READY UP_TO_DATE]
        "An upgrade waits: the backup that precedes it has failed, and there is no good one of the last hour."
        "See the EtcdBackup that the message names, and its storage; another one is made every ten minutes. Or name `backup` in \
         `spec.preflight.ignore`, of a Karmada control plane `Backup` in `spec.upgrade.ignore`, to upgrade without.";
    BackupShrank Warning [READY]
        "The newest backup has less than half the size of the one before it: no older one is deleted."
        "Look for data that is missing in the cluster. Deletion goes on once the next backup has no less again.";
    BastionChainTooLong Warning [COMPLETE FAILED READY]
        "More bastions in a row than are allowed, or a ring of them."
        "Correct `spec.ssh.bastionRef` of the Hosts.";
    BootstrapTokenRefused Warning []
        "The cluster's API refuses the token that a machine joins with."
        "See the message.";
    BucketNotFound Warning [REACHABLE]
        "The bucket of a storage is not there."
        "Create it, or correct `BackupStorage.spec.s3.bucket`.";
    BudgetExhausted Warning [READY REMEDIATION]
        "As many machines as `maxConcurrent` allows are under repair."
        "Nothing: it goes on when one of them is done.";
    BundleDigestMismatch Warning [APPLIED READY UP_TO_DATE]
        "A bundle's index, or a file of it, is not the one that was meant; clusters keep what they have."
        "Find out who has changed it, or correct `indexSHA256`.";
    BundleEntryNotFound Warning [APPLIED READY UP_TO_DATE]
        "The bundle has no entry of this name, version and kind."
        "Add it with `wright bundle add`, or correct the name or the version.";
    BundleInvalid Warning [APPLIED READY UP_TO_DATE]
        "The bundle's index, or an entry of it, cannot be read, or is too large."
        "See the message; make the bundle anew, or split the entry.";
    BundleNotFetched Warning [APPLIED READY UP_TO_DATE]
        "The bundle's server does not answer the operator, or refuses it; clusters keep what they have, and it is asked again."
        "See the message: the URL, the login of `credentialsRef`, the authorities of `caRef`, or the server.";
    BundleNotSigned Warning [APPLIED READY UP_TO_DATE]
        "The entry has no signature of the key that `signedBy` gives."
        "Sign it with `wright bundle add --signing-key`, or find out who has changed it.";
    CIDROverlap Warning [READY]
        "Two of the cluster's networks, or one and its machines, overlap."
        "Choose other ranges in `spec.networking`.";
    CanaryFailed Warning [READY]
        "A cluster that got a change of the Addon first is not healthy with it: no other gets it."
        "Look at the ClusterAddon that the message names; correct the source, or set it back.";
    Canceled Warning [COMPLETE FAILED PROVISIONED READY REMEDIATION]
        "A person stopped it."
        "To go on, use the command that the message names.";
    CanceledUnconfirmed Warning [COMPLETE FAILED]
        "The run was stopped, and not every machine confirmed that nothing of it is at work any more."
        "Nothing: the next run waits on each machine until the earlier one's processes have ended.";
    CancelingRuns Progressing [DELETING]
        "The cluster is being deleted: its runs are stopped first."
        "";
    CertificateNamesMissing Warning []
        "The API server's certificate lacks a name that clients use."
        "Look at the machine's `/etc/kubernetes/pki`; run the step `control-plane` again.";
    CertificateNotServed Warning []
        "A certificate was renewed or an authority replaced, and the process that uses it has not taken it up in time, or is not healthy since."
        "The message names it: look at its log on the machine; it is tried again.";
    CertificateRejected Warning [REACHABLE READY]
        "The API's certificate is not signed by the kubeconfig's authority for this address, or has ended."
        "Look at who answers at the address; renew the certificate, or correct the kubeconfig.";
    CertificateUnreadable Warning []
        "A certificate's file on the machine, or a kubeconfig, holds none that can be read."
        "The message names the file: put it back from a backup, or delete it and let kubeadm make it anew.";
    CertificatesExpired Warning [COMPLETE]
        "Certificates of the cluster have ended, without which its etcd cannot be read, or cannot start on restored data."
        "Nothing while they are renewed, which needs SSH alone: see the condition `CertificatesValid` of the cluster.";
    CertificatesNotRenewed Warning []
        "After a renewal a certificate still ends soon, or is not in use."
        "The message names it; it is tried again.";
    CertificatesNotSeen Progressing [CERTIFICATES_VALID]
        "The machines have not been asked yet when their certificates end: it is done six hours after a machine joined, and once a day."
        "";
    ChartDigestMismatch Warning [APPLIED READY]
        "The chart's archive is not the one that `source.chart.digest` names; nothing was installed."
        "Find out who has changed it, or correct the digest.";
    ChartNotFetched Warning [APPLIED READY]
        "The chart cannot be fetched from its registry or repository; the release stays as it is, and it is tried again."
        "See the message: the name, the version, the login of `credentialsRef`, the authorities of `caRef`, or the server.";
    Claimed Normal [HOST_CLAIMED READY]
        "A Host is claimed."
        "";
    Claiming Progressing [HOST_CLAIMED READY]
        "A Host is being claimed."
        "";
    CleaningFailed Warning [READY]
        "The machine could not be cleaned; its Host is quarantined."
        "Look at `status.lastRun` of its last reset, clean the machine, then release the Host.";
    CleaningMachines Progressing [DELETING]
        "The cluster is being deleted: its machines are reset."
        "";
    ClusterDNSUnreachable Warning [HEALTHY NETWORK_READY]
        "Pods of the machine do not reach the cluster's DNS."
        "Look at CoreDNS, at kube-proxy, or what stands in its place, and at the network plugin on that machine.";
    ClusterDeleting Progressing [COMPLETE FAILED FULFILLED HOST_CLAIMED PARTIALLY_FULFILLED READY SCALING_UP]
        "The cluster is being deleted."
        "";
    ClusterHealthy Normal [READY]
        "The cluster answers, and nothing is known to be wrong with it."
        "";
    ClusterIdentityChanged Warning [CERTIFICATES_VALID CONTROL_PLANE_HEALTHY NODES_HEALTHY REACHABLE READY]
        "Another cluster answers at the endpoint than before."
        "Find out who holds the address; delete the `Cluster` object if the change was meant.";
    ClusterNameMissing Warning [FAILED]
        "The run changes machines and names no cluster."
        "Make a new run with `spec.clusterName`.";
    ClusterNotFound Warning [APPLIED COMPLETE DELETING FULFILLED HEALTHY HOST_CLAIMED MEMBERS_READY READY SCALING_UP UP_TO_DATE]
        "There is no ClusterDeployment of that name in the namespace."
        "Make it, or delete the object that names it.";
    ClusterNotThereYet Progressing [NODE_READY]
        "The cluster's API has not answered yet."
        "";
    ClusterNotVerified Progressing [MEMBERS_READY]
        "A Cluster that `autoJoin` selects is not Ready yet, or one of its Addons is not."
        "";
    ClusterPaused Warning [READY REMEDIATION]
        "The cluster is paused: no machine is repaired."
        "Set `spec.paused: false`.";
    ClusterUnreachable Warning [APPLIED CONTROL_PLANE_READY DELETING DRAINED ETCD_READY HEALTHY MEMBERS_READY NODE_READY READY REMEDIATION UP_TO_DATE WORKERS_READY]
        "The cluster's API does not answer."
        "See the `Cluster` object; its condition `Reachable` says why.";
    ClustersFailed Warning [READY]
        "Clusters are not as the Addon wants them."
        "Look at the ClusterAddon that the message names.";
    CommandRunning Warning []
        "An earlier command of the same run does not end on the machine."
        "Look at the processes that `guard.log` on the machine names.";
    ComparisonFailed Warning [DRIFTED]
        "A machine could not be compared with what its cluster wants: it, or something on it that was asked, did not answer."
        "Look at the machine; the message says what did not answer. It is compared again by itself.";
    Complete Normal [COMPLETE]
        "Every step is done on every machine."
        "";
    ComponentChanged Warning []
        "A component in the bundle has changed under the same version."
        "Give the bundle a new version, or restore the file.";
    ComponentStarting Progressing [READY UP_TO_DATE]
        "Pods of a component of a Karmada control plane are starting, or it waits for those that start before it."
        "";
    ComponentUnhealthy Warning [CONTROL_PLANE_HEALTHY READY]
        "A component of the control plane does not work."
        "Look at the component that the message names.";
    ComponentsWork Normal [CONTROL_PLANE_HEALTHY]
        "Every component of the control plane works."
        "";
    ConfigMapNotFound Warning [APPLIED COMPLETE REACHABLE READY]
        "A ConfigMap that the spec names is not there."
        "Make it, or correct the reference.";
    ConfigurationDiffers Warning []
        "A control plane does not run with the flags and files that are wanted."
        "Run the step `control-plane-configuration` again; the message says what differs.";
    ConfigurationFailed Warning [UP_TO_DATE]
        "A machine could not be brought to settings that were changed; no other machine is, meanwhile."
        "See the message: correct the setting, or take it back; or repair the machine, and retry.";
    ConfigurationRefused Warning []
        "A component did not work with the configuration that it was given; it has the former one again."
        "See the message: it ends with what the component said. Correct the field, or take it back.";
    Configuring Progressing [UP_TO_DATE]
        "Settings that were changed are brought to machines, or to the cluster."
        "";
    ConnectionRefused Warning [CONTROL_PLANE_HEALTHY NODES_HEALTHY REACHABLE READY]
        "The API refuses the connection."
        "Look at the load balancer and kube-apiserver behind the address.";
    ConnectionReset Warning [REACHABLE READY]
        "The API's connection was reset."
        "Look at what stands between the metadata cluster and the API.";
    ContactLost Warning [COMPLETE FAILED PROVISIONED READY REMEDIATION]
        "Nobody knows whether the executor still works: its node or its Pod is out of sight."
        "Nothing: the next attempt finds out from the machines themselves.";
    ControlPlaneMissing Warning []
        "A run needs the cluster's endpoint, and no control plane is known to be part of the cluster."
        "Nothing: right after an install it is known within seconds. Else look at the Machines of the control plane.";
    ControlPlaneNotHeld Warning []
        "Something of the control plane still runs on a machine, where it is to be held."
        "Look at the kubelet of the machine that the message names, or end what it names by hand.";
    ControlPlaneNotReleased Warning []
        "The control plane that was held is not healthy again on a machine."
        "Look at the kubelet of the machine that the message names.";
    ControlPlaneTooOld Warning []
        "The cluster's configuration still says an older version of Kubernetes than a worker is to have."
        "Nothing: the control planes are upgraded first. By hand: run `kubeadm-upgrade` on them.";
    CoolingDown Progressing [READY REMEDIATION]
        "Many machines were sick at once: nothing is done for `cooldownSeconds`."
        "";
    DNSPodMoved Normal []
        "A CoreDNS Pod was evicted so that the Pods do not share a machine."
        "";
    DeadlineExceeded Warning [COMPLETE FAILED PROVISIONED READY]
        "The run's time was over."
        "Nothing: it is tried again from the first step that is not done; raise `timeoutSeconds` if that is always too short.";
    DecodingFailed Warning []
        "An object cannot be decoded; what is decided by it is on hold."
        "Correct the field that the message names.";
    DefragmentationFailed Warning [ETCD_DEFRAGMENTED]
        "The last defragmentation of etcd ended without success."
        "Correct what the message says; it is made again when it is due, or by the command of the message.";
    DefragmentationScheduled Normal [ETCD_DEFRAGMENTED]
        "No defragmentation of etcd was due yet."
        "";
    DefragmentationWaiting Progressing [ETCD_DEFRAGMENTED]
        "A defragmentation of etcd is due, and waits until nothing else changes the cluster and all members are healthy."
        "";
    Defragmented Normal [ETCD_DEFRAGMENTED]
        "The last defragmentation of etcd went well."
        "";
    Defragmenting Progressing [ETCD_DEFRAGMENTED]
        "The members of etcd are being defragmented, one after the other."
        "";
    Deleting Progressing [READY SCALING_UP]
        "The object is being deleted."
        "";
    DeletingMachines Progressing [DELETING]
        "The cluster is being deleted: its Machines are deleted."
        "";
    DeletingNode Progressing [DELETING]
        "The machine's Node is deleted."
        "";
    DeletionProtected Warning [DELETING]
        "`spec.deletionProtection` keeps the cluster from being deleted."
        "Confirm with the command that the message names.";
    DependencyCycle Warning [READY]
        "Addons wait for each other in a circle."
        "Take one of the names that the message gives out of its `spec.dependsOn`, or change a `spec.wave`.";
    DigestMismatch Warning [COMPLETE FAILED]
        "A file of the bundle has another checksum than its index says."
        "Make the bundle anew, or look at what stands between.";
    DiskFull Warning []
        "A machine has too little room on its disk for what is to be put there."
        "Make room, or give it a larger disk; the message says how much is needed.";
    DrainOnHold Warning [DRAINED]
        "The Node is to be drained, or to take Pods again, and nothing is written to the cluster's Nodes now."
        "See the message: usually `spec.paused` of its cluster.";
    Drained Normal [DRAINED]
        "No Pod that has to move is left on the Node."
        "";
    Draining Progressing [DELETING DRAINED]
        "Pods are moved away from the Node."
        "";
    DriftRepairFailed Warning [DRIFTED]
        "A machine still differs from what its cluster wants after the last attempt to play the steps again."
        "Look at what the message names on the machine, correct the cause, and type the command in the message.";
    Drifted Warning [DRIFTED]
        "A machine is not any more as its runs left it: files, units, versions or kernel parameters differ."
        "Find out who changed it; to have it changed back, type the command in the message, or set `spec.drift.repair: Automatic`.";
    EndpointUpdateFailed Warning [CONTROL_PLANE_READY ETCD_READY READY]
        "A machine could not be given the list of etcd's members or control planes."
        "See the message; it is tried again.";
    EndpointWrong Warning []
        "The cluster tells machines that join of another endpoint than the one in the spec."
        "Correct ConfigMap `cluster-info` in `kube-public`.";
    EnoughHosts Normal [HOSTS_AVAILABLE]
        "No Machine looks for a Host in vain."
        "";
    EpochDiffers Warning []
        "The machine was claimed for something else since: the run is of an earlier claim."
        "Nothing: a new run is made for the new claim. By hand, make a new run.";
    EstimatorNameTooLong Warning [MEMBERS_READY]
        "A member has no estimator: the Service by whose name the scheduler looks for it would have a name of more than 63 characters."
        "Join it under a shorter name, or set `enabled: false` in its `estimator`: then the scheduler estimates by the sum of its Nodes.";
    EstimatorNotReady Warning [MEMBERS_READY]
        "The estimator of a member does not work. Its replicas are estimated by the sum of its Nodes meanwhile."
        "See the message: the Pod that it names runs on the host cluster, and must reach the member's API.";
    EstimatorProgressing Progressing [MEMBERS_READY]
        "The estimator of a member is being made, started or removed."
        "";
    EstimatorsNotWanted Warning []
        "The descheduler is wanted and estimators are not: it asks them which replicas cannot run, so it moves nothing."
        "Set `spec.estimator: {}`, or take `spec.descheduler` out.";
    EtcdCertificateInvalid Warning []
        "The certificate of a member of etcd is not trusted, or names another host than its endpoint."
        "Give the authority that signed it in `ca.crt` of the Secret of `etcd.secretRef`, and an endpoint that it names.";
    EtcdClientRefused Warning []
        "A member of etcd refuses the client's certificate."
        "Give `tls.crt` and `tls.key` that etcd's administrator issued in the Secret of `etcd.secretRef`.";
    EtcdCorrupt Warning [ETCD_DATA_HEALTHY ETCD_DEFRAGMENTED ETCD_READY READY UP_TO_DATE]
        "Members of etcd hold different data, or one has the alarm CORRUPT."
        "Make a backup, then replace the machine of the member that differs from most (delete its Machine).";
    EtcdDataDiffers Warning []
        "The members of etcd hold different data."
        "Undo the restore, or restore again from one backup.";
    EtcdDataHealthy Normal [ETCD_DATA_HEALTHY]
        "No member of etcd has an alarm, none is known to hold other data, and the database is below 80 % of its quota."
        "";
    EtcdDataMissing Warning []
        "The machine holds no data of etcd to go on from."
        "Choose another member.";
    EtcdDatabaseGrew Warning []
        "While a member of etcd was read, its database grew by more than a quarter and 1 GiB, or nearly up to its quota."
        "Set `spool: true` on the EtcdBackup, or raise or leave out `bytesPerSecond`; the storage is slower than etcd is written.";
    EtcdDatabaseLarge Warning [ETCD_DATA_HEALTHY]
        "etcd's database is above 80 % of its quota; at 100 % etcd accepts no more writes."
        "Defragment it by the command of the message; delete objects that nobody needs if little of it is free.";
    EtcdDowngrade Warning []
        "A backup is of a newer minor version of etcd than the machines run."
        "Install that version of etcd first, or use an older backup.";
    EtcdEndpointsDiffer Warning []
        "An API server still speaks to members of etcd that are not wanted."
        "Run the step `etcd-endpoints` again.";
    EtcdExternal Warning [COMPLETE FAILED]
        "The cluster's etcd is external: it is backed up here, and restored by whoever runs it."
        "Give its administrator the backup: `docs/backup.md` says how it is read with `age` and `etcdutl`.";
    EtcdForeignData Warning []
        "The machine holds data of another etcd."
        "Look what it is, then reset the machine.";
    EtcdFragmented Warning []
        "Much of a member's database is still free after it was defragmented."
        "Make it again; the run's log says what was done.";
    EtcdInUse Warning [READY UP_TO_DATE]
        "Another ClusterDeployment or KarmadaDeployment has the same external etcd with the same prefix."
        "Give the younger one another prefix, or an etcd of its own.";
    EtcdLearnerInTheWay Warning []
        "Another member is still a learner."
        "Let it come to its end, or remove it.";
    EtcdMemberCleanupPending Warning [MACHINES_FORGOTTEN]
        "A machine that was removed by force still has a member in etcd, which is taken out."
        "See the message.";
    EtcdMemberInTheWay Warning []
        "A member is sick and is none of the cluster's machines."
        "Take it out first; the message names it.";
    EtcdMemberRemains Warning []
        "The member is still in etcd after its removal."
        "Nothing: it is tried again; the message names the member.";
    EtcdMemberRemovalFailed Warning [CONTROL_PLANE_READY ETCD_READY READY UP_TO_DATE]
        "A member could not be taken out of etcd."
        "See the message; it is tried again.";
    EtcdMemberRemoved Warning []
        "The machine's member was taken out of etcd."
        "Reset the machine, then let it join anew.";
    EtcdMemberUnhealthy Warning [HEALTHY READY]
        "The machine's member of etcd does not work, and another one does."
        "Look at `systemctl status etcd` on it, or let a RemediationPolicy repair it.";
    EtcdMemberUnsuitable Warning []
        "The member of etcd that was chosen can no longer be backed up from."
        "Nothing: the next attempt chooses again; the message says what is wrong with it.";
    EtcdNoMember Warning []
        "No member of etcd can be backed up from: each is away, a learner, corrupt, or without a majority."
        "Repair etcd; the message says what each member lacks.";
    EtcdNoQuorum Warning []
        "The member of etcd has no contact to a majority."
        "Bring the other members back.";
    EtcdNoSpace Warning [ETCD_DATA_HEALTHY ETCD_READY READY UP_TO_DATE]
        "etcd's quota is used up (alarm NOSPACE): it accepts no writes."
        "Run the command of the message, which compacts and defragments etcd; delete objects that nobody needs if that does not help.";
    EtcdNotLookedAt Progressing [ETCD_DATA_HEALTHY]
        "The machines of etcd's members have not been asked about it yet."
        "";
    EtcdNotRecovered Warning []
        "etcd does not go on with one member."
        "Look at etcd's log on the machine; restore a backup if its data is damaged.";
    EtcdNotRestored Warning []
        "etcd does not work with the data that it should have after a restore, or after one was undone."
        "Nothing: it is tried again; see etcd's log on the machine.";
    EtcdNotStopped Warning []
        "etcd does not stop on a machine, or another process has its data open."
        "Look at `systemctl status etcd` on it, or end the process by hand.";
    EtcdPermissionDenied Warning []
        "etcd does not let the client's user take a snapshot."
        "Give a client certificate whose common name is a user of etcd with the role `root`.";
    EtcdPrefixEmpty Warning []
        "An etcd holds no key below the prefix whose data is backed up."
        "Correct the endpoints or the prefix: it may be another etcd than was meant.";
    EtcdRecoveryFailed Warning [CONTROL_PLANE_READY ETCD_READY READY]
        "etcd could not go on with one member."
        "See the message; restore a backup if its data is damaged.";
    EtcdRestoreUnclear Warning []
        "Data that is neither that from before a restore nor the restored one is in etcd's directory."
        "Look what it is, and move it away; the message names the directories.";
    EtcdScalingBlocked Warning [READY UP_TO_DATE]
        "Members of a Karmada control plane's etcd are to be added, removed or replaced, and that does not go on."
        "Do what the message says; the members that there are go on meanwhile.";
    EtcdSplit Warning []
        "Members of etcd are of different clusters."
        "Wipe the one that does not belong; the message names them.";
    EtcdTooOld Warning [ETCD_DEFRAGMENTED]
        "A member runs etcd before 3.6.5, which a defragmentation may damage."
        "Give the machines a newer etcd first.";
    EtcdUnhealthy Warning [ETCD_READY READY REMEDIATION]
        "etcd, or a member of it, does not work."
        "Look at the machine that the message names; an external etcd is repaired by those who run it.";
    EtcdUnreachable Warning []
        "A member of etcd does not answer."
        "Look at etcd on the machine that the message names (`journalctl -u etcd`), or at the way to its endpoint.";
    EtcdVersionNotAllowed Warning [READY]
        "The version of etcd that is wanted is more than one minor above that of a member, or of an older minor."
        "Set `spec.versions.etcd` to what the message allows: etcd takes one minor at a time, and never goes back.";
    Evicted Warning [COMPLETE FAILED]
        "The executor's Pod was evicted."
        "Nothing: it is tried again. Give it a priority class if that happens often.";
    ExecutorDied Warning [COMPLETE FAILED]
        "The executor's process ended without a result."
        "Read the run's log; it is tried again.";
    ExecutorKilled Warning [COMPLETE FAILED]
        "The executor's process was killed."
        "Look at its node; it is tried again.";
    Expired Warning [CERTIFICATES_VALID READY]
        "A certificate has ended."
        "The message names it. See [certificates](operations/certificates.md); of an imported cluster, renew the kubeconfig.";
    ExpiresSoon Warning [CERTIFICATES_VALID READY]
        "A certificate ends soon."
        "The message names it. See [certificates](operations/certificates.md); of an imported cluster, renew the kubeconfig.";
    Fenced Warning []
        "A newer run has the machine: this one may do nothing there any more."
        "Nothing: the newer run goes on.";
    FetchingKeys Progressing [COMPLETE READY UP_TO_DATE]
        "A Job fetches the keys of the backup that the cluster, or the Karmada control plane, begins with or is set back to."
        "";
    FieldConflict Warning [APPLIED MEMBERS_READY READY UP_TO_DATE]
        "Another field manager has set fields of an object otherwise; the object is left as it is."
        "Take the fields out of the source, make the other manager give them up, or set `spec.conflicts: Force`.";
    Forbidden Warning [REACHABLE READY]
        "The API does not admit the kubeconfig's user (403)."
        "Give the user of the kubeconfig its rights.";
    ForceRemoved Warning [READY]
        "The machine was removed without being cleaned; its Host is quarantined."
        "Once the machine is back, release the Host with the command in its message.";
    ForeignRuntime Warning []
        "Another container runtime is on the machine."
        "Remove it, as the message says.";
    ForgottenMachineIsBack Warning []
        "The Node of a machine that was removed by force has come back; it is cordoned or deleted."
        "Clean the machine.";
    FormerPlaneRuns Warning [READY UP_TO_DATE]
        "The Karmada control plane that was backed up still answers: two planes over the same members undo each other's work."
        "Stop its programs; see [restoring a plane](karmada/restore.md#stop-the-former-plane).";
    GuardFailed Warning []
        "The guard cannot be installed on the machine, or cannot do its work."
        "See the message: usually a full disk, a read-only file system or a foreign architecture.";
    HealthCheckInvalid Warning [HEALTHY READY]
        "An expression of `spec.healthChecks` cannot be read, or concerns no object of the Addon."
        "Correct it as the message says.";
    Held Progressing [PAUSED]
        "The cluster is paused, and its run waits between two steps."
        "Set `spec.paused: false` to go on.";
    HostClaimed Warning [MEMBERS_READY]
        "The Host of a member's `hostRef` is a machine of a cluster that was built here."
        "Name that cluster in the member's `clusterRef`, or a Host that nobody has claimed.";
    HostForbidden Warning [API_SERVER_READY COMPONENTS_READY DELETING ETCD_READY READY UP_TO_DATE]
        "The host of a Karmada control plane does not let the operator use the plane's namespace, or it is not there."
        "On the metadata cluster, name the namespace in `karmada.hostNamespaces` of the chart, or run the command of the message; on another host, give the user of its Cluster's kubeconfig the rights of the ClusterRole `clusterwright-karmada-host`.";
    HostKeyChanged Warning [FAILED HOST_KEY_VERIFIED REACHABLE READY]
        "The machine shows another host key than the pinned one."
        "If the machine was made anew, correct `Host.spec.ssh.hostKeys`; if not, find out who answers.";
    HostKeyUnknown Warning [COMPLETE FAILED HOST_KEY_VERIFIED READY]
        "No key of the Host is pinned."
        "Wait for its probe, or give `Host.spec.ssh.hostKeys`.";
    HostNotFound Warning [HEALTHY HOST_CLAIMED MEMBERS_READY READY]
        "There is no such Host in the namespace."
        "Make it, or correct the name.";
    HostNotHeld Warning [FAILED]
        "The Host is not claimed by a machine of this cluster."
        "Name a Host of the cluster, or make the run without a cluster.";
    HostNotInCluster Warning [COMPLETE FAILED]
        "The Host is no machine of the run's cluster."
        "Name a Host of the cluster.";
    HostNotReady Warning [HOST_CLAIMED READY]
        "The Host that the Machine names is not available."
        "See the Host's `status.message`.";
    HostQuarantined Warning []
        "Joining failed on this Host for good: it is quarantined, and another one is taken."
        "See the Host's `status.message`; release it when it is mended.";
    HostReleased Normal [DELETING]
        "The Host is given back to the pool."
        "";
    HostSchedulable Warning [MEMBERS_READY]
        "The Host of a member's `hostRef` may be claimed for a cluster, and its machine made anew."
        "Set `Host.spec.unschedulable` with the command of the message.";
    HostTaken Warning [HOST_CLAIMED READY]
        "Another Machine has the Host that this one names."
        "Delete one of the two.";
    HostsFree Normal [HOSTS_AVAILABLE]
        "Hosts of the pool can be claimed."
        "";
    IdentityDoesNotMatch Warning [COMPLETE FAILED]
        "The backup cannot be decrypted with the identity that was given: it was encrypted for others."
        "Give the identity of one of the recipients that it was taken for, in a new EtcdRestore.";
    IdentityInvalid Warning [COMPLETE FAILED]
        "What was given to decrypt a backup is no age identity."
        "Put the file that `age-keygen` wrote into the Secret, key `identity`; the message says what is wrong with it.";
    Idle Normal [PROGRESSING]
        "No run is under way, and none is due."
        "";
    ImageImportFailed Warning []
        "An image of the bundle cannot be imported."
        "See the message; look at containerd and the disk of the machine.";
    ImagePullFailed Warning [COMPLETE]
        "The executor's image cannot be pulled."
        "Correct `spec.executor.image`, the registry, or the pull Secret.";
    ImagesMissing Warning []
        "Images that the version needs are not on the machine after the import."
        "Look at the bundle's images; run the step `container-runtime` again.";
    InputsChanged Warning [FAILED]
        "What the run was to work with has changed since it was asked for."
        "Nothing: a new run is made. By hand, make a new run.";
    InputsInvalid Warning []
        "The executor cannot read its inputs."
        "The operator and the executor are of different versions: use images of one release.";
    InputsRefused Warning []
        "The executor refused its inputs."
        "Read the run's log.";
    InputsTooLarge Warning [COMPLETE FAILED]
        "The run's inputs exceed what a ConfigMap holds."
        "Make `playbookVars`, manifests or custom playbooks smaller.";
    InputsUnreadable Warning []
        "The executor cannot read the mounted inputs."
        "Look at the Pod's volumes; it is tried again.";
    InstallCanceled Warning [READY]
        "The install was canceled."
        "To go on, use the command that the message names.";
    InstallFailed Warning [ETCD_READY READY UP_TO_DATE]
        "The install failed."
        "See the message: the machine, the step and the cause. It is tried again as long as attempts are left.";
    Installing Progressing [ETCD_READY READY UP_TO_DATE]
        "The control plane is being installed."
        "";
    Internal Warning []
        "The executor itself failed."
        "Read the run's log; it is tried again.";
    InternalAddressMissing Warning [COMPLETE FAILED]
        "The Host has no address for the cluster's own network."
        "Give `Host.spec.internalAddress`.";
    InternalError Warning []
        "A module of the collection failed in an unforeseen way."
        "Read the run's log; it is tried again.";
    InvalidAuthority Warning [AUTHORITIES_ROTATED READY]
        "A certificate or key in the Secret of `spec.certificates.caRef` cannot be an authority of the cluster."
        "Correct the Secret; the message names the entry, and says what is allowed. See [certificates](operations/certificates.md#authorities-of-your-own).";
    InvalidCA Warning [APPLIED COMPLETE FAILED REACHABLE READY]
        "The ConfigMap of a `caRef` holds no certificate."
        "Put one or more PEM certificates under `ca.crt`.";
    InvalidEtcdClient Warning [COMPLETE FAILED READY]
        "A certificate or the private key in the Secret of `spec.etcd.secretRef` cannot be used."
        "Correct the Secret; the message names the key and says what was found.";
    InvalidPodSpec Warning [READY UP_TO_DATE]
        "A volume, a mount or a container that the API server of a Karmada control plane is to have besides does not fit its Pods."
        "Correct the field that the message names.";
    InvalidSSHKey Warning [COMPLETE FAILED READY]
        "The Secret's `ssh-privatekey` is no private key that SSH reads."
        "Correct the Secret; the message says what was found.";
    InvalidVariable Warning [COMPLETE FAILED]
        "A variable has a name, a depth or a value that is not allowed."
        "Correct the variable that the message names.";
    InvalidVariables Warning []
        "A step refuses its variables."
        "Correct the variable that the message names.";
    InventoryMismatch Warning []
        "Ansible reads the inventory otherwise than it was written."
        "Read the run's log; a name in it is not what it seems.";
    JobDeleted Warning [COMPLETE FAILED]
        "The run's Job was deleted."
        "Nothing: it is tried again.";
    JoinFailed Warning [CONTROL_PLANE_READY ETCD_READY READY UP_TO_DATE WORKERS_READY]
        "A machine could not join the cluster."
        "See the message: the machine, the step and the cause.";
    Joining Progressing [CONTROL_PLANE_READY ETCD_READY READY UP_TO_DATE WORKERS_READY]
        "A machine is joining the cluster."
        "";
    JoiningMember Progressing [MEMBERS_READY]
        "A member is joining a Karmada control plane."
        "";
    KMSPluginNotReady Warning []
        "A KMS plug-in that is to encrypt, or to decrypt, does not answer on a control plane as API servers need it."
        "The message says what it answers: have it run on each control plane, with its socket at `encryption.kms.endpoint`. See [encryption](operations/encryption.md#encrypt-by-a-kms-plug-in).";
    KarmadaDeploymentNotFound Warning [COMPLETE READY]
        "There is no KarmadaDeployment of that name in the namespace."
        "Make it, or name another one; an EtcdBackup is immutable: make a new one.";
    KarmadaForeignFiles Warning []
        "`/etc/karmada` or `/var/lib/karmada` on a machine has files that are not of its control plane."
        "Move them away, or take another machine: nothing of them was touched.";
    Kept Normal [LOG_KEPT]
        "The run's log is kept in ConfigMaps."
        "";
    KernelModuleMissing Warning []
        "A kernel module cannot be loaded."
        "Install the kernel's modules; the message names it.";
    KernelTooOld Warning []
        "Nodes have a kernel that is too old for the mode of kube-proxy that is configured."
        "Install a newer kernel on the Nodes that the message names, or take `configuration.kubeProxy.mode` back.";
    KeysDiffer Warning [COMPLETE FAILED READY UP_TO_DATE]
        "The Secret `<name>-pki` is there with other keys than the backup that the cluster, or the Karmada control plane, begins with; \
         or the data of an EtcdRestore's backup is encrypted with a key that the plane does not have any more."
        "Delete that Secret if nobody needs it: the keys of the backup take its place. Or name another backup in a new object; never \
         delete the Secret of a plane that is there.";
    KeysNotFetched Warning [COMPLETE READY UP_TO_DATE]
        "The keys of the backup that the cluster, or the Karmada control plane, begins with or is set back to cannot be had."
        "The message says why; it is tried again.";
    Killed Warning [FAILED]
        "The run was killed by a person; what it had begun on the machines is not known."
        "Nothing: the next run looks first.";
    KindNotFound Warning [APPLIED READY UP_TO_DATE]
        "The cluster, or the Karmada control plane, has no such kind."
        "Install its CustomResourceDefinition, by this Addon or by one that it depends on; or correct `apiVersion` and `kind`.";
    KubeProxyMissing Warning []
        "The cluster has no kube-proxy that could be configured."
        "Make its ConfigMap and its DaemonSet again, or take `configuration.kubeProxy.mode` back.";
    KubeadmFailed Warning []
        "kubeadm failed."
        "See what kubeadm said in the message, and the run's log.";
    KubeadmUnfinished Warning []
        "kubeadm has not come to its end on the machine."
        "Nothing: the step runs again.";
    KubeconfigMissing Warning []
        "The machine holds no kubeconfig of a cluster, or the cluster no configuration of kubeadm's."
        "See the message.";
    KubeconfigNotFound Warning []
        "The machine has no administrator's kubeconfig where kubeadm, k3s and RKE2 put it."
        "Name a Host that is a control plane of the cluster, or put its kubeconfig into a Secret (`kubeConfigSecretName`).";
    KubeconfigNotRead Warning [FAILED]
        "The kubeconfig of a machine was read, or was to be, and did not come into its Secret."
        "See the message; it is read again by itself.";
    KubeconfigRejected Warning [CERTIFICATES_VALID CONTROL_PLANE_HEALTHY MEMBERS_READY NODES_HEALTHY REACHABLE READY]
        "The kubeconfig of the Secret cannot be used."
        "Correct the Secret; the message says why.";
    KubeletNotHealthy Warning []
        "The kubelet is not healthy."
        "See its journal in the message.";
    KubeletTooNew Warning []
        "The kubelet that is to be installed is newer than its API server, which Kubernetes does not support."
        "Nothing: the control planes are upgraded first. By hand: run `kubeadm-upgrade` on them.";
    KubernetesVersionDiffers Warning [COMPLETE FAILED]
        "The cluster ran another minor version of Kubernetes when the backup was taken."
        "Name a backup of the version that it runs, in a new EtcdRestore.";
    LastBackupFailed Warning [READY]
        "The last backup of a cluster was given up."
        "See the EtcdBackup that the message names; another one is taken when it is due.";
    LastVerificationFailed Warning [READY]
        "The last backup of a cluster that was verified is not what was written."
        "See the EtcdBackup that the message names, and check the storage; the next backup is verified, too.";
    LeaderElection Normal []
        "An operator has won the lease."
        "";
    LeavingEtcd Progressing [DELETING]
        "The machine's member is taken out of etcd."
        "";
    LeftoversFound Warning [CLEAN READY]
        "Something of a cluster is left on the machine."
        "Reset the machine; it is looked at again by itself.";
    LoadBalancerNotReady Warning []
        "The endpoint's load balancer does not answer."
        "Look at haproxy and keepalived on the machine, or at your load balancer.";
    LoadBalancerPeersUnaware Warning []
        "Other machines hold the endpoint's address, or do not know this one as a peer yet."
        "Look at the machine that the message names; the join goes on by itself afterwards.";
    LockClosed Warning [READY REMEDIATION]
        "The cluster's last token is lost, and not yet found again."
        "See condition `LockAvailable`.";
    LookingAtMachines Progressing [COMPLETE DELETING HOST_CLAIMED READY STORE_IS_OLDER]
        "No operator has worked for a while, and the metadata cluster may have been set back: its machines are looked at first."
        "";
    MachineDeleted Warning [CONTROL_PLANE_READY ETCD_READY READY]
        "A machine of the control plane or etcd is being removed."
        "Wait until it has gone.";
    MachineError Warning []
        "The machine answers with an error of its hardware or its system."
        "Look at the machine.";
    MachineGone Warning [READY]
        "The Host is claimed by a Machine that is not there any more."
        "Release it with the command in its message, which quarantines it until it is clean.";
    MachineIdentityMismatch Warning [IDENTITY_VERIFIED READY]
        "Another machine answers at the Host's address than the one that was claimed."
        "Bring the claimed machine back, or remove the Machine by force.";
    MachineIsNewer Warning [DELETING HOST_CLAIMED READY STORE_IS_OLDER UP_TO_DATE]
        "A machine knows of a later claim or run than the metadata cluster, which was set back to an older state."
        "See docs/operations/metadata-cluster.md: compare what the message names, then approve it by its command.";
    MachineReplaced Warning [FAILED]
        "The Host was claimed anew since the run was asked for."
        "Make a new run.";
    MachineSetNotFound Warning [FULFILLED READY]
        "The ClusterDeployment has no set of workers of that name, or its MachineSet is not there yet."
        "Add the set to `spec.workers`, or cancel the request.";
    MachineStays Warning [FAILED]
        "A reset names a machine that is not leaving its cluster."
        "Delete the Machine instead.";
    MachinesLeaving Progressing [READY SCALING_DOWN]
        "Machines are being removed."
        "";
    MachinesMissing Progressing [CONTROL_PLANE_READY ETCD_READY READY SCALING_UP]
        "Fewer machines are there than are wanted."
        "";
    MachinesNotReady Progressing [CONTROL_PLANE_READY ETCD_READY MACHINES_READY READY WORKERS_READY]
        "A machine is not Ready (yet)."
        "See the Machine that the message names.";
    MachinesOfFormerCluster Warning [FORMER_MACHINES]
        "Machines are there of a former ClusterDeployment of this name."
        "Delete them, which gives their Hosts back.";
    MachinesReleased Normal [DELETING]
        "Every machine is given back."
        "";
    MachinesSilent Warning [LOCK_AVAILABLE UP_TO_DATE]
        "The cluster's last token is lost, and machines that may know it do not answer."
        "Bring them back, or open the lock with the command in the message.";
    MaintenanceWindowEmpty Warning [MAINTENANCE_WINDOWS_VALID UP_TO_DATE]
        "A maintenance window does not open within a year, so that what waits for it might never be done."
        "Correct the schedule that the message names, or take the window out.";
    ManifestInvalid Warning [APPLIED READY]
        "A document of the source is no manifest that can be applied."
        "Correct the document that the message names.";
    ManifestMissing Warning []
        "The manifest of a component of the control plane is nowhere on its machine."
        "Put it back; the message names both places where it may be.";
    ManifestNotRendered Warning [APPLIED COMPLETE FAILED READY]
        "A manifest has a template that cannot be rendered."
        "Correct the place that the message names.";
    ManifestRefused Warning []
        "The cluster's API refuses a manifest, or one is not as it was written."
        "See the message.";
    ManifestsNotApplied Warning []
        "The cluster's API refuses a manifest."
        "Correct the object that the message names.";
    ManifestsNotText Warning [COMPLETE FAILED]
        "A ConfigMap of manifests has binary data."
        "Put manifests into `data`.";
    ManifestsTooLarge Warning [READY]
        "The source of an Addon is larger than a revision may be."
        "Split it into several Addons.";
    Manual Normal [READY SCALING_UP]
        "A platform makes and deletes the set's Machines."
        "";
    MaxUnavailable Warning [READY REMEDIATION]
        "A repair would take more machines out of service than `maxUnavailable` allows."
        "Wait, or raise it.";
    MemberIsHost Warning [MEMBERS_READY]
        "The cluster carries the Karmada control plane, or is the plane itself: what it propagates could overwrite what it runs on."
        "Make another cluster a member, or another cluster the host.";
    MemberNotReady Warning [MEMBERS_READY]
        "Karmada does not reach a member."
        "Look at what the message says; of a Pull member look at its agent.";
    MemberRefusesToken Warning [MEMBERS_READY]
        "A member's API does not accept the token that was made for Karmada there."
        "Look at what the message says: the endpoint and the authorities of the member's kubeconfig.";
    MemberReplaced Warning [MEMBERS_READY]
        "Another cluster answers where a member did that has joined."
        "Take the member out of `spec.members`, and put it back once it has left.";
    MemberTaken Warning [MEMBERS_READY]
        "The cluster is a member already, or its name in the plane belongs to something else. Nothing is taken over."
        "See the message: let the cluster leave where it is a member, or give the member another name.";
    MemberUnreachable Warning [MEMBERS_READY]
        "A member's API does not answer the operator."
        "Look at what the message says; what is left to do there is done when it answers.";
    MembersChanged Warning [COMPLETE FAILED]
        "etcd has other members than those that the backup was laid ready on."
        "Make a new EtcdRestore.";
    MountFailed Warning [COMPLETE]
        "A volume of the executor's Pod cannot be mounted."
        "See the message.";
    NameConflict Warning [READY]
        "An object of a name that the cluster needs belongs to somebody else."
        "Delete that object, or rename.";
    NameInvalid Warning [MEMBERS_READY]
        "A Cluster that `autoJoin` selects has a name that no member may have."
        "Name it in `spec.members` with a name of its own: an RFC 1123 label of at most 48 characters.";
    NameNotResolved Warning [REACHABLE READY]
        "The API's name is not resolved."
        "Correct the DNS of the metadata cluster, or the kubeconfig's server.";
    NameTaken Warning [COMPLETE FAILED READY UP_TO_DATE]
        "An object of the run's name is there and is not the run's; or something else has the name or the namespace of a Karmada control plane."
        "Delete that object, or give the KarmadaDeployment what the message says.";
    NetworkFailed Warning []
        "The network plugin could not be set up on the machine."
        "See the message and the run's log.";
    NetworkUnsupported Warning []
        "The built-in network knows IPv4 only."
        "Use another plugin, or IPv4.";
    NoBackupYet Progressing [BACKED_UP READY]
        "No backup of a cluster has succeeded yet."
        "";
    NoClusters Normal [READY]
        "It selects no cluster."
        "";
    NoGoodBackup Warning [MACHINES_LOST READY]
        "All machines are lost, and there is no good EtcdBackup of the cluster to rebuild it from."
        "Bring a machine back; or set `spec.recovery.strategy: Rebuild`, which loses the data; or make a ClusterDeployment of another name with `spec.restoreFrom`.";
    NoHost Progressing [HOST_CLAIMED READY]
        "No Host of the pool suits the Machine."
        "See the MachineSet's condition `HostsAvailable`.";
    NoHostFree Warning [HOSTS_AVAILABLE]
        "No Host of the pool can be claimed."
        "Add Hosts, or release quarantined ones.";
    NoJoinRule Warning [MEMBERS_READY]
        "No rule of `autoJoin` is for the labels of a Cluster that it selects."
        "Add a rule, or correct the labels of the Cluster.";
    NoLog Warning [LOG_KEPT]
        "The run's log could not be kept."
        "See the message; the Pod's log may still be there.";
    NoMachineAnswers Warning [DELETING HOST_CLAIMED READY STORE_IS_OLDER UP_TO_DATE]
        "The metadata cluster may have been set back, and no machine of the cluster answers to compare it with."
        "Bring a machine back, or approve going on without by the command in the message.";
    NoMachineResponds Warning [MACHINES_LOST]
        "Neither the API nor any machine of the cluster answers."
        "Look at the network between; the message says when they are taken for lost.";
    NoMachines Normal [READY]
        "The policy holds for no machine."
        "";
    NoNodes Warning [NODES_HEALTHY READY]
        "The cluster has no Nodes."
        "Look at kubelet on the machines.";
    NoPolicy Warning [READY REMEDIATION]
        "Nothing repairs the machine: no RemediationPolicy selects it."
        "Make a RemediationPolicy, or repair the machine by hand.";
    NoSpareHost Warning [READY REMEDIATION]
        "A replacement needs a Host, and no spare one suits."
        "Add Hosts; the message says what the pool lacks.";
    NodeCleanupPending Warning [MACHINES_FORGOTTEN]
        "A machine that was removed by force may still have a Node, which is deleted."
        "See the message.";
    NodeFieldConflict Warning [UP_TO_DATE]
        "Another field manager applies a label or an annotation of the Node with another value."
        "Take the key out of the spec, or out of what the other one applies; the message names both.";
    NodeLost Warning [FAILED]
        "The node of the executor's Pod was lost."
        "Nothing: it is tried again.";
    NodeNotFound Warning [HEALTHY NODE_READY READY UP_TO_DATE]
        "The cluster has no Node of this machine."
        "Look at kubelet on the machine, or let a RemediationPolicy repair it.";
    NodeNotReady Warning [HEALTHY NODE_READY READY]
        "The Node is not Ready."
        "See the message; look at kubelet and the network plugin on the machine.";
    NodeNotSeenYet Progressing [CONTROL_PLANE_READY ETCD_READY HEALTHY NODE_READY READY WORKERS_READY]
        "The machine is provisioned, and its Node has not been read yet."
        "";
    NodeNotThereYet Progressing [NODE_READY]
        "The machine has not joined the cluster yet."
        "";
    NodePressure Warning [HEALTHY]
        "The Node is short of disk, memory or process IDs."
        "Free them; the message says which.";
    NodeReady Normal [NODE_READY]
        "The Node is Ready."
        "";
    NodeRefused Warning [UP_TO_DATE]
        "Labels, annotations or taints could not be written to the Node."
        "Correct what the message names; it is tried again every minute.";
    NodeSilent Warning [CONTROL_PLANE_READY ETCD_READY HEALTHY NODE_READY READY WORKERS_READY]
        "The kubelet has stopped reporting to its API server."
        "Look at the machine, or let a RemediationPolicy repair it.";
    NodeStarting Progressing [NODE_READY READY]
        "The Node is there and not Ready yet."
        "";
    NodesCutOff Warning [NETWORK_READY]
        "Pods of some machines do not reach those of others."
        "Look at the network plugin on the machines that the message names.";
    NodesNotRead Progressing [NODES_HEALTHY]
        "The cluster's Nodes have not been read yet."
        "";
    NodesNotReady Warning [NETWORK_READY NODES_HEALTHY READY]
        "Not every Node is Ready."
        "See the Nodes that the message names.";
    NodesReady Normal [NETWORK_READY NODES_HEALTHY]
        "Every Node is Ready."
        "";
    NoneSeen Normal [CERTIFICATES_VALID]
        "The kubeconfig holds no certificates."
        "";
    NoneWanted Normal [MEMBERS_READY NODES_HEALTHY WORKERS_READY]
        "No worker, no member or no Node is wanted."
        "";
    NotClean Warning []
        "The reset left something on the machine."
        "See the message; it is tried again.";
    NotCompared Progressing [DRIFTED]
        "The machine was not compared yet with what its cluster wants."
        "";
    NotDone Warning []
        "Ansible ended well, and not every step and probe was played."
        "Read the run's log; it is tried again.";
    NotEnoughHosts Warning [HOSTS_AVAILABLE]
        "Machines look for a Host in vain."
        "Add Hosts, or release quarantined ones; the message says what the pool lacks.";
    NotFenced Warning []
        "Something that speaks for a cluster is still at work on the machine."
        "See the message; stop it by hand.";
    NotInstalled Progressing [ADDONS_READY COMPLETE CONTROL_PLANE_READY ETCD_READY NETWORK_READY READY UP_TO_DATE WORKERS_READY]
        "The cluster is not installed yet."
        "";
    NotLocked Warning []
        "The run has no token of its cluster's lock."
        "Make a new run; the operator gives it its token.";
    NotLookedAt Warning [CLEAN READY]
        "No step looked whether the machine is clean."
        "Nothing: it is probed again.";
    NotPaused Normal [PAUSED]
        "The cluster is not paused."
        "";
    NotPrefetched Warning []
        "Programs or images that were to be brought to a machine ahead are not there."
        "Nothing: it is tried again. If that repeats, look at the machine's disk.";
    NotPrepared Warning []
        "The machine is not prepared for the step."
        "Run the steps before it first.";
    NotReached Warning []
        "The run ended before it was the machine's turn."
        "See why the run ended.";
    NotRebooted Warning []
        "The machine did not come back from its reboot."
        "Look at its console.";
    NotReplaceable Warning [READY REMEDIATION]
        "The machine cannot be replaced: nothing would take its place."
        "Give its set a count that is owned by the operator, or replace it by hand.";
    NotRestarted Warning []
        "A service did not come up again on the machine."
        "Look at its log on the machine.";
    NotRoot Warning []
        "Commands on the machine do not run as root."
        "Set `Host.spec.ssh.become`, and let its user use sudo.";
    NotSeenYet Progressing [UP_TO_DATE]
        "The version of the machine's kubelet is not known yet."
        "";
    NotStarted Warning [COMPLETE FAILED PROVISIONED READY]
        "The executor did not start: no machine was touched."
        "See the message; it is tried again.";
    NotToBeFenced Warning [FAILED]
        "The run would fence a machine that is not to be fenced."
        "Nothing: such a run is not made by the operator.";
    NotUpgraded Warning []
        "What kubeadm made on a machine is not of the version that is wanted."
        "Nothing: it is tried again. The message says what is missing.";
    NothingFound Normal [CLEAN]
        "Nothing of a cluster was found on the machine."
        "";
    NothingLeftToTry Warning [READY REMEDIATION]
        "Every step of the policy was tried, and the machine is still sick."
        "Repair it by hand, or use the command that the message names.";
    NothingToDrain Normal [DRAINED]
        "The Node runs no Pods that have to move."
        "";
    NothingToRepair Normal [REMEDIATION]
        "No machine is sick."
        "";
    ObjectProgressing Progressing [HEALTHY READY]
        "An object of the Addon is not healthy yet."
        "";
    ObjectTaken Warning [APPLIED READY UP_TO_DATE]
        "Another Addon has the same object on this cluster, or it was not made for this Karmada control plane."
        "Take it out of one of the two, or delete the object that the message names.";
    ObjectUndecodable Warning [ON_HOLD]
        "An object that the cluster is decided by cannot be decoded: nothing is done until it can."
        "Correct the object and field that the message names.";
    ObjectUnhealthy Warning [HEALTHY READY]
        "An object of the Addon is not healthy, and the time that it had is over, or it says itself that it failed."
        "Look at the object that the message names.";
    ObjectsHealthy Normal [HEALTHY READY]
        "All objects of the Addon are healthy."
        "";
    OldDataMissing Warning []
        "The data of etcd from before a restore is not there, or nothing tells whose data is."
        "Restore another backup; the message says what is missing.";
    OldDataNeeded Warning []
        "What a restore left is still needed, and was not removed."
        "End or undo the restore first; the message says what needs it.";
    OldDataRemains Warning []
        "Something that a restore left is still on a machine."
        "Look what is mounted there or works on it; the message names it.";
    OneAtATime Warning [READY REMEDIATION]
        "One control plane or etcd machine changes at a time."
        "Wait.";
    OtherVersion Warning [UP_TO_DATE]
        "A machine has another version of Kubernetes than is wanted."
        "See the message.";
    OutOfMemory Warning [COMPLETE FAILED]
        "The executor ran out of memory."
        "Look for a LimitRange of the namespace; it is tried again.";
    PKIMissing Warning [COMPLETE READY UP_TO_DATE]
        "The cluster's Secret of keys is not there."
        "Restore the Secret from a backup; the message names it.";
    PackageNotFound Warning []
        "A package is not to be had on the machine."
        "Look at its package sources, or at the bundle.";
    PartUnhealthy Warning [READY]
        "A component of a Karmada control plane does not work on the machine."
        "See the message; look at its unit there: `systemctl status`, `journalctl -u`.";
    PassedOver Warning [HOOKS_PLAYED]
        "Hooks were not played on a machine that leaves."
        "See the message.";
    Paused Progressing [APPLIED COMPLETE DELETING FAILED FULFILLED HEALTHY HOST_CLAIMED MEMBERS_READY READY SCALING_UP UP_TO_DATE]
        "Paused by a person."
        "Set `spec.paused: false` to go on.";
    Pinned Normal [HOST_KEY_VERIFIED]
        "The host key is the pinned one."
        "";
    PlaneDetached Normal [DELETING]
        "The Karmada control plane and its members stay as they are."
        "";
    PlaneNotExposed Warning [MEMBERS_READY]
        "The plane's API server has an address on its host cluster only: no agent of a member reaches it."
        "Set `spec.apiServer.serviceType` to NodePort or LoadBalancer, or the member's `syncMode` to push.";
    PlaneRemoved Normal [DELETING]
        "All that a Karmada control plane had on its host cluster is removed, but for its namespace and the volumes of its etcd."
        "";
    PlaneUnreachable Warning [DELETING MEMBERS_READY READY UP_TO_DATE]
        "The API server of a Karmada control plane does not answer at its endpoint."
        "Look at what the message says; reach `status.endpoint` from where the operator runs.";
    PlaybookInvalid Warning [COMPLETE FAILED]
        "A custom playbook cannot be used."
        "Correct the place that the message names.";
    PlaybookMissing Warning []
        "The executor's image lacks a playbook."
        "The operator and the executor are of different versions: use images of one release.";
    PlaybookNameRefused Warning [COMPLETE FAILED]
        "A key of the ConfigMap of custom playbooks has a name that is not allowed."
        "Rename the key.";
    PlaybookNotFound Warning [READY]
        "There is no custom playbook of that name."
        "Add it to the ConfigMap, or correct the name.";
    PlaybookSchemaInvalid Warning [COMPLETE FAILED]
        "The schema of a custom playbook cannot be used."
        "Correct the place that the message names.";
    PlaybookTooLarge Warning [COMPLETE FAILED]
        "A custom playbook is too large."
        "Make it smaller, or make two of it.";
    PlaybooksNotText Warning [COMPLETE FAILED]
        "The ConfigMap of custom playbooks has binary data."
        "Put playbooks into `data`.";
    PodCIDRTooSmall Warning [READY]
        "`spec.networking.podCIDR` has no room for as many Nodes."
        "Make the cluster with a larger range.";
    PodDeleted Warning [COMPLETE FAILED]
        "The executor's Pod was deleted."
        "Nothing: it is tried again.";
    PodNetworkUnreachable Warning [HEALTHY NETWORK_READY]
        "Pods of the machine do not reach those of other machines."
        "Look at the network plugin on that machine, and at what the network lets through.";
    PodNotStarted Warning [COMPLETE REACHABLE]
        "The executor's Pod does not start."
        "See the message.";
    PodRefused Warning [COMPLETE]
        "The API refuses the executor's Pod."
        "See the message: usually Pod Security or an admission webhook.";
    PodStopped Warning [COMPLETE FAILED]
        "The executor's Pod was stopped from outside."
        "Nothing: it is tried again.";
    PodsBlocked Warning [DRAINED]
        "A PodDisruptionBudget holds Pods on the Node."
        "See the Pods and budgets that the message names. A removal goes on when its time is over, another drain waits.";
    PodsNotMoved Warning [DRAINED]
        "Pods were left on the Node: it is silent, or `drainTimeoutSeconds` is 0."
        "Nothing.";
    PodsNotRestarted Warning []
        "A container began before the authorities that it has mounted, or its Pod has not come back since it was started anew."
        "The message names the Pod: look at its log; it is tried again.";
    PodsReached Normal [NETWORK_READY]
        "The machine's Pods reach those of other machines, and the DNS."
        "";
    PodsUnknown Warning [DRAINED]
        "The Pods of the Node cannot be read."
        "Nothing: it is tried again.";
    PreflightFailed Warning []
        "The machine does not meet what a node needs."
        "Mend what the message lists, or name its findings in `spec.preflight.ignore`.";
    ProbeFailed Warning [REACHABLE READY]
        "The Host's probe came to no result."
        "See the message; it is probed again.";
    PropagationStalled Warning [READY]
        "The ResourceBinding of a Karmada control plane's probe does not follow its template: what is to be propagated is not."
        "Look at the log of karmada-controller-manager, and at the Events in namespace `clusterwright-probe` of the plane.";
    Provisioned Normal [PROVISIONED]
        "The machine is part of its cluster."
        "";
    Provisioning Progressing [PROVISIONED READY]
        "The machine is being made part of its cluster."
        "";
    Pruning Progressing [APPLIED READY UP_TO_DATE]
        "Objects that have left the source are being deleted."
        "";
    QueryingMachines Progressing [DELETING LOCK_AVAILABLE UP_TO_DATE]
        "The cluster's last token is lost; its machines are asked for the one that they know."
        "";
    QuorumLost Warning [CONTROL_PLANE_READY ETCD_READY READY]
        "etcd has lost its majority."
        "Bring a member back, or approve going on with one, by the command in the message.";
    QuorumNotLost Warning []
        "etcd has a majority: nothing was done."
        "Take dead members out one by one.";
    QuorumRisk Warning [CONTROL_PLANE_READY ETCD_READY READY REMEDIATION]
        "One machine less would cost etcd its majority, or the API its last server."
        "Repair the others first; the message says which.";
    QuorumUnclear Warning []
        "etcd may have a majority: nothing was done."
        "Bring the other members in reach, then see again.";
    QuotaExceeded Warning [COMPLETE]
        "A ResourceQuota refuses the executor's Pod."
        "Raise the quota, or wait.";
    ReadingKubeconfig Progressing [MEMBERS_READY]
        "The kubeconfig of a member is being read on its Host."
        "";
    Rebooting Progressing [REMEDIATION]
        "The machine is rebooted."
        "";
    Rebuilding Progressing [READY REBUILDING]
        "The cluster is installed anew on other machines."
        "";
    RecipientInvalid Warning []
        "A recipient of a backup is no age recipient."
        "Give a public key as `age-keygen` prints it, `age1...`.";
    Recovered Normal [REMEDIATION]
        "The machine is well again."
        "";
    RecoveringEtcd Progressing [CONTROL_PLANE_READY ETCD_READY READY]
        "etcd goes on with one member."
        "";
    ReleaseFailed Warning [APPLIED READY]
        "Helm could not install or upgrade the release, and no earlier revision of it serves."
        "See the message and the log of the Job; correct the chart's version or values, or ask for another attempt by the command in the message.";
    ReleasePending Progressing [APPLIED READY]
        "Another Helm is at work on the release, or was interrupted: it is given its time, and then put in order."
        "";
    ReleaseRolledBack Warning [APPLIED READY]
        "Helm could not upgrade the release, and has rolled it back: the former chart and values serve."
        "See the message and the log of the Job; correct the chart's version or values, or ask for another attempt by the command in the message.";
    ReleaseTaken Warning [APPLIED READY]
        "A release of this name is on the cluster that this Addon has not made; it is left alone."
        "Give another `source.chart.releaseName` in another Addon, uninstall the release, or set `spec.conflicts: Force` to take it over.";
    ReleasingHost Progressing [DELETING]
        "The Host is given back."
        "";
    RemediationPaused Warning [READY REMEDIATION]
        "The RemediationPolicy is paused."
        "Set its `spec.paused: false`.";
    RemovingBackup Progressing [DELETING]
        "What a deleted EtcdBackup has stored is being removed from the storage."
        "";
    RemovingEtcdMember Progressing [CONTROL_PLANE_READY ETCD_READY READY UP_TO_DATE]
        "A member is taken out of etcd."
        "";
    RemovingObjects Progressing [APPLIED READY]
        "What was applied to the cluster is being deleted."
        "";
    RemovingPlane Progressing [DELETING]
        "What a Karmada control plane has on its host cluster is being deleted."
        "";
    RenewalFailed Warning [CERTIFICATES_VALID]
        "The certificates of a machine are due to be renewed, and could not be."
        "Correct what the message says; it is tried again. See [certificates](operations/certificates.md#a-renewal-that-fails).";
    RenewingCertificates Progressing [CERTIFICATES_VALID]
        "Certificates are being renewed, one machine at a time."
        "";
    Repairing Progressing [REMEDIATION]
        "A sick machine is being repaired."
        "";
    RepairingDrift Progressing [DRIFTED]
        "Machines differ from what their cluster wants, and the steps that differ are played again."
        "";
    Replacing Progressing [REMEDIATION]
        "Another machine takes the sick one's place."
        "";
    ReplicasOwnedBySpec Warning [REPLICAS_REVERTED]
        "A MachineSet was scaled whose count `spec.workers[].replicas` owns; it was put back."
        "Change the ClusterDeployment, or leave its `replicas` out to scale the set.";
    ReplicasReached Normal [SCALING_DOWN SCALING_UP]
        "There are as many machines as are wanted."
        "";
    RequestCanceled Normal [FAILED FULFILLED PARTIALLY_FULFILLED READY]
        "The request was canceled: it was answered with what was Ready, and the others were given back."
        "";
    RequestTimedOut Warning [FAILED FULFILLED PARTIALLY_FULFILLED READY]
        "The deadline was over before all Machines were Ready: those that were not were given back."
        "`status.machines` has the reason for each Machine; correct it and make another request.";
    RequestedMachineDeleted Normal []
        "A Machine that was delivered for a MachineRequest was deleted; none is made in its place."
        "";
    ReservedVariable Warning [COMPLETE FAILED]
        "A variable has a name that is Ansible's or the operator's own."
        "Rename the variable.";
    ResetFailed Warning [DELETING]
        "A machine of a deleted cluster could not be cleaned."
        "See the message; it is tried again, or the machine is let go by the command there.";
    ResolverManaged Warning []
        "Another program writes the machine's `/etc/resolv.conf`, or it cannot be given servers."
        "See the message: give them to that program, and take `configuration.machine.dnsServers` and `searchDomains` back.";
    RestartingServices Progressing [COMPLETE REMEDIATION]
        "Services of a machine, or of all machines of a cluster, are restarted."
        "";
    RestoreBegan Warning [COMPLETE FAILED]
        "The EtcdRestore before which a backup was to be made of what was there has begun without it."
        "Nothing: the data of before stays on the machines for `keepOldDataSeconds`.";
    RestoreCleanupRefused Warning []
        "The restored cluster's API refuses to delete what is of the past."
        "See the message; a webhook may be in the way.";
    RestoreInterrupted Warning [COMPLETE ETCD_READY READY UP_TO_DATE]
        "The run that restores ended before it had released the control plane, which serves in part at most; or a run failed that \
         sets a Karmada control plane on machines back, or brings back its data of before."
        "The message names the cause and two commands: to go on, and to go back where that is possible. Of a Karmada control plane, that is \
         tried again as long as attempts are left, and its EtcdRestore says how to go back.";
    RestoreUndone Warning [COMPLETE FAILED]
        "The cluster has the data again that it had before the restore."
        "See why the restore was interrupted; make a new EtcdRestore.";
    Restored Normal [COMPLETE]
        "The cluster, or the Karmada control plane, has the backup's data."
        "";
    Restoring Progressing [COMPLETE CONTROL_PLANE_READY ETCD_READY READY UP_TO_DATE]
        "etcd is being set back to a backup; the cluster has no API meanwhile. Or a Karmada control plane begins with one, or is set \
         back to one."
        "";
    ResultLost Warning [COMPLETE FAILED]
        "The executor ended well, and its result is lost."
        "Nothing: the next attempt finds out from the machines.";
    ResultMissing Warning []
        "The run ended without a result for the machine."
        "Nothing: it is tried again.";
    ReturningMachines Progressing [DELETING]
        "The request is being deleted: its Machines leave, or are left to their set."
        "";
    RolledOut Normal [ADDONS_READY]
        "CoreDNS is rolled out, and kube-proxy where the cluster has it."
        "";
    RollingOut Progressing [READY]
        "A change of the Addon is brought to the clusters."
        "";
    RolloutIncomplete Warning []
        "An add-on is not rolled out in time."
        "See the Pods that the message names.";
    Rotated Normal [AUTHORITIES_ROTATED]
        "The authority or the key was rotated, and all machines have the new one alone; or they have those of `spec.certificates.caRef`."
        "";
    RotatingAuthorities Progressing [AUTHORITIES_ROTATED]
        "An authority or a key is being rotated; the message says how far, or for what it waits."
        "";
    RotationRefused Warning [AUTHORITIES_ROTATED]
        "The annotation `clusterwright.dev/rotate`, or `spec.encryption`, asks for something that cannot be done."
        "Write what the message says.";
    RouterIDInUse Warning [READY UP_TO_DATE]
        "Another cluster in the same network has the `virtualRouterID`."
        "Make the cluster with another one.";
    RunFailed Warning []
        "The run failed and gave no reason."
        "Read the run's log.";
    RunUnderWay Progressing [DELETING PROGRESSING READY REMEDIATION]
        "A run is under way."
        "";
    Running Normal [HEALTHY READY]
        "As wanted."
        "";
    RuntimeNotInstalled Warning []
        "The machine lacks the program of a runtime of `configuration.containerd.runtimes`."
        "Install the program that the message names, or correct its path.";
    SELinuxFailed Warning []
        "What SELinux needs could not be set on the machine: a label of a file, or a boolean of its policy."
        "See the message. See [hosts](operations/hosts.md#machines-of-the-rhel-family).";
    Same Normal [IDENTITY_VERIFIED]
        "It is the machine that was claimed."
        "";
    SameAddress Warning [READY]
        "Another Host has the same address."
        "Delete one of the two Hosts.";
    SameHostKey Warning [READY]
        "Another Host shows the same host key: the same machine, or a copied image."
        "Delete one of the two Hosts, or make new host keys.";
    SameMachineID Warning [MACHINE_ID_UNIQUE]
        "Another Host has the same `/etc/machine-id`: a copied image."
        "Make a new machine-id before a cluster uses both.";
    ScalingDown Progressing [CONTROL_PLANE_READY ETCD_READY READY WORKERS_READY]
        "Machines are being removed."
        "";
    ScalingEtcd Progressing [READY UP_TO_DATE]
        "Members of a Karmada control plane's etcd are being added, removed or replaced, one after the other."
        "";
    ScalingUp Progressing [CONTROL_PLANE_READY ETCD_READY READY WORKERS_READY]
        "Machines are being added."
        "";
    ScheduleInvalid Warning [ETCD_DEFRAGMENTED MAINTENANCE_WINDOWS_VALID READY UP_TO_DATE]
        "A schedule cannot be read, or is never due."
        "Correct the field that the message names.";
    Scheduled Normal [MAINTENANCE_WINDOWS_VALID READY]
        "The clusters are backed up when it is due; or machines are disrupted in maintenance windows only."
        "";
    SecretMissing Warning []
        "A Secret that the run needs is not among its inputs."
        "See the message; it is tried again.";
    SecretNotFound Warning [APPLIED AUTHORITIES_ROTATED COMPLETE MEMBERS_READY REACHABLE READY UP_TO_DATE]
        "A Secret that the spec names is not there, or lacks a key."
        "Make it; the message says which key.";
    SecretsNotRewritten Warning []
        "Objects in etcd are encrypted as before still, or not at all, though the API server writes them otherwise by now."
        "The message names some, and why they could not be rewritten, e.g. since a webhook or a policy of the cluster refuses it; it is tried again.";
    SelectorsContradict Warning [FULFILLED READY]
        "No Host can suit both the request and its set."
        "Make a request whose `hostSelector` can be met together with that of the set.";
    ServiceFailed Warning []
        "A service does not start, or does not answer."
        "See its journal in the message.";
    ServiceOutdated Warning []
        "A service still runs with its old settings."
        "Nothing: it is tried again.";
    SettingUnknown Warning [READY UP_TO_DATE]
        "A feature gate or a flag is given that this version of Karmada does not have."
        "Correct the field that the message names.";
    SettingsNotKnown Progressing [UP_TO_DATE]
        "Whether a change of the spec is on the machines is not known."
        "";
    SettingsNotRolledOut Warning [UP_TO_DATE]
        "A change of the spec is not on the machines, and nothing brings it there now."
        "See the message: the fields and the machines. A cluster that is paused, or whose spec cannot be met, waits for that.";
    Skipped Warning [READY REMEDIATION]
        "The Machine has the annotation that keeps it from being repaired, or `Maintenance` in `spec.drainFor`."
        "Remove what the message names.";
    SmokeTestFailed Warning []
        "A Pod on the machine does not start, or does not reach a Service or the DNS."
        "See the message; look at the network plugin, kube-proxy, or what stands in its place, and CoreDNS on the machine.";
    SnapshotCorrupt Warning []
        "The snapshot did not arrive as the member sent it. Nothing of it was kept."
        "Nothing: it is taken again; if it goes on, check the machine's disk and memory.";
    SnapshotInterrupted Warning []
        "The snapshot ended before it was whole. Nothing of it was kept."
        "Nothing: it is taken again; the message says what broke.";
    SpareHostsReserved Warning [READY REMEDIATION]
        "A repair would take one of the last spare Hosts, which `keepSpareHosts` keeps."
        "Add Hosts, or lower `keepSpareHosts`.";
    SpecPaused Progressing [PAUSED]
        "The cluster is paused: nothing more starts."
        "Set `spec.paused: false` to go on.";
    SpoolFull Warning []
        "The machine has no room for a snapshot that is written to its disk first: 1.2 times the database are needed."
        "Make room where the message says, or take the backup without `spool`.";
    SpoolNotPossible Warning [COMPLETE FAILED]
        "A backup with `spool: true` is of an etcd that others run, or of a plane in Pods: there is no machine to write the snapshot to."
        "Make an EtcdBackup without `spool`; of a schedule with a `clusterSelector`, give such clusters one of their own.";
    Staging Progressing [COMPLETE]
        "The backup is checked and brought to the machines, beside the data that is there."
        "";
    StagingFailed Warning [ETCD_READY READY UP_TO_DATE]
        "A backup was not brought to a machine, or no data could be made of it."
        "The message says why; see the run's log (`status.logRefs`).";
    Starting Progressing [COMPLETE]
        "The run's Job is being made."
        "";
    StepFailed Warning [COMPLETE FAILED]
        "A step failed."
        "See the machine and step in `status.hosts`.";
    StepFinishing Progressing [PAUSED]
        "The cluster is paused: the step that is under way ends first."
        "";
    StepNotAllowed Warning [COMPLETE FAILED]
        "The run's intent may not have such a step, or it has nothing to do on such machines."
        "Make a new run; the message says which steps are allowed.";
    Stopping Progressing [COMPLETE]
        "The run is being stopped."
        "";
    StorageAccessDenied Warning [REACHABLE]
        "A storage of backups does not accept the credentials, or they lack a right."
        "Correct the Secret, or its rights to list, read, write and delete below the prefix.";
    StorageAnswers Normal [REACHABLE]
        "An object could be written, read, listed and deleted."
        "";
    StorageCertificateInvalid Warning [REACHABLE]
        "The certificate of a storage is not trusted, has expired, or is for other names: the message says which."
        "Give the authority that signed it in the BackupStorage's `caRef`, renew it, or correct `endpoint`.";
    StorageClockSkewed Warning [REACHABLE]
        "The clocks of the executor's node and of a storage differ too much."
        "Synchronize the clocks of the metadata cluster's nodes and of the storage.";
    StorageFailed Warning [REACHABLE]
        "A storage of backups did not do what it was asked."
        "The message says what was tried and what came back.";
    StorageFull Warning [REACHABLE]
        "A storage of backups has no room left."
        "Remove old backups, or give it more room or a higher quota.";
    StorageNotFound Warning [COMPLETE]
        "There is no BackupStorage of that name in the namespace."
        "Make it; the backup begins then.";
    StorageNotProbed Progressing [COMPLETE REACHABLE]
        "Nobody has looked at the storage yet."
        "";
    StorageUnreachable Warning [COMPLETE REACHABLE]
        "A storage of backups does not answer."
        "Check that it is up, and that Pods of the metadata cluster reach it.";
    StoreIsOlder Warning [READY]
        "The Host is quarantined: its machine was claimed by somebody whom the metadata cluster, set back to an older state, does not know."
        "It ends by itself once a probe finds the machine clean; or release the Host with the command in its message.";
    Suspended Progressing [READY]
        "`spec.suspend` is true: no backup begins, and none is deleted."
        "Set `spec.suspend: false` to go on.";
    SwapStaysOn Warning []
        "Swap cannot be turned off."
        "Turn it off by hand.";
    SyncModeKept Warning [MEMBERS_READY]
        "A member has joined with another `syncMode` than is wanted now."
        "Take it out of `spec.members`, and put it back once it has left.";
    SysctlRefused Warning []
        "A kernel setting cannot be made."
        "See the message.";
    SystemdUnavailable Warning []
        "systemd does not answer on the machine."
        "Look at the machine.";
    TaskFailed Warning [COMPLETE FAILED PROVISIONED READY]
        "A task failed on the machine."
        "See the message: step, task and what the machine said.";
    TaskTimedOut Warning []
        "A task took longer than it may."
        "See the message; the step runs again.";
    TimeServiceMissing Warning []
        "Nothing that could be given `configuration.machine.timeServers` runs on the machine."
        "See the message: it says what to install and start.";
    TimeZoneUnknown Warning [ETCD_DEFRAGMENTED MAINTENANCE_WINDOWS_VALID READY UP_TO_DATE]
        "There is no time zone of that name in the IANA database."
        "Correct the field that the message names, for example `Europe/Paris`.";
    TimedOut Warning [DRAINED]
        "Pods were left on the Node when `drainTimeoutSeconds` was over; the removal went on."
        "See the message for the Pods.";
    Timeout Warning [REACHABLE READY]
        "The API did not answer in time."
        "Look at the network and at kube-apiserver.";
    TokensLost Progressing [LOCK_AVAILABLE UP_TO_DATE]
        "The cluster's last token is lost; its machines will be asked for the one that they know."
        "";
    TooManyObjects Warning [APPLIED READY]
        "The Addon has more objects than one may have on a cluster."
        "Split it into several Addons.";
    TooManyUnhealthy Warning [MACHINES_READY READY REMEDIATION REMOVALS_HELD SCALING_DOWN UP_TO_DATE]
        "More machines are sick than `maxUnhealthy` allows: nothing is done."
        "Look for one cause of all of them; approve repairs by the command in the message.";
    TooMuchOutput Warning []
        "A task printed more than is read."
        "See the run's log.";
    Touched Warning [PROVISIONED]
        "A run has worked on the machine, and it is not part of its cluster."
        "Nothing: it is cleaned before its Host is given back.";
    Unauthorized Warning [REACHABLE READY]
        "The API refuses the kubeconfig's credentials (401)."
        "Renew the kubeconfig.";
    UndoingRestore Progressing [COMPLETE ETCD_READY READY UP_TO_DATE]
        "The data that was there before a restore comes back."
        "";
    UninstallFailed Warning [APPLIED READY]
        "Helm could not uninstall the release; it is tried again."
        "See the message and the log of the Job.";
    UnjoinPolicyMissing Warning [MEMBERS_READY]
        "A member is to leave, and what becomes there of what the plane runs is not said."
        "Set `spec.unjoinPolicy`.";
    UnjoiningMembers Progressing [DELETING MEMBERS_READY]
        "Members are leaving a Karmada control plane."
        "";
    Unknown Warning []
        "What became of the run is not known."
        "Nothing: the next attempt finds out from the machines.";
    Unreachable Warning [HOST_KEY_VERIFIED PROVISIONED REACHABLE READY]
        "SSH, or the API, does not answer."
        "Look at the machine and the network.";
    Unschedulable Warning [COMPLETE]
        "No node takes the executor's Pod."
        "See the message; correct `spec.executor.pod`, or make room.";
    UnsupportedDistribution Warning []
        "The machine has no distribution that is supported."
        "Install Debian, Ubuntu, or RHEL 9 or one of its family. See [platforms](platforms.md).";
    UpToDate Normal [UP_TO_DATE]
        "Every machine has what is wanted."
        "";
    UpdatingEtcdEndpoints Progressing [CONTROL_PLANE_READY ETCD_READY READY]
        "API servers are being given the list of etcd's members."
        "";
    UpdatingLoadBalancers Progressing [CONTROL_PLANE_READY ETCD_READY READY]
        "Load balancers on the machines are being given the list of control planes."
        "";
    UpdatingNode Progressing [UP_TO_DATE]
        "Labels, annotations or taints of the spec are being written to the Node."
        "";
    UpgradeBlocked Warning [UP_TO_DATE]
        "An upgrade of a Karmada control plane is planned and does not begin: the plane is not in the state to begin one."
        "Do what the message says; or name the check in `spec.upgrade.ignore`.";
    UpgradeFailed Warning [UP_TO_DATE]
        "A machine could not be brought to the Kubernetes version that is wanted; no other machine is, meanwhile."
        "See the message: repair the machine, and retry. One that nothing helps: delete its Machine.";
    UpgradeHalted Warning [UP_TO_DATE]
        "A component of a Karmada control plane does not work in the version that it was brought to. No other one is touched."
        "See the message: repair what it names, and the upgrade goes on; or go back as it says.";
    UpgradeNotReversible Warning [UP_TO_DATE]
        "An older version of a component is wanted than one that has worked on the data: it is not tried."
        "Set the version to what the message says; the data of before comes back by restoring etcd alone.";
    Upgrading Progressing [COMPLETE UP_TO_DATE]
        "Machines, or components of a Karmada control plane, are brought to the version that is wanted, one after the other."
        "";
    VIPInUse Warning [READY UP_TO_DATE]
        "Somebody else holds, or wants, the endpoint's address."
        "Make the cluster with a free address.";
    Valid Normal [CERTIFICATES_VALID]
        "No certificate is expired or about to."
        "";
    ValuesInvalid Warning [APPLIED READY]
        "A key of `source.chart.valuesFrom` is not there, or is no map in YAML."
        "Correct the key that the message names.";
    VerificationFailed Warning [VERIFIED]
        "A stored backup is not what was written. It does not count as a backup any more."
        "Check the storage, and take another backup; the message names what differs.";
    VerificationNotMade Warning [READY VERIFIED]
        "A backup could not be verified. That says nothing of the backup, which counts."
        "Do what the message says; it is tried again.";
    VerificationPending Progressing [VERIFIED]
        "The backup is to be verified, or is being verified."
        "";
    Verified Normal [VERIFIED]
        "The stored backup was verified: it is what was written."
        "";
    VersionSkewNotAllowed Warning [READY UP_TO_DATE]
        "The Kubernetes version that is wanted is more than one minor above that of a machine, or below it; or controllers do not fit to their API server."
        "Set the version to what the message says; one that is too high is raised again when all machines have that.";
    Waiting Progressing [PROGRESSING READY REMEDIATION]
        "It goes on by itself later."
        "";
    WaitingForAddons Progressing [APPLIED HEALTHY READY]
        "Addons that come first on this cluster are not Ready there."
        "Look at the ClusterAddon that the message names.";
    WaitingForAgent Progressing [MEMBERS_READY]
        "The agent of a Pull member has not come to the restored Karmada control plane yet. What the plane says of the member is what the backup has."
        "";
    WaitingForApproval Warning [AUTHORITIES_ROTATED COMPLETE DRIFTED READY UP_TO_DATE]
        "All is ready, and nothing is done before a person approves it."
        "Read what will be done, or lost; the message has the command.";
    WaitingForBackup Progressing [COMPLETE READY UP_TO_DATE]
        "The backup that the cluster, or the Karmada control plane, begins with is not to be had yet."
        "See the EtcdBackup, the BackupStorage or the Secret that the message names.";
    WaitingForContent Progressing [APPLIED HEALTHY READY]
        "The content of the revision is not there."
        "Edit the Addon: its content is written anew.";
    WaitingForEndpoint Progressing [READY UP_TO_DATE]
        "The API server of a Karmada control plane has no address yet at which it is to be reached."
        "";
    WaitingForHooks Progressing [DELETING]
        "Hooks are played before the machine is drained."
        "";
    WaitingForHost Progressing [PROVISIONED]
        "The Machine has no Host yet."
        "See its condition `HostClaimed`.";
    WaitingForHosts Progressing [CONTROL_PLANE_READY ETCD_READY READY UP_TO_DATE WORKERS_READY]
        "The pool has not enough Hosts."
        "Add Hosts; the message says how many of which kind.";
    WaitingForInputs Progressing [COMPLETE]
        "The run's inputs have not been read yet."
        "";
    WaitingForLock Progressing [COMPLETE]
        "Another run has the cluster's lock."
        "";
    WaitingForMachines Progressing [DELETING]
        "The cluster is being deleted: its Machines are leaving."
        "";
    WaitingForMembers Progressing [MEMBERS_READY READY]
        "Members are still joining a Karmada control plane, or are not reached by it."
        "See `status.members`.";
    WaitingForNode Progressing [READY REMEDIATION]
        "The machine was treated; its Node is waited for."
        "";
    WaitingForOtherMembers Progressing [MEMBERS_READY]
        "As many members join or leave as may at once."
        "";
    WaitingForPlane Progressing [MEMBERS_READY]
        "A member joins once the plane works."
        "";
    WaitingForPod Progressing [COMPLETE]
        "The executor's Pod is being started."
        "";
    WaitingForProbe Progressing [READY]
        "The Host has not been probed yet."
        "";
    WaitingForPropagation Progressing [READY]
        "The components of a Karmada control plane have just come to work; the ResourceBinding of its probe is waited for."
        "";
    WaitingForReadinessGate Progressing [READY]
        "Everything is as wanted but a condition of `spec.readinessGates`."
        "See that condition; its own controller sets it.";
    WaitingForRequestedMachines Progressing [FULFILLED READY]
        "Machines of the request are not Ready yet."
        "";
    WaitingForReset Progressing [DELETING]
        "The machine is to be cleaned."
        "";
    WaitingForRestart Progressing [UP_TO_DATE]
        "The credentials of members of a Karmada control plane have changed, and what watches members goes on with those that it began with until it is restarted, which is done once for many and at most every 10 minutes."
        "Wait; the message says until when.";
    WaitingForRestore Progressing [COMPLETE]
        "Another EtcdRestore of the cluster is under way."
        "Wait for it, or delete it before it is approved.";
    WaitingForRollout Progressing [APPLIED HEALTHY READY]
        "The cluster gets it when it is its turn in the rollout."
        "";
    WaitingForRun Progressing [PROVISIONED READY]
        "The machine waits for its run."
        "";
    WaitingForTurn Progressing [DELETING]
        "Other machines leave first."
        "";
    WaitingForUnjoin Progressing [DELETING]
        "A cluster that is to be deleted is a member of a Karmada control plane, and leaves it first."
        "Look at the member in `status.members` of the KarmadaDeployment that the message names.";
    WaitingForWindow Progressing [DRIFTED UP_TO_DATE]
        "What disrupts machines waits for the next maintenance window."
        "";
    WaitingToJoin Progressing [CONTROL_PLANE_READY ETCD_READY READY UP_TO_DATE WORKERS_READY]
        "A machine is to join once something else is over."
        "";
    WorksMissing Warning [UP_TO_DATE]
        "A Karmada control plane has fewer Works than before its upgrade: what they stand for may be deleted in members."
        "Find out who deleted them, as the message says. Were they meant to go: approve the rest of the upgrade with its command.";
}
