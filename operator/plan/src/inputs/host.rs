//! One host of a model: how to reach it, its groups, its variables.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::EtcdTopology;
use crds::host::HostKeyPolicy;
use crds::inputs::{Group, HostIdentity, HostInputs};
use crds::node_metadata::Taint;
use crds::placement::plain;
use crds::step::Role;
use crds::{ClusterDeployment, Host, Machine, PlaybookRun};
use serde_json::{Value, json};

use super::Credentials;
use super::problem::InputsProblem;
use crate::configuration;
use crate::store::comparisons;

/// Bastions behind bastions end here.
const MOST_BASTIONS: usize = 4;

/// The machines of the run's hosts, by host. A Host that no machine of the cluster has is not the run's to work on.
pub(super) fn machines_of<'a>(
    run: &PlaybookRun,
    machines: &'a [Machine],
) -> Result<BTreeMap<&'a str, &'a Machine>, InputsProblem> {
    let of_host = |machine: &'a Machine| machine.spec.host_ref.as_ref().map(|host| (host.name.as_str(), machine));
    let machines: BTreeMap<&str, &Machine> = machines.iter().filter_map(of_host).collect();
    match run.spec.hosts.iter().find(|name| !machines.contains_key(name.as_str())) {
        None => Ok(machines),
        Some(name) => {
            let former = run.spec.former().map(|former| former.to_string()).unwrap_or_default();
            let known: Vec<&str> = machines.keys().copied().take(10).collect();
            let message = format!(
                "Host {name} belongs to no Machine of {former} (its Hosts: {}): make a new run with its own Hosts",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            );
            Err(InputsProblem::refused(Reason::HostNotInCluster, message))
        }
    }
}

/// Whether the first key that a machine shows may be believed, where its Host says `TrustOnFirstUse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstKey {
    /// It may: it is pinned from then on.
    Believed,
    /// Only a key that is pinned already.
    Refused,
}

/// How to reach a Host, without what it is in a cluster.
pub fn host_inputs(
    host: &Host,
    hosts: &BTreeMap<String, Host>,
    credentials: &Credentials,
    first_key: FirstKey,
) -> Result<HostInputs, InputsProblem> {
    reach(host, hosts, credentials, first_key, MOST_BASTIONS)
}

fn reach(
    host: &Host,
    hosts: &BTreeMap<String, Host>,
    credentials: &Credentials,
    first_key: FirstKey,
    bastions_left: usize,
) -> Result<HostInputs, InputsProblem> {
    let ssh = &host.spec.ssh;
    let credential = ssh.credentials_ref.name.clone();
    let credential_kind = match credentials.get(&credential) {
        Some(Ok(kind)) => *kind,
        Some(Err(problem)) => return Err(problem.clone()),
        None => {
            return Err(InputsProblem::waits(
                Reason::SecretNotFound,
                format!("Secret {credential} is not there: make it"),
            ));
        }
    };
    let bastion = bastion(host, hosts, credentials, bastions_left)?;
    let host_keys = host_keys(host, first_key)?;
    Ok(HostInputs {
        address: host.spec.address.clone(),
        port: u16::try_from(ssh.port).unwrap_or(22),
        user: ssh.user.clone(),
        use_sudo: ssh.use_sudo,
        credential,
        credential_kind,
        host_keys,
        host_key_policy: ssh.host_key_policy,
        bastion: bastion.map(Box::new),
        groups: Vec::new(),
        claim_epoch: host.spec.claim_epoch,
        comparisons: Vec::new(),
        claim_uid: host.spec.claim_ref.as_ref().map(|claim| claim.uid.clone()),
        identity: identity(host),
        vars: BTreeMap::new(),
    })
}

/// How to reach the bastion that the Host is reached through, if there is one.
fn bastion(
    host: &Host,
    hosts: &BTreeMap<String, Host>,
    credentials: &Credentials,
    bastions_left: usize,
) -> Result<Option<HostInputs>, InputsProblem> {
    let name = host.name();
    let Some(bastion) = &host.spec.ssh.bastion_ref else {
        return Ok(None);
    };
    if bastions_left == 0 {
        let message = format!("Host {name}: more than {MOST_BASTIONS} bastions in a row (or in a ring)");
        return Err(InputsProblem::waits(Reason::BastionChainTooLong, message));
    }
    let bastion = hosts.get(&bastion.name).ok_or_else(|| {
        let message = format!("Host {name} is reached through Host {}, which is not there: make it", bastion.name);
        InputsProblem::waits(Reason::HostNotFound, message)
    })?;
    // Nobody pins the key of a machine that is only passed through: its own probe does.
    let refused = FirstKey::Refused;
    reach(bastion, hosts, credentials, refused, bastions_left - 1).map(Some)
}

/// Which machine must answer: the one that was claimed. A Host that nobody has claimed may be another machine by now.
fn identity(host: &Host) -> Option<HostIdentity> {
    host.spec.claim_ref.as_ref()?;
    host.spec.identity.clone()
}

/// The keys that the machine may show. None: the first one is believed.
fn host_keys(host: &Host, first_key: FirstKey) -> Result<Vec<String>, InputsProblem> {
    let name = host.name();
    let ssh = &host.spec.ssh;
    if !ssh.host_keys.is_empty() {
        return Ok(ssh.host_keys.clone());
    }
    if ssh.host_key_policy == HostKeyPolicy::Strict {
        let message = format!(
            "Host {name}: hostKeyPolicy Strict needs spec.ssh.hostKeys: give the machine's public host keys (ssh-keyscan)"
        );
        return Err(InputsProblem::waits(Reason::HostKeyUnknown, message));
    }
    let pinned = host.status.as_ref().map(|status| status.host_keys.clone());
    let pinned = pinned.unwrap_or_default();
    if pinned.is_empty() && first_key == FirstKey::Refused {
        let message = format!(
            "Host {name}: no host key is pinned: the probe of a Host that nobody has claimed pins the first one seen; or give spec.ssh.hostKeys"
        );
        return Err(InputsProblem::waits(Reason::HostKeyUnknown, message));
    }
    Ok(pinned)
}

/// The address that the cluster uses for a Host.
pub fn address_in_cluster(host: &Host) -> &str {
    host.spec.internal_address.as_deref().unwrap_or(&host.spec.address)
}

/// The same, which a machine of a cluster needs as an IP address.
pub(super) fn own_address(host: &Host) -> Result<&str, InputsProblem> {
    let (name, address) = (host.name(), address_in_cluster(host));
    if address.parse::<IpAddr>().is_ok() {
        return Ok(address);
    }
    let message = format!(
        "Host {name}: address {address} is a name; a machine of a cluster needs an IP address: give the Host internalAddress"
    );
    Err(InputsProblem::waits(Reason::InternalAddressMissing, message))
}

/// Puts the host where its machine stands in the cluster.
pub(super) fn place(
    inputs: &mut HostInputs,
    host: &Host,
    machine: &Machine,
    cluster: &ClusterDeployment,
) -> Result<(), InputsProblem> {
    let (name, address) = (host.name().to_owned(), own_address(host)?);
    let status = cluster.status.as_ref();
    inputs.comparisons = status.map(|status| comparisons::of_host(host, status)).unwrap_or_default();
    inputs.groups = groups(machine.spec.role, cluster.spec.etcd.topology);
    let vars = &mut inputs.vars;
    vars.insert("ip".into(), json!(address));
    vars.insert("access_ip".into(), json!(address));
    if inputs.groups.contains(&Group::Etcd) {
        vars.insert("etcd_member_name".into(), json!(name));
    }
    vars.insert("kube_override_hostname".into(), json!(name));
    vars.insert("node_labels".into(), json!(plain(&machine.spec.labels)));
    vars.insert("node_taints".into(), Value::Array(machine.spec.taints.iter().map(taint).collect()));
    vars.extend(configuration::variables(cluster, machine));
    Ok(())
}

fn groups(role: Role, topology: EtcdTopology) -> Vec<Group> {
    match (role, topology) {
        (Role::ControlPlane, EtcdTopology::Stacked) => vec![Group::KubeControlPlane, Group::Etcd],
        (Role::ControlPlane, _) => vec![Group::KubeControlPlane],
        (Role::Etcd, _) => vec![Group::Etcd],
        (Role::Worker, _) => vec![Group::KubeNode],
    }
}

/// `key=value:Effect`, or `key:Effect`.
fn taint(taint: &Taint) -> Value {
    let value = taint.value.as_ref().map(|value| format!("={}", value.0)).unwrap_or_default();
    json!(format!("{}{value}:{:?}", taint.key, taint.effect))
}
