//! What an edit does of the fields of which no code says it by itself, and what else there is to say of those of which
//! the code says it. A field that is in neither has no row, and the page is not written.

use crds::step::Step;

use super::effect::Effect;

/// What is declared of fields.
pub struct Declared {
    /// The field, or several: `hooks.{beforeJoin[],afterJoin[]}.name`. Without an effect: all below it, too.
    pub field: &'static str,
    /// What an edit does; none: the code says it.
    pub effect: Option<Effect>,
    /// What brings it to machines.
    pub steps: &'static [Step],
    pub remark: &'static str,
}

const fn row(field: &'static str, effect: Effect, remark: &'static str) -> Declared {
    Declared { field, effect: Some(effect), steps: &[], remark }
}

const fn none(field: &'static str, remark: &'static str) -> Declared {
    row(field, Effect::None, remark)
}

const fn later(field: &'static str, remark: &'static str) -> Declared {
    row(field, Effect::Later, remark)
}

/// Beside what the code says of a field, or of all below it.
const fn beside(field: &'static str, remark: &'static str) -> Declared {
    Declared { field, effect: None, steps: &[], remark }
}

const HOSTS: &str = "machines keep the Hosts that they have";
const NODES: &str = "written to the Nodes within seconds, without a run";
const EVICTS: &str = "`NoExecute` evicts the Pods that do not tolerate it";

/// Of a ClusterDeployment.
pub const CLUSTERS: &[Declared] = &[
    none(
        "addons.manifestsRef.name",
        "applied at once by the Addon `CLUSTER-addons`, without a run, and what is there no more is pruned; another content of \
         the object does the same",
    ),
    none("approval", "`Automatic` lets go on what waits; `Manual` halts a rollout before its next machine"),
    none("artifacts.{url,indexSHA256}", "runs that are made later take programs and images from there"),
    none("artifacts.{caRef,credentialsRef,lockRef}.name", "runs that are made later go by it"),
    none(
        "artifacts.osPackages.signedBy",
        "runs that are made later install missing packages from there, believing this key",
    ),
    Declared {
        field: "certificates.caRef.name",
        effect: Some(Effect::Restart),
        steps: &[Step::CertificateAuthorities, Step::RestartPods],
        remark: "a pair there that the cluster does not have is \
                 [rotated to](operations/certificates.md#authorities-of-your-own), with the approval of a rotation; of \
                 `ca`, workers are drained, too; another content of the object does the same. Without the reference the cluster keeps what it has",
    },
    Declared {
        field: "certificates.renewBeforeDays",
        effect: Some(Effect::Immediate),
        steps: &[Step::RenewCertificates],
        remark: "certificates with so many days left, or less, are \
                 [renewed](operations/certificates.md#when-they-are-renewed), machine after machine; controller-managers and schedulers start anew",
    },
    Declared {
        field: "certificates.validityDays",
        effect: Some(Effect::Immediate),
        steps: &[Step::RenewCertificates],
        remark: "it holds for certificates that are made from now on; without `renewBeforeDays`, those with less than a \
                 third of it left are renewed, as with that",
    },
    beside("configuration.apiServer", "the API server"),
    beside("configuration.controllerManager", "the controller-manager"),
    beside("configuration.scheduler", "the scheduler"),
    beside("configuration.containerd", "containerd; containers go on"),
    beside("configuration.etcd", "the member of etcd; another one leads before"),
    beside("{configuration,controlPlane,workers[]}.kubelet", "the kubelet"),
    beside(
        "{configuration,controlPlane,workers[]}.kubelet.maxPods",
        "the Node is drained only if it is to have fewer Pods",
    ),
    beside("configuration.machine.kernelModules", "one that is taken back stays loaded until the next boot"),
    Declared {
        field: "encryption.resources",
        effect: Some(Effect::Restart),
        steps: &[Step::CertificateAuthorities, Step::RewriteSecrets],
        remark: "API servers, one control plane after the other, each three times; what was added is encrypted, and what \
                 was taken out is not any more ([more](operations/encryption.md#choose-what-is-encrypted))",
    },
    Declared {
        field: "encryption.{provider,kms.name,kms.endpoint,kms.timeoutSeconds}",
        effect: Some(Effect::Restart),
        steps: &[Step::KmsPlugin, Step::CertificateAuthorities, Step::RewriteSecrets],
        remark: "API servers, one control plane after the other, each three times, once the plug-in answers on all of \
                 them; everything is encrypted anew ([more](operations/encryption.md#encrypt-by-a-kms-plug-in))",
    },
    Declared {
        field: "configuration.kubeProxy.mode",
        effect: Some(Effect::Restart),
        steps: &[Step::Addons],
        remark: "kube-proxy on all Nodes; connections through Services may \
                 [fail for a moment](operations/change.md#the-mode-of-kube-proxy). An edit from or to `None` is refused",
    },
    beside(
        "configuration.machine.{dnsServers,searchDomains}",
        "systemd-resolved restarts, where it is at work; Pods that run keep what they began with, \
         [CoreDNS](operations/change.md#how-machines-are-configured) among them",
    ),
    beside("configuration.machine.journal", "systemd-journald restarts"),
    beside("configuration.machine.timeServers", "systemd-timesyncd or chrony restarts"),
    beside("configuration.machine.trustedCAs", "containerd restarts; containers go on"),
    beside("containerRuntime.registryMirrors", "containerd reads them at each pull"),
    later("{controlPlane,etcd,workers[]}.hosts", HOSTS),
    later("{controlPlane,etcd,workers[]}.hostSelector.{matchLabels,minCPUs,minMemoryMiB}", HOSTS),
    later("{controlPlane,etcd,workers[]}.hostSelector.matchExpressions[].{key,operator,values}", HOSTS),
    beside("controlPlane.certSANs", "a new certificate, which the API server takes up without a restart"),
    beside("{controlPlane,workers[]}.{labels,annotations,taints[]}", NODES),
    beside("{controlPlane,workers[]}.taints[].effect", EVICTS),
    row(
        "controlPlane.replicas",
        Effect::Machines,
        "one machine at a time; more than one needs the endpoint, and one again an [approval](operations/grow.md)",
    ),
    none("{deletionPolicy,deletionProtection}", "what becomes of a deletion of the ClusterDeployment"),
    none("drift.checkEverySeconds", "comparisons change nothing"),
    none(
        "drift.repair",
        "with `Automatic`, steps by which machines [differ](operations/drift.md) are played again, which may restart \
         what serves",
    ),
    none(
        "etcd.defragmentation.{schedule,timeZone,minFragmentationPercent,minReclaimMiB}",
        "when it is due, one member after the other [stands still](operations/etcd.md#defragment-it)",
    ),
    none("etcd.hashCheckSeconds", "a check reads, and changes nothing"),
    row("etcd.replicas", Effect::Machines, "one machine at a time; then the API servers are given the new endpoints"),
    beside("etcd.endpoints", "the API servers"),
    beside("etcd.secretRef", "another `ca.crt` restarts the API servers"),
    none("executor.image", "runs that are made later"),
    none("executor.historyLimit", "how many ended runs are kept"),
    none("executor.maxAttempts", "how often the same is tried"),
    none("executor.customPlaybooksRef.name", "runs that are made later"),
    none("executor.pod.{imagePullSecrets[].name,nodeSelector,priorityClassName}", "runs that are made later"),
    none("executor.pod.tolerations[].{key,operator,value,effect}", "runs that are made later"),
    none("hooks.{beforeInstall[],afterInstall[]}.{name,vars}", "played when a cluster is installed, and not again"),
    later("hooks.{beforeJoin[],afterJoin[]}.{name,vars}", "played on machines that join"),
    later("hooks.{beforeUpgrade[],afterUpgrade[]}.{name,vars}", "played at the next upgrade"),
    later(
        "hooks.{beforeDrain[],afterDrain[],beforeRemove[],afterRemove[]}.{name,vars}",
        "played on machines that leave",
    ),
    Declared {
        field: "kubernetesVersion",
        effect: Some(Effect::Drain),
        steps: &[
            Step::PreflightUpgrade,
            Step::Prefetch,
            Step::Etcd,
            Step::KubeadmUpgrade,
            Step::ContainerRuntime,
            Step::ControlPlane,
            Step::Node,
        ],
        remark: "an [upgrade](operations/change.md#the-kubernetes-version); a patch drains no Node; a lower version, \
                 and one that is more than a minor away without `upgradePath`, are refused",
    },
    none("machineRemoval.{drainTimeoutSeconds,forceRemoveAfterSeconds}", "how machines leave"),
    none("machineRemoval.fenceReturned", "what is done with machines that were given up and answer again"),
    none("paused", "the step under way ends, and nothing more starts; `false` lets it go on"),
    none("preflight.{ignore,allowUnsupportedDistribution}", "preflight of later runs; one that failed is made anew"),
    none("readinessGates[].conditionType", "`Ready` waits for the condition"),
    none("recovery.{strategy,lostAfterSeconds}", "what is done when all machines are lost"),
    none("recovery.identityRef.name", "what is done when all machines are lost"),
    none(
        "remediation.{actions,cooldownSeconds,keepSpareHosts,maxConcurrent,maxUnhealthy,neverStartedAfterSeconds}",
        "whether and how unhealthy machines are repaired",
    ),
    none(
        "remediation.{paused,rebootTimeoutSeconds,unhealthyAfterSeconds,unhealthyConditions,waitSeconds}",
        "whether and how unhealthy machines are repaired",
    ),
    none("rollout.{canaries,pauseSeconds}", "how and when a change is rolled out, also one that is under way"),
    none(
        "rollout.windows[].{schedule,timeZone,durationMinutes}",
        "how and when a change is rolled out, also one that is under way",
    ),
    none("upgradePath.via", "the way to another `kubernetesVersion`, as far as it has not begun"),
    beside("versions.cniPlugins", "nothing: Pods that begin from then on have them"),
    beside("versions.containerd", "containerd; containers go on"),
    beside("versions.coredns", "CoreDNS, once all machines have its image"),
    beside("versions.etcd", "the member of etcd; another one leads before"),
    beside("versions.runc", "nothing: containers that begin from then on have it"),
    none(
        "workers[].{maxSurge,maxUnavailable}",
        "how many machines are out of service, or join, for a change or a repair",
    ),
    none("workers[].minReadySeconds", "the MachineSet's `availableReplicas`"),
    row(
        "workers[].name",
        Effect::Machines,
        "another name is another set: the machines of the former one leave, as they do if it is taken out",
    ),
    row("workers[].replicas", Effect::Machines, "nobody else may scale the MachineSet while it is given"),
    later("workers[].spreadBy", HOSTS),
];

/// Of a MachineSet.
pub const SETS: &[Declared] = &[
    none("deletion.order", "which machines leave first when there are to be fewer"),
    none("minReadySeconds", "`availableReplicas`"),
    none("mode", "who makes Machines from now on; those that there are stay"),
    beside("surge", "in a set of a ClusterDeployment it is the operator's"),
    later("template.{hosts,spreadBy}", HOSTS),
    later("template.hostSelector.{matchLabels,minCPUs,minMemoryMiB}", HOSTS),
    later("template.hostSelector.matchExpressions[].{key,operator,values}", HOSTS),
    later(
        "template.kubernetesVersion",
        "machines that are part of the cluster are upgraded by `kubernetesVersion` of the ClusterDeployment",
    ),
    beside("template.{labels,annotations,taints[]}", NODES),
    beside("template.taints[].effect", EVICTS),
];
