//! Machine: takes a Host, follows its provisioning and its node, and gives the Host back in the end.

pub mod leaving;
mod member;
mod remediation;
mod status;

use crds::ObjectExt;
use crds::Reason;
use crds::host::Quarantine;
use crds::inputs::HostIdentity;
use crds::names::finalizer;
use crds::references::{ClaimRef, LocalRef};
use crds::step::Intent;
use crds::{Cluster, ClusterDeployment, Host, Machine, MachineStatus, PlaybookRun};
use jiff::Timestamp;

use crate::attempts::{self, RetryDecision};
use crate::claims::{self, HostRequest};
use crate::cluster::NodeSeen;
use crate::{Next, Plan, provisioning};
use leaving::drain::{Drain, PodSeen};

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The Machine.
    pub machine: &'a Machine,
    /// The cluster that it is of.
    pub deployment: Option<&'a ClusterDeployment>,
    /// Machines of the namespace: whoever looks for a Host chooses in turn.
    pub machines: &'a [&'a Machine],
    /// Hosts of the namespace.
    pub hosts: &'a [&'a Host],
    /// Runs of the cluster.
    pub runs: &'a [&'a PlaybookRun],
    /// Nodes of the cluster (its own is enough); `None`: its API has not answered, so nothing is known.
    pub nodes: Option<&'a [NodeSeen]>,
    /// What is seen of the cluster through its API.
    pub cluster: Option<&'a Cluster>,
    /// The Pods that its node is to be drained of, once they were looked at (see [`leaving::looks_at_pods`]).
    pub drain: Option<&'a Drain>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Put the finalizer on the Machine.
    AddFinalizer,
    /// Write the claim into the Host, if nobody has written the Host since it was read.
    Claim {
        /// The Host, as it was read.
        host: Box<Host>,
        /// The claim.
        claim: ClaimRef,
        /// The claim's epoch.
        epoch: i64,
        /// Which machine the Host is, as far as it is known.
        identity: Option<HostIdentity>,
        /// Finalizers of the Host from now on.
        finalizers: Vec<String>,
    },
    /// Name the Host in the Machine.
    SetHost(LocalRef),
    /// Keep new Pods off the Node.
    Cordon {
        /// Namespace of the cluster's objects.
        namespace: String,
        /// The cluster.
        cluster: String,
        /// The Node.
        node: String,
    },
    /// Ask the cluster to let these Pods go elsewhere. What it answers is observed: the plan is made once more with it.
    Evict {
        /// Namespace of the cluster's objects.
        namespace: String,
        /// The cluster.
        cluster: String,
        /// The Pods.
        pods: Vec<PodSeen>,
    },
    /// Delete the Node from the cluster through its API.
    DeleteNode {
        /// Namespace of the cluster's objects.
        namespace: String,
        /// The cluster.
        cluster: String,
        /// The Node.
        node: String,
    },
    /// Take the claim off the Host, if nobody has written the Host since it was read.
    Release {
        /// The Host, as it was read.
        host: Box<Host>,
        /// Finalizers of the Host from now on.
        finalizers: Vec<String>,
        /// Why it is not to be claimed again; none: what is there stays.
        quarantine: Option<Quarantine>,
        /// Which machine it is, where that still matters.
        identity: Option<HostIdentity>,
    },
    /// Let the Machine go.
    RemoveFinalizer,
}

impl Step {
    /// Whether the step is only right if nothing has changed since what it was decided on was read: caches are not
    /// believed.
    pub fn cannot_be_taken_back(&self) -> bool {
        match self {
            Step::AddFinalizer | Step::SetHost(_) | Step::Cordon { .. } | Step::Evict { .. } => false,
            Step::Claim { .. } | Step::DeleteNode { .. } | Step::Release { .. } | Step::RemoveFinalizer => {
                true
            }
        }
    }
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Step, MachineStatus> {
    if observed.machine.is_deleting() {
        return leaving::plan(observed);
    }
    let hold = hold(observed);
    let mut steps = Vec::new();
    let finalizers = observed
        .machine
        .metadata
        .finalizers
        .as_deref()
        .unwrap_or_default();
    if !finalizers.iter().any(|there| there == finalizer::MACHINE) {
        steps.push(Step::AddFinalizer);
    }
    match &hold {
        Hold::Held(host) if observed.machine.spec.host_ref.is_none() => {
            steps.push(Step::SetHost(LocalRef::new(name_of(host))));
        }
        Hold::Take(host) => {
            steps.push(claim(observed.machine, host));
            if observed.machine.spec.host_ref.is_none() {
                steps.push(Step::SetHost(LocalRef::new(name_of(host))));
            }
        }
        Hold::Held(_) | Hold::Nothing { .. } => {}
    }
    let host = match &hold {
        Hold::Held(host) => Some(*host),
        Hold::Take(_) | Hold::Nothing { .. } => None,
    };
    let decision = observed.deployment.map_or_else(
        || RetryDecision::first(None),
        |deployment| {
            provisioning::retry_decision(observed.machine, host, deployment, observed.runs, observed.now)
        },
    );
    let (status, waits_for) = status::of(observed, &hold, &decision);
    // Time alone makes a node that is not seen a missing one.
    let fresh = matches!(&decision, RetryDecision::Done { at: Some(at), .. } if observed.now.duration_since(*at) < status::FRESH);
    let next = if fresh && waits_for.is_some() {
        Next::after_seconds(status::FRESH.as_secs().unsigned_abs())
    } else {
        Next::OnChange
    };
    Plan {
        steps,
        status,
        next,
        waits_for,
    }
}

/// Where the Machine stands with its Host.
#[derive(Clone, Debug, PartialEq)]
enum Hold<'a> {
    /// It holds the Host.
    Held(&'a Host),
    /// It may take the Host now.
    Take(&'a Host),
    /// It has none.
    Nothing { reason: Reason, message: String },
}

fn hold<'a>(observed: &Observed<'a>) -> Hold<'a> {
    let machine = observed.machine;
    let named = machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
    let held = observed
        .hosts
        .iter()
        .copied()
        .find(|host| claims::holds(machine, host) && named.is_none_or(|named| named == name_of(host)));
    if let Some(host) = held {
        return Hold::Held(host);
    }
    let nothing = |reason, message: String| Hold::Nothing { reason, message };
    let cluster = &machine.spec.cluster_name;
    let Some(deployment) = observed.deployment else {
        let message = format!(
            "there is no ClusterDeployment {cluster} in this namespace: make it, or delete the Machine"
        );
        return nothing(Reason::ClusterNotFound, message);
    };
    if deployment.is_deleting() {
        return nothing(
            Reason::ClusterDeleting,
            format!("cluster {cluster} is being deleted: no Host is claimed"),
        );
    }
    if deployment.spec.paused {
        return nothing(
            Reason::Paused,
            format!("cluster {cluster} is paused: no Host is claimed"),
        );
    }
    match named {
        Some(named) => take_named(observed, named),
        None => take_any(observed),
    }
}

fn take_named<'a>(observed: &Observed<'a>, named: &str) -> Hold<'a> {
    let nothing = |reason, message: String| Hold::Nothing { reason, message };
    let Some(host) = observed.hosts.iter().copied().find(|host| name_of(host) == named) else {
        return nothing(
            Reason::HostNotFound,
            format!("there is no Host {named} in this namespace: make it, or delete the Machine"),
        );
    };
    let provisioned = observed
        .machine
        .status
        .as_ref()
        .is_some_and(|status| status.provisioned_at.is_some());
    let nobodys = host.spec.claim_ref.is_none() && !host.is_deleting();
    if provisioned && nobodys {
        // The claim was lost (an old backup, a hand edit) and the machine works: it is written again.
        return Hold::Take(host);
    }
    match claims::Pool::of(observed.hosts).why_not(host) {
        None => Hold::Take(host),
        Some(why) if host.spec.claim_ref.is_some() => nothing(
            Reason::HostTaken,
            format!("Host {named} is {why}: delete this Machine, or that one"),
        ),
        Some(why) => nothing(Reason::HostNotReady, format!("waits for Host {named}: {why}")),
    }
}

fn take_any<'a>(observed: &Observed<'a>) -> Hold<'a> {
    if let Some(host) = claims::choose(observed.machine, observed.machines, observed.hosts) {
        return Hold::Take(host);
    }
    let offer = claims::offer(&HostRequest::of(observed.machine), observed.hosts);
    let mut message = match offer.free {
        0 => "waits for a Host: no free one matches".to_owned(),
        free => format!("waits for a Host: {free} free match, and others are before it"),
    };
    if let Some(unfit) = offer.why_unfit() {
        message.push_str(&format!("; {unfit}"));
    }
    Hold::Nothing {
        reason: Reason::NoHost,
        message,
    }
}

fn claim(machine: &Machine, host: &Host) -> Step {
    let mut finalizers = host.metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|there| there == finalizer::HOST) {
        finalizers.push(finalizer::HOST.into());
    }
    Step::Claim {
        host: Box::new(host.clone()),
        claim: ClaimRef {
            kind: "Machine".into(),
            name: machine.name().to_owned(),
            uid: machine.uid().to_owned(),
        },
        epoch: host.spec.claim_epoch.saturating_add(1),
        identity: claims::identity::at_claim(host),
        finalizers,
    }
}

fn name_of(host: &Host) -> &str {
    host.name()
}

/// The run that works on a Host, or is about to; a probe changes nothing.
fn active_run<'a>(runs: &[&'a PlaybookRun], host: &str) -> Option<&'a PlaybookRun> {
    let works = |run: &PlaybookRun| !attempts::is_over(run) && run.spec.intent != Intent::Probe;
    runs.iter()
        .copied()
        .find(|run| works(run) && run.spec.hosts.iter().any(|named| named == host))
}

#[cfg(test)]
mod tests;
